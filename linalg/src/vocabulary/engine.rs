//! [`Matrices`] for engine tensors.

use std::marker::PhantomData;
use std::ops::Range;

use faer::{MatMut, MatRef};
use t4a_algebra::{Field, Numeric, Real};
use t4a_tensor::Tensor;
use t4a_tensor::copy::to_contiguous;
use t4a_tensor::kernels::arithmetic::{
    Add, ComplexPart, Conj, FromParts, Mul, Pow, Recip, Sub, TakePart,
};
use t4a_tensor::kernels::fold::Sum;
use t4a_tensor::kernels::math::{Exp, Ln, Sqrt};
use t4a_tensor::loops::kernel::BindRight;
use t4a_tensor::reduce::reduce;
use t4a_tensor::route::{Path, Route};

use super::kernels::{
    FromComplex, FromReal, HalfDifference, HalfSum, IntoComplex, MaskedRecip, MulReal, Within,
};
use super::{Batched, Matrices, RealMatrices, Region, Triangle};
use crate::batch::{MatrixStatus, ResultBuffer, Views, flops, run};
use crate::error::{LinalgError, Result};
use crate::permutation::Permutation;
use crate::scalar::{LinalgScalar, epsilon};
use crate::table::MatrixOp;
use crate::threads::Work;
use crate::triangular::solve_triangular;

/// Batch axes of a tensor of matrices.
fn batch_of<T: LinalgScalar>(t: &Tensor<T>) -> &[usize] {
    &t.shape()[..t.rank() - 2]
}

fn matmul<T: LinalgScalar>(a: &Tensor<T>, b: &Tensor<T>) -> Result<Tensor<T>> {
    let (m, k, n) = (a.shape()[a.rank() - 2], a.shape()[a.rank() - 1], b.shape()[b.rank() - 1]);
    if batch_of(a) != batch_of(b) || b.shape()[b.rank() - 2] != k {
        let required = "equal batches, columns of the first = rows of the second";
        return Err(
            t4a_tensor::TensorError::shapes("matmul", a.shape(), b.shape(), required).into()
        );
    }
    let mut out = ResultBuffer::<T>::new(batch_of(a), m, n)?;
    let slots = out.mats()?;
    let (lhs, rhs) = (Views::spread("matmul", a)?, Views::spread("matmul", b)?);
    run(
        batch_of(a),
        slots,
        Work::columns(m.min(n), flops(&[2, m, n, k])),
        |_| Ok(()),
        |(), index, out, par| {
            T::matmul(out.as_mut(), lhs.get(index), rhs.get(index), par);
            MatrixStatus::Done
        },
    )?;
    out.matrices(Route::native(Path::GemmLibrary))
}

impl<T: LinalgScalar> Matrices for Batched<T> {
    type Real = Batched<T::R>;
    type Complex = Batched<T::Complex>;
    const IS_COMPLEX: bool = T::IS_COMPLEX;

