//! `A[p] = L U` with partial pivoting.

use cubecl::prelude::*;

use super::{greatest, load, within};

/// `L` and `U` packed, the permutation of rows, and the status: 0, `i + 1` for the first zero on the diagonal of U,
/// −2 if A is not [`within`] range. One unit per column.
#[cube(launch_unchecked)]
pub(crate) fn lu_kernel<F: Float>(
    a: &Tensor<F>,
    packed: &mut Tensor<F>,
    rows: &mut Tensor<i32>,
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
    let mut order = SharedMemory::<u32>::new(size);
    let unit = UNIT_POS as usize;
    let infinite = infinite.get::<F>();
    let base = CUBE_POS * stride;
    let own = load::<F>(a, &mut s, base, m, n, row, column, infinite, pitch, units, false);
    let mut i = unit;
    while i < m {
        order[i] = i as u32;
        i += units;
    }
    let most = greatest::<F>(own, units);
    let mut failed = 0usize;
    let steps = select(m < n, m, n);
    for k in 0..steps {
        // Each unit finds the pivot independently.
        let mut at = k;
        let mut best = s[k * pitch + k].abs();
        for i in k + 1..m {
            let modulus = s[i * pitch + k].abs();
            at = select(modulus > best, i, at);
            best = select(modulus > best, modulus, best);
        }
        let pivot = s[at * pitch + k];
        let zero = pivot == F::new(0.0);
        failed = select(failed == 0 && zero, k + 1, failed);
        sync_cube();
        if unit < n {
            let (x, y) = (s[k * pitch + unit], s[at * pitch + unit]);
            s[k * pitch + unit] = y;
            s[at * pitch + unit] = x;
        }
        if unit == 0 {
            let (x, y) = (order[k], order[at]);
            order[k] = y;
            order[at] = x;
        }
        sync_cube();
        let mut i = k + 1 + unit;
        while i < m {
            let x = s[i * pitch + k];
            s[i * pitch + k] = select(zero, F::new(0.0), x / pivot);
            i += units;
        }
        sync_cube();
        if unit > k && unit < n {
            let x = s[k * pitch + unit];
            for i in k + 1..m {
                let y = s[i * pitch + k];
                s[i * pitch + unit] -= y * x;
            }
        }
        sync_cube();
    }
    let mut e = unit;
    while e < m * n {
        packed[CUBE_POS * m * n + e] = s[e / n * pitch + e % n];
        e += units;
    }
    let mut i = unit;
    while i < m {
        rows[CUBE_POS * m + i] = order[i] as i32;
        i += units;
    }
    if unit == 0 {
        status[CUBE_POS] = select(within::<F>(most, infinite), failed as i32, -2i32);
    }
}
