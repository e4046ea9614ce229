//! Number of terms that attain the best value.

use std::marker::PhantomData;

use crate::{Cancellative, MaxPlus, Scalar, Semiring};

/// The pairs (value, number of configurations that attain it) over a semiring `S`: ⊕ keeps the
/// better value and adds the counts of equal ones, ⊗ combines values and multiplies counts.
///
/// `S` must be [`Cancellative`]: (max, min) is not, because distinct terms may tie after min, and discarded terms would
/// have to be counted again.
///
/// ```compile_fail
/// use t4a_algebra::{Counted, Counting, MaxMin, Semiring};
/// let _ = <Counting<MaxMin> as Semiring<Counted<f64>>>::ZERO;
/// ```
///
/// Values are equal if neither is better, compared after rounding: counts are exact for integers and for floats with
/// integer values, not for sums like 0.1 + 0.2 against 0.3. A value equal to the zero of `S`, such as a product that
/// underflows, has count 0. The count of an absorbing value, such as +∞ of (max, +), NaN or an integer at which sums
/// saturate, is unknown. Other counts are exact, or known to have exceeded `u64`; [`Counted::count`] returns `None` for
/// both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counting<S = MaxPlus>(PhantomData<S>);

/// A value and its count, the element of [`Counting`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counted<T> {
    /// The best value.
    pub value: T,
    /// Saturating: the natural numbers with all n ≥ `u64::MAX` identified are a semiring.
    count: u64,
}

/// Count that overflows or is unknown.
const MANY: u64 = u64::MAX;

impl<T> Counted<T> {
    /// `value`, attained `count` times; `u64::MAX` marks an overflow.
    ///
    /// [`Counting::of`] constructs elements of `Counting`, in which not every value admits every count.
    #[inline(always)]
    pub const fn new(value: T, count: u64) -> Self {
        Self { value, count }
    }

    /// Number of terms that attain the value, or `None` if it exceeds `u64` or is unknown.
    #[inline(always)]
    pub const fn count(self) -> Option<u64>
    where
        T: Copy,
    {
        if self.count == MANY { None } else { Some(self.count) }
    }
}

impl<S> Counting<S> {
    /// `value`, attained `count` times.
    #[inline(always)]
    pub fn of<T: Scalar>(value: T, count: u64) -> Counted<T>
    where
        S: Cancellative<T>,
    {
        if count == 0 { Counted::new(S::ZERO, 0) } else { Self::normal(value, count) }
    }

    /// The element with this value; the count is replaced if the value is zero or absorbing.
    #[inline(always)]
    fn normal<T: Scalar>(value: T, count: u64) -> Counted<T>
    where
        S: Cancellative<T>,
    {
        if S::cancels(value) {
            Counted::new(value, count)
        } else if S::better(value, S::ZERO) {
            Counted::new(value, MANY)
        } else {
            Counted::new(S::ZERO, 0)
        }
    }
}

impl<T: Scalar> Scalar for Counted<T> {}

impl<T: Scalar, S: Cancellative<T>> Semiring<Counted<T>> for Counting<S> {
    const ZERO: Counted<T> = Counted::new(S::ZERO, 0);
    const ONE: Counted<T> = Counted::new(S::ONE, 1);

    #[inline(always)]
    fn add(a: Counted<T>, b: Counted<T>) -> Counted<T> {
        if S::better(a.value, b.value) {
            a
        } else if S::better(b.value, a.value) {
            b
        } else {
            Counted::new(a.value, a.count.saturating_add(b.count))
        }
    }

    #[inline(always)]
    fn mul(a: Counted<T>, b: Counted<T>) -> Counted<T> {
        Self::normal(S::mul(a.value, b.value), a.count.saturating_mul(b.count))
    }

    fn contains(x: Counted<T>) -> bool {
        S::contains(x.value) && Self::of(x.value, x.count) == x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MaxMul, MinPlus};

    type Best = Counting<MaxPlus>;

    #[test]
    fn ties_add_up_and_losers_do_not() {
        let [a, b, c] = [(3, 2), (3, 5), (1, 9)].map(|(v, n)| Counted::new(v, n));
        assert_eq!(Best::add(Best::add(a, c), b), Counted::new(3, 7));
        assert_eq!(Best::mul(a, c), Counted::new(4, 18));
    }

    #[test]
    fn overflow_is_reported_and_stays() {
        let many = Counted::new(0, 1 << 40);
        let square = <Best as Semiring<_>>::mul(many, many);
        assert_eq!(square.count(), None);
        assert_eq!(Best::add(square, many).count(), None);
        assert_eq!(Best::mul(square, many).count(), None);
        // A product with zero has no terms, regardless of the other count.
        assert_eq!(Best::mul(square, Best::ZERO), Best::ZERO);
        assert_eq!(many.count(), Some(1 << 40));
    }

    /// The product of two small numbers underflows to 0, which has count 0.
    #[test]
    fn underflow_leaves_nothing_to_count() {
        type Likely = Counting<MaxMul>;
        let small = Likely::of(1e-200, 3);
        assert_eq!(Likely::mul(small, small), Likely::ZERO);
        assert_eq!(Best::mul(Best::of(i8::MIN + 1, 2), Best::of(-5, 2)), Best::ZERO);
        assert_eq!(Likely::of(0.0, 7), Likely::ZERO);
    }

    /// ∞ ⊗ (1 ⊕ 2) has one term, ∞ ⊗ 1 ⊕ ∞ ⊗ 2 has two: such counts are unknown.
    #[test]
    fn what_absorbs_hides_its_count() {
        let far = Best::of(f64::INFINITY, 1);
        let (one, two) = (Best::of(1.0, 1), Best::of(2.0, 1));
        let left = Best::mul(far, Best::add(one, two));
        let right = Best::add(Best::mul(far, one), Best::mul(far, two));
        assert_eq!((left, left.count()), (right, None));
        assert_eq!(Best::of(f64::NAN, 1).count(), None);
        assert_eq!(Best::mul(Best::of(100i8, 1), Best::of(100, 1)).count(), None);
        // Unsigned sums do not saturate at 0, so the value 0 can be counted.
        assert_eq!(Counting::<MinPlus>::of(0u8, 3).count(), Some(3));
        assert!(!Best::contains(Counted::new(f64::INFINITY, 1)));
        assert!(!Best::contains(Counted::new(1.0, 0)));
        assert!(Best::contains(far) && Best::contains(one));
        assert!(Best::contains(Best::of(f64::NEG_INFINITY, 0)));
    }
}
