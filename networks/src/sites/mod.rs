//! Sites of a chain: basis states with their charges, and operators by name.
//!
//! ```text
//! site        states, charges, operators; other charges for the same states
//! spin        spin ½ and general S
//! particles   spinless and spinful fermions, bosons
//! clock       Zₙ clock variables
//! matrix      operators of one site as dense matrices
//! ```
//!
//! # Fermions
//! Chains keep the signs of fermions in Jordan–Wigner strings: the sectors of a site have no parity of their own, each
//! site has the operator `F = (−1)ⁿ`, and a [`Sum`](crate::Sum) inserts it between the fermion operators of a term.
//! All tensors of a chain then commute like those of spins, and an effective Hamiltonian that is written for spins is
//! right for fermions. With graded legs every contraction of a sweep would have to place a supertrace or a twist, and
//! one that does not gives a wrong number without an error. Sectors of
//! [`FermionNumber`](t4a_structured::FermionNumber) and its relatives are therefore an error here.
//!
//! Reference: P. Jordan, E. Wigner, *Über das Paulische Äquivalenzverbot* (1928).

mod clock;
mod matrix;
mod particles;
mod site;
mod spin;

pub use clock::clock;
pub(crate) use matrix::LocalMatrix;
pub use particles::{boson, electron, fermion, hard_core_boson};
pub use site::{Site, Sites};
pub use spin::{spin, spin_half};
