//! Semirings as values: what runs over them is found at run time, and compiled here for those of this
//! crate.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Standard};
use t4a_diff::Array;
use t4a_tensor::AnyTensor;

use super::engine;
use super::semiring::{self, ArraySemiring};
use crate::error::Result;
use crate::plan::Plan;
use crate::rules::{Differentiable, Share};

/// A semiring as a value: [`FloatSemiring`] for those of this crate, [`Custom`] for others.
pub trait Tag: Copy + fmt::Debug + PartialEq + Eq + Hash + Send + Sync + 'static {
    /// Its name in errors and tables.
    fn name(&self) -> &'static str;
    /// How a sum passes its derivative on.
    fn share(&self) -> Share;
    /// 0 of the semiring.
    fn zero(&self) -> f64;
    /// [`ArraySemiring::product`].
    fn product<A: Array>(&self, a: &A, b: &A) -> A;
    /// [`ArraySemiring::sum`].
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A;
    /// [`ArraySemiring::weights`].
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A;
    /// [`ArraySemiring::factors`].
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

/// A semiring of yours as a value; its kernels are compiled where it is used.
pub struct Custom<S>(PhantomData<fn() -> S>);

impl<S> Custom<S> {
    /// The value.
    pub const NEW: Self = Self(PhantomData);
}

impl<S> Clone for Custom<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Custom<S> {}
impl<S> fmt::Debug for Custom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::any::type_name::<S>())
    }
}
impl<S> PartialEq for Custom<S> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl<S> Eq for Custom<S> {}
impl<S> Hash for Custom<S> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl<S: ArraySemiring> Tag for Custom<S> {
    fn name(&self) -> &'static str {
        std::any::type_name::<S>()
    }
    fn share(&self) -> Share {
        <S as Differentiable<f64>>::SHARE
    }
    fn zero(&self) -> f64 {
        semiring::zero::<S>()
    }
    fn product<A: Array>(&self, a: &A, b: &A) -> A {
        S::product(a, b)
    }
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A {
        S::sum(terms, axis)
    }
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A {
        S::weights(terms, axis)
    }
    fn factors<A: Array>(&self, a: &A, b: &A, g: &A) -> [A; 2] {
        S::factors(a, b, g)
    }
    fn argmax<A: Array>(&self, terms: &A, axis: usize) -> (A::Integers, A::Flags) {
        semiring::argmax::<S, A>(terms, axis)
    }
    fn contract(&self, plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        engine::contract::<S>(plan, operands)
    }
    fn contract_argmax(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
    ) -> Result<(AnyTensor, Option<AnyTensor>)> {
        engine::contract_argmax::<S>(plan, operands)
    }
    fn vjp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        argmax: Option<&AnyTensor>,
        cotangent: &AnyTensor,
    ) -> Result<Vec<AnyTensor>> {
        engine::vjp::<S>(plan, operands, argmax, cotangent)
    }
    fn jvp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        tangents: &[&AnyTensor],
    ) -> Result<(AnyTensor, AnyTensor)> {
        engine::jvp::<S>(plan, operands, tangents)
    }
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

            fn label(self) -> &'static str {
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

impl Tag for FloatSemiring {
    fn name(&self) -> &'static str {
        self.label()
    }
    fn share(&self) -> Share {
        over!(self, s => s.share())
    }
    fn zero(&self) -> f64 {
        over!(self, s => s.zero())
    }
    fn product<A: Array>(&self, a: &A, b: &A) -> A {
        over!(self, s => s.product(a, b))
    }
    fn sum<A: Array>(&self, terms: &A, axis: usize) -> A {
        over!(self, s => s.sum(terms, axis))
    }
    fn weights<A: Array>(&self, terms: &A, axis: usize) -> A {
        over!(self, s => s.weights(terms, axis))
    }
    fn factors<A: Array>(&self, a: &A, b: &A, g: &A) -> [A; 2] {
        over!(self, s => s.factors(a, b, g))
    }
    fn argmax<A: Array>(&self, terms: &A, axis: usize) -> (A::Integers, A::Flags) {
        over!(self, s => s.argmax(terms, axis))
    }
    fn contract(&self, plan: &Plan, operands: &[&AnyTensor]) -> Result<AnyTensor> {
        over!(self, s => s.contract(plan, operands))
    }
    fn contract_argmax(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
    ) -> Result<(AnyTensor, Option<AnyTensor>)> {
        over!(self, s => s.contract_argmax(plan, operands))
    }
    fn vjp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        argmax: Option<&AnyTensor>,
        cotangent: &AnyTensor,
    ) -> Result<Vec<AnyTensor>> {
        over!(self, s => s.vjp(plan, operands, argmax, cotangent))
    }
    fn jvp(
        &self,
        plan: &Plan,
        operands: &[&AnyTensor],
        tangents: &[&AnyTensor],
    ) -> Result<(AnyTensor, AnyTensor)> {
        over!(self, s => s.jvp(plan, operands, tangents))
    }
}
