//! Addition to powers, on every class that has them.

use t4a_algebra::{Field, Float, Int, Numeric, Real};

use super::{binary, unary};
use crate::loops::kernel::{Binary, Unary};

binary! {
    /// `a + b`.
    Add "add" 1 commutes if [true]: Numeric |a, b| -> T { a.add(b) };
    /// `a − b`.
    Sub "sub" 1: Numeric |a, b| -> T { a.sub(b) };
    /// `a · b`.
    Mul "mul" 1 commutes if [T::COMMUTES]: Numeric |a, b| -> T { a.mul(b) };
    /// `a / b` of ordered numbers; integers truncate.
    Div "div" 4: Real |a, b| -> T { a.div(b) };
    /// `a / b` of complex numbers.
    FieldDiv "div" 8: Field |a, b| -> T { Field::div(a, b) };
    /// `a − ⌊a/b⌋·b`.
    Remainder "remainder" 16: Real |a, b| -> T { a.rem_floor(b) };
    /// The larger one; NaN if either is NaN.
    Max "max" 1: Real |a, b| -> T { a.max(b) };
    /// The smaller one; NaN if either is NaN.
    Min "min" 1: Real |a, b| -> T { a.min(b) };
    /// `aᵇ`.
    Pow "pow" 32: Float |a, b| -> T { a.powf(b) };
    /// `√(a² + b²)` without overflow; +∞ if either is infinite.
    Hypot "hypot" 8: Float |a, b| -> T { hypot(a, b) };
    /// Angle of the point `(b, a)`.
    Atan2 "atan2" 32: Float |a, b| -> T { a.atan2(b) };
    /// `aᵇ` of integers, wrapping; a negative exponent truncates `1 / a⁻ᵇ`.
    IntPow "powi" 32: Int |a, b| -> T {
        // For exponents beyond 32 bits only the parity matters where the power is not 0 (or wraps): even bases give 0,
        // odd bases have an order dividing 2⁶².
        match b.to_usize() {
            Some(n) if n <= i32::MAX as usize => a.powi(n as i32),
            Some(n) => {
                let (mut base, mut left, mut acc) = (a, n, T::ONE);
                while left > 0 {
                    if left & 1 == 1 {
                        acc = acc.mul(base);
                    }
                    base = base.mul(base);
                    left >>= 1;
                }
                acc
            }
            // Negative: ±1 to some power, or a truncated reciprocal.
            None => a.powi(if b.and(T::ONE) == T::ONE { -1 } else { -2 }),
        }
    };
}

#[inline(always)]
fn hypot<T: Float>(a: T, b: T) -> T {
    let (a, b) = (a.abs(), b.abs());
    let larger = if b > a { b } else { a };
    // Squares of numbers between 2⁻ᵉ and 2ᵉ neither overflow nor underflow; other numbers are scaled by a power of two,
    // which is exact.
    let (e, down, up) = if size_of::<T>() > 4 { (500, -600, 600) } else { (60, -70, 100) };
    let two_to = |e: i32| T::from_f64(f64::from_bits(((1023 + e) as u64) << 52));
    let (scale, back) = (two_to(down), two_to(-down));
    let (scale, back) = if larger > two_to(e) { (scale, back) } else { (T::ONE, T::ONE) };
    let (raise, lower) = (two_to(up), two_to(-up));
    let (scale, back) = if larger < two_to(-e) { (raise, lower) } else { (scale, back) };
    let (x, y) = (a.mul(scale), b.mul(scale));
    let root = x.mul_add(x, y.mul(y)).sqrt().mul(back);
    if a == T::INFINITY || b == T::INFINITY { T::INFINITY } else { root }
}

unary! {
    /// `−x`.
    Neg "neg" 1: Numeric |x| x.neg();
    /// `|x|`.
    Abs "abs" 1: Real |x| x.abs();
    /// −1, 0 or 1; NaN for NaN.
    Sign "sign" 1: Real |x| x.signum();
    /// −1, 0 or 1; 0 for NaN.
    SignOrZero "sign_or_zero" 1: Real |x| if x.is_nan() { T::ZERO } else { x.signum() };
    /// `1 / x`.
    Recip "recip" 4: Field |x| x.recip();
    /// Complex conjugate.
    Conj "conj" 1: Field |x| x.conj();
    /// `x²`.
    Square "square" 1: Numeric |x| x.mul(x);
    /// `x³`.
    Cube "cube" 1: Numeric |x| x.mul(x).mul(x);
    /// `pow(x, ½)`: the square root, but +∞ at −∞ and +0 at −0.
    PowHalf "powf" 4: Float |x| {
        let root = x.add(T::ZERO).sqrt();
        if x == T::NEG_INFINITY { T::INFINITY } else { root }
    };
}

/// `min(max(x, low), high)`; NaN for NaN.
#[derive(Clone, Copy, Debug)]
pub struct Clamp<T> {
    /// Lower bound.
    pub low: T,
    /// Upper bound.
    pub high: T,
}

impl<T: Real> Unary<T> for Clamp<T> {
    type Out = T;
    const NAME: &'static str = "clamp";
    #[inline(always)]
    fn apply(self, x: T) -> T {
        let x = if x < self.low { self.low } else { x };
        if x > self.high { self.high } else { x }
    }
}

/// `a·x + b` with fixed `a`, `b`.
#[derive(Clone, Copy, Debug)]
pub struct Affine<T> {
    /// Slope.
    pub scale: T,
    /// Value at 0.
    pub shift: T,
}

impl<T: Numeric> Unary<T> for Affine<T> {
    type Out = T;
    const NAME: &'static str = "affine";
    #[inline(always)]
    fn apply(self, x: T) -> T {
        x.mul_add(self.scale, self.shift)
    }
}

/// Real part, imaginary part or modulus of complex numbers.
#[derive(Clone, Copy, Debug)]
pub enum ComplexPart {
    /// `Re x`.
    Re,
    /// `Im x`.
    Im,
    /// `|x|`.
    Modulus,
}

/// Takes a [`ComplexPart`] of a complex number.
#[derive(Clone, Copy, Debug)]
pub struct TakePart(pub ComplexPart);

impl<T: Field> Unary<T> for TakePart {
    type Out = T::Real;
    const NAME: &'static str = "complex part";
    #[inline(always)]
    fn apply(self, x: T) -> T::Real {
        match self.0 {
            ComplexPart::Re => x.re(),
            ComplexPart::Im => x.im(),
            ComplexPart::Modulus => x.modulus(),
        }
    }
}

/// `re + i·im`, or its conjugate.
#[derive(Clone, Copy, Debug)]
pub struct FromParts<C> {
    conj: bool,
    number: std::marker::PhantomData<C>,
}

impl<C> FromParts<C> {
    /// `re + i·im`.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { conj: false, number: std::marker::PhantomData }
    }

    /// `re − i·im`.
    pub const fn conjugate() -> Self {
        Self { conj: true, number: std::marker::PhantomData }
    }
}

impl<C: Field> Binary<C::Real> for FromParts<C> {
    type Out = C;
    const NAME: &'static str = "complex";
    #[inline(always)]
    fn apply(self, re: C::Real, im: C::Real) -> C {
        C::from_parts(re, if self.conj { im.neg() } else { im })
    }
}
