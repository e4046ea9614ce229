//! Elementary functions.

use t4a_algebra::Float;

use super::unary;

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
    /// `sin x`.
    Sin "sin" 8: Float |x| x.sin();
    /// `cos x`.
    Cos "cos" 8: Float |x| x.cos();
    /// `tan x`.
    Tan "tan" 16: Float |x| x.tan();
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
}
