//! Element types and their algebra: classes of elements, elementary functions, semirings, and matrix products over any
//! semiring at the speed of the hardware. The crate has no tensor type: its kernels take slices and strides. It is
//! sufficient for a user-defined semiring and for loops over user-defined element types.
//!
//! ```
//! use t4a_algebra::MaxPlus;
//! use t4a_algebra::gemm::{MatMut, MatRef, Product};
//!
//! // Longest paths of two steps: ⊕ is the maximum, ⊗ the sum.
//! let step = [0.0f64, 3.0, f64::NEG_INFINITY, 1.0];
//! let mut two = [0.0; 4];
//! let (a, c) = (MatRef::row_major(&step, 2, 2)?, MatMut::row_major(&mut two, 2, 2)?);
//! Product::new(a, a, c)?.run::<MaxPlus>();
//! assert_eq!(two, [0.0, 4.0, f64::NEG_INFINITY, 2.0]);
//! # Ok::<(), t4a_algebra::gemm::GemmError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | a user-defined semiring with checked laws | [`Semiring`], [`laws`]; with fast kernels [`UncheckedSemiring`] |
//! | the built-in semirings | [`Standard`], [`MaxPlus`], [`MinPlus`], [`MaxMul`], [`MinMul`], [`MaxMin`], [`LogSumExp`], [`Boolean`], [`Counting`], [`Counted`], [`KBest`] |
//! | a matrix product, strided, batched | [`gemm::Product`] |
//! | the argmax of every sum | [`Selective`], [`gemm::Product::argmax`] |
//! | code generic over element types | [`Scalar`], [`Numeric`], [`Real`], [`Float`], [`Int`], [`Field`] |
//! | `exp`, `tanh`, `erf`, … without branches | [`math`] |
//! | a loop with the widest vectors of the CPU | [`simd`] |
//! | a multithreaded loop whose result is independent of the number of threads | [`parallel`] |
//! | a setting from the environment | [`environment`] |
//! | texts of bounded length in error messages | [`message`] |

// scalar     Scalar → Numeric → { Real → { Int, Float }, Field }      one impl per element type
// semiring   (T, ⊕, ⊗) as zero-sized tags over plain elements; semirings: one file each
// laws       the axioms as checks, for user-defined semirings too
// gemm       matrix products over any semiring, strided and batched
// math       branch-free elementary functions on f32 and f64
// message    bounded texts in error messages
// simd       runs one loop with the widest vector instructions of the CPU
// parallel   the thread pool, and the partition of work into chunks

pub mod environment;
pub mod gemm;
pub mod laws;
pub mod math;
pub mod message;
pub mod parallel;
pub mod process;
pub mod scalar;
pub mod semiring;
pub mod semirings;
pub mod simd;

pub use half::{bf16, f16};
pub use scalar::{Extended, Field, Float, Int, Numeric, Real, Scalar, Signed, c32, c64};
pub use semiring::{Cancellative, Selective, Semiring, UncheckedSemiring};
pub use semirings::{
    Boolean, Counted, Counting, KBest, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus,
    Standard,
};
