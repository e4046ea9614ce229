//! Scaling of matrices by powers of two before factorisation.
//!
//! Algorithms square elements, and products of elements with rounding errors, and compare them with the smallest
//! normal number: elements in the outer quarters of the exponent range would lose digits or prevent convergence.
//! Scaling by a power of two is exact.

use t4a_algebra::{Field, Numeric, Real};

use crate::scalar::{LinalgScalar, epsilon};

/// Exponent `e`; the factored matrix is `2⁻ᵉ A`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PowerOfTwo(i32);

/// Largest and smallest exponent of the type, and the range of exponents without scaling.
fn limits<T: LinalgScalar>() -> (i32, i32) {
    if epsilon::<T>() < 1e-10 { (1022, 255) } else { (126, 31) }
}

/// `x ← 2ᵉ x`, in steps of representable powers.
fn shift<T: LinalgScalar>(values: &mut [T], e: i32) {
    let (range, _) = limits::<T>();
    let mut left = e;
    while left != 0 {
        let step = left.clamp(-range, range);
        let factor = <T::R as Numeric>::from_f64(2f64.powi(step));
        values.iter_mut().for_each(|x| *x = times(*x, factor));
        left -= step;
    }
}

/// `⌊log₂ x⌋` of positive `x`, 0 of zero.
fn exponent(x: f64) -> i32 {
    let of_normal = |x: f64| (x.to_bits() >> 52) as i32 - 1023;
    match x {
        0.0 => 0,
        x if x.is_normal() => of_normal(x),
        x => of_normal(x * 2f64.powi(64)) - 64,
    }
}

impl PowerOfTwo {
    /// Scales `data`; the largest element is determined from `columns`, slices of `data`. All elements are finite.
    pub(crate) fn apply<T: LinalgScalar>(data: &mut [T], columns: impl Fn(&[T]) -> f64) -> Self {
        let (_, free) = limits::<T>();
        let e = exponent(columns(data));
        if e.abs() <= free {
            return Self(0);
        }
        shift(data, -e);
        Self(e)
    }

    /// No scaling.
    pub(crate) fn none<T: LinalgScalar>(_data: &mut [T]) -> Self {
        Self(0)
    }

    /// Scale of a matrix with this largest element.
    pub(crate) fn of(largest: f64) -> Self {
        Self(exponent(largest))
    }

    /// `2⁻ᵉ x`.
    pub(crate) fn divide<T: LinalgScalar>(self, values: &mut [T]) {
        shift(values, -self.0);
    }

    /// [`PowerOfTwo::apply`] with a power of four.
    pub(crate) fn by_square<T: LinalgScalar>(data: &mut [T]) -> Self {
        let (_, free) = limits::<T>();
        let e = exponent(largest(data)) / 2 * 2;
        if e.abs() <= free {
            return Self(0);
        }
        shift(data, -e);
        Self(e)
    }

    /// Scale of square roots, after [`PowerOfTwo::by_square`].
    pub(crate) fn root(self) -> Self {
        Self(self.0 / 2)
    }

    /// The exponent `e`.
    pub(crate) fn exponent(self) -> i32 {
        self.0
    }

    /// Scales finite elements so that the largest is between `2ᵗ` and `2ᵗ⁺¹`.
    pub(crate) fn to_exponent<T: LinalgScalar>(data: &mut [T], t: i32) -> Self {
        let largest = largest(data);
        let e = if largest == 0.0 { 0 } else { exponent(largest) - t };
        shift(data, -e);
        Self(e)
    }

    /// True if nothing is scaled.
    pub(crate) fn is_one(self) -> bool {
        self.0 == 0
    }

    /// Scale of quotients by a matrix with scale `other`.
    pub(crate) fn over(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }

    /// `2ᵉ x` for results that are homogeneous of degree 1; returns true if all of them are finite.
    pub(crate) fn restore<T: LinalgScalar>(self, values: &mut [T]) -> bool {
        if self.is_one() {
            return true;
        }
        shift(values, self.0);
        values.iter().all(|&x| Numeric::sub(x, x) == T::ZERO)
    }
}

fn times<T: LinalgScalar>(x: T, factor: T::R) -> T {
    T::from_parts(Numeric::mul(x.re(), factor), Numeric::mul(x.im(), factor))
}

const LANES: usize = 8;

/// Largest modulus of the real and imaginary parts.
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
