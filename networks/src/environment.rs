//! Environments of sites: `⟨ψ|O|ψ⟩` contracted over all other sites.
//!
//! ```text
//!  ┌── ket ──      left   [ket In, operator In, bra Out]
//!  L── op  ──      right  [ket Out, operator Out, bra In]
//!  └── bra ──      an effective operator maps tensors of the ket to tensors of the same structure
//! ```

use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector, einsum};

use crate::effective::{ChainSide, Channels, EffectiveMap};
use crate::error::Result;
use crate::mpo::Mpo;
use crate::mps::Mps;
use crate::scalar::edge;

/// Left of the first site.
pub(crate) fn left_edge<S: Sector, A: Array>(
    ket: &GradedTensor<S, A>,
    w: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    let (leg, operator) = (ket.spec().legs()[0].dual(), w.spec().legs()[0].dual());
    edge(ket, vec![leg.clone(), operator, leg.dual()])
}

/// Right of the last site, for an operator of charge 0.
pub(crate) fn right_edge<S: Sector, A: Array>(
    ket: &GradedTensor<S, A>,
    w: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    let (leg, operator) = (ket.spec().legs()[2].dual(), w.spec().legs()[3].dual());
    edge(ket, vec![leg.clone(), operator, leg.dual()])
}

/// One more site on the left; `bra` is conjugated.
pub(crate) fn grow_left<S: Sector, A: Array>(
    left: &GradedTensor<S, A>,
    ket: &GradedTensor<S, A>,
    w: &GradedTensor<S, A>,
    bra: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    Ok(einsum("kwb,kpm,wqpv,bqn->mvn", &[left, ket, w, bra])?)
}

/// One more site on the right; `bra` is conjugated.
pub(crate) fn grow_right<S: Sector, A: Array>(
    right: &GradedTensor<S, A>,
    ket: &GradedTensor<S, A>,
    w: &GradedTensor<S, A>,
    bra: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    Ok(einsum("mvn,kpm,wqpv,bqn->kwb", &[right, ket, w, bra])?)
}

/// A tensor for the sites before and one for the sites behind each site that a sweep visits next.
#[derive(Clone, Debug)]
pub(crate) struct ChainSides<S> {
    sites: usize,
    /// `left[i]` of the sites before i.
    left: Vec<GradedTensor<S>>,
    /// `right[n − 1 − i]` of the sites behind i.
    right: Vec<GradedTensor<S>>,
}

impl<S: Sector> ChainSides<S> {
    /// Those of the ends of a chain.
    pub(crate) fn new(sites: usize, [left, right]: [GradedTensor<S>; 2]) -> Self {
        Self { sites, left: vec![left], right: vec![right] }
    }

    /// Those of sites `first` to `last`.
    pub(crate) fn of(&self, first: usize, last: usize) -> [&GradedTensor<S>; 2] {
        [&self.left[first], &self.right[self.sites - 1 - last]]
    }

    /// Site i becomes part of the left, as in `next`. Tensors that contain it on the right are dropped.
    pub(crate) fn pass_right(&mut self, i: usize, next: GradedTensor<S>) {
        self.left.truncate(i + 1);
        self.left.push(next);
        self.right.truncate(self.sites - i);
    }

    /// Site i becomes part of the right, as in `next`. Tensors that contain it on the left are dropped.
    pub(crate) fn pass_left(&mut self, i: usize, next: GradedTensor<S>) {
        self.right.truncate(self.sites - i);
        self.right.push(next);
        self.left.truncate(i + 1);
    }
}

/// Environments of all bonds that have been contracted, of a state about its centre.
#[derive(Clone, Debug)]
pub(crate) struct Environments<S> {
    sides: ChainSides<S>,
    pub(crate) channels: Channels<S>,
}

impl<S: Sector> Environments<S> {
    /// Those of an operator of charge 0 and a state whose centre is the first site.
    pub(crate) fn new(operator: &Mpo<S>, state: &Mps<S>) -> Result<Self> {
        Self::of_channels(Channels::of_chain(operator)?, state)
    }

    fn of_channels(channels: Channels<S>, state: &Mps<S>) -> Result<Self> {
        let (x, w, n) = (state.tensors(), channels.tensors(), state.len());
        let ends = [left_edge(&x[0], &w[0])?, right_edge(&x[n - 1], &w[n - 1])?];
        let mut all = Self { sides: ChainSides::new(n, ends), channels };
        for i in (1..n).rev() {
            all.pass_left(i, &x[i])?;
        }
        Ok(all)
    }

    /// Those of the same operator and another state, whose centre is the first site.
    pub(crate) fn begin_anew(&mut self, state: &Mps<S>) -> Result<()> {
        *self = Self::of_channels(self.channels.clone(), state)?;
        Ok(())
    }

    /// The environments of sites `first` to `last`.
    pub(crate) fn of(&self, first: usize, last: usize) -> [&GradedTensor<S>; 2] {
        self.sides.of(first, last)
    }

    /// The environments of the bond before a site.
    pub(crate) fn around_bond(&self, site: usize) -> [&GradedTensor<S>; 2] {
        [&self.sides.left[site], &self.sides.right[self.sides.sites - site]]
    }

    /// The effective operator of the bond before a site.
    pub(crate) fn bond(&self, site: usize) -> Result<EffectiveMap<S>> {
        self.channels.bond(site, self.around_bond(site))
    }

    /// The effective operator of a site.
    pub(crate) fn site(&self, i: usize) -> Result<EffectiveMap<S>> {
        self.channels.site(i, self.of(i, i))
    }

    /// The effective operator of sites i and i + 1.
    pub(crate) fn pair(&self, i: usize) -> Result<EffectiveMap<S>> {
        self.channels.pair(i, self.of(i, i + 1))
    }

    /// Site i, a left isometry, becomes part of the left.
    pub(crate) fn pass_right(&mut self, i: usize, x: &GradedTensor<S>) -> Result<()> {
        let next = self.channels.grow(ChainSide::Left, i, &self.sides.left[i], x)?;
        self.sides.pass_right(i, next);
        Ok(())
    }

    /// Site i, a right isometry, becomes part of the right.
    pub(crate) fn pass_left(&mut self, i: usize, x: &GradedTensor<S>) -> Result<()> {
        let [_, right] = self.sides.of(0, i);
        let next = self.channels.grow(ChainSide::Right, i, right, x)?;
        self.sides.pass_left(i, next);
        Ok(())
    }
}
