//! Element classes. A dtype is a set of impls of these traits; a kernel requires the weakest class it needs and
//! supports every dtype of that class.
//!
//! ```text
//! Scalar                 can be stored                        bool and all classes below
//!   Numeric              + − ×                                a downstream element type
//!     Real               order, ÷, remainder                  integers and floats
//!       Int              bits, checked arithmetic             i8 … u64
//!       Float            elementary functions, ±∞, NaN        f16 bf16 f32 f64
//!       Extended         sums that stop at ±∞                 integers and floats
//!         Signed         −∞ < 0                               all but unsigned integers
//!     Field              ÷, conjugation                       floats and c32 c64
//! ```
//!
//! Methods are named after the operation and take `self` by value. They are `#[inline(always)]` where loops should
//! vectorise.

mod complex;
mod extended;
mod float;
mod half;
mod int;

use std::fmt::Debug;

use crate::gemm::Kernel;

pub use complex::{c32, c64};
pub use extended::{Extended, Signed};

/// An element that a tensor can store: of 1 to [`MAX_BYTES`] bytes, aligned to at most [`MAX_ALIGN`]. Tensors of other
/// types do not compile.
pub trait Scalar: Copy + PartialEq + Debug + Send + Sync + 'static {}

/// Maximum size of an element in bytes.
pub const MAX_BYTES: usize = 8192;
/// Maximum alignment of an element in bytes, guaranteed by every allocation.
pub const MAX_ALIGN: usize = 16;

/// Rejects unsupported types at compile time: memory is allocated in blocks of whole elements, and some elements have
/// to fit in a scratch buffer of fixed size.
///
/// ```compile_fail
/// const { t4a_algebra::scalar::assert_storable::<[f64; 0]>() }
/// ```
/// ```compile_fail
/// const { t4a_algebra::scalar::assert_storable::<[f64; 1025]>() }
/// ```
pub const fn assert_storable<T: Scalar>() {
    assert!(size_of::<T>() > 0, "an element has at least one byte");
    assert!(size_of::<T>() <= MAX_BYTES, "an element has at most 8192 bytes");
    assert!(align_of::<T>() <= MAX_ALIGN, "an element is aligned to at most 16 bytes");
}

impl Scalar for bool {}
impl<T: Scalar, const N: usize> Scalar for [T; N] {}

/// A commutative ring: addition, subtraction and multiplication with 0 and 1.
///
/// Integers wrap on overflow (two's complement). This class with [`Scalar`] is sufficient for a downstream element type
/// in elementwise arithmetic, reductions and matrix products.
pub trait Numeric: Scalar {
    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;
    /// True if `a · b = b · a`.
    const COMMUTES: bool = false;
    /// Accumulator type of sums and products: `f32` for the 16-bit floats, else `Self`.
    type Acc: Numeric;
    /// True if [`Numeric::Acc`] is another, wider type.
    const PROMOTES: bool = size_of::<Self::Acc>() != size_of::<Self>();
    /// Matrix product over (+, ×) for this type that replaces [`Kernel::generic`].
    const GEMM: Option<Kernel<Self>> = None;

    /// `self + rhs`.
    fn add(self, rhs: Self) -> Self;
    /// `self − rhs`.
    fn sub(self, rhs: Self) -> Self;
    /// `self · rhs`.
    fn mul(self, rhs: Self) -> Self;
    /// `−self`.
    #[inline(always)]
    fn neg(self) -> Self {
        Self::ZERO.sub(self)
    }
    /// `self · b + c`, rounded once for floats.
    #[inline(always)]
    fn mul_add(self, b: Self, c: Self) -> Self {
        self.mul(b).add(c)
    }
    /// Converts to the accumulator, exactly.
    fn widen(self) -> Self::Acc;
    /// Converts from the accumulator, rounding to nearest even.
    fn narrow(acc: Self::Acc) -> Self;
    /// Conversion from an integer; wraps (integers) or rounds (floats).
    fn from_i64(v: i64) -> Self;
    /// Conversion from an unsigned integer; wraps (integers) or rounds (floats).
    #[inline(always)]
    fn from_u64(v: u64) -> Self {
        i64::try_from(v).map_or_else(|_| Self::from_f64(v as f64), Self::from_i64)
    }
    /// Conversion from a real number; integers truncate and saturate, NaN gives 0.
    fn from_f64(v: f64) -> Self;
    /// True for 0.
    #[inline(always)]
    fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

/// An ordered ring with division: integers and floats.
pub trait Real: Numeric + PartialOrd {
    /// The smallest value: −∞ for floats.
    const LOWEST: Self;
    /// The largest value: +∞ for floats.
    const HIGHEST: Self;

