//! Models composed of operations of this crate, on any backend with `Operations`.
//!
//! | task | |
//! |---|---|
//! | ln Z, marginals, best and K best tag sequences (CRF, HMM) | [`LinearChain`]; as a layer [`Crf`] |
//! | likelihood and posterior of a Gaussian process | [`GaussianProcess`] |
//! | linear layer with a weight of low rank | [`LowRankLinear`] |
//!
//! Examples (`cargo run --release --example NAME`): `crf`, `gaussian_process`.
//!
//! `Crf` and `LowRankLinear` are modules of Burn and require the feature `module`.
//!
#![cfg_attr(
    all(not(feature = "module"), burn_line = "0.21"),
    doc = "[`Crf`]: https://docs.rs/burn-t4a/latest/burn_t4a/models/struct.Crf.html"
)]
#![cfg_attr(
    all(not(all(feature = "linalg", feature = "module")), burn_line = "0.21"),
    doc = "[`LowRankLinear`]: https://docs.rs/burn-t4a/latest/burn_t4a/models/struct.LowRankLinear.html"
)]
#![cfg_attr(
    all(not(feature = "module"), burn_line = "0.22"),
    doc = "[`Crf`]: https://docs.rs/burn-t4a-022-ext/latest/burn_t4a_022_ext/models/struct.Crf.html"
)]
#![cfg_attr(
    all(not(all(feature = "linalg", feature = "module")), burn_line = "0.22"),
    doc = "[`LowRankLinear`]: https://docs.rs/burn-t4a-022-ext/latest/burn_t4a_022_ext/models/struct.LowRankLinear.html"
)]

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
