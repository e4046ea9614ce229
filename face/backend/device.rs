//! The backend type and its device.

use burn_backend::{DeviceId, DeviceOps};
use burn_std::device::Device;

/// Burn backend on the CPU.
///
/// Operations support all dtypes at run time: four float dtypes, eight integer dtypes and three boolean stores. The
/// defaults are `f32`, `i32` and native booleans; a program can change them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BurnT4a;

/// The CPU, the only device of [`BurnT4a`].
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

impl DeviceOps for T4aDevice {
    #[cfg(burn_line = "0.22")]
    fn defaults(&self) -> burn_backend::DeviceSettings {
        use burn_backend::quantization::{QuantScheme, QuantStore};
        use burn_backend::{BoolStore, DType, DeviceSettings};
        use burn_std::QuantConfig;
        let scheme = QuantScheme::default().with_store(QuantStore::Native);
        let quantization = QuantConfig::new(scheme, Default::default());
        DeviceSettings::new(DType::F32, DType::I32, DType::Bool(BoolStore::Native), quantization)
    }
}

impl std::fmt::Display for T4aDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cpu")
    }
}
