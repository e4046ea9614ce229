//! Truncation of a bond over all sectors.

use t4a_diff::Array;
use t4a_linalg::degeneracy::Degeneracy;
use t4a_linalg::svd::Truncation;

use super::GradedTensor;
use super::bond::Bond;
use super::factor::{FluxOn, Svd};
use crate::error::{Result, StructuredError};
use crate::operation::{Rearrange, one};
use crate::sector::Sector;

/// Truncated singular value decomposition.
#[derive(Clone, Debug)]
pub struct Truncated<S, A> {
    /// The kept singular triplets.
    pub kept: Svd<S, A>,
    /// `√Σ s²` over the discarded values.
    pub error: f64,
}

/// Truncation policy of a bond.
///
/// The criteria of [`Truncation`] apply to the values of all sectors together; equal values prefer the smaller
/// sector. Then the number of kept values is reduced until degenerate values are kept or discarded together, unless
/// nothing would remain. Finally each sector keeps at least its minimum, also beyond `max_dim`.
///
/// | option | ITensor | TeNPy |
/// |---|---|---|
/// | [`Truncation::max_dim`] | `maxdim` | `chi_max` |
/// | [`Truncation::min_dim`] | `mindim` | `chi_min` |
/// | [`Truncation::cutoff`] `(√c)`: values `s² ≤ c` are dropped | `cutoff` c with `use_absolute_cutoff` | |
/// | [`Truncation::cutoff`] `(c)` | | `svd_min` c, of normalised values |
/// | [`Truncation::relative_cutoff`] `(c)`: `s ≤ c · s₀` | | |
/// | [`Truncation::discarded_weight`] `(c²)`: `Σ s² ≤ c²` of the dropped | | `trunc_cut` c, of normalised values |
/// | [`Truncation::relative_discarded_weight`] `(c)`: `Σ s² ≤ c · Σ s²` of all | `cutoff` c | |
/// | [`degeneracy`](BondTruncation::degeneracy) | | `degeneracy_tol`, a difference of logarithms |
/// | [`min_per_sector`](BondTruncation::min_per_sector) | | |
///
/// ```
/// use t4a_structured::BondTruncation;
/// let policy = BondTruncation::new().max_dim(2).degeneracy(1e-8);
/// // Numbers of kept values by sector.
/// assert_eq!(policy.dims(&[&[3.0, 1.0], &[1.0]]), [1, 0]);
/// assert_eq!(policy.min_per_sector(1).dims(&[&[3.0, 1.0], &[1.0]]), [1, 1]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BondTruncation {
    policy: Truncation,
    min_per_sector: usize,
    degeneracy: f64,
}

impl From<Truncation> for BondTruncation {
    fn from(policy: Truncation) -> Self {
        Self { policy, ..Self::default() }
    }
}

impl From<&Truncation> for BondTruncation {
    fn from(policy: &Truncation) -> Self {
        (*policy).into()
    }
}

impl From<&BondTruncation> for BondTruncation {
    fn from(policy: &BondTruncation) -> Self {
        *policy
    }
}

impl BondTruncation {
    /// Policy that keeps all values.
    pub fn new() -> Self {
        Self::default()
    }

    /// Keeps at most this many values (at least 1) over all sectors; ties are split.
    pub fn max_dim(self, max_dim: usize) -> Self {
        Self { policy: self.policy.max_dim(max_dim), ..self }
    }

    /// Keeps at least this many values over all sectors, or all if there are fewer.
    pub fn min_dim(self, min_dim: usize) -> Self {
        Self { policy: self.policy.min_dim(min_dim), ..self }
    }

    /// Drops `dᵢ ≤ cutoff`.
    pub fn cutoff(self, cutoff: f64) -> Self {
        Self { policy: self.policy.cutoff(cutoff), ..self }
    }

    /// Drops `dᵢ ≤ cutoff · d₀` with the largest value d₀ of all sectors.
    pub fn relative_cutoff(self, cutoff: f64) -> Self {
        Self { policy: self.policy.relative_cutoff(cutoff), ..self }
    }

    /// Drops the smallest values as long as the sum of their squares is `≤ weight`.
    pub fn discarded_weight(self, weight: f64) -> Self {
        Self { policy: self.policy.discarded_weight(weight), ..self }
    }

    /// Drops the smallest values as long as the sum of their squares is `≤ weight · Σ dᵢ²`.
    pub fn relative_discarded_weight(self, weight: f64) -> Self {
        Self { policy: self.policy.relative_discarded_weight(weight), ..self }
    }

    /// Keeps at least this many values of each sector, or all if it has fewer.
    pub fn min_per_sector(self, min_per_sector: usize) -> Self {
        Self { min_per_sector, ..self }
    }

    /// Neighbouring values whose relative difference is at most `tolerance` are kept or discarded together.
    pub fn degeneracy(self, tolerance: f64) -> Self {
        Self { degeneracy: tolerance, ..self }
    }

