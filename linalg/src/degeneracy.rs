//! Derivative rules at coinciding singular values or eigenvalues.
//!
//! The rules divide by gaps `λⱼ − λᵢ`. At a tie the vectors are only defined up to a rotation of
//! their subspace, and the quotient of a pair of tied values is 0/0. Its limit is not a function of
//! the cotangents of the factors: it is 0 for a loss of the projector onto the subspace, and
//! `herm(Uᴴ C V)` for `⟨C, U S Vᴴ⟩`. The default therefore rejects (`SplitTie`)
//!
//! * cotangents of vectors whose part within a tied block is not a multiple of the unit matrix;
//! * cotangents of vectors at singular values 0;
//! * different cotangents of tied values, and other than 0 at singular values 0, if vectors have
//!   cotangents as well;
//! * for `eig`, any cotangent of tied vectors;
//! * directions of tangents that split a tied block, or move singular values off 0.
//!
//! All comparisons are relative, within `64` times the tolerance of ties below. A loss whose cotangents
//! vanish on a block is taken for one that does not use it: a function `f` with `f = 0` at the tied
//! value, or a weight without a diagonal at singular values 0, cannot be told from that.
//!
//! Operations that are smooth at ties have rules of their own: `svd_function`, `hermitian_function`,
//! `low_rank`, `polar`, `expm`, `sqrtm`, `logm`.
//!
//! [`Degeneracy::separable`] masks the quotients instead. This is the derivative of losses that depend on the subspaces of
//! tied vectors and on the values, but not on products `U f(S) Vᴴ` with `f′ ≠ 0` at the tie. A loss that
//! depends on the basis of a subspace has no derivative and is reported (`GaugeIllDefined`) in both cases.
//! Broadening `1/x → x/(x² + η²)` is off by
//! several percent inside of degenerate blocks and is offered for comparison only.
//!
//! # Errors near ties
//! With a relative gap `g`, beyond the limit below, gradients and tangents of vectors are off by about
//! `ε/g`, second derivatives through factors by `ε/g²`: below `g = √ε` these are errors
//! (`SecondOrderAtTie`) along directions that split the pair.
//!
//! # Phases
//! The cotangent of a complex vector must not change the loss with its phase. A cotangent
//! that is the rounding error of larger ones, as that of `⟨g|h g⟩/⟨g|g⟩` for an eigenvector `g` of `h`, has no phase
//! to compare with: defects up to `64 n ε min(λ, 1/√ε)` with the largest value `λ` are accepted, which
//! change the gradient by that much divided by gaps.
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
    /// Take the loss for a function of the subspaces of tied vectors and of the values separately: quotients
    /// at ties are masked. Otherwise a loss that uses the vectors of a tied block is an error.
    #[cfg_attr(feature = "serde", serde(default))]
    pub separable: bool,
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
    (d.tolerance.map(f64::to_bits), d.broadening.map(f64::to_bits), d.check_gauge, d.separable)
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
    /// Ties up to rounding, gauge checked, losses of tied vectors rejected.
    pub const DEFAULT: Self =
        Self { tolerance: None, broadening: None, check_gauge: true, separable: false };

    /// As the default, with quotients at ties masked.
    pub const SEPARABLE: Self = Self { separable: true, ..Self::DEFAULT };

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

    /// Whether losses of tied vectors, and directions that split ties, are rejected.
    pub(crate) fn rejects_split(&self) -> bool {
        self.check_gauge && !self.separable && self.broadening.is_none()
    }

    /// Reports the matrix whose defect is not small against the cotangents it came from. `largest` is
    /// that of its values.
    pub(crate) fn check<M: Matrices>(
        &self,
        op: &'static str,
        defect: &M,
        cotangents: &[Option<&M>],
        largest: &M::Real,
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
        let epsilon = defect.epsilon();
        let relative = if epsilon < 1e-10 { 1e-6 } else { 1e-3 };
        let largest = largest.norms()?;
        for (batch, (&defect, &size)) in defects.iter().zip(&sizes).enumerate() {
            let range = largest.get(batch).map_or(0.0, |x| x.min(epsilon.sqrt().recip()));
            let noise = 64.0 * cotangents_rows(cotangents) as f64 * epsilon * range;
            let allowed = relative * size + noise;
            if defect > allowed {
                return Err(LinalgError::GaugeIllDefined { op, batch, defect, allowed });
            }
        }
        Ok(())
    }

    /// Reports values that are tied while the loss treats them differently. `of_vectors` is the size of the
    /// cotangents of each vector, a row.
    pub(crate) fn check_values<R: RealMatrices<Real = R>>(
        &self,
        op: &'static str,
        blocks: &Blocks<R>,
        cotangent: &R,
        of_vectors: &R,
    ) -> Result<()> {
        if !self.check_gauge {
            return Ok(());
        }
        let error = |batch| match self.rejects_split() {
            true => LinalgError::SplitTie { op, batch },
            false => {
                LinalgError::GaugeIllDefined { op, batch, defect: 1.0, allowed: blocks.tolerance }
            }
        };
        // In units of the values: cotangents of vectors grow with them.
        let scale = of_vectors.mul(&blocks.values.abs().masked_recip(&blocks.limit));
        let size = cotangent.abs().add(&scale);
        let allowed = size.add(&size.transpose());
        let defect = cotangent.sub(&cotangent.transpose()).mul(&blocks.ties);
        blocks.compare(&defect, &allowed, error)?;
        if self.separable {
            return Ok(());
        }
        let total = size.transpose().sum_rows();
        blocks.compare(&cotangent.mul(&blocks.zero), &total, error)
    }

    /// Reports vectors of tied blocks that the loss uses: `overlap` is `Vᴴ V̄`, `k × p`.
    pub(crate) fn check_vectors<M: Matrices>(
        &self,
        op: &'static str,
        blocks: &Blocks<M::Real>,
        overlap: &M,
        of_vectors: &M::Real,
    ) -> Result<()> {
        if !self.rejects_split() {
            return Ok(());
        }
        let error = |batch| LinalgError::SplitTie { op, batch };
        let defect = blocks.split(&overlap.re()).abs().add(&overlap.im().mul(&blocks.pairs).abs());
        let allowed = of_vectors.add(&of_vectors.transpose());
        blocks.compare(&defect, &allowed, error)?;
        let total = of_vectors.transpose().sum_rows();
        blocks.compare(&of_vectors.mul(&blocks.zero), &total, error)
    }

    /// Reports directions that split tied blocks: `p` is `Uᴴ dA V`.
    pub(crate) fn check_direction<M: Matrices>(
        &self,
        op: &'static str,
        blocks: &Blocks<M::Real>,
        p: &M,
        da: &M,
    ) -> Result<()> {
        if !self.rejects_split() {
            return Ok(());
        }
        let error = |batch| LinalgError::SplitTie { op, batch };
        let h = p.herm();
        let defect = blocks.split(&h.re()).abs().add(&h.im().mul(&blocks.pairs).abs());
        blocks.compare(&defect, &total(da), error)
    }
}

