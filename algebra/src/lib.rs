//! Numbers and what they may do: element classes, elementary functions, semirings and the
//! matrix product over any semiring. Knows no tensor.
//!
//! ```text
//! scalar     Scalar → Numeric → { Real → { Int, Float }, Field }      one impl per element type
//! semiring   (T, ⊕, ⊗) as zero-sized tags over plain elements; semirings: one file each
//! laws       the axioms as checks, for everybody's semirings
//! gemm       matrix products over any semiring, strided and batched
//! math       branch-free elementary functions on f32 and f64
//! simd       run one loop with the widest vector instructions of this machine
//! parallel   our own threads, and the one way to split work over them
//! ```

pub mod environment;
pub mod gemm;
pub mod laws;
pub mod math;
pub mod parallel;
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
