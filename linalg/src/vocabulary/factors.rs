//! Factors that express the gradients of functions of singular values and eigenvalues.

use super::Matrices;

/// Kind of the spectrum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Spectrum {
    /// Singular values.
    Singular,
    /// Eigenvalues of Hermitian matrices.
    Hermitian,
}

impl Spectrum {
    /// Name of the operation that computes these values.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Spectrum::Singular => "svdvals",
            Spectrum::Hermitian => "eigvalsh",
        }
    }
}

/// Hidden results of an operation that returns values. Their cotangents carry data from the derivatives of its
/// gradient or tangent to its rule.
#[derive(Debug)]
pub struct Carrier<'a, M: Matrices> {
    /// `A`.
    pub a: &'a M,
    /// A row of zeros with as many entries as the values.
    pub w: &'a M::Real,
}

impl<M: Matrices> Clone for Carrier<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: Matrices> Copy for Carrier<'_, M> {}

/// Thin factors `A = U diag(S) Vᴴ`, or `A = V diag(S) Vᴴ`.
#[derive(Clone, Debug)]
pub struct Factors<M: Matrices> {
    /// `m × k`.
    pub u: M,
    /// Singular values in nonincreasing order, or eigenvalues in nondecreasing order: a row.
    pub s: M::Real,
    /// `n × k`; `u` again for eigenvalues.
    pub v: M,
    /// Kind of the values.
    pub of: Spectrum,
}

impl<M: Matrices> Factors<M> {
    /// `U diag(c) Vᴴ`, the gradient.
    pub fn sum(&self, c: &M::Real) -> M {
        self.u.mul_real(c).matmul(&self.v.adjoint())
    }
}
