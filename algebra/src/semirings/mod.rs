//! One semiring per file.
//!
//! ```text
//!              elements            ⊕        ⊗     0     1
//! Standard     numbers             +        ×     0     1
//! MaxPlus      floats, signed      max      +     −∞    0     selective, cancellative
//! MinPlus      reals               min      +     +∞    0     selective, cancellative
//! MaxMul       reals ≥ 0           max      ×     0     1     selective, cancellative
//! MinMul       reals ≥ 0           min      ×     +∞    1     selective, cancellative
//! MaxMin       reals               max      min   −∞    +∞    selective
//! Boolean      bool                or       and   false true  selective, cancellative
//! LogSumExp    floats              ln(eᵃ+eᵇ) +    −∞    0
//! Counting<S>  (value, count)      better, counts of equals added; ⊗ of values, × of counts;
//!                                  S cancellative
//! KBest<K, S>  K values, sorted    the K best of 2K; of all K² pairs; S selective
//! ```
//!
//! ±∞ of an integer type are its extreme values. A **NaN** operand of ⊕ or ⊗ gives NaN, for any order of a sum, also in
//! matrix products; the argmax of such a sum is its first NaN. No operation returns NaN for operands that are not NaN.

mod boolean;
mod counting;
mod k_best;
mod log_sum_exp;
mod max_min;
mod max_mul;
mod max_plus;
mod min_mul;
mod min_plus;
mod standard;

pub use boolean::Boolean;
pub use counting::{Counted, Counting};
pub use k_best::KBest;
pub use log_sum_exp::LogSumExp;
pub use max_min::MaxMin;
pub use max_mul::MaxMul;
pub use max_plus::MaxPlus;
pub use min_mul::MinMul;
pub use min_plus::MinPlus;
pub use standard::Standard;
