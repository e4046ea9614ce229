//! f32, f64, c32 and c64 over (+, ×): the `gemm` crate, and the generic driver where the products
//! are too small for it.
//!
//! `gemm` 0.19 was chosen over faer 0.24 by measurement (AVX2 machine, one thread, row-major, µs):
//!
//! ```text
//!               n = 32        256         512           1024         1024, Aᵀ
//! f32  gemm     0.88       355        2 790        23 700         23 700
//!      faer     1.13       349        2 927        24 800         39 100
//! f64  gemm     1.64       738        5 817        49 000         47 700
//!      faer     1.76       716        6 117        52 500         80 700
//! c64  gemm     6.17     2 903       22 900       182 600        184 100
//!      faer     6.43     2 849       24 500       199 200       318 000
//! ```
//!
//! Below that faer was faster (4×4: 37 ns against 290 ns); there the driver serves instead, which
//! packs once and calls nothing, and for the smallest products plain loops (4×4 with all set-up: 0.13
//! µs against 0.22 by the driver):
//!
//! ```text
//! f32           n = 4       8         12        16        24        32
//! driver        0.10        0.10      0.16      0.35      0.80      2.1
//! gemm          0.33        0.18      0.31      0.26      0.53      0.91
//! ```
//!
//! Where all sides are long the driver's blocks for two levels of cache and its rows of C asked for
//! in advance gain (GFLOP/s of the best of 25 runs, and the median ratio of neighbouring runs;
//! complex products and vectors of 512 bits were not better or not measured, and keep the library):
//!
//! ```text
//! real          n = 512            768              1000             1024             1536
//! f32  driver   71.5               86.2             86.9             81.4             85.6
//!      gemm     67.1  1.05         91.9  1.03       87.6  1.05       80.4  1.22       79.0  1.19
//! f64  driver   42.5               43.0             40.7             43.6             42.0
//!      gemm     44.3  1.05         41.7  1.16       36.8  1.18       39.9  1.18       36.7  1.16
//! ```

use gemm::{Parallelism, gemm};

use super::kernel::Plain;
use super::partition::{self, Block};
use super::{Kernel, Product, driver};
use crate::simd::{self, Isa, Loop};
use crate::{Numeric, Standard};

/// Most steps m·n·k for which loops without packing are faster than the driver's tile (bench
/// `backend`, row `matmul 4`).
const TINY: usize = 128;
/// Most steps m·n·k for which the driver's tile is faster than the library.
const SMALL: usize = 12 * 12 * 12;
/// Least m, n and k from which the driver is faster than the library for real elements.
pub(crate) const LARGE: usize = 512;

/// The product of the library, or of the driver if it is small or m, n and k are at least `LARGE`;
/// threads are ours.
///
/// # Safety
/// `T` must be `f32`, `f64`, `c32` or `c64`.
pub(crate) const unsafe fn kernel<T: Numeric, const LARGE: usize>() -> Kernel<T> {
    Kernel(product::<T, LARGE>)
}

/// # Safety
/// As [`kernel`], and the operands as [`Product::batch`] promises.
unsafe fn product<T: Numeric, const LARGE: usize>(p: &Product<'_, T>) {
    let (m, k, n) = (p.a.rows(), p.a.cols(), p.b.cols());
    // By the whole product: threads must not change a bit.
    let steps = m.saturating_mul(n).saturating_mul(k);
    let large = Isa::detect() == Isa::Avx2 && m.min(n).min(k) >= LARGE;
    // SAFETY: passed on; the library reads m×k and k×n and writes m×n elements, and reads C only
    // when it accumulates.
    unsafe {
        partition::for_each(p, |block| {
            if steps <= TINY {
                return simd::dispatch(Tiny(&block));
            }
            if steps <= SMALL || large {
                return driver::run::<Standard, Plain<Standard>, T>(&block);
            }
            let (a, b, c) = (block.a, block.b, &block.c);
            gemm(
                c.rows(),
                c.cols(),
                a.cols(),
                c.as_mut_ptr(),
                c.col_stride(),
                c.row_stride(),
                block.accumulate,
                a.as_ptr(),
                a.col_stride(),
                a.row_stride(),
                b.as_ptr(),
                b.col_stride(),
                b.row_stride(),
                T::ONE,
                T::ONE,
                false,
                false,
                false,
                Parallelism::None,
            );
        });
    }
}

/// A product of few steps: element by element, in the order of k.
struct Tiny<'a, T>(&'a Block<'a, T>);

impl<T: Numeric> Loop for Tiny<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let Block { a, b, c, accumulate, .. } = self.0;
        let at = |i: usize, row_stride: isize, j: usize, col_stride: isize| {
            i as isize * row_stride + j as isize * col_stride
        };
        for i in 0..c.rows() {
            for j in 0..c.cols() {
                let mut sum = T::ZERO;
                // SAFETY: the elements lie inside of the matrices of the block, and C is ours.
                unsafe {
                    for l in 0..a.cols() {
                        let x = a.as_ptr().offset(at(i, a.row_stride(), l, a.col_stride()));
                        let y = b.as_ptr().offset(at(l, b.row_stride(), j, b.col_stride()));
                        sum = (*x).mul_add(*y, sum);
                    }
                    let out = c.as_mut_ptr().offset(at(i, c.row_stride(), j, c.col_stride()));
                    *out = if *accumulate { (*out).add(sum) } else { sum };
                }
            }
        }
    }
}
