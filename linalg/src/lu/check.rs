//! Debug check of the invariants of a pivoted factorisation.

use faer::MatRef;
use t4a_algebra::{Numeric, Real};

use crate::scalar::{LinalgScalar, epsilon, min_positive};

/// `|L| ≤ 1` (`√2` for pivots by `|Re| + |Im|`), and `A[p][:, q] x = L (U x)` for the vector of ones, up to the
/// rounding errors of both sides.
pub(super) fn is_factorisation<T: LinalgScalar>(
    a: MatRef<'_, T>,
    packed: &[T],
    rows: &[usize],
    cols: &[usize],
) -> bool {
    let (m, n) = a.shape();
    let k = m.min(n);
    let lu = MatRef::from_column_major_slice(packed, m, n);
    let bound = if T::IS_COMPLEX { 1.4143 } else { 1.0 };
    let small = |j: usize| (j + 1..m).all(|i| lu[(i, j)].modulus().to_f64() <= bound);
    // For row i: U x and |U| |x| summed over the row, with entries read by `entry`.
    let sum = |range: std::ops::Range<usize>, entry: &dyn Fn(usize) -> T| {
        range.map(entry).fold((T::ZERO, 0.0), |(sum, sizes), x| {
            (Numeric::add(sum, x), sizes + x.modulus().to_f64())
        })
    };
    let unit = 8.0 * (m + n) as f64 * epsilon::<T>();
    let upper: Vec<_> = (0..k).map(|i| sum(i..n, &|j| lu[(i, j)])).collect();
    let equal = |i: usize| {
        let (want, size) = sum(0..n, &|j| a[(rows[i], cols[j])]);
        let mut rest = want;
        let mut sizes = size;
        for j in 0..k.min(i + 1) {
            let l = if i == j { T::ONE } else { lu[(i, j)] };
            rest = Numeric::sub(rest, Numeric::mul(l, upper[j].0));
            sizes += l.modulus().to_f64() * upper[j].1;
        }
        let off = rest.modulus().to_f64();
        // Rounding is relative, and absolute for subnormal numbers; an overflow is not an error of the pivots.
        off <= unit * (sizes + min_positive::<T>().to_f64()) || !off.is_finite()
    };
    (0..k).all(small) && (0..m).all(equal)
}
