//! The singular value decomposition `A = U diag(S) Vᴴ`.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Slice, TensorMetadata};
use t4a_linalg::svd::Truncation;
use t4a_linalg::{Degeneracy, Op, Result};

use super::call::{call, call_ex, call_jvp, call_one};
use super::matrix::Matrix;
use super::ops::{LinalgOps, read};
use super::value::Value;

/// `A = U diag(S) Vᴴ` of a batch of `m × n` matrices, `k = min(m, n)`, singular values in
/// nonincreasing order.
#[derive(Clone, Debug)]
pub struct Svd<M: Matrix> {
    /// Left singular vectors, `[…, m, k]`.
    pub u: M,
    /// Singular values, `[…, k]`, real.
    pub s: M::RealVector,
    /// Right singular vectors as rows, `[…, k, n]`.
    pub vh: M,
}

impl<M: Matrix> Svd<M> {
    fn new(parts: Vec<Value<M::Backend>>) -> Self {
        let [u, s, vh] = <[_; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three"));
        Self { u: M::from_value(u), s: M::real_vector(s), vh: M::from_value(vh) }
    }
}

/// `A = U diag(S) Vᴴ`, thin.
///
/// Gauge: a loss must not depend on the phases of the pairs `(uᵢ, vᵢ)`, nor on the basis within a
/// subspace of equal singular values; ties are harmless otherwise. Where it does, `backward`
/// panics with the text of [`LinalgError::GaugeIllDefined`](super::LinalgError): it has no other
/// way to return an error. A change of sign of real vectors cannot be seen in a derivative.
/// Rank-deficient matrices give the finite part of least norm.
///
/// # Errors
/// `NonFinite`, `NoConvergence` with the batch index.
///
/// ```
/// use burn_autodiff::Autodiff;
/// use burn_t4a::{BurnT4a, T4aDevice, ext::linalg};
/// use burn_tensor::Tensor;
///
/// type AD = Autodiff<BurnT4a>;
/// let a = Tensor::<AD, 2>::from_floats([[3.0, 0.0], [0.0, -4.0], [0.0, 0.0]], &T4aDevice);
/// let a = a.require_grad();
/// let linalg::Svd { s, .. } = linalg::svd(a.clone())?;
/// s.clone().into_data().assert_eq(&[4.0f32, 3.0].into(), false);
/// // The gradient of the nuclear norm is U Vᴴ.
/// let gradients = s.sum().backward();
/// let bar = a.grad(&gradients).unwrap().into_data();
/// bar.assert_eq(&[[1.0f32, 0.0], [0.0, -1.0], [0.0, 0.0]].into(), false);
/// # Ok::<(), linalg::LinalgError>(())
/// ```
pub fn svd<M: Matrix>(a: M) -> Result<Svd<M>> {
    svd_with(a, Degeneracy::default())
}

/// As [`svd`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`svd`].
pub fn svd_with<M: Matrix>(a: M, degeneracy: Degeneracy) -> Result<Svd<M>> {
    Ok(Svd::new(call(Op::Svd(degeneracy), vec![a.into_value()])?))
}

/// As [`svd`], with the status of each matrix instead of an error; the factors of a matrix that
/// failed are NaN, its gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn svd_ex<M: Matrix>(a: M) -> Result<(Svd<M>, M::Info)> {
    let (parts, info, device) = call_ex(Op::Svd(Degeneracy::default()), vec![a.into_value()])?;
    Ok((Svd::new(parts), M::info(&info, &device)?))
}

/// The decomposition and its tangent along `dA`, in the gauge `uᵢᴴ duᵢ + vᵢᴴ dvᵢ = 0` where tied
/// vectors do not rotate into each other.
///
/// # Errors
/// As [`svd`]; `Tensor` if the shapes differ.
pub fn svd_jvp<M: Matrix>(a: M, da: M) -> Result<(Svd<M>, Svd<M>)> {
    let op = Op::Svd(Degeneracy::default());
    let [parts, moved] = call_jvp(op, vec![a.into_value()], vec![da.into_value()])?;
    Ok((Svd::new(parts), Svd::new(moved)))
}

