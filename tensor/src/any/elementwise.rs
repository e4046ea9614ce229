//! Elementwise operations on erased tensors. Each matches on the dtype once; operands are taken
//! by value so that memory without another owner is written over.
//!
//! Errors of all of them: [`TensorError::DTypeUnsupported`] for a dtype outside of the class,
//! [`TensorError::DTypeMismatch`] for operands of different dtypes,
//! [`TensorError::ShapeMismatch`] for shapes that do not broadcast, `OutOfMemory`.

// The operations are fallible, so they cannot implement the operator traits of the same names.
#![allow(clippy::should_implement_trait)]

use t4a_algebra::Numeric;

use super::{AnyTensor, Number};
use crate::dtype::DType;
use crate::error::{Result, TensorError};
use crate::kernels::activation::*;
use crate::kernels::arithmetic::*;
use crate::kernels::bitwise::*;
use crate::kernels::cast::Cast;
use crate::kernels::compare::*;
use crate::kernels::math::*;
use crate::layout::broadcast_shapes;
use crate::loops::kernel::{BindLeft, BindRight, Promoted};
use crate::map::{map, zip};
use crate::with_dtype;

/// One operand: matches on the class and maps the kernel.
macro_rules! map_class {
    ($op:expr, $x:expr, $class:ident, $T:ident => $kernel:expr) => {{
        let x = $x;
        with_dtype!(x.dtype(), $T in $class => {
            Ok(AnyTensor::from(map($kernel, x.into_typed::<$T>()?)?))
        }, else => Err(unsupported($op, x.dtype(), stringify!($class))))
    }};
}

/// Two operands of one dtype: matches on the class and zips the kernel.
macro_rules! zip_class {
    ($op:expr, $a:expr, $b:expr, $class:ident, $T:ident => $kernel:expr) => {{
        let (a, b) = ($a, $b);
        same_dtype($op, &a, &b)?;
        with_dtype!(a.dtype(), $T in $class => {
            Ok(AnyTensor::from(zip($kernel, a.into_typed::<$T>()?, b.into_typed::<$T>()?)?))
        }, else => Err(unsupported($op, a.dtype(), stringify!($class))))
    }};
}

/// [`map_class!`] of a kernel that does not look at the sign of integers.
macro_rules! map_modular {
    ($op:expr, $x:expr, $class:ident, $kind:tt, $T:ident => $kernel:expr) => {{
        let x = $x;
        let dtype = x.dtype();
        with_dtype!(dtype.modular(), $T in $kind => {
            let out = map($kernel, x.modular().into_typed::<$T>()?)?;
            Ok(AnyTensor::from(out).with_sign_of(dtype))
        }, else => Err(unsupported($op, dtype, stringify!($class))))
    }};
}

/// [`zip_class!`] of a kernel that does not look at the sign of integers.
macro_rules! zip_modular {
    ($op:expr, $a:expr, $b:expr, $class:ident, $kind:tt, $T:ident => $kernel:expr) => {{
        let (a, b) = ($a, $b);
        same_dtype($op, &a, &b)?;
        let dtype = a.dtype();
        with_dtype!(dtype.modular(), $T in $kind => {
            let (a, b) = (a.modular().into_typed::<$T>()?, b.modular().into_typed::<$T>()?);
            Ok(AnyTensor::from(zip($kernel, a, b)?).with_sign_of(dtype))
        }, else => Err(unsupported($op, dtype, stringify!($class))))
    }};
}

/// Converts a typed tensor to a dtype of a class.
macro_rules! cast_to {
    ($x:expr, $dtype:expr, $kind:tt, $unsupported:expr) => {{
        let x = $x;
        with_dtype!($dtype, U in $kind => Ok(AnyTensor::from(map(Cast::<U>::new(), x)?)), else => {
            Err($unsupported())
        })
    }};
}

/// A scalar as an operand of [`map_modular!`] on tensors of a dtype: reals become the integer that they
/// are in it.
fn modular(x: Number, dtype: DType) -> Number {
    match x {
        Number::Float(_) => with_dtype!(dtype, T in [signed] => x.to::<T>().into(), else => x),
        _ => x,
    }
}

