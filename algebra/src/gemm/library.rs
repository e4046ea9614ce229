//! f32, f64, c32 and c64 over (+, ×): the `gemm` crate, and the generic driver for products too small for it.
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
//! For small sizes faer was faster (4×4: 37 ns against 290 ns); loops without packing are used there (`small`; AVX-512
//! machine, one thread, ns including set-up; the same with 256-bit vectors):
//!
//! ```text
//!               n = 4       8        12        16        20        24        32
//! f32  small       68      78       126       194       262       351       776
//!      gemm       236     260       317       220       593       711       716
//! f64  small       72     100       150       228       384       565      1324
//!      gemm       236     197       390       309       713       672      1351
//! c64  small       81     158       375       787      1472      2560      5991
//!      gemm       188     244       421       778      1391      2209      4870
//! ```
//!
//! If all sides are long, the driver is faster because of its blocks for two levels of cache and its prefetch of rows
//! of C (GFLOP/s of the best of 25 runs, and the median ratio of neighbouring runs; complex products and 512-bit
//! vectors were not faster or not measured, and use the library):
//!
//! ```text
//! real          n = 512            768              1000             1024             1536
//! f32  driver   71.5               86.2             86.9             81.4             85.6
//!      gemm     67.1  1.05         91.9  1.03       87.6  1.05       80.4  1.22       79.0  1.19
//! f64  driver   42.5               43.0             40.7             43.6             42.0
//!      gemm     44.3  1.05         41.7  1.16       36.8  1.18       39.9  1.18       36.7  1.16
//! ```

use gemm::{Parallelism, gemm};

use super::arithmetic::Plain;
use super::partition;
use super::small::Small;
use super::{Algorithm, Kernel, Product, Report, driver, transposed};
use crate::simd::{self, Isa};
use crate::{Numeric, Standard};

/// Maximum number of steps m·n·k for which products without packing are faster than the library with one long side
/// other than k.
const FEW: usize = 12 * 12 * 12;

/// Size limits outside of which the library is not used.
pub(crate) trait SizeLimits {
    /// Maximum m, n and k for which products without packing are faster.
    const SMALL: usize;
    /// Minimum m, n and k for which the driver is faster on 256-bit vectors.
    const LARGE: usize;
}
pub(crate) struct RealLimits;
impl SizeLimits for RealLimits {
    const SMALL: usize = 24;
    const LARGE: usize = 512;
}
pub(crate) struct ComplexLimits;
impl SizeLimits for ComplexLimits {
    const SMALL: usize = 12;
    const LARGE: usize = usize::MAX;
}

/// The product of the library within the limits; multithreaded by this crate.
///
/// # Safety
/// `T` must be `f32`, `f64`, `c32` or `c64`.
pub(crate) const unsafe fn kernel<T: Numeric, L: SizeLimits>() -> Kernel<T> {
    Kernel(product::<T, L>)
}

/// # Safety
/// As [`kernel`], and the operands must satisfy the contract of [`Product::batch`].
unsafe fn product<T: Numeric, L: SizeLimits>(p: &Product<'_, T>) -> Report {
    let (m, k, n) = (p.a.rows(), p.a.cols(), p.b.cols());
    // Decided by the size of the whole product: the result must not depend on the number of threads.
    let steps = m.saturating_mul(n).saturating_mul(k);
    let algorithm = if k <= L::SMALL && (m.max(n) <= L::SMALL || steps <= FEW) {
        Algorithm::Small
    } else if Isa::detect() == Isa::Avx2 && m.min(n).min(k) >= L::LARGE {
        Algorithm::Blocked
    } else {
        Algorithm::Library
    };
    // SAFETY: passed on; the library reads m×k and k×n and writes m×n elements, and reads C only
    // when it accumulates.
    unsafe {
        partition::for_each(p, |block| {
            match algorithm {
                Algorithm::Small => return simd::dispatch(Small(&block)),
                Algorithm::Blocked => {
                    return driver::run::<Standard, Plain<Standard>, T>(&block);
                }
                _ => {}
            }
            // The library computes a row-major C as the transpose of a product.
            let c = &block.c;
            let swap = c.col_stride().abs() < c.row_stride().abs();
            let block = if swap { block.transpose() } else { block };
            let accumulate = block.accumulate;
            transposed::by_parts(block, |a, b, c| {
                gemm(
                    c.rows(),
                    c.cols(),
                    a.cols(),
                    c.as_mut_ptr(),
                    c.col_stride(),
                    c.row_stride(),
                    accumulate,
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
        });
    }
    Report::new(algorithm)
}
