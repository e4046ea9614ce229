//! The vocabulary over any [`Array`]: real matrices are arrays, complex ones pairs of arrays.
//!
//! Systems and values inside of a rule are operations on the arrays ([`Array::apply`]), so that a
//! tape records each as one node and duals run its rule. An error on the way is carried along and
//! surfaces at the end of the rule.

use std::ops::Range;

use t4a_diff::array::Flags as _;
use t4a_diff::{Array, Integers, Value};
use t4a_tensor::{AnyTensor, DType};

use super::{Matrices, RealMatrices, Region};
use crate::error::{LinalgError, Result};
use crate::lyapunov::LyapunovOp;
use crate::operation::{Kind, Linalg, MatrixOp, Over, Part};
use crate::permutation::Permutation;
use crate::solve::SolveOp;
use crate::spectrum::{Carrier, Factors, Spectral, SpectralOperation};
use crate::svd::SvdvalsOp;
use crate::triangular::{SolveTriangularOp, Triangle};

/// Real matrices `[…, m, n]`, or the first error on the way to them.
#[derive(Clone, Debug)]
pub struct RealMatrix<A>(Result<A>);

/// Complex matrices as pairs of real ones.
#[derive(Clone, Debug)]
pub struct ComplexMatrix<A> {
    re: RealMatrix<A>,
    im: RealMatrix<A>,
}

/// The arrays of these parts, one behind the other.
fn arrays<A: Array, M: Over<A>>(parts: Vec<Part<M>>) -> Result<Vec<Value<A>>> {
    let mut arrays = Vec::new();
    for part in parts {
        M::write(part, &mut arrays)?;
    }
    Ok(arrays.into_iter().map(Value::Float).collect())
}

/// The first result of an operation on matrices of this type.
fn apply<A: Array, M: Over<A>>(
    op: impl Into<MatrixOp>,
    kind: Kind,
    inputs: &[&M],
) -> Result<Part<M>> {
    let inputs = arrays(inputs.iter().map(|&x| Part::Full(x.clone())).collect())?;
    let op = Linalg { op: op.into(), complex: M::IS_COMPLEX };
    let out = A::apply(&op, &inputs, &vec![false; inputs.len()])?;
    M::read(kind, &mut out.results.into_iter())
}

/// The result of an operation of second derivatives.
fn spectral<A: Array, M: Over<A>>(op: Spectral, parts: Vec<Part<M>>) -> Result<Part<M>> {
    let op = SpectralOperation { op, complex: M::IS_COMPLEX };
    let inputs = arrays(parts)?;
    let out = A::apply(&op, &inputs, &vec![false; inputs.len()])?;
    M::read(op.op.result(), &mut out.results.into_iter())
}

fn gradient<A: Array, M: Over<A>>(
    factors: &Factors<M>,
    carrier: Carrier<'_, M>,
    c: &M::Real,
) -> Result<M> {
    let parts = factors.parts(carrier, Part::Real(c.clone()));
    Ok(spectral(Spectral::Gradient(factors.of), parts)?.into_full())
}

fn tangent<A: Array, M: Over<A>>(
    factors: &Factors<M>,
    carrier: Carrier<'_, M>,
    da: &M,
) -> Result<M::Real> {
    let parts = factors.parts(carrier, Part::Full(da.clone()));
    Ok(spectral(Spectral::Tangent(factors.of), parts)?.into_real())
}

fn unsplit<A: Array, M: Over<A>>(gradient: M, a: &M, factors: Factors<M>) -> Result<M> {
    let [u, s, v] = factors.detached();
    let parts = vec![Part::Full(a.clone()), Part::Full(gradient), u, s, v];
    Ok(spectral(Spectral::Unsplit(factors.of), parts)?.into_full())
}

