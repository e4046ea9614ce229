//! Factorisations of N-dimensional tensors: some axes form the rows, the others the columns.
//!
//! The axes are permuted, fused, and split again, all on the tape. The rank of the factors follows
//! from the number of axes named, so their types are written by the caller:
//!
//! ```
//! use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};
//! use burn_tensor::Tensor;
//!
//! type B = BurnT4a;
//! let a = Tensor::<B, 3>::ones([2, 4, 3], &T4aDevice);
//! // Rows: axes 2 and 0. Columns: axis 1.
//! let (u, s, vh): (Tensor<B, 3>, Tensor<B, 1>, Tensor<B, 2>) =
//!     linalg::svd_left_dims(a, &[2, 0], None)?;
//! assert_eq!((u.dims(), s.dims(), vh.dims()), ([3, 2, 4], [4], [4, 4]));
//! # Ok::<(), linalg::LinalgError>(())
//! ```

use burn_backend::Shape;
use burn_tensor::Tensor;
use t4a_linalg::left_dims::Split;
use t4a_linalg::polar::Side;
use t4a_linalg::qr::Columns;
use t4a_linalg::svd::{Truncation, Vectors};
use t4a_linalg::{Degeneracy, Op, Result};
use t4a_tensor::TensorError;

use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::svd::{leading_parts, rank};
use super::value::Value;

fn reshape<B: LinalgOps>(value: Value<B>, sizes: &[usize]) -> Value<B> {
    value.map(|x| B::float_reshape(x, Shape::from(sizes.to_vec())))
}

fn permute<B: LinalgOps>(value: Value<B>, axes: &[usize]) -> Value<B> {
    value.map(|x| B::float_permute(x, axes))
}

/// `op` on the matrix of a tensor.
fn factor<M: Matrix>(op: Op, a: M, left: &[usize]) -> Result<(Split, Vec<Value<M::Backend>>)> {
    let a = a.into_value();
    let split = Split::new(&a.shape(), left)?;
    let matrix = [split.rows().iter().product(), split.cols().iter().product()];
    let permuted = permute(a, split.axes());
    let out = M::Backend::linalg_forward(&op, &[reshape(permuted, &matrix)], false)?;
    Ok((split, out.parts))
}

/// A factor in the shape `sizes`, as the type that the caller wants.
fn shaped<T: Matrix>(op: &'static str, value: Value<T::Backend>, sizes: &[usize]) -> Result<T> {
    if T::RANK != sizes.len() || T::COMPLEX != value.is_complex() {
        let required =
            "a factor is asked for as tensor of its rank, 2 to 8, complex if the input is";
        return Err(TensorError::shape(op, sizes, required).into());
    }
    Ok(T::from_value(reshape(value, sizes)))
}

/// The vector of a row `1 × k`.
fn vector<B: LinalgOps>(row: Value<B>) -> Tensor<B, 1> {
    let size = row.shape()[1];
    <Tensor<B, 2> as Matrix>::real_vector(reshape(row, &[1, size]))
}

fn with(sizes: &[usize], last: usize) -> Vec<usize> {
    sizes.iter().copied().chain([last]).collect()
}

fn after(first: usize, sizes: &[usize]) -> Vec<usize> {
    [first].into_iter().chain(sizes.iter().copied()).collect()
}

/// `A = U diag(S) Vᴴ` with the axes `left` as rows: `[left…, k]`, `[k]`, `[k, right…]`, or the
/// triplets that a truncation keeps.
///
/// # Errors
/// As [`svd`](super::svd()) and [`svd_truncated`](super::svd_truncated); `Tensor` for axes that do
/// not exist or are named twice, and for factors asked for in another rank.
#[allow(clippy::type_complexity)]
pub fn svd_left_dims<M, L, R>(
    a: M,
    left: &[usize],
    truncation: Option<&Truncation>,
) -> Result<(L, Tensor<M::Backend, 1>, R)>
where
    M: Matrix,
    L: Matrix<Backend = M::Backend>,
    R: Matrix<Backend = M::Backend>,
{
    const NAME: &str = "svd_left_dims";
    truncation.map_or(Ok(()), Truncation::validate)?;
    let (split, mut parts) = factor(Op::Svd(Vectors::Thin, Degeneracy::DEFAULT), a, left)?;
    if let Some(truncation) = truncation {
        let (p, _) = rank(&parts[1], truncation)?;
        parts = leading_parts(parts, p);
    }
    let [u, s, vh] = <[_; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three"));
    let k = s.shape()[1];
    let u = shaped(NAME, u, &with(split.rows(), k))?;
    Ok((u, vector(s), shaped(NAME, vh, &after(k, split.cols()))?))
}

/// `A = Q R` with the axes `left` as rows: `[left…, k]`, `[k, right…]`.
///
/// # Errors
/// As [`qr`](super::qr()); `Tensor` as in [`svd_left_dims`].
pub fn qr_left_dims<M, L, R>(a: M, left: &[usize]) -> Result<(L, R)>
where
    M: Matrix,
    L: Matrix<Backend = M::Backend>,
    R: Matrix<Backend = M::Backend>,
{
    const NAME: &str = "qr_left_dims";
    let (split, parts) = factor(Op::Qr(Columns::Thin), a, left)?;
    let [q, r] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    let k = q.shape()[1];
    let q = shaped(NAME, q, &with(split.rows(), k))?;
    Ok((q, shaped(NAME, r, &after(k, split.cols()))?))
}

/// `(A + Aᴴ)/2 = V diag(E) Vᴴ` with the axes `left` as rows: `[n]`, `[left…, n]`.
///
/// # Errors
/// As [`eigh`](super::eigh()); `Tensor` as in [`svd_left_dims`].
pub fn eigh_left_dims<M, L>(a: M, left: &[usize]) -> Result<(Tensor<M::Backend, 1>, L)>
where
    M: Matrix,
    L: Matrix<Backend = M::Backend>,
{
    let (split, parts) = factor(Op::Eigh(Degeneracy::DEFAULT), a, left)?;
    let [e, v] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    let n = v.shape()[1];
    Ok((vector(e), shaped("eigh_left_dims", v, &with(split.rows(), n))?))
}

/// `A = U P` (right) or `A = P U` (left) with the axes `left` as rows: `U` has the axes of `a`, `P`
/// has `[right…, right…]` or `[left…, left…]`.
///
/// # Errors
/// As [`polar`](super::polar()); `Tensor` as in [`svd_left_dims`].
pub fn polar_left_dims<M, P>(a: M, left: &[usize], side: Side) -> Result<(M, P)>
where
    M: Matrix,
    P: Matrix<Backend = M::Backend>,
{
    let (split, parts) = factor(Op::Polar(side), a, left)?;
    let [u, p] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
    let sizes = [split.rows(), split.cols()].concat();
    let u = permute(reshape(u, &sizes), &split.inverse());
    let half = match side {
        Side::Right => split.cols(),
        Side::Left => split.rows(),
    };
    Ok((M::from_value(u), shaped("polar_left_dims", p, &[half, half].concat())?))
}
