//! What derivative rules do where singular values or eigenvalues coincide.
//!
//! The rules divide by gaps `λⱼ − λᵢ`. At a tie the vectors are only defined up to a rotation of
//! their subspace; a loss that does not depend on the rotation has a cotangent that vanishes on
//! the tied pairs, so those quotients are 0/0 with limit 0: they are masked. A loss that does
//! depend on it has no derivative, and is reported. Broadening `1/x → x/(x² + η²)` is off by
//! several percent inside of degenerate blocks and is offered for comparison only.
//!
//! # What counts as a tie
//! Values computed are exact for some `A + E`, and those that are tied in `A` are up to `2‖E‖` apart.
//! A factorisation applies about `2n` reflectors, each with a rounding error of about `ε` in every
//! element it meets, independent of the others: for tied values `σ` the elements of `E` have a
//! variance of about `2 ε² σ²`, the norm of such a matrix is `2√(2n) ε σ`, and the values spread over
//! `5.7√n ε σ`. Measured: at most `7.2√n ε`, over 10⁴ seeds for each n from 2 to 12 and fewer up to
//! 100, real and complex, single and double, the rounding of `A` itself included. The default is
//! `16√n ε`, and `n ε`, what products of n terms lose at most, from n = 256 on. Quotients by gaps `g`
//! beyond it are off by about `ε/g`.

use crate::error::{LinalgError, Result};
use crate::vocabulary::{Matrices, RealMatrices};

/// How a derivative rule treats ties.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Degeneracy {
    /// Gaps up to this fraction of the largest value count as ties, and values up to it as 0.
    /// Default: `ε max(16√n, n)` with the larger dimension `n`.
    pub tolerance: Option<f64>,
    /// Lorentzian width `η` as a fraction of the largest value, instead of the mask. General
    /// eigendecompositions always mask.
    pub broadening: Option<f64>,
    /// Report cotangents that depend on the arbitrary basis; otherwise their undefined part is
    /// dropped. Phases of complex vectors and rotations of tied vectors are checked; a change of
    /// sign of a real vector cannot be seen in a derivative.
    pub check_gauge: bool,
}

/// Equality and hash of a value that holds floats, by their bits: values are keys.
macro_rules! by_bits {
    ($type:ty, $key:expr) => {
        impl $type {
            fn key(&self) -> impl Eq + std::hash::Hash + use<> {
                let key: fn(&Self) -> _ = $key;
                key(self)
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &Self) -> bool {
                self.key() == other.key()
            }
        }

        impl Eq for $type {}

        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                self.key().hash(state);
            }
        }
    };
}
pub(crate) use by_bits;

by_bits!(Degeneracy, |d| {
    (d.tolerance.map(f64::to_bits), d.broadening.map(f64::to_bits), d.check_gauge)
});

impl Default for Degeneracy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How far values of matrices of this size are apart by rounding, as a fraction of the largest, in
/// units of machine epsilon.
pub(crate) fn rounding(size: usize) -> f64 {
    let n = size as f64;
    n.max(16.0 * n.sqrt())
}

/// Quotients by gaps.
pub(crate) struct Gaps<R> {
    /// `1 / gap`, 0 at ties.
    pub(crate) inverse: R,
    /// 1 at ties, else 0.
    pub(crate) ties: R,
}

impl Degeneracy {
    /// Masked ties up to rounding, gauge checked.
    pub const DEFAULT: Self = Self { tolerance: None, broadening: None, check_gauge: true };

    /// The limit below which values count as 0: `1 × 1`, a constant.
    pub(crate) fn limit<R: RealMatrices>(&self, values: &R, size: usize) -> R {
        let relative = self.tolerance.unwrap_or(values.epsilon() * rounding(size));
        values.largest_real().scale(relative)
    }

    /// `1 / gap` with ties masked or broadened.
    pub(crate) fn gaps<R: RealMatrices>(&self, gaps: &R, limit: &R, values: &R) -> Gaps<R> {
        let ties = gaps.within(limit);
        let inverse = match self.broadening {
            None => gaps.masked_recip(limit),
            Some(width) => {
                let width = values.largest_real().scale(width);
                let broadened = gaps.mul(gaps).add(&width.mul(&width));
                gaps.mul(&broadened.masked_recip(&limit.scale(0.0)))
            }
        };
        Gaps { inverse, ties }
    }

    /// Reports the matrix whose defect is not small against the cotangents it came from.
    pub(crate) fn check<M: Matrices>(
        &self,
        op: &'static str,
        defect: &M,
        cotangents: &[Option<&M>],
    ) -> Result<()> {
        if !self.check_gauge {
            return Ok(());
        }
        let defects = defect.norms()?;
        let mut sizes = vec![0.0; defects.len()];
        for cotangent in cotangents.iter().flatten() {
            for (size, norm) in sizes.iter_mut().zip(cotangent.norms()?) {
                *size += norm;
            }
        }
        let relative = if defect.epsilon() < 1e-10 { 1e-6 } else { 1e-3 };
        for (batch, (&defect, &size)) in defects.iter().zip(&sizes).enumerate() {
            let allowed = relative * size;
            if defect > allowed {
                return Err(LinalgError::GaugeIllDefined { op, batch, defect, allowed });
            }
        }
        Ok(())
    }

    /// Reports values that are tied while the loss treats them differently.
    pub(crate) fn check_values<M: Matrices>(
        &self,
        op: &'static str,
        bar: &M::Real,
        ties: &M::Real,
        cotangents: &[Option<&M>],
    ) -> Result<()> {
        if !self.check_gauge {
            return Ok(());
        }
        let defect = M::from_re(&bar.sub(&bar.transpose()).mul(ties));
        let bar = M::from_re(bar);
        let all: Vec<_> = cotangents.iter().copied().chain([Some(&bar)]).collect();
        self.check(op, &defect, &all)
    }
}
