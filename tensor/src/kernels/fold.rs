//! Reductions as folds: an initial value, a step with one element, a combination of two partial results.
//!
//! `merge` permits many independent partial results; the order in which elements are combined is fixed by the loop and
//! independent of the number of threads.

use t4a_algebra::{Field, Float, Numeric, Real, Scalar};

pub use crate::loops::kernel::Fold;

use super::compare::Truth;

/// `Σ xᵢ`.
#[derive(Clone, Copy, Debug)]
pub struct Sum;

impl<T: Numeric> Fold<T> for Sum {
    type Acc = T::Acc;
    type Out = T;
    const NAME: &'static str = "sum";
    const PROMOTES: bool = T::PROMOTES;
    #[inline(always)]
    fn init(self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Acc, x: T) -> T::Acc {
        acc.add(x.widen())
    }
    #[inline(always)]
    fn merge(self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Acc, _n: usize) -> T {
        T::narrow(acc)
    }
}

/// `Σ xᵢ / n`; NaN for zero elements. Integers truncate, with 0 for zero elements.
#[derive(Clone, Copy, Debug)]
pub struct Mean;

impl<T: Real> Fold<T> for Mean
where
    T::Acc: Real,
{
    type Acc = T::Acc;
    type Out = T;
    const NAME: &'static str = "mean";
    const PROMOTES: bool = T::PROMOTES;
    #[inline(always)]
    fn init(self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Acc, x: T) -> T::Acc {
        acc.add(x.widen())
    }
    #[inline(always)]
    fn merge(self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Acc, n: usize) -> T {
        T::narrow(acc.div(T::Acc::from_i64(n as i64)))
    }
}

/// `Σ |xᵢ|²`.
#[derive(Clone, Copy, Debug)]
pub struct SumSquares;

impl<T: Field> Fold<T> for SumSquares {
    type Acc = <T::Real as Numeric>::Acc;
    type Out = T::Real;
    const NAME: &'static str = "sum of squares";
    const PROMOTES: bool = <T::Real as Numeric>::PROMOTES;
    #[inline(always)]
    fn init(self) -> Self::Acc {
        Self::Acc::ZERO
    }
    #[inline(always)]
    fn step(self, acc: Self::Acc, x: T) -> Self::Acc {
        let (re, im) = (x.re().widen(), x.im().widen());
        re.mul_add(re, im.mul_add(im, acc))
    }
    #[inline(always)]
    fn merge(self, a: Self::Acc, b: Self::Acc) -> Self::Acc {
        a.add(b)
    }
    #[inline(always)]
    fn finish(self, acc: Self::Acc, _n: usize) -> T::Real {
        T::Real::narrow(acc)
    }
}

/// `Π xᵢ`.
#[derive(Clone, Copy, Debug)]
pub struct Prod;

impl<T: Numeric> Fold<T> for Prod {
    type Acc = T::Acc;
    type Out = T;
    const NAME: &'static str = "prod";
    const PROMOTES: bool = T::PROMOTES;
    #[inline(always)]
    fn init(self) -> T::Acc {
        T::Acc::ONE
    }
    #[inline(always)]
    fn step(self, acc: T::Acc, x: T) -> T::Acc {
        acc.mul(x.widen())
    }
    #[inline(always)]
    fn merge(self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.mul(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Acc, _n: usize) -> T {
        T::narrow(acc)
    }
}

/// Declares folds whose partial results have the element type.
macro_rules! extremum {
    ($($(#[$doc:meta])* $name:ident $label:literal $init:ident $identity:literal:
        |$acc:ident, $x:ident| $body:expr, |$y:ident| $both:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl<T: Real> Fold<T> for $name {
            type Acc = T;
            type Out = T;
            const NAME: &'static str = $label;
            const HAS_IDENTITY: bool = $identity;
            #[inline(always)]
            fn init(self) -> T {
                T::$init
            }
            #[inline(always)]
            fn step(self, $acc: T, $x: T) -> T {
                $body
            }
            const PAIRS: bool = true;
            #[inline(always)]
            fn step_both(self, $acc: T, $x: T, $y: T) -> T {
                $both
            }
            #[inline(always)]
            fn merge(self, $acc: T, $x: T) -> T {
                $body
            }
            #[inline(always)]
            fn finish(self, acc: T, _n: usize) -> T {
                acc
            }
        }
    )*};
}

extremum! {
    /// The maximum; NaN if an element is NaN.
    Maximum "max" LOWEST false: |acc, x| acc.max(x), |y| acc.max3(x, y);
    /// The minimum; NaN if an element is NaN.
    Minimum "min" HIGHEST false: |acc, x| acc.min(x), |y| acc.min3(x, y);
    /// The maximum of `|xᵢ|`; NaN if an element is NaN.
    MaxAbs "max_abs" ZERO false: |acc, x| acc.max(x.abs()), |y| acc.max3(x.abs(), y.abs());
}

/// True if some element is nonzero.
#[derive(Clone, Copy, Debug)]
pub struct Any;
/// True if all elements are nonzero.
#[derive(Clone, Copy, Debug)]
pub struct All;

macro_rules! quantifier {
    ($($name:ident $label:literal $init:literal $op:tt),*) => {$(
        impl<T: Scalar + Truth> Fold<T> for $name {
            type Acc = bool;
            type Out = bool;
            const NAME: &'static str = $label;
            #[inline(always)]
            fn init(self) -> bool {
                $init
            }
            #[inline(always)]
            fn step(self, acc: bool, x: T) -> bool {
                acc $op x.truth()
            }
            #[inline(always)]
            fn merge(self, a: bool, b: bool) -> bool {
                a $op b
            }
            #[inline(always)]
            fn finish(self, acc: bool, _n: usize) -> bool {
                acc
            }
        }
    )*};
}
quantifier!(Any "any" false |, All "all" true &);

/// `ln Σ exp xᵢ` of a row, given its maximum: the second pass of a stable log-sum-exp.
#[derive(Clone, Copy, Debug)]
pub struct SumExp<T>(pub T);

impl<T: Float> Fold<T> for SumExp<T>
where
    T::Acc: Float,
{
    type Acc = T::Acc;
    type Out = T::Acc;
    const NAME: &'static str = "sum of exponentials";
    const PROMOTES: bool = T::PROMOTES;
    #[inline(always)]
    fn init(self) -> T::Acc {
        T::Acc::ZERO
    }
    #[inline(always)]
    fn step(self, acc: T::Acc, x: T) -> T::Acc {
        acc.add(x.widen().sub(self.0.widen()).exp())
    }
    #[inline(always)]
    fn merge(self, a: T::Acc, b: T::Acc) -> T::Acc {
        a.add(b)
    }
    #[inline(always)]
    fn finish(self, acc: T::Acc, _n: usize) -> T::Acc {
        acc
    }
}
