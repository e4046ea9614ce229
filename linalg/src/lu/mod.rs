//! LU factorisation with partial pivoting `A[p] = L U` and full pivoting `A[p][:, q] = L U`.
//!
//! The packed form holds `U` on and above the diagonal and `L` without its unit diagonal below.
//! A singular matrix has a factorisation too; the diagonal of `U` contains a zero.

mod check;
mod eliminate;
mod op;
mod rule;
mod small;
#[cfg(test)]
mod tests;

use faer::MatMut;
use t4a_algebra::Numeric;
use t4a_algebra::simd::dispatch;
use t4a_tensor::Tensor;
use t4a_tensor::route::{Path, Route};

use crate::batch::{
    BatchShape, MatrixStatus, ResultBuffer, ResultSlot, Views, filled, flops, load, run,
};
use crate::error::{Result, SINGULAR, check};
use crate::permutation::Permutation;
use crate::scalar::{LinalgScalar, min_positive};
use crate::threads::Work;
use small::SmallLu;

pub use op::LuFactorOp;
pub(crate) use op::info_of_values;
pub use rule::{jvp, jvp_packed, vjp, vjp_packed};

/// Factorisation `A[p] = L U` in packed form.
#[derive(Clone, Debug)]
pub struct PackedLu<T: LinalgScalar> {
    /// `U` on and above the diagonal, the strictly lower part of `L` below: `[…, m, n]`.
    pub packed: Tensor<T>,
    /// Row `i` of `L U` is row `pᵢ` of `A`.
    pub rows: Permutation,
}

impl<T: LinalgScalar> PackedLu<T> {
    /// Factors computed elsewhere, `[…, m, n]`, and the permutation of `m` rows for each; see
    /// [`Permutation::from_index`] and [`Permutation::from_pivots`].
    ///
    /// # Errors
    /// `NotMatrix`, `Tensor` if the shapes do not match.
    pub fn new(packed: Tensor<T>, rows: Permutation) -> Result<Self> {
        let shape = BatchShape::of("lu_factors", &packed)?;
        rows.of_rows("lu_factors", shape.batch, shape.m)?;
        Ok(Self { packed, rows })
    }
}

/// Factorisation `A[p] = L U` with separate factors, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Lu<T: LinalgScalar> {
    /// Unit lower trapezoidal, `[…, m, k]`.
    pub l: Tensor<T>,
    /// Upper trapezoidal, `[…, k, n]`.
    pub u: Tensor<T>,
    /// Row `i` of `L U` is row `pᵢ` of `A`.
    pub rows: Permutation,
    /// Column `j` of `L U` is column `qⱼ` of `A`; `None` with partial pivoting.
    pub cols: Option<Permutation>,
}

/// Pivoting strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Pivoting {
    /// Search in the current column.
    Partial,
    /// Search in the whole trailing matrix.
    Full,
}

/// `A[p] = L U`, or `A[p][:, q] = L U` with full pivoting.
///
/// Shapes `[…, m, n]` → `[…, m, k]`, `[…, k, n]`. Cost about m·n·k − … = ⅔·n³ flops for a square
/// matrix.
///
/// # Errors
/// `NotMatrix`; `NonFinite` with the batch index. A singular matrix is not an error.
///
/// ```
/// use t4a_linalg::lu::{Lu, Pivoting, lu};
/// use t4a_tensor::Tensor;
///
/// // The pivot of the first column is 4, so that the rows are exchanged.
/// let a = Tensor::from_vec(vec![2.0, 1.0, 4.0, 6.0], &[2, 2])?;
/// let Lu { l, u, .. } = lu(&a, Pivoting::Partial)?;
/// assert_eq!((l.to_vec()?, u.to_vec()?), (vec![1.0, 0.0, 0.5, 1.0], vec![4.0, 6.0, 0.0, -2.0]));
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn lu<T: LinalgScalar>(a: &Tensor<T>, pivoting: Pivoting) -> Result<Lu<T>> {
    let (out, info) = lu_ex(a, pivoting)?;
    match info.as_slice().unwrap_or_default().iter().any(|&code| code < 0) {
        true => check("lu", &only_failures(&info)?, SINGULAR).map(|()| out),
        false => Ok(out),
    }
}

