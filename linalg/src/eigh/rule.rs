//! Derivatives of the Hermitian eigendecomposition.
//!
//! `Ā = V [skew(Vᴴ V̄)/(Eⱼ − Eᵢ) + diag Ē] Vᴴ`, Hermitian because the operation reads
//! `(A + Aᴴ)/2`. The numerator vanishes on ties if the loss does not depend on the basis of the
//! eigenspace, and on the diagonal if it does not depend on phases.
//! [`degeneracy`](crate::degeneracy) states which losses of tied vectors are accepted;
//! [`hermitian`](crate::hermitian) has functions of matrices, which are exact at ties.
//!
//! Reference: M. Giles 2008, section 3.1.

use crate::degeneracy::{Degeneracy, TiedBlocks, columns};
use crate::error::Result;
use crate::vocabulary::{Matrices, RealMatrices, Spectrum};

/// `Ā` from the cotangents of the values (a row) and the vectors.
///
/// # Errors
/// `GaugeIllDefined` if the loss depends on phases or on the basis of an eigenspace; `SplitTie` if it
/// uses tied vectors.
pub fn vjp<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    values_cotangent: Option<&M::Real>,
    vectors_cotangent: Option<&M>,
    degeneracy: &Degeneracy,
) -> Result<M> {
    let n = vectors.rows();
    let vh = vectors.adjoint();
    let Some(v_cotangent) = vectors_cotangent else {
        return Ok(match values_cotangent {
            Some(e_cotangent) => vectors.mul_real(e_cotangent).matmul(&vh),
            None => vectors.constant(n, n, 0.0),
        });
    };
    let overlap = vh.matmul(v_cotangent);
    let a = overlap.skew();
    let limit = degeneracy.limit(values, n);
    let gaps = values.sub(&values.transpose());
    let blocks = TiedBlocks::find("eigh_vjp", degeneracy, Spectrum::Hermitian, values, &limit, n)?;
    if M::IS_COMPLEX || blocks.is_some() {
        let ties = TiedBlocks::part(blocks.as_ref(), &a, &gaps, &limit);
        degeneracy.check("eigh_vjp", &ties, &[Some(v_cotangent)], &values.largest_real())?;
    }
    if let Some(blocks) = blocks {
        let size = columns(v_cotangent);
        blocks.check_vectors(&overlap, &size)?;
        if let Some(e_cotangent) = values_cotangent {
            blocks.check_values(e_cotangent, &size)?;
        }
    }
    let mut g = a.mul_real(&degeneracy.inverse(&gaps, &limit, values));
    if let Some(e_cotangent) = values_cotangent {
        g = g.add(&M::from_re(e_cotangent).diagonal_matrix());
    }
    Ok(vectors.matmul(&g).matmul(&vh))
}

/// Tangents of values and vectors, in the gauge in which vectors of one eigenspace do not rotate into each other.
///
/// # Errors
/// `SplitTie` for a direction that splits tied values.
pub fn jvp<M: Matrices>(
    values: &M::Real,
    vectors: &M,
    da: &M,
    degeneracy: &Degeneracy,
) -> Result<(M::Real, M)> {
    let w = vectors.adjoint().matmul(&da.herm()).matmul(vectors);
    let n = vectors.rows();
    let limit = degeneracy.limit(values, n);
    let inverse = degeneracy.inverse(&values.sub(&values.transpose()), &limit, values);
    let blocks = TiedBlocks::find("eigh_jvp", degeneracy, Spectrum::Hermitian, values, &limit, n)?;
    if let Some(blocks) = blocks {
        blocks.check_direction(&w, &columns(da).largest_real())?;
    }
    Ok((w.diagonal().re(), vectors.matmul(&w.mul_real(&inverse))))
}
