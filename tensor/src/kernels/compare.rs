//! Comparisons and logic: results are `bool`.

use t4a_algebra::{Float, Numeric, Real, Scalar};

use super::binary;
use crate::dtypes;
use crate::loops::kernel::{Binary, Same, Unary};
use crate::scalars::*;

binary! {
    /// `a = b`; false if either is NaN.
    Equal "equal" 1 commutes if [true]: Scalar |a, b| -> bool { a == b };
    /// `a ≠ b`; true if either is NaN.
    NotEqual "not_equal" 1 commutes if [true]: Scalar |a, b| -> bool { a != b };
    /// `a > b`.
    Greater "greater" 1: Real |a, b| -> bool { a > b };
    /// `a ≥ b`.
    GreaterEqual "greater_equal" 1: Real |a, b| -> bool { a >= b };
    /// `a < b`.
    Less "less" 1: Real |a, b| -> bool { a < b };
    /// `a ≤ b`.
    LessEqual "less_equal" 1: Real |a, b| -> bool { a <= b };
}

/// Logic on two truth values, defined by its result for two true operands and for one. Branch-free without short
/// circuit, so that loops vectorise.
#[derive(Clone, Copy, Debug)]
pub struct Logic {
    both: bool,
    one: bool,
}

impl Logic {
    /// `a ∧ b`.
    pub const AND: Self = Self { both: true, one: false };
    /// `a ∨ b`.
    pub const OR: Self = Self { both: true, one: true };
    /// `a ⊕ b`.
    pub const XOR: Self = Self { both: false, one: true };
}

impl Binary<bool> for Logic {
    type Out = bool;
    const NAME: &'static str = "logic";
    const COMMUTES: Option<Same<bool, bool>> = Some(Same::PROOF);
    #[inline(always)]
    fn apply(self, a: bool, b: bool) -> bool {
        // On bytes: as `bool` every operation normalises its operands.
        let [both, one, a, b] = [self.both, self.one, a, b].map(u8::from);
        (both & a & b) | (one & (a ^ b)) != 0
    }
}

/// `¬x`.
#[derive(Clone, Copy, Debug)]
pub struct Not;

impl Unary<bool> for Not {
    type Out = bool;
    const NAME: &'static str = "not";
    #[inline(always)]
    fn apply(self, x: bool) -> bool {
        !x
    }
}

macro_rules! predicate {
    ($($(#[$doc:meta])* $name:ident $label:literal: $class:ident |$x:ident| $body:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl<T: $class> Unary<T> for $name {
            type Out = bool;
            const NAME: &'static str = $label;
            #[inline(always)]
            fn apply(self, $x: T) -> bool {
                $body
            }
        }
    )*};
}

predicate! {
    /// True for NaN.
    IsNan "is_nan": Real |x| x.is_nan();
    /// True for ±∞.
    IsInf "is_inf": Float |x| x.is_infinite();
}

/// Elements with a truth value: x ≠ 0. NaN is true.
pub trait Truth: Scalar {
    /// True if nonzero.
    fn truth(self) -> bool;
}

macro_rules! truth {
    ({ $x:ident => $truth:expr } $($tag:ident $t:ident,)*) => {$(
        impl Truth for $t {
            #[inline(always)]
            fn truth(self) -> bool {
                let $x = self;
                $truth
            }
        }
    )*};
}
dtypes!([truth] => [truth] { x => x });
dtypes!(numeric => [truth] { x => !x.is_zero() });
