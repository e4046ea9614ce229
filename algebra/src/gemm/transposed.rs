//! Products with a row-major left factor for the library on 512-bit vectors: the factor is transposed in parts.
//!
//! `gemm` packs a row-major left factor by reading 64 rows at once. Rows at distances of a multiple of 1 KiB share the
//! sets of a cache, so every element is read from the next one. The transposition reads eight rows at a time, and its
//! result has no such distances. Zen 4, f32, C = A·B with row-major C, `k` × `n` columns of B contiguous, µs
//! (the left factor of the library is Bᵀ):
//!
//! ```text
//! m × k × n         2×512×512   16×512×512   64×512×512   512×512×512   64×1024×256
//! packed by gemm    519         580          793          2876          1007
//! transposed        89          146          396          2501          394
//! B row-major       15          72           318          2367          311
//! ```

use super::partition::{OutputBlock, span};
use super::scratch::{Scratch, StackBuffer};
use super::{MatMut, MatRef};
use crate::Scalar;
use crate::simd::{Isa, Loop, dispatch};

/// Distance of rows, in bytes, that share the sets of a cache.
const DISTANCE: usize = 1024;
/// Bytes of a transposed part, if it has more than [`MIN_ROWS`].
const PART: usize = 1 << 20;
/// Minimum number of rows of one of several parts: with short parts the library would cut k at other positions, see
/// [`partition`](super::partition).
const MIN_ROWS: usize = 256;
/// Maximum number of bytes of a part.
const MOST: usize = 1 << 22;
/// Maximum number of elements of a small product.
const SMALL: usize = 16 * 16;
/// Rows that are read at the same time: as many as a set of a cache has lines at least.
const ROWS: usize = 8;
/// Elements between the columns of a part, in addition to their length.
const PADDING: usize = 16;

/// Calls `product` for blocks of rows of A and C: with transposed copies of A where that is faster, or once.
pub(super) fn by_parts<'a, T: Scalar>(
    block: OutputBlock<'a, T>,
    mut product: impl FnMut(MatRef<'_, T>, MatRef<'a, T>, &MatMut<'a, T>),
) {
    let OutputBlock { a, b, c, .. } = block;
    let (m, k) = (a.rows(), a.cols());
    let column = k.saturating_mul(size_of::<T>());
    let parts = m.div_ceil((PART / column.max(1)).max(MIN_ROWS));
    // Bounds of parts are rounded to multiples of eight.
    let pitch = (m.div_ceil(parts.max(1)) + 8).next_multiple_of(PADDING) + PADDING;
    let apart = a.row_stride().unsigned_abs() * size_of::<T>();
    let suits = Isa::detect() == Isa::Avx512
        && a.col_stride() == 1
        && apart >= DISTANCE
        && apart.is_multiple_of(DISTANCE)
        && m >= ROWS
        && k >= 16
        // Products with a vector and small ones are not packed: the library computes them by dot products.
        && b.cols() > 1
        && (m * b.cols() > SMALL || b.row_stride() != 1)
        && pitch.saturating_mul(column) <= MOST;
    if !suits {
        return product(a, b, &c);
    }
    let mut stack = StackBuffer::new();
    let mut scratch = Scratch::<T>::new(pitch * k, &mut stack);
    for part in 0..parts {
        let (first, rows) = span(m, parts, part);
        // SAFETY: the rows are rows of A and C, and the scratch has room for the longest part.
        unsafe {
            let a = a.block((first, 0), (rows, k));
            let dst = scratch.as_mut_ptr();
            dispatch(Transpose { a, dst, pitch });
            let a = MatRef::from_raw_parts(dst.cast_const(), (rows, k), (1, pitch as isize));
            product(a, b, &c.alias().block((first, 0), (rows, c.cols())));
        }
    }
}

/// `dst[l·pitch + i] ← aᵢₗ` of a row-major matrix.
struct Transpose<'a, T> {
    a: MatRef<'a, T>,
    dst: *mut T,
    pitch: usize,
}

impl<T: Scalar> Loop for Transpose<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // Whole cache lines of a row.
        match const { size_of::<T>() } {
            4 => self.by::<16>(),
            8 => self.by::<8>(),
            _ => self.by::<4>(),
        }
    }
}

impl<T: Scalar> Transpose<'_, T> {
    #[inline(always)]
    fn by<const LINE: usize>(self) {
        let Self { a, dst, pitch } = self;
        let (m, k, stride) = (a.rows(), a.cols(), a.row_stride());
        let (m_whole, k_whole) = (m - m % ROWS, k - k % LINE);
        // SAFETY: (i, l) is an element of A; the caller has room for `pitch ≥ m` elements of every column.
        let copy = |i: usize, l: usize| unsafe {
            let x = a.as_ptr().offset(i as isize * stride).add(l).read();
            dst.add(l * pitch + i).write(x);
        };
        for l in (0..k_whole).step_by(LINE) {
            for i in (0..m_whole).step_by(ROWS) {
                for column in 0..LINE {
                    for row in 0..ROWS {
                        copy(i + row, l + column);
                    }
                }
            }
        }
        for i in 0..m {
            for l in if i < m_whole { k_whole } else { 0 }..k {
                copy(i, l);
            }
        }
    }
}
