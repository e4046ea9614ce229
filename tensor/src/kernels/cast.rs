//! Conversion between any two element types.
//!
//! Floats to integers truncate and saturate, NaN gives 0; integers wrap; anything nonzero is true;
//! a complex number loses its imaginary part. 16-bit floats round once from the wider type.

use std::marker::PhantomData;

use t4a_algebra::scalar::u64_to_f64_round_to_odd;
use t4a_algebra::{Numeric, Real, Scalar, bf16, c32, c64, f16};

use crate::loops::kernel::Unary;

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

/// Rows `from => to…: expression`.
macro_rules! casts {
    ($($from:ident => $($to:ident)*: |$x:ident, $t:ident| $body:expr;)*) => {$($(
        impl CastTo<$to> for $from {
            #[inline(always)]
            #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
            fn cast(self) -> $to {
                type $t = $to;
                let $x = self;
                $body
            }
        }
    )*)*};
}

/// Casts of a primitive number to everything. Integers of 64 bits are wider than an `f64`.
macro_rules! primitive {
    ($($from:ident)*) => {casts! {$(
        $from => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64: |x, To| x as To;
        $from => bool: |x, To| To::from(x != (0 as $from));
        $from => c32: |x, To| To::new(x as f32, 0.0);
        $from => c64: |x, To| To::new(x as f64, 0.0);
    )*}};
}
primitive!(i8 i16 i32 i64 u8 u16 u32 u64 f64);

casts! {
    i8 => f16 bf16: |x, To| <To as Numeric>::from_f64(x.into());
    i16 => f16 bf16: |x, To| <To as Numeric>::from_f64(x.into());
    i32 => f16 bf16: |x, To| <To as Numeric>::from_f64(x.into());
    i64 => f16 bf16: |x, To| <To as Numeric>::from_i64(x);
    u8 => f16 bf16: |x, To| <To as Numeric>::from_f64(x.into());
    u16 => f16 bf16: |x, To| <To as Numeric>::from_f64(x.into());
    u32 => f16 bf16: |x, To| <To as Numeric>::from_f64(x.into());
    u64 => f16 bf16: |x, To| <To as Numeric>::from_f64(u64_to_f64_round_to_odd(x));
    f64 => f16 bf16: |x, To| <To as Numeric>::from_f64(x);
}

casts! {
    f32 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64: |x, To| x as To;
    f32 => f16 bf16: |x, To| To::narrow(x);
    f32 => bool: |x, To| To::from(x != 0.0);
    f32 => c32: |x, To| To::new(x, 0.0);
    f32 => c64: |x, To| To::new(f64::from(x), 0.0);

    f16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64: |x, To| x.widen() as To;
    f16 => f16: |x, To| To::from(x);
    f16 => bf16: |x, To| To::narrow(x.widen());
    f16 => bool: |x, To| To::from(x.widen() != 0.0);
    f16 => c32: |x, To| To::new(x.widen(), 0.0);
    f16 => c64: |x, To| To::new(Real::to_f64(x), 0.0);

    bf16 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64: |x, To| x.widen() as To;
    bf16 => bf16: |x, To| To::from(x);
    bf16 => f16: |x, To| To::narrow(x.widen());
    bf16 => bool: |x, To| To::from(x.widen() != 0.0);
    bf16 => c32: |x, To| To::new(x.widen(), 0.0);
    bf16 => c64: |x, To| To::new(Real::to_f64(x), 0.0);

    bool => i8 i16 i32 i64 u8 u16 u32 u64: |x, To| x as To;
    bool => f32 f64 f16 bf16 c32 c64: |x, To| if x { <To as Numeric>::ONE } else { <To as Numeric>::ZERO };
    bool => bool: |x, To| To::from(x);

    c32 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16: |x, To| CastTo::<To>::cast(x.re);
    c32 => bool: |x, To| To::from(x != <c32 as Numeric>::ZERO);
    c32 => c32: |x, To| To::new(x.re, x.im);
    c32 => c64: |x, To| To::new(f64::from(x.re), f64::from(x.im));

    c64 => i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 f16 bf16: |x, To| CastTo::<To>::cast(x.re);
    c64 => bool: |x, To| To::from(x != <c64 as Numeric>::ZERO);
    c64 => c32: |x, To| To::new(x.re as f32, x.im as f32);
    c64 => c64: |x, To| To::new(x.re, x.im);
}
