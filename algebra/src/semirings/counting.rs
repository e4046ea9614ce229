//! How many terms attain the best value.

use std::marker::PhantomData;

use crate::{MaxPlus, Scalar, Selective, Semiring};

/// The pairs (value, number of configurations that attain it) over a selective semiring `S`:
/// ⊕ keeps the better value and adds the counts of equal ones, ⊗ combines values and multiplies
/// counts.
///
/// Values are equal if neither is better, bit for bit as they were rounded: counts are exact for
/// integers and for floats that hold integers, not for sums like 0.1 + 0.2 against 0.3.
/// Counts are exact, or known to have exceeded `u64`: see [`Counted::count`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counting<S = MaxPlus>(PhantomData<S>);

/// A value and how often it is attained, the element of [`Counting`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counted<T> {
    /// The best value.
    pub value: T,
    /// Saturates: naturals with all from `u64::MAX` on identified are a semiring themselves.
    count: u64,
}

impl<T> Counted<T> {
    /// `value`, attained `count` times; `u64::MAX` stands for too many to count.
    #[inline(always)]
    pub const fn new(value: T, count: u64) -> Self {
        Self { value, count }
    }

    /// How often the value is attained, or `None` if that exceeds `u64`.
    #[inline(always)]
    pub const fn count(self) -> Option<u64>
    where
        T: Copy,
    {
        if self.count == u64::MAX { None } else { Some(self.count) }
    }
}

impl<T: Scalar> Scalar for Counted<T> {}

impl<T: Scalar, S: Selective<T>> Semiring<Counted<T>> for Counting<S> {
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
        Counted::new(S::mul(a.value, b.value), a.count.saturating_mul(b.count))
    }

    fn contains(x: Counted<T>) -> bool {
        S::contains(x.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // No term at all is no term, however many were combined with it.
        assert_eq!(Best::mul(square, Best::ZERO), Best::ZERO);
        assert_eq!(many.count(), Some(1 << 40));
    }
}