/// As [`lu`], with an info tensor of the batch's shape: 0, or `i + 1` if `U` has a zero at
/// diagonal entry `i`, or [`NON_FINITE`](crate::error::NON_FINITE).
///
/// # Errors
/// `NotMatrix`.
pub fn lu_ex<T: LinalgScalar>(a: &Tensor<T>, pivoting: Pivoting) -> Result<(Lu<T>, Tensor<i32>)> {
    let shape = BatchShape::of("lu", a)?;
    let (m, n, k) = (shape.m, shape.n, shape.k());
    let (packed, rows, cols, info) = factor("lu", a, pivoting)?;
    let mut l = ResultBuffer::<T>::new(shape.batch, m, k)?;
    let mut u = ResultBuffer::<T>::new(shape.batch, k, n)?;
    let views = Views::of("lu", &packed)?;
    let columns = if k > 0 { n } else { 0 };
    for (index, (mut l, mut u)) in l.mats()?.into_iter().zip(u.mats()?).enumerate() {
        let source = views.get(index);
        for j in 0..columns {
            let above = (j + 1).min(k);
            u.as_mut().col_mut(j).subrows_mut(0, above).copy_from(source.col(j).subrows(0, above));
            if j < k {
                l[(j, j)] = T::ONE;
                let below = m - j - 1;
                let tail = source.col(j).subrows(j + 1, below);
                l.as_mut().col_mut(j).subrows_mut(j + 1, below).copy_from(tail);
            }
        }
    }
    let rows = Permutation::new(m, rows);
    let cols = cols.map(|cols| Permutation::new(n, cols));
    let route = info.route();
    Ok((Lu { l: l.matrices(route)?, u: u.matrices(route)?, rows, cols }, info))
}

/// `A[p] = L U` in the packed form that [`lu_solve`](crate::solve::lu_solve) takes.
///
/// # Errors
/// As [`lu`].
///
/// ```
/// use t4a_linalg::lu::lu_factor;
/// use t4a_linalg::solve::lu_solve;
/// use t4a_linalg::triangular::TriangleOp;
/// use t4a_tensor::Tensor;
///
/// let a = Tensor::from_vec(vec![2.0, 0.0, 0.0, 4.0], &[2, 2])?;
/// let factors = lu_factor(&a)?;
/// for (b, x) in [(2.0, 1.0), (6.0, 3.0)] {
///     let b = Tensor::from_vec(vec![b, 0.0], &[2, 1])?;
///     assert_eq!(lu_solve(&factors, &b, TriangleOp::None)?.to_vec()?, [x, 0.0]);
/// }
/// # Ok::<(), t4a_linalg::LinalgError>(())
/// ```
pub fn lu_factor<T: LinalgScalar>(a: &Tensor<T>) -> Result<PackedLu<T>> {
    Ok(packed(a, Pivoting::Partial)?.0)
}

/// As [`lu_factor`], with an info tensor as in [`lu_ex`].
///
/// # Errors
/// `NotMatrix`.
pub fn lu_factor_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(PackedLu<T>, Tensor<i32>)> {
    let (packed, rows, _, info) = factor("lu_factor", a, Pivoting::Partial)?;
    let m = BatchShape::of("lu_factor", a)?.m;
    Ok((PackedLu { packed, rows: Permutation::new(m, rows) }, info))
}

/// Packed factors with either pivoting, and the column permutation of full pivoting.
pub(crate) fn packed<T: LinalgScalar>(
    a: &Tensor<T>,
    pivoting: Pivoting,
) -> Result<(PackedLu<T>, Option<Permutation>)> {
    let op = "lu_factor";
    let (packed, rows, cols, info) = factor(op, a, pivoting)?;
    check(op, &only_failures(&info)?, SINGULAR)?;
    let BatchShape { m, n, .. } = BatchShape::of(op, a)?;
    let rows = Permutation::new(m, rows);
    Ok((PackedLu { packed, rows }, cols.map(|cols| Permutation::new(n, cols))))
}

/// Removes the codes of zero pivots, which are not failures.
fn only_failures(info: &Tensor<i32>) -> Result<Tensor<i32>> {
    let codes = info.to_vec()?.into_iter().map(|code| code.min(0)).collect();
    Ok(Tensor::from_vec(codes, info.shape())?)
}

type LuArrays<T> = (Tensor<T>, Tensor<i64>, Option<Tensor<i64>>, Tensor<i32>);