/// `Σ |xᵢⱼ|`, `1 × 1`.
pub(crate) fn total<M: Matrices>(x: &M) -> M::Real {
    x.detached().modulus().sum_rows().transpose().sum_rows()
}

/// `Σᵢ |xᵢⱼ|`, a row.
pub(crate) fn columns<M: Matrices>(x: &M) -> M::Real {
    x.detached().modulus().sum_rows()
}

fn cotangents_rows<M: Matrices>(cotangents: &[Option<&M>]) -> usize {
    cotangents.iter().flatten().map(|x| x.rows()).max().unwrap_or(1)
}

/// Tied blocks of a row of values; constants.
pub(crate) struct Blocks<R> {
    values: R,
    limit: R,
    /// 1 for pairs within a block and on the diagonal, else 0.
    ties: R,
    /// 1 for pairs of two tied values.
    pairs: R,
    /// 1 for values that are zero, if these are singular values: a row.
    zero: R,
    tolerance: f64,
}

impl<R: RealMatrices<Real = R>> Blocks<R> {
    /// Of eigenvalues, of matrices of this size.
    pub(crate) fn new(values: &R, limit: &R, size: usize) -> Self {
        let values = values.detached();
        let ties = values.sub(&values.transpose()).within(limit);
        let pairs = ties.sub(&values.identity(values.cols()));
        let zero = values.constant(1, values.cols(), 0.0);
        let tolerance = 64.0 * rounding(size) * values.epsilon();
        Self { values, limit: limit.clone(), ties, pairs, zero, tolerance }
    }

    /// Of singular values, which may be zero.
    pub(crate) fn singular(values: &R, limit: &R, size: usize) -> Self {
        let zero = values.detached().within(limit);
        Self { zero, ..Self::new(values, limit, size) }
    }

    /// 1 for singular values that are zero, a row.
    pub(crate) fn zero(&self) -> &R {
        &self.zero
    }

    /// The part within blocks that is not a multiple of the unit matrix; of blocks of one value, 0.
    fn split(&self, x: &R) -> R {
        let x = x.detached();
        let diagonal = x.diagonal();
        let mean = diagonal.matmul(&self.ties).mul(&self.ties.sum_rows().recip());
        let tied = self.pairs.sum_rows();
        let tied = tied.sub(&tied.constant(1, 1, 1.0)).not_negative();
        let uneven = diagonal.sub(&mean).mul(&tied);
        x.mul(&self.pairs).add(&uneven.diagonal_matrix())
    }

    /// The first matrix with a defect beyond rounding of what it came from.
    pub(crate) fn compare(
        &self,
        defect: &R,
        allowed: &R,
        error: impl Fn(usize) -> LinalgError,
    ) -> Result<()> {
        let defect = defect.detached();
        let beyond = defect.constant(1, 1, 1.0);
        let beyond = beyond.sub(&defect.within(&allowed.detached().scale(self.tolerance)));
        match beyond.norms()?.iter().position(|&n| n > 0.0) {
            Some(batch) => Err(error(batch)),
            None => Ok(()),
        }
    }
}
