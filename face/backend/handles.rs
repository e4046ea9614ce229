//! Primitive types of the backend, and its tensor handles for burn-router and burn-remote.

use burn_backend::{Backend, BackendTypes, BoolStore, DType, DTypeUsage, DTypeUsageSet};
#[cfg(burn_line = "0.22")]
use burn_backend::{ExecutionError, GraphUnsupported};
use burn_ir::{BackendIr, HandleKind, TensorHandle};

use super::primitive::T4aTensor;
use super::quantized::T4aQTensor;
#[cfg(burn_line = "0.22")]
use super::quantized::supported;
use super::{BurnT4a, T4aDevice};

impl BackendTypes for BurnT4a {
    type Device = T4aDevice;
    type FloatTensorPrimitive = T4aTensor;
    #[cfg(burn_line = "0.21")]
    type FloatElem = f32;
    type IntTensorPrimitive = T4aTensor;
    #[cfg(burn_line = "0.21")]
    type IntElem = i32;
    type BoolTensorPrimitive = T4aTensor;
    #[cfg(burn_line = "0.21")]
    type BoolElem = bool;
    type QuantizedTensorPrimitive = T4aQTensor;
    #[cfg(burn_line = "0.22")]
    type GraphPrimitive = GraphUnsupported;
}

impl Backend for BurnT4a {
    fn name(_device: &T4aDevice) -> String {
        "t4a".into()
    }

    fn seed(_device: &T4aDevice, seed: u64) {
        t4a_tensor::random::seed(seed);
    }

    fn memory_cleanup(_device: &T4aDevice) {
        t4a_tensor::pool::cleanup();
    }

    fn dtype_usage(_device: &T4aDevice, dtype: DType) -> DTypeUsageSet {
        match dtype {
            DType::F64 | DType::F32 | DType::F16 | DType::BF16 => DTypeUsage::general(),
            DType::I64 | DType::I32 | DType::I16 | DType::I8 => DTypeUsage::general(),
            DType::U64 | DType::U32 | DType::U16 | DType::U8 => DTypeUsage::general(),
            DType::Bool(BoolStore::Native | BoolStore::U8 | BoolStore::U32) => {
                DTypeUsage::general()
            }
            #[cfg(burn_line = "0.22")]
            DType::QFloat(scheme) if !supported(&scheme) => DTypeUsageSet::empty(),
            DType::QFloat(_) => DTypeUsage::Storage.into(),
            // Stored as f32, without the reduced precision that the dtype implies.
            DType::Flex32 => DTypeUsageSet::empty(),
        }
    }

    fn device_count(_type_id: u16) -> usize {
        1
    }

    /// Operations complete before they return, so there is nothing to wait for.
    #[cfg(burn_line = "0.22")]
    fn flush(_device: &T4aDevice) -> Result<(), ExecutionError> {
        Ok(())
    }
}

impl BackendIr for BurnT4a {
    type Handle = HandleKind<Self>;

    fn float_tensor(handle: TensorHandle<Self::Handle>) -> T4aTensor {
        match handle.handle {
            HandleKind::Float(tensor) => tensor,
            other => panic!("a float tensor was expected, the handle holds {}", other.name()),
        }
    }

    fn int_tensor(handle: TensorHandle<Self::Handle>) -> T4aTensor {
        match handle.handle {
            HandleKind::Int(tensor) => tensor,
            other => panic!("an int tensor was expected, the handle holds {}", other.name()),
        }
    }

    fn bool_tensor(handle: TensorHandle<Self::Handle>) -> T4aTensor {
        match handle.handle {
            HandleKind::Bool(tensor) => tensor,
            other => panic!("a bool tensor was expected, the handle holds {}", other.name()),
        }
    }

    fn quantized_tensor(handle: TensorHandle<Self::Handle>) -> T4aQTensor {
        match handle.handle {
            HandleKind::Quantized(tensor) => tensor,
            other => panic!("a quantized tensor was expected, the handle holds {}", other.name()),
        }
    }

    fn float_tensor_handle(tensor: T4aTensor) -> Self::Handle {
        HandleKind::Float(tensor)
    }

    fn int_tensor_handle(tensor: T4aTensor) -> Self::Handle {
        HandleKind::Int(tensor)
    }

    fn bool_tensor_handle(tensor: T4aTensor) -> Self::Handle {
        HandleKind::Bool(tensor)
    }

    fn quantized_tensor_handle(tensor: T4aQTensor) -> Self::Handle {
        HandleKind::Quantized(tensor)
    }
}
