//! Factorisations of N-dimensional tensors as matrices: some axes form the rows, the others the columns.
//!
//! The axes are permuted, merged, and split again, all recorded on the tape. The rank of the factors depends on the
//! number of row axes, so the caller specifies their types.

// The signatures contain tuples of types that the caller specifies.
#![allow(clippy::type_complexity)]

use crate::call::{Pair, check_tangents, run, with_status, with_tangents};
use crate::eigh::EighOp;
use crate::left_dims::AxisSplit;
use crate::polar::{PolarOp, Side};
use crate::qr::{Columns, QrOp};
use crate::svd::{SvdOp, Truncation, Vectors};
use crate::{Degeneracy, MatrixOp, Result};
use t4a_diff::Array;
use t4a_tensor::TensorError;

use super::call::{ResultOf, ResultsOf};
use super::matrix::Matrix;
use super::svd::{leading_parts, rank};

fn reshape<A: Array>(x: &Pair<A>, sizes: &[usize]) -> Pair<A> {
    x.map(|x| x.reshape(sizes))
}

/// Matrix of a tensor.
fn matrix<A: Array>(a: &Pair<A>, split: &AxisSplit) -> Pair<A> {
    let sizes = [split.rows().iter().product(), split.cols().iter().product()];
    a.map(|x| x.permute(split.axes()).reshape(&sizes))
}

/// Applies `op` to the matrix of a tensor.
fn factor<F, M: Matrix<F>>(
    op: impl Into<MatrixOp>,
    a: M,
    left: &[usize],
) -> Result<(AxisSplit, ResultsOf<F, M>)> {
    let a = a.into_pair();
    let split = AxisSplit::new(&a.shape(), left)?;
    let out = run(op, &[matrix(&a, &split)])?;
    Ok((split, out.results))
}

/// [`factor`] with the status of the matrix.
fn factor_ex<F, M: Matrix<F>>(
    op: impl Into<MatrixOp>,
    a: M,
    left: &[usize],
) -> Result<(AxisSplit, ResultsOf<F, M>, SingleInfo<F, M>)> {
    let a = a.into_pair();
    let split = AxisSplit::new(&a.shape(), left)?;
    let (out, info) = with_status(op, vec![matrix(&a, &split)])?;
    Ok((split, out.results, <M::Single as Matrix<F>>::info(&info, &a.re)?))
}

/// [`factor`] with tangents.
fn factor_jvp<F, M: Matrix<F>>(
    op: impl Into<MatrixOp>,
    a: M,
    da: M,
    left: &[usize],
) -> Result<(AxisSplit, ResultsOf<F, M>, ResultsOf<F, M>)> {
    let (op, a, da) = (op.into(), a.into_pair(), da.into_pair());
    check_tangents(op.name(), std::slice::from_ref(&a), std::slice::from_ref(&da))?;
    let split = AxisSplit::new(&a.shape(), left)?;
    let (out, tangents) = with_tangents(op, &[matrix(&a, &split)], &[matrix(&da, &split)])?;
    Ok((split, out.results, tangents))
}

/// Status of one matrix, `[1]`.
type SingleInfo<F, M> = <<M as Matrix<F>>::Single as Matrix<F>>::Info;

/// Reshapes a factor to `sizes` and converts it to the requested type.
fn shaped<F, T: Matrix<F>>(op: &'static str, value: ResultOf<F, T>, sizes: &[usize]) -> Result<T> {
    if T::RANK != sizes.len() || T::COMPLEX != value.is_complex() {
        let required = "a factor type of the same rank, 2 to 8, complex if the input is";
        return Err(TensorError::shape(op, sizes, required).into());
    }
    Ok(T::from_pair(reshape(&value, sizes)))
}

/// Vector of a row `1 × k`.
type SingularValuesOf<F, M> = <<M as Matrix<F>>::Single as Matrix<F>>::RealVector;

fn vector<F, M: Matrix<F>>(row: ResultOf<F, M>) -> SingularValuesOf<F, M> {
    <M::Single as Matrix<F>>::real_vector(row)
}

fn with(sizes: &[usize], last: usize) -> Vec<usize> {
    sizes.iter().copied().chain([last]).collect()
}

fn after(first: usize, sizes: &[usize]) -> Vec<usize> {
    [first].into_iter().chain(sizes.iter().copied()).collect()
}