/// Singular values in nonincreasing order, `[…, k]`.
///
/// # Errors
/// As [`svd`].
pub fn svdvals<M: Matrix>(a: M) -> Result<M::RealVector> {
    Ok(M::real_vector(call_one(Op::SvdVals, vec![a.into_value()])?))
}

/// As [`svdvals`], with the status of each matrix as in [`svd_ex`].
///
/// # Errors
/// As [`svd_ex`].
pub fn svdvals_ex<M: Matrix>(a: M) -> Result<(M::RealVector, M::Info)> {
    let (mut parts, info, device) = call_ex(Op::SvdVals, vec![a.into_value()])?;
    Ok((M::real_vector(parts.swap_remove(0)), M::info(&info, &device)?))
}

/// Singular values and their tangents along `dA`.
///
/// # Errors
/// As [`svd_jvp`].
pub fn svdvals_jvp<M: Matrix>(a: M, da: M) -> Result<(M::RealVector, M::RealVector)> {
    let parts = call_jvp(Op::SvdVals, vec![a.into_value()], vec![da.into_value()])?;
    let [s, ds] = parts.map(|mut parts| M::real_vector(parts.swap_remove(0)));
    Ok((s, ds))
}

/// The leading singular triplets.
#[derive(Clone, Debug)]
pub struct TruncatedSvd<M: Matrix> {
    /// The triplets kept.
    pub kept: Svd<M>,
    /// `‖A − U S Vᴴ‖_F` from the values dropped, `[…]`; a constant on the tape.
    pub error: M::RealNumber,
}

/// The leading `p` singular triplets; `p` is the largest number that a matrix of the batch asks
/// for, a constant on the tape.
///
/// The derivative contains the coupling of kept and discarded vectors: without it gradients of a
/// truncated decomposition are off by tens of percent. Exact ties give exactly
/// [`max_dim`](Truncation::max_dim) triplets; a loss that depends on which of tied vectors were
/// kept has no derivative and is reported as in [`svd`].
///
/// # Errors
/// As [`svd`]; `Tensor` for policies that contradict themselves.
pub fn svd_truncated<M: Matrix>(a: M, truncation: &Truncation) -> Result<TruncatedSvd<M>> {
    truncation.validate()?;
    let parts = call(Op::Svd(Degeneracy::default()), vec![a.into_value()])?;
    let [u, s, vh] = <[_; 3]>::try_from(parts).unwrap_or_else(|_| unreachable!("three"));
    let (p, error) = rank(&s, truncation)?;
    let kept = vec![keep(u, p, false), keep(s, p, false), keep(vh, p, true)];
    Ok(TruncatedSvd { kept: Svd::new(kept), error: M::real_number(error) })
}

/// How many of the singular values in the rows of `s` to keep, and the error of that.
fn rank<B: LinalgOps>(s: &Value<B>, truncation: &Truncation) -> Result<(usize, Value<B>)> {
    let (Value::Real(s) | Value::Complex { re: s, .. }) = s;
    let shape = s.shape();
    let count = shape.num_dims();
    let k = shape[count - 1];
    let values: Vec<f64> = read::<B>(s.clone())?.iter::<f64>().collect();
    let rows = || values.chunks_exact(k.max(1));
    let p = rows().map(|row| truncation.rank(row)).max().unwrap_or(0);
    let dropped = B::float_detach(narrow::<B>(s.clone(), count - 1, p..k));
    let squares = B::float_mul(dropped.clone(), dropped);
    let error = B::float_sqrt(B::float_sum_dim(squares, count - 1));
    Ok((p, Value::Real(error)))
}

fn narrow<B: LinalgOps>(
    x: FloatTensor<B>,
    axis: usize,
    range: std::ops::Range<usize>,
) -> FloatTensor<B> {
    let part = Slice::from(range.start as isize..range.end as isize);
    let slices: Vec<Slice> =
        (0..x.rank()).map(|i| if i == axis { part } else { Slice::full() }).collect();
    B::float_slice(x, &slices)
}

/// The first `p` columns, or rows.
fn keep<B: LinalgOps>(value: Value<B>, p: usize, rows: bool) -> Value<B> {
    value.map(|x| {
        let axis = x.rank() - if rows { 2 } else { 1 };
        narrow::<B>(x, axis, 0..p)
    })
}
