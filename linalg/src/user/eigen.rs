//! Eigendecompositions of Hermitian and of general matrices.

use crate::eig::{EigOp, EigvalsOp};
use crate::eigh::{EighOp, EigvalshOp};
use crate::{Degeneracy, Result};

use super::call::{ResultsOf, jvp, plain, status};
use super::matrix::Matrix;
use super::svd::row;

/// Hermitian eigendecomposition `(A + Aᴴ)/2 = V diag(E) Vᴴ`, eigenvalues in nondecreasing order.
#[derive(Clone, Debug)]
pub struct Eigh<F, M: Matrix<F>> {
    /// Eigenvalues, `[…, n]`, real.
    pub values: M::RealVector,
    /// Orthonormal eigenvectors as columns, `[…, n, n]`.
    pub vectors: M,
}

impl<F, M: Matrix<F>> Eigh<F, M> {
    pub(super) fn new(parts: ResultsOf<F, M>) -> Self {
        let [e, v] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
        Self { values: M::real_vector(e), vectors: M::from_pair(v) }
    }
}

const EIGH: EighOp = EighOp { degeneracy: Degeneracy::DEFAULT };
const EIG: EigOp = EigOp { degeneracy: Degeneracy::DEFAULT };

/// Hermitian eigendecomposition `(A + Aᴴ)/2 = V diag(E) Vᴴ`; the gradient is Hermitian.
///
/// Gauge and ties as in [`svd`](super::svd()): a loss must not depend on the phases of eigenvectors, and one that
/// uses the vectors of tied values is an error. For matrix functions use
/// [`hermitian_function`](super::hermitian_function), which is exact at ties.
///
/// All entries are used, as `(A + Aᴴ)/2`; NumPy and PyTorch use the lower triangle only. For a matrix that is not
/// Hermitian the results are those of its Hermitian part.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NoConvergence` with the batch index.
pub fn eigh<F, M: Matrix<F>>(a: M) -> Result<Eigh<F, M>> {
    plain(EIGH, [a], Eigh::new)
}

/// As [`eigh`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`eigh`].
pub fn eigh_with<F, M: Matrix<F>>(a: M, degeneracy: Degeneracy) -> Result<Eigh<F, M>> {
    plain(EighOp { degeneracy }, [a], Eigh::new)
}

/// [`eigh`] with the status of each matrix; the results of a failed matrix are NaN, its gradient is zero.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn eigh_ex<F, M: Matrix<F>>(a: M) -> Result<(Eigh<F, M>, M::Info)> {
    status(EIGH, [a], Eigh::new)
}

/// The decomposition and its tangent along `(dA + dAᴴ)/2`, with `vᵢᴴ dvᵢ = 0`.
///
/// # Errors
/// As [`eigh`]; `SplitTie` if the direction splits tied values; `Tensor` if the shapes differ.
pub fn eigh_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Eigh<F, M>, Eigh<F, M>)> {
    jvp(EIGH, [a], [da], Eigh::new)
}

/// Eigenvalues of `(A + Aᴴ)/2` in nondecreasing order, `[…, n]`.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh<F, M: Matrix<F>>(a: M) -> Result<M::RealVector> {
    plain(EigvalshOp, [a], row::<F, M>)
}

/// As [`eigvalsh`], with the status of each matrix as in [`eigh_ex`].
///
/// # Errors
/// As [`eigh_ex`].
pub fn eigvalsh_ex<F, M: Matrix<F>>(a: M) -> Result<(M::RealVector, M::Info)> {
    status(EigvalshOp, [a], row::<F, M>)
}

/// Eigenvalues and their tangents along `(dA + dAᴴ)/2`; for tied values those along `A + t dA` for `t > 0`.
///
/// # Errors
/// As [`eigh_jvp`].
pub fn eigvalsh_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M::RealVector, M::RealVector)> {
    jvp(EigvalshOp, [a], [da], row::<F, M>)
}

/// Eigendecomposition `A V = V diag(λ)`, complex.
#[derive(Clone, Debug)]
pub struct Eig<F, M: Matrix<F>> {
    /// Eigenvalues, `[…, n]`, in unspecified order.
    pub values: M::ComplexVector,
    /// Eigenvectors of norm 1 as columns, `[…, n, n]`.
    pub vectors: M::ComplexMatrix,
}

impl<F, M: Matrix<F>> Eig<F, M> {
    fn new(parts: ResultsOf<F, M>) -> Self {
        let [l, v] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
        Self { values: M::complex_vector(l), vectors: M::complex_matrix(v) }
    }
}

/// Eigendecomposition `A V = V diag(λ)` of a general matrix; the gradient is real if `A` is.
///
/// Gauge: a loss must not depend on the phases of eigenvectors. At tied eigenvalues there is no derivative through
/// the vectors, and `backward` panics with the message of `SplitTie`, also if the loss uses the values alone; use
/// [`eigvals`] for those. A defective matrix has no derivative: `backward` panics with the message of `Defective`.
///
/// # Errors
/// As [`eigh`].
pub fn eig<F, M: Matrix<F>>(a: M) -> Result<Eig<F, M>> {
    plain(EIG, [a], Eig::new)
}

/// As [`eig`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`eigh`].
pub fn eig_with<F, M: Matrix<F>>(a: M, degeneracy: Degeneracy) -> Result<Eig<F, M>> {
    plain(EigOp { degeneracy }, [a], Eig::new)
}

/// As [`eig`], with the status of each matrix as in [`eigh_ex`].
///
/// # Errors
/// As [`eigh_ex`].
pub fn eig_ex<F, M: Matrix<F>>(a: M) -> Result<(Eig<F, M>, M::Info)> {
    status(EIG, [a], Eig::new)
}

/// The decomposition and its tangent along `dA`, with `Re vᵢᴴ dvᵢ = 0`.
///
/// # Errors
/// As [`eig`]; `SplitTie` if the direction splits tied values; `Defective` if the vectors are dependent;
/// `Tensor` if the shapes differ.
pub fn eig_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(Eig<F, M>, Eig<F, M>)> {
    jvp(EIG, [a], [da], Eig::new)
}

fn complex_row<F, M: Matrix<F>>(mut parts: ResultsOf<F, M>) -> M::ComplexVector {
    M::complex_vector(parts.swap_remove(0))
}

/// Eigenvalues of a general matrix, `[…, n]`, complex, in unspecified order. As for [`eig`], a defective matrix has
/// no derivative.
///
/// # Errors
/// As [`eig`].
pub fn eigvals<F, M: Matrix<F>>(a: M) -> Result<M::ComplexVector> {
    plain(EigvalsOp, [a], complex_row::<F, M>)
}

/// As [`eigvals`], with the status of each matrix as in [`eigh_ex`].
///
/// # Errors
/// As [`eigh_ex`].
pub fn eigvals_ex<F, M: Matrix<F>>(a: M) -> Result<(M::ComplexVector, M::Info)> {
    status(EigvalsOp, [a], complex_row::<F, M>)
}

/// Eigenvalues and their tangents along `dA`.
///
/// # Errors
/// As [`eig_jvp`].
pub fn eigvals_jvp<F, M: Matrix<F>>(a: M, da: M) -> Result<(M::ComplexVector, M::ComplexVector)> {
    jvp(EigvalsOp, [a], [da], complex_row::<F, M>)
}