const SVD: SvdOp = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
const QR: QrOp = QrOp { columns: Columns::Thin };
const EIGH: EighOp = EighOp { degeneracy: Degeneracy::DEFAULT };

type Triplets<F, L, R> = (L, SingularValuesOf<F, L>, R);

/// Number of kept singular triplets.
fn kept<A: Array>(parts: &[Pair<A>], truncation: Option<&Truncation>) -> Result<usize> {
    match truncation {
        Some(truncation) => Ok(rank(&parts[1], truncation)?.0),
        None => Ok(parts[1].shape()[1]),
    }
}

fn triplets<F, L, R>(
    split: &AxisSplit,
    parts: ResultsOf<F, L>,
    p: usize,
) -> Result<Triplets<F, L, R>>
where
    L: Matrix<F>,
    R: Matrix<F, Array = L::Array>,
{
    const NAME: &str = "svd_left_dims";
    let parts = leading_parts(parts, p);
    let [u, s, vh] = <[_; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three"));
    let u = shaped(NAME, u, &with(split.rows(), p))?;
    Ok((u, vector::<F, L>(s), shaped(NAME, vh, &after(p, split.cols()))?))
}

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
) -> Result<Triplets<F, L, R>>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    truncation.map_or(Ok(()), Truncation::validate)?;
    let (split, parts) = factor(SVD, a, left)?;
    let p = kept(&parts, truncation)?;
    triplets(&split, parts, p)
}

/// As [`svd_left_dims`], with the status of the matrix as in [`svd_ex`](super::svd_ex).
///
/// # Errors
/// Errors of [`svd_left_dims`] that do not concern the matrix.
pub fn svd_left_dims_ex<F, M, L, R>(
    a: M,
    left: &[usize],
    truncation: Option<&Truncation>,
) -> Result<(Triplets<F, L, R>, SingleInfo<F, M>)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    truncation.map_or(Ok(()), Truncation::validate)?;
    let (split, parts, info) = factor_ex(SVD, a, left)?;
    let p = kept(&parts, truncation)?;
    Ok((triplets(&split, parts, p)?, info))
}

/// The factors and their tangents along `dA` as in [`svd_jvp`](super::svd_jvp); the rank is a
/// constant.
///
/// # Errors
/// As [`svd_left_dims`]; `Tensor` if the shapes differ.
pub fn svd_left_dims_jvp<F, M, L, R>(
    a: M,
    da: M,
    left: &[usize],
    truncation: Option<&Truncation>,
) -> Result<(Triplets<F, L, R>, Triplets<F, L, R>)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    truncation.map_or(Ok(()), Truncation::validate)?;
    let (split, parts, tangents) = factor_jvp(SVD, a, da, left)?;
    let p = kept(&parts, truncation)?;
    Ok((triplets(&split, parts, p)?, triplets(&split, tangents, p)?))
}

fn q_and_r<F, L, R>(split: &AxisSplit, parts: ResultsOf<F, L>) -> Result<(L, R)>
where
    L: Matrix<F>,
    R: Matrix<F, Array = L::Array>,
{
    const NAME: &str = "qr_left_dims";
    let [q, r] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    let k = q.shape()[1];
    let q = shaped(NAME, q, &with(split.rows(), k))?;
    Ok((q, shaped(NAME, r, &after(k, split.cols()))?))
}

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
    let (split, parts) = factor(QR, a, left)?;
    q_and_r(&split, parts)
}

/// As [`qr_left_dims`], with the status of the matrix as in [`qr_ex`](super::qr_ex).
///
/// # Errors
/// Errors of [`qr_left_dims`] that do not concern the matrix.
pub fn qr_left_dims_ex<F, M, L, R>(a: M, left: &[usize]) -> Result<((L, R), SingleInfo<F, M>)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    let (split, parts, info) = factor_ex(QR, a, left)?;
    Ok((q_and_r(&split, parts)?, info))
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`qr_jvp`](super::qr_jvp); `Tensor` as in [`svd_left_dims`].
pub fn qr_left_dims_jvp<F, M, L, R>(a: M, da: M, left: &[usize]) -> Result<((L, R), (L, R))>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
    R: Matrix<F, Array = M::Array>,
{
    let (split, parts, tangents) = factor_jvp(QR, a, da, left)?;
    Ok((q_and_r(&split, parts)?, q_and_r(&split, tangents)?))
}

