//! `A = V diag(E) Vᵀ` by Jacobi rotations.

use cubecl::prelude::*;

use super::{greatest, load, pair, rotation, within};

/// Eigenvalues in nondecreasing order and eigenvectors of (A + Aᵀ)/2, and the status: 0, −1 if rotations did not
/// converge, −2 if A is not [`within`] range.
///
/// The pairs of a round of rotations are disjoint, so the 2 × 2 blocks of a pair of pairs are independent.
#[cube(launch_unchecked)]
pub(crate) fn eigh_kernel<F: Float>(
    a: &Tensor<F>,
    values: &mut Tensor<F>,
    vectors: &mut Tensor<F>,
    status: &mut Tensor<i32>,
    batch: usize,
    n: usize,
    stride: usize,
    row: usize,
    column: usize,
    sweeps: usize,
    infinite: InputScalar,
    negligible: InputScalar,
    #[comptime] size: usize,
    #[comptime] units: usize,
    #[define(F)] _dtype: StorageType,
) {
    if CUBE_POS >= batch {
        terminate!();
    }
    let pitch = comptime!(size + 1);
    let mut s = SharedMemory::<F>::new(comptime!(size * (size + 1)));
    let mut v = SharedMemory::<F>::new(comptime!(size * (size + 1)));
    let mut cosines = SharedMemory::<F>::new(size);
    let mut sines = SharedMemory::<F>::new(size);
    let unit = UNIT_POS as usize;
    let infinite = infinite.get::<F>();
    let negligible = negligible.get::<F>();
    let (zero, one) = (F::new(0.0), F::new(1.0));
    let base = CUBE_POS * stride;
    let own = load::<F>(a, &mut s, base, n, n, row, column, infinite, pitch, units, true);
    let most = greatest::<F>(own, units);
    let scale = select(most > zero && most < infinite, most, one);
    // An even number of rows; the last row is zero if n is odd.
    let even = (n + 1) / 2 * 2;
    let mut e = unit;
    while e < even * even {
        let i = e / even;
        let j = e % even;
        let inside = i < n && j < n;
        let at = i * pitch + j;
        s[at] = select(inside, s[at] / scale, zero);
        v[at] = select(i == j, one, zero);
        e += units;
    }
    sync_cube();
    let half = even / 2;
    for _sweep in 0..sweeps {
        for round in 0..even - 1 {
            let mut k = unit;
            while k < half {
                let (p, q) = pair(k, round, even);
                let diagonal = (s[p * pitch + p], s[q * pitch + q]);
                let apq = s[p * pitch + q];
                let (c, sine) = rotation::<F>(diagonal.0, diagonal.1, apq, negligible);
                cosines[k] = c;
                sines[k] = sine;
                k += units;
            }
            sync_cube();
            let mut e = unit;
            while e < half * half {
                let k = e / half;
                let l = e % half;
                let (p, q) = pair(k, round, even);
                let (x, y) = pair(l, round, even);
                let (c, d) = (cosines[k], sines[k]);
                let px = s[p * pitch + x];
                let py = s[p * pitch + y];
                let qx = s[q * pitch + x];
                let qy = s[q * pitch + y];
                let (ax, ay) = (c * px - d * qx, c * py - d * qy);
                let (bx, by) = (d * px + c * qx, d * py + c * qy);
                let (c, d) = (cosines[l], sines[l]);
                s[p * pitch + x] = c * ax - d * ay;
                s[p * pitch + y] = d * ax + c * ay;
                s[q * pitch + x] = c * bx - d * by;
                s[q * pitch + y] = d * bx + c * by;
                e += units;
            }
            let mut e = unit;
            while e < half * n {
                let k = e / n;
                let i = e % n;
                let (p, q) = pair(k, round, even);
                let (c, d) = (cosines[k], sines[k]);
                let x = v[i * pitch + p];
                let y = v[i * pitch + q];
                v[i * pitch + p] = c * x - d * y;
                v[i * pitch + q] = d * x + c * y;
                e += units;
            }
            sync_cube();
        }
    }
    let mut rest = zero;
    let mut e = unit;
    while e < n * n {
        let i = e / n;
        let j = e % n;
        let x = select(i == j, zero, s[i * pitch + j].abs());
        rest = select(x > rest, x, rest);
        e += units;
    }
    let rest = greatest::<F>(rest, units);
    let mut j = unit;
    while j < n {
        let x = s[j * pitch + j];
        let mut place = 0usize;
        for i in 0..n {
            let y = s[i * pitch + i];
            let before = y < x || (y == x && i < j);
            place += select(before, 1usize, 0usize);
        }
        values[CUBE_POS * n + place] = x * scale;
        for i in 0..n {
            vectors[(CUBE_POS * n + i) * n + place] = v[i * pitch + j];
        }
        j += units;
    }
    if unit == 0 {
        let converged = rest <= F::new(64.0) * negligible;
        let code = select(converged, 0i32, -1i32);
        status[CUBE_POS] = select(within::<F>(most, infinite), code, -2i32);
    }
}
