//! Environments of the overlap of the state with another one.

use t4a_structured::{GradedTensor, Sector, einsum};

use crate::environment::ChainSides;
use crate::error::{NetworksError, Result};
use crate::mps::Mps;
use crate::scalar::edge;

/// `⟨state|other⟩` but for some sites: the other state in the basis of the environments of these sites.
#[derive(Clone, Debug)]
pub(crate) struct Overlaps<S> {
    other: Mps<S>,
    /// `[other In, bra Out]` of the sites before, `[other Out, bra In]` of those behind.
    sides: ChainSides<S>,
}

impl<S: Sector> Overlaps<S> {
    /// Of a state whose centre is site 0.
    pub(crate) fn new(op: &'static str, other: &Mps<S>, state: &Mps<S>) -> Result<Self> {
        other.check_legs(op, (0..state.len()).map(|i| state.physical(i)))?;
        let (required, given) = (state.charge(), other.charge());
        if required != given {
            let (given, required) = (given.to_string(), required.to_string());
            let what = "another state".into();
            return Err(NetworksError::Charge { op, what, given, required });
        }
        let (x, n) = (state.tensors(), state.len());
        let ends = [x[0].spec().legs()[0].dual(), x[n - 1].spec().legs()[2].dual()];
        let [left, right] = ends.map(|leg| edge(&x[0], vec![leg.clone(), leg.dual()]));
        let mut all = Self { other: other.clone(), sides: ChainSides::new(n, [left?, right?]) };
        all.begin_anew(state)?;
        Ok(all)
    }

    /// Environments of a state whose centre is site 0.
    pub(crate) fn begin_anew(&mut self, state: &Mps<S>) -> Result<()> {
        let x = state.tensors();
        (1..state.len()).rev().try_for_each(|i| self.pass(i, &x[i], false))
    }

    /// Site i becomes part of one side.
    pub(crate) fn pass(&mut self, i: usize, x: &GradedTensor<S>, to_right: bool) -> Result<()> {
        let (other, bra) = (&self.other.tensors()[i], x.conj()?);
        if to_right {
            let [left, _] = self.sides.of(i, i);
            let next = einsum("kb,kpm,bpn->mn", &[left, other, &bra])?;
            self.sides.pass_right(i, next);
        } else {
            let [_, right] = self.sides.of(0, i);
            let next = einsum("mn,kpm,bpn->kb", &[right, other, &bra])?;
            self.sides.pass_left(i, next);
        }
        Ok(())
    }

    /// The other state on site i.
    pub(crate) fn one_site(&self, i: usize) -> Result<GradedTensor<S>> {
        let [left, right] = self.sides.of(i, i);
        let site = &self.other.tensors()[i];
        Ok(einsum("kb,kpm,mn->bpn", &[left, site, right])?.repartition(2)?)
    }

    /// The other state on sites i and i + 1.
    pub(crate) fn two_sites(&self, i: usize) -> Result<GradedTensor<S>> {
        let [left, right] = self.sides.of(i, i + 1);
        let x = self.other.tensors();
        let all = [left, &x[i], &x[i + 1], right];
        Ok(einsum("kb,kpm,mqc,cn->bpqn", &all)?.repartition(2)?)
    }
}
