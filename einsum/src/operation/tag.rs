//! Semirings as values for dispatch at run time; the kernels for semirings of this crate are compiled here.

use std::fmt;
use std::hash::Hash;

use t4a_diff::Array;
use t4a_diff::array::Semiring;
use t4a_tensor::AnyTensor;

use crate::error::Result;
use crate::plan::Plan;
use crate::rules::Share;

/// A semiring as a value: [`FloatSemiring`] for those of this crate, [`Custom`](super::Custom) for others.
pub trait Tag: Copy + fmt::Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Name in error messages and tables.
    fn name(&self) -> &'static str;
    /// Kind of derivative of a sum with respect to its terms.
    fn share(&self) -> Share;
    /// The zero of the semiring.
    fn zero(&self) -> f64;
    /// The one of the semiring.
    fn one(&self) -> f64;
    /// The semiring for [`Array::semiring_matmul`].
    fn kernel(&self) -> Option<Semiring> {
        None
    }
    /// [`ArraySemiring::product`](super::ArraySemiring::product).
    fn product<A: Array>(&self, a: &A, b: &A) -> A;
    /// [`ArraySemiring::sum`](super::ArraySemiring::sum).
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A;
    /// [`ArraySemiring::weights`](super::ArraySemiring::weights).
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A;
    /// [`ArraySemiring::factors`](super::ArraySemiring::factors).
    fn factors<A: Array>(&self, a: &A, b: &A, g: &A) -> [A; 2];
    /// The first term along an axis that equals the sum, and a mask of the sums equal to the zero of the semiring.
    fn argmax<A: Array>(&self, terms: &A, axis: usize) -> (A::Integers, A::Flags);

    /// [`Plan::contract`] for any float dtype.
    ///
    /// # Errors
    /// As [`Plan::contract`]; `DTypeUnsupported`.
    fn contract(&self, plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor>;
    /// [`Plan::contract_argmax`] for any float dtype.
    ///
    /// # Errors
    /// As [`Plan::contract_argmax`]; `DTypeUnsupported`.
    fn contract_argmax(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
    ) -> Result<(AnyTensor, Option<AnyTensor>)>;
    /// [`Plan::vjp_from`] for any float dtype.
    ///
    /// # Errors
    /// As [`Plan::vjp_from`]; `DTypeUnsupported`.
    fn vjp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        argmax: Option<&AnyTensor>,
        cotangent: &AnyTensor,
    ) -> Result<Vec<AnyTensor>>;
    /// [`Plan::jvp`] for any float dtype.
    ///
    /// # Errors
    /// As [`Plan::jvp`]; `DTypeUnsupported`.
    fn jvp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        tangents: &[&AnyTensor],
    ) -> Result<(AnyTensor, AnyTensor)>;
}

/// Table of the semirings over floats: variant, type of the same name, label.
macro_rules! float_semirings {
    ($($(#[$doc:meta])* $semiring:ident $name:literal,)*) => {
        /// The semirings over floats of this crate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        #[non_exhaustive]
        pub enum FloatSemiring {
            $($(#[$doc])* $semiring,)*
        }

        impl FloatSemiring {
            /// All semirings.
            pub const ALL: &'static [Self] = &[$(Self::$semiring),*];

            /// Name in serialised data and in bindings.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$semiring => $name,)*
                }
            }
        }

        /// Evaluates an expression with the `Custom` value of a tag.
        macro_rules! over {
            ($tag:expr, $s:ident => $body:expr) => {
                match $tag {
                    $(FloatSemiring::$semiring => {
                        let $s = Custom::<$semiring>::NEW;
                        $body
                    })*
                }
            };
        }
    };
}

float_semirings! {
    /// (+, ×).
    Standard "standard",
    /// (max, +).
    MaxPlus "max_plus",
    /// (min, +).
    MinPlus "min_plus",
    /// (max, ×) on numbers ≥ 0.
    MaxMul "max_mul",
    /// (min, ×) on numbers ≥ 0.
    MinMul "min_mul",
    /// (max, min).
    MaxMin "max_min",
    /// `ln Σ eˣ` and +.
    LogSumExp "log_sum_exp",
}

#[allow(clippy::single_component_path_imports, reason = "a macro has no other path")]
pub(super) use over;
