//! The tracing backend.

use std::marker::PhantomData;

use burn_backend::backend::ExecutionError;
use burn_backend::{Backend, BackendTypes, DType, DTypeUsageSet, TensorData};

use crate::tensor::{BoolKind, FloatKind, IntKind, QuantizedKind, TracedTensor};

/// Tracing backend: computes with the inner backend `B` and records each operation.
///
/// Outside of a compiled function nothing is recorded, and a method costs the same as on `B`. Every method becomes one
/// instruction, including those with a default implementation in Burn, so a program calls exactly the methods of `B`
/// that were recorded. A program donates values at their last use and makes fused results row-major, so the layout of a
/// value may differ from that in the function: sums over it and matrix-vector products may add in another order and
/// differ in the last bits.
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
