//! Derivative rules at coinciding singular values or eigenvalues.
//!
//! The rules divide by gaps `λⱼ − λᵢ`. At a tie the vectors are only defined up to a rotation of
//! their subspace, and the quotient of a pair of tied values is 0/0. Its limit is not a function of
//! the cotangents of the factors: it is 0 for a loss of the projector onto the subspace, and
//! `herm(Uᴴ C V)` for `⟨C, U S Vᴴ⟩`. The default therefore rejects (`SplitTie`)
//!
//! * cotangents of vectors whose part `Uᴴ Ū` or `Vᴴ V̄` within a tied block is not a multiple of the
//!   unit matrix;
//! * cotangents of vectors at singular values 0;
//! * of losses of vectors and values, different cotangents of tied values, and cotangents of singular
//!   values 0;
//! * for `eig`, cotangents of the vectors of a matrix with a tie, zeros as well, as those of
//!   `V f(Λ) V⁻¹` vanish; in a batch not those of a matrix that has no cotangent at all;
//! * directions of tangents that split a tied block, or move singular values off 0.
//!
//! Comparisons are relative to what is compared, within `16` times the default tolerance of ties below:
//! scaling the matrix or the loss changes none of them. Cotangents of tied vectors that vanish are taken
//! for those of a loss that does not use the vectors. That is wrong for `⟨C, U f(S) Vᴴ⟩` if `f` is 0,
//! and its derivative is not, at a tie whose block of `Uᴴ C V` has no real diagonal in the basis computed. At the
//! matrix of zeros, where this is so for `⟨C, U S Vᴴ⟩`, cotangents of values and vectors together are errors. At
//! singular values 0 of complex matrices phases are arbitrary, and this happens by chance, about once in the inverse
//! of the tolerance.
//!
//! Operations that are smooth at ties have rules of their own: `svd_function`, `hermitian_function`,
//! `low_rank`, `polar`, `expm`, `sqrtm`, `logm`; `svdvals`, `eigvalsh` and `eigvals` for values alone.
//!
//! [`Degeneracy::SEPARABLE`] masks the quotients instead. This is the derivative of losses of the
//! subspaces of tied vectors and of symmetric functions of the values, but of products `U f(S) Vᴴ` only
//! if `f′` is 0 at the tie. A loss that depends on the basis of a subspace has no derivative and is
//! reported in both cases (`GaugeIllDefined`). Broadening `1/x → x/(x² + η²)` is off by several percent
//! inside of degenerate blocks and is offered for comparison only.
//!
//! # Errors near ties
//! At a gap `g` of values beyond the tolerance below, gradients and tangents of vectors are off by about
//! `ε λ/g`, λ the largest value, as are gradients by `ε ‖V̄‖/g`, and second derivatives by `ε λ²/g²`:
//! below `g = √ε λ` these are errors along directions that split the pair (`SecondOrderAtTie`). Second
//! derivatives of functions of values alone are off by `ε λ/g`.
//!
//! # Phases
//! A loss must not change with the phase of a complex vector. A cotangent that is the rounding error of
//! larger ones, as that of `⟨g|h g⟩/⟨g|g⟩` for an eigenvector `g` of `h`, has no phase to compare:
//! defects up to `64 n ε λ`, λ the largest value, are accepted, but no more than for cotangents of
//! size 1 (10⁻⁶, in single precision 10⁻³).
//!
//! # Definition of a tie
//! Values computed are exact for some `A + E`, and those that are tied in `A` are up to `2‖E‖` apart.
//! A factorisation applies about `2n` reflectors, each with a rounding error of about `ε` in every
//! element that it modifies, independent of the others: for tied values `σ` the elements of `E` have a
//! variance of about `2 ε² σ²`, the norm of such a matrix is `2√(2n) ε σ`, and the values spread over
//! `5.7√n ε σ`. Measured: at most `7.2√n ε`, over 10⁴ seeds for each n from 2 to 12 and fewer up to
//! 100, real and complex, single and double, the rounding of `A` itself included. The default is
//! `16√n ε`, and `n ε`, what products of n terms lose at most, from n = 256 on. Quotients by gaps `g`
//! beyond it are off by about `ε/g`.

#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tests;

use crate::error::{LinalgError, Result};
use crate::vocabulary::{Matrices, RealMatrices, Spectrum};

/// The treatment of ties by a derivative rule.
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
    /// Mask quotients at ties: right for losses of the subspaces of tied vectors and of values, not for
    /// products of both. Otherwise losses of tied vectors are errors.
    #[cfg_attr(feature = "serde", serde(default))]
    pub separable: bool,
}

/// Equality and hash of types with floats by their bits, since the values are used as cache keys.
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

/// Spread of degenerate values by rounding errors, for matrices of this size: as a fraction of the largest value, in
/// units of machine epsilon.
pub(crate) fn rounding(size: usize) -> f64 {
    let n = size as f64;
    n.max(16.0 * n.sqrt())
}

/// Relative size up to which defects of cotangents or directions count as rounding errors.
pub(crate) fn relative(epsilon: f64) -> f64 {
    if epsilon < 1e-10 { 1e-6 } else { 1e-3 }
}

