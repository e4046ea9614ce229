//! Derivatives of the Hermitian eigendecomposition.
//!
//! `Ā = V [skew(Vᴴ V̄)/(Eⱼ − Eᵢ) + diag Ē] Vᴴ`, Hermitian because the operation reads
//! `(A + Aᴴ)/2`. The numerator vanishes on ties if the loss does not depend on the basis of the
//! eigenspace, and on the diagonal if it does not depend on phases. A loss of values and vectors
//! must treat tied values alike as well, `Ēᵢ = Ēⱼ`; `tr C f(A)` does not: see
//! [`hermitian`](crate::hermitian) for functions of matrices, which are exact at ties.
//!
//! Reference: M. Giles 2008, section 3.1.

use crate::degeneracy::Degeneracy;
use crate::error::Result;
use crate::vocabulary::Matrices;

/// `Ā` from the cotangents of the values (a row) and the vectors.
///
/// # Errors
/// `GaugeIllDefined` if the loss depends on phases or on the basis of an eigenspace.
pub fn vjp<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    values_bar: Option<&M::Real>,
    vectors_bar: Option<&M>,
    degeneracy: &Degeneracy,
) -> Result<M> {
    let n = vectors.rows();
    let vh = vectors.adjoint();
    let Some(v_bar) = vectors_bar else {
        return Ok(match values_bar {
            Some(e_bar) => vectors.mul_real(e_bar).matmul(&vh),
            None => vectors.constant(n, n, 0.0),
        });
    };
    let a = vh.matmul(v_bar).skew();
    let limit = degeneracy.limit(values, n);
    let gaps = degeneracy.gaps(&values.sub(&values.transpose()), &limit, values);
    degeneracy.check("eigh_vjp", &a.mul_real(&gaps.ties), &[Some(v_bar)])?;
    let mut g = a.mul_real(&gaps.inverse);
    if let Some(e_bar) = values_bar {
        degeneracy.check_values("eigh_vjp", e_bar, &gaps.ties, &[Some(v_bar)])?;
        g = g.add(&M::from_re(&e_bar.diagonal_matrix()));
    }
    Ok(vectors.matmul(&g).matmul(&vh))
}

/// Tangents of values and vectors; vectors of one eigenspace do not rotate into each other.
pub fn jvp<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    da: &M,
    degeneracy: &Degeneracy,
) -> (M::Real, M) {
    let w = vectors.adjoint().matmul(&da.herm()).matmul(vectors);
    let limit = degeneracy.limit(values, vectors.rows());
    let gaps = degeneracy.gaps(&values.sub(&values.transpose()), &limit, values);
    (w.diagonal().re(), vectors.matmul(&w.mul_real(&gaps.inverse)))
}
