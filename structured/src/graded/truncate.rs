//! Truncation over all sectors of a bond together.

use t4a_diff::Array;
use t4a_linalg::degeneracy::Degeneracy;
use t4a_linalg::svd::Truncation;

use super::GradedTensor;
use super::bond::Bond;
use super::factor::{FluxOn, Svd};
use crate::error::{Result, StructuredError};
use crate::operation::{Rearrange, one};
use crate::sector::Sector;

/// The leading singular triplets of all sectors.
#[derive(Clone, Debug)]
pub struct Truncated<S, A> {
    /// What is kept.
    pub kept: Svd<S, A>,
    /// `√Σ s²` over the values that were dropped.
    pub error: f64,
}

/// How many states of a bond to keep.
///
/// The policies of [`Truncation`] choose among the values of all sectors together, ties to the smaller sector.
/// Then the number shrinks as far as it has to for degenerate values to stay together, unless nothing would
/// be left. Last, each sector keeps its minimum, also beyond `max_dim`.
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
/// use t4a_linalg::svd::Truncation;
/// use t4a_structured::BondTruncation;
/// let policy = BondTruncation::from(Truncation::new().max_dim(2)).degeneracy(1e-8);
/// // Values by sector.
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
    /// Keeps everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// At least so many of each sector, if there are.
    pub fn min_per_sector(self, min_per_sector: usize) -> Self {
        Self { min_per_sector, ..self }
    }

    /// Neighbouring values that differ by no more than this part of them are kept or dropped together.
    pub fn degeneracy(self, tolerance: f64) -> Self {
        Self { degeneracy: tolerance, ..self }
    }

    /// Rejects policies that contradict themselves.
    ///
    /// # Errors
    /// `Linalg`; `Invalid` for a tolerance that is negative or NaN.
    pub fn validate(&self) -> Result<()> {
        self.policy.validate()?;
        if self.degeneracy.is_nan() || self.degeneracy < 0.0 {
            let message = format!("a tolerance of degeneracy of {}", self.degeneracy);
            return Err(StructuredError::Invalid { op: "svd_truncated", message });
        }
        Ok(())
    }

    /// How many of the values of each sector are kept, of nonincreasing ones.
    pub fn dims(&self, sectors: &[&[f64]]) -> Vec<usize> {
        let all = sectors.iter().enumerate();
        let all = all.flat_map(|(place, own)| own.iter().map(move |&value| (value, place)));
        let mut all: Vec<(f64, usize)> = all.collect();
        // Stable: equal values stay in the order of sectors, then of the spectrum.
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
    /// The leading singular triplets, by value over all sectors, ties to the smaller sector. The kept ones
    /// are parts of the full factors, whose rule has all of the spectrum.
    ///
    /// A bond is never empty unless the tensor has no allowed entry.
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

    /// As [`GradedTensor::svd_truncated`], with a policy for ties in its derivative.
    ///
    /// # Errors
    /// As there.
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
        // Squares could leave the range.
        let error = dropped.copied().fold(0.0, f64::hypot);

        let cut = |tensor: &Self, axis: usize| tensor.moved(tensor.spec.restrict(axis, &dims)?);
        let (u, vh) = (cut(&u, rows)?, cut(&vh, 0)?);
        let plan: Rearrange = crate::structural::leading(s.leg(), &dims);
        let values = one(&plan, &[s.values()])?;
        let s = Bond::of(vh.spec.legs()[0].clone(), values);
        Ok(Truncated { kept: Svd { u, s, vh }, error })
    }
}
