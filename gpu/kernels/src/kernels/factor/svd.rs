//! `A = U diag(S) Vᵀ` by Jacobi rotations of columns.

use cubecl::prelude::*;

use super::{greatest, load, pair, rotation, within};

/// Singular values in nonincreasing order, their vectors with any strides, and the status: 0, −1 if rotations did
/// not converge, −2 if A is not [`within`] range. A must not have more columns than rows.
///
/// Columns of A are rows of `w` in shared memory. `lanes` units compute the inner products of a pair of columns.
#[cube(launch_unchecked)]
pub(crate) fn svd_kernel<F: Float>(
    a: &Tensor<F>,
    u: &mut Tensor<F>,
    values: &mut Tensor<F>,
    vectors: &mut Tensor<F>,
    status: &mut Tensor<i32>,
    batch: usize,
    m: usize,
    n: usize,
    stride: usize,
    row: usize,
    column: usize,
    u_row: usize,
    u_column: usize,
    v_row: usize,
    v_column: usize,
    sweeps: usize,
    infinite: InputScalar,
    negligible: InputScalar,
    tiny: InputScalar,
    #[comptime] size: usize,
    #[comptime] length: usize,
    #[comptime] lanes: usize,
    #[define(F)] _dtype: StorageType,
) {
    if CUBE_POS >= batch {
        terminate!();
    }
    let units = comptime!(size / 2 * lanes);
    let pitch = comptime!(length + 1);
    let v_pitch = comptime!(size + 1);
    let mut w = SharedMemory::<F>::new(comptime!(size * (length + 1)));
    let mut v = SharedMemory::<F>::new(comptime!(size * (size + 1)));
    let mut sums = SharedMemory::<F>::new(comptime!(3 * (size / 2) * lanes));
    let mut sigmas = SharedMemory::<F>::new(size);
    let unit = UNIT_POS as usize;
    let infinite = infinite.get::<F>();
    let negligible = negligible.get::<F>();
    let tiny = tiny.get::<F>();
    let (zero, one) = (F::new(0.0), F::new(1.0));
    let base = CUBE_POS * stride;
    let own = load::<F>(a, &mut w, base, n, m, column, row, infinite, pitch, units, false);
    let most = greatest::<F>(own, units);
    let scale = select(most > zero && most < infinite, most, one);
    let even = (n + 1) / 2 * 2;
    let mut e = unit;
    while e < even * m {
        let at = e / m * pitch + e % m;
        w[at] = select(e / m < n, w[at] / scale, zero);
        e += units;
    }
    let mut e = unit;
    while e < even * even {
        v[e / even * v_pitch + e % even] = select(e / even == e % even, one, zero);
        e += units;
    }
    sync_cube();
    let half = even / 2;
    let k = unit / lanes;
    let lane = unit % lanes;
    let mut rest = zero;
    for _sweep in 0..sweeps {
        rest = zero;
        for round in 0..even - 1 {
            let (p, q) = pair(select(k < half, k, 0), round, even);
            let mut pp = zero;
            let mut qq = zero;
            let mut pq = zero;
            let mut i = lane;
            while i < m {
                let x = w[p * pitch + i];
                let y = w[q * pitch + i];
                pp += x * x;
                qq += y * y;
                pq += x * y;
                i += lanes;
            }
            sums[3 * unit] = pp;
            sums[3 * unit + 1] = qq;
            sums[3 * unit + 2] = pq;
            sync_cube();
            pp = zero;
            qq = zero;
            pq = zero;
            for i in 0..lanes {
                let from = 3 * (k * lanes + i);
                pp += sums[from];
                qq += sums[from + 1];
                pq += sums[from + 2];
            }
            let geometric = pp.sqrt() * qq.sqrt();
            let (c, d) = rotation::<F>(pp, qq, pq, negligible * geometric);
            if k < half {
                let angle = pq.abs() / select(geometric > tiny * tiny, geometric, one);
                rest = select(angle > rest, angle, rest);
                let mut i = lane;
                while i < m {
                    let x = w[p * pitch + i];
                    let y = w[q * pitch + i];
                    w[p * pitch + i] = c * x - d * y;
                    w[q * pitch + i] = d * x + c * y;
                    i += lanes;
                }
                let mut i = lane;
                while i < n {
                    let x = v[p * v_pitch + i];
                    let y = v[q * v_pitch + i];
                    v[p * v_pitch + i] = c * x - d * y;
                    v[q * v_pitch + i] = d * x + c * y;
                    i += lanes;
                }
            }
            sync_cube();
        }
    }
    let rest = greatest::<F>(rest, units);
    let mut j = unit;
    while j < n {
        let mut square = zero;
        for i in 0..m {
            let x = w[j * pitch + i];
            square += x * x;
        }
        let sigma = square.sqrt();
        let sigma = select(sigma > tiny, sigma, zero);
        sigmas[j] = sigma;
        for i in 0..m {
            let x = w[j * pitch + i];
            w[j * pitch + i] = select(sigma > zero, x / select(sigma > zero, sigma, one), zero);
        }
        j += units;
    }
    sync_cube();
    if unit == 0 {
        // Zero columns are replaced by unit vectors minus their components along the other columns, which are zero
        // until they are computed. For one of the unit vectors the remainder has a squared norm of at least 1/m.
        for j in 0..n {
            if sigmas[j] == zero {
                let mut found = false;
                for axis in 0..m {
                    if !found {
                        for i in 0..m {
                            w[j * pitch + i] = select(i == axis, one, zero);
                        }
                        let mut square = zero;
                        for _pass in 0..2u32 {
                            for k in 0..n {
                                if k != j {
                                    let mut dot = zero;
                                    for i in 0..m {
                                        dot += w[k * pitch + i] * w[j * pitch + i];
                                    }
                                    for i in 0..m {
                                        let x = w[k * pitch + i];
                                        w[j * pitch + i] -= dot * x;
                                    }
                                }
                            }
                            square = zero;
                            for i in 0..m {
                                square += w[j * pitch + i] * w[j * pitch + i];
                            }
                        }
                        found = square * F::cast_from(2 * m as u32) > one;
                        let root = square.sqrt();
                        for i in 0..m {
                            let x = w[j * pitch + i];
                            w[j * pitch + i] = select(found, x / select(found, root, one), zero);
                        }
                    }
                }
            }
        }
    }
    sync_cube();
    let mut j = unit;
    while j < n {
        let x = sigmas[j];
        let mut place = 0usize;
        for i in 0..n {
            let y = sigmas[i];
            let before = y > x || (y == x && i < j);
            place += select(before, 1usize, 0usize);
        }
        values[CUBE_POS * n + place] = x * scale;
        for i in 0..m {
            u[CUBE_POS * m * n + i * u_row + place * u_column] = w[j * pitch + i];
        }
        for i in 0..n {
            vectors[CUBE_POS * n * n + i * v_row + place * v_column] = v[j * v_pitch + i];
        }
        j += units;
    }
    if unit == 0 {
        let converged = rest * rest <= negligible;
        let code = select(converged, 0i32, -1i32);
        status[CUBE_POS] = select(within::<F>(most, infinite), code, -2i32);
    }
}
