//! Complex matrices.

use std::ops::Range;

use t4a_diff::Array;

use super::{apply, function_slope, gradient, settled, tangent, unsplit, unsplit_eigenvectors};
use crate::error::{LinalgError, Result};
use crate::lyapunov::LyapunovPositiveOp;
use crate::operation::{Part, PartKind};
use crate::permutation::Permutation;
use crate::solve::SolveOp;
use crate::spectrum::MatrixFunction;
use crate::svd::SvdvalsOp;
use crate::table::MatrixOp;
use crate::triangular::SolveTriangularOp;
use crate::vocabulary::{Carrier, ComplexMatrix, Factors, Matrices, RealMatrix, Region, Triangle};

impl<A: Array> ComplexMatrix<A> {
    fn both(&self, f: impl Fn(&RealMatrix<A>) -> RealMatrix<A>) -> Self {
        Self { re: f(&self.re), im: f(&self.im) }
    }

    fn product(
        &self,
        rhs: &Self,
        times: impl Fn(&RealMatrix<A>, &RealMatrix<A>) -> RealMatrix<A>,
    ) -> Self {
        Self {
            re: times(&self.re, &rhs.re).sub(&times(&self.im, &rhs.im)),
            im: times(&self.re, &rhs.im).add(&times(&self.im, &rhs.re)),
        }
    }

    fn solved(x: Result<Part<Self>>) -> Self {
        x.map_or_else(Self::failed, Part::into_full)
    }
}

impl<A: Array> Matrices for ComplexMatrix<A> {
    type Real = RealMatrix<A>;
    type Complex = Self;
    const IS_COMPLEX: bool = true;

    fn rows(&self) -> usize {
        self.re.rows()
    }
    fn cols(&self) -> usize {
        self.re.cols()
    }
    fn epsilon(&self) -> f64 {
        self.re.epsilon()
    }
    fn add(&self, rhs: &Self) -> Self {
        Self { re: self.re.add(&rhs.re), im: self.im.add(&rhs.im) }
    }
    fn sub(&self, rhs: &Self) -> Self {
        Self { re: self.re.sub(&rhs.re), im: self.im.sub(&rhs.im) }
    }
    fn mul(&self, rhs: &Self) -> Self {
        self.product(rhs, RealMatrix::mul)
    }
    fn mul_real(&self, rhs: &RealMatrix<A>) -> Self {
        self.both(|x| x.mul(rhs))
    }
    fn scale(&self, c: f64) -> Self {
        self.both(|x| x.scale(c))
    }
    fn matmul(&self, rhs: &Self) -> Self {
        self.product(rhs, RealMatrix::matmul)
    }
    fn transpose(&self) -> Self {
        self.both(RealMatrix::transpose)
    }
    fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.neg() }
    }
    fn slice(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        self.both(|x| x.slice(rows.clone(), cols.clone()))
    }
    fn stack(&self, below: &Self) -> Self {
        Self { re: self.re.stack(&below.re), im: self.im.stack(&below.im) }
    }
    fn permute_rows(&self, p: &Permutation) -> Self {
        self.both(|x| x.permute_rows(p))
    }
    fn mask(&self, keep: Region) -> Self {
        self.both(|x| x.mask(keep))
    }
    fn sum_rows(&self) -> Self {
        self.both(RealMatrix::sum_rows)
    }
    fn constant(&self, m: usize, n: usize, c: f64) -> Self {
        self.re.constant(m, n, c).to_complex()
    }
    fn each(&self, values: &[f64]) -> RealMatrix<A> {
        self.re.each(values)
    }
    fn re(&self) -> RealMatrix<A> {
        self.re.clone()
    }
    fn im(&self) -> RealMatrix<A> {
        self.im.clone()
    }
    fn from_parts(re: &RealMatrix<A>, im: &RealMatrix<A>) -> Self {
        Self { re: re.clone(), im: im.clone() }
    }
    fn to_complex(&self) -> Self {
        self.clone()
    }
    fn from_complex(z: &Self) -> Self {
        z.clone()
    }
    fn solve_triangular(&self, b: &Self, triangle: Triangle) -> Self {
        Self::solved(apply(SolveTriangularOp { triangle }, PartKind::Full, &[self, b]))
    }
    fn solve(&self, b: &Self) -> Self {
        Self::solved(apply(SolveOp, PartKind::Full, &[self, b]))
    }
    fn lyapunov(&self, b: &Self) -> Self {
        Self::solved(apply(LyapunovPositiveOp, PartKind::Full, &[self, b]))
    }
    fn operate(op: MatrixOp, operands: &[&Self]) -> Self {
        Self::solved(apply(op, PartKind::Full, operands))
    }
    fn failed(error: LinalgError) -> Self {
        Self { re: RealMatrix::failed(error.clone()), im: RealMatrix::failed(error) }
    }
    fn svdvals(&self) -> RealMatrix<A> {
        apply(SvdvalsOp, PartKind::Real, &[&self.detached()])
            .map_or_else(RealMatrix::failed, Part::into_real)
    }
    fn det(&self) -> Self {
        Self::solved(apply(crate::det::DetOp, PartKind::Full, &[self]))
    }
    fn detached(&self) -> Self {
        self.both(RealMatrix::detached)
    }
    fn largest(&self) -> RealMatrix<A> {
        self.detached().modulus().largest()
    }
    fn activity(&self) -> RealMatrix<A> {
        self.re.activity().add(&self.im.activity())
    }
    fn error(&self) -> Option<LinalgError> {
        self.re.error().or_else(|| self.im.error())
    }
    fn norms(&self) -> Result<Vec<f64>> {
        let (re, im) = (self.re.norms()?, self.im.norms()?);
        Ok(re.iter().zip(&im).map(|(a, b)| a.hypot(*b)).collect())
    }
    fn spectral_gradient(
        factors: &Factors<Self>,
        carrier: Carrier<'_, Self>,
        c: &Self::Real,
    ) -> Result<Self> {
        gradient(factors, carrier, c)
    }
    fn spectral_tangent(
        factors: &Factors<Self>,
        carrier: Carrier<'_, Self>,
        da: &Self,
    ) -> Result<Self::Real> {
        tangent(factors, carrier, da)
    }
    fn unsplit(gradient: Self, a: &Self, factors: Factors<Self>, vectors: bool) -> Result<Self> {
        unsplit(gradient, a, factors, vectors)
    }
    fn function_slope(
        c: &Self,
        a: &Self,
        factors: Factors<Self>,
        f: MatrixFunction,
    ) -> Result<Self> {
        function_slope(c, a, factors, f)
    }
    fn settled(x: Self, a: &Self, values: &Self::Real, f: MatrixFunction) -> Result<Self> {
        settled(x, a, values, f)
    }
    fn unsplit_eigenvectors(
        gradient: Self,
        a: &Self,
        values: &Self::Complex,
        vectors: &Self::Complex,
    ) -> Result<Self> {
        unsplit_eigenvectors(gradient, a, values, vectors)
    }
}