fn unsplit_eigenvectors<A: Array, M: Over<A>>(
    gradient: M,
    a: &M,
    values: &M::Complex,
    vectors: &M::Complex,
) -> Result<M> {
    let factors = [values, vectors].map(|x| Part::Complex(x.detached()));
    let parts = [Part::Full(a.clone()), Part::Full(gradient)].into_iter().chain(factors);
    Ok(spectral(Spectral::UnsplitEigenvectors, parts.collect())?.into_full())
}

impl<A: Array> RealMatrix<A> {
    /// Matrices `[…, m, n]`.
    pub fn new(array: A) -> Self {
        let shape = array.shape();
        // An array that carries an error has no shape.
        if shape.len() < 2
            && let Some(error) = array.elements().err()
        {
            return Self(Err(error.into()));
        }
        match shape.len() {
            0 | 1 => Self(Err(LinalgError::NotMatrix { op: "matrices", shape })),
            _ => Self(Ok(array)),
        }
    }

    /// The array.
    ///
    /// # Errors
    /// The first error of the operations that led here.
    pub fn into_array(self) -> Result<A> {
        self.0
    }

    fn map(&self, f: impl FnOnce(&A) -> A) -> Self {
        Self(self.0.as_ref().map(f).map_err(Clone::clone))
    }

    /// With the number of the last axis but one.
    fn at(&self, f: impl FnOnce(&A, usize) -> A) -> Self {
        self.map(|x| {
            // Two axes at least, unless x carries an error of its own, which the result will carry.
            let rank = x.shape().len();
            if rank < 2 { x.clone() } else { f(x, rank - 2) }
        })
    }

    fn zip(&self, rhs: &Self, f: impl FnOnce(&A, &A) -> A) -> Self {
        Self(match (&self.0, &rhs.0) {
            (Ok(x), Ok(y)) => Ok(f(x, y)),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        })
    }

    fn size(&self, from_last: usize) -> usize {
        let shape = self.0.as_ref().map(A::shape).unwrap_or_default();
        shape.len().checked_sub(from_last).map_or(0, |axis| shape[axis])
    }

    fn failed(error: LinalgError) -> Self {
        Self(Err(error))
    }

    fn solved(x: Result<Part<Self>>) -> Self {
        x.map_or_else(Self::failed, Part::into_full)
    }
}

/// `|x|` as a constant.
fn modulus<A: Array>(x: &A) -> A {
    x.detach().activity()
}

/// Largest entry of each matrix, of entries ≥ 0.
fn largest<A: Array>(x: &A, axis: usize) -> A {
    x.max(axis + 1).max(axis)
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
        Self::solved(apply(SolveTriangularOp { triangle }, Kind::Full, &[self, b]))
    }
    fn solve(&self, b: &Self) -> Self {
        Self::solved(apply(SolveOp, Kind::Full, &[self, b]))
    }
    fn lyapunov(&self, b: &Self) -> Self {
        Self::solved(apply(LyapunovOp, Kind::Full, &[self, b]))
    }
    fn svdvals(&self) -> Self {
        apply(SvdvalsOp, Kind::Real, &[&self.detached()]).map_or_else(Self::failed, Part::into_real)
    }
    fn det(&self) -> Self {
        Self::solved(apply(crate::det::DetOp, Kind::Full, &[self]))
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
        let x = self.0.as_ref().map_err(Clone::clone)?.elements()?;
        let (m, n) = (self.rows(), self.cols());
        let count: usize = x.shape().iter().rev().skip(2).product();
        if m * n == 0 {
            return Ok(vec![0.0; count]);
        }
        let wide = x.cast(DType::F64)?;
        let entries = wide.typed::<f64>()?.to_vec()?;
        Ok(entries.chunks_exact(m * n).map(norm).collect())
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
    fn unsplit(gradient: Self, a: &Self, factors: Factors<Self>) -> Result<Self> {
        unsplit(gradient, a, factors)
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

/// `‖x‖`, also where squares leave the range.
fn norm(entries: &[f64]) -> f64 {
    let sum = entries.iter().map(|x| x * x).sum::<f64>();
    if sum.is_normal() {
        return sum.sqrt();
    }
    let largest = entries.iter().fold(0.0f64, |a, x| if x.is_nan() { *x } else { a.max(x.abs()) });
    match largest.is_normal() {
        true => largest * entries.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt(),
        false => largest,
    }
}

impl<A: Array> RealMatrices for RealMatrix<A> {
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
            // NaN is within nothing.
            x.indicator(&limit.greater(&x).or(&limit.equal(&x)))
        })
    }
    fn largest_real(&self) -> Self {
        self.largest()
    }
}

