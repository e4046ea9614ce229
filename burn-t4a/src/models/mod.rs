//! What is most often built of the operations of [`ext`](crate::ext), over any backend that runs them.
//!
//! | task | |
//! |---|---|
//! | ln Z, marginals, best and K best sequences of tags (CRF, HMM) | [`LinearChain`]; as a layer `Crf` |
//! | likelihood and posterior of a Gaussian process | [`GaussianProcess`] |
//! | a linear layer with few parameters | `LowRankLinear` |
//!
//! `Crf` and `LowRankLinear` are modules of Burn and need the feature `module`.

mod chain;
mod gaussian_process;
#[cfg(feature = "module")]
mod layers;

pub use chain::{LinearChain, ScoredTags};
pub use gaussian_process::GaussianProcess;
#[cfg(feature = "module")]
pub use layers::{Crf, LowRankLinear};
