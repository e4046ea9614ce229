//! Matrices of a batch whose cotangents are all zero: whatever their factors are, their gradient is
//! zero.
//!
//! A rule runs on the whole batch. If one of these matrices makes it fail, as a singular one that
//! nobody reads, its factors are replaced by regular ones and the rule runs again. For further
//! derivatives such a matrix is a constant.

#[cfg(test)]
mod tests;

use crate::error::{LinalgError, Result};
use crate::vocabulary::{Matrices, RealMatrices, Region};

/// Which matrices of a batch have no cotangent.
pub(crate) struct Idle<R>(Option<[R; 2]>);

impl<R: RealMatrices<Real = R>> Idle<R> {
    /// Entries of cotangents as they are, zero for idle matrices.
    pub(crate) fn cotangent<M: Matrices<Real = R>>(&self, bar: &M) -> M {
        match &self.0 {
            Some([_, active]) => bar.mul_real(active),
            None => bar.clone(),
        }
    }

    /// A factor, the unit matrix for idle matrices.
    pub(crate) fn factor<M: Matrices<Real = R>>(&self, x: &M) -> M {
        self.blend(x, |x| x.constant(x.rows(), x.cols(), 1.0).mask(Region::Diagonal))
    }

    /// A row of values, `k … 2, 1` for idle matrices.
    pub(crate) fn values<M: Matrices<Real = R>>(&self, x: &M) -> M {
        self.blend(x, |x| x.constant(x.cols(), x.cols(), 1.0).mask(Region::Lower(0)).sum_rows())
    }

    fn blend<M: Matrices<Real = R>>(&self, x: &M, regular: impl Fn(&M) -> M) -> M {
        match &self.0 {
            Some([idle, active]) => x.mul_real(active).add(&regular(x).mul_real(idle)),
            None => x.clone(),
        }
    }
}

/// Runs a rule; if it fails for a matrix without cotangents, once more without these. `activity` is
/// the largest modulus of the cotangents of each matrix.
pub(crate) fn sparing<R: RealMatrices<Real = R>, Out>(
    activity: impl FnOnce() -> Option<R>,
    rule: impl Fn(&Idle<R>) -> Result<Out>,
) -> Result<Out> {
    let failed = |error: LinalgError| -> Result<Out> {
        let (Some(batch), Some(activity)) = (error.batch(), activity()) else {
            return Err(error);
        };
        match activity.norms()?.get(batch) {
            Some(0.0) => {
                let idle = activity.within(&activity.scale(0.0));
                let active = idle.constant(1, 1, 1.0).sub(&idle);
                rule(&Idle(Some([idle, active])))
            }
            _ => Err(error),
        }
    };
    rule(&Idle(None)).or_else(failed)
}