impl<A: Array> ComplexMatrix<A> {
    /// `re + i im`.
    pub fn new(re: A, im: A) -> Self {
        Self { re: RealMatrix::new(re), im: RealMatrix::new(im) }
    }

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
        let failed = |error: LinalgError| Self {
            re: RealMatrix::failed(error.clone()),
            im: RealMatrix::failed(error),
        };
        x.map_or_else(failed, Part::into_full)
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
        Self::solved(apply(SolveTriangularOp { triangle }, Kind::Full, &[self, b]))
    }
    fn solve(&self, b: &Self) -> Self {
        Self::solved(apply(SolveOp, Kind::Full, &[self, b]))
    }
    fn lyapunov(&self, b: &Self) -> Self {
        Self::solved(apply(LyapunovOp, Kind::Full, &[self, b]))
    }
    fn svdvals(&self) -> RealMatrix<A> {
        apply(SvdvalsOp, Kind::Real, &[&self.detached()])
            .map_or_else(RealMatrix::failed, Part::into_real)
    }
    fn det(&self) -> Self {
        Self::solved(apply(crate::det::DetOp, Kind::Full, &[self]))
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
    fn unsplit(gradient: Self, a: &Self, factors: Factors<Self>) -> Result<Self> {
        unsplit(gradient, a, factors)
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

/// An array of the iterator.
pub(crate) fn next<A>(arrays: &mut impl Iterator<Item = A>) -> A {
    arrays.next().unwrap_or_else(|| unreachable!("as many arrays as the kinds have"))
}

fn real<A: Array>(arrays: &mut impl Iterator<Item = A>) -> RealMatrix<A> {
    RealMatrix::new(next(arrays))
}

fn complex<A: Array>(arrays: &mut impl Iterator<Item = A>) -> ComplexMatrix<A> {
    ComplexMatrix { re: real(arrays), im: real(arrays) }
}

impl<A: Array> Over<A> for RealMatrix<A> {
    fn read(kind: Kind, arrays: &mut impl Iterator<Item = A>) -> Result<Part<Self>> {
        Ok(match kind {
            Kind::Full => Part::Full(real(arrays)),
            Kind::Real => Part::Real(real(arrays)),
            Kind::Complex => Part::Complex(complex(arrays)),
        })
    }

    fn write(part: Part<Self>, into: &mut Vec<A>) -> Result<()> {
        match part {
            Part::Full(x) | Part::Real(x) => into.push(x.0?),
            Part::Complex(z) => into.extend([z.re.0?, z.im.0?]),
        }
        Ok(())
    }
}

impl<A: Array> Over<A> for ComplexMatrix<A> {
    fn read(kind: Kind, arrays: &mut impl Iterator<Item = A>) -> Result<Part<Self>> {
        Ok(match kind {
            Kind::Full => Part::Full(complex(arrays)),
            Kind::Real => Part::Real(real(arrays)),
            Kind::Complex => Part::Complex(complex(arrays)),
        })
    }

    fn write(part: Part<Self>, into: &mut Vec<A>) -> Result<()> {
        match part {
            Part::Real(x) => into.push(x.0?),
            Part::Full(z) | Part::Complex(z) => into.extend([z.re.0?, z.im.0?]),
        }
        Ok(())
    }
}
