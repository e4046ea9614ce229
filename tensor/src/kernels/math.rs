//! Elementary functions.

use t4a_algebra::Float;

use super::unary;
use crate::loops::kernel::Unary;

unary! {
    /// `eˣ`.
    Exp "exp" 8: Float |x| x.exp();
    /// `eˣ − 1`.
    ExpM1 "exp_m1" 8: Float |x| x.exp_m1();
    /// `ln x`.
    Ln "log" 8: Float |x| x.ln();
    /// `ln(1 + x)`.
    Ln1p "log1p" 8: Float |x| x.ln_1p();
    /// `√x`.
    Sqrt "sqrt" 4: Float |x| x.sqrt();
    /// `arcsin x`.
    Asin "asin" 16: Float |x| x.asin();
    /// `arccos x`.
    Acos "acos" 16: Float |x| x.acos();
    /// `arctan x`.
    Atan "atan" 16: Float |x| x.atan();
    /// `sinh x`.
    Sinh "sinh" 16: Float |x| x.sinh();
    /// `cosh x`.
    Cosh "cosh" 16: Float |x| x.cosh();
    /// `tanh x`.
    Tanh "tanh" 8: Float |x| x.tanh();
    /// `arsinh x`.
    Asinh "asinh" 16: Float |x| x.asinh();
    /// `arcosh x`.
    Acosh "acosh" 16: Float |x| x.acosh();
    /// `artanh x`.
    Atanh "atanh" 16: Float |x| x.atanh();
    /// Error function.
    Erf "erf" 16: Float |x| x.erf();
    /// `⌊x⌋`.
    Floor "floor" 1: Float |x| x.floor();
    /// `⌈x⌉`.
    Ceil "ceil" 1: Float |x| x.ceil();
    /// Integer part.
    Trunc "trunc" 1: Float |x| x.trunc();
    /// Nearest integer, ties to even.
    Round "round" 1: Float |x| x.round();
    /// Nearest integer, ties away from zero.
    RoundAway "round_away" 1: Float |x| {
        let whole = x.trunc();
        // Exact, and at least ½ where another integer is nearest.
        let far = x.sub(whole).abs() >= T::from_f64(0.5);
        if far { whole.add(x.signum()) } else { whole }
    };
}

/// Elements that are computed at a time: a fraction of the first-level cache.
const PART: usize = 512;

/// Kernels that vectorise over slices only: name, operation name, cost, element, slice.
macro_rules! by_slice {
    ($($(#[$doc:meta])* $name:ident $label:literal $cost:literal: $apply:ident $slice:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl<T: Float> Unary<T> for $name {
            type Out = T;
            const NAME: &'static str = $label;
            const COST: usize = $cost;
            #[inline(always)]
            fn apply(self, x: T) -> T {
                x.$apply()
            }
            const PART: usize = PART;
            #[inline(always)]
            fn seed(self, x: T) -> T {
                x
            }
            #[inline(always)]
            fn complete(self, seeds: &mut [T]) {
                T::$slice(seeds);
            }
        }
    )*};
}

by_slice! {
    /// `sin x`.
    Sin "sin" 8: sin sin_slice;
    /// `cos x`.
    Cos "cos" 8: cos cos_slice;
    /// `tan x`.
    Tan "tan" 16: tan tan_slice;
}
