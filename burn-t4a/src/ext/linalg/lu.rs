//! LU factorisation, and systems solved with factors at hand.

use t4a_linalg::lu::Pivoting;
use t4a_linalg::triangular::{Op as TriangleOp, Triangle};
use t4a_linalg::vocabulary::{Dual, Matrices, Region};
use t4a_linalg::{Op, Permutation, Result};
use t4a_tensor::{Tensor, TensorError};

use super::call::{check_tangents, isolated, results, results_along, results_ex};
use super::matrices::{ComplexMatrix, Entries, RealMatrix};
use super::matrix::Matrix;
use super::ops::LinalgOps;
use super::qr::indices;
use super::value::{Results, Value};

/// `A[p] = L U` of a batch of `m × n` matrices, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Lu<M: Matrix> {
    /// Unit lower trapezoidal, `[…, m, k]`.
    pub l: M,
    /// Upper trapezoidal, `[…, k, n]`.
    pub u: M,
    /// Row `i` of `L U` is row `pᵢ` of `A`, `[…, m]`; a constant on the tape.
    pub rows: M::Indices,
}

/// `A[p] = L U` with partial pivoting. A singular matrix has such factors, too; its `U` has a zero
/// on the diagonal and no derivative.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn lu<M: Matrix>(a: M) -> Result<Lu<M>> {
    Lu::new(results(Op::LuFactor(Pivoting::Partial), [a])?)
}

/// As [`lu`], with the status of each matrix: a matrix that failed has factors of NaN and a zero
/// gradient.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn lu_ex<M: Matrix>(a: M) -> Result<(Lu<M>, M::Info)> {
    let (out, info) = results_ex(Op::LuFactor(Pivoting::Partial), [a])?;
    Ok((Lu::new(out)?, info))
}

/// The factors, and the tangents `dL`, `dU` along `dA`.
///
/// # Errors
/// As [`lu`]; `Singular`; `Tensor` if the shapes differ.
pub fn lu_jvp<M: Matrix>(a: M, da: M) -> Result<(Lu<M>, (M, M))> {
    let (out, moved) = results_along(Op::LuFactor(Pivoting::Partial), [a], [da])?;
    let (dl, du) = split(&moved[0], false)?;
    Ok((Lu::new(out)?, (M::from_value(dl), M::from_value(du))))
}

/// `A[p][:, q] = L U` with full pivoting: the factors, and `q`, `[…, n]`: column `j` of `L U` is
/// column `qⱼ` of `A`. The pivots reveal the rank.
///
/// # Errors
/// As [`lu`].
pub fn lu_full<M: Matrix>(a: M) -> Result<(Lu<M>, M::Indices)> {
    let out = results(Op::LuFactor(Pivoting::Full), [a])?;
    let cols = indices::<M>(&out.cols, &out.parts[0])?;
    Ok((Lu::new(out)?, cols))
}

/// As [`lu_full`], with the status of each matrix as in [`lu_ex`].
///
/// # Errors
/// As [`lu_ex`].
#[allow(clippy::type_complexity)]
pub fn lu_full_ex<M: Matrix>(a: M) -> Result<((Lu<M>, M::Indices), M::Info)> {
    let (out, info) = results_ex(Op::LuFactor(Pivoting::Full), [a])?;
    let cols = indices::<M>(&out.cols, &out.parts[0])?;
    Ok(((Lu::new(out)?, cols), info))
}

/// The factors, the tangents `dL`, `dU` along `dA`, and `q`.
///
/// # Errors
/// As [`lu_jvp`].
#[allow(clippy::type_complexity)]
pub fn lu_full_jvp<M: Matrix>(a: M, da: M) -> Result<(Lu<M>, (M, M), M::Indices)> {
    let (out, moved) = results_along(Op::LuFactor(Pivoting::Full), [a], [da])?;
    let (dl, du) = split(&moved[0], false)?;
    let cols = indices::<M>(&out.cols, &out.parts[0])?;
    Ok((Lu::new(out)?, (M::from_value(dl), M::from_value(du)), cols))
}

impl<M: Matrix> Lu<M> {
    fn new(out: Results<M::Backend>) -> Result<Self> {
        let packed = &out.parts[0];
        let (l, u) = split(packed, true)?;
        let rows = indices::<M>(&out.rows, packed)?;
        Ok(Self { l: M::from_value(l), u: M::from_value(u), rows })
    }
}