    /// `self / rhs`; integers truncate towards zero and wrap `MIN / −1`. An integer division by zero gives 0 here:
    /// operations check for it beforehand and return an error.
    fn div(self, rhs: Self) -> Self;
    /// Remainder with the sign of the divisor, `self − ⌊self / rhs⌋·rhs`; 0 for an integer
    /// remainder by zero, as in [`Real::div`].
    fn rem_floor(self, rhs: Self) -> Self;
    /// The larger value; NaN if either is NaN.
    fn max(self, rhs: Self) -> Self;
    /// The smaller value; NaN if either is NaN.
    fn min(self, rhs: Self) -> Self;
    /// The largest of three values; NaN if one is NaN. One test for NaN suffices for the two arguments.
    #[inline(always)]
    fn max3(self, x: Self, y: Self) -> Self {
        self.max(x).max(y)
    }
    /// The smallest of three values; NaN if one is NaN.
    #[inline(always)]
    fn min3(self, x: Self, y: Self) -> Self {
        self.min(x).min(y)
    }
    /// `|self|`; wraps at the least integer.
    fn abs(self) -> Self;
    /// −1, 0 or 1; NaN for NaN, and 0.0 for −0.0.
    fn signum(self) -> Self;
    /// `selfⁿ` by repeated multiplication; a negative exponent gives `1 / self⁻ⁿ`.
    fn powi(self, n: i32) -> Self;
    /// True for NaN; false for integers.
    fn is_nan(self) -> bool;
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
    /// Truncation to `i64`, saturating; NaN gives 0.
    fn to_i64(self) -> i64;
}

/// Fixed-width integers.
pub trait Int: Real + Eq + Ord {
    /// Width in bits.
    const BITS: u32;
    /// Bitwise and.
    fn and(self, rhs: Self) -> Self;
    /// Bitwise or.
    fn or(self, rhs: Self) -> Self;
    /// Bitwise exclusive or.
    fn xor(self, rhs: Self) -> Self;
    /// Bitwise complement.
    fn not(self) -> Self;
    /// `self · 2ʳʰˢ`, wrapping; the shift count is taken modulo the width.
    fn shl(self, rhs: Self) -> Self;
    /// `⌊self / 2ʳʰˢ⌋`, arithmetic for signed types; the count is taken modulo the width.
    fn shr(self, rhs: Self) -> Self;
    /// `self + rhs`, or `None` on overflow.
    fn checked_add(self, rhs: Self) -> Option<Self>;
    /// `self · rhs`, or `None` on overflow.
    fn checked_mul(self, rhs: Self) -> Option<Self>;
    /// `self + rhs`, clamped to the range.
    fn saturating_add(self, rhs: Self) -> Self;
    /// The value as an index: `None` if it is negative or does not fit.
    fn to_usize(self) -> Option<usize>;
}

/// Floating-point numbers with elementary functions.
///
/// The 16-bit types compute in `f32` and round once.
pub trait Float: Signed + Field<Real = Self> {
    /// +∞.
    const INFINITY: Self;
    /// −∞.
    const NEG_INFINITY: Self;
    /// A quiet NaN.
    const NAN: Self;
    /// Distance from 1 to the next larger number.
    const EPSILON: Self;
    /// Significant bits, the leading one included.
    const DIGITS: u32;

