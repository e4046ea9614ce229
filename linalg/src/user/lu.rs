//! LU factorisation, and linear systems with given factors.

use crate::call::{OperationResults, info, isolated};
use crate::lu::{LuFactorOp, Pivoting};
use crate::operation::Part;
use crate::program::{self, MatrixProgram};
use crate::triangular::{SolveTriangularOp, Triangle, TriangleOp};
use crate::vocabulary::{Matrices, Region};
use crate::{Permutation, Result};
use t4a_tensor::{Tensor, TensorError};

use super::call::{self, OutcomeOf, results, results_ex, results_jvp};
use super::matrix::Matrix;

const PARTIAL: LuFactorOp = LuFactorOp { pivoting: Pivoting::Partial };
const FULL: LuFactorOp = LuFactorOp { pivoting: Pivoting::Full };

/// `A[p] = L U` of a batch of `m × n` matrices, `k = min(m, n)`.
#[derive(Clone, Debug)]
pub struct Lu<F, M: Matrix<F>> {
    /// Unit lower trapezoidal, `[…, m, k]`.
    pub l: M,
    /// Upper trapezoidal, `[…, k, n]`.
    pub u: M,
    /// Row `i` of `L U` is row `pᵢ` of `A`, `[…, m]`; a constant on the tape.
    pub rows: M::Indices,
}

/// LU factorisation `A[p] = L U` with partial pivoting. A singular matrix has factors too; its `U` has a zero on the
/// diagonal and no derivative.
///
/// # Errors
/// `NonFinite` with the batch index.
pub fn lu<F, M: Matrix<F>>(a: M) -> Result<Lu<F, M>> {
    Lu::new(results(PARTIAL, [a])?)
}

/// [`lu`] with the status of each matrix; the factors of a failed matrix are NaN, its gradient is zero.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn lu_ex<F, M: Matrix<F>>(a: M) -> Result<(Lu<F, M>, M::Info)> {
    let (out, info) = results_ex(PARTIAL, [a])?;
    Ok((Lu::new(out)?, info))
}

/// The factors, and the tangents `dL`, `dU` along `dA`.
///
/// # Errors
/// As [`lu`]; `Singular`; `Tensor` if the shapes differ.
pub fn lu_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Lu<F, M>, (M, M))> {
    let (out, tangents) = results_jvp(PARTIAL, [a], [da])?;
    let (dl, du) = split::<F, M>(&tangents[0], false)?;
    Ok((Lu::new(out)?, (dl, du)))
}

/// LU factorisation with full pivoting `A[p][:, q] = L U`: the factors, and `q`, `[…, n]`; column `j` of `L U` is
/// column `qⱼ` of `A`. The pivots reveal the rank.
///
/// # Errors
/// As [`lu`].
pub fn lu_full<F, M: Matrix<F>>(a: M) -> Result<(Lu<F, M>, M::Indices)> {
    let out = results(FULL, [a])?;
    let cols = M::indices(out.permutations[1].clone());
    Ok((Lu::new(out)?, cols))
}

/// As [`lu_full`], with the status of each matrix as in [`lu_ex`].
///
/// # Errors
/// As [`lu_ex`].
#[allow(clippy::type_complexity)]
pub fn lu_full_ex<F, M: Matrix<F>>(a: M) -> Result<((Lu<F, M>, M::Indices), M::Info)> {
    let (out, info) = results_ex(FULL, [a])?;
    let cols = M::indices(out.permutations[1].clone());
    Ok(((Lu::new(out)?, cols), info))
}

/// The factors, the tangents `dL`, `dU` along `dA`, and `q`.
///
/// # Errors
/// As [`lu_jvp`].
#[allow(clippy::type_complexity)]
pub fn lu_full_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Lu<F, M>, (M, M), M::Indices)> {
    let (out, tangents) = results_jvp(FULL, [a], [da])?;
    let (dl, du) = split::<F, M>(&tangents[0], false)?;
    let cols = M::indices(out.permutations[1].clone());
    Ok((Lu::new(out)?, (dl, du), cols))
}

impl<F, M: Matrix<F>> Lu<F, M> {
    fn new(out: OutcomeOf<F, M>) -> Result<Self> {
        let (l, u) = split::<F, M>(&out.results[0], true)?;
        Ok(Self { l, u, rows: M::indices(out.permutations[0].clone()) })
    }
}

