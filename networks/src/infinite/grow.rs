//! Growth of the bonds of a uniform state.
//!
//! The operator on two sites, between the null spaces of their isometries, has the directions that lower the energy most;
//! the state gets them with zeros in the bond.

use t4a_linalg::svd::Truncation;
use t4a_structured::{FluxOn, GradedTensor, Leg, Sector, Spec, Svd, Truncated, einsum};

use super::geometric::Sides;
use super::vumps::Vumps;
use crate::effective::EffectiveMap;
use crate::error::Result;
use crate::scalar::norm;

impl<S: Sector> Vumps<S> {
    /// Enlarges bonds, up to `max_dim` states, by the leading directions of the operator on two sites outside of the
    /// present state; the state itself does not change. Returns whether a bond is larger than before.
    ///
    /// # Errors
    /// Those of the factorisations.
    pub fn grow(&mut self) -> Result<bool> {
        let n = self.state.len();
        let more = (0..n).map(|i| self.directions(i)).collect::<Result<Vec<_>>>()?;
        if more.iter().all(Option::is_none) {
            return Ok(false);
        }
        let mut state = self.state.clone();
        for (i, more) in more.into_iter().enumerate() {
            let Some([left, right]) = more else { continue };
            let next = (i + 1) % n;
            let sum = GradedTensor::direct_sum;
            state.left[i] = sum(&[&state.left[i], &padded(&state.left[i], &left, 0)?], &[2])?;
            state.left[next] = with_zeros(&state.left[next], &right, 0)?;
            state.right[next] =
                sum(&[&state.right[next], &padded(&state.right[next], &right, 2)?], &[0])?;
            state.right[i] = with_zeros(&state.right[i], &left, 2)?;
            let legs = vec![right.spec().legs()[0].clone(), left.spec().legs()[2].clone()];
            let spec = Spec::new(legs, S::TRIVIAL, 1)?;
            let zeros = state.bonds[i].zeros_of(&spec);
            state.bonds[i] = sum(&[&state.bonds[i], &zeros], &[0, 1])?;
        }
        self.sides = Sides::new(&state, &self.operator, None, 1e-10)?;
        self.state = state;
        Ok(true)
    }

    /// New columns of the left isometry of a site and new rows of the right isometry of the next one.
    fn directions(&self, i: usize) -> Result<Option<[GradedTensor<S>; 2]>> {
        let (n, w) = (self.state.len(), self.operator.tensors());
        let next = (i + 1) % n;
        let dim = self.state.bonds[i].spec().legs()[0].dim();
        let most = ((dim as f64 * self.options.growth).ceil() as usize).min(self.options.max_dim);
        if most <= dim {
            return Ok(None);
        }
        let pair = self.state.center(i)?.contract(&self.state.right[next], &[2], &[0])?;
        let around = [&self.sides.left[i], &self.sides.right[next]];
        let image = EffectiveMap::pair(around, [&w[i], &w[next]]).apply(&pair.repartition(2)?)?;
        let left = self.state.left[i].null_space(2, 1e-12)?;
        let right = self.state.right[next].dagger()?.null_space(2, 1e-12)?.dagger()?;
        let outside = einsum("lsa,lstr,btr->ab", &[&left.conj()?, &image, &right.conj()?])?;
        if outside.spec().is_empty() || norm(&outside)? <= self.options.cutoff {
            return Ok(None);
        }
        let policy = Truncation::new().max_dim(most - dim).cutoff(self.options.cutoff);
        let Truncated { kept: Svd { u, vh, .. }, .. } =
            outside.svd_truncated(1, FluxOn::Right, policy)?;
        let columns = left.contract(&u, &[2], &[0])?.repartition(2)?;
        let rows = vh.contract(&right, &[1], &[0])?.repartition(2)?;
        Ok(Some([columns, rows]))
    }
}

/// New columns or rows with zeros on the bond that grew already, behind a tensor of the state.
fn padded<S: Sector>(
    own: &GradedTensor<S>,
    more: &GradedTensor<S>,
    axis: usize,
) -> Result<GradedTensor<S>> {
    let (have, want) = (&more.spec().legs()[axis], &own.spec().legs()[axis]);
    if have == want {
        return Ok(more.clone());
    }
    let missing = want.sectors().iter().filter_map(|&(sector, dim)| {
        let had = have.place(sector).map_or(0, |place| have.sectors()[place].1);
        (dim > had).then_some((sector, dim - had))
    });
    let leg = Leg::new(missing, want.direction())?;
    extended(more, leg, axis)
}

/// The tensor with zeros for the states that a new bond has more.
fn with_zeros<S: Sector>(
    x: &GradedTensor<S>,
    more: &GradedTensor<S>,
    axis: usize,
) -> Result<GradedTensor<S>> {
    extended(x, more.spec().legs()[axis].clone(), axis)
}

/// The tensor with zeros on more states of a leg.
fn extended<S: Sector>(x: &GradedTensor<S>, leg: Leg<S>, axis: usize) -> Result<GradedTensor<S>> {
    let mut legs = x.spec().legs().to_vec();
    legs[axis] = leg;
    let spec = Spec::new(legs, x.spec().flux(), x.spec().rows())?;
    Ok(GradedTensor::direct_sum(&[x, &x.zeros_of(&spec)], &[axis])?)
}
