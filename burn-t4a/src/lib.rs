//! A [Burn](https://burn.dev) CPU backend over the strided tensors of [`t4a_tensor`].
//!
//! ```text
//! boundary        typed errors of the engine become panics, in one place
//! ext             operations beyond Burn's, with gradients
//! models          what is most often built of them: chains of tags, Gaussian processes, low rank
//! v0_21           the Burn 0.21 face: one line per method, engine or Flex below
//! ```
//!
//! Burn's backend traits are infallible: a rejected operation panics with the text of the
//! [`TensorError`](t4a_tensor::TensorError), which names the operation, shapes and dtypes.

mod boundary;
pub mod ext;
pub mod models;
pub mod v0_21;

pub use t4a_tensor::config::{BackendConfig, ConfigError};
pub use t4a_tensor::route;
pub use v0_21::{BurnT4a, T4aDevice, T4aTensor};
