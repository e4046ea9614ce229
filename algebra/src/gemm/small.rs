//! Small products over (+, ×) without packing: elements of A are read in place, and rows of B in place or from a
//! contiguous copy.
//!
//! Packing and the edges of a large tile would cost more than such a product.

use super::partition::OutputBlock;
use super::scratch::{Scratch, StackBuffer};
use crate::Numeric;
use crate::simd::Loop;

/// One block; each sum is in the order of k.
pub(super) struct Small<'a, 'b, T>(pub(super) &'b OutputBlock<'a, T>);

impl<T: Numeric> Loop for Small<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let OutputBlock { b, .. } = self.0;
        let (k, n) = (b.rows(), b.cols());
        let mut stack = StackBuffer::new();
        if b.col_stride() == 1 || n == 1 {
            return columns(self.0, b.as_ptr(), b.row_stride());
        }
        let mut scratch = Scratch::<T>::new(k * n, &mut stack);
        let rows = scratch.as_mut_ptr();
        for l in 0..k {
            for j in 0..n {
                let from = l as isize * b.row_stride() + j as isize * b.col_stride();
                // SAFETY: (l, j) is an element of B, and the scratch has room for every element.
                unsafe { rows.add(l * n + j).write(b.as_ptr().offset(from).read()) }
            }
        }
        columns(self.0, rows, n as isize);
    }
}

/// All columns, in groups of at most the width of a vector.
#[inline(always)]
fn columns<T: Numeric>(block: &OutputBlock<'_, T>, b: *const T, pitch: isize) {
    let n = block.b.cols();
    let mut from = 0;
    // Four rows of 64 bytes use half of sixteen 256-bit registers.
    macro_rules! widths {
        ($($width:literal)*) => {
            $(while $width * size_of::<T>() <= 64 && n - from >= $width {
                rows::<T, $width>(block, b.wrapping_add(from), pitch, from);
                from += $width;
            })*
        };
    }
    widths!(16 8 4 2 1);
}

/// All rows of `W` columns.
#[inline(always)]
fn rows<T: Numeric, const W: usize>(
    block: &OutputBlock<'_, T>,
    b: *const T,
    pitch: isize,
    col: usize,
) {
    let m = block.a.rows();
    let mut from = 0;
    while m - from >= 4 {
        tile::<T, 4, W>(block, b, pitch, (from, col));
        from += 4;
    }
    while from < m {
        tile::<T, 1, W>(block, b, pitch, (from, col));
        from += 1;
    }
}

/// `R × W` elements of C.
#[inline(always)]
fn tile<T: Numeric, const R: usize, const W: usize>(
    OutputBlock { a, c, accumulate, .. }: &OutputBlock<'_, T>,
    b: *const T,
    pitch: isize,
    (row, col): (usize, usize),
) {
    let mut acc = [[T::ZERO; W]; R];
    let from = a.as_ptr().wrapping_offset(row as isize * a.row_stride());
    for l in 0..a.cols() {
        // SAFETY: the rows and columns are inside A and B.
        let y = unsafe { b.wrapping_offset(l as isize * pitch).cast::<[T; W]>().read() };
        for i in 0..R {
            let at = i as isize * a.row_stride() + l as isize * a.col_stride();
            // SAFETY: as above.
            let x = unsafe { from.wrapping_offset(at).read() };
            for j in 0..W {
                acc[i][j] = x.mul_add(y[j], acc[i][j]);
            }
        }
    }
    for (i, sums) in acc.iter().enumerate() {
        let at = (row + i) as isize * c.row_stride() + col as isize * c.col_stride();
        let out = c.as_mut_ptr().wrapping_offset(at);
        // SAFETY: the tile is inside C, which is exclusively borrowed, and C is read only if it is accumulated to.
        unsafe {
            if c.col_stride() == 1 || W == 1 {
                let out = out.cast::<[T; W]>();
                let mut sums = *sums;
                if *accumulate {
                    let old = out.read();
                    for j in 0..W {
                        sums[j] = old[j].add(sums[j]);
                    }
                }
                out.write(sums);
            } else {
                for (j, &sum) in sums.iter().enumerate() {
                    let out = out.wrapping_offset(j as isize * c.col_stride());
                    out.write(if *accumulate { out.read().add(sum) } else { sum });
                }
            }
        }
    }
}