/// Extracts `L`, with a unit or zero diagonal.
struct UnpackLower {
    unit: bool,
}

impl MatrixProgram for UnpackLower {
    const NAME: &'static str = "lu";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        let packed = &inputs[0];
        let (m, k) = (packed.rows(), packed.rows().min(packed.cols()));
        let l = packed.slice(0..m, 0..k).mask(Region::Lower(-1));
        Part::Full(match self.unit {
            true => l.add(&packed.constant(m, k, 1.0).mask(Region::Diagonal)),
            false => l,
        })
    }
}

struct UnpackUpper;

impl MatrixProgram for UnpackUpper {
    const NAME: &'static str = "lu";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        let packed = &inputs[0];
        let k = packed.rows().min(packed.cols());
        Part::Full(packed.slice(0..k, 0..packed.cols()).mask(Region::Upper(0)))
    }
}

/// Splits packed factors into `L` and `U`.
fn split<F, M: Matrix<F>>(packed: &call::ResultOf<F, M>, unit: bool) -> Result<(M, M)> {
    let packed = std::slice::from_ref(packed);
    let (l, u) =
        (program::run(&UnpackLower { unit }, packed)?, program::run(&UnpackUpper, packed)?);
    Ok((M::from_pair(l), M::from_pair(u)))
}

/// Packed factors of square matrices, for [`lu_solve`].
#[derive(Clone, Debug)]
pub struct LuFactors<M> {
    /// `U` on and above the diagonal, the strictly lower part of `L` below: `[…, n, n]`.
    pub packed: M,
    rows: Permutation,
}

impl<M> LuFactors<M> {
    /// Factors computed elsewhere, `[…, n, n]`, and the row permutation `p` of each, `[…, n]`: row `i` of `L U` is
    /// row `pᵢ` of `A`. [`LuFactors::from_pivots`] accepts pivots, that is, exchanges of rows.
    ///
    /// # Errors
    /// `Tensor` if this is not a permutation for each matrix.
    pub fn new<F>(packed: M, rows: M::Indices) -> Result<Self>
    where
        M: Matrix<F>,
    {
        Self::checked(packed, |index, _| Permutation::from_index(&index), rows)
    }

    /// [`LuFactors::new`] from pivots `[…, n]`: rows `i` and `pivotᵢ ≥ i` were exchanged, in order of `i`. Rows are
    /// counted from 0, as in SciPy's `lu_factor`; LAPACK's `ipiv` and PyTorch's pivots are counted from 1, so
    /// subtract 1 first.
    ///
    /// # Errors
    /// `Tensor` for pivots out of range or less than `i`.
    pub fn from_pivots<F>(packed: M, pivots: M::Indices) -> Result<Self>
    where
        M: Matrix<F>,
    {
        Self::checked(packed, |index, n| Permutation::from_pivots(&index, n), pivots)
    }

