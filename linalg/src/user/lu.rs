//! LU factorisation, and linear systems with given factors.

use crate::call::{OperationResults, Pair};
use crate::lu::LuFactorOp;
use crate::operation::Part;
use crate::program::{self, MatrixProgram};
use crate::triangular::{SolveTriangularOp, Triangle, TriangleOp};
use crate::vocabulary::{Matrices, Region};
use crate::{MatrixOp, Permutation, Result};
use t4a_diff::Array;
use t4a_tensor::{Tensor, TensorError};

use super::call::{Arranged, Composition, ResultsOf, Shapes, functions, one, parts, plain};
use super::matrix::Matrix;
use super::solve::check_rows;

functions! {
    LuOp: M -> Lu<F, M> = Lu::new;
    LuFullOp: M -> (Lu<F, M>, M::Indices) = full;
    LuFactorOp: M -> LuFactors<M> = LuFactors::of;
    LuSolveOp<'_>: (M, M) -> M = one;
}

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
    plain(LuOp, a)
}

/// LU factorisation with full pivoting `A[p][:, q] = L U`: the factors, and `q`, `[…, n]`; column `j` of `L U` is
/// column `qⱼ` of `A`. The pivots reveal the rank.
///
/// # Errors
/// As [`lu`].
pub fn lu_full<F, M: Matrix<F>>(a: M) -> Result<(Lu<F, M>, M::Indices)> {
    plain(LuFullOp, a)
}

fn full<F, M: Matrix<F>>(out: ResultsOf<F, M>) -> Result<(Lu<F, M>, M::Indices)> {
    let columns = M::indices(out.permutations[1].clone());
    Ok((Lu::new(out)?, columns))
}

impl<F, M: Matrix<F>> Lu<F, M> {
    fn new(out: ResultsOf<F, M>) -> Result<Self> {
        let rows = M::indices(out.permutations[0].clone());
        let [l, u] = parts(out);
        Ok(Self { l: M::from_pair(l), u: M::from_pair(u), rows })
    }
}

/// Extracts `L` of packed factors.
struct UnpackLower;

impl MatrixProgram for UnpackLower {
    const NAME: &'static str = "lu";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        let packed = &inputs[0];
        let (m, k) = (packed.rows(), packed.rows().min(packed.cols()));
        let l = packed.slice(0..m, 0..k).mask(Region::Lower(-1));
        Part::Full(l.add(&packed.constant(m, k, 1.0).mask(Region::Diagonal)))
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

/// `L` and `U` of packed factors.
fn unpacked<A: Array>(packed: &[Pair<A>]) -> Result<Vec<Pair<A>>> {
    Ok(vec![program::run(&UnpackLower, packed)?, program::run(&UnpackUpper, packed)?])
}

/// `A` → `L`, `U` and a permutation of the rows.
#[derive(Clone, Copy, Debug)]
pub struct LuOp;

impl Arranged for LuOp {
    fn name(&self) -> &'static str {
        "lu"
    }
    fn op(&self) -> MatrixOp {
        LuFactorOp::PARTIAL.into()
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, _: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        unpacked(&out)
    }
}

/// `A` → `L`, `U` and permutations of the rows and of the columns.
#[derive(Clone, Copy, Debug)]
pub struct LuFullOp;

impl Arranged for LuFullOp {
    fn name(&self) -> &'static str {
        "lu_full"
    }
    fn op(&self) -> MatrixOp {
        LuFactorOp::FULL.into()
    }
    fn after<A: Array>(&self, out: Vec<Pair<A>>, _: &Shapes, _: bool) -> Result<Vec<Pair<A>>> {
        unpacked(&out)
    }
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

    fn of<F>(mut out: ResultsOf<F, M>) -> Result<Self>
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
    plain(LuFactorOp::PARTIAL, a)
}

/// `op(A)⁻¹ B` by two substitutions, from packed factors and `B`.
struct Substitution {
    /// Row permutation, or its inverse if it is applied last.
    rows: Permutation,
    op: TriangleOp,
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

/// Packed factors of `A`, `B` → `op(A)⁻¹ B`.
#[derive(Clone, Copy, Debug)]
pub struct LuSolveOp<'a> {
    rows: &'a Permutation,
    op: TriangleOp,
}

impl<'a> LuSolveOp<'a> {
    /// Solution with these factors; their packed matrix is the first operand.
    pub fn new<M>(factors: &'a LuFactors<M>, op: TriangleOp) -> Self {
        Self { rows: &factors.rows, op }
    }
}

impl Composition for LuSolveOp<'_> {
    fn name(&self) -> &'static str {
        Substitution::NAME
    }

    fn run<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        check_rows(self.name(), &operands[0], &operands[1])?;
        let rows = match self.op {
            TriangleOp::None => self.rows.clone(),
            _ => self.rows.inverse()?,
        };
        let substitution = Substitution { rows, op: self.op };
        Ok(OperationResults::one(program::run(&substitution, &operands)?))
    }

    fn failing(&self) -> Option<MatrixOp> {
        Some(SolveTriangularOp { triangle: Triangle::UPPER }.into())
    }
}

/// Solution of `op(A) X = B` from the factors of `A`: `[…, n, r]` → `[…, n, r]`. Gradients with respect to `A` are
/// propagated through its factors.
///
/// # Errors
/// `NotSquare`, `Tensor` if the shapes do not match; `NonFinite`, `Singular` with the batch index.
pub fn lu_solve<F, M: Matrix<F>>(factors: &LuFactors<M>, b: M, op: TriangleOp) -> Result<M> {
    plain(LuSolveOp::new(factors, op), (factors.packed.clone(), b))
}
