//! Eigendecompositions of Hermitian and of general matrices.

use t4a_linalg::eig::{EigOp, EigvalsOp};
use t4a_linalg::eigh::{EighOp, EigvalshOp};
use t4a_linalg::{Degeneracy, Result};

use super::call::{Parts, jvp, plain, status};
use super::matrix::Matrix;
use super::svd::row;

/// `(A + Aᴴ)/2 = V diag(E) Vᴴ`, eigenvalues in nondecreasing order.
#[derive(Clone, Debug)]
pub struct Eigh<M: Matrix> {
    /// Eigenvalues, `[…, n]`, real.
    pub values: M::RealVector,
    /// Orthonormal eigenvectors as columns, `[…, n, n]`.
    pub vectors: M,
}

impl<M: Matrix> Eigh<M> {
    pub(super) fn new(parts: Parts<M>) -> Self {
        let [e, v] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
        Self { values: M::real_vector(e), vectors: M::from_pair(v) }
    }
}

const EIGH: EighOp = EighOp { degeneracy: Degeneracy::DEFAULT };
const EIG: EigOp = EigOp { degeneracy: Degeneracy::DEFAULT };

/// `(A + Aᴴ)/2 = V diag(E) Vᴴ`; the gradient is Hermitian.
///
/// Gauge as in [`svd`](super::svd()): a loss must not depend on the phases of eigenvectors nor on
/// the basis within an eigenspace. For functions of matrices use
/// [`hermitian_function`](super::hermitian_function), which is exact at ties.
///
/// # Errors
/// `NotSquare`; `NonFinite`, `NoConvergence` with the batch index.
pub fn eigh<M: Matrix>(a: M) -> Result<Eigh<M>> {
    plain(EIGH, [a], Eigh::new)
}

/// As [`eigh`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`eigh`].
pub fn eigh_with<M: Matrix>(a: M, degeneracy: Degeneracy) -> Result<Eigh<M>> {
    plain(EighOp { degeneracy }, [a], Eigh::new)
}

/// As [`eigh`], with the status of each matrix; the results of a matrix that failed are NaN, its
/// gradient is zero.
///
/// # Errors
/// Those that do not belong to one matrix.
pub fn eigh_ex<M: Matrix>(a: M) -> Result<(Eigh<M>, M::Info)> {
    status(EIGH, [a], Eigh::new)
}

/// The decomposition and its tangent along `(dA + dAᴴ)/2`, with `vᵢᴴ dvᵢ = 0`.
///
/// # Errors
/// As [`eigh`]; `Tensor` if the shapes differ.
pub fn eigh_jvp<M: Matrix>(a: M, da: M) -> Result<(Eigh<M>, Eigh<M>)> {
    jvp(EIGH, [a], [da], Eigh::new)
}

/// Eigenvalues of `(A + Aᴴ)/2` in nondecreasing order, `[…, n]`.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh<M: Matrix>(a: M) -> Result<M::RealVector> {
    plain(EigvalshOp, [a], row::<M>)
}

/// As [`eigvalsh`], with the status of each matrix as in [`eigh_ex`].
///
/// # Errors
/// As [`eigh_ex`].
pub fn eigvalsh_ex<M: Matrix>(a: M) -> Result<(M::RealVector, M::Info)> {
    status(EigvalshOp, [a], row::<M>)
}

/// Eigenvalues and their tangents along `(dA + dAᴴ)/2`; tied values move as along `A + t dA` for
/// `t > 0`.
///
/// # Errors
/// As [`eigh_jvp`].
pub fn eigvalsh_jvp<M: Matrix>(a: M, da: M) -> Result<(M::RealVector, M::RealVector)> {
    jvp(EigvalshOp, [a], [da], row::<M>)
}

/// `A V = V diag(λ)`, complex.
#[derive(Clone, Debug)]
pub struct Eig<M: Matrix> {
    /// Eigenvalues, `[…, n]`, in no particular order.
    pub values: M::ComplexVector,
    /// Eigenvectors of norm 1 as columns, `[…, n, n]`.
    pub vectors: M::ComplexMatrix,
}

impl<M: Matrix> Eig<M> {
    fn new(parts: Parts<M>) -> Self {
        let [l, v] = <[_; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("two"));
        Self { values: M::complex_vector(l), vectors: M::complex_matrix(v) }
    }
}

/// `A V = V diag(λ)`; the gradient is real if `A` is.
///
/// Gauge: a loss must not depend on the phases of eigenvectors. A defective matrix has no
/// derivative: `backward` panics with the text of `Defective`.
///
/// # Errors
/// As [`eigh`].
pub fn eig<M: Matrix>(a: M) -> Result<Eig<M>> {
    plain(EIG, [a], Eig::new)
}

/// As [`eig`], with the status of each matrix as in [`eigh_ex`].
///
/// # Errors
/// As [`eigh_ex`].
pub fn eig_ex<M: Matrix>(a: M) -> Result<(Eig<M>, M::Info)> {
    status(EIG, [a], Eig::new)
}

/// The decomposition and its tangent along `dA`, with `Re vᵢᴴ dvᵢ = 0`.
///
/// # Errors
/// As [`eig`]; `Defective` if the vectors are dependent; `Tensor` if the shapes differ.
pub fn eig_jvp<M: Matrix>(a: M, da: M) -> Result<(Eig<M>, Eig<M>)> {
    jvp(EIG, [a], [da], Eig::new)
}

fn complex_row<M: Matrix>(mut parts: Parts<M>) -> M::ComplexVector {
    M::complex_vector(parts.swap_remove(0))
}

/// Eigenvalues of a general matrix, `[…, n]`, complex, in no particular order. As for [`eig`] a
/// defective matrix has no derivative.
///
/// # Errors
/// As [`eig`].
pub fn eigvals<M: Matrix>(a: M) -> Result<M::ComplexVector> {
    plain(EigvalsOp, [a], complex_row::<M>)
}

/// As [`eigvals`], with the status of each matrix as in [`eigh_ex`].
///
/// # Errors
/// As [`eigh_ex`].
pub fn eigvals_ex<M: Matrix>(a: M) -> Result<(M::ComplexVector, M::Info)> {
    status(EigvalsOp, [a], complex_row::<M>)
}

/// Eigenvalues and their tangents along `dA`.
///
/// # Errors
/// As [`eig_jvp`].
pub fn eigvals_jvp<M: Matrix>(a: M, da: M) -> Result<(M::ComplexVector, M::ComplexVector)> {
    jvp(EigvalsOp, [a], [da], complex_row::<M>)
}
