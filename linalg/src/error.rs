//! Errors of linear algebra, and info tensors that report failures for each matrix of a batch.

use t4a_algebra::message::short;
use t4a_tensor::{Tensor, TensorError};
use thiserror::Error;

use crate::krylov::KrylovError;

/// Result of a linear-algebra operation.
pub type Result<T, E = LinalgError> = std::result::Result<T, E>;

/// Rejected operation, or a matrix that it cannot factor. `batch` is the index of the matrix in row-major order of
/// the leading axes.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum LinalgError {
    /// Error of the tensor engine: shapes, axes, memory.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// Error of a Krylov method.
    #[error(transparent)]
    Krylov(#[from] KrylovError),
    /// The tensor has fewer than two axes.
    #[error(
        "{op}: a matrix or a batch of matrices is required, the shape is {shape:?}; a vector becomes a \
         matrix of one column by an axis of size 1",
        shape = short(.shape)
    )]
    NotMatrix {
        /// Name of the operation.
        op: &'static str,
        /// Given shape.
        shape: Vec<usize>,
    },
    /// The matrix is not square.
    #[error("{op}: square matrices are required, the shape is {shape:?}", shape = short(.shape))]
    NotSquare {
        /// Name of the operation.
        op: &'static str,
        /// Given shape.
        shape: Vec<usize>,
    },
    /// Operands have different batches.
    #[error(
        "{op}: the batches of shapes {lhs:?} and {rhs:?} differ in axis {axis}, {required} are required",
        lhs = short(.lhs),
        rhs = short(.rhs)
    )]
    BatchMismatch {
        /// Name of the operation.
        op: &'static str,
        /// Shape of one operand.
        lhs: Vec<usize>,
        /// Shape of the other operand.
        rhs: Vec<usize>,
        /// First axis in which the batches differ; negative if it is counted from the last one.
        axis: isize,
        /// Required relation of the batches.
        required: &'static str,
    },
    /// The input contains NaN or ∞.
    #[error(
        "{op}: matrix {batch} has an element that is NaN or infinite; `linalg::status` continues with the others"
    )]
    NonFinite {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// A Cholesky pivot is not positive.
    #[error(
        "{op}: matrix {batch} is not positive definite, pivot {index} is not positive; (A + Aᴴ)/2 is \
         factored, from both triangles. If rounding is the only cause, add a multiple of the unit matrix, \
         that is, about 1e-6 (f32) or 1e-12 (f64) of the largest entry"
    )]
    NonPositivePivot {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
        /// Row of the pivot.
        index: usize,
    },
    /// A pivot is zero.
    #[error(
        "{op}: matrix {batch} is singular, pivot {index} is zero; `lstsq_min_norm` and `pinv` accept \
         matrices of any rank"
    )]
    Singular {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
        /// Row of the pivot.
        index: usize,
    },
    /// The factorisation or derivative requires full rank.
    #[error(
        "{op}: matrix {batch} has rank {rank}, full rank {required} is required; `lstsq_min_norm` and \
         `pinv` accept matrices of any rank"
    )]
    RankDeficient {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
        /// Numerical rank.
        rank: usize,
        /// The rank required.
        required: usize,
    },
    /// The eigenvectors are linearly dependent up to rounding and cannot be inverted.
    #[error(
        "{op}: the eigenvectors of matrix {batch} are linearly dependent, and eigenvalues and eigenvectors have no \
         derivative; matrix functions have one (`expm`, `sqrtm`, `logm`, `matrix_power`, `det`); for \
         Hermitian matrices use `eigh`, whose eigenvectors are independent"
    )]
    Defective {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// The iteration did not converge.
    #[error(
        "{op}: the iteration did not converge for matrix {batch}; `linalg::status` continues with the others"
    )]
    NoConvergence {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// An eigenvalue is on the negative real axis, where roots and logarithms have no principal value.
    #[error(
        "{op}: matrix {batch} has an eigenvalue on the negative real axis, where roots and logarithms have no \
         principal value; `linalg::status` continues with the others"
    )]
    NegativeEigenvalue {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// The Sylvester or Lyapunov equation has no unique solution.
    #[error(
        "{op}: equation {batch} has no unique solution: an eigenvalue of A is the negative of one of B (of Aᴴ in a \
         Lyapunov equation), up to rounding; adding a multiple of the unit matrix to A shifts its eigenvalues"
    )]
    CommonEigenvalue {
        /// Name of the operation.
        op: &'static str,
        /// Index of the equation in the batch.
        batch: usize,
    },
    /// A result exceeds the range of the element type.
    #[error(
        "{op}: the result for matrix {batch} exceeds the range of the element type; scale the matrix, or use f64"
    )]
    Overflow {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// The function, or its derivative, is not finite at an eigenvalue, or at a singular value.
    #[error("{op}: the function, or its derivative, is not finite at {}", outside(op, *.batch))]
    OutsideDomain {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// The second derivative at degenerate values does not exist, or is not a function of the cotangents.
    #[error(
        "{op}: matrix {batch} has tied values, and the derivative of its derivative depends on the \
         arbitrary basis of the vectors, or on the order of these values; symmetric functions of \
         svdvals and eigvalsh have second derivatives there"
    )]
    SecondOrderAtTie {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// The loss uses vectors of degenerate values, or the direction splits them: the derivative is not a function of
    /// the cotangents, or requires another basis.
    #[error(
        "{op}: values of matrix {batch} are tied, and the loss uses their vectors or the direction splits \
         them. Smooth at ties: `svd_function`, `hermitian_function`, `low_rank`, `polar`, `expm`, `sqrtm`; \
         for values alone `svdvals`, `eigvalsh`, `eigvals`. For losses of subspaces, such as projectors, \
         set `separable` in the Degeneracy of `svd_with` or `eigh_with`. All singular values of unit, \
         orthogonal and zero matrices are tied"
    )]
    SplitTie {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
    },
    /// The cotangent depends on the gauge of the factorisation: phases of singular vectors or eigenvectors, or the
    /// basis of a degenerate subspace. The derivative does not exist, or is not a function of the cotangents.
    #[error(
        "{op}: the loss depends on the arbitrary basis of the vectors of matrix {batch}, or differs between \
         its tied values (defect {defect:.3e}, allowed {allowed:.3e}); `svd_function` and \
         `hermitian_function` are smooth at ties; all singular values of unit and orthogonal matrices \
         are tied; the Degeneracy of `svd_with` and `eigh_with` sets the tolerance and this check"
    )]
    GaugeIllDefined {
        /// Name of the operation.
        op: &'static str,
        /// Index of the matrix in the batch.
        batch: usize,
        /// Size of the gauge-dependent part of the cotangent.
        defect: f64,
        /// Largest accepted size.
        allowed: f64,
    },
}

