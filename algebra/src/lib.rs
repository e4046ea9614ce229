//! Numbers and what they may do: classes of elements, elementary functions, semirings, and matrix products
//! over any semiring as fast as the machine allows. It knows no tensor: a kernel here takes slices and
//! strides. Whoever writes a semiring, or loops over numbers of their own, needs nothing else.
//!
//! ```
//! use t4a_algebra::MaxPlus;
//! use t4a_algebra::gemm::{MatMut, MatRef, Product};
//!
//! // Longest ways of two steps: ⊕ is the maximum, ⊗ the sum.
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
//! | a semiring of one's own, its laws checked | [`Semiring`], [`laws`]; on the fast kernels [`UncheckedSemiring`] |
//! | the built-in ones | [`Standard`], [`MaxPlus`], [`MinPlus`], [`MaxMul`], [`MaxMin`], [`LogSumExp`], [`Boolean`], [`Counting`], [`Counted`], [`KBest`] |
//! | a matrix product, strided, batched | [`gemm::Product`] |
//! | which term attained each maximum | [`Selective`], [`gemm::Product::argmax`] |
//! | code over types of elements | [`Scalar`], [`Numeric`], [`Real`], [`Float`], [`Int`], [`Field`] |
//! | `exp`, `tanh`, `erf`, … without branches | [`math`] |
//! | a loop with the widest vectors of the machine | [`simd`] |
//! | a loop on several threads, with the same result on any number | [`parallel`] |
//! | a setting from the environment | [`environment`] |

// scalar     Scalar → Numeric → { Real → { Int, Float }, Field }      one impl per element type
// semiring   (T, ⊕, ⊗) as zero-sized tags over plain elements; semirings: one file each
// laws       the axioms as checks, for everybody's semirings
// gemm       matrix products over any semiring, strided and batched
// math       branch-free elementary functions on f32 and f64
// simd       run one loop with the widest vector instructions of this machine
// parallel   our own threads, and the one way to split work over them

pub mod environment;
pub mod gemm;
pub mod laws;
pub mod math;
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
    Boolean, Counted, Counting, KBest, LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Standard,
};
