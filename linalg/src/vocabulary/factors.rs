//! The factors by which gradients of functions of values are written.

use super::Matrices;

/// Which values.
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
    /// The operation that returns these values.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Spectrum::Singular => "svdvals",
            Spectrum::Hermitian => "eigvalsh",
        }
    }
}

/// The hidden results of an operation that returns values: what derivatives of its gradient, or of its
/// tangent, tell its rule.
#[derive(Debug)]
pub struct Carrier<'a, M: Matrices> {
    /// `A`.
    pub a: &'a M,
    /// A row of zeros as long as that of the values.
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
    /// Which of the two.
    pub of: Spectrum,
}

impl<M: Matrices> Factors<M> {
    /// `U diag(c) Vᴴ`, the gradient.
    pub fn sum(&self, c: &M::Real) -> M {
        self.u.mul_real(c).matmul(&self.v.adjoint())
    }
}
