//! Values of a bond, and truncation over all of its sectors together.

use t4a_diff::Array;
use t4a_linalg::svd::Truncation;
use t4a_tensor::DType;

use super::GradedTensor;
use super::factor::{FluxOn, Svd};
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::operation::{Rearrange, one};
use crate::sector::Sector;
use crate::spec::Spec;

/// A value for each state of a leg: singular values, eigenvalues.
#[derive(Clone, Debug)]
pub struct Bond<S, A> {
    leg: Leg<S>,
    values: A,
}

/// The leading singular triplets of all sectors.
#[derive(Clone, Debug)]
pub struct Truncated<S, A> {
    /// What is kept.
    pub kept: Svd<S, A>,
    /// `√Σ s²` over the values that were dropped.
    pub error: f64,
}

impl<S: Sector, A: Array> Bond<S, A> {
    /// The values of a leg with as many states.
    pub(super) fn new(leg: Leg<S>, values: A) -> Self {
        Self { leg, values }
    }

    /// The leg, pointing out of the right factor.
    pub fn leg(&self) -> &Leg<S> {
        &self.leg
    }

    /// The values, by ascending sectors.
    pub fn values(&self) -> &A {
        &self.values
    }

    /// Checks that an axis, the only one of its side, is this leg or its dual.
    pub(super) fn check(&self, spec: &Spec<S>, axis: usize, only: bool) -> Result<()> {
        let leg = spec.legs().get(axis).filter(|leg| only && leg.sectors() == self.leg.sectors());
        match leg {
            Some(_) => Ok(()),
            None => Err(StructuredError::LegMismatch {
                op: "scale",
                axis,
                lhs: spec.to_string(),
                other: 0,
                rhs: self.leg.to_string(),
                required: "the bond as the only leg of that side",
            }),
        }
    }
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// The leading singular triplets, by value over all sectors, ties to the smaller sector. The kept ones
    /// are parts of the full factors, whose rule has all of the spectrum.
    ///
    /// A bond is never empty unless the tensor has no allowed entry.
    ///
    /// # Errors
    /// As [`GradedTensor::svd`]; `Linalg` for policies that contradict themselves.
    pub fn svd_truncated(
        &self,
        rows: usize,
        flux: FluxOn,
        truncation: &Truncation,
    ) -> Result<Truncated<S, A>> {
        truncation.validate()?;
        let Svd { u, s, vh } = self.svd(rows, flux)?;
        let wide = s.values.elements()?.cast(DType::F64)?;
        let values = wide.typed::<f64>()?.to_vec()?;
        let mut all: Vec<(f64, usize)> = Vec::with_capacity(values.len());
        let mut starts = s.leg.starts();
        starts.push(values.len());
        for (place, bounds) in starts.windows(2).enumerate() {
            all.extend(values[bounds[0]..bounds[1]].iter().map(|&value| (value, place)));
        }
        // Stable: equal values stay in the order of sectors, then of the spectrum.
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        let sorted: Vec<f64> = all.iter().map(|&(value, _)| value).collect();
        let keep = truncation.rank(&sorted).max(1).min(all.len());
        let mut dims = vec![0; s.leg.sectors().len()];
        all[..keep].iter().for_each(|&(_, place)| dims[place] += 1);
        let error = sorted[keep..].iter().map(|x| x * x).sum::<f64>().sqrt();

        let cut = |tensor: &Self, axis: usize| tensor.moved(tensor.spec.restrict(axis, &dims)?);
        let (u, vh) = (cut(&u, rows)?, cut(&vh, 0)?);
        let plan: Rearrange = crate::structural::leading(&s.leg, &dims);
        let values = one(&plan, &[&s.values])?;
        let s = Bond::new(vh.spec.legs()[0].clone(), values);
        Ok(Truncated { kept: Svd { u, s, vh }, error })
    }
}
