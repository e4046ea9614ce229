//! Semirings as values: what runs over them is found at run time, and compiled here for those of this
//! crate.

use std::fmt;
use std::hash::Hash;

use t4a_diff::Array;
use t4a_tensor::AnyTensor;

use crate::error::Result;
use crate::plan::Plan;
use crate::rules::Share;

/// A semiring as a value: [`FloatSemiring`] for those of this crate, [`Custom`](super::Custom) for others.
pub trait Tag: Copy + fmt::Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Its name in errors and tables.
    fn name(&self) -> &'static str;
    /// How a sum passes its derivative on.
    fn share(&self) -> Share;
    /// 0 of the semiring.
    fn zero(&self) -> f64;
    /// [`ArraySemiring::product`](super::ArraySemiring::product).
    fn product<A: Array>(&self, a: &A, b: &A) -> A;
    /// [`ArraySemiring::sum`](super::ArraySemiring::sum).
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A;
    /// [`ArraySemiring::weights`](super::ArraySemiring::weights).
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A;
    /// [`ArraySemiring::factors`](super::ArraySemiring::factors).
    fn factors<A: Array>(&self, a: &A, b: &A, g: &A) -> [A; 2];
    /// The first term along an axis that is the sum, and which sums have no term that counts.
    fn argmax<A: Array>(&self, terms: &A, axis: usize) -> (A::Integers, A::Flags);

    /// [`Plan::contract`] for any float dtype.
    ///
    /// # Errors
    /// As there; `DTypeUnsupported`.
    fn contract(&self, plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor>;
    /// [`Plan::contract_argmax`] for any float dtype.
    ///
    /// # Errors
    /// As there; `DTypeUnsupported`.
    fn contract_argmax(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
    ) -> Result<(AnyTensor, Option<AnyTensor>)>;
    /// [`Plan::vjp_from`] for any float dtype.
    ///
    /// # Errors
    /// As there; `DTypeUnsupported`.
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
    /// As there; `DTypeUnsupported`.
    fn jvp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        tangents: &[&AnyTensor],
    ) -> Result<(AnyTensor, AnyTensor)>;
}

/// The table of semirings over floats: a variant, which is its type too, and its name.
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
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$semiring),*];

            /// Its name in data and in interfaces of other languages.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$semiring => $name,)*
                }
            }
        }

        /// Calls a method of the type that the tag stands for.
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
    /// (max, ×) of numbers that are not negative.
    MaxMul "max_mul",
    /// (max, min).
    MaxMin "max_min",
    /// `ln Σ eˣ` and +.
    LogSumExp "log_sum_exp",
}

#[allow(clippy::single_component_path_imports, reason = "a macro has no other path")]
pub(super) use over;
