//! Values that a reverse rule reads beside the cotangents.

use t4a_diff::Operation;
use t4a_einsum::FloatSemiring;
use t4a_linalg::MatrixOp;

use crate::AnyOperation;

/// Values that a reverse rule reads beside the cotangents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Residuals {
    /// Operands: the rule does not run the operation.
    Operands,
    /// Operands and results.
    Results,
    /// Further ones, which the forward computation alone returns.
    Hidden,
}

/// The residuals of an operation for these operands. An operation that is not named here counts as one with hidden ones.
pub(super) fn residuals(op: &AnyOperation, wanted: &[bool]) -> Residuals {
    let hidden = match op {
        AnyOperation::Einsum(op) => is_selective(op.semiring),
        AnyOperation::Linalg(op) => saves(&op.op),
        AnyOperation::ComplexEinsum(_)
        | AnyOperation::Softmax(_)
        | AnyOperation::LogSoftmax(_)
        | AnyOperation::LayerNorm(_)
        | AnyOperation::RmsNorm(_)
        | AnyOperation::Attention(_)
        | AnyOperation::CrossEntropy(_)
        | AnyOperation::Cumulative(_)
        | AnyOperation::LinearRecurrence(_)
        | AnyOperation::MatrixRecurrence(_)
        | AnyOperation::LogPartition(_)
        | AnyOperation::Rearrange(_)
        | AnyOperation::Contract(_)
        | AnyOperation::ComplexContract(_)
        | AnyOperation::ScaleBond(_)
        | AnyOperation::Inner(_) => false,
        _ => true,
    };
    match hidden {
        true => Residuals::Hidden,
        false if op.keep(wanted).reads_results() => Residuals::Results,
        false => Residuals::Operands,
    }
}

/// True for semirings whose sum is one of the terms: the rule reads the argmax.
fn is_selective(semiring: FloatSemiring) -> bool {
    !matches!(semiring, FloatSemiring::Standard | FloatSemiring::LogSumExp)
}

/// True if the rule of a factorisation reads factors that are no results, or permutations.
fn saves(op: &MatrixOp) -> bool {
    let sizes = [[1, 2], [2, 1], [2, 2]];
    let saved = |size| [true, false].into_iter().any(|permuted| op.saves(size, permuted).is_some());
    !op.hidden().is_empty()
        || sizes.into_iter().any(|size| saved(size) || !op.permutations(size).is_empty())
}
