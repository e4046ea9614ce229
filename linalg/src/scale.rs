//! Powers of two that bring a matrix near 1 before it is factored.
//!
//! Algorithms square elements, and products of them with rounding errors, and compare with the
//! smallest normal number: elements beyond a quarter of the range of exponents make them lose digits
//! or stop converging. A power of two changes no digit.

use t4a_algebra::{Field, Numeric, Real};

use crate::scalar::{LinalgScalar, epsilon};

/// `e`, where what is factored is `2⁻ᵉ A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale(i32);

/// Largest and smallest exponent of the type, and the exponents between which nothing is scaled.
fn limits<T: LinalgScalar>() -> (i32, i32) {
    if epsilon::<T>() < 1e-10 { (1022, 255) } else { (126, 31) }
}

/// `2ᵉ`.
fn power<R: LinalgScalar>(e: i32) -> R {
    <R as Numeric>::from_f64(2f64.powi(e))
}

impl Scale {
    /// Scales finite elements, given as slices to look at within `data`, all of which is scaled.
    pub(crate) fn apply<T: LinalgScalar>(data: &mut [T], columns: impl Fn(&[T]) -> f64) -> Self {
        let largest = columns(data);
        let (range, free) = limits::<T>();
        // The exponent of a normal number; smaller ones are taken for the smallest normal one.
        let exponent = (largest.to_bits() >> 52) as i32 - 1023;
        let e = if largest == 0.0 { 0 } else { exponent.clamp(-range, range) };
        if e.abs() <= free {
            return Self(0);
        }
        let factor = power::<T::R>(-e);
        data.iter_mut().for_each(|x| *x = times(*x, factor));
        Self(e)
    }

    /// Whether nothing is scaled.
    pub(crate) fn is_one(self) -> bool {
        self.0 == 0
    }

    /// That of quotients by what `other` scaled.
    pub(crate) fn over(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    /// `2ᵉ x` for results that grow with the matrix; whether all of them are finite.
    pub(crate) fn restore<T: LinalgScalar>(self, values: &mut [T]) -> bool {
        if self.is_one() {
            return true;
        }
        // A quotient may be beyond a power that there is.
        let (range, _) = limits::<T>();
        let first = self.0.clamp(-range, range);
        for e in [first, self.0 - first].into_iter().filter(|&e| e != 0) {
            let factor = power::<T::R>(e);
            values.iter_mut().for_each(|x| *x = times(*x, factor));
        }
        values.iter().all(|&x| Numeric::sub(x, x) == T::ZERO)
    }
}

fn times<T: LinalgScalar>(x: T, factor: T::R) -> T {
    T::from_parts(Numeric::mul(x.re(), factor), Numeric::mul(x.im(), factor))
}

const LANES: usize = 8;

/// The largest part of an element.
pub(crate) fn largest<T: LinalgScalar>(values: &[T]) -> f64 {
    let larger = |a: T::R, b: T::R| if b > a { b } else { a };
    let size = |x: T| larger(Real::abs(Field::re(x)), Real::abs(Field::im(x)));
    let mut best = [T::R::ZERO; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            best[i] = larger(best[i], size(block[i]));
        }
    }
    rest.iter().for_each(|&x| best[0] = larger(best[0], size(x)));
    best.into_iter().fold(T::R::ZERO, larger).to_f64()
}