#[cold]
pub(crate) fn unsupported(op: &'static str, dtype: DType, expected: &'static str) -> TensorError {
    TensorError::DTypeUnsupported { op, dtype, expected }
}

#[inline]
pub(crate) fn same_dtype(op: &'static str, a: &AnyTensor, b: &AnyTensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(TensorError::DTypeMismatch { op, lhs: a.dtype(), rhs: b.dtype() })
}

macro_rules! modular_unary_methods {
    ($($(#[$doc:meta])* $name:ident: $class:ident $kind:tt $kernel:expr;)*) => {
        impl AnyTensor {$(
            $(#[$doc])*
            pub fn $name(self) -> Result<Self> {
                map_modular!(stringify!($name), self, $class, $kind, T => $kernel)
            }
        )*}
    };
}

modular_unary_methods! {
    /// `−x` of numbers.
    neg: numeric modular Neg;
    /// `x²` of numbers.
    square: numeric modular Square;
    /// `!x` of integers.
    bitwise_not: int [unsigned] BitNot;
}

macro_rules! unary_methods {
    ($($(#[$doc:meta])* $name:ident: $class:ident $kernel:expr;)*) => {
        impl AnyTensor {$(
            $(#[$doc])*
            pub fn $name(self) -> Result<Self> {
                map_class!(stringify!($name), self, $class, T => $kernel)
            }
        )*}
    };
}

unary_methods! {
    /// −1, 0 or 1 of real numbers; NaN for NaN.
    sign: real Sign;
    /// −1, 0 or 1 of real numbers; 0 for NaN.
    sign_or_zero: real SignOrZero;
    /// Complex conjugate.
    conj: field Conj;
    /// `eˣ`.
    exp: float Exp;
    /// `eˣ − 1`.
    exp_m1: float ExpM1;
    /// `ln x`.
    log: float Ln;
    /// `ln(1 + x)`.
    log1p: float Ln1p;
    /// `√x`.
    sqrt: float Sqrt;
    /// `sin x`.
    sin: float Sin;
    /// `cos x`.
    cos: float Cos;
    /// `tan x`.
    tan: float Tan;
    /// `arcsin x`.
    asin: float Asin;
    /// `arccos x`.
    acos: float Acos;
    /// `arctan x`.
    atan: float Atan;
    /// `sinh x`.
    sinh: float Sinh;
    /// `cosh x`.
    cosh: float Cosh;
    /// `tanh x`.
    tanh: float Tanh;
    /// `arsinh x`.
    asinh: float Asinh;
    /// `arcosh x`.
    acosh: float Acosh;
    /// `artanh x`.
    atanh: float Atanh;
    /// Error function.
    erf: float Erf;
    /// `⌊x⌋`.
    floor: float Floor;
    /// `⌈x⌉`.
    ceil: float Ceil;
    /// Integer part.
    trunc: float Trunc;
    /// Nearest integer, ties to even.
    round: float Round;
    /// Nearest integer, ties away from zero.
    round_away: float RoundAway;
    /// `max(x, 0)`.
    relu: float Relu;
    /// `1 / (1 + e⁻ˣ)`.
    sigmoid: float Promoted(Sigmoid);
    /// `x·Φ(x)`.
    gelu: float Promoted(Gelu);
    /// `ln σ(x)`.
    log_sigmoid: float Promoted(LogSigmoid);
    /// True where an element is NaN.
    is_nan: real IsNan;
    /// True where an element is ±∞.
    is_inf: float IsInf;
}

macro_rules! modular_binary_methods {
    ($($(#[$doc:meta])* $name:ident, $(#[$scalar_doc:meta])* $scalar:ident:
        $class:ident $kind:tt $kernel:ident;)*) => {
        impl AnyTensor {$(
            $(#[$doc])*
            pub fn $name(self, rhs: Self) -> Result<Self> {
                zip_modular!(stringify!($name), self, rhs, $class, $kind, T => $kernel)
            }

            $(#[$scalar_doc])*
            pub fn $scalar(self, rhs: Number) -> Result<Self> {
                let rhs = modular(rhs, self.dtype());
                map_modular!(stringify!($scalar), self, $class, $kind, T => {
                    BindRight($kernel, rhs.to::<T>())
                })
            }
        )*}
    };
}

modular_binary_methods! {
    /// `a + b` of numbers.
    add, /// `x + b`.
    add_scalar: numeric modular Add;
    /// `a − b` of numbers.
    sub, /// `x − b`.
    sub_scalar: numeric modular Sub;
    /// `a · b` of numbers.
    mul, /// `x · b`.
    mul_scalar: numeric modular Mul;
    /// `a & b`.
    bitwise_and, /// `x & b`.
    bitwise_and_scalar: int [unsigned] BitAnd;
    /// `a | b`.
    bitwise_or, /// `x | b`.
    bitwise_or_scalar: int [unsigned] BitOr;
    /// `a ^ b`.
    bitwise_xor, /// `x ^ b`.
    bitwise_xor_scalar: int [unsigned] BitXor;
    /// `a · 2ᵇ`, the count modulo the width.
    shift_left, /// `x · 2ᵇ`.
    shift_left_scalar: int [unsigned] ShiftLeft;
    /// `a = b`.
    equal, /// `x = b`.
    equal_scalar: all [float narrow unsigned truth complex] Equal;
    /// `a ≠ b`.
    not_equal, /// `x ≠ b`.
    not_equal_scalar: all [float narrow unsigned truth complex] NotEqual;
}

macro_rules! binary_methods {
    ($($(#[$doc:meta])* $name:ident: $class:ident $kernel:expr;)*) => {
        impl AnyTensor {$(
            $(#[$doc])*
            pub fn $name(self, rhs: Self) -> Result<Self> {
                zip_class!(stringify!($name), self, rhs, $class, T => $kernel)
            }
        )*}
    };
}

binary_methods! {
    /// The larger of real numbers.
    maximum: real Max;
    /// The smaller of real numbers.
    minimum: real Min;
    /// `aᵇ` of floats.
    powf: float Pow;
    /// Angle of the point `(b, a)`.
    atan2: float Atan2;
    /// `√(a² + b²)` without overflow.
    hypot: float Promoted(Hypot);
    /// `aᵇ` of integers, wrapping.
    int_pow: int IntPow;
    /// `⌊a / 2ᵇ⌋`, the count modulo the width.
    shift_right: int ShiftRight;
    /// `a > b` of real numbers.
    greater: real Greater;
    /// `a ≥ b` of real numbers.
    greater_equal: real GreaterEqual;
    /// `g` where the output `a` of [`AnyTensor::relu`] is positive.
    relu_backward: float ReluBackward;
    /// `g·y·(1 − y)` for the output `y` of [`AnyTensor::sigmoid`].
    sigmoid_backward: float Promoted(SigmoidBackward);
    /// `g·gelu′(x)`.
    gelu_backward: float Promoted(GeluBackward);
    /// `g·σ(−x)`.
    log_sigmoid_backward: float Promoted(LogSigmoidBackward);
    /// `x` if positive, else `a·x`.
    prelu: float Prelu;
}

macro_rules! scalar_methods {
    ($($(#[$doc:meta])* $name:ident: $class:ident $kernel:ident;)*) => {
        impl AnyTensor {$(
            $(#[$doc])*
            pub fn $name(self, rhs: Number) -> Result<Self> {
                map_class!(stringify!($name), self, $class, T => BindRight($kernel, rhs.to::<T>()))
            }
        )*}
    };
}

scalar_methods! {
    /// `max(x, b)`.
    maximum_scalar: real Max;
    /// `min(x, b)`.
    minimum_scalar: real Min;
    /// `xᵇ` of integers.
    int_pow_scalar: int IntPow;
    /// `⌊x / 2ᵇ⌋`.
    shift_right_scalar: int ShiftRight;
    /// `x > b`.
    greater_scalar: real Greater;
    /// `x ≥ b`.
    greater_equal_scalar: real GreaterEqual;
}

impl AnyTensor {
    /// `a / b`; integers truncate.
    ///
    /// # Errors
    /// [`TensorError::Value`] for an integer division by zero.
    pub fn div(self, rhs: Self) -> Result<Self> {
        if self.dtype().is_complex() {
            return zip_class!("div", self, rhs, field, T => FieldDiv);
        }
        reject_zero("div", &rhs)?;
        zip_class!("div", self, rhs, real, T => Div)
    }

    /// Remainder with the sign of the divisor.
    ///
    /// # Errors
    /// As [`AnyTensor::div`].
    pub fn remainder(self, rhs: Self) -> Result<Self> {
        reject_zero("remainder", &rhs)?;
        zip_class!("remainder", self, rhs, real, T => Remainder)
    }

    /// `x / b`; integers truncate.
    ///
    /// # Errors
    /// As [`AnyTensor::div`].
    pub fn div_scalar(self, rhs: Number) -> Result<Self> {
        if self.dtype().is_complex() {
            return map_class!("div", self, field, T => BindRight(FieldDiv, rhs.to::<T>()));
        }
        reject_zero_scalar("div", self.dtype(), rhs)?;
        map_class!("div", self, real, T => BindRight(Div, rhs.to::<T>()))
    }

    /// Remainder of a division by `b`, with the sign of `b`.
    ///
    /// # Errors
    /// As [`AnyTensor::div`].
    pub fn remainder_scalar(self, rhs: Number) -> Result<Self> {
        reject_zero_scalar("remainder", self.dtype(), rhs)?;
        map_class!("remainder", self, real, T => BindRight(Remainder, rhs.to::<T>()))
    }

    /// `a < b` of real numbers.
    pub fn less(self, rhs: Self) -> Result<Self> {
        exchanged("less", self, rhs, Self::greater)
    }

    /// `a ≤ b` of real numbers.
    pub fn less_equal(self, rhs: Self) -> Result<Self> {
        exchanged("less_equal", self, rhs, Self::greater_equal)
    }

    /// `x < b`.
    pub fn less_scalar(self, rhs: Number) -> Result<Self> {
        map_class!("less_scalar", self, real, T => BindLeft(Greater, rhs.to::<T>()))
    }

    /// `x ≤ b`.
    pub fn less_equal_scalar(self, rhs: Number) -> Result<Self> {
        map_class!("less_equal_scalar", self, real, T => BindLeft(GreaterEqual, rhs.to::<T>()))
    }

    /// `1 / x` of real or complex floats.
    pub fn recip(self) -> Result<Self> {
        if self.dtype().is_complex() {
            return map_class!("recip", self, field, T => Recip);
        }
        map_class!("recip", self, float, T => Recip)
    }

    /// `|x|`: of complex numbers the modulus, a real tensor.
    pub fn abs(self) -> Result<Self> {
        if self.dtype().is_complex() {
            return map_class!("abs", self, field, T => TakePart(ComplexPart::Modulus));
        }
        map_class!("abs", self, real, T => Abs)
    }

    /// Real part of a complex tensor.
    pub fn re(self) -> Result<Self> {
        map_class!("re", self, field, T => TakePart(ComplexPart::Re))
    }

    /// Imaginary part of a complex tensor.
    pub fn im(self) -> Result<Self> {
        map_class!("im", self, field, T => TakePart(ComplexPart::Im))
    }

    /// `xᵇ` of floats. Squares, roots, reciprocals and cubes take fewer operations.
    pub fn powf_scalar(self, exponent: Number) -> Result<Self> {
        match exponent.to_f64() {
            2.0 => self.square(),
            -1.0 => self.recip(),
            0.5 => self.sqrt_ieee(),
            3.0 => map_class!("powf", self, float, T => Cube),
            _ => map_class!("powf", self, float, T => BindRight(Pow, exponent.to::<T>())),
        }
    }

    /// `pow(x, ½)`: the square root, with `pow`'s +∞ at −∞ and +0 at −0.
    fn sqrt_ieee(self) -> Result<Self> {
        map_class!("powf", self, float, T => PowHalf)
    }

    /// `min(max(x, low), high)`; NaN for NaN.
    pub fn clamp(self, low: Number, high: Number) -> Result<Self> {
        map_class!("clamp", self, real, T => Clamp { low: low.to::<T>(), high: high.to::<T>() })
    }

    /// `x` if positive, else `slope·x`.
    pub fn leaky_relu(self, slope: Number) -> Result<Self> {
        map_class!("leaky_relu", self, float, T => LeakyRelu(slope.to::<T>()))
    }

    /// `min(max(alpha·x + beta, 0), 1)`.
    pub fn hard_sigmoid(self, alpha: Number, beta: Number) -> Result<Self> {
        map_class!("hard_sigmoid", self, float, T => Promoted(HardSigmoid {
            alpha: alpha.to::<<T as Numeric>::Acc>(),
            beta: beta.to::<<T as Numeric>::Acc>(),
        }))
    }

    /// `¬x` of truth values.
    pub fn logical_not(self) -> Result<Self> {
        Ok(map(Not, self.into_typed::<bool>()?)?.into())
    }

    /// `a ∧ b`, `a ∨ b` or `a ⊕ b` of truth values.
    pub fn logical(self, op: Logic, rhs: Self) -> Result<Self> {
        Ok(zip(op, self.into_typed::<bool>()?, rhs.into_typed::<bool>()?)?.into())
    }

    /// Converts to another dtype; see [`crate::kernels::cast`]. For the same dtype the memory is shared.
    pub fn cast(self, dtype: DType) -> Result<Self> {
        let from = self.dtype();
        if from == dtype {
            return Ok(self);
        }
        // Integers and booleans wrap, independent of the sign of the result type.
        let wraps = from.is_int() || from == DType::Bool;
        let to = if wraps { dtype.modular() } else { dtype };
        let unsupported = || unsupported("cast", from, "any");
        if from.is_int() {
            if to == from.modular() {
                return Ok(Self { dtype, ..self });
            }
            return with_dtype!(from, T in int => {
                cast_to!(self.into_typed::<T>()?, to, [float narrow unsigned truth complex], unsupported)
            }, else => Err(unsupported())).map(|out: Self| out.with_sign_of(dtype));
        }
        if from == DType::Bool {
            let x = self.into_typed::<bool>()?;
            return cast_to!(x, to, modular, unsupported).map(|out: Self| out.with_sign_of(dtype));
        }
        with_dtype!(from, T in [float narrow complex] => {
            cast_to!(self.into_typed::<T>()?, to, all, unsupported)
        }, else => Err(unsupported()))
    }
}

/// A comparison of `a` with `b` as one of `b` with `a`, so that only one is compiled.
fn exchanged(
    op: &'static str,
    a: AnyTensor,
    b: AnyTensor,
    compare: fn(AnyTensor, AnyTensor) -> Result<AnyTensor>,
) -> Result<AnyTensor> {
    same_dtype(op, &a, &b)?;
    if a.dtype().is_complex() || a.dtype() == DType::Bool {
        return Err(unsupported(op, a.dtype(), "real"));
    }
    broadcast_shapes(op, a.shape(), b.shape())?;
    compare(b, a)
}

/// Integer division needs a divisor without zeros.
fn reject_zero(op: &'static str, divisor: &AnyTensor) -> Result<()> {
    if !divisor.dtype().is_int() {
        return Ok(());
    }
    let axes: Vec<usize> = (0..divisor.rank()).collect();
    let all = divisor.all(&axes)?;
    if all.typed::<bool>()?.get(&vec![0; all.rank()]) == Some(false) {
        return Err(TensorError::value(op, "integer division by zero"));
    }
    Ok(())
}

fn reject_zero_scalar(op: &'static str, dtype: DType, divisor: Number) -> Result<()> {
    if dtype.is_int() && with_dtype!(dtype, T in int => divisor.to::<T>() == 0, else => false) {
        return Err(TensorError::value(op, "integer division by zero"));
    }
    Ok(())
}
