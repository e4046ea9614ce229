//! Tensor networks: ground states of chains, and tensor trains of functions of a caller. Problems, options and
//! reports are text (JSON), which is the first result, as bytes.

mod ground_states;
mod trains;

use std::ffi::c_char;

use serde::{Deserialize, Serialize};
use t4a_networks::NetworksError;
use t4a_networks::train::TrainError;
use t4a_tensor::{AnyTensor, Tensor as Typed};

pub use ground_states::{Progress, t4a_ground_states};
pub use trains::{Values, t4a_cross_interpolation};

use crate::error::{Failure, Status, of_linalg, of_tensor};
use crate::op::list;

impl From<NetworksError> for Failure {
    fn from(error: NetworksError) -> Self {
        let status = match &error {
            NetworksError::Linalg(error) => of_linalg(error),
            NetworksError::Tensor(error) => of_tensor(error),
            NetworksError::TooLarge { .. } => Status::Memory,
            _ => Status::Argument,
        };
        Failure::new(status, error.to_string())
    }
}

impl From<TrainError> for Failure {
    fn from(error: TrainError) -> Self {
        let status = match &error {
            TrainError::Linalg(error) => of_linalg(error),
            TrainError::Tensor(error) => of_tensor(error),
            _ => Status::Argument,
        };
        Failure::new(status, error.to_string())
    }
}

/// Reads a text; an empty one is `{}`.
///
/// # Safety
/// `text` is null or valid for `len` bytes.
unsafe fn read<T: for<'a> Deserialize<'a>>(
    text: *const c_char,
    len: usize,
    what: &str,
) -> Result<T, Failure> {
    // SAFETY: as the caller promises.
    let bytes = unsafe { list(text.cast::<u8>(), len, what) }?;
    let bytes = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).map_err(|e| Failure::argument(format!("{what}: {e}")))
}

/// A report as bytes.
fn written(report: &impl Serialize) -> Result<AnyTensor, Failure> {
    let text = serde_json::to_vec(report);
    let text = text.map_err(|e| Failure::new(Status::Internal, e.to_string()))?;
    let len = text.len();
    Ok(Typed::from_vec(text, &[len])?.into())
}
