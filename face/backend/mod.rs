//! The backend of Burn, one text for the lines 0.21 and 0.22: one line per method.
//!
//! ```text
//! device       the type and its device
//! handles      its primitives: Backend, BackendIr
//! primitive    the one tensor primitive: AnyTensor and the store of its booleans
//! data         TensorData in and out without copying
//! slot         names of burn-flex for the elements of a tensor, 0.22 only
//! movement     Burn's arguments for moving data
//! image        options of operations on images in the engine's words
//! float int bool module activation quantized transaction     the operations, one line each
//! ```

mod activation;
mod bool;
mod data;
mod device;
mod float;
mod handles;
mod image;
mod int;
pub(crate) mod module;
mod movement;
pub(crate) mod primitive;
mod quantized;
#[cfg(burn_line = "0.22")]
mod slot;
mod transaction;

pub use device::{BurnT4a, T4aDevice};
pub use module::{irfft, rfft};
pub use primitive::{T4aTensor, burn_dtype, engine_dtype};
pub use quantized::T4aQTensor;
#[cfg(burn_line = "0.22")]
pub use slot::Layout;