fn factor<T: LinalgScalar>(
    op: &'static str,
    a: &Tensor<T>,
    pivoting: Pivoting,
) -> Result<LuArrays<T>> {
    let shape = BatchShape::of(op, a)?;
    let (m, n, k) = (shape.m, shape.n, shape.k());
    let full_pivoting = pivoting == Pivoting::Full;
    let small = !full_pivoting && m.max(n) <= small::SIZE;
    let mut packed = ResultBuffer::<T>::new(shape.batch, m, n)?;
    let mut rows = ResultBuffer::<i64>::new(shape.batch, m, 1)?;
    let mut cols = ResultBuffer::<i64>::new(shape.batch, if full_pivoting { n } else { 0 }, 1)?;
    if k == 0 {
        // Empty rows and columns need no elimination steps.
        rows.slices()?.into_iter().chain(cols.slices()?).for_each(|mut order| order.spoil());
        let route = Route::native(Path::Empty);
        let cols = if full_pivoting { Some(cols.vectors(route)?) } else { None };
        let info = Tensor::zeros(shape.batch)?.with_route(route);
        return Ok((packed.matrices(route)?, rows.vectors(route)?, cols, info));
    }
    let slots = packed.slices()?.into_iter().zip(rows.slices()?).zip(cols.slices()?);
    let slots = slots.map(|((a, rows), cols)| (a, rows, cols)).collect();
    let views = Views::of(op, a)?;
    let info = run(
        shape.batch,
        slots,
        // The columns beyond the leading square form a triangular system.
        Work::columns(n.saturating_sub(m), flops(&[m, n, k]) / 3 * 2),
        |par| {
            let memory = (!full_pivoting && !small).then(|| T::lu_scratch(m, n, par));
            Ok((memory, filled(0, 2 * m)?, filled(0, n)?))
        },
        |(memory, row_order, col_order), index, (a, rows, cols), par| {
            if !load(views.get(index), a) {
                return MatrixStatus::NonFinite;
            }
            let (forward, inverse) = row_order.split_at_mut(m);
            count(forward);
            count(col_order);
            let done = match memory {
                _ if small => {
                    dispatch(SmallLu { a, rows: &mut *forward });
                    true
                }
                Some(memory) => {
                    let packed = MatMut::from_column_major_slice_mut(a, m, n);
                    T::lu(packed, [&mut *forward, inverse], par, memory);
                    (0..k).all(|i| is_pivot(a[i * m + i]))
                }
                None => false,
            };
            if !done {
                if !full_pivoting {
                    // The blocked algorithm divided by a zero pivot, or one with an infinite reciprocal: repeat from
                    // the input.
                    load(views.get(index), a);
                    count(forward);
                }
                eliminate::eliminate(a, forward, inverse, col_order, full_pivoting);
            }
            debug_assert!(check::is_factorisation(views.get(index), a, forward, col_order));
            rows.iter_mut().zip(forward.iter()).for_each(|(p, &i)| *p = i as i64);
            cols.iter_mut().zip(col_order.iter()).for_each(|(q, &i)| *q = i as i64);
            MatrixStatus::Done
        },
    )?;
    let route = info.route();
    let packed = packed.matrices(route)?;
    let info = mark_zero_pivots(&packed, k, info)?;
    let cols = if full_pivoting { Some(cols.vectors(route)?) } else { None };
    Ok((packed, rows.vectors(route)?, cols, info))
}

/// Fills with `0, 1, 2, …`
fn count(order: &mut [usize]) {
    order.iter_mut().enumerate().for_each(|(i, slot)| *slot = i);
}

/// True for a normal number: nonzero, with finite reciprocal, and not the result of dividing by a number without
/// these.
fn is_pivot<T: LinalgScalar>(x: T) -> bool {
    eliminate::size(x) >= min_positive::<T>() && Numeric::sub(x, x) == T::ZERO
}

/// Sets the code of the first zero on the diagonal of `U`; the factors remain valid.
fn mark_zero_pivots<T: LinalgScalar>(
    packed: &Tensor<T>,
    k: usize,
    info: Tensor<i32>,
) -> Result<Tensor<i32>> {
    let views = Views::of("lu", packed)?;
    let mut info = info;
    for (index, code) in info.as_mut_slice()?.iter_mut().enumerate() {
        let u = views.get(index);
        if *code == 0
            && let Some(i) = (0..k).find(|&i| u[(i, i)] == T::ZERO)
        {
            *code = i as i32 + 1;
        }
    }
    Ok(info)
}