impl LinalgError {
    /// The same error with the name of the operation that the caller used.
    pub fn of(mut self, name: &'static str) -> Self {
        match &mut self {
            Self::Tensor(_) | Self::Krylov(_) => {}
            Self::NotMatrix { op, .. }
            | Self::NotSquare { op, .. }
            | Self::BatchMismatch { op, .. }
            | Self::NonFinite { op, .. }
            | Self::NonPositivePivot { op, .. }
            | Self::Singular { op, .. }
            | Self::RankDeficient { op, .. }
            | Self::Defective { op, .. }
            | Self::NoConvergence { op, .. }
            | Self::NegativeEigenvalue { op, .. }
            | Self::CommonEigenvalue { op, .. }
            | Self::Overflow { op, .. }
            | Self::OutsideDomain { op, .. }
            | Self::SecondOrderAtTie { op, .. }
            | Self::SplitTie { op, .. }
            | Self::GaugeIllDefined { op, .. } => *op = name,
        }
        self
    }

    /// Error for shapes `[…, m, n]` with unequal batches.
    pub(crate) fn unequal_batches(op: &'static str, lhs: &[usize], rhs: &[usize]) -> Self {
        let batch = |shape: &[usize]| shape[..shape.len().saturating_sub(2)].to_vec();
        let (x, y) = (batch(lhs), batch(rhs));
        let axis = (0..x.len().max(y.len())).find(|&i| x.get(i) != y.get(i)).unwrap_or(0) as isize;
        let (lhs, rhs) = (lhs.to_vec(), rhs.to_vec());
        Self::BatchMismatch { op, lhs, rhs, axis, required: "equal batches" }
    }

    /// Index of the failed matrix in the batch; `None` if the error does not concern a single matrix.
    pub fn batch(&self) -> Option<usize> {
        match self {
            Self::Tensor(_)
            | Self::Krylov(_)
            | Self::NotMatrix { .. }
            | Self::NotSquare { .. }
            | Self::BatchMismatch { .. } => None,
            Self::NonFinite { batch, .. }
            | Self::NonPositivePivot { batch, .. }
            | Self::Singular { batch, .. }
            | Self::RankDeficient { batch, .. }
            | Self::Defective { batch, .. }
            | Self::NoConvergence { batch, .. }
            | Self::NegativeEigenvalue { batch, .. }
            | Self::CommonEigenvalue { batch, .. }
            | Self::Overflow { batch, .. }
            | Self::OutsideDomain { batch, .. }
            | Self::SecondOrderAtTie { batch, .. }
            | Self::SplitTie { batch, .. }
            | Self::GaugeIllDefined { batch, .. } => Some(*batch),
        }
    }
}

