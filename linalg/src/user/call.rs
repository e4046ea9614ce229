//! Functions as values, and their three forms: plain, with the status of each matrix, and with tangents.
//!
//! ```text
//! operands X ── pairs of arrays ── Composition ── pairs of arrays ── results Y       Function
//!                rearranged ── operation of the table ── rearranged                  Arranged
//! ```

use crate::call::{self, OperationResults, Pair, check_tangents, duals, info, isolated, parted};
use crate::operation::{MatrixOperation, Signature};
use crate::systems::Systems;
use crate::{MatrixOp, Result};
use smallvec::SmallVec;
use t4a_diff::Array;
use t4a_tensor::Tensor;

use super::matrix::Matrix;

/// One result.
pub(super) type ResultOf<F, M> = Pair<<M as Matrix<F>>::Array>;
/// Results and permutations of a function.
pub(super) type ResultsOf<F, M> = OperationResults<<M as Matrix<F>>::Array>;
/// Results, and the status of each matrix.
type WithStatus<A> = (OperationResults<A>, Tensor<i32>);
/// Shapes of the operands.
pub(super) type Shapes = SmallVec<[Vec<usize>; 2]>;

/// Function of batches of matrices over arrays of any kind: a tape records it, and on dual numbers it has tangents.
pub trait Composition {
    /// Name in errors.
    fn name(&self) -> &'static str;

    /// The results.
    ///
    /// # Errors
    /// Errors of the function, with the batch index.
    fn run<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<OperationResults<A>>;

    /// The operation on the same operands whose status is that of the function; `None`, the default, if the function fails
    /// for no single matrix.
    fn failing(&self) -> Option<MatrixOp> {
        None
    }

    /// The results, with NaN for failed matrices, and the status of each matrix.
    ///
    /// # Errors
    /// Errors that do not concern a single matrix: shapes, dtypes, memory.
    fn run_isolated<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<WithStatus<A>> {
        let Some(op) = self.failing() else {
            let shape = operands[0].shape();
            return Ok((self.run(operands)?, Tensor::zeros(&shape[..shape.len() - 2])?));
        };
        isolated(operands, |operands| self.run(operands.to_vec()), |operands| info(op, operands))
    }
}

/// One operation of the table whose operands and results are rearranged.
pub(super) trait Arranged {
    /// Name in errors.
    fn name(&self) -> &'static str;

    /// The operation.
    fn op(&self) -> MatrixOp;

    /// Operands of the operation. With `fold`, batch axes may become columns; a status belongs to one matrix of the
    /// batch, so it requires the batch as it is.
    fn before<A: Array>(&self, operands: Vec<Pair<A>>, _fold: bool) -> Result<Vec<Pair<A>>> {
        Ok(operands)
    }

    /// Results from those of the operation; `shapes` are those of the operands.
    fn after<A: Array>(
        &self,
        results: Vec<Pair<A>>,
        _shapes: &Shapes,
        _fold: bool,
    ) -> Result<Vec<Pair<A>>> {
        Ok(results)
    }
}

impl<T: Arranged> Composition for T {
    fn name(&self) -> &'static str {
        Arranged::name(self)
    }

    fn run<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        let shapes = operands.iter().map(Pair::shape).collect();
        let operands = self.before(operands, true)?;
        let out = call::run(self.op(), &operands);
        let mut out = out.map_err(|error| error.of(Arranged::name(self)))?;
        out.results = self.after(out.results, &shapes, true)?;
        Ok(out)
    }

    fn run_isolated<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<WithStatus<A>> {
        let shapes = operands.iter().map(Pair::shape).collect();
        let operands = self.before(operands, false)?;
        let out = call::with_status(self.op(), operands);
        let (mut out, status) = out.map_err(|error| error.of(Arranged::name(self)))?;
        out.results = self.after(out.results, &shapes, false)?;
        Ok((out, status))
    }
}

/// Operations of the table; the batches of linear systems broadcast.
impl<O: MatrixOperation + Into<MatrixOp>> Arranged for O {
    fn name(&self) -> &'static str {
        O::NAME
    }

    fn op(&self) -> MatrixOp {
        (*self).into()
    }

    fn before<A: Array>(&self, mut operands: Vec<Pair<A>>, fold: bool) -> Result<Vec<Pair<A>>> {
        if !is_system::<O>() {
            return Ok(operands);
        }
        let systems = Systems::new(O::NAME, &operands[0].shape(), &operands[1].shape(), fold)?;
        let (b, a) = (operands.swap_remove(1), operands.swap_remove(0));
        Ok(vec![systems.matrices(a)?, systems.columns(b)?])
    }

    fn after<A: Array>(
        &self,
        mut results: Vec<Pair<A>>,
        shapes: &Shapes,
        fold: bool,
    ) -> Result<Vec<Pair<A>>> {
        if !is_system::<O>() {
            return Ok(results);
        }
        let systems = Systems::new(O::NAME, &shapes[0], &shapes[1], fold)?;
        Ok(vec![systems.solution(results.swap_remove(0))?])
    }
}

/// True for operations on a matrix and right-hand sides.
fn is_system<O: MatrixOperation>() -> bool {
    matches!(O::OPERANDS, Signature::System | Signature::Columns)
}

