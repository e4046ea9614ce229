//! QR factorisation: thin, complete, column-pivoted; also LQ, QL and RQ.
//!
//! The diagonal of the triangular factor is real and ≥ 0, which makes the factorisation of a matrix of full rank
//! unique.

mod op;
mod relatives;
mod rule;
mod small;
#[cfg(test)]
mod tests;

use faer::{Mat, MatMut, MatRef};
use t4a_algebra::simd::dispatch;
use t4a_algebra::{Field, Numeric};
use t4a_tensor::Tensor;
use t4a_tensor::route::{Path, Route};

use crate::batch::{
    BatchShape, MatrixStatus, ResultBuffer, ResultSlot, Views, filled, flops, load, run,
};
use crate::error::{Result, SINGULAR, check};
use crate::permutation::Permutation;
use crate::scalar::{LinalgScalar, real};
use crate::scale::{PowerOfTwo, largest};
use crate::threads::Work;
use small::SmallQr;

pub use op::{LqOp, QrOp, QrPivotedOp};
pub use relatives::{Lq, Ql, Rq, lq, lq_ex, ql, ql_ex, rq, rq_ex};
pub use rule::{jvp, vjp};

/// QR factorisation `A = Q R` of a batch of `m × n` matrices, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Qr<T: LinalgScalar> {
    /// Orthonormal columns, `[…, m, k]`, or `[…, m, m]` if complete.
    pub q: Tensor<T>,
    /// Upper triangular with real diagonal ≥ 0, `[…, k, n]`, or `[…, m, n]` if complete.
    pub r: Tensor<T>,
}

/// Number of columns of `Q`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Columns {
    /// `min(m, n)`.
    Thin,
    /// `m`: a complete basis.
    Complete,
}

/// QR factorisation `A = Q R`.
///
/// Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`. Cost about 2·m·n·k flops for each factor.
///
/// # Errors
/// `NotMatrix`; `NonFinite` with the batch index.
///
/// ```
/// use t4a_linalg::qr::{Columns, Qr, qr};
/// use t4a_tensor::Tensor;
///
/// let a = Tensor::from_vec(vec![3.0f64, 4.0], &[2, 1])?;
/// let Qr { q, r } = qr(&a, Columns::Thin)?;
/// assert!((q.get(&[0, 0]).unwrap() - 0.6).abs() < 1e-15 && (r.get(&[0, 0]).unwrap() - 5.0).abs() < 1e-14);
/// // A basis of the complement: ±(0.8, −0.6).
/// let complete = qr(&a, Columns::Complete)?.q;
/// assert_eq!(complete.shape(), [2, 2]);
/// assert!((complete.get(&[0, 1]).unwrap().abs() - 0.8).abs() < 1e-15);
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn qr<T: LinalgScalar>(a: &Tensor<T>, columns: Columns) -> Result<Qr<T>> {
    let (out, info) = qr_ex(a, columns)?;
    check("qr", &info, SINGULAR)?;
    Ok(out)
}

/// As [`qr`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`.
pub fn qr_ex<T: LinalgScalar>(a: &Tensor<T>, columns: Columns) -> Result<(Qr<T>, Tensor<i32>)> {
    let (out, _, info) = factor("qr", a, columns, false)?;
    Ok((out, info))
}

/// QR factorisation with column pivoting, `A[:, p] = Q R` with |R₀₀| ≥ |R₁₁| ≥ …; reveals the rank.
///
/// Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]` and a permutation of the `n` columns.
///
/// # Errors
/// As [`qr`].
pub fn qr_pivoted<T: LinalgScalar>(
    a: &Tensor<T>,
    columns: Columns,
) -> Result<(Qr<T>, Permutation)> {
    let (out, perm, info) = qr_pivoted_ex(a, columns)?;
    check("qr_pivoted", &info, SINGULAR)?;
    Ok((out, perm))
}

/// As [`qr_pivoted`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`.
pub fn qr_pivoted_ex<T: LinalgScalar>(
    a: &Tensor<T>,
    columns: Columns,
) -> Result<(Qr<T>, Permutation, Tensor<i32>)> {
    factor("qr_pivoted", a, columns, true)
}

