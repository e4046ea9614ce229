//! `A = L Lᵀ`.

use cubecl::prelude::*;

use super::{greatest, load, within};

/// `L` of (A + Aᵀ)/2, and the status: 0, `i + 1` if pivot i is not positive, −2 if A is not [`within`] range.
#[cube(launch_unchecked)]
pub(crate) fn cholesky_kernel<F: Float>(
    a: &Tensor<F>,
    l: &mut Tensor<F>,
    status: &mut Tensor<i32>,
    batch: usize,
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
    let unit = UNIT_POS as usize;
    let infinite = infinite.get::<F>();
    let base = CUBE_POS * stride;
    let own = load::<F>(a, &mut s, base, n, n, row, column, infinite, pitch, units, true);
    let most = greatest::<F>(own, units);
    let mut failed = 0usize;
    for k in 0..n {
        let pivot = s[k * pitch + k];
        let positive = pivot > F::new(0.0);
        let fails = failed == 0 && !positive;
        failed = select(fails, k + 1, failed);
        let root = pivot.sqrt();
        sync_cube();
        let mut i = k + unit;
        while i < n {
            s[i * pitch + k] = select(i == k, root, s[i * pitch + k] / root);
            i += units;
        }
        sync_cube();
        let mut i = k + 1 + unit;
        while i < n {
            let x = s[i * pitch + k];
            for j in k + 1..i + 1 {
                let y = s[j * pitch + k];
                s[i * pitch + j] -= x * y;
            }
            i += units;
        }
        sync_cube();
    }
    let mut e = unit;
    while e < n * n {
        let i = e / n;
        let j = e % n;
        l[CUBE_POS * n * n + e] = select(j > i, F::new(0.0), s[i * pitch + j]);
        e += units;
    }
    if unit == 0 {
        status[CUBE_POS] = select(within::<F>(most, infinite), failed as i32, -2i32);
    }
}
