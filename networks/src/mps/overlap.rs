//! Inner products and matrix elements over any arrays.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector, einsum};

use super::Mps;
use crate::environment::{grow_left, left_edge};
use crate::error::Result;
use crate::mpo::Mpo;
use crate::scalar::{complex, edge, entry};

/// The overlap of the sites so far, `[ket In, bra Out]`, with one more site.
pub(crate) fn transfer<S: Sector, A: Array>(
    left: &GradedTensor<S, A>,
    ket: &GradedTensor<S, A>,
    bra: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    Ok(einsum("kb,kpm,bpn->mn", &[left, ket, &bra.conj()?])?)
}

impl<S: Sector, A: Array> Mps<S, A> {
    /// `⟨self|other⟩` as arrays of one element, real and imaginary part. Differentiable in all tensors.
    ///
    /// Cost: `O(n d D³)`.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites.
    pub fn inner_array(&self, other: &Self) -> Result<(A, Option<A>)> {
        other.check_legs("inner", (0..self.len()).map(|i| self.physical(i)))?;
        let (ket, bra) = (&other.tensors, &self.tensors);
        let first = ket[0].spec().legs()[0].dual();
        let mut left = edge(&ket[0], vec![first.clone(), first.dual()])?;
        for (ket, bra) in ket.iter().zip(bra) {
            left = transfer(&left, ket, bra)?;
        }
        Ok(entry(&left))
    }

    /// `⟨self|other⟩`; 0 for states of different charges.
    ///
    /// # Errors
    /// As [`Mps::inner_array`].
    pub fn inner(&self, other: &Self) -> Result<c64> {
        complex(&self.inner_array(other)?)
    }

    /// `√⟨self|self⟩`.
    ///
    /// # Errors
    /// As [`Mps::inner_array`].
    pub fn norm(&self) -> Result<f64> {
        match self.center {
            Some(center) => crate::scalar::norm(&self.tensors[center]),
            None => Ok(self.inner(self)?.re.max(0.0).sqrt()),
        }
    }

    /// `⟨self|operator|other⟩` as arrays of one element, real and imaginary part. Differentiable in all tensors, those
    /// of the operator included.
    ///
    /// Cost: `O(n d w D³ + n d² w² D²)` for bond dimension w of the operator.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites.
    pub fn matrix_element_array(
        &self,
        operator: &Mpo<S, A>,
        other: &Self,
    ) -> Result<(A, Option<A>)> {
        let op = "matrix element";
        self.check_legs(op, (0..operator.len()).map(|i| operator.physical(i)))?;
        other.check_legs(op, (0..operator.len()).map(|i| operator.physical(i)))?;
        let mut left = left_edge(&other.tensors[0], &operator.tensors()[0])?;
        let sites = other.tensors.iter().zip(operator.tensors()).zip(&self.tensors);
        for ((ket, w), bra) in sites {
            left = grow_left(&left, ket, w, &bra.conj()?)?;
        }
        Ok(entry(&left))
    }

    /// `⟨self|operator|other⟩`.
    ///
    /// # Errors
    /// As [`Mps::matrix_element_array`].
    pub fn matrix_element(&self, operator: &Mpo<S, A>, other: &Self) -> Result<c64> {
        complex(&self.matrix_element_array(operator, other)?)
    }

    /// `⟨self|operator|self⟩`, without division by the norm.
    ///
    /// # Errors
    /// As [`Mps::matrix_element_array`].
    pub fn expectation(&self, operator: &Mpo<S, A>) -> Result<c64> {
        self.matrix_element(operator, self)
    }
}
