//! Elementary functions on `f64`.
#![allow(missing_docs)]

macro_rules! through_std {
    ($($f:ident $g:ident),*) => {$(
        #[inline(always)]
        pub fn $f(x: f64) -> f64 {
            x.$g()
        }
    )*};
}
through_std!(exp exp, exp_m1 exp_m1, ln ln, ln_1p ln_1p, sin sin, cos cos, tan tan, asin asin, acos acos,
    atan atan, sinh sinh, cosh cosh, tanh tanh, asinh asinh, acosh acosh, atanh atanh);

#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    x.powf(y)
}
#[inline(always)]
pub fn atan2(y: f64, x: f64) -> f64 {
    y.atan2(x)
}
#[inline(always)]
pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}
#[inline(always)]
pub fn erf(x: f64) -> f64 {
    libm::erf(x)
}
