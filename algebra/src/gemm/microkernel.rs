//! The register tile: MR × NR accumulators over packed panels.
//!
//! Per k it reads MR elements of A and NR of B and takes MR·NR steps `c ⊕ (a ⊗ b)`. All loops
//! have constant bounds, so that the compiler unrolls them and keeps the accumulators in vector
//! registers.

use super::MatMut;
use super::arithmetic::PackedArithmetic;
use crate::{Scalar, Semiring};

/// Repeats a block for `$row` = 0 … MR − 1, at most 8.
macro_rules! rows {
    ($mr:ident, $row:ident => $body:block) => {
        rows!(@ $mr, $row, $body, 0 1 2 3 4 5 6 7)
    };
    (@ $mr:ident, $row:ident, $body:block, $($n:literal)*) => {
        const { assert!($mr <= 8) }
        $(if const { $n < $mr } {
            const $row: usize = $n;
            $body
        })*
    };
}
pub(super) use rows;

/// `Σₖ aᵢₖ ⊗ bₖⱼ` over one panel of A and one of B, k ascending.
///
/// # Safety
/// `a` must hold `kc·MR` and `b` `kc·NR` readable elements.
#[inline(always)]
pub(super) unsafe fn compute<
    K: PackedArithmetic<T>,
    T: Scalar,
    const FMA: bool,
    const UNROLLED: bool,
    const MR: usize,
    const NR: usize,
>(
    kc: usize,
    a: *const K::Packed,
    b: *const K::Packed,
) -> [[K::Packed; NR]; MR] {
    let unit = K::unit();
    let mut acc = [[K::zero(); NR]; MR];
    let (mut a, mut b) = (a.cast::<[K::Packed; MR]>(), b.cast::<[K::Packed; NR]>());
    for _ in 0..kc {
        // SAFETY: `kc` groups are readable.
        let (av, bv) = unsafe { (&*a, &*b) };
        if const { UNROLLED } {
            rows!(MR, I => {
                for j in 0..NR {
                    acc[I][j] = K::mul_add::<FMA>(av[I], bv[j], acc[I][j], unit);
                }
            });
        } else {
            for i in 0..MR {
                for j in 0..NR {
                    acc[i][j] = K::mul_add::<FMA>(av[i], bv[j], acc[i][j], unit);
                }
            }
        }
        a = a.wrapping_add(1);
        b = b.wrapping_add(1);
    }
    acc
}

/// Writes or adds the part of a tile inside C.
///
/// # Safety
/// `c` must be writable, have at most MR rows and NR columns, and be initialised if `add`.
#[inline(always)]
pub(super) unsafe fn store<S, K, T, const MR: usize, const NR: usize>(
    acc: &[[K::Packed; NR]; MR],
    c: &MatMut<'_, T>,
    add: bool,
) where
    S: Semiring<T>,
    K: PackedArithmetic<T>,
    T: Scalar,
{
    let (rows, cols) = (c.rows(), c.cols());
    let (row_stride, col_stride) = (c.row_stride(), c.col_stride());
    let c = c.as_mut_ptr();
    // SAFETY: all elements written are (i, j) with i < rows and j < cols.
    unsafe {
        if rows == MR && cols == NR && col_stride == 1 {
            for (i, lanes) in acc.iter().enumerate() {
                let row = c.wrapping_offset(i as isize * row_stride).cast::<[T; NR]>();
                if add {
                    let mut sum = row.read();
                    for j in 0..NR {
                        sum[j] = S::add(sum[j], K::decode(lanes[j]));
                    }
                    row.write(sum);
                } else {
                    let mut values = [S::ZERO; NR];
                    for j in 0..NR {
                        values[j] = K::decode(lanes[j]);
                    }
                    row.write(values);
                }
            }
        } else {
            for (i, lanes) in acc.iter().enumerate().take(rows) {
                let row = c.wrapping_offset(i as isize * row_stride);
                for (j, &value) in lanes.iter().enumerate().take(cols) {
                    let value = K::decode(value);
                    let at = row.wrapping_offset(j as isize * col_stride);
                    at.write(if add { S::add(at.read(), value) } else { value });
                }
            }
        }
    }
}
