//! Unblocked elimination: full pivoting, and matrices with a zero pivot column, for which a blocked algorithm divides
//! by zero.
//!
//! faer 0.24 has full pivoting too, but its pivots are wrong on AVX-512: pulp 0.22.3 counts the lanes of a mask from
//! the highest bit (`first_true_m64s` and `first_true_m32s` apply `leading_zeros` to masks in which lane 0 is bit 0),
//! so the search returns the mirror image of the lane that holds the largest element. The factors still multiply to
//! the matrix, but |L| reaches 10³ to 10⁴ for random matrices. No other function of faer uses the first lane of a
//! mask.

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Field, Numeric, Real};

use crate::scalar::LinalgScalar;

/// `|Re x| + |Im x|`, the pivot size of LAPACK and faer.
#[inline(always)]
pub(super) fn size<T: LinalgScalar>(x: T) -> T::R {
    Numeric::add(Real::abs(x.re()), Real::abs(x.im()))
}

/// Overwrites `a`, whose columns have as many elements as `rows`, with `A[p] = L U` or `A[p][:, q] = L U`. A column
/// without a nonzero pivot is skipped; its column of `L` is zero below the diagonal. Right-looking: for each pivot,
/// one pass over the trailing matrix exchanges two rows, updates, and finds the next pivot. The columns of `L` are
/// permuted at the end, each while it is in cache: rows at distances of a power of two would be evicted at every
/// exchange. `exchanges` is scratch memory of the length of `rows`.
pub(super) fn eliminate<T: LinalgScalar>(
    a: &mut [T],
    rows: &mut [usize],
    exchanges: &mut [usize],
    cols: &mut [usize],
    full_pivoting: bool,
) {
    let (m, n) = (rows.len(), cols.len());
    exchanges.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
    let mut largest = full_pivoting.then(|| {
        let (at, size) = largest_of(a);
        (size, at / m)
    });
    for k in 0..m.min(n) {
        let col = match largest {
            // A trailing matrix without a pivot is zero.
            Some((size, _)) if size == T::R::ZERO => break,
            Some((_, col)) => col,
            None => k,
        };
        let (row, pivot) = largest_of(&a[col * m + k..(col + 1) * m]);
        if pivot == T::R::ZERO {
            continue;
        }
        let row = k + row;
        exchanges[k] = row;
        rows.swap(k, row);
        cols.swap(k, col);
        if col != k {
            let (left, right) = a.split_at_mut(col * m);
            left[k * m..(k + 1) * m].swap_with_slice(&mut right[..m]);
        }
        let (done, rest) = a.split_at_mut((k + 1) * m);
        let column = &mut done[k * m..];
        column.swap(k, row);
        let Some((&mut pivot, lower)) = column[k..].split_first_mut() else {
            unreachable!("k < m")
        };
        lower.iter_mut().for_each(|x| *x = Field::div(*x, pivot));
        let (size, next) = dispatch(RankOneUpdate { rest, m, exchange: [k, row], column: lower });
        largest = largest.map(|_| (size, k + 1 + next));
    }
    for (j, column) in a.chunks_exact_mut(m).enumerate().take(m.min(n)) {
        (j + 1..m.min(n)).for_each(|k| column.swap(k, exchanges[k]));
    }
}

/// Index and size of the largest element; the first one of several.
fn largest_of<T: LinalgScalar>(column: &[T]) -> (usize, T::R) {
    let mut best = (0, T::R::ZERO);
    for (i, &x) in column.iter().enumerate() {
        if size(x) > best.1 {
            best = (i, size(x));
        }
    }
    best
}

/// Exchanges rows `k` and `row` of `A`, then updates `A ← A − l u` below row `k`, with `u` that row; returns the
/// largest size in the updated part and its column.
struct RankOneUpdate<'a, T> {
    rest: &'a mut [T],
    m: usize,
    exchange: [usize; 2],
    column: &'a [T],
}

impl<T: LinalgScalar> Loop for RankOneUpdate<'_, T> {
    type Output = (T::R, usize);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let [k, row] = self.exchange;
        let mut best = (T::R::ZERO, 0);
        for (j, x) in self.rest.chunks_exact_mut(self.m).enumerate() {
            x.swap(k, row);
            let (u, x) = (x[k], &mut x[k + 1..]);
            // Two loops; the second runs on cached data. The compiler does not vectorise them as one loop.
            for (x, &l) in x.iter_mut().zip(self.column) {
                *x = Numeric::sub(*x, Numeric::mul(l, u));
            }
            let lanes = sizes(x);
            if lanes.iter().any(|&size| size > best.0) {
                best = (lanes.into_iter().fold(T::R::ZERO, larger), j);
            }
        }
        best
    }
}

#[inline(always)]
fn larger<R: PartialOrd>(a: R, b: R) -> R {
    if b > a { b } else { a }
}

const LANES: usize = 8;

/// Largest size in each lane.
#[inline(always)]
fn sizes<T: LinalgScalar>(x: &[T]) -> [T::R; LANES] {
    let mut best = [T::R::ZERO; LANES];
    let (blocks, rest) = x.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            best[i] = larger(best[i], size(block[i]));
        }
    }
    rest.iter().for_each(|&x| best[0] = larger(best[0], size(x)));
    best
}
