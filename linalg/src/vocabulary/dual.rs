//! Dual numbers over any implementor of [`Matrices`]: a value with its tangent.
//!
//! Running a rule on dual numbers differentiates it: the JVP of a VJP is a Hessian-vector product, and a function
//! generic over [`Matrices`] gets its Fréchet derivative. Products `(X, dX)(Y, dY) = (XY, dX Y + X dY)` cost 3 matrix
//! products instead of the 8 of a block matrix.

use std::ops::Range;

use super::{Matrices, RealMatrices, Region};
use crate::error::{LinalgError, Result};
use crate::operation::{Outcome, Part};
use crate::permutation::Permutation;
use crate::table::MatrixOp;
use crate::triangular::Triangle;

/// Value and tangent; `None` is a zero tangent.
#[derive(Clone, Debug)]
pub struct DualMatrix<M> {
    /// The value.
    pub value: M,
    /// Its tangent.
    pub tangent: Option<M>,
}

impl<M: Matrices> DualMatrix<M> {
    /// Value with a tangent.
    pub fn new(value: M, tangent: M) -> Self {
        Self { value, tangent: Some(tangent) }
    }

    /// Value with zero tangent.
    pub fn constant_of(value: M) -> Self {
        Self { value, tangent: None }
    }

    /// The tangent as a matrix; zeros if there is none.
    pub fn into_tangent(self) -> M {
        let (m, n) = (self.value.rows(), self.value.cols());
        self.tangent.unwrap_or_else(|| self.value.constant(m, n, 0.0))
    }

    /// Applies the linear map `f` to value and tangent.
    fn linear<N: Matrices>(&self, f: impl Fn(&M) -> N) -> DualMatrix<N> {
        DualMatrix { value: f(&self.value), tangent: self.tangent.as_ref().map(f) }
    }
}

/// Sum of two tangents of a value of this shape; each may need to be broadcast.
fn sum<M: Matrices>(value: &M, a: Option<M>, b: Option<M>) -> Option<M> {
    let (m, n) = (value.rows(), value.cols());
    let whole = |t: M| match t.rows() == m && t.cols() == n {
        true => t,
        false => t.add(&t.constant(m, n, 0.0)),
    };
    match (a, b) {
        (Some(a), Some(b)) => Some(a.add(&b)),
        (Some(t), None) | (None, Some(t)) => Some(whole(t)),
        (None, None) => None,
    }
}

impl<M: Matrices> Matrices for DualMatrix<M> {
    type Real = DualMatrix<M::Real>;
    type Complex = DualMatrix<M::Complex>;
    const IS_COMPLEX: bool = M::IS_COMPLEX;