/// Place where a function of matrices is not finite.
fn outside(op: &str, batch: usize) -> String {
    // Also of its derivatives, `svd_function_vjp` and `svd_function_jvp`.
    match op.starts_with("svd_function") {
        true => format!("a singular value of matrix {batch}"),
        false => format!(
            "an eigenvalue of matrix {batch}; adding a multiple of the unit matrix shifts its eigenvalues"
        ),
    }
}

/// Info code of an equation without a unique solution.
pub const COMMON_EIGENVALUE: i32 = -6;
/// Info code of a matrix with an eigenvalue on the negative real axis.
pub const NEGATIVE_EIGENVALUE: i32 = -5;
/// Info code of a matrix with an eigenvalue or singular value at which the function is not finite.
pub const OUTSIDE_DOMAIN: i32 = -4;
/// Info code of a result beyond the range of the type.
pub const OVERFLOW: i32 = -3;
/// Info code of a matrix whose iteration did not converge.
pub const NO_CONVERGENCE: i32 = -1;
/// Info code of a matrix with an element that is not finite.
pub const NON_FINITE: i32 = -2;

/// Conversion of a positive info code of an operation to an error.
pub(crate) type PivotError = fn(op: &'static str, batch: usize, index: usize) -> LinalgError;

pub(crate) const SINGULAR: PivotError =
    |op, batch, index| LinalgError::Singular { op, batch, index };
pub(crate) const NON_POSITIVE: PivotError =
    |op, batch, index| LinalgError::NonPositivePivot { op, batch, index };

/// Converts the first failure of an info tensor to an error.
///
/// Codes: 0 success; `i > 0` pivot `i − 1` failed; the constants above.
pub(crate) fn check(
    op: &'static str,
    info: &Tensor<i32>,
    pivot: impl Fn(&'static str, usize, usize) -> LinalgError,
) -> Result<()> {
    let codes = info.as_slice().unwrap_or_default();
    match codes.iter().copied().enumerate().find(|&(_, code)| code != 0) {
        None => Ok(()),
        Some((batch, NO_CONVERGENCE)) => Err(LinalgError::NoConvergence { op, batch }),
        Some((batch, OUTSIDE_DOMAIN)) => Err(LinalgError::OutsideDomain { op, batch }),
        Some((batch, NEGATIVE_EIGENVALUE)) => Err(LinalgError::NegativeEigenvalue { op, batch }),
        Some((batch, COMMON_EIGENVALUE)) => Err(LinalgError::CommonEigenvalue { op, batch }),
        Some((batch, OVERFLOW)) => Err(LinalgError::Overflow { op, batch }),
        Some((batch, code)) if code > 0 => Err(pivot(op, batch, code as usize - 1)),
        Some((batch, _)) => Err(LinalgError::NonFinite { op, batch }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_a_remedy() {
        let (op, batch) = ("solve", 3);
        let texts = [
            (LinalgError::NotMatrix { op, shape: vec![4] }, "an axis of size 1"),
            (LinalgError::NonFinite { op, batch }, "`linalg::status`"),
            (
                LinalgError::NonPositivePivot { op, batch, index: 1 },
                "a multiple of the unit matrix",
            ),
            (LinalgError::Singular { op, batch, index: 1 }, "`pinv`"),
            (LinalgError::RankDeficient { op, batch, rank: 1, required: 2 }, "`lstsq_min_norm`"),
            (LinalgError::OutsideDomain { op, batch }, "eigenvalue of matrix 3; adding a multiple"),
            (LinalgError::SplitTie { op, batch }, "`svd_function`"),
            (
                LinalgError::GaugeIllDefined { op, batch, defect: 1.0, allowed: 0.0 },
                "`svd_with` and `eigh_with`",
            ),
        ];
        for (error, remedy) in texts {
            let text = error.to_string();
            assert!(text.starts_with("solve: ") && text.contains(remedy), "{text}");
            assert_eq!(text.contains("matrix 3"), error.batch().is_some(), "{text}");
        }
        let text = LinalgError::OutsideDomain { op: "svd_function_vjp", batch }.to_string();
        assert!(text.ends_with("at a singular value of matrix 3"), "{text}");
    }
}
