//! Models composed of operations of this crate, on any backend with `Operations`.
//!
//! | task | |
//! |---|---|
//! | ln Z, marginals, best and K best tag sequences (CRF, HMM) | [`LinearChain`]; as a layer `Crf` |
//! | likelihood and posterior of a Gaussian process | [`GaussianProcess`] |
//! | linear layer with a weight of low rank | `LowRankLinear` |
//!
//! Examples (`cargo run --release --example NAME`): `crf`, `gaussian_process`.
//!
//! `Crf` and `LowRankLinear` are modules of Burn and require the feature `module`.

mod chain;
#[cfg(feature = "module")]
mod crf;
#[cfg(feature = "linalg")]
mod gaussian_process;
#[cfg(all(feature = "linalg", feature = "module"))]
mod low_rank;

pub use chain::{LinearChain, ScoredTags, mask_lengths};
#[cfg(feature = "module")]
pub use crf::{Crf, CrfConfig};
#[cfg(feature = "linalg")]
pub use gaussian_process::GaussianProcess;
#[cfg(all(feature = "linalg", feature = "module"))]
pub use low_rank::LowRankLinear;
