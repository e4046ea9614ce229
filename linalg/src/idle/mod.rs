//! Matrices of a batch whose cotangents are all zero: their gradient is zero for any factors.
//!
//! A rule runs on the whole batch. If one of these matrices makes it fail, such as a singular one that the loss does
//! not use, its factors are replaced by regular ones and the rule runs again. For further derivatives such a matrix
//! is a constant. If all cotangents of a batch are zero, ties of `eig` are still an error: the cotangents of losses
//! that use tied vectors may vanish.

#[cfg(test)]
mod tests;

use crate::error::{LinalgError, Result};
use crate::vocabulary::{Factors, Matrices, RealMatrices, Region};

/// Indicators of the matrices without and with a cotangent: 1 for the matrices of the set, else 0.
pub(crate) struct Idle<R> {
    idle: R,
    active: R,
}

impl<R: RealMatrices<Real = R>> Idle<R> {
    /// Matrices marked by a 1.
    pub(crate) fn new(idle: R) -> Self {
        let active = idle.constant(1, 1, 1.0).sub(&idle);
        Self { idle, active }
    }

    /// Matrices without activity.
    pub(crate) fn without(activity: &R) -> Self {
        Self::new(activity.within(&activity.scale(0.0)))
    }

    /// Matrices without cotangents, provided that the matrix that made a rule fail is among them. `activity` is the
    /// largest modulus of the cotangents of each matrix.
    ///
    /// # Errors
    /// The error of the rule otherwise; an error of the transfer.
    pub(crate) fn behind(error: LinalgError, activity: Option<R>) -> Result<Self> {
        let (Some(batch), Some(activity)) = (error.batch(), activity) else {
            return Err(error);
        };
        let sizes = activity.norms()?;
        let vanishing =
            matches!(error, LinalgError::SplitTie { .. }) && sizes.iter().all(|&x| x == 0.0);
        if sizes.get(batch) != Some(&0.0) || vanishing {
            return Err(error);
        }
        Ok(Self::without(&activity))
    }

    /// The matrices of either.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let active = self.active.mul(&other.active);
        Self { idle: active.constant(1, 1, 1.0).sub(&active), active }
    }

    /// Cotangents with zeros for idle matrices.
    pub(crate) fn cotangent<M: Matrices<Real = R>>(&self, cotangent: &M) -> M {
        cotangent.mul_real(&self.active)
    }

    /// A factor, with the unit matrix for idle matrices.
    pub(crate) fn factor<M: Matrices<Real = R>>(&self, x: &M) -> M {
        self.blend(x, |x| x.constant(x.rows(), x.cols(), 1.0).mask(Region::Diagonal))
    }

    /// A row of values, with `k … 2, 1` for idle matrices.
    pub(crate) fn values<M: Matrices<Real = R>>(&self, x: &M) -> M {
        self.blend(x, |x| x.constant(x.cols(), x.cols(), 1.0).mask(Region::Lower(0)).sum_rows())
    }

    /// Factors of Hermitian matrices, or of singular values: of a diagonal matrix for idle ones.
    pub(crate) fn factors<M: Matrices<Real = R>>(&self, x: &Factors<M>) -> Factors<M> {
        let [u, v] = [&x.u, &x.v].map(|x| self.factor(x));
        Factors { u, s: self.values(&x.s), v, of: x.of }
    }

    fn blend<M: Matrices<Real = R>>(&self, x: &M, regular: impl Fn(&M) -> M) -> M {
        x.mul_real(&self.active).add(&regular(x).mul_real(&self.idle))
    }
}
