//! The face of Burn 0.21.
//!
//! ```text
//! backend      the type and its device
//! handles      its primitives: Backend, BackendIr
//! primitive    the one tensor primitive: AnyTensor and the store of its booleans
//! data         TensorData in and out without copying
//! image        options of operations on images in the engine's words
//! float int bool module activation quantized transaction     the operations, one line each
//! ```

mod activation;
mod backend;
mod bool;
mod data;
mod float;
mod handles;
mod image;
mod int;
mod module;
mod movement;
mod primitive;
mod quantized;
mod transaction;

pub use backend::{BurnT4a, T4aDevice};
#[cfg(feature = "ext")]
pub(crate) use module::scores;
pub use primitive::T4aTensor;
#[cfg(feature = "ext")]
pub(crate) use primitive::dtype;
pub use quantized::T4aQTensor;
