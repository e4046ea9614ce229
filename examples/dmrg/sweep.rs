//! Two-site sweeps over a graded matrix product state.
//!
//! ```text
//!  left ──A── right    [Out, Out, In]: the charge of a bond is what the sites on its left carry
//!         │            L [ket, operator, bra] of the sites on the left, R of those on the right
//!        site
//! ```

use burn::tensor::{DType, Tensor};
use burn_t4a::ext::structured::{
    Direction, FluxOn, GradedTensor, Leg, Result, Sector, Spec, Structured, Svd, Truncation, einsum,
};
use burn_t4a::{BurnT4a, T4aDevice};

use crate::lanczos::lanczos;
use crate::model::Model;

type T<S> = GradedTensor<BurnT4a, S>;

/// The state, the operator, and the environments on both sides of each bond.
pub struct Chain<S> {
    operator: Vec<T<S>>,
    sites: Vec<T<S>>,
    left: Vec<T<S>>,
    right: Vec<T<S>>,
}

/// Result of a sweep in both directions.
pub struct Sweep {
    pub energy: f64,
    /// Maximum number of states of a bond.
    pub states: usize,
    /// Maximum over bonds of `√Σ s²` of the discarded values.
    pub dropped: f64,
}

/// A tensor with one entry.
fn one<S: Sector>(legs: Vec<Leg<S>>, flux: S, rows: usize) -> Result<T<S>> {
    let device = T4aDevice;
    let ones = Tensor::ones([1], (&device, DType::F64));
    T::from_flat(&Spec::new(legs, flux, rows)?, ones)
}

impl<S: Sector> Chain<S> {
    /// A product state; each entry is 0 or 1, an index of the model's site states.
    pub fn new(model: &Model<S>, states: &[usize]) -> Result<Self> {
        let (site, mut charge, mut sites) = (model.site, S::TRIVIAL, Vec::new());
        let spin = Leg::new(site.map(|charge| (charge, 1)), Direction::Out)?;
        let bond = |charge, direction| Leg::new([(charge, 1)], direction);
        for &state in states {
            let after = charge.fuse(site[state]).unwrap_or(charge);
            let legs =
                vec![bond(charge, Direction::Out)?, spin.clone(), bond(after, Direction::In)?];
            sites.push(one(legs, S::TRIVIAL, 2)?);
            charge = after;
        }
        let operator = model.operator(states.len())?;
        // The boundary bonds, with the bond of the operator between those of ket and bra.
        let (first, last) = (bond(S::TRIVIAL, Direction::In)?, bond(charge, Direction::Out)?);
        let edge = |leg: Leg<S>, operator: Leg<S>| {
            one(vec![leg.clone(), operator, leg.dual()], S::TRIVIAL, 1)
        };
        let left = vec![edge(first, operator[0].spec().legs()[0].dual())?];
        let right = vec![edge(last, operator[states.len() - 1].spec().legs()[3].dual())?];
        let mut chain = Self { operator, sites, left, right };
        for i in (1..states.len()).rev() {
            chain.grow_right(i)?;
        }
        Ok(chain)
    }

    fn grow_left(&mut self, i: usize) -> Result<()> {
        let (a, w) = (&self.sites[i], &self.operator[i]);
        let left = einsum("kwb,kpm,wqpv,bqn->mvn", &[&self.left[i], a, w, &a.conj()?])?;
        self.left.truncate(i + 1);
        self.left.push(left);
        Ok(())
    }

    /// Extends `right` to the environment on the right of site i.
    fn grow_right(&mut self, i: usize) -> Result<()> {
        let n = self.sites.len();
        self.right.truncate(n - i);
        let (a, w) = (&self.sites[i], &self.operator[i]);
        let right = einsum("mvn,kpm,wqpv,bqn->kwb", &[&self.right[n - 1 - i], a, w, &a.conj()?])?;
        self.right.push(right);
        Ok(())
    }

    /// Optimises sites i and i + 1 together; the singular values are absorbed into the right or the left site.
    fn optimise(&mut self, i: usize, to_right: bool, most: usize) -> Result<Sweep> {
        let (l, r) = (&self.left[i], &self.right[self.sites.len() - 2 - i]);
        let (w, x) = (&self.operator[i], &self.operator[i + 1]);
        let pair = self.sites[i].contract(&self.sites[i + 1], &[2], &[0])?;
        let apply = |pair: &T<S>| {
            let all = [pair, l, w, x, r];
            einsum("kpqm,kab,aspc,ctqd,mdn->bstn", &all)?.repartition(2)
        };
        let (energy, pair) = lanczos(apply, &pair.repartition(2)?, 16)?;
        let truncation = Truncation::new().max_dim(most).cutoff(1e-12);
        let cut = pair.svd_truncated(2, FluxOn::Right, truncation)?;
        let Svd { u, s, vh } = cut.kept;
        let states = s.leg().dim();
        (self.sites[i], self.sites[i + 1]) = match to_right {
            true => (u, vh.scale_rows(&s)?.repartition(2)?),
            false => (u.scale_columns(&s)?, vh.repartition(2)?),
        };
        if to_right {
            self.grow_left(i)?
        } else {
            self.grow_right(i + 1)?
        }
        Ok(Sweep { energy, states, dropped: cut.error })
    }

    /// A sweep in both directions, with at most this many states per bond. `step` is called after every pair.
    pub fn sweep(&mut self, most: usize, step: impl Fn()) -> Result<Sweep> {
        let n = self.sites.len();
        let mut total = Sweep { energy: 0.0, states: 0, dropped: 0.0 };
        let there = (0..n - 1).map(|i| (i, true));
        for (i, to_right) in there.chain((0..n - 1).rev().map(|i| (i, false))) {
            let own = self.optimise(i, to_right, most)?;
            total.energy = own.energy;
            total.states = total.states.max(own.states);
            total.dropped = total.dropped.max(own.dropped);
            step();
        }
        Ok(total)
    }
}
