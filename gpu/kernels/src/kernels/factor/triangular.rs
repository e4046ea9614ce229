//! `op(T)⁻¹ B`.

use cubecl::prelude::*;

use super::greatest;

/// Solves `op(T) X = B` with one unit per column of B, in `blocks` cubes per matrix. Entry (i, j) of the lower
/// triangle is that of T at (i, j); with `mirrored`, rows and columns are counted from the end. The status: 0,
/// `i + 1` for a zero on the diagonal, −2 if T, B or the solution is not finite.
#[cube(launch_unchecked)]
pub(crate) fn triangular_kernel<F: Float>(
    t: &Tensor<F>,
    b: &Tensor<F>,
    x: &mut Tensor<F>,
    status: &mut Tensor<i32>,
    batch: usize,
    blocks: usize,
    n: usize,
    columns: usize,
    t_stride: usize,
    t_row: usize,
    t_column: usize,
    b_stride: usize,
    b_row: usize,
    b_column: usize,
    infinite: InputScalar,
    #[comptime] mirrored: bool,
    #[comptime] unit_diagonal: bool,
    #[comptime] size: usize,
    #[comptime] units: usize,
    #[define(F)] _dtype: StorageType,
) {
    if CUBE_POS >= batch * blocks {
        terminate!();
    }
    let pitch = comptime!(size + 1);
    let mut s = SharedMemory::<F>::new(comptime!(size * (size + 1)));
    let matrix = CUBE_POS / blocks;
    let block = CUBE_POS % blocks;
    let unit = UNIT_POS as usize;
    let infinite = infinite.get::<F>();
    let zero = F::new(0.0);
    let mut most = zero;
    // Entries outside of the triangle are ignored.
    let mut e = unit;
    while e < n * n {
        let i = e / n;
        let j = e % n;
        if j < i || (j == i && !unit_diagonal) {
            let p = if comptime!(mirrored) { n - 1 - i } else { i };
            let q = if comptime!(mirrored) { n - 1 - j } else { j };
            let value = t[matrix * t_stride + p * t_row + q * t_column];
            s[i * pitch + j] = value;
            let modulus = value.abs();
            let modulus = select(modulus < infinite, modulus, infinite);
            most = select(modulus > most, modulus, most);
        }
        e += units;
    }
    sync_cube();
    let column = block * units + unit;
    if column < columns {
        for i in 0..n {
            let p = if comptime!(mirrored) { n - 1 - i } else { i };
            let mut sum = b[matrix * b_stride + p * b_row + column * b_column];
            let modulus = sum.abs();
            let modulus = select(modulus < infinite, modulus, infinite);
            most = select(modulus > most, modulus, most);
            for j in 0..i {
                let q = if comptime!(mirrored) { n - 1 - j } else { j };
                sum -= s[i * pitch + j] * x[(matrix * n + q) * columns + column];
            }
            if comptime!(!unit_diagonal) {
                sum /= s[i * pitch + i];
            }
            x[(matrix * n + p) * columns + column] = sum;
            let modulus = select(sum.abs() < infinite, zero, infinite);
            most = select(modulus > most, modulus, most);
        }
    }
    let most = greatest::<F>(most, units);
    if unit == 0 {
        let mut failed = 0usize;
        if comptime!(!unit_diagonal) {
            for i in 0..n {
                let p = if comptime!(mirrored) { n - 1 - i } else { i };
                let vanishes = s[i * pitch + i] == F::new(0.0);
                let first = vanishes && (failed == 0 || p + 1 < failed);
                failed = select(first, p + 1, failed);
            }
        }
        status[CUBE_POS] = select(most < infinite, failed as i32, -2i32);
    }
}