type EighFactorsOf<F, L> = (SingularValuesOf<F, L>, L);

fn eigenpairs<F, L: Matrix<F>>(
    split: &AxisSplit,
    parts: ResultsOf<F, L>,
) -> Result<EighFactorsOf<F, L>> {
    let [e, v] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    let n = v.shape()[1];
    Ok((vector::<F, L>(e), shaped("eigh_left_dims", v, &with(split.rows(), n))?))
}

/// `(A + Aᴴ)/2 = V diag(E) Vᴴ` with the axes `left` as rows: `[n]`, `[left…, n]`.
///
/// # Errors
/// As [`eigh`](super::eigh()); `Tensor` as in [`svd_left_dims`].
pub fn eigh_left_dims<F, M, L>(a: M, left: &[usize]) -> Result<EighFactorsOf<F, L>>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
{
    let (split, parts) = factor(EIGH, a, left)?;
    eigenpairs(&split, parts)
}

/// As [`eigh_left_dims`], with the status of the matrix as in [`eigh_ex`](super::eigh_ex).
///
/// # Errors
/// Errors of [`eigh_left_dims`] that do not concern the matrix.
pub fn eigh_left_dims_ex<F, M, L>(
    a: M,
    left: &[usize],
) -> Result<(EighFactorsOf<F, L>, SingleInfo<F, M>)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
{
    let (split, parts, info) = factor_ex(EIGH, a, left)?;
    Ok((eigenpairs(&split, parts)?, info))
}

/// The decomposition and its tangent along `(dA + dAᴴ)/2`.
///
/// # Errors
/// As [`eigh_jvp`](super::eigh_jvp); `Tensor` as in [`svd_left_dims`].
pub fn eigh_left_dims_jvp<F, M, L>(
    a: M,
    da: M,
    left: &[usize],
) -> Result<(EighFactorsOf<F, L>, EighFactorsOf<F, L>)>
where
    M: Matrix<F>,
    L: Matrix<F, Array = M::Array>,
{
    let (split, parts, tangents) = factor_jvp(EIGH, a, da, left)?;
    Ok((eigenpairs(&split, parts)?, eigenpairs(&split, tangents)?))
}

fn u_and_p<F, M, P>(split: &AxisSplit, parts: ResultsOf<F, M>, side: Side) -> Result<(M, P)>
where
    M: Matrix<F>,
    P: Matrix<F, Array = M::Array>,
{
    let [u, p] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    let sizes = [split.rows(), split.cols()].concat();
    let u = u.map(|u| u.reshape(&sizes).permute(&split.inverse()));
    let half = match side {
        Side::Right => split.cols(),
        Side::Left => split.rows(),
    };
    Ok((M::from_pair(u), shaped("polar_left_dims", p, &[half, half].concat())?))
}

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
    let (split, parts) = factor(PolarOp { side }, a, left)?;
    u_and_p(&split, parts, side)
}

/// As [`polar_left_dims`], with the status of the matrix as in [`polar_ex`](super::polar_ex).
///
/// # Errors
/// Errors of [`polar_left_dims`] that do not concern the matrix.
pub fn polar_left_dims_ex<F, M, P>(
    a: M,
    left: &[usize],
    side: Side,
) -> Result<((M, P), SingleInfo<F, M>)>
where
    M: Matrix<F>,
    P: Matrix<F, Array = M::Array>,
{
    let (split, parts, info) = factor_ex(PolarOp { side }, a, left)?;
    Ok((u_and_p(&split, parts, side)?, info))
}

/// The factors and their tangents along `dA`.
///
/// # Errors
/// As [`polar_jvp`](super::polar_jvp); `Tensor` as in [`svd_left_dims`].
pub fn polar_left_dims_jvp<F, M, P>(
    a: M,
    da: M,
    left: &[usize],
    side: Side,
) -> Result<((M, P), (M, P))>
where
    M: Matrix<F>,
    P: Matrix<F, Array = M::Array>,
{
    let (split, parts, tangents) = factor_jvp(PolarOp { side }, a, da, left)?;
    Ok((u_and_p(&split, parts, side)?, u_and_p(&split, tangents, side)?))
}
