//! Matrix product states.
//!
//! ```text
//!  left ──A── right      [left Out, site Out, right In], charge 0:
//!         │              the charge of a bond is what the sites on its left carry
//!        site
//! ```
//!
//! The first bond has the neutral charge, the last one that of the state, each in one state.
//!
//! ```text
//! mod         tensors, bonds, charge
//! initial     product and random states
//! data        serde
//! dense       vectors of all amplitudes
//! density     operators on states by density matrices
//! canonical   orthogonality centre, truncation
//! overlap     inner products and matrix elements, over any arrays
//! log         energies, fidelities, likelihoods of long chains, over any arrays
//! algebra     sums, multiples
//! apply       operators on states
//! fit         the closest state to a product
//! measure     local expectation values, correlations, entanglement
//! sample      perfect sampling
//! ```
//!
//! Reference: U. Schollwöck, *The density-matrix renormalization group in the age of matrix product states* (2011).

mod algebra;
mod apply;
mod canonical;
mod data;
mod dense;
mod density;
mod fit;
mod initial;
mod log;
mod measure;
mod overlap;
mod sample;

use t4a_diff::{Array, Eager};
use t4a_structured::{Direction, GradedTensor, Leg, Sector};

use crate::error::{NetworksError, Result};
use crate::mpo::check_chain;

pub(crate) use algebra::stacked;
pub use apply::Method;
pub(crate) use canonical::{lq, unit};
pub(crate) use overlap::transfer;

/// A matrix product state over any arrays. Algorithms work on those of the engine; overlaps and expectation values are
/// differentiable over arrays that are.
///
/// ```
/// use t4a_networks::sites::{Sites, spin_half};
/// use t4a_networks::Mps;
/// let sites = Sites::uniform(spin_half(), 4);
/// let neel = Mps::product(&sites, ["Up", "Dn", "Up", "Dn"])?;
/// assert_eq!(neel.norm()?, 1.0);
/// assert_eq!(neel.expect(&sites, "Sz")?.iter().map(|z| z.re).collect::<Vec<_>>(), [0.5, -0.5, 0.5, -0.5]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Mps<S, A = Eager> {
    tensors: Vec<GradedTensor<S, A>>,
    /// Tensors before it are left isometries, those behind it right ones.
    center: Option<usize>,
}

impl<S: Sector, A: Array> Mps<S, A> {
    /// A state of its tensors `[left, site, right]`.
    ///
    /// # Errors
    /// `Length` for none; `Chain` for legs that do not fit; `FermionicSector`.
    pub fn new(tensors: Vec<GradedTensor<S, A>>) -> Result<Self> {
        use Direction::{In, Out};
        check_chain("mps", &tensors, &[Out, Out, In])?;
        Ok(Self { tensors, center: None })
    }

    /// The tensors `[left, site, right]`.
    pub fn tensors(&self) -> &[GradedTensor<S, A>] {
        &self.tensors
    }

    /// Number of sites.
    pub fn len(&self) -> usize {
        self.tensors.len()
    }

    /// Never: a state has a site.
    pub fn is_empty(&self) -> bool {
        self.tensors.is_empty()
    }

    /// States of the bonds between sites.
    pub fn bond_dims(&self) -> Vec<usize> {
        self.tensors[1..].iter().map(|x| x.spec().legs()[0].dim()).collect()
    }

    /// The largest number of states of a bond.
    pub fn max_bond_dim(&self) -> usize {
        self.bond_dims().into_iter().max().unwrap_or(1)
    }

    /// The charge of the state.
    pub fn charge(&self) -> S {
        self.tensors.last().map_or(S::TRIVIAL, |x| x.spec().legs()[2].sectors()[0].0)
    }

    /// The site that holds the norm, if the other tensors are isometries.
    pub fn center(&self) -> Option<usize> {
        self.center
    }

    /// True if a tensor is complex.
    pub fn is_complex(&self) -> bool {
        self.tensors.iter().any(|x| x.im().is_some())
    }

    /// The leg of the states of a site.
    pub(crate) fn physical(&self, site: usize) -> &Leg<S> {
        &self.tensors[site].spec().legs()[1]
    }

    /// Replaces tensors from `site` on; the other ones are isometries about `center`.
    pub(crate) fn replace(
        &mut self,
        site: usize,
        tensors: impl IntoIterator<Item = GradedTensor<S, A>>,
        center: usize,
    ) {
        for (k, x) in tensors.into_iter().enumerate() {
            self.tensors[site + k] = x;
        }
        self.center = Some(center);
    }

    pub(crate) fn check_site(&self, op: &'static str, site: usize) -> Result<()> {
        let sites = self.len();
        match site < sites {
            true => Ok(()),
            false => Err(NetworksError::SiteOutOfRange { op, site, sites }),
        }
    }

    /// Checks that physical legs are those of another chain.
    pub(crate) fn check_legs<'a>(
        &self,
        op: &'static str,
        others: impl ExactSizeIterator<Item = &'a Leg<S>>,
    ) -> Result<()> {
        if others.len() != self.len() {
            let (what, required, given) = ("sites", self.len(), others.len());
            return Err(NetworksError::Length { op, what, required, given });
        }
        for (site, other) in others.enumerate() {
            let own = self.physical(site);
            if own != other {
                let message = format!("the site is {own} of the state, {other} beside it");
                return Err(NetworksError::Chain { op, site, message });
            }
        }
        Ok(())
    }
}