    fn rows(&self) -> usize {
        self.axis(2)
    }
    fn cols(&self) -> usize {
        self.axis(1)
    }
    fn epsilon(&self) -> f64 {
        epsilon::<T>()
    }
    fn add(&self, rhs: &Self) -> Self {
        self.zip(rhs, Add)
    }
    fn sub(&self, rhs: &Self) -> Self {
        self.zip(rhs, Sub)
    }
    fn mul(&self, rhs: &Self) -> Self {
        self.zip(rhs, Mul)
    }
    fn mul_real(&self, rhs: &Self::Real) -> Self {
        self.zip(rhs, MulReal(PhantomData))
    }
    fn scale(&self, c: f64) -> Self {
        self.map(BindRight(Mul, <T as Numeric>::from_f64(c)))
    }
    fn matmul(&self, rhs: &Self) -> Self {
        self.with(rhs, matmul)
    }
    fn transpose(&self) -> Self {
        self.then(|t| Ok(t.swap_axes(t.rank() - 2, t.rank() - 1)?))
    }
    fn conj(&self) -> Self {
        if T::IS_COMPLEX { self.map(Conj) } else { self.clone() }
    }
    fn slice(&self, rows: Range<usize>, cols: Range<usize>) -> Self {
        self.then(|t| {
            let r = t.rank();
            let t = t.slice_axis(r - 2, rows.start, rows.len(), 1)?;
            Ok(t.slice_axis(r - 1, cols.start, cols.len(), 1)?)
        })
    }
    fn stack(&self, below: &Self) -> Self {
        self.with(below, |a, b| {
            let (upper, lower) = (Views::of("stack", a)?, Views::of("stack", b)?);
            let (m, n) = (self.rows(), self.cols());
            let mut out = ResultBuffer::<T>::new(batch_of(a), m + below.rows(), n)?;
            for (index, mut out) in out.mats()?.into_iter().enumerate() {
                out.as_mut().subrows_mut(0, m).copy_from(upper.get(index));
                out.as_mut().subrows_mut(m, below.rows()).copy_from(lower.get(index));
            }
            out.matrices(Route::native(Path::LoopIndex))
        })
    }
    fn permute_rows(&self, p: &Permutation) -> Self {
        self.then(|t| {
            let (m, n) = (self.rows(), self.cols());
            let order = p.of_rows("permute_rows", batch_of(t), m)?;
            let views = Views::of("permute_rows", t)?;
            let mut out = ResultBuffer::<T>::new(batch_of(t), m, n)?;
            for (index, mut out) in out.mats()?.into_iter().enumerate() {
                let (source, p) = (views.get(index), &order[index * m..(index + 1) * m]);
                for j in 0..n {
                    p.iter().enumerate().for_each(|(i, &row)| {
                        out[(i, j)] = source[(row as usize, j)];
                    });
                }
            }
            out.matrices(Route::native(Path::LoopIndex))
        })
    }
    fn mask(&self, keep: Region) -> Self {
        self.then(|t| {
            let (m, n) = (self.rows(), self.cols());
            let mut out = to_contiguous(t)?;
            if m * n > 0 {
                for (at, row) in out.as_mut_slice()?.chunks_exact_mut(n).enumerate() {
                    let i = (at % m) as isize;
                    let clip = |j: isize| j.clamp(0, n as isize) as usize;
                    let kept = match keep {
                        Region::Lower(k) => 0..clip(i + k + 1),
                        Region::Upper(k) => clip(i + k)..n,
                        Region::Diagonal => clip(i)..clip(i + 1),
                    };
                    row[..kept.start].fill(<T as Numeric>::ZERO);
                    row[kept.end..].fill(<T as Numeric>::ZERO);
                }
            }
            Ok(out)
        })
    }
    fn sum_rows(&self) -> Self {
        self.then(|t| Ok(reduce(Sum, t, &[t.rank() - 2])?))
    }
    fn diagonal(&self) -> Self {
        self.then(|t| {
            let (r, k) = (t.rank(), self.rows().min(self.cols()));
            let square = t.slice_axis(r - 2, 0, k, 1)?.slice_axis(r - 1, 0, k, 1)?;
            Ok(square.diagonal(r - 2, r - 1, 0)?.unsqueeze(r - 2)?)
        })
    }
    fn diagonal_matrix(&self) -> Self {
        self.then(|t| {
            let n = self.cols();
            let mut out = Tensor::<T>::zeros(&[batch_of(t), &[n, n]].concat())?;
            if n > 0 {
                let rows = t.to_vec()?;
                let matrices = out.as_mut_slice()?.chunks_exact_mut(n * n);
                for (matrix, row) in matrices.zip(rows.chunks_exact(n)) {
                    row.iter().enumerate().for_each(|(i, &x)| matrix[i * (n + 1)] = x);
                }
            }
            Ok(out)
        })
    }
    fn herm(&self) -> Self {
        self.zip(&self.transpose(), HalfSum)
    }
    fn skew(&self) -> Self {
        self.zip(&self.transpose(), HalfDifference)
    }
    fn hermitian_from_lower(&self) -> Self {
        self.then(|t| {
            let (n, views) = (self.cols(), Views::of("hermitian_from_lower", t)?);
            let mut out = ResultBuffer::<T>::new(batch_of(t), n, n)?;
            for (index, mut out) in out.mats()?.into_iter().enumerate() {
                mirror_lower(views.get(index), out.as_mut());
            }
            out.matrices(Route::native(Path::LoopIndex))
        })
    }
    fn constant(&self, m: usize, n: usize, c: f64) -> Self {
        self.then(|t| {
            let shape: Vec<usize> = batch_of(t).iter().copied().chain([m, n]).collect();
            Ok(Tensor::full(&[], <T as Numeric>::from_f64(c))?.expand(&shape)?)
        })
    }
    fn each(&self, values: &[f64]) -> Self::Real {
        self.then(|t| {
            let shape: Vec<usize> = batch_of(t).iter().copied().chain([1, 1]).collect();
            let values = values.iter().map(|&x| <T::R as Numeric>::from_f64(x)).collect();
            Ok(Tensor::from_vec(values, &shape)?)
        })
    }
    fn re(&self) -> Self::Real {
        self.map(TakePart(ComplexPart::Re))
    }
    fn im(&self) -> Self::Real {
        self.map(TakePart(ComplexPart::Im))
    }
    fn from_parts(re: &Self::Real, im: &Self::Real) -> Self {
        re.zip(im, FromParts::<T>::new())
    }
    fn from_re(re: &Self::Real) -> Self {
        re.map(FromReal::<T>(PhantomData))
    }
    fn to_complex(&self) -> Self::Complex {
        self.map(IntoComplex)
    }
    fn from_complex(z: &Self::Complex) -> Self {
        z.map(FromComplex(PhantomData::<T>))
    }
    fn modulus(&self) -> Self::Real {
        self.map(TakePart(ComplexPart::Modulus))
    }
    fn solve_triangular(&self, b: &Self, triangle: Triangle) -> Self {
        self.with(b, |t, b| solve_triangular(t, b, triangle))
    }
    fn solve(&self, b: &Self) -> Self {
        self.with(b, crate::solve::solve)
    }
    fn lyapunov(&self, b: &Self) -> Self {
        self.with(b, crate::lyapunov::lyapunov_positive)
    }
    fn operate(op: MatrixOp, operands: &[&Self]) -> Self {
        let tensors = operands.iter().map(|x| x.0.as_ref().map_err(Clone::clone));
        let result = tensors.collect::<Result<Vec<_>>>().and_then(|x| op.forward(&x, false));
        result.map_or_else(Self::failed, |out| out.results[0].full().clone())
    }
    fn failed(error: LinalgError) -> Self {
        Self(Err(error))
    }
    fn svdvals(&self) -> Self::Real {
        self.then(|t| Batched::rows_of(&crate::svd::svdvals(t)?).into_tensor())
    }
    fn det(&self) -> Self {
        self.then(|t| Self::numbers(&crate::det::det(t)?).into_tensor())
    }
    fn detached(&self) -> Self {
        self.clone()
    }
    fn largest(&self) -> Self::Real {
        self.then(|t| {
            let views = Views::of("largest", t)?;
            let mut out = ResultBuffer::<T::R>::new(batch_of(t), 1, 1)?;
            for (index, largest) in out.slices()?.into_iter().enumerate() {
                let a = views.get(index);
                for j in 0..a.ncols() {
                    for i in 0..a.nrows() {
                        largest[0] = Real::max(largest[0], Field::modulus(a[(i, j)]));
                    }
                }
            }
            out.matrices(Route::native(Path::LoopReduce))
        })
    }
    fn error(&self) -> Option<LinalgError> {
        self.0.as_ref().err().cloned()
    }
    fn norms(&self) -> Result<Vec<f64>> {
        let t = self.0.as_ref().map_err(Clone::clone)?;
        let views = Views::of("norms", t)?;
        let count = batch_of(t).iter().product();
        Ok((0..count).map(|index| norm(views.get(index))).collect())
    }
}