/// Function of this module as a value, from operands of type `X` to results of type `Y`: an argument of [`status`] and
/// of [`jvp`].
pub trait Function<F, X, Y>: Composition {
    /// Arrays of the operands.
    type Array: Array;
    /// Status of each matrix.
    type Info;

    /// Arrays of the operands.
    fn operands(x: X) -> Vec<Pair<Self::Array>>;

    /// Results from their arrays.
    ///
    /// # Errors
    /// `Tensor` for a type of results of another rank.
    fn results(out: OperationResults<Self::Array>) -> Result<Y>;

    /// Status tensor on the device of `like`.
    ///
    /// # Errors
    /// Errors of the transfer.
    fn info(codes: &Tensor<i32>, like: &Self::Array) -> Result<Self::Info>;
}

/// Implements [`Function`] for functions of matrices `M`: operation, types of the operands and of the results, function
/// that reads the results.
macro_rules! functions {
    ($($op:ty: $x:tt -> $y:ty = $read:expr;)+) => {$(
        impl<F, M: Matrix<F>> super::call::Function<F, functions!(@type $x), $y> for $op {
            type Array = M::Array;
            type Info = M::Info;

            fn operands(x: functions!(@type $x)) -> Vec<crate::call::Pair<M::Array>> {
                functions!(@pairs $x x)
            }
            fn results(out: super::call::ResultsOf<F, M>) -> crate::Result<$y> {
                $read(out)
            }
            fn info(
                codes: &t4a_tensor::Tensor<i32>,
                like: &M::Array,
            ) -> crate::Result<M::Info> {
                M::info(codes, like)
            }
        }
    )+};
    (@type M) => { M };
    (@type (M, M)) => { (M, M) };
    (@type (M, M, M)) => { (M, M, M) };
    (@pairs M $x:ident) => { vec![$x.into_pair()] };
    (@pairs (M, M) $x:ident) => { vec![$x.0.into_pair(), $x.1.into_pair()] };
    (@pairs (M, M, M) $x:ident) => {
        vec![$x.0.into_pair(), $x.1.into_pair(), $x.2.into_pair()]
    };
}
pub(super) use functions;

/// Results of a function.
pub(super) fn plain<F, X, Y, O: Function<F, X, Y>>(function: O, operands: X) -> Result<Y> {
    O::results(function.run(O::operands(operands))?)
}

/// Results of a function of [`op`](super::op), and the status of each matrix: 0, or a code of
/// [`error`](crate::error). Results of failed matrices are NaN and their gradients zero; the others are not affected.
/// Several operands are a tuple.
///
/// The cost is that of the function if no matrix fails, three times that otherwise.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn status<F, X, Y, O: Function<F, X, Y>>(function: O, operands: X) -> Result<(Y, O::Info)> {
    let operands = O::operands(operands);
    let like = operands[0].re.clone();
    let (out, codes) = function.run_isolated(operands)?;
    Ok((O::results(out)?, O::info(&codes, &like)?))
}

/// Results of a function of [`op`](super::op), and their tangents along the tangents of the operands, which have the
/// types of the operands. The tangents are differentiable too. Results without a tangent (permutations, errors of
/// truncation) are repeated or zero.
///
/// # Errors
/// As the function, and those of its derivative: `SplitTie` for a direction that splits tied values on which the tangent
/// depends, or moves singular values off zero, `RankDeficient`, `Singular`, `Defective`, `OutsideDomain`. `Tensor` if
/// a tangent has another shape or dtype than its operand.
pub fn jvp<F, X, Y, O: Function<F, X, Y>>(function: O, operands: X, tangents: X) -> Result<(Y, Y)> {
    let (x, dx) = (O::operands(operands), O::operands(tangents));
    check_tangents(function.name(), &x, &dx)?;
    let out = function.run(duals(&x, &dx))?;
    let (results, moving) = out.results.into_iter().map(parted).unzip();
    let of = |results| OperationResults { results, permutations: out.permutations.clone() };
    Ok((O::results(of(results))?, O::results(of(moving))?))
}

/// Matrix of a function with one result.
pub(super) fn one<F, M: Matrix<F>>(mut out: ResultsOf<F, M>) -> Result<M> {
    Ok(M::from_pair(out.results.swap_remove(0)))
}

/// The two matrices of a result.
pub(super) fn two<F, M: Matrix<F>>(out: ResultsOf<F, M>) -> Result<(M, M)> {
    let [a, b] = parts(out);
    Ok((M::from_pair(a), M::from_pair(b)))
}

/// Real row of a function with one result.
pub(super) fn row<F, M: Matrix<F>>(mut out: ResultsOf<F, M>) -> Result<M::RealVector> {
    Ok(M::real_vector(out.results.swap_remove(0)))
}

/// Real number of a function with one result.
pub(super) fn number<F, M: Matrix<F>>(mut out: ResultsOf<F, M>) -> Result<M::RealNumber> {
    Ok(M::real_number(out.results.swap_remove(0)))
}

/// The results of a function that has `N`.
pub(super) fn parts<A: Array, const N: usize>(out: OperationResults<A>) -> [Pair<A>; N] {
    out.results.try_into().unwrap_or_else(|_| unreachable!("the number of results is fixed"))
}
