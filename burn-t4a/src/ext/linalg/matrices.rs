//! The vocabulary of derivative rules on the primitives of a Burn backend.
//!
//! Each operation is one of Burn's, or a linear system of [`LinalgOps`]; on an `Autodiff` backend
//! it is recorded, which is how second derivatives come about. An error on the way is carried along
//! and surfaces at the end of the rule.

use std::ops::Range;

use burn_backend::tensor::FloatTensor;
use burn_backend::{
    FloatDType, Scalar, Shape, Slice, TensorData, TensorMetadata, get_device_settings,
};
use t4a_linalg::triangular::Triangle;
use t4a_linalg::vocabulary::{Matrices, RealMatrices, Region};
use t4a_linalg::{LinalgError, Op, Permutation, Result};

use super::ops::{LinalgOps, read};
use super::value::Value;

/// Real matrices `[…, m, n]`.
#[derive(Clone, Debug)]
pub(super) struct RealMatrix<B: LinalgOps>(Result<FloatTensor<B>>);

/// Complex matrices as pairs of real ones.
#[derive(Clone, Debug)]
pub(super) struct ComplexMatrix<B: LinalgOps> {
    re: RealMatrix<B>,
    im: RealMatrix<B>,
}

/// Implementors of the vocabulary over `B`.
pub(super) trait Entries<B: LinalgOps>:
    Matrices<Real = RealMatrix<B>, Complex = ComplexMatrix<B>>
{
    fn from_value(value: &Value<B>) -> Self;
    fn into_value(self) -> Result<Value<B>>;
}

impl<B: LinalgOps> Entries<B> for RealMatrix<B> {
    fn from_value(value: &Value<B>) -> Self {
        match value {
            Value::Real(x) | Value::Complex { re: x, .. } => Self(Ok(x.clone())),
        }
    }

    fn into_value(self) -> Result<Value<B>> {
        self.0.map(Value::Real)
    }
}

impl<B: LinalgOps> Entries<B> for ComplexMatrix<B> {
    fn from_value(value: &Value<B>) -> Self {
        match value {
            Value::Real(x) => RealMatrix(Ok(x.clone())).to_complex(),
            Value::Complex { re, im } => {
                Self { re: RealMatrix(Ok(re.clone())), im: RealMatrix(Ok(im.clone())) }
            }
        }
    }

    fn into_value(self) -> Result<Value<B>> {
        Ok(Value::Complex { re: self.re.0?, im: self.im.0? })
    }
}

/// `op` of these matrices, one result.
fn system<B: LinalgOps, M: Entries<B>>(op: Op, inputs: &[&M]) -> Result<Value<B>> {
    let inputs = inputs.iter().map(|&x| x.clone().into_value()).collect::<Result<Vec<_>>>()?;
    let mut parts = B::linalg_forward(&op, &inputs, false)?.parts;
    Ok(parts.swap_remove(0))
}

impl<B: LinalgOps> RealMatrix<B> {
    fn map(&self, f: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>) -> Self {
        Self(self.0.clone().map(f))
    }

    fn zip(
        &self,
        rhs: &Self,
        f: impl FnOnce(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    ) -> Self {
        Self(self.0.clone().and_then(|a| Ok(f(a, rhs.0.clone()?))))
    }

    fn axis(&self, from_last: usize) -> usize {
        self.0.as_ref().map_or(0, |t| t.shape()[t.rank() - from_last])
    }

    fn fail(error: LinalgError) -> Self {
        Self(Err(error))
    }

    fn solved(x: Result<Value<B>>) -> Self {
        x.map_or_else(Self::fail, |x| Self::from_value(&x))
    }
}

/// The shape with another matrix.
fn with_matrix(shape: &Shape, m: usize, n: usize) -> Shape {
    let batch = shape.num_dims() - 2;
    shape.iter().copied().take(batch).chain([m, n]).collect()
}

fn float_dtype<B: LinalgOps>(t: &FloatTensor<B>) -> FloatDType {
    t.dtype().into()
}

/// A mask `[…, m, n]`, true where `keep` does not hold.
fn outside<B: LinalgOps>(
    t: &FloatTensor<B>,
    keep: impl Fn(usize, usize) -> bool,
) -> burn_backend::tensor::BoolTensor<B> {
    let shape = t.shape();
    let rank = shape.num_dims();
    let (m, n) = (shape[rank - 2], shape[rank - 1]);
    let entries: Vec<bool> = (0..m * n).map(|at| !keep(at / n, at % n)).collect();
    let one: Vec<usize> = (0..rank - 2).map(|_| 1).chain([m, n]).collect();
    let device = B::float_device(t);
    let settings = get_device_settings::<B>(&device);
    let data = TensorData::new(entries, one).convert_dtype(settings.bool_dtype.into());
    B::bool_expand(B::bool_from_data(data, &device), shape)
}

impl<B: LinalgOps> Matrices for RealMatrix<B> {
    type Real = Self;
    type Complex = ComplexMatrix<B>;
    const IS_COMPLEX: bool = false;

