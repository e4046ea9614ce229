//! Products of many small interleaved matrices: the elements (i, j) of all matrices are contiguous.
//!
//! The lanes of a vector are different matrices. A tile is 2 × 2 elements of one cache line of matrices; the operands
//! are not packed.

use std::marker::PhantomData;

use crate::simd::{self, Loop};
use crate::{Scalar, Semiring};

/// Bytes of a chunk of all three operands: half of a 512 KiB L2 cache.
const CHUNK_BYTES: usize = 256 << 10;

/// Element (0, 0) of the first of the interleaved matrices, and the strides between rows and columns.
#[derive(Clone, Copy, Debug)]
pub struct Interleaved<P> {
    /// Element (0, 0) of the first matrix.
    pub at: P,
    /// Stride between rows.
    pub row_stride: isize,
    /// Stride between columns.
    pub col_stride: isize,
}

/// `C[β] ← A[β] ⊗ B[β]` for matrices β = 0 … `len` − 1 at stride 1: A is m×k, B is k×n, C is m×n. Runs on the calling
/// thread.
///
/// Cost: len·m·n·k steps; every operand is read once.
///
/// # Safety
/// Elements `at + i·row_stride + j·col_stride + β` must be readable in A and B, and writable and
/// distinct in C, which overlaps neither.
pub unsafe fn interleaved<S: Semiring<T>, T: Scalar>(
    shape: (usize, usize, usize),
    len: usize,
    a: Interleaved<*const T>,
    b: Interleaved<*const T>,
    c: Interleaved<*mut T>,
) {
    macro_rules! by_line {
        ($($size:literal => $lanes:literal,)* else $other:literal) => {
            $(if const { size_of::<T>() == $size } {
                simd::dispatch(InterleavedLoop::<S, T, $lanes> { shape, len, a, b, c, tag: PhantomData })
            } else)* {
                simd::dispatch(InterleavedLoop::<S, T, $other> { shape, len, a, b, c, tag: PhantomData })
            }
        };
    }
    by_line!(1 => 64, 2 => 32, 4 => 16, 8 => 8, else 2)
}

struct InterleavedLoop<S, T, const L: usize> {
    shape: (usize, usize, usize),
    len: usize,
    a: Interleaved<*const T>,
    b: Interleaved<*const T>,
    c: Interleaved<*mut T>,
    tag: PhantomData<S>,
}

impl<S: Semiring<T>, T: Scalar, const L: usize> Loop for InterleavedLoop<S, T, L> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (m, k, n) = self.shape;
        let matrix = (m * k + k * n + m * n) * size_of::<T>().max(1);
        let chunk = (CHUNK_BYTES / matrix.max(1)).next_multiple_of(L).max(L);
        let whole = self.len - self.len % L;
        for first in (0..whole).step_by(chunk) {
            let last = (first + chunk).min(whole);
            for i in (0..m).step_by(2) {
                for j in (0..n).step_by(2) {
                    for lane in (first..last).step_by(L) {
                        // SAFETY: by the contract of `interleaved`.
                        unsafe {
                            match (m - i, n - j) {
                                (1, 1) => self.tile::<1, 1, L>((i, j), lane),
                                (1, _) => self.tile::<1, 2, L>((i, j), lane),
                                (_, 1) => self.tile::<2, 1, L>((i, j), lane),
                                _ => self.tile::<2, 2, L>((i, j), lane),
                            }
                        }
                    }
                }
            }
        }
        for lane in whole..self.len {
            for at in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                // SAFETY: as above.
                unsafe { self.tile::<1, 1, 1>(at, lane) }
            }
        }
    }
}

impl<S: Semiring<T>, T: Scalar, const L: usize> InterleavedLoop<S, T, L> {
    /// Elements (i, j) to (i + M, j + N) of W matrices.
    ///
    /// # Safety
    /// They must exist.
    #[inline(always)]
    unsafe fn tile<const M: usize, const N: usize, const W: usize>(
        &self,
        (i, j): (usize, usize),
        lane: usize,
    ) {
        let Self { a, b, c, .. } = self;
        let offset = |row: usize, by: isize, col: usize, to: isize| {
            row as isize * by + col as isize * to + lane as isize
        };
        let mut acc = [[[S::ZERO; W]; N]; M];
        for l in 0..self.shape.1 {
            let row = |r: usize| {
                let at = offset(i + r, a.row_stride, l, a.col_stride);
                // SAFETY: by contract.
                unsafe { a.at.wrapping_offset(at).cast::<[T; W]>().read() }
            };
            let col = |s: usize| {
                let at = offset(l, b.row_stride, j + s, b.col_stride);
                // SAFETY: by contract.
                unsafe { b.at.wrapping_offset(at).cast::<[T; W]>().read() }
            };
            let cols: [[T; W]; N] = std::array::from_fn(col);
            for r in 0..M {
                let row = row(r);
                for s in 0..N {
                    for w in 0..W {
                        acc[r][s][w] = S::mul_add(row[w], cols[s][w], acc[r][s][w]);
                    }
                }
            }
        }
        for (r, row) in acc.iter().enumerate() {
            for (s, lanes) in row.iter().enumerate() {
                let at = offset(i + r, c.row_stride, j + s, c.col_stride);
                // SAFETY: by contract.
                unsafe { c.at.wrapping_offset(at).cast::<[T; W]>().write(*lanes) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MaxPlus, Standard};

    /// Every edge of the tile, B read transposed.
    #[test]
    fn every_matrix_is_multiplied() {
        fn check<S: Semiring<T>, T: Scalar>(of: impl Fn(usize) -> T) {
            for (m, k, n) in [(1, 1, 1), (2, 3, 2), (3, 2, 5), (4, 1, 1), (1, 4, 3), (2, 0, 3)] {
                for len in [1, 7, 16, 100, 1000] {
                    let a: Vec<T> = (0..m * k * len).map(&of).collect();
                    let b: Vec<T> = (0..k * n * len).map(|i| of(i + 5)).collect();
                    let mut c = vec![of(1); m * n * len];
                    let stride = |n: usize| (n * len) as isize;
                    let lanes = len as isize;
                    // SAFETY: the strides are those of the buffers.
                    unsafe {
                        interleaved::<S, T>(
                            (m, k, n),
                            len,
                            Interleaved {
                                at: a.as_ptr(),
                                row_stride: stride(k),
                                col_stride: lanes,
                            },
                            Interleaved {
                                at: b.as_ptr(),
                                row_stride: lanes,
                                col_stride: stride(k),
                            },
                            Interleaved {
                                at: c.as_mut_ptr(),
                                row_stride: stride(n),
                                col_stride: lanes,
                            },
                        );
                    }
                    for (at, &got) in c.iter().enumerate() {
                        let (i, j, lane) = (at / len / n, at / len % n, at % len);
                        let terms = (0..k).map(|l| {
                            S::mul(a[(i * k + l) * len + lane], b[(j * k + l) * len + lane])
                        });
                        assert_eq!(got, terms.fold(S::ZERO, S::add), "{m}×{k}×{n}, {len}");
                    }
                }
            }
        }
        check::<Standard, f64>(|i| (i % 13) as f64 - 6.0);
        check::<MaxPlus, f32>(|i| if i % 7 == 0 { f32::NEG_INFINITY } else { (i % 11) as f32 });
        check::<MaxPlus, i8>(|i| (i % 11) as i8);
    }
}
