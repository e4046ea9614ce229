//! Factorisations of N-dimensional tensors as matrices: some axes form the rows, the others the columns.
//!
//! The axes are permuted, merged, and split again, all recorded on the tape. The rank of the factors depends on the
//! number of row axes, so the caller specifies their types.

use crate::call::Pair;
use crate::eigh::EighOp;
use crate::left_dims::AxisSplit;
use crate::polar::{PolarOp, Side};
use crate::qr::QrOp;
use crate::svd::{SvdOp, Truncation};
use crate::{MatrixOp, Result};
use t4a_diff::Array;
use t4a_tensor::{Tensor, TensorError};

use super::call::{Arranged, Function, ResultOf, ResultsOf, Shapes, parts, plain};
use super::matrix::Matrix;
use super::svd::{leading, rank};

const SVD: &str = "svd_left_dims";
const QR: &str = "qr_left_dims";
const EIGH: &str = "eigh_left_dims";
const POLAR: &str = "polar_left_dims";

fn reshape<A: Array>(x: &Pair<A>, sizes: &[usize]) -> Pair<A> {
    x.map(|x| x.reshape(sizes))
}

/// Matrix of a tensor.
fn matrix<A: Array>(a: &Pair<A>, left: &[usize]) -> Result<Pair<A>> {
    let split = AxisSplit::new(&a.shape(), left)?;
    let sizes = [split.rows().iter().product(), split.cols().iter().product()];
    Ok(a.map(|x| x.permute(split.axes()).reshape(&sizes)))
}

/// A factor with the row axes of the tensor as rows.
fn tall<A: Array>(split: &AxisSplit, x: &Pair<A>) -> Pair<A> {
    let last = x.shape()[1];
    reshape(x, &split.rows().iter().copied().chain([last]).collect::<Vec<_>>())
}

/// A factor with the column axes of the tensor as columns.
fn wide<A: Array>(split: &AxisSplit, x: &Pair<A>) -> Pair<A> {
    let first = x.shape()[0];
    reshape(x, &[first].into_iter().chain(split.cols().iter().copied()).collect::<Vec<_>>())
}

/// Converts a factor to the requested type.
fn factor<F, T: Matrix<F>>(op: &'static str, value: ResultOf<F, T>) -> Result<T> {
    let shape = value.shape();
    if T::RANK != shape.len() || T::COMPLEX != value.is_complex() {
        let required = "a factor type of the same rank, 2 to 8, complex if the input is";
        return Err(TensorError::shape(op, &shape, required).into());
    }
    Ok(T::from_pair(value))
}

/// Vector of a row `1 × k`.
type SingularValuesOf<F, M> = <<M as Matrix<F>>::Single as Matrix<F>>::RealVector;

fn vector<F, M: Matrix<F>>(row: ResultOf<F, M>) -> SingularValuesOf<F, M> {
    <M::Single as Matrix<F>>::real_vector(row)
}

/// Implements [`Function`] for a factorisation whose factors have types that the caller specifies.
macro_rules! factors {
    ($op:ident <$($factor:ident),+> -> $y:ty: |$parts:pat_param| $read:expr) => {
        impl<F, M, $($factor),+> Function<F, M, $y> for $op<'_>
        where
            M: Matrix<F>,
            $($factor: Matrix<F, Array = M::Array>),+
        {
            type Array = M::Array;
            type Info = <M::Single as Matrix<F>>::Info;

            fn operands(a: M) -> Vec<Pair<M::Array>> {
                vec![a.into_pair()]
            }
            fn results(out: ResultsOf<F, M>) -> Result<$y> {
                let $parts = parts(out);
                Ok($read)
            }
            fn info(codes: &Tensor<i32>, like: &M::Array) -> Result<Self::Info> {
                <M::Single as Matrix<F>>::info(codes, like)
            }
        }
    };
}

/// [`SvdOp`] of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct SvdLeftDimsOp<'a> {
    /// Axes that form the rows.
    pub left: &'a [usize],
    /// Selects the kept triplets; `None` keeps all.
    pub truncation: Option<&'a Truncation>,
}

impl Arranged for SvdLeftDimsOp<'_> {
    fn name(&self) -> &'static str {
        SVD
    }
    fn op(&self) -> MatrixOp {
        SvdOp::THIN.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        self.truncation.map_or(Ok(()), Truncation::validate)?;
        Ok(vec![matrix(&a[0], self.left)?])
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, of: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let split = AxisSplit::new(&of[0], self.left)?;
        let p = match self.truncation {
            Some(truncation) => rank(&out[1], truncation)?.0,
            None => out[1].shape()[1],
        };
        let out = leading(out, p);
        Ok(vec![tall(&split, &out[0]), out[1].clone(), wide(&split, &out[2])])
    }
}