impl Degeneracy {
    /// Ties up to rounding, gauge checked, losses of tied vectors rejected.
    pub const DEFAULT: Self =
        Self { tolerance: None, broadening: None, check_gauge: true, separable: false };

    /// As the default, with quotients at ties masked.
    pub const SEPARABLE: Self = Self { separable: true, ..Self::DEFAULT };

    /// Policy for second derivatives through vectors: gaps up to `√ε` count as ties, since errors `ε/g²` reach 1
    /// there.
    pub(crate) fn near(epsilon: f64) -> Self {
        Self { tolerance: Some(epsilon.sqrt()), ..Self::DEFAULT }
    }

    /// The limit below which values count as 0: `1 × 1`, a constant.
    pub(crate) fn limit<R: RealMatrices>(&self, values: &R, size: usize) -> R {
        let relative = self.tolerance.unwrap_or(values.epsilon() * rounding(size));
        values.largest_real().scale(relative)
    }

    /// `1 / gap` with ties masked or broadened.
    pub(crate) fn inverse<R: RealMatrices>(&self, gaps: &R, limit: &R, values: &R) -> R {
        match self.broadening {
            None => gaps.masked_recip(limit),
            Some(width) => {
                let width = values.largest_real().scale(width);
                let broadened = gaps.mul(gaps).add(&width.mul(&width));
                gaps.mul(&broadened.masked_recip(&limit.scale(0.0)))
            }
        }
    }

    /// True if losses of tied vectors, and directions that split ties, are errors.
    pub(crate) fn rejects_split(&self) -> bool {
        self.check_gauge && !self.separable && self.broadening.is_none()
    }

    /// Returns an error with the first matrix whose defect is not small relative to the cotangents that cause it.
    /// `largest` is the largest of its values.
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
        let relative = relative(epsilon);
        let rows = cotangents.iter().flatten().map(|x| x.rows()).max().unwrap_or(1);
        let largest = largest.norms()?;
        for (batch, (&defect, &size)) in defects.iter().zip(&sizes).enumerate() {
            let noise = largest.get(batch).map_or(0.0, |x| 64.0 * rows as f64 * epsilon * x);
            let allowed = relative * size + noise.min(relative);
            if defect > allowed {
                return Err(LinalgError::GaugeIllDefined { op, batch, defect, allowed });
            }
        }
        Ok(())
    }
}

/// `Σᵢ |xᵢⱼ|`, a row.
pub(crate) fn columns<M: Matrices>(x: &M) -> M::Real {
    x.detached().modulus().sum_rows()
}

fn sum<R: RealMatrices<Real = R>>(row: &R) -> R {
    row.transpose().sum_rows()
}

/// Tied blocks of a row of values; constants.
pub(crate) struct TiedBlocks<R> {
    op: &'static str,
    policy: Degeneracy,
    values: R,
    limit: R,
    /// 1 for pairs within a block of nonzero values, and on the diagonal, else 0.
    ties: R,
    /// The same without the diagonal.
    pairs: R,
    /// 1 for zero singular values, else 0: a row.
    zero: R,
    /// Accepted defect relative to the quantities that cause it: their rounding errors.
    tolerance: f64,
}

/// True if in each matrix the differences of values, and singular values, exceed the limit. Comparisons in single
/// precision round differences: those just above the limit count as below it.
fn distinct<R: RealMatrices>(of: Spectrum, values: &R, limit: &R) -> Result<bool> {
    let n = values.cols();
    if n == 0 {
        return Ok(false);
    }
    let (mut values, limits) = (values.entries()?, limit.entries()?);
    Ok(values.chunks_exact_mut(n).zip(&limits).all(|(values, limit)| {
        let limit = limit * (1.0 + 1e-6);
        let exceeds = |x: f64| x.abs() > limit;
        let nonzero = of == Spectrum::Hermitian || values.iter().all(|&x| exceeds(x));
        values.sort_unstable_by(f64::total_cmp);
        limit > 0.0 && nonzero && values.windows(2).all(|pair| exceeds(pair[1] - pair[0]))
    }))
}