    /// Checks that the options are consistent.
    ///
    /// # Errors
    /// `Linalg`; `Invalid` for a tolerance that is negative or NaN.
    pub fn validate(&self) -> Result<()> {
        self.policy.validate()?;
        if self.degeneracy.is_nan() || self.degeneracy < 0.0 {
            let message = format!(
                "the tolerance of degeneracy is {}; a number of at least 0 is required",
                self.degeneracy
            );
            return Err(StructuredError::Invalid { op: "svd_truncated", message });
        }
        Ok(())
    }

    /// Number of kept values of each sector; `sectors` holds the nonincreasing values of each.
    pub fn dims(&self, sectors: &[&[f64]]) -> Vec<usize> {
        let all = sectors.iter().enumerate();
        let all = all.flat_map(|(place, own)| own.iter().map(move |&value| (value, place)));
        let mut all: Vec<(f64, usize)> = all.collect();
        // Stable sort: equal values stay in the order of sectors, then of the spectrum.
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let sorted: Vec<f64> = all.iter().map(|&(value, _)| value).collect();
        let limit = self.policy.rank(&sorted).max(1).min(all.len());
        let tied = |i: usize| sorted[i - 1] - sorted[i] <= self.degeneracy * sorted[i - 1];
        let mut keep = limit;
        if self.degeneracy > 0.0 && keep < all.len() {
            while keep > 0 && tied(keep) {
                keep -= 1;
            }
        }
        let keep = if keep == 0 { limit } else { keep };
        let mut dims = vec![0; sectors.len()];
        all[..keep].iter().for_each(|&(_, place)| dims[place] += 1);
        for (dim, own) in dims.iter_mut().zip(sectors) {
            *dim = (*dim).max(self.min_per_sector.min(own.len()));
        }
        dims
    }
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Leading singular triplets, by value over all sectors; equal values prefer the smaller sector. The kept
    /// triplets are slices of the full factors, so the derivative takes the full spectrum into account.
    ///
    /// The bond has at least one state unless the tensor has no allowed entry.
    ///
    /// # Errors
    /// As [`GradedTensor::svd`]; [`BondTruncation::validate`].
    pub fn svd_truncated(
        &self,
        rows: usize,
        flux: FluxOn,
        truncation: impl Into<BondTruncation>,
    ) -> Result<Truncated<S, A>> {
        self.svd_truncated_with(rows, flux, truncation, Degeneracy::DEFAULT)
    }

    /// [`GradedTensor::svd_truncated`] with a policy for degenerate values in its derivative.
    ///
    /// # Errors
    /// As [`GradedTensor::svd_truncated`].
    pub fn svd_truncated_with(
        &self,
        rows: usize,
        flux: FluxOn,
        truncation: impl Into<BondTruncation>,
        degeneracy: Degeneracy,
    ) -> Result<Truncated<S, A>> {
        let truncation = truncation.into();
        truncation.validate()?;
        let Svd { u, s, vh } = self.svd_with(rows, flux, degeneracy)?;
        let numbers = s.numbers()?;
        let sectors: Vec<&[f64]> = numbers.iter().map(|(_, own)| &own[..]).collect();
        let dims = truncation.dims(&sectors);
        let dropped = sectors.iter().zip(&dims).flat_map(|(own, &dim)| &own[dim..]);
        // `hypot` avoids overflow of the squares.
        let error = dropped.copied().fold(0.0, f64::hypot);

        let (u, vh) = (u.leading(rows, &dims)?, vh.leading(0, &dims)?);
        let plan: Rearrange = crate::structural::leading(s.leg(), &dims);
        let values = one(&plan, &[s.values()])?;
        let s = Bond::of(vh.spec.legs()[0].clone(), values);
        Ok(Truncated { kept: Svd { u, s, vh }, error })
    }

    /// The first `dims[k]` states of sector k of a leg.
    ///
    /// # Errors
    /// `MoveAxis`; `Invalid` if a number exceeds the dimension of its sector.
    ///
    /// ```
    /// use t4a_structured::{Direction, GradedTensor, Leg, Spec, U1};
    /// # use t4a_tensor::{DType, random::Generator};
    /// let leg = Leg::new([(U1(0), 3), (U1(1), 2)], Direction::Out)?;
    /// let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1)?;
    /// let x = GradedTensor::<U1>::random(spec, DType::F64, false, &Generator::new(1))?;
    /// let part = x.leading(0, &[2, 0])?;
    /// assert_eq!(part.spec().legs()[0], Leg::new([(U1(0), 2)], Direction::Out)?);
    /// # Ok::<(), t4a_structured::StructuredError>(())
    /// ```
    pub fn leading(&self, axis: usize, dims: &[usize]) -> Result<Self> {
        self.moved(self.spec.restrict(axis, dims)?)
    }
}
