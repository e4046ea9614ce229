//! Square complex column-major matrices, for algorithms on one matrix.

use std::ops::{Index, IndexMut};

use faer::{MatMut, MatRef, Par};
use t4a_algebra::{Field, Numeric, Real, c64};
use t4a_linalg_kernels::Kernels;

use crate::scalar::LinalgScalar;

pub(crate) const ZERO: c64 = c64 { re: 0.0, im: 0.0 };
pub(crate) const ONE: c64 = c64 { re: 1.0, im: 0.0 };

/// Column-major `n × n` matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SquareMatrix {
    n: usize,
    data: Vec<c64>,
}

impl Index<(usize, usize)> for SquareMatrix {
    type Output = c64;
    fn index(&self, (i, j): (usize, usize)) -> &c64 {
        &self.data[j * self.n + i]
    }
}

impl IndexMut<(usize, usize)> for SquareMatrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut c64 {
        &mut self.data[j * self.n + i]
    }
}

/// Converts elements to double precision complex numbers.
pub(crate) fn widened<T: LinalgScalar>(x: &[T]) -> Vec<c64> {
    x.iter().map(|x| c64::new(Field::re(*x).to_f64(), Field::im(*x).to_f64())).collect()
}

/// Writes columns, converted to `T`; returns true if all elements are finite in `T`.
pub(crate) fn store<T: LinalgScalar>(columns: &[c64], mut out: MatMut<'_, T>) -> bool {
    let (mut finite, part) = (true, <T::R as Numeric>::from_f64);
    for (j, column) in columns.chunks_exact(out.nrows().max(1)).enumerate() {
        for (i, z) in column.iter().enumerate() {
            let x = T::from_parts(part(z.re), part(z.im));
            finite &= Numeric::sub(x, x) == T::ZERO;
            out[(i, j)] = x;
        }
    }
    finite
}

impl SquareMatrix {
    pub(crate) fn zeros(n: usize) -> Self {
        Self { n, data: vec![ZERO; n * n] }
    }

    pub(crate) fn identity(n: usize) -> Self {
        Self::from_fn(n, |i, j| if i == j { ONE } else { ZERO })
    }

    pub(crate) fn from_fn(n: usize, f: impl Fn(usize, usize) -> c64) -> Self {
        let mut out = Self::zeros(n);
        for j in 0..n {
            for (i, x) in out.col_mut(j).iter_mut().enumerate() {
                *x = f(i, j);
            }
        }
        out
    }

    /// Matrix of `n²` column-major elements.
    pub(crate) fn from_columns(n: usize, data: Vec<c64>) -> Self {
        Self { n, data }
    }

    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// Column-major elements.
    pub(crate) fn data(&self) -> &[c64] {
        &self.data
    }

    pub(crate) fn data_mut(&mut self) -> &mut [c64] {
        &mut self.data
    }

    pub(crate) fn col(&self, j: usize) -> &[c64] {
        &self.data[j * self.n..(j + 1) * self.n]
    }

    pub(crate) fn col_mut(&mut self, j: usize) -> &mut [c64] {
        &mut self.data[j * self.n..(j + 1) * self.n]
    }

    /// Mutable columns `k` and `k + 1`.
    pub(crate) fn neighbours(&mut self, k: usize) -> (&mut [c64], &mut [c64]) {
        let n = self.n;
        self.data[k * n..(k + 2) * n].split_at_mut(n)
    }

    pub(crate) fn as_ref(&self) -> MatRef<'_, c64> {
        MatRef::from_column_major_slice(&self.data, self.n, self.n)
    }

    pub(crate) fn as_mut(&mut self) -> MatMut<'_, c64> {
        MatMut::from_column_major_slice_mut(&mut self.data, self.n, self.n)
    }

    /// `A B`.
    pub(crate) fn times(&self, rhs: &Self) -> Self {
        let mut out = Self::zeros(self.n);
        if self.n > 0 {
            <c64 as Kernels>::matmul(out.as_mut(), self.as_ref(), rhs.as_ref(), Par::Seq);
        }
        out
    }

    /// `Aᴴ`.
    pub(crate) fn adjoint(&self) -> Self {
        Self::from_fn(self.n, |i, j| self[(j, i)].conj())
    }

    /// `c A`.
    pub(crate) fn scaled(mut self, c: f64) -> Self {
        self.data.iter_mut().for_each(|x| *x *= c);
        self
    }

    /// `A + c B`.
    pub(crate) fn plus(mut self, c: f64, rhs: &Self) -> Self {
        self.data.iter_mut().zip(&rhs.data).for_each(|(x, y)| *x += c * y);
        self
    }

    /// Solution `T⁻¹ B` for an upper triangular matrix T.
    pub(crate) fn upper_solve(&self, mut b: Self) -> Self {
        if self.n > 0 {
            <c64 as Kernels>::solve_triangular(
                self.as_ref(),
                false,
                true,
                false,
                b.as_mut(),
                Par::Seq,
            );
        }
        b
    }

    /// Largest modulus.
    pub(crate) fn largest(&self) -> f64 {
        self.data.iter().map(|x| x.norm()).fold(0.0, f64::max)
    }

    /// 1-norm: largest sum of moduli of a column.
    pub(crate) fn one_norm(&self) -> f64 {
        let sum = |j: usize| self.col(j).iter().map(|x| x.norm()).sum::<f64>();
        (0..self.n).map(sum).fold(0.0, f64::max)
    }

    /// True if all elements below the diagonal are zero.
    pub(crate) fn is_upper(&self) -> bool {
        (0..self.n).all(|j| self.col(j)[j + 1..].iter().all(|x| *x == ZERO))
    }

    /// True if all elements above the diagonal are zero.
    pub(crate) fn is_lower(&self) -> bool {
        (0..self.n).all(|j| self.col(j)[..j].iter().all(|x| *x == ZERO))
    }

    /// True if `A = Aᴴ`.
    pub(crate) fn is_hermitian(&self) -> bool {
        (0..self.n).all(|j| (0..=j).all(|i| self[(i, j)] == self[(j, i)].conj()))
    }

    /// Block `(i, j)` of a partition into `m × m` blocks.
    pub(crate) fn block(&self, m: usize, i: usize, j: usize) -> Self {
        Self::from_fn(m, |k, l| self[(i * m + k, j * m + l)])
    }

    /// Writes block `(i, j)`.
    pub(crate) fn set_block(&mut self, i: usize, j: usize, block: &Self) {
        let m = block.n;
        for l in 0..m {
            self.col_mut(j * m + l)[i * m..(i + 1) * m].copy_from_slice(block.col(l));
        }
    }
}
