//! Real matrices.

use std::ops::Range;

use t4a_diff::array::Flags as _;
use t4a_diff::{Array, Integers};
use t4a_tensor::{AnyTensor, DType, Tensor};

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
use crate::vocabulary::{
    Carrier, ComplexMatrix, Factors, Matrices, RealMatrices, RealMatrix, Region, Triangle,
};

/// `|x|` as a constant.
fn modulus<A: Array>(x: &A) -> A {
    x.detach().activity()
}

/// Largest entry of each matrix, of entries ≥ 0.
fn largest<A: Array>(x: &A, axis: usize) -> A {
    x.max(axis + 1).max(axis)
}

impl<A: Array> RealMatrix<A> {
    fn solved(x: Result<Part<Self>>) -> Self {
        x.map_or_else(Self::failed, Part::into_full)
    }
}

impl<A: Array> Matrices for RealMatrix<A> {
    type Real = Self;
    type Complex = ComplexMatrix<A>;
    const IS_COMPLEX: bool = false;

    fn rows(&self) -> usize {
        self.size(2)
    }
    fn cols(&self) -> usize {
        self.size(1)
    }
    fn epsilon(&self) -> f64 {
        match self.0.as_ref().map(A::dtype) {
            Ok(DType::F64) => f64::EPSILON,
            _ => f64::from(f32::EPSILON),
        }
    }
    fn add(&self, rhs: &Self) -> Self {
        self.zip(rhs, A::add)
    }
    fn sub(&self, rhs: &Self) -> Self {
        self.zip(rhs, A::sub)
    }
    fn mul(&self, rhs: &Self) -> Self {
        self.zip(rhs, A::mul)
    }
    fn mul_real(&self, rhs: &Self) -> Self {
        self.mul(rhs)
    }
    fn scale(&self, c: f64) -> Self {
        self.map(|x| x.scale(c))
    }
    fn matmul(&self, rhs: &Self) -> Self {
        self.zip(rhs, A::matmul)
    }
    fn transpose(&self) -> Self {
        self.at(|x, _| x.transpose())
    }
    fn conj(&self) -> Self {
        self.clone()
    }
    fn slice(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        let narrow = |x: A, axis: usize, range: Range<usize>| {
            let len = range.end.saturating_sub(range.start);
            match (range.start, len == x.shape()[axis]) {
                (0, true) => x,
                (start, _) => x.narrow(axis, start, len),
            }
        };
        self.at(|x, axis| narrow(narrow(x.clone(), axis, rows), axis + 1, cols))
    }
    fn stack(&self, below: &Self) -> Self {
        let axis = self.0.as_ref().map_or(0, |x| x.shape().len().saturating_sub(2));
        self.zip(below, |x, y| A::cat(&[x.clone(), y.clone()], axis))
    }
    fn permute_rows(&self, p: &Permutation) -> Self {
        let index = p.index().clone();
        self.at(|x, axis| {
            let shape = x.shape();
            let column: Vec<usize> = index.shape().iter().copied().chain([1]).collect();
            let index = x.indices(AnyTensor::from(index)).reshape(&column).expand(&shape);
            x.gather(axis, &index)
        })
    }
    fn mask(&self, keep: Region) -> Self {
        self.at(|x, axis| {
            let shape = x.shape();
            let line = |axis: usize| {
                let sizes: Vec<usize> =
                    (0..shape.len()).map(|i| if i == axis { shape[i] } else { 1 }).collect();
                x.counting(shape[axis]).reshape(&sizes)
            };
            let (row, column) = (line(axis), line(axis + 1));
            let outside = match keep {
                Region::Lower(k) => column.greater(&row.shift(k as i64)),
                Region::Upper(k) => row.shift(k as i64).greater(&column),
                Region::Diagonal => row.equal(&column).not(),
            };
            x.fill(&outside.expand(&shape), 0.0)
        })
    }
    fn sum_rows(&self) -> Self {
        self.at(A::sum)
    }
    fn constant(&self, m: usize, n: usize, c: f64) -> Self {
        self.at(|x, axis| {
            let mut shape = x.shape();
            shape.truncate(axis);
            shape.extend([m, n]);
            x.full(&shape, c)
        })
    }
    fn each(&self, values: &[f64]) -> Self {
        let make = |x: &A| -> Result<A> {
            let mut shape = x.shape();
            let axis = shape.len().saturating_sub(2);
            shape.truncate(axis);
            shape.extend([1, 1]);
            let values = AnyTensor::from(Tensor::from_vec(values.to_vec(), &shape)?);
            Ok(x.constant(values.cast(x.dtype())?))
        };
        Self(self.0.as_ref().map_err(Clone::clone).and_then(make))
    }
    fn re(&self) -> Self {
        self.clone()
    }
    fn im(&self) -> Self {
        self.constant(self.rows(), self.cols(), 0.0)
    }
    fn from_parts(re: &Self, _im: &Self) -> Self {
        re.clone()
    }
    fn from_re(re: &Self) -> Self {
        re.clone()
    }
    fn to_complex(&self) -> ComplexMatrix<A> {
        ComplexMatrix { re: self.clone(), im: self.im() }
    }
    fn from_complex(z: &ComplexMatrix<A>) -> Self {
        z.re.clone()
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
        Self(Err(error))
    }
    fn svdvals(&self) -> Self {
        apply(SvdvalsOp, PartKind::Real, &[&self.detached()])
            .map_or_else(Self::failed, Part::into_real)
    }
    fn det(&self) -> Self {
        Self::solved(apply(crate::det::DetOp, PartKind::Full, &[self]))
    }
    fn detached(&self) -> Self {
        self.map(A::detach)
    }
    fn largest(&self) -> Self {
        if self.rows() * self.cols() == 0 {
            return self.constant(1, 1, 0.0);
        }
        self.at(|x, axis| largest(&modulus(x), axis))
    }
    fn activity(&self) -> Self {
        if self.rows() * self.cols() == 0 {
            return self.constant(1, 1, 0.0);
        }
        self.at(|x, axis| largest(&x.activity(), axis))
    }
    fn error(&self) -> Option<LinalgError> {
        match &self.0 {
            Ok(x) if x.shape().len() < 2 => x.elements().err().map(LinalgError::from),
            Ok(_) => None,
            Err(error) => Some(error.clone()),
        }
    }
    fn norms(&self) -> Result<Vec<f64>> {
        let (x, entries) = (self.0.as_ref().map_err(Clone::clone)?, self.entries()?);
        Ok(match self.rows() * self.cols() {
            0 => vec![0.0; x.shape().iter().rev().skip(2).product()],
            size => entries.chunks_exact(size).map(norm).collect(),
        })
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

/// `Σ f(x)²` in blocks of 256 elements, which bounds the growth of rounding errors.
fn sum_of_squares(entries: &[f64], f: impl Fn(f64) -> f64) -> f64 {
    entries.chunks(256).map(|part| part.iter().map(|&x| f(x).powi(2)).sum::<f64>()).sum()
}

/// `‖x‖` without overflow and underflow.
fn norm(entries: &[f64]) -> f64 {
    let sum = sum_of_squares(entries, |x| x);
    if sum.is_normal() {
        return sum.sqrt();
    }
    let largest = entries.iter().fold(0.0f64, |a, x| if x.is_nan() { *x } else { a.max(x.abs()) });
    match largest.is_normal() {
        true => largest * sum_of_squares(entries, |x| x / largest).sqrt(),
        false => largest,
    }
}

impl<A: Array> RealMatrices for RealMatrix<A> {
    fn entries(&self) -> Result<Vec<f64>> {
        let x = self.0.as_ref().map_err(Clone::clone)?.elements()?.cast(DType::F64)?;
        Ok(x.typed::<f64>()?.to_vec()?)
    }
    fn recip(&self) -> Self {
        self.map(A::recip)
    }
    fn exp(&self) -> Self {
        self.map(A::exp)
    }
    fn ln(&self) -> Self {
        self.map(A::ln)
    }
    fn powf(&self, p: f64) -> Self {
        self.map(|x| if p == 0.5 { x.sqrt() } else { x.pow(p) })
    }
    fn within(&self, limit: &Self) -> Self {
        self.zip(limit, |x, limit| {
            let (x, limit) = (modulus(x), limit.detach());
            // The comparison is false for NaN.
            x.indicator(&limit.greater(&x).or(&limit.equal(&x)))
        })
    }
    fn largest_real(&self) -> Self {
        self.largest()
    }
    fn smallest_real(&self) -> Self {
        self.at(|x, axis| x.detach().min(axis + 1).min(axis))
    }
}
