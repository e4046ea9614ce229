//! Fréchet derivatives of matrix functions by block matrices.
//!
//! ```text
//! f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]],   dB = L(A, dA),   Ā = L(A, B̄ᴴ)ᴴ
//! ```
//!
//! The block matrix has the Schur form of `A` twice ([`schur`](crate::schur)), so only the function of a triangular
//! matrix is computed. The rules are generic over [`Matrices`]; their derivatives use larger blocks.
//!
//! Reference: R. Mathias 1996; N. Higham, *Functions of Matrices*, theorem 3.6.

use crate::table::MatrixOp;
use crate::vocabulary::{Matrices, RealMatrices};

/// Fréchet derivative `L(A, E)` of the function that `op` computes. Cost about that of the function of a triangular
/// matrix of twice the size, plus one Schur decomposition of `A`.
pub(crate) fn along<M: Matrices>(op: impl Into<MatrixOp>, a: &M, e: &M) -> M {
    let n = a.rows();
    // L is linear in E, which is scaled to the size of A; powers of two are exact.
    let (of_a, of_e) = (a.magnitude().power_of_two(), e.magnitude().power_of_two());
    let near = e.mul_real(&of_e.recip()).mul_real(&of_a);
    let block = a.append(&near).stack(&a.constant(n, n, 0.0).append(a));
    let f = M::operate(op.into(), &[&block]).slice(0..n, n..2 * n);
    f.mul_real(&of_a.recip()).mul_real(&of_e)
}

/// `Ā` from the cotangent of `f(A)`.
pub(crate) fn cotangent<M: Matrices>(op: impl Into<MatrixOp>, a: &M, cotangent: &M) -> M {
    along(op, a, &cotangent.adjoint()).adjoint()
}
