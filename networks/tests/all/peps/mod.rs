//! Networks on the square lattice against Onsager's solution, exact contraction, and each other; gradients against
//! finite differences.

mod gradients;
mod grids;
mod infinite;
mod rejected;
mod reports;
mod search;
mod tape;

use t4a_networks::peps::{CtmOptions, SymmetricEnergy, layers, random_state};
use t4a_networks::sites::spin_half;
use t4a_structured::{Direction, GradedTensor, Leg, Sector, U1};

/// The Heisenberg antiferromagnet, with one sublattice rotated.
fn heisenberg<S: Sector>(charge: impl Fn(U1) -> S, options: CtmOptions) -> SymmetricEnergy<S> {
    let site = spin_half().conserve(charge).unwrap();
    let terms = [(-0.5, "S+", "S+"), (-0.5, "S-", "S-"), (-1.0, "Sz", "Sz")];
    SymmetricEnergy::new(layers::pair_operator(&site, terms).unwrap(), options).unwrap()
}

fn start<S: Sector>(
    charge: impl Fn(U1) -> S,
    bond: impl IntoIterator<Item = (S, usize)>,
    seed: u64,
) -> GradedTensor<S> {
    let site = spin_half().conserve(charge).unwrap();
    random_state(site.leg(), &Leg::new(bond, Direction::Out).unwrap(), seed).unwrap()
}
