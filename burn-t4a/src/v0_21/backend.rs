//! The backend type and its device.

use burn_backend::{DeviceId, DeviceOps};
use burn_std::device::Device;

/// Burn on the CPU.
///
/// The element types of an operation are those of its tensors at run time: all four floats, all
/// eight integers and the three bool stores coexist. `f32`, `i32` and native bools are the
/// defaults, which `burn::tensor::set_default_dtypes` changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurnT4a;

/// The CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct T4aDevice;

impl Device for T4aDevice {
    fn from_id(_id: DeviceId) -> Self {
        Self
    }

    fn to_id(&self) -> DeviceId {
        DeviceId::new(0, 0)
    }
}

impl DeviceOps for T4aDevice {}

impl std::fmt::Display for T4aDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cpu")
    }
}
