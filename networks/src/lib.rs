//! Tensor networks: chains of graded tensors, operator sums, sweeps, cross interpolation.
//!
//! ```
//! use t4a_networks::sites::{Sites, electron};
//! use t4a_networks::{Dmrg, DmrgOptions, Mps, Sum};
//! // The Hubbard chain with conserved numbers of both spins.
//! let sites = Sites::uniform(electron(), 4);
//! let mut h = Sum::new(&sites);
//! (0..4).for_each(|i| _ = h.add(4.0, [("Nup", i), ("Ndn", i)]));
//! for i in 0..3 {
//!     h.add_with_adjoint(-1.0, [("Cdagup", i), ("Cup", i + 1)]);
//!     h.add_with_adjoint(-1.0, [("Cdagdn", i), ("Cdn", i + 1)]);
//! }
//! let h = h.mpo()?;
//! let start = Mps::product(&sites, ["Up", "Dn", "Up", "Dn"])?;
//! let mut search = Dmrg::new(&h, start, DmrgOptions::new().max_dim(64))?;
//! search.run_to_end()?;
//! let filling = search.state().expect(&sites, "Ntot")?;
//! assert!((filling[0].re - 1.0).abs() < 1e-6);
//! # Ok::<(), t4a_networks::NetworksError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | sites and operators | [`sites`] |
//! | sums of operators, lattices | [`Sum`], [`lattice`] |
//! | states and operators of chains | [`Mps`], [`Mpo`] |
//! | ground states and excited states | [`Dmrg`]; [`Idmrg`] and [`Vumps`] of infinite chains |
//! | uniform states | [`UniformMps`] |
//! | lattices in two dimensions: CTMRG, iPEPS with gradients, finite grids | [`peps`] |
//! | evolution in real and imaginary time | [`Tdvp`], [`Tebd`] |
//! | finite temperature | [`thermal`] |
//! | functions as tensor trains, cross interpolation, quantics | [`train`], [`cross`], [`quantics`] |
//! | derivatives of ground states | [`GroundState`], [`Mpo::weighted`] |
//! | energies, fidelities, likelihoods to differentiate | [`Mps::energy`], [`Mps::ln_fidelity`], [`Mps::log_likelihood`] |
//! | a chain as a function of features | [`contract_features`] |
//! | functions of ITensorMPS, TeNPy, MPSKit, tensor4all | [`coming_from`] |
//! | dense cores and trains as chains | [`Mps::from_cores`], [`train::TensorTrain::to_mps`] |
//!
//! Overlaps, energies and sums of states are differentiable over arrays that are, as [`Mps::inner_array`],
//! [`Mps::matrix_element_array`], [`Mpo::inner_array`] and the functions of the table, what [`peps`] computes in given
//! environments, and the energy of an iPEPS ([`peps::energy()`], [`peps::cell_energy()`]). Other searches and evolutions compute
//! on the engine, whose arrays have gradients by [`tape`], and [`GroundState`] differentiates their result by implicit functions.
#![forbid(unsafe_code)]

#[cfg(test)]
mod broken;
pub mod coming_from;
mod cores;
pub mod cross;
mod dmrg;
mod effective;
mod environment;
mod error;
mod evolve;
mod features;
mod fill;
mod ground;
mod infinite;
mod mpo;
mod mps;
mod overlaps;
pub mod peps;
pub mod quantics;
mod report;
mod scalar;
pub mod sites;
mod sums;
pub mod tape;
pub mod thermal;
pub mod train;

use t4a_linalg::svd::Truncation;

pub use cores::DenseCore;
pub use dmrg::{Dmrg, DmrgOptions, Update};
pub use error::{NetworksError, Result};
pub use evolve::{EvolveOptions, Tdvp, Tebd};
pub use features::{Contracted, contract_features};
pub use ground::{GroundState, ResponseOptions};
pub use infinite::{
    Idmrg, IdmrgOptions, InfiniteMpo, UniformMps, Vumps, VumpsOptions, VumpsReport,
};
pub use mpo::Mpo;
pub use mps::{Method, Mps};
pub use report::{Flow, Report};
pub use sites::{Site, Sites};
pub use sums::{Sum, lattice};
pub use thermal::Thermal;

/// At most `max_dim` states, and less as far as the dropped part of the squares stays below `cutoff`.
pub(crate) fn truncation(max_dim: usize, cutoff: f64) -> Truncation {
    Truncation::new().max_dim(max_dim).relative_discarded_weight(cutoff)
}
