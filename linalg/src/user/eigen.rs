//! Eigendecompositions of Hermitian and of general matrices.

use crate::eig::{EigOp, EigvalsOp};
use crate::eigh::{EighOp, EigvalshOp};
use crate::{Degeneracy, Result};

use super::call::{ResultsOf, functions, parts, plain, row};
use super::matrix::Matrix;

functions! {
    EighOp: M -> Eigh<F, M> = Eigh::new;
    EigvalshOp: M -> M::RealVector = row::<F, M>;
    EigOp: M -> Eig<F, M> = Eig::new;
    EigvalsOp: M -> M::ComplexVector = complex_row::<F, M>;
}

/// Hermitian eigendecomposition `(A + Aᴴ)/2 = V diag(E) Vᴴ`, eigenvalues in nondecreasing order.
#[derive(Clone, Debug)]
pub struct Eigh<F, M: Matrix<F>> {
    /// Eigenvalues, `[…, n]`, real.
    pub values: M::RealVector,
    /// Orthonormal eigenvectors as columns, `[…, n, n]`.
    pub vectors: M,
}

impl<F, M: Matrix<F>> Eigh<F, M> {
    fn new(out: ResultsOf<F, M>) -> Result<Self> {
        let [e, v] = parts(out);
        Ok(Self { values: M::real_vector(e), vectors: M::from_pair(v) })
    }
}

/// Hermitian eigendecomposition `(A + Aᴴ)/2 = V diag(E) Vᴴ`; the gradient is Hermitian.
/// The tangent is that along `(dA + dAᴴ)/2`, with `vᵢᴴ dvᵢ = 0`.
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
    plain(EighOp::DEFAULT, a)
}

/// As [`eigh`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`eigh`].
pub fn eigh_with<F, M: Matrix<F>>(a: M, degeneracy: Degeneracy) -> Result<Eigh<F, M>> {
    plain(EighOp { degeneracy }, a)
}

/// Eigenvalues of `(A + Aᴴ)/2` in nondecreasing order, `[…, n]`. The tangents of tied values are those along `A + t dA`
/// for `t > 0`.
///
/// # Errors
/// As [`eigh`].
pub fn eigvalsh<F, M: Matrix<F>>(a: M) -> Result<M::RealVector> {
    plain(EigvalshOp, a)
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
    fn new(out: ResultsOf<F, M>) -> Result<Self> {
        let [l, v] = parts(out);
        Ok(Self { values: M::complex_vector(l), vectors: M::complex_matrix(v) })
    }
}

/// Eigendecomposition `A V = V diag(λ)` of a general matrix; the gradient is real if `A` is.
/// The tangent has `Re vᵢᴴ dvᵢ = 0`.
///
/// Gauge: a loss must not depend on the phases of eigenvectors. At tied eigenvalues there is no derivative through
/// the vectors, and `backward` panics with the message of `SplitTie`, also if the loss uses the values alone; use
/// [`eigvals`] for those. A defective matrix has no derivative: `backward` panics with the message of `Defective`.
///
/// # Errors
/// As [`eigh`].
pub fn eig<F, M: Matrix<F>>(a: M) -> Result<Eig<F, M>> {
    plain(EigOp::DEFAULT, a)
}

/// As [`eig`], with a policy for ties in its derivative.
///
/// # Errors
/// As [`eigh`].
pub fn eig_with<F, M: Matrix<F>>(a: M, degeneracy: Degeneracy) -> Result<Eig<F, M>> {
    plain(EigOp { degeneracy }, a)
}

fn complex_row<F, M: Matrix<F>>(out: ResultsOf<F, M>) -> Result<M::ComplexVector> {
    let [values] = parts(out);
    Ok(M::complex_vector(values))
}

/// Eigenvalues of a general matrix, `[…, n]`, complex, in unspecified order. As for [`eig`], a defective matrix has
/// no derivative.
///
/// # Errors
/// As [`eig`].
pub fn eigvals<F, M: Matrix<F>>(a: M) -> Result<M::ComplexVector> {
    plain(EigvalsOp, a)
}
