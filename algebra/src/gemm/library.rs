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
//! packs once and calls nothing:
//!
//! ```text
//! f32           n = 4       8         12        16        24        32
//! driver        0.10        0.10      0.16      0.35      0.80      2.1
//! gemm          0.33        0.18      0.31      0.26      0.53      0.91
//! ```

use gemm::{Parallelism, gemm};

use super::kernel::Plain;
use super::{Product, driver, partition};
use crate::{Numeric, Standard};

/// Most steps m·n·k for which the driver's tile is faster than the library.
const SMALL: usize = 12 * 12 * 12;

/// The product of the library, whose threads are ours.
///
/// # Safety
/// `T` must be `f32`, `f64`, `c32` or `c64`, and the operands as [`Product::batch`] promises.
pub(crate) unsafe fn product<T: Numeric>(p: &Product<'_, T>) {
    let (m, k, n) = (p.a.rows(), p.a.cols(), p.b.cols());
    let small = m.saturating_mul(n).saturating_mul(k) <= SMALL;
    // SAFETY: passed on; the library reads m×k and k×n and writes m×n elements, and reads C only
    // when it accumulates.
    unsafe {
        partition::for_each(p, |block| {
            if small {
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
