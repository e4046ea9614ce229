//! The K best values of a sum.

use std::marker::PhantomData;

use crate::{MaxPlus, Scalar, Selective, Semiring};

/// The K best values over a selective semiring `S`, best first: ⊕ merges two lists, ⊗ combines every pair, and both
/// keep the best K. Values attained twice are listed twice; short lists are padded with the zero of `S`.
///
/// Elements are sorted arrays; [`KBest::of`] constructs one from values in any order. The first value is the sum over
/// `S`, where NaN is first. Padding is not a term and is not combined with others, so a NaN is listed once per term
/// that has one.
///
/// Cost: ⊕ takes 2K comparisons, ⊗ at most K·ln K products, since the pair (i, j) is dominated by the (i + 1)(j + 1) −
/// 1 pairs before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KBest<const K: usize, S = MaxPlus>(PhantomData<S>);

impl<const K: usize, S> KBest<K, S> {
    /// The K best of some values.
    pub fn of<T: Scalar>(values: impl IntoIterator<Item = T>) -> [T; K]
    where
        S: Selective<T>,
    {
        let mut best = [S::ZERO; K];
        values.into_iter().for_each(|value| insert::<S, T>(&mut best, value));
        best
    }
}

/// Inserts a value after all values that are at least as good.
#[inline(always)]
fn insert<S: Selective<T>, T: Scalar>(best: &mut [T], value: T) {
    let mut moved = value;
    for place in best {
        if S::better(moved, *place) {
            std::mem::swap(place, &mut moved);
        }
    }
}

impl<T: Scalar, const K: usize, S: Selective<T>> Semiring<[T; K]> for KBest<K, S> {
    const ZERO: [T; K] = [S::ZERO; K];
    const ONE: [T; K] = {
        let mut one = [S::ZERO; K];
        if K > 0 {
            one[0] = S::ONE;
        }
        one
    };

    #[inline]
    fn add(a: [T; K], b: [T; K]) -> [T; K] {
        let mut best = [S::ZERO; K];
        let (mut i, mut j) = (0, 0);
        for place in &mut best {
            // i + j < K here, so both are in range.
            if S::better(b[j], a[i]) {
                *place = b[j];
                j += 1;
            } else {
                *place = a[i];
                i += 1;
            }
        }
        best
    }

    #[inline]
    fn mul(a: [T; K], b: [T; K]) -> [T; K] {
        let mut best = [S::ZERO; K];
        let terms = |x: &[T; K]| x.iter().take_while(|&&x| S::better(x, S::ZERO)).count();
        // The first pair is always combined: 0 ⊗ NaN is NaN.
        let (of_a, of_b) = (terms(&a).max(1), terms(&b).max(1));
        for (i, &x) in a.iter().enumerate().take(of_a) {
            for &y in &b[..(K / (i + 1)).min(of_b)] {
                insert::<S, T>(&mut best, S::mul(x, y));
            }
        }
        best
    }

    fn contains(x: [T; K]) -> bool {
        x.iter().all(|&x| S::contains(x)) && x.is_sorted_by(|&a, &b| !S::better(b, a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MinPlus;

    #[test]
    fn lists_are_merged_with_duplicates_and_padded() {
        type Best = KBest<3>;
        let (a, b) = (Best::of([1, 5, 3, 5]), Best::of([4]));
        assert_eq!((a, b), ([5, 5, 3], [4, i32::MIN, i32::MIN]));
        assert_eq!(Best::add(a, b), [5, 5, 4]);
        assert_eq!(Best::mul(a, b), [9, 9, 7]);
        assert_eq!(Best::mul(b, b), [8, i32::MIN, i32::MIN]);
        assert!(Best::contains(a) && !Best::contains([1, 2, 0]));
    }

    /// All pairs, sorted.
    #[test]
    fn products_keep_the_best_pairs() {
        let hash = |x: u32| x.wrapping_mul(2_654_435_761);
        for seed in 0..200u32 {
            let values = |salt: u32| {
                (0..7u32).map(move |i| (hash((i + 1) * (seed + salt)) >> 20) as i32 % 9)
            };
            let mut pairs: Vec<i32> = KBest::<5, MinPlus>::of(values(1))
                .into_iter()
                .flat_map(|x| KBest::<5, MinPlus>::of(values(7)).map(|y| x + y))
                .collect();
            pairs.sort_unstable();
            let (a, b) = (KBest::<5, MinPlus>::of(values(1)), KBest::<5, MinPlus>::of(values(7)));
            assert_eq!(KBest::<5, MinPlus>::mul(a, b).as_slice(), &pairs[..5]);
        }
    }

    /// A NaN is one term: it is first, and does not propagate to the padding.
    #[test]
    fn one_nan_is_listed_once() {
        type Best = KBest<3>;
        let (nan, low) = (f64::NAN, f64::NEG_INFINITY);
        let bits = |x: [f64; 3]| x.map(|x| if x.is_nan() { "NaN".into() } else { x.to_string() });
        assert_eq!(bits(Best::mul(Best::of([nan]), Best::of([2.0]))), ["NaN", "-inf", "-inf"]);
        assert_eq!(bits(Best::mul(Best::of([nan, 1.0]), Best::of([2.0]))), ["NaN", "3", "-inf"]);
        assert_eq!(bits(Best::add(Best::of([nan]), Best::of([2.0]))), ["NaN", "2", "-inf"]);
        // As over the base semiring, a NaN operand propagates.
        assert_eq!(bits(Best::mul(Best::of([nan]), Best::of([low]))), ["NaN", "-inf", "-inf"]);
    }
}
