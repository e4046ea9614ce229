//! Matrix product operators.
//!
//! ```text
//!        out
//!         │
//!  left ──W── right      [left Out, out Out, in In, right In], charge 0
//!         │
//!        in
//! ```
//!
//! The first bond has the neutral charge, the last one that of the operator, each in one state.

mod algebra;
mod dense;
mod product;

use t4a_diff::{Array, Eager};
use t4a_structured::{Direction, GradedTensor, Leg, Sector};

use crate::error::{NetworksError, Result};

/// A matrix product operator over any arrays.
#[derive(Clone, Debug)]
pub struct Mpo<S, A = Eager> {
    tensors: Vec<GradedTensor<S, A>>,
}

/// Directions of the legs of a tensor of a chain, checked with the bonds between neighbours.
pub(crate) fn check_links<S: Sector, A: Array>(
    op: &'static str,
    tensors: &[GradedTensor<S, A>],
    directions: &[Direction],
) -> Result<()> {
    if S::FERMIONIC {
        return Err(NetworksError::FermionicSector { op, what: "a chain".into() });
    }
    if tensors.is_empty() {
        let (what, required, given) = ("tensors", 1, 0);
        return Err(NetworksError::Length { op, what, required, given });
    }
    let rank = directions.len();
    for (site, x) in tensors.iter().enumerate() {
        let (legs, fail) = (x.spec().legs(), |message| NetworksError::Chain { op, site, message });
        if legs.len() != rank {
            return Err(fail(format!("{rank} legs are required, given {}", legs.len())));
        }
        if let Some(k) = (0..rank).find(|&k| legs[k].direction() != directions[k]) {
            return Err(fail(format!("leg {k} is {}; the other direction is required", legs[k])));
        }
        if x.spec().flux() != S::TRIVIAL {
            return Err(fail(format!("charge {} is given, 0 is required", x.spec().flux())));
        }
        if site > 0 && !tensors[site - 1].spec().legs()[rank - 1].contracts_with(&legs[0]) {
            let before = &tensors[site - 1].spec().legs()[rank - 1];
            return Err(fail(format!("leg {} after {before}", legs[0])));
        }
    }
    Ok(())
}

/// Checks [`check_links`], and that the ends have one state each, neutral on the left.
pub(crate) fn check_chain<S: Sector, A: Array>(
    op: &'static str,
    tensors: &[GradedTensor<S, A>],
    directions: &[Direction],
) -> Result<()> {
    check_links(op, tensors, directions)?;
    let (rank, last) = (directions.len(), tensors.len() - 1);
    let ends = [(0, 0, "left"), (last, rank - 1, "right")];
    for (site, k, side) in ends {
        let leg = &tensors[site].spec().legs()[k];
        let neutral = k > 0 || leg.sectors() == [(S::TRIVIAL, 1)];
        if leg.dim() != 1 || !neutral {
            let message = format!("the {side} end is {leg}; one state is required");
            return Err(NetworksError::Chain { op, site, message });
        }
    }
    Ok(())
}

impl<S: Sector, A: Array> Mpo<S, A> {
    /// An operator of its tensors.
    ///
    /// # Errors
    /// `Length` for none; `Chain` for legs that do not fit; `FermionicSector`.
    pub fn new(tensors: Vec<GradedTensor<S, A>>) -> Result<Self> {
        use Direction::{In, Out};
        check_chain("mpo", &tensors, &[Out, Out, In, In])?;
        let physical = |x: &GradedTensor<S, A>| {
            let legs = x.spec().legs();
            legs[1].contracts_with(&legs[2])
        };
        match tensors.iter().position(|x| !physical(x)) {
            None => Ok(Self { tensors }),
            Some(site) => {
                let message = "the legs of the site are not dual to each other".into();
                Err(NetworksError::Chain { op: "mpo", site, message })
            }
        }
    }

    /// The tensors `[left, out, in, right]`.
    pub fn tensors(&self) -> &[GradedTensor<S, A>] {
        &self.tensors
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Never: an operator has a site.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// States of the bonds between sites.
    pub fn bond_dims(&self) -> Vec<usize> {
        self.tensors[1..].iter().map(|x| x.spec().legs()[0].dim()).collect()
    }

    /// The charge that the operator adds.
    pub fn charge(&self) -> S {
        self.tensors.last().map_or(S::TRIVIAL, |x| x.spec().legs()[3].sectors()[0].0)
    }

    /// The leg of the states of a site.
    pub(crate) fn physical(&self, site: usize) -> &Leg<S> {
        &self.tensors[site].spec().legs()[1]
    }
}