    fn checked<F>(
        packed: M,
        read: impl FnOnce(Tensor<i64>, usize) -> Result<Permutation>,
        indices: M::Indices,
    ) -> Result<Self>
    where
        M: Matrix<F>,
    {
        const NAME: &str = "lu_factors";
        let (shape, index) = (packed.clone().into_pair().shape(), M::host(indices)?);
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

    fn of<F>(mut out: OutcomeOf<F, M>) -> Result<Self>
    where
        M: Matrix<F>,
    {
        let rows = out.permutation(0)?;
        Ok(Self { packed: M::from_pair(out.results.swap_remove(0)), rows })
    }
}

/// LU factorisation `A[p] = L U` in packed form: one factorisation for many right-hand sides.
///
/// # Errors
/// As [`lu`].
pub fn lu_factor<F, M: Matrix<F>>(a: M) -> Result<LuFactors<M>> {
    LuFactors::of(results(PARTIAL, [a])?)
}

/// As [`lu_factor`], with the status of each matrix as in [`lu_ex`].
///
/// # Errors
/// As [`lu_ex`].
pub fn lu_factor_ex<F, M: Matrix<F>>(a: M) -> Result<(LuFactors<M>, M::Info)> {
    let (out, info) = results_ex(PARTIAL, [a])?;
    Ok((LuFactors::of(out)?, info))
}

/// The factors and the tangent of the packed matrix along `dA`, for [`lu_solve_jvp`].
///
/// # Errors
/// As [`lu_jvp`].
pub fn lu_factor_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(LuFactors<M>, M)> {
    let (out, mut tangents) = results_jvp(PARTIAL, [a], [da])?;
    Ok((LuFactors::of(out)?, M::from_pair(tangents.swap_remove(0))))
}

/// `op(A)⁻¹ B` by two substitutions, from packed factors and `B`.
struct Substitution {
    /// Row permutation, or its inverse if it is applied last.
    rows: Permutation,
    op: TriangleOp,
}

impl Substitution {
    fn new(rows: &Permutation, op: TriangleOp) -> Result<Self> {
        let rows = if op == TriangleOp::None { rows.clone() } else { rows.inverse()? };
        Ok(Self { rows, op })
    }
}

impl MatrixProgram for Substitution {
    const NAME: &'static str = "lu_solve";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        let (packed, b) = (&inputs[0], &inputs[1]);
        let lower = Triangle { op: self.op, ..Triangle::LOWER.unit() };
        let upper = Triangle { op: self.op, ..Triangle::UPPER };
        Part::Full(match self.op {
            TriangleOp::None => {
                let y = packed.solve_triangular(&b.permute_rows(&self.rows), lower);
                packed.solve_triangular(&y, upper)
            }
            // op(A) = op(U) op(L) op(P), so the permutation is applied last.
            _ => {
                let y = packed.solve_triangular(b, upper);
                packed.solve_triangular(&y, lower).permute_rows(&self.rows)
            }
        })
    }
}

/// Solution of `op(A) X = B` from the factors of `A`: `[…, n, r]` → `[…, n, r]`. Gradients with respect to `A` are
/// propagated through its factors.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular` with the batch index.
pub fn lu_solve<F, M: Matrix<F>>(factors: &LuFactors<M>, b: M, op: TriangleOp) -> Result<M> {
    let inputs = [factors.packed.clone().into_pair(), b.into_pair()];
    super::solve::check_rows(Substitution::NAME, &inputs[0], &inputs[1])?;
    Ok(M::from_pair(program::run(&Substitution::new(&factors.rows, op)?, &inputs)?))
}

/// [`lu_solve`] with the status of each system: 0, or `i + 1` if pivot `i` is zero. The solution of a failed system
/// is NaN, its gradient is zero.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn lu_solve_ex<F, M: Matrix<F>>(
    factors: &LuFactors<M>,
    b: M,
    op: TriangleOp,
) -> Result<(M, M::Info)> {
    let inputs = vec![factors.packed.clone().into_pair(), b.into_pair()];
    super::solve::check_rows(Substitution::NAME, &inputs[0], &inputs[1])?;
    let substitution = Substitution::new(&factors.rows, op)?;
    let like = inputs[0].re.clone();
    let (mut out, status) = isolated(
        inputs,
        |inputs| {
            let results = vec![program::run(&substitution, inputs)?];
            Ok(OperationResults { results, permutations: Vec::new() })
        },
        |inputs| info(SolveTriangularOp { triangle: Triangle::UPPER }, inputs),
    )?;
    Ok((M::from_pair(out.results.swap_remove(0)), M::info(&status, &like)?))
}

/// The solution and its tangent along that of the packed factors and along `dB`.
///
/// # Errors
/// As [`lu_solve`].
pub fn lu_solve_jvp<F, M: Matrix<F>>(
    factors: &LuFactors<M>,
    b: M,
    d_packed: M,
    db: M,
    op: TriangleOp,
) -> Result<(M, M)> {
    let inputs = [factors.packed.clone().into_pair(), b.into_pair()];
    let tangents = [d_packed.into_pair(), db.into_pair()];
    super::solve::check_rows(Substitution::NAME, &inputs[0], &inputs[1])?;
    let substitution = Substitution::new(&factors.rows, op)?;
    let (x, dx) = program::with_tangents(&substitution, &inputs, &tangents)?;
    Ok((M::from_pair(x), M::from_pair(dx)))
}
