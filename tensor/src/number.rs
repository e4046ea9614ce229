//! A number with a run-time type: scalar arguments of erased operations.

use t4a_algebra::{Numeric, Real, Scalar};

use crate::dtypes;
use crate::scalars::*;

/// A scalar argument of an operation on [`AnyTensor`](crate::AnyTensor)s.
///
/// The class of the number is kept, so that 64-bit integers are exact in integer tensors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A real number.
    Float(f64),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A truth value: 0 or 1 as a number.
    Bool(bool),
}

impl Number {
    /// Converts to an element: integers are exact or wrap (integer `T`) and round once (float `T`);
    /// reals truncate and saturate, NaN giving 0 (integer `T`), or round once (float `T`); `bool`
    /// is whether the number differs from 0.
    #[inline]
    pub fn to<T: FromNumber>(self) -> T {
        T::from_number(self)
    }

    /// The value as an `f64`, rounded.
    #[inline]
    pub fn to_f64(self) -> f64 {
        self.to()
    }

    /// The value as an `i64`: exact, wrapped, or truncated and saturated as in [`Number::to`].
    #[inline]
    pub fn to_i64(self) -> i64 {
        self.to()
    }

    /// The value as a wide integer, if it was written as one.
    #[inline]
    pub fn as_integer(self) -> Option<i128> {
        match self {
            Number::Float(_) => None,
            Number::Int(v) => Some(v.into()),
            Number::UInt(v) => Some(v.into()),
            Number::Bool(v) => Some(v.into()),
        }
    }
}

/// Elements that a [`Number`] converts to: every built-in type.
pub trait FromNumber: Scalar {
    /// The image of a number; see [`Number::to`].
    fn from_number(number: Number) -> Self;
}

macro_rules! from_number {
    ({} $($tag:ident $t:ident,)*) => {$(
        impl FromNumber for $t {
            #[inline]
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Float(v) => <$t as Numeric>::from_f64(v),
                    Number::Int(v) => <$t as Numeric>::from_i64(v),
                    Number::UInt(v) => <$t as Numeric>::from_u64(v),
                    Number::Bool(v) => <$t as Numeric>::from_i64(v.into()),
                }
            }
        }
    )*};
}
dtypes!(numeric => [from_number] {});

impl FromNumber for bool {
    #[inline]
    fn from_number(number: Number) -> Self {
        match number {
            Number::Float(v) => v != 0.0,
            Number::Int(v) => v != 0,
            Number::UInt(v) => v != 0,
            Number::Bool(v) => v,
        }
    }
}

macro_rules! into_number {
    ({ $v:ident => $number:expr } $($tag:ident $t:ident,)*) => {$(
        impl From<$t> for Number {
            #[inline]
            #[allow(clippy::useless_conversion)]
            fn from($v: $t) -> Self {
                $number
            }
        }
    )*};
}
dtypes!(float => [into_number] { v => Number::Float(Real::to_f64(v)) });
dtypes!([signed] => [into_number] { v => Number::Int(v.into()) });
dtypes!([unsigned] => [into_number] { v => Number::UInt(v.into()) });
dtypes!([truth] => [into_number] { v => Number::Bool(v) });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_integers_are_exact() {
        assert_eq!(Number::Int(i64::MIN).to::<i64>(), i64::MIN);
        assert_eq!(Number::UInt(u64::MAX).to::<u64>(), u64::MAX);
        assert_eq!(Number::Int(-1).to::<u64>(), u64::MAX);
        assert_eq!(Number::Int((1 << 53) + 1).to::<i64>(), (1 << 53) + 1);
        assert_eq!(Number::UInt(300).to::<u8>(), 44);
    }

    #[test]
    fn reals_truncate_and_saturate_into_integers() {
        assert_eq!(Number::Float(-2.9).to::<i32>(), -2);
        assert_eq!(Number::Float(1e300).to::<i16>(), i16::MAX);
        assert_eq!(Number::Float(-1.0).to::<u8>(), 0);
        assert_eq!(Number::Float(f64::NAN).to::<i64>(), 0);
        assert!(Number::Float(f64::NAN).to::<bool>() && !Number::Float(-0.0).to::<bool>());
        assert_eq!(Number::Bool(true).to::<c32>(), c32::new(1.0, 0.0));
    }

    #[test]
    fn integers_round_once_into_floats() {
        // 2⁶³ + 2⁵⁵ is the midpoint of two bfloat16 numbers; one more decides upwards.
        let midpoint = (1u64 << 63) + (1 << 55);
        assert_eq!(Number::UInt(midpoint).to::<bf16>().to_f64(), (1u64 << 63) as f64);
        let above = ((1u64 << 63) + (1 << 56)) as f64;
        assert_eq!(Number::UInt(midpoint + 1).to::<bf16>().to_f64(), above);
        // The same for f32 at 2⁶³ + 2³⁹.
        let midpoint = (1u64 << 63) + (1 << 39);
        assert_eq!(Number::UInt(midpoint + 1).to::<f32>(), ((1u64 << 63) + (1 << 40)) as f32);
        assert_eq!(Number::Int(-(1 << 20)).to::<f16>(), f16::NEG_INFINITY);
        assert_eq!(Number::Int(-3).to::<f16>().to_f64(), -3.0);
    }
}