impl<R: RealMatrices<Real = R>> TiedBlocks<R> {
    /// Tied blocks of matrices of this size; `None` if no matrix of the batch has a tie or a zero singular value, so
    /// that there is nothing to check.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    pub(crate) fn find(
        op: &'static str,
        policy: &Degeneracy,
        of: Spectrum,
        values: &R,
        limit: &R,
        size: usize,
    ) -> Result<Option<Self>> {
        let values = values.detached();
        if distinct(of, &values, limit)? {
            return Ok(None);
        }
        let zero = match of {
            Spectrum::Singular => values.within(limit),
            Spectrum::Hermitian => values.constant(1, values.cols(), 0.0),
        };
        let kept = zero.constant(1, 1, 1.0).sub(&zero);
        let diagonal = values.identity(values.cols());
        let pairs = values.sub(&values.transpose()).within(limit).sub(&diagonal);
        let pairs = pairs.mul(&kept).mul(&kept.transpose());
        let ties = pairs.add(&diagonal);
        let tolerance = match policy.rejects_split() {
            true => 16.0 * rounding(size) * values.epsilon(),
            false => relative(values.epsilon()),
        };
        let limit = limit.clone();
        Ok(Some(Self { op, policy: *policy, values, limit, ties, pairs, zero, tolerance }))
    }

    /// The part of `x` within ties, without blocks its diagonal as a row. `gaps` are the differences of the values, and
    /// `blocks` their tied blocks.
    pub(crate) fn part<M: Matrices<Real = R>>(
        blocks: Option<&Self>,
        x: &M,
        gaps: &R,
        limit: &R,
    ) -> M {
        match blocks {
            Some(_) => x.mul_real(&gaps.within(limit)),
            None => x.diagonal(),
        }
    }

    /// 1 for zero singular values, else 0: a row.
    pub(crate) fn zero(&self) -> &R {
        &self.zero
    }

    /// Returns an error for a loss that uses vectors of tied blocks. `overlap` is `Vᴴ V̄`; `of_vectors` is the norm
    /// of the cotangent of each vector, a row.
    pub(crate) fn check_vectors<M: Matrices<Real = R>>(
        &self,
        overlap: &M,
        of_vectors: &R,
    ) -> Result<()> {
        if !self.policy.rejects_split() {
            return Ok(());
        }
        self.compare(&self.split(overlap), &self.allowed(of_vectors))?;
        self.compare(&of_vectors.mul(&self.zero), &sum(of_vectors))
    }

    /// Returns an error for a loss of values and vectors whose cotangents differ within a tied block or are nonzero
    /// at zero.
    pub(crate) fn check_values(&self, cotangent: &R, of_vectors: &R) -> Result<()> {
        if !self.policy.check_gauge {
            return Ok(());
        }
        // Without cotangents of vectors the loss depends on the values alone, unless the cotangents of all vectors
        // vanish together with the matrix.
        let largest = self.values.largest_real();
        let [unused, zero] = [sum(of_vectors), largest].map(|x| x.within(&x.scale(0.0)));
        let used = zero.constant(1, 1, 1.0).sub(&unused).add(&unused.mul(&zero));
        // Relative to the values: cotangents of vectors scale with them.
        let scale = of_vectors.mul(&self.values.abs().masked_recip(&self.limit));
        let size = cotangent.detached().abs().add(&scale);
        let defect = cotangent.sub(&cotangent.transpose()).mul(&self.ties).mul(&used);
        self.compare(&defect, &self.allowed(&size))?;
        if !self.policy.rejects_split() {
            return Ok(());
        }
        self.compare(&cotangent.mul(&self.zero).mul(&used), &sum(&size))?;
        // All cotangents of a function of the matrix may vanish, or be equal, if the matrix is zero.
        match self.values.cols() {
            0 => Ok(()),
            _ => self.compare(&unused.mul(&zero), &unused.scale(0.0)),
        }
    }

    /// Returns an error for directions that split tied blocks: `p` is `Uᴴ dA V`, `size` the size of `dA`.
    pub(crate) fn check_direction<M: Matrices<Real = R>>(&self, p: &M, size: &R) -> Result<()> {
        match self.policy.rejects_split() {
            true => self.compare(&self.split(&p.herm()), size),
            false => Ok(()),
        }
    }

    /// Accepted defect between two columns of these sizes. Columns that are rounding errors of others have no
    /// significant digits.
    fn allowed(&self, sizes: &R) -> R {
        match self.policy.rejects_split() {
            true => sizes.add(&sizes.transpose()).add(&sum(sizes).scale(self.tolerance)),
            false => sum(sizes),
        }
    }

    /// Modulus of the part within blocks that is not a multiple of the unit matrix.
    fn split<M: Matrices<Real = R>>(&self, x: &M) -> R {
        let x = x.detached();
        let diagonal = x.re().diagonal();
        let mean = diagonal.matmul(&self.ties).mul(&self.ties.sum_rows().recip());
        let uneven = diagonal.sub(&mean).abs().diagonal_matrix();
        x.mul_real(&self.pairs).modulus().add(&uneven)
    }

    /// Returns an error with the first matrix whose defect exceeds the accepted one. NaN is not a defect.
    pub(crate) fn compare(&self, defect: &R, allowed: &R) -> Result<()> {
        let (defect, allowed) = (defect.detached().abs(), allowed.detached().scale(self.tolerance));
        let within = defect.within(&allowed);
        let beyond = within.constant(1, 1, 1.0).sub(&within);
        let beyond = beyond.mul(&defect.sub(&allowed).not_negative()).norms()?;
        let Some(batch) = beyond.iter().position(|&n| n > 0.0) else { return Ok(()) };
        Err(match self.policy.rejects_split() {
            true => LinalgError::SplitTie { op: self.op, batch },
            false => LinalgError::GaugeIllDefined {
                op: self.op,
                batch,
                defect: defect.norms()?[batch],
                allowed: allowed.norms()?[batch],
            },
        })
    }
}