/// `L`, with ones on its diagonal or zeros, and `U`.
fn split<B: LinalgOps>(packed: &Value<B>, unit: bool) -> Result<(Value<B>, Value<B>)> {
    fn of<B: LinalgOps, A: Entries<B>>(
        packed: &Value<B>,
        unit: bool,
    ) -> Result<(Value<B>, Value<B>)> {
        let packed = A::from_value(packed);
        let (m, n) = (packed.rows(), packed.cols());
        let k = m.min(n);
        let l = packed.slice(0..m, 0..k).mask(Region::Lower(-1));
        let l = match unit {
            true => l.add(&packed.constant(m, k, 1.0).mask(Region::Diagonal)),
            false => l,
        };
        let u = packed.slice(0..k, 0..n).mask(Region::Upper(0));
        Ok((l.into_value()?, u.into_value()?))
    }
    match packed {
        Value::Real(_) => of::<_, RealMatrix<_>>(packed, unit),
        Value::Complex { .. } => of::<_, ComplexMatrix<_>>(packed, unit),
    }
}

/// The packed factors of square matrices, for [`lu_solve`].
#[derive(Clone, Debug)]
pub struct LuFactors<M: Matrix> {
    /// `U` on and above the diagonal, the strictly lower part of `L` below: `[…, n, n]`.
    pub packed: M,
    rows: Permutation,
}

impl<M: Matrix> LuFactors<M> {
    /// Factors from elsewhere, `[…, n, n]`, and the permutation `p` of the rows of each, `[…, n]`: row
    /// `i` of `L U` is row `pᵢ` of `A`. Pivots in the form of LAPACK are read by
    /// [`LuFactors::from_pivots`].
    ///
    /// # Errors
    /// `Tensor` if this is not a permutation for each matrix.
    pub fn new(packed: M, rows: M::Indices) -> Result<Self> {
        Self::checked(packed, |index, _| Permutation::from_index(&index), rows)
    }

    /// As [`LuFactors::new`], from pivots `[…, n]`: row `i` was exchanged with row `pivotᵢ ≥ i`, one
    /// after the other, counted from 0.
    ///
    /// # Errors
    /// `Tensor` for rows that do not exist or lie above.
    pub fn from_pivots(packed: M, pivots: M::Indices) -> Result<Self> {
        Self::checked(packed, |index, n| Permutation::from_pivots(&index, n), pivots)
    }

    fn checked(
        packed: M,
        read: impl FnOnce(Tensor<i64>, usize) -> Result<Permutation>,
        indices: M::Indices,
    ) -> Result<Self> {
        const NAME: &str = "lu_factors";
        let (shape, index) = (packed.clone().into_value().shape(), M::host(indices)?);
        let (batch, matrix) = shape.split_at(shape.len() - 2);
        let fits = index
            .shape()
            .split_last()
            .is_some_and(|(&k, leading)| leading == batch && k == matrix[0]);
        if !fits || matrix[0] != matrix[1] {
            let required = "[…, n, n] and […, n]";
            return Err(TensorError::shapes(NAME, &shape, index.shape(), required).into());
        }
        Ok(Self { packed, rows: read(index, matrix[0])? })
    }

    fn of(out: Results<M::Backend>) -> Self {
        let Results { mut parts, rows: Some(rows), .. } = out else {
            unreachable!("a factorisation has a permutation")
        };
        Self { packed: M::from_value(parts.swap_remove(0)), rows }
    }
}

/// `A[p] = L U`, packed: one factorisation for many right-hand sides.
///
/// # Errors
/// As [`lu`].
pub fn lu_factor<M: Matrix>(a: M) -> Result<LuFactors<M>> {
    Ok(LuFactors::of(results(Op::LuFactor(Pivoting::Partial), [a])?))
}

/// As [`lu_factor`], with the status of each matrix as in [`lu_ex`].
///
/// # Errors
/// As [`lu_ex`].
pub fn lu_factor_ex<M: Matrix>(a: M) -> Result<(LuFactors<M>, M::Info)> {
    let (out, info) = results_ex(Op::LuFactor(Pivoting::Partial), [a])?;
    Ok((LuFactors::of(out), info))
}

/// The factors and the tangent of the packed matrix along `dA`, for [`lu_solve_jvp`].
///
/// # Errors
/// As [`lu_jvp`].
pub fn lu_factor_jvp<M: Matrix>(a: M, da: M) -> Result<(LuFactors<M>, M)> {
    let (out, mut moved) = results_along(Op::LuFactor(Pivoting::Partial), [a], [da])?;
    Ok((LuFactors::of(out), M::from_value(moved.swap_remove(0))))
}

