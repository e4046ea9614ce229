//! Partial pivoting of matrices with at most eight rows and columns.
//!
//! Columns are padded with zeros to eight elements, so that all loops over rows have constant length and stay in
//! registers: a matrix of 8 × 8 takes less time than the recursion of a blocked algorithm (bench `linalg`).

use std::array::from_fn;

use t4a_algebra::simd::Loop;
use t4a_algebra::{Field, Numeric};

use super::eliminate::size;
use crate::scalar::LinalgScalar;

/// Largest number of rows and columns.
pub(super) const SIZE: usize = 8;

/// Overwrites `a`, whose columns have as many elements as `rows`, with `A[p] = L U`, and permutes `rows`. A column
/// without a nonzero pivot is skipped; its column of `L` is zero below the diagonal.
pub(super) struct SmallLu<'a, T> {
    pub(super) a: &'a mut [T],
    pub(super) rows: &'a mut [usize],
}

impl<T: LinalgScalar> Loop for SmallLu<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let m = self.rows.len();
        let n = self.a.len() / m;
        let mut x = [[T::ZERO; SIZE]; SIZE];
        for (x, a) in x.iter_mut().zip(self.a.chunks_exact(m)) {
            x[..m].copy_from_slice(a);
        }
        for k in 0..m.min(n) {
            let sizes: [T::R; SIZE] = from_fn(|i| size(x[k][i]));
            let mut row = k;
            for i in k + 1..m {
                if sizes[i] > sizes[row] {
                    row = i;
                }
            }
            if sizes[row] == <T::R as Numeric>::ZERO {
                continue;
            }
            self.rows.swap(k, row);
            x[..n].iter_mut().for_each(|x| x.swap(k, row));
            let pivot = x[k][k];
            let mut l: [T; SIZE] = from_fn(|i| Field::div(x[k][i], pivot));
            l[..=k].fill(T::ZERO);
            x[k][k + 1..].copy_from_slice(&l[k + 1..]);
            for x in &mut x[k + 1..n] {
                let u = x[k];
                for i in 0..SIZE {
                    x[i] = Numeric::sub(x[i], Numeric::mul(l[i], u));
                }
            }
        }
        for (a, x) in self.a.chunks_exact_mut(m).zip(&x) {
            a.copy_from_slice(&x[..m]);
        }
    }
}
