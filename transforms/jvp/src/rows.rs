//! Rule macros: one line per method, within an implementation for `Jvp<B>`.

/// Results with zero tangent: no operand has one.
macro_rules! constant {
    ($(fn $name:ident($($arg:ident: $t:ty),*);)*) => {$(
        fn $name($($arg: $t),*) -> FloatTensor<Self> {
            JvpTensor::constant(B::$name($($arg),*))
        }
    )*};
}

/// Results that are not floats: computed from the primals.
macro_rules! dropped {
    ($(fn $name:ident($($x:ident),*; $($arg:ident: $t:ty),*) -> $out:ty;)*) => {$(
        fn $name($($x: FloatTensor<Self>,)* $($arg: $t),*) -> $out {
            B::$name($($x.primal,)* $($arg),*)
        }
    )*};
}

/// Linear operations: applied to primal and tangent.
macro_rules! linear {
    ($(fn $name:ident(x $(, $arg:ident: $t:ty)*);)*) => {$(
        fn $name(x: FloatTensor<Self> $(, $arg: $t)*) -> FloatTensor<Self> {
            x.linear(|x| B::$name(x $(, Clone::clone(&$arg))*))
        }
    )*};
}

/// Piecewise constant functions: zero tangent.
macro_rules! still {
    ($(fn $name:ident;)*) => {$(
        fn $name(x: FloatTensor<Self>) -> FloatTensor<Self> {
            JvpTensor::constant(B::$name(x.primal))
        }
    )*};
}

/// ẏ = rule(ẋ, x, y).
macro_rules! unary {
    ($(fn $name:ident: |$t:pat_param, $x:pat_param, $y:pat_param| $rule:expr;)*) => {$(
        fn $name(x: FloatTensor<Self>) -> FloatTensor<Self> {
            x.chain(B::$name, |$t, $x, $y| $rule)
        }
    )*};
}

pub(crate) use {constant, dropped, linear, still, unary};