/// `op(A)⁻¹ B` by two substitutions.
fn substitute<A: Matrices>(packed: &A, rows: &Permutation, b: &A, op: TriangleOp) -> Result<A> {
    let lower = Triangle { op, ..Triangle::LOWER.unit() };
    let upper = Triangle { op, ..Triangle::UPPER };
    Ok(match op {
        TriangleOp::None => {
            let y = packed.solve_triangular(&b.permute_rows(rows), lower);
            packed.solve_triangular(&y, upper)
        }
        // op(A) = op(U) op(L) op(P), so the permutation comes last.
        _ => {
            let y = packed.solve_triangular(b, upper);
            packed.solve_triangular(&y, lower).permute_rows(&rows.inverse()?)
        }
    })
}

/// The solution for values `[packed, B]`.
fn solution<B: LinalgOps>(
    inputs: &[Value<B>],
    rows: &Permutation,
    op: TriangleOp,
) -> Result<Value<B>> {
    fn of<B: LinalgOps, A: Entries<B>>(
        [packed, b]: [&Value<B>; 2],
        rows: &Permutation,
        op: TriangleOp,
    ) -> Result<Value<B>> {
        substitute(&A::from_value(packed), rows, &A::from_value(b), op)?.into_value()
    }
    let pair = [&inputs[0], &inputs[1]];
    match &inputs[0] {
        Value::Real(_) => of::<B, RealMatrix<B>>(pair, rows, op),
        Value::Complex { .. } => of::<B, ComplexMatrix<B>>(pair, rows, op),
    }
}

/// The solution of `op(A) X = B` from the factors of `A`: `[…, n, r]` → `[…, n, r]`. Gradients
/// reach `A` through its factors.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular` with the batch index.
pub fn lu_solve<M: Matrix>(factors: &LuFactors<M>, b: M, op: TriangleOp) -> Result<M> {
    let inputs = [factors.packed.clone().into_value(), b.into_value()];
    super::solve::check_rows("lu_solve", &inputs[0], &inputs[1])?;
    Ok(M::from_value(solution(&inputs, &factors.rows, op)?))
}

/// As [`lu_solve`], with the status of each system: 0, or `i + 1` if pivot `i` is zero. The
/// solution of a system that failed is NaN, its gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn lu_solve_ex<M: Matrix>(
    factors: &LuFactors<M>,
    b: M,
    op: TriangleOp,
) -> Result<(M, M::Info)> {
    let inputs = vec![factors.packed.clone().into_value(), b.into_value()];
    super::solve::check_rows("lu_solve", &inputs[0], &inputs[1])?;
    let device = inputs[0].device();
    let (mut out, info) = isolated(
        inputs,
        |inputs| {
            let parts = vec![solution(inputs, &factors.rows, op)?];
            Ok(Results { parts, saved: None, rows: None, cols: None })
        },
        |inputs| M::Backend::linalg_info(&Op::SolveTriangular(Triangle::UPPER), inputs),
    )?;
    Ok((M::from_value(out.parts.swap_remove(0)), M::info(&info, &device)?))
}

/// The solution and its tangent along that of the packed factors and along `dB`.
///
/// # Errors
/// As [`lu_solve`].
pub fn lu_solve_jvp<M: Matrix>(
    factors: &LuFactors<M>,
    b: M,
    d_packed: M,
    db: M,
    op: TriangleOp,
) -> Result<(M, M)> {
    fn of<B: LinalgOps, A: Entries<B>>(
        [packed, b]: &[Value<B>; 2],
        [d_packed, db]: &[Value<B>; 2],
        rows: &Permutation,
        op: TriangleOp,
    ) -> Result<(Value<B>, Value<B>)> {
        let dual = |x, dx| Dual::new(A::from_value(x), A::from_value(dx));
        let x = substitute(&dual(packed, d_packed), rows, &dual(b, db), op)?;
        Ok((x.value.clone().into_value()?, x.into_tangent().into_value()?))
    }
    let inputs = [factors.packed.clone().into_value(), b.into_value()];
    let tangents = [d_packed.into_value(), db.into_value()];
    super::solve::check_rows("lu_solve", &inputs[0], &inputs[1])?;
    check_tangents("lu_solve", &inputs, &tangents)?;
    let (x, dx) = match &inputs[0] {
        Value::Real(_) => of::<_, RealMatrix<_>>(&inputs, &tangents, &factors.rows, op)?,
        Value::Complex { .. } => of::<_, ComplexMatrix<_>>(&inputs, &tangents, &factors.rows, op)?,
    };
    Ok((M::from_value(x), M::from_value(dx)))
}
