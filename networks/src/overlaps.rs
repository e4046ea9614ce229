//! Environments of the overlap of the state with another one.

use t4a_structured::{GradedTensor, Sector, einsum};

use crate::error::{NetworksError, Result};
use crate::mps::Mps;
use crate::scalar::edge;

/// `⟨state|other⟩` but for some sites: the other state in the basis of the environments of these sites.
#[derive(Clone, Debug)]
pub(crate) struct Overlaps<S> {
    other: Mps<S>,
    /// `[other In, bra Out]` of the sites before i.
    left: Vec<GradedTensor<S>>,
    /// `[other Out, bra In]`, the n-th of the last n sites.
    right: Vec<GradedTensor<S>>,
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
        let mut all = Self { other: other.clone(), left: vec![left?], right: vec![right?] };
        all.begin_anew(state)?;
        Ok(all)
    }

    /// Environments of a state whose centre is site 0.
    pub(crate) fn begin_anew(&mut self, state: &Mps<S>) -> Result<()> {
        let x = state.tensors();
        (1..state.len()).rev().try_for_each(|i| self.pass(i, &x[i], false))
    }

    /// Site i becomes part of one side. Environments that contain it on the other side are dropped.
    pub(crate) fn pass(&mut self, i: usize, x: &GradedTensor<S>, to_right: bool) -> Result<()> {
        let (other, bra) = (&self.other.tensors()[i], x.conj()?);
        if to_right {
            let next = einsum("kb,kpm,bpn->mn", &[&self.left[i], other, &bra])?;
            self.left.truncate(i + 1);
            self.left.push(next);
            self.right.truncate(self.other.len() - i);
        } else {
            let behind = self.other.len() - 1 - i;
            let next = einsum("mn,kpm,bpn->kb", &[&self.right[behind], other, &bra])?;
            self.right.truncate(behind + 1);
            self.right.push(next);
            self.left.truncate(i + 1);
        }
        Ok(())
    }

    /// The other state on site i.
    pub(crate) fn one_site(&self, i: usize) -> Result<GradedTensor<S>> {
        let (x, right) = (self.other.tensors(), &self.right[self.other.len() - 1 - i]);
        Ok(einsum("kb,kpm,mn->bpn", &[&self.left[i], &x[i], right])?.repartition(2)?)
    }

    /// The other state on sites i and i + 1.
    pub(crate) fn two_sites(&self, i: usize) -> Result<GradedTensor<S>> {
        let (x, right) = (self.other.tensors(), &self.right[self.other.len() - 2 - i]);
        let all = [&self.left[i], &x[i], &x[i + 1], right];
        Ok(einsum("kb,kpm,mqc,cn->bpqn", &all)?.repartition(2)?)
    }
}
