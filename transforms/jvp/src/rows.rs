//! Rows of rules: one line per method, inside of an implementation for `Jvp<B>`.

/// Made from nothing that moves.
macro_rules! constant {
    ($(fn $name:ident($($arg:ident: $t:ty),*);)*) => {$(
        fn $name($($arg: $t),*) -> FloatTensor<Self> {
            JvpTensor::constant(B::$name($($arg),*))
        }
    )*};
}

/// Results that are no floats: those of the values.
macro_rules! dropped {
    ($(fn $name:ident($($x:ident),*; $($arg:ident: $t:ty),*) -> $out:ty;)*) => {$(
        fn $name($($x: FloatTensor<Self>,)* $($arg: $t),*) -> $out {
            B::$name($($x.primal,)* $($arg),*)
        }
    )*};
}

/// The same operation on the tangent.
macro_rules! linear {
    ($(fn $name:ident(x $(, $arg:ident: $t:ty)*);)*) => {$(
        fn $name(x: FloatTensor<Self> $(, $arg: $t)*) -> FloatTensor<Self> {
            x.linear(|x| B::$name(x $(, Clone::clone(&$arg))*))
        }
    )*};
}

/// Piecewise constant: no tangent.
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
