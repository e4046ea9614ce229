//! Conversion between any two element types.
//!
//! Floats to integers truncate and saturate, NaN gives 0; integers wrap; nonzero values are true; the imaginary part of
//! a complex number is discarded. 16-bit floats round once from the wider type.

use std::marker::PhantomData;

use t4a_algebra::{Field, Numeric, Scalar};

use crate::dtypes;
use crate::loops::kernel::Unary;
use crate::scalars::*;

/// Conversion to `U`.
pub trait CastTo<U: Scalar>: Scalar {
    /// The image in `U`.
    fn cast(self) -> U;
}

/// Converts to `U`.
#[derive(Clone, Copy, Debug)]
pub struct Cast<U>(PhantomData<U>);

impl<U> Cast<U> {
    /// The kernel.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: CastTo<U>, U: Scalar> Unary<T> for Cast<U> {
    type Out = U;
    const NAME: &'static str = "cast";
    #[inline(always)]
    fn apply(self, x: T) -> U {
        x.cast()
    }
}

/// Casts of every element of a class or of kinds to every one of another:
/// `from => to: |x, From, To| expression`.
macro_rules! casts {
    ($($from:tt => $to:tt: |$x:ident, $f:ident, $t:ident| $body:expr;)*) => {$(
        dtypes!($from => [casts_from] { $to (|$x, $f, $t| $body) });
    )*};
}

macro_rules! casts_from {
    ({ $to:tt $body:tt } $($tag:ident $from:ident,)*) => {$(
        dtypes!($to => [casts_to] { $from $body });
    )*};
}

macro_rules! casts_to {
    ({ $from:ident (|$x:ident, $f:ident, $t:ident| $body:expr) } $($tag:ident $to:ident,)*) => {$(
        impl CastTo<$to> for $from {
            #[inline(always)]
            #[allow(dead_code, clippy::unnecessary_cast)]
            fn cast(self) -> $to {
                type $f = $from;
                type $t = $to;
                let $x = self;
                $body
            }
        }
    )*};
}

casts! {
    primitive => primitive: |x, From, To| x as To;
    [narrow] => primitive: |x, From, To| x.widen() as To;
    [narrow] => [narrow]: |x, From, To| To::narrow(x.widen());
    [float] => [narrow]: |x, From, To| match size_of::<From>() {
        4 => To::narrow(x as f32),
        _ => <To as Numeric>::from_f64(x as f64),
    };
    // Integers of 64 bits are wider than an f64.
    [signed] => [narrow]: |x, From, To| match size_of::<From>() {
        0..=4 => <To as Numeric>::from_f64(x as f64),
        _ => <To as Numeric>::from_i64(x as i64),
    };
    [unsigned] => [narrow]: |x, From, To| match size_of::<From>() {
        0..=4 => <To as Numeric>::from_f64(x as f64),
        _ => <To as Numeric>::from_u64(x as u64),
    };
    numeric => [truth]: |x, From, To| !x.is_zero();
    [truth] => numeric: |x, From, To| if x { <To as Numeric>::ONE } else { <To as Numeric>::ZERO };
    [truth] => [truth]: |x, From, To| x;
    real => [complex]: |x, From, To| To::from_parts(x.cast(), 0.0);
    [complex] => real: |x, From, To| x.re.cast();
    [complex] => [complex]: |x, From, To| To::from_parts(x.re.cast(), x.im.cast());
}
