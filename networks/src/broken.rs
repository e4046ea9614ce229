//! Operators with NaN, for tests of errors in the middle of an algorithm.

use t4a_structured::{GradedTensor, Sector, U1};

use crate::mpo::Mpo;
use crate::mps::Mps;
use crate::sites::{Sites, spin_half};
use crate::sums::Sum;

/// The terms of the Heisenberg chain, or of a cell of one, and a state of alternating spins.
pub(crate) fn heisenberg_sum(n: usize, is_cell: bool) -> (Sum<U1>, Mps<U1>) {
    let sites = Sites::uniform(spin_half(), n);
    let mut h = Sum::new(&sites);
    for i in 0..if is_cell { n } else { n - 1 } {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
        h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    let start = Mps::product(&sites, ["Up", "Dn"].into_iter().cycle().take(n)).unwrap();
    (h, start)
}

/// The Heisenberg chain and a state of alternating spins.
pub(crate) fn heisenberg(n: usize) -> (Mpo<U1>, Mps<U1>) {
    let (h, start) = heisenberg_sum(n, false);
    (h.mpo().unwrap(), start)
}

/// The operator with a tensor of NaN.
pub(crate) fn with_nan<S: Sector>(h: &Mpo<S>, site: usize) -> Mpo<S> {
    let mut tensors = h.tensors().to_vec();
    tensors[site] = not_a_number(&tensors[site]);
    Mpo::new(tensors).unwrap()
}

pub(crate) fn not_a_number<S: Sector>(x: &GradedTensor<S>) -> GradedTensor<S> {
    x.scale(f64::NAN)
}