/// Writes the strict lower triangle of `a`, its adjoint, and the real part of the diagonal, in tiles: one of two transposed
/// matrices is written across columns.
fn mirror_lower<T: LinalgScalar>(a: MatRef<'_, T>, mut out: MatMut<'_, T>) {
    const TILE: usize = 16;
    let n = a.ncols();
    for first in (0..n).step_by(TILE) {
        for below in (first..n).step_by(TILE) {
            for j in first..n.min(first + TILE) {
                for i in below.max(j + 1)..n.min(below + TILE) {
                    let x = a[(i, j)];
                    out[(i, j)] = x;
                    out[(j, i)] = Field::conj(x);
                }
            }
        }
    }
    for i in 0..n {
        out[(i, i)] = T::from_parts(Field::re(a[(i, i)]), <T::R as Numeric>::ZERO);
    }
}

/// `Σ f(aᵢⱼ)`, by columns: the error is that of m + n roundings, not of m·n.
fn sum_of<T: LinalgScalar>(a: MatRef<'_, T>, f: impl Fn(T) -> f64) -> f64 {
    (0..a.ncols()).map(|j| a.col(j).iter().map(|&x| f(x)).sum::<f64>()).sum()
}

fn norm<T: LinalgScalar>(a: MatRef<'_, T>) -> f64 {
    // The norm of the transpose, whose columns are contiguous.
    let a = if a.col_stride().unsigned_abs() == 1 { a.transpose() } else { a };
    let entries = || a.col_iter().flat_map(|column| column.iter().copied());
    let squares = sum_of(a, |x| Field::abs_sq(x).to_f64());
    if squares.is_normal() {
        return squares.sqrt();
    }
    // The squares overflowed or underflowed.
    let size = |x: T| Field::modulus(x).to_f64();
    let largest =
        entries().map(size).fold(0.0, |a: f64, b| if b > a || b.is_nan() { b } else { a });
    match largest.is_normal() {
        true => largest * sum_of(a, |x| (size(x) / largest).powi(2)).sqrt(),
        false => largest,
    }
}

