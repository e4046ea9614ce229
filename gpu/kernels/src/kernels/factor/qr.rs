//! `A = Q R` by Householder reflections.

use cubecl::prelude::*;

use super::{greatest, load, within};

/// Thin `Q` and `R` with a nonnegative diagonal, and the status: 0, −2 if A is not [`within`] range. One unit per
/// column.
///
/// Reflection k is `1 − τ v vᵀ` with `v = (v₀, A[k + 1…, k])`; the column below its diagonal is kept as v.
#[cube(launch_unchecked)]
pub(crate) fn qr_kernel<F: Float>(
    a: &Tensor<F>,
    q: &mut Tensor<F>,
    r: &mut Tensor<F>,
    status: &mut Tensor<i32>,
    batch: usize,
    m: usize,
    n: usize,
    stride: usize,
    row: usize,
    column: usize,
    infinite: InputScalar,
    #[comptime] size: usize,
    #[comptime] units: usize,
    #[define(F)] _dtype: StorageType,
) {
    if CUBE_POS >= batch {
        terminate!();
    }
    let pitch = comptime!(size + 1);
    let mut s = SharedMemory::<F>::new(comptime!(size * (size + 1)));
    let mut heads = SharedMemory::<F>::new(size);
    let mut taus = SharedMemory::<F>::new(size);
    let mut diagonal = SharedMemory::<F>::new(size);
    let unit = UNIT_POS as usize;
    let infinite = infinite.get::<F>();
    let (zero, one) = (F::new(0.0), F::new(1.0));
    let base = CUBE_POS * stride;
    let own = load::<F>(a, &mut s, base, m, n, row, column, infinite, pitch, units, false);
    let most = greatest::<F>(own, units);
    // Scaled, so that squares of entries neither overflow nor underflow.
    let scale = select(most > zero && most < infinite, most, one);
    let mut e = unit;
    while e < m * n {
        s[e / n * pitch + e % n] /= scale;
        e += units;
    }
    sync_cube();
    let steps = select(m < n, m, n);
    for k in 0..steps {
        // Each unit computes the norm independently.
        let first = s[k * pitch + k];
        let mut square = first * first;
        for i in k + 1..m {
            let x = s[i * pitch + k];
            square += x * x;
        }
        let norm = square.sqrt();
        let signed = select(first < zero, zero - norm, norm);
        let head = first + signed;
        let tau = select(norm > zero, one / (norm * (norm + first.abs())), zero);
        if unit > k && unit < n {
            let mut dot = head * s[k * pitch + unit];
            for i in k + 1..m {
                dot += s[i * pitch + k] * s[i * pitch + unit];
            }
            let by = tau * dot;
            s[k * pitch + unit] -= by * head;
            for i in k + 1..m {
                let x = s[i * pitch + k];
                s[i * pitch + unit] -= by * x;
            }
        }
        if unit == 0 {
            heads[k] = head;
            taus[k] = tau;
            diagonal[k] = zero - signed;
        }
        sync_cube();
    }
    let mut e = unit;
    while e < steps * n {
        let i = e / n;
        let j = e % n;
        let above = select(j == i, diagonal[i], s[i * pitch + j]);
        let above = select(diagonal[i] < zero, zero - above, above);
        r[CUBE_POS * steps * n + e] = select(j < i, zero, above * scale);
        e += units;
    }
    if unit < steps {
        // Columns of Q are in the memory of the result, one unit per column.
        let to = CUBE_POS * m * steps + unit;
        let sign = select(diagonal[unit] < zero, zero - one, one);
        for i in 0..m {
            q[to + i * steps] = select(i == unit, sign, zero);
        }
        for back in 0..steps {
            let k = steps - 1 - back;
            let mut dot = heads[k] * q[to + k * steps];
            for i in k + 1..m {
                dot += s[i * pitch + k] * q[to + i * steps];
            }
            let by = taus[k] * dot;
            q[to + k * steps] -= by * heads[k];
            for i in k + 1..m {
                q[to + i * steps] -= by * s[i * pitch + k];
            }
        }
    }
    if unit == 0 {
        status[CUBE_POS] = select(within::<F>(most, infinite), 0i32, -2i32);
    }
}