    fn rows(&self) -> usize {
        self.axis(2)
    }
    fn cols(&self) -> usize {
        self.axis(1)
    }
    fn epsilon(&self) -> f64 {
        match self.0.as_ref().map(|t| float_dtype::<B>(t)) {
            Ok(FloatDType::F64) => f64::EPSILON,
            _ => f32::EPSILON as f64,
        }
    }
    fn add(&self, rhs: &Self) -> Self {
        self.zip(rhs, B::float_add)
    }
    fn sub(&self, rhs: &Self) -> Self {
        self.zip(rhs, B::float_sub)
    }
    fn mul(&self, rhs: &Self) -> Self {
        self.zip(rhs, B::float_mul)
    }
    fn mul_real(&self, rhs: &Self) -> Self {
        self.mul(rhs)
    }
    fn scale(&self, c: f64) -> Self {
        self.map(|t| B::float_mul_scalar(t, Scalar::Float(c)))
    }
    fn matmul(&self, rhs: &Self) -> Self {
        self.zip(rhs, B::float_matmul)
    }
    fn transpose(&self) -> Self {
        self.map(|t| {
            let rank = t.rank();
            B::float_swap_dims(t, rank - 2, rank - 1)
        })
    }
    fn conj(&self) -> Self {
        self.clone()
    }
    fn slice(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        if rows == (0..self.rows()) && cols == (0..self.cols()) {
            return self.clone();
        }
        self.map(|t| {
            let rank = t.rank();
            let all = (0..rank - 2).map(|_| Slice::full());
            let slice = |r: Range<usize>| Slice::from(r.start as isize..r.end as isize);
            let slices: Vec<Slice> = all.chain([slice(rows), slice(cols)]).collect();
            B::float_slice(t, &slices)
        })
    }
    fn stack(&self, below: &Self) -> Self {
        self.zip(below, |a, b| {
            let rank = a.rank();
            B::float_cat(vec![a, b], rank - 2)
        })
    }
    fn permute_rows(&self, p: &Permutation) -> Self {
        let index = match p.index().to_vec() {
            Ok(index) => index,
            Err(error) => return Self::fail(error.into()),
        };
        self.map(|t| {
            let shape = t.shape();
            let rank = shape.num_dims();
            let device = B::float_device(&t);
            let dtype = get_device_settings::<B>(&device).int_dtype;
            let column = with_matrix(&shape, shape[rank - 2], 1);
            let data = TensorData::new(index, column).convert_dtype(dtype.into());
            let index = B::int_expand(B::int_from_data(data, &device), shape);
            B::float_gather(rank - 2, t, index)
        })
    }
    fn mask(&self, keep: Region) -> Self {
        self.map(|t| {
            let outside = outside::<B>(&t, |i, j| keep.contains(i, j));
            B::float_mask_fill(t, outside, Scalar::Float(0.0))
        })
    }
    fn sum_rows(&self) -> Self {
        self.map(|t| {
            let rank = t.rank();
            B::float_sum_dim(t, rank - 2)
        })
    }
    fn constant(&self, m: usize, n: usize, c: f64) -> Self {
        self.map(|t| {
            let shape = with_matrix(&t.shape(), m, n);
            B::float_full(shape, Scalar::Float(c), &B::float_device(&t), float_dtype::<B>(&t))
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
    fn to_complex(&self) -> ComplexMatrix<B> {
        ComplexMatrix { re: self.clone(), im: self.im() }
    }
    fn from_complex(z: &ComplexMatrix<B>) -> Self {
        z.re.clone()
    }
    fn solve_triangular(&self, b: &Self, triangle: Triangle) -> Self {
        Self::solved(system(Op::SolveTriangular(triangle), &[self, b]))
    }
    fn solve(&self, b: &Self) -> Self {
        Self::solved(system(Op::Solve, &[self, b]))
    }
    fn lyapunov(&self, b: &Self) -> Self {
        Self::solved(system(Op::Lyapunov, &[self, b]))
    }
    fn svdvals(&self) -> Self {
        Self::solved(system(Op::SvdVals, &[&self.detached()]))
    }
    fn det(&self) -> Self {
        Self::solved(system(Op::Det, &[self]))
    }
    fn detached(&self) -> Self {
        self.map(B::float_detach)
    }
    fn largest(&self) -> Self {
        if self.rows() * self.cols() == 0 {
            return self.constant(1, 1, 0.0);
        }
        self.map(|t| {
            let rank = t.rank();
            let sizes = B::float_abs(B::float_detach(t));
            B::float_detach(B::float_max_dim(B::float_max_dim(sizes, rank - 1), rank - 2))
        })
    }
    fn error(&self) -> Option<LinalgError> {
        self.0.as_ref().err().cloned()
    }
    fn norms(&self) -> Result<Vec<f64>> {
        let t = self.0.clone()?;
        let size = self.rows() * self.cols();
        let count: usize = t.shape().iter().rev().skip(2).product();
        if size == 0 {
            return Ok(vec![0.0; count]);
        }
        let values: Vec<f64> = read::<B>(t)?.iter::<f64>().collect();
        let norm = |matrix: &[f64]| matrix.iter().map(|x| x * x).sum::<f64>().sqrt();
        Ok(values.chunks_exact(size).map(norm).collect())
    }
}

impl<B: LinalgOps> RealMatrices for RealMatrix<B> {
    fn recip(&self) -> Self {
        self.map(B::float_recip)
    }
    fn exp(&self) -> Self {
        self.map(B::float_exp)
    }
    fn ln(&self) -> Self {
        self.map(B::float_log)
    }
    fn powf(&self, p: f64) -> Self {
        match p {
            0.5 => self.map(B::float_sqrt),
            _ => self.map(|t| B::float_powf_scalar(t, Scalar::Float(p))),
        }
    }
    fn within(&self, limit: &Self) -> Self {
        self.zip(limit, |x, limit| {
            let (device, dtype) = (B::float_device(&x), float_dtype::<B>(&x));
            let whole = x.shape();
            let limit = B::float_expand(B::float_detach(limit), whole);
            let bools = get_device_settings::<B>(&device).bool_dtype;
            let inside = B::float_lower_equal(B::float_abs(B::float_detach(x)), limit, bools);
            B::bool_into_float(inside, dtype)
        })
    }
    fn largest_real(&self) -> Self {
        self.largest()
    }
}

impl<B: LinalgOps> ComplexMatrix<B> {
    fn both(&self, f: impl Fn(&RealMatrix<B>) -> RealMatrix<B>) -> Self {
        Self { re: f(&self.re), im: f(&self.im) }
    }

    fn product(
        &self,
        rhs: &Self,
        times: impl Fn(&RealMatrix<B>, &RealMatrix<B>) -> RealMatrix<B>,
    ) -> Self {
        Self {
            re: times(&self.re, &rhs.re).sub(&times(&self.im, &rhs.im)),
            im: times(&self.re, &rhs.im).add(&times(&self.im, &rhs.re)),
        }
    }

    fn fail(error: LinalgError) -> Self {
        Self { re: RealMatrix::fail(error.clone()), im: RealMatrix::fail(error) }
    }

    fn solved(x: Result<Value<B>>) -> Self {
        x.map_or_else(Self::fail, |x| Self::from_value(&x))
    }
}

impl<B: LinalgOps> Matrices for ComplexMatrix<B> {
    type Real = RealMatrix<B>;
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
        self.product(rhs, |a, b| a.mul(b))
    }
    fn mul_real(&self, rhs: &RealMatrix<B>) -> Self {
        self.both(|x| x.mul(rhs))
    }
    fn scale(&self, c: f64) -> Self {
        self.both(|x| x.scale(c))
    }
    fn matmul(&self, rhs: &Self) -> Self {
        self.product(rhs, |a, b| a.matmul(b))
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
    fn re(&self) -> RealMatrix<B> {
        self.re.clone()
    }
    fn im(&self) -> RealMatrix<B> {
        self.im.clone()
    }
    fn from_parts(re: &RealMatrix<B>, im: &RealMatrix<B>) -> Self {
        Self { re: re.clone(), im: im.clone() }
    }
    fn from_re(re: &RealMatrix<B>) -> Self {
        re.to_complex()
    }
    fn to_complex(&self) -> Self {
        self.clone()
    }
    fn from_complex(z: &Self) -> Self {
        z.clone()
    }
    fn solve_triangular(&self, b: &Self, triangle: Triangle) -> Self {
        Self::solved(system(Op::SolveTriangular(triangle), &[self, b]))
    }
    fn solve(&self, b: &Self) -> Self {
        Self::solved(system(Op::Solve, &[self, b]))
    }
    fn lyapunov(&self, b: &Self) -> Self {
        Self::solved(system(Op::Lyapunov, &[self, b]))
    }
    fn svdvals(&self) -> RealMatrix<B> {
        RealMatrix::solved(system(Op::SvdVals, &[&self.detached()]))
    }
    fn det(&self) -> Self {
        Self::solved(system(Op::Det, &[self]))
    }
    fn detached(&self) -> Self {
        self.both(RealMatrix::detached)
    }
    fn largest(&self) -> RealMatrix<B> {
        let squares = self.re.mul(&self.re).add(&self.im.mul(&self.im));
        squares.largest().powf(0.5)
    }
    fn error(&self) -> Option<LinalgError> {
        self.re.error().or_else(|| self.im.error())
    }
    fn norms(&self) -> Result<Vec<f64>> {
        let (re, im) = (self.re.norms()?, self.im.norms()?);
        Ok(re.iter().zip(&im).map(|(a, b)| a.hypot(*b)).collect())
    }
}