impl<T> RealMatrices for Batched<T>
where
    T: LinalgScalar<R = T> + t4a_algebra::Float,
{
    fn recip(&self) -> Self {
        self.map(Recip)
    }
    fn exp(&self) -> Self {
        self.map(Exp)
    }
    fn ln(&self) -> Self {
        self.map(Ln)
    }
    fn powf(&self, p: f64) -> Self {
        if p == 0.5 {
            self.map(Sqrt)
        } else {
            self.map(BindRight(Pow, <T as Numeric>::from_f64(p)))
        }
    }
    fn entries(&self) -> Result<Vec<f64>> {
        let t = self.0.as_ref().map_err(Clone::clone)?;
        Ok(t.to_vec()?.into_iter().map(Real::to_f64).collect())
    }
    fn largest_real(&self) -> Self {
        self.largest()
    }
    fn smallest_real(&self) -> Self {
        self.then(|t| {
            let views = Views::of("smallest", t)?;
            let mut out = ResultBuffer::<T>::new(batch_of(t), 1, 1)?;
            for (index, smallest) in out.slices()?.into_iter().enumerate() {
                let a = views.get(index);
                smallest[0] = <T as t4a_algebra::Float>::INFINITY;
                for j in 0..a.ncols() {
                    for i in 0..a.nrows() {
                        smallest[0] = Real::min(smallest[0], a[(i, j)]);
                    }
                }
            }
            out.matrices(Route::native(Path::LoopReduce))
        })
    }
    fn within(&self, limit: &Self) -> Self {
        self.zip(limit, Within)
    }
    fn masked_recip(&self, limit: &Self) -> Self {
        self.zip(limit, MaskedRecip)
    }
}
