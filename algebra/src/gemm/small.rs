//! Products that are too small to pack: operands are read as they lie (bench `backend`, row
//! `matmul 16`).
//!
//! Four rows by one cache line of C are accumulated in registers, in ascending order of k like
//! everywhere; what is left of the columns goes in narrower strips, of the rows one by one.

use super::partition::Block;
use crate::Numeric;
use crate::simd::{Loop, dispatch};

/// Computes the block if the rows of B, or in the transposed product those of Aᵀ, are contiguous
/// and fill strips; otherwise says no.
///
/// # Safety
/// The block lies inside of its operands.
#[inline]
pub(super) unsafe fn product<T: Numeric>(block: &Block<'_, T>) -> bool {
    let fills =
        |lanes: usize, stride: isize| stride == 1 && (lanes.is_multiple_of(4) || lanes >= 16);
    if fills(block.c.cols(), block.b.col_stride()) {
        dispatch(InPlace(block));
    } else if fills(block.c.rows(), block.a.row_stride()) {
        dispatch(InPlace(&block.transpose()));
    } else {
        return false;
    }
    true
}

struct InPlace<'a, 'b, T>(&'a Block<'b, T>);

impl<T: Numeric> Loop for InPlace<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let n = self.0.c.cols();
        let mut j = 0;
        while j < n {
            // SAFETY: the strip ends at n.
            j += unsafe {
                match (n - j, const { size_of::<T>() }) {
                    (16.., 4) => self.strip::<16>(j),
                    (8.., 4 | 8) => self.strip::<8>(j),
                    (4.., _) => self.strip::<4>(j),
                    _ => self.strip::<1>(j),
                }
            };
        }
    }
}

impl<T: Numeric> InPlace<'_, '_, T> {
    /// Columns `j..j + NR` of C.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn strip<const NR: usize>(&self, j: usize) -> usize {
        let m = self.0.c.rows();
        let mut i = 0;
        // SAFETY: rows end at m.
        unsafe {
            while m - i >= 4 {
                self.tile::<4, NR>(i, j);
                i += 4;
            }
            while i < m {
                self.tile::<1, NR>(i, j);
                i += 1;
            }
        }
        NR
    }

    /// Rows `i..i + MR` of columns `j..j + NR`.
    ///
    /// # Safety
    /// They exist.
    #[inline(always)]
    unsafe fn tile<const MR: usize, const NR: usize>(&self, i: usize, j: usize) {
        let Block { a, b, c, accumulate, .. } = self.0;
        let mut sums = [[T::ZERO; NR]; MR];
        let left = a.as_ptr().wrapping_offset(i as isize * a.row_stride());
        let right = b.as_ptr().wrapping_add(j);
        for p in 0..a.cols() as isize {
            // SAFETY: row p of B has NR elements from column j on; A has (i + r, p).
            unsafe {
                let row = &*right.wrapping_offset(p * b.row_stride()).cast::<[T; NR]>();
                for (r, sums) in sums.iter_mut().enumerate() {
                    let at = r as isize * a.row_stride() + p * a.col_stride();
                    let x = *left.wrapping_offset(at);
                    for (sum, &y) in sums.iter_mut().zip(row) {
                        *sum = x.mul_add(y, *sum);
                    }
                }
            }
        }
        for (r, sums) in sums.iter().enumerate() {
            for (l, &sum) in sums.iter().enumerate() {
                let at = (i + r) as isize * c.row_stride() + (j + l) as isize * c.col_stride();
                let place = c.as_mut_ptr().wrapping_offset(at);
                // SAFETY: C has (i + r, j + l); it is read only if it is added to.
                unsafe { place.write(if *accumulate { (*place).add(sum) } else { sum }) };
            }
        }
    }
}