    /// True for +∞ and −∞.
    fn is_infinite(self) -> bool;
    /// True unless infinite or NaN.
    fn is_finite(self) -> bool;
    /// The largest number below `self`.
    fn next_down(self) -> Self;
    /// Largest integer ≤ `self`.
    fn floor(self) -> Self;
    /// Smallest integer ≥ `self`.
    fn ceil(self) -> Self;
    /// Integer part.
    fn trunc(self) -> Self;
    /// Nearest integer, ties to even.
    fn round(self) -> Self;
    /// `√self`.
    fn sqrt(self) -> Self;
    /// `eˢᵉˡᶠ`.
    fn exp(self) -> Self;
    /// `eˢᵉˡᶠ − 1`, accurate near 0.
    fn exp_m1(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// `ln(1 + self)`, accurate near 0.
    fn ln_1p(self) -> Self;
    /// `selfʳʰˢ`, with the special cases of IEEE 754 `pow`.
    fn powf(self, rhs: Self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Tangent.
    fn tan(self) -> Self;
    /// Sine and cosine of `2π·self`, for at most a million turns of `f32` and `f64`.
    #[inline(always)]
    fn sin_cos_turns(self) -> (Self, Self) {
        let angle = self.mul(Self::from_f64(std::f64::consts::TAU));
        (angle.sin(), angle.cos())
    }
    /// Inverse sine.
    fn asin(self) -> Self;
    /// Inverse cosine.
    fn acos(self) -> Self;
    /// Inverse tangent.
    fn atan(self) -> Self;
    /// Angle of the point (`rhs`, `self`) in (−π, π].
    fn atan2(self, rhs: Self) -> Self;
    /// Hyperbolic sine.
    fn sinh(self) -> Self;
    /// Hyperbolic cosine.
    fn cosh(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Inverse hyperbolic sine.
    fn asinh(self) -> Self;
    /// Inverse hyperbolic cosine.
    fn acosh(self) -> Self;
    /// Inverse hyperbolic tangent.
    fn atanh(self) -> Self;
    /// Error function `2/√π ∫₀ˢᵉˡᶠ e^(−t²) dt`.
    fn erf(self) -> Self;
    /// `1 − erf(self)`, accurate relative to its value.
    fn erfc(self) -> Self;
    /// Gaussian error linear unit `½ self·(1 + erf(self/√2))`, accurate relative to its value.
    fn gelu(self) -> Self;
    /// Derivative of [`Float::gelu`].
    fn gelu_derivative(self) -> Self;
    /// `1 / (1 + e^(−self))`.
    fn sigmoid(self) -> Self;

    /// Sine of every element: twice as fast for `f32` as a loop over [`Float::sin`]. For `f64` this vectorises, unlike
    /// such a loop.
    #[inline(always)]
    fn sin_slice(values: &mut [Self]) {
        values.iter_mut().for_each(|v| *v = v.sin());
    }
    /// Cosine of every element: twice as fast for `f32` as a loop over [`Float::cos`]. For `f64` this vectorises,
    /// unlike such a loop.
    #[inline(always)]
    fn cos_slice(values: &mut [Self]) {
        values.iter_mut().for_each(|v| *v = v.cos());
    }
    /// Tangent of every element. For `f64` this vectorises, unlike a loop over [`Float::tan`].
    #[inline(always)]
    fn tan_slice(values: &mut [Self]) {
        values.iter_mut().for_each(|v| *v = v.tan());
    }
}

/// Real and complex floating-point numbers.
pub trait Field: Numeric {
    /// The underlying real type.
    type Real: Float;

    /// `self / rhs`.
    fn div(self, rhs: Self) -> Self;
    /// `1 / self`.
    #[inline(always)]
    fn recip(self) -> Self {
        Field::div(Self::ONE, self)
    }
    /// Complex conjugate; the identity on reals.
    fn conj(self) -> Self;
    /// Real part.
    fn re(self) -> Self::Real;
    /// Imaginary part; 0 for reals.
    fn im(self) -> Self::Real;
    /// `re + i·im`; real types ignore the imaginary part.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// `|self|²`.
    fn abs_sq(self) -> Self::Real;
    /// `|self|`.
    fn modulus(self) -> Self::Real;
    /// True for complex types.
    const IS_COMPLEX: bool;
}
