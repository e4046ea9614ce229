//! Tensor networks on Burn's tape: states and operators of chains, searches, evolutions, cross interpolation, quantics.
//!
//! The types and functions are those of [`t4a_networks`]. Searches and evolutions compute on the engine; energies,
//! fidelities, likelihoods and derivatives of ground states are functions of chains over the floats of a backend, and
//! are recorded on its tape.
//!
//! Examples (`cargo run --release --example NAME`): `dmrg`, `vumps`, `tebd`, `tdvp`, `tci_integral`, `ipeps`,
//! `variational_mps`, `hamiltonian_fit`, `mps_classifier`.
//!
//! | task | |
//! |---|---|
//! | sites, sums of operators, states, searches, evolutions | [`sites`], [`Sum`], [`Mps`], [`Mpo`], [`Dmrg`], [`Tebd`], [`Tdvp`], … |
//! | chains on a backend; leaves, gradients, parameters of modules | [`BurnMps`], [`BurnMpo`], [`BurnChain`] |
//! | chains of Burn tensors as dense cores | [`BurnCores`], [`BurnChain::to_tensors`] |
//! | `⟨H⟩`, fidelity, likelihood of samples, on the tape | [`Mps::energy`], [`Mps::ln_fidelity`], [`Mps::log_likelihood`] |
//! | a Hamiltonian of parameters on the tape; its ground state | [`weighted`], [`GroundState`] |
//! | a chain as a layer: features contracted with cores | [`contract_features`]; [`MpsLayer`], feature `module` |
//! | functions as trains; trains and dense arrays as Burn tensors | [`cross`], [`quantics`], [`train_to_tensors`], [`to_engine`] |
//!
//! ```
#![cfg_attr(burn_line = "0.21", doc = "use burn_t4a::{BurnT4a, T4aDevice, ext::networks};")]
#![cfg_attr(burn_line = "0.21", doc = "type B = burn::backend::Autodiff<BurnT4a>;")]
#![cfg_attr(burn_line = "0.21", doc = "type Tensor<const D: usize> = burn::tensor::Tensor<B, D>;")]
#![cfg_attr(burn_line = "0.21", doc = "type BurnMps = networks::BurnMps<B, networks::sector::U1>;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn_t4a_022_ext::networks;")]
#![cfg_attr(burn_line = "0.22", doc = "use burn::tensor::{Device, Tensor};")]
#![cfg_attr(burn_line = "0.22", doc = "type BurnMps = networks::BurnMps<networks::sector::U1>;")]
//! use networks::sites::{Sites, spin_half};
//! use networks::{BurnChain, Dmrg, DmrgOptions, Mps, Sum};
//! let sites = Sites::uniform(spin_half(), 4);
//! let mut h = Sum::new(&sites);
//! for i in 0..3 {
//!     h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]).add(1.0, [("Sz", i), ("Sz", i + 1)]);
//! }
//! let h = h.mpo()?;
//! let start = Mps::product(&sites, ["Up", "Dn", "Up", "Dn"])?;
//! let mut search = Dmrg::new(&h, start, DmrgOptions::new().tolerance(1e-13))?;
//! search.run_to_end()?;
//!
#![cfg_attr(burn_line = "0.21", doc = "let device = T4aDevice;")]
#![cfg_attr(burn_line = "0.22", doc = "let device = Device::flex().autodiff();")]
//! // The state on the tape: at the ground state the gradient of the energy vanishes.
//! let state = BurnMps::from_engine(search.state(), &device)?.require_grad();
//! let energy: Tensor<1> = state.energy(&h.over(state.tensors()[0].re())?)?.tensor()?;
//! let gradient = state.grad(&energy.clone().backward()).unwrap();
//! assert!((energy.into_data().iter::<f64>().sum::<f64>() + 1.616025403784).abs() < 1e-9);
//! let sizes = gradient.to_tensors::<3>()?.into_iter().map(|x| x.abs().max().into_data());
//! assert!(sizes.flat_map(|x| x.iter::<f64>().collect::<Vec<_>>()).all(|x| x < 1e-5));
//! # Ok::<(), networks::NetworksError>(())
//! ```
//!
#![cfg_attr(
    all(not(feature = "module"), burn_line = "0.21"),
    doc = "[`MpsLayer`]: https://docs.rs/burn-t4a/latest/burn_t4a/ext/networks/struct.MpsLayer.html"
)]
#![cfg_attr(
    all(not(feature = "module"), burn_line = "0.22"),
    doc = "[`MpsLayer`]: https://docs.rs/burn-t4a-022-ext/latest/burn_t4a_022_ext/networks/struct.MpsLayer.html"
)]

mod chains;
#[cfg(feature = "module")]
mod layer;
mod trains;

pub use t4a_networks::*;
pub use t4a_tensor::random::Generator;

pub use chains::{BurnChain, BurnCores, BurnMpo, BurnMps, contract_features, weighted};
#[cfg(feature = "module")]
pub use layer::MpsLayer;
pub use trains::{from_engine, to_engine, train_from_tensors, train_to_tensors};

/// Symmetries of sites, by which tensors are graded.
pub mod sector {
    pub use t4a_structured::{Product, Sector, Trivial, U1, Z2, Zn};
}
