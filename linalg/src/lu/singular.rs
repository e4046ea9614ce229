//! Elimination for singular matrices, where the blocked algorithm divides by zero.

use faer::MatMut;
use t4a_algebra::{Field, Numeric, Real};

use crate::scalar::LinalgScalar;

/// `A[p] = L U` or `A[p][:, q] = L U` over `a`; a column without a pivot is skipped, and its
/// column of `L` is zero below the diagonal. Right-looking, one rank-1 update per pivot.
pub(super) fn eliminate<T: LinalgScalar>(
    mut a: MatMut<'_, T>,
    rows: &mut [usize],
    cols: &mut [usize],
    full_pivoting: bool,
) {
    let (m, n) = (a.nrows(), a.ncols());
    // |Re| + |Im| as in LAPACK and faer, so that the pivots agree.
    let size = |x: T| Real::abs(x.re()).to_f64() + Real::abs(x.im()).to_f64();
    for k in 0..m.min(n) {
        let candidates = if full_pivoting { k..n } else { k..k + 1 };
        let mut best = (0.0, k, k);
        for j in candidates {
            for i in k..m {
                if size(a[(i, j)]) > best.0 {
                    best = (size(a[(i, j)]), i, j);
                }
            }
        }
        let (pivot, row, col) = best;
        if pivot == 0.0 {
            continue;
        }
        rows.swap(k, row);
        cols.swap(k, col);
        for j in 0..n {
            let (x, y) = (a[(k, j)], a[(row, j)]);
            (a[(k, j)], a[(row, j)]) = (y, x);
        }
        for i in 0..m {
            let (x, y) = (a[(i, k)], a[(i, col)]);
            (a[(i, k)], a[(i, col)]) = (y, x);
        }
        for i in k + 1..m {
            a[(i, k)] = Field::div(a[(i, k)], a[(k, k)]);
        }
        for j in k + 1..n {
            let u = a[(k, j)];
            for i in k + 1..m {
                a[(i, j)] = Numeric::sub(a[(i, j)], Numeric::mul(a[(i, k)], u));
            }
        }
    }
}
