//! Updates of one site and of two sites.

use t4a_linalg::krylov::lanczos_beyond;
use t4a_structured::{Direction, FluxOn, GradedTensor, Sector, Svd, Truncated, einsum};

use super::Dmrg;
use crate::error::{NetworksError, Result};
use crate::mps::unit;
use crate::scalar::unfused;

/// The lowest vector of a map that is orthogonal to some, from a start.
fn lowest<S: Sector>(
    map: impl FnMut(&GradedTensor<S>) -> Result<GradedTensor<S>>,
    start: &GradedTensor<S>,
    excluded: &[GradedTensor<S>],
    options: &t4a_linalg::krylov::KrylovOptions,
) -> Result<(f64, GradedTensor<S>)> {
    let mut found = lanczos_beyond(map, start, excluded, options)?;
    match (found.values.first(), found.vectors.pop()) {
        (Some(&value), Some(vector)) => Ok((value, vector)),
        _ => Err(NetworksError::Norm { op: super::OP, norm: 0.0 }),
    }
}

impl<S: Sector> Dmrg<S> {
    /// Optimises sites i and i + 1 and moves the centre to i + 1, or to i. Returns the energy and the sum of squares of
    /// the singular values that were dropped.
    pub(super) fn two_sites(&mut self, i: usize, to_right: bool) -> Result<(f64, f64)> {
        let (x, effective) = (self.state.tensors(), self.environments.pair(i)?);
        let pair = x[i].contract(&x[i + 1], &[2], &[0])?.repartition(2)?;
        let excluded = self.overlaps.iter().map(|o| o.two_sites(i)).collect::<Result<Vec<_>>>()?;
        let (energy, pair) =
            lowest(|x| effective.apply(x), &pair, &excluded, &self.options.krylov())?;
        let truncation = self.options.truncation(self.sweeps);
        let Truncated { kept: Svd { u, s, vh }, error } =
            pair.svd_truncated(2, FluxOn::Right, truncation)?;
        let s = s.normalised()?;
        let new = match to_right {
            true => [u, vh.scale_rows(&s)?.repartition(2)?],
            false => [u.scale_columns(&s)?, vh.repartition(2)?],
        };
        self.state.replace(i, new, if to_right { i + 1 } else { i });
        self.pass(if to_right { i } else { i + 1 }, to_right)?;
        Ok((energy, error * error))
    }

    /// Optimises site i, enriches the bond in front of it, and moves the centre over that bond.
    pub(super) fn one_site(&mut self, i: usize, to_right: bool) -> Result<(f64, f64)> {
        let (x, n) = (self.state.tensors(), self.state.len());
        let effective = self.environments.site(i)?;
        let excluded = self.overlaps.iter().map(|o| o.one_site(i)).collect::<Result<Vec<_>>>()?;
        let (energy, mut site) =
            lowest(|x| effective.apply(x), &x[i], &excluded, &self.options.krylov())?;
        let last = if to_right { i + 1 == n } else { i == 0 };
        if last {
            self.state.replace(i, [site], i);
            return Ok((energy, 0.0));
        }
        let axis = if to_right { 2 } else { 0 };
        let next = if to_right { i + 1 } else { i - 1 };
        let mut other = x[next].clone();
        let weight = self.options.expansion * 0.1f64.powi(self.sweeps.min(300) as i32);
        // Below rounding the enrichment is noise.
        if weight > 1e-14 {
            let more = self.enrichment(i, &site, to_right)?.scale(weight);
            let leg = more.spec().legs()[axis].dual();
            let mut legs = other.spec().legs().to_vec();
            legs[2 - axis] = leg;
            let rows = other.spec().rows();
            let zeros = other.zeros_of(&t4a_structured::Spec::new(legs, S::TRIVIAL, rows)?);
            site = GradedTensor::direct_sum(&[&site, &more], &[axis])?;
            other = GradedTensor::direct_sum(&[&other, &zeros], &[2 - axis])?;
        }
        let truncation = self.options.truncation(self.sweeps);
        let rows = if to_right { 2 } else { 1 };
        let Truncated { kept: Svd { u, s, vh }, error } =
            site.svd_truncated(rows, FluxOn::Right, truncation)?;
        let (at, new) = if to_right {
            let rest = vh.scale_rows(&s)?.contract(&other, &[1], &[0])?;
            (i, [u, unit(&rest.repartition(2)?)?])
        } else {
            let rest = other.contract(&u.scale_columns(&s)?, &[2], &[0])?;
            (i - 1, [unit(&rest.repartition(2)?)?, vh.repartition(2)?])
        };
        self.state.replace(at, new, next);
        self.pass(i, to_right)?;
        Ok((energy, error * error))
    }

    /// More states of the bond in front of the site: the operator applied to the site and to the side behind it.
    fn enrichment(&self, i: usize, x: &GradedTensor<S>, to_right: bool) -> Result<GradedTensor<S>> {
        let [left, right] = self.environments.of(i, i);
        let w = &self.environments.channels.tensors()[i];
        let more = match to_right {
            true => einsum("kpm,kwb,wqpv->bqmv", &[x, left, w])?.fuse(2..4, Direction::In)?,
            false => einsum("kpm,mvn,wqpv->kwqn", &[x, right, w])?.fuse(0..2, Direction::Out)?,
        };
        unfused(more.repartition(2)?)
    }

    /// Site i becomes part of the environments on one side.
    fn pass(&mut self, i: usize, to_right: bool) -> Result<()> {
        let x = &self.state.tensors()[i];
        match to_right {
            true => self.environments.pass_right(i, x)?,
            false => self.environments.pass_left(i, x)?,
        }
        self.overlaps.iter_mut().try_for_each(|overlap| overlap.pass(i, x, to_right))
    }
}
