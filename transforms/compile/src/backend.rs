//! The backend that records.

use std::marker::PhantomData;

use burn_backend::backend::ExecutionError;
use burn_backend::{Backend, BackendTypes, DType, DTypeUsageSet, TensorData};

use crate::tensor::{BoolKind, FloatKind, IntKind, QuantizedKind, TracedTensor};

/// A backend around a backend that computes what `B` computes and records it.
///
/// Outside of a compiled function nothing is recorded, and a method costs what it costs on `B`. A method
/// becomes one instruction, whether Burn defines it by others or not, so a program runs the very methods of
/// `B` that were recorded. It gives values away at their last use and makes fused results row-major, so a value may lie in
/// another layout than in the function itself: sums over it, and products of it by a vector, may add in another order and
/// differ from those of the function in the last bits.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traced<B>(PhantomData<B>);

impl<B: Backend> BackendTypes for Traced<B> {
    type Device = B::Device;
    type FloatTensorPrimitive = TracedTensor<B, FloatKind>;
    type FloatElem = B::FloatElem;
    type IntTensorPrimitive = TracedTensor<B, IntKind>;
    type IntElem = B::IntElem;
    type BoolTensorPrimitive = TracedTensor<B, BoolKind>;
    type BoolElem = B::BoolElem;
    type QuantizedTensorPrimitive = TracedTensor<B, QuantizedKind>;
}

impl<B: Backend> Backend for Traced<B> {
    fn ad_enabled(device: &Self::Device) -> bool {
        B::ad_enabled(device)
    }
    fn memory_persistent_allocations<
        Output: Send,
        Input: Send,
        Func: Fn(Input) -> Output + Send,
    >(
        device: &Self::Device,
        input: Input,
        func: Func,
    ) -> Output {
        B::memory_persistent_allocations(device, input, func)
    }
    fn memory_cleanup(device: &Self::Device) {
        B::memory_cleanup(device);
    }
    fn name(device: &Self::Device) -> String {
        format!("traced<{}>", B::name(device))
    }
    fn seed(device: &Self::Device, seed: u64) {
        B::seed(device, seed);
    }
    fn sync(device: &Self::Device) -> Result<(), ExecutionError> {
        B::sync(device)
    }
    fn staging<'a, Iter: Iterator<Item = &'a mut TensorData>>(data: Iter, device: &Self::Device) {
        B::staging(data, device);
    }
    fn supports_dtype(device: &Self::Device, dtype: DType) -> bool {
        B::supports_dtype(device, dtype)
    }
    fn dtype_usage(device: &Self::Device, dtype: DType) -> DTypeUsageSet {
        B::dtype_usage(device, dtype)
    }
    fn device_count(type_id: u16) -> usize {
        B::device_count(type_id)
    }
}