    fn rows(&self) -> usize {
        self.value.rows()
    }
    fn cols(&self) -> usize {
        self.value.cols()
    }
    fn epsilon(&self) -> f64 {
        self.value.epsilon()
    }
    fn add(&self, rhs: &Self) -> Self {
        let value = self.value.add(&rhs.value);
        let tangent = sum(&value, self.tangent.clone(), rhs.tangent.clone());
        Self { value, tangent }
    }
    fn sub(&self, rhs: &Self) -> Self {
        let value = self.value.sub(&rhs.value);
        let tangent = sum(&value, self.tangent.clone(), rhs.tangent.as_ref().map(M::neg));
        Self { value, tangent }
    }
    fn mul(&self, rhs: &Self) -> Self {
        let value = self.value.mul(&rhs.value);
        let left = self.tangent.as_ref().map(|t| t.mul(&rhs.value));
        let right = rhs.tangent.as_ref().map(|t| self.value.mul(t));
        let tangent = sum(&value, left, right);
        Self { value, tangent }
    }
    fn mul_real(&self, rhs: &Self::Real) -> Self {
        let value = self.value.mul_real(&rhs.value);
        let left = self.tangent.as_ref().map(|t| t.mul_real(&rhs.value));
        let right = rhs.tangent.as_ref().map(|t| self.value.mul_real(t));
        let tangent = sum(&value, left, right);
        Self { value, tangent }
    }
    fn scale(&self, c: f64) -> Self {
        self.linear(|x| x.scale(c))
    }
    fn matmul(&self, rhs: &Self) -> Self {
        let value = self.value.matmul(&rhs.value);
        let left = self.tangent.as_ref().map(|t| t.matmul(&rhs.value));
        let right = rhs.tangent.as_ref().map(|t| self.value.matmul(t));
        let tangent = sum(&value, left, right);
        Self { value, tangent }
    }
    fn transpose(&self) -> Self {
        self.linear(M::transpose)
    }
    fn herm(&self) -> Self {
        self.linear(M::herm)
    }
    fn skew(&self) -> Self {
        self.linear(M::skew)
    }
    fn conj(&self) -> Self {
        self.linear(M::conj)
    }
    fn slice(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        self.linear(|x| x.slice(rows.clone(), cols.clone()))
    }
    fn stack(&self, below: &Self) -> Self {
        let value = self.value.stack(&below.value);
        let tangent = match (&self.tangent, &below.tangent) {
            (None, None) => None,
            _ => Some(self.clone().into_tangent().stack(&below.clone().into_tangent())),
        };
        Self { value, tangent }
    }
    fn permute_rows(&self, p: &Permutation) -> Self {
        self.linear(|x| x.permute_rows(p))
    }
    fn mask(&self, keep: Region) -> Self {
        self.linear(|x| x.mask(keep))
    }
    fn sum_rows(&self) -> Self {
        self.linear(M::sum_rows)
    }
    fn constant(&self, m: usize, n: usize, c: f64) -> Self {
        Self::constant_of(self.value.constant(m, n, c))
    }
    fn each(&self, values: &[f64]) -> Self::Real {
        DualMatrix::constant_of(self.value.each(values))
    }
    fn re(&self) -> Self::Real {
        self.linear(M::re)
    }
    fn im(&self) -> Self::Real {
        self.linear(M::im)
    }
    fn from_parts(re: &Self::Real, im: &Self::Real) -> Self {
        let value = M::from_parts(&re.value, &im.value);
        let tangent = match (&re.tangent, &im.tangent) {
            (None, None) => None,
            _ => Some(M::from_parts(&re.clone().into_tangent(), &im.clone().into_tangent())),
        };
        Self { value, tangent }
    }
    fn to_complex(&self) -> Self::Complex {
        self.linear(M::to_complex)
    }
    fn from_complex(z: &Self::Complex) -> Self {
        z.linear(M::from_complex)
    }
    fn solve_triangular(&self, b: &Self, triangle: Triangle) -> Self {
        let value = self.value.solve_triangular(&b.value, triangle);
        let (dt, db) = (self.tangent.as_ref(), b.tangent.as_ref());
        let moved = dt.is_some() || db.is_some();
        let tangent = moved.then(|| crate::triangular::jvp(&self.value, &value, dt, db, triangle));
        Self { value, tangent }
    }
    fn solve(&self, b: &Self) -> Self {
        let value = self.value.solve(&b.value);
        let moved = self.tangent.as_ref().map(|da| da.matmul(&value).neg());
        let rhs = sum(&value, b.tangent.clone(), moved);
        Self { tangent: rhs.map(|rhs| self.value.solve(&rhs)), value }
    }
    fn lyapunov(&self, b: &Self) -> Self {
        let value = self.value.lyapunov(&b.value);
        let (dp, db) = (self.tangent.as_ref(), b.tangent.as_ref());
        let moved = dp.is_some() || db.is_some();
        let tangent = moved.then(|| crate::lyapunov::jvp(&self.value, &value, dp, db));
        Self { value, tangent }
    }
    fn operate(op: MatrixOp, operands: &[&Self]) -> Self {
        let values: Vec<M> = operands.iter().map(|x| x.value.clone()).collect();
        let tangents: Vec<Option<M>> = operands.iter().map(|x| x.tangent.clone()).collect();
        let value = M::operate(op, &values.iter().collect::<Vec<_>>());
        if tangents.iter().all(Option::is_none) {
            return Self::constant_of(value);
        }
        let out = Outcome::new(vec![Part::Full(value.clone())]);
        let tangent = op.jvp(&values, &out, &tangents).map(|mut parts| parts.swap_remove(0));
        Self::new(value, tangent.map_or_else(M::failed, Part::into_full))
    }
    fn failed(error: LinalgError) -> Self {
        Self::constant_of(M::failed(error))
    }
    fn svdvals(&self) -> Self::Real {
        DualMatrix::constant_of(self.value.svdvals())
    }
    fn det(&self) -> Self {
        let value = self.value.det();
        let slope = |t: &M| self.value.solve(t).trace().mul(&value);
        Self { tangent: self.tangent.as_ref().map(slope), value }
    }
    fn detached(&self) -> Self {
        Self::constant_of(self.value.detached())
    }
    fn largest(&self) -> Self::Real {
        DualMatrix::constant_of(self.value.largest())
    }
    fn error(&self) -> Option<LinalgError> {
        self.value.error().or_else(|| self.tangent.as_ref()?.error())
    }
    fn activity(&self) -> Self::Real {
        let value = self.value.activity();
        DualMatrix::constant_of(match &self.tangent {
            Some(tangent) => value.add(&tangent.activity()),
            None => value,
        })
    }
    fn norms(&self) -> Result<Vec<f64>> {
        self.value.norms()
    }
}

impl<R: RealMatrices<Real = R>> RealMatrices for DualMatrix<R> {
    fn entries(&self) -> Result<Vec<f64>> {
        self.value.entries()
    }
    fn recip(&self) -> Self {
        let value = self.value.recip();
        let tangent = self.tangent.as_ref().map(|t| t.mul(&value.mul(&value)).neg());
        Self { value, tangent }
    }
    fn masked_recip(&self, limit: &Self) -> Self {
        let value = self.value.masked_recip(&limit.value);
        let tangent = self.tangent.as_ref().map(|t| t.mul(&value.mul(&value)).neg());
        Self { value, tangent }
    }
    fn exp(&self) -> Self {
        let value = self.value.exp();
        let tangent = self.tangent.as_ref().map(|t| t.mul(&value));
        Self { value, tangent }
    }
    fn ln(&self) -> Self {
        let tangent = self.tangent.as_ref().map(|t| t.mul(&self.value.recip()));
        Self { value: self.value.ln(), tangent }
    }
    fn powf(&self, p: f64) -> Self {
        let slope = |t: &R| t.mul(&self.value.powf(p - 1.0).scale(p));
        Self { value: self.value.powf(p), tangent: self.tangent.as_ref().map(slope) }
    }
    fn within(&self, limit: &Self) -> Self {
        Self::constant_of(self.value.within(&limit.value))
    }
    fn largest_real(&self) -> Self {
        Self::constant_of(self.value.largest_real())
    }
    fn smallest_real(&self) -> Self {
        Self::constant_of(self.value.smallest_real())
    }
}