fn factor<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    columns: Columns,
    pivoted: bool,
) -> Result<(Qr<T>, Permutation, Tensor<i32>)> {
    let shape = BatchShape::of(op, a)?;
    let (m, n, k) = (shape.m, shape.n, shape.k());
    let width = match columns {
        Columns::Thin => k,
        Columns::Complete => m,
    };
    let mut q = ResultBuffer::<T>::new(shape.batch, m, width)?;
    let mut r = ResultBuffer::<T>::new(shape.batch, width, n)?;
    let mut perm = ResultBuffer::<i64>::new(shape.batch, if pivoted { n } else { 0 }, 1)?;
    if k == 0 {
        // Empty rows and columns need no Householder steps.
        q.mats()?.into_iter().for_each(|q| q.diagonal_mut().fill(T::ONE));
        perm.slices()?.into_iter().for_each(|mut order| order.spoil());
        let route = Route::native(Path::Empty);
        let perm = Permutation::new(n, perm.vectors(route)?);
        let qr = Qr { q: q.matrices(route)?, r: r.matrices(route)? };
        return Ok((qr, perm, Tensor::zeros(shape.batch)?.with_route(route)));
    }
    let slots = q.slices()?.into_iter().zip(r.slices()?).zip(perm.slices()?);
    let slots = slots.map(|((q, r), perm)| (q, r, perm)).collect();
    let views = Views::of(op, a)?;
    let block = T::qr_block(m, n);
    let small = !pivoted && m.max(n) <= small::SIZE;
    let info = run(
        shape.batch,
        slots,
        Work::sums(flops(&[2, m, n, k])),
        |par| {
            let (copy, order) = (filled(T::ZERO, m * n)?, filled(0, 2 * n)?);
            let memory = T::qr_scratch(m, n, block, width, par);
            Ok((memory, copy, Mat::<T>::zeros(block, k), order))
        },
        |(memory, copy, coeff, order), index, (q, r, perm), par| {
            if !load(views.get(index), copy) {
                return MatrixStatus::NonFinite;
            }
            let scale = PowerOfTwo::apply(copy, largest);
            if !(small && dispatch(SmallQr { a: copy, rows: m, q, r })) {
                let mut q = MatMut::from_column_major_slice_mut(q, m, width);
                let mut r = MatMut::from_column_major_slice_mut(r, width, n);
                let (forward, inverse) = order.split_at_mut(n);
                forward.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
                // faer's pivot search in a zero matrix gives NaN.
                let any = copy.iter().any(|&x| x != T::ZERO);
                let columns = (pivoted && any).then_some([forward, inverse]);
                let a = MatMut::from_column_major_slice_mut(copy, m, n);
                if !T::qr(a, coeff.as_mut(), columns, par, memory) {
                    load(views.get(index), copy);
                    PowerOfTwo::apply(copy, largest);
                    let a = MatMut::from_column_major_slice_mut(copy, m, n);
                    T::qr_every_column(a, coeff.as_mut(), par);
                }
                let copy = MatRef::from_column_major_slice(copy, m, n);
                perm.iter_mut().zip(order.iter()).for_each(|(p, &i)| *p = i as i64);
                for j in 0..n {
                    let rows = (j + 1).min(k);
                    let source = copy.col(j).subrows(0, rows);
                    r.as_mut().col_mut(j).subrows_mut(0, rows).copy_from(source);
                }
                q.as_mut().diagonal_mut().fill(T::ONE);
                let basis = copy.submatrix(0, 0, m, k);
                T::apply_q(basis, coeff.as_ref(), q.as_mut(), par, memory);
                make_diagonal_positive(q.as_mut(), r.as_mut(), k);
            }
            let finite = scale.restore(r);
            if finite { MatrixStatus::Done } else { MatrixStatus::Overflow }
        },
    )?;
    let route = info.route();
    let perm = Permutation::new(n, perm.vectors(route)?);
    Ok((Qr { q: q.matrices(route)?, r: r.matrices(route)? }, perm, info))
}

/// Moves the phases of the diagonal of `R` into `Q`: `(Q D)(D̄ R)` with unitary diagonal `D`.
fn make_diagonal_positive<T: LinalgScalar>(mut q: MatMut<'_, T>, mut r: MatMut<'_, T>, k: usize) {
    for i in 0..k {
        let pivot = r[(i, i)];
        let size = pivot.modulus();
        if size == <T::R as Numeric>::ZERO || (pivot.im() == T::R::ZERO && pivot.re() > T::R::ZERO)
        {
            continue;
        }
        let phase = Field::div(pivot, real(size));
        for j in i..r.ncols() {
            r[(i, j)] = Numeric::mul(r[(i, j)], Field::conj(phase));
        }
        r[(i, i)] = real(size);
        q.as_mut().col_mut(i).iter_mut().for_each(|x| *x = Numeric::mul(*x, phase));
    }
}