factors!(SvdLeftDimsOp <L, R> -> (L, SingularValuesOf<F, L>, R): |[u, s, vh]| {
    (factor(SVD, u)?, vector::<F, L>(s), factor(SVD, vh)?)
});

/// `A = U diag(S) Vᴴ` with the axes `left` as rows: `[left…, k]`, `[k]`, `[k, right…]`; with a truncation the kept
/// triplets only.
///
/// # Errors
/// As [`svd`](super::svd()) and [`svd_truncated`](super::svd_truncated); `Tensor` for axes out of range or repeated,
/// and for requested factors of the wrong rank.
pub fn svd_left_dims<F, M, L, R>(
    a: M,
    left: &[usize],
    truncation: Option<&Truncation>,
) -> Result<(L, SingularValuesOf<F, L>, R)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    plain(SvdLeftDimsOp { left, truncation }, a)
}

/// [`QrOp`] of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct QrLeftDimsOp<'a> {
    /// Axes that form the rows.
    pub left: &'a [usize],
}

impl Arranged for QrLeftDimsOp<'_> {
    fn name(&self) -> &'static str {
        QR
    }
    fn op(&self) -> MatrixOp {
        QrOp::THIN.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![matrix(&a[0], self.left)?])
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, of: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let split = AxisSplit::new(&of[0], self.left)?;
        Ok(vec![tall(&split, &out[0]), wide(&split, &out[1])])
    }
}

factors!(QrLeftDimsOp <L, R> -> (L, R): |[q, r]| (factor(QR, q)?, factor(QR, r)?));

/// `A = Q R` with the axes `left` as rows: `[left…, k]`, `[k, right…]`.
///
/// # Errors
/// As [`qr`](super::qr()); `Tensor` as in [`svd_left_dims`].
pub fn qr_left_dims<F, M, L, R>(a: M, left: &[usize]) -> Result<(L, R)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    plain(QrLeftDimsOp { left }, a)
}

/// [`EighOp`] of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct EighLeftDimsOp<'a> {
    /// Axes that form the rows.
    pub left: &'a [usize],
}

impl Arranged for EighLeftDimsOp<'_> {
    fn name(&self) -> &'static str {
        EIGH
    }
    fn op(&self) -> MatrixOp {
        EighOp::DEFAULT.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![matrix(&a[0], self.left)?])
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, of: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let split = AxisSplit::new(&of[0], self.left)?;
        Ok(vec![out[0].clone(), tall(&split, &out[1])])
    }
}

factors!(EighLeftDimsOp <L> -> (SingularValuesOf<F, L>, L): |[e, v]| {
    (vector::<F, L>(e), factor(EIGH, v)?)
});

/// `(A + Aᴴ)/2 = V diag(E) Vᴴ` with the axes `left` as rows: `[n]`, `[left…, n]`.
///
/// # Errors
/// As [`eigh`](super::eigh()); `Tensor` as in [`svd_left_dims`].
pub fn eigh_left_dims<F, M, L>(a: M, left: &[usize]) -> Result<(SingularValuesOf<F, L>, L)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
{
    plain(EighLeftDimsOp { left }, a)
}

/// [`PolarOp`] of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct PolarLeftDimsOp<'a> {
    /// Axes that form the rows.
    pub left: &'a [usize],
    /// Side of the positive factor.
    pub side: Side,
}

impl Arranged for PolarLeftDimsOp<'_> {
    fn name(&self) -> &'static str {
        POLAR
    }
    fn op(&self) -> MatrixOp {
        PolarOp { side: self.side }.into()
    }
    fn before<A: Array>(&self, a: Vec<Pair<A>>, _: bool) -> Result<Vec<Pair<A>>> {
        Ok(vec![matrix(&a[0], self.left)?])
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, of: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        let split = AxisSplit::new(&of[0], self.left)?;
        let sizes = [split.rows(), split.cols()].concat();
        let half = match self.side {
            Side::Right => split.cols(),
            Side::Left => split.rows(),
        };
        let u = out[0].map(|u| u.reshape(&sizes).permute(&split.inverse()));
        Ok(vec![u, reshape(&out[1], &[half, half].concat())])
    }
}

factors!(PolarLeftDimsOp <P> -> (M, P): |[u, p]| (M::from_pair(u), factor(POLAR, p)?));

/// `A = U P` (right) or `A = P U` (left) with the axes `left` as rows: `U` has the axes of `a`, `P`
/// has `[right…, right…]` or `[left…, left…]`.
///
/// # Errors
/// As [`polar`](super::polar()); `Tensor` as in [`svd_left_dims`].
pub fn polar_left_dims<F, M, P>(a: M, left: &[usize], side: Side) -> Result<(M, P)>
where
    M: Matrix<F>,
    P: Matrix<F, Array = M::Array>,
{
    plain(PolarLeftDimsOp { left, side }, a)
}
