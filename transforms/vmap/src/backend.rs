//! The backend type.

use std::cell::Cell;
use std::marker::PhantomData;

use burn_backend::ops::TransactionOps;
use burn_backend::{
    Backend, BackendTypes, DType, DTypeUsageSet, ExecutionError, TensorData, TensorMetadata,
};

use crate::tensor::VmapTensor;

/// The backend `B` with a batch axis in front of every tensor, which shapes do not show.
///
/// Tensors without the axis are shared by all examples; operations of such tensors alone are those of `B`.
///
/// What cannot be done with a batch panics and says so: reading elements, which would need a number per
/// example, results whose shape depends on elements (`argwhere`), quantisation, and random numbers unless
/// [`Vectorized::random`](crate::Vectorized::random) tells what examples share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vmap<B>(PhantomData<B>);

impl<B: Backend> BackendTypes for Vmap<B> {
    type Device = B::Device;
    type FloatTensorPrimitive = VmapTensor<B::FloatTensorPrimitive>;
    type FloatElem = B::FloatElem;
    type IntTensorPrimitive = VmapTensor<B::IntTensorPrimitive>;
    type IntElem = B::IntElem;
    type BoolTensorPrimitive = VmapTensor<B::BoolTensorPrimitive>;
    type BoolElem = B::BoolElem;
    type QuantizedTensorPrimitive = B::QuantizedTensorPrimitive;
}

impl<B: Backend> Backend for Vmap<B> {
    fn ad_enabled(device: &B::Device) -> bool {
        B::ad_enabled(device)
    }
    fn name(device: &B::Device) -> String {
        format!("vmap<{}>", B::name(device))
    }
    fn seed(device: &B::Device, seed: u64) {
        B::seed(device, seed);
    }
    fn sync(device: &B::Device) -> Result<(), ExecutionError> {
        B::sync(device)
    }
    fn memory_persistent_allocations<
        Output: Send,
        Input: Send,
        Func: Fn(Input) -> Output + Send,
    >(
        device: &B::Device,
        input: Input,
        func: Func,
    ) -> Output {
        B::memory_persistent_allocations(device, input, func)
    }
    fn memory_cleanup(device: &B::Device) {
        B::memory_cleanup(device);
    }
    fn staging<'a, Iter>(data: Iter, device: &B::Device)
    where
        Iter: Iterator<Item = &'a mut TensorData>,
    {
        B::staging(data, device);
    }
    fn supports_dtype(device: &B::Device, dtype: DType) -> bool {
        B::supports_dtype(device, dtype)
    }
    fn dtype_usage(device: &B::Device, dtype: DType) -> DTypeUsageSet {
        B::dtype_usage(device, dtype)
    }
    fn device_count(type_id: u16) -> usize {
        B::device_count(type_id)
    }
}

impl<B: Backend> TransactionOps<Self> for Vmap<B> {}

/// Where a mapped function does what it may not: one text, at the caller.
#[track_caller]
pub(crate) fn refuse(op: &str, reason: &str) -> ! {
    panic!("vmap: {op}: {reason}")
}

thread_local! {
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Whether elements of a batch were asked for since the last call.
pub(crate) fn read_refused() -> bool {
    REFUSED.take()
}

/// Why elements cannot be read, where Burn lets an operation return an error.
pub(crate) fn unreadable<P: TensorMetadata>(op: &str, x: &VmapTensor<P>) -> ExecutionError {
    REFUSED.set(true);
    let (size, shape) = (x.size().unwrap_or(1), x.shape());
    let reason = format!(
        "vmap: {op}: elements of a batch cannot be read inside of the mapped function (batch {size}, example \
         {shape:?}); return the tensor from the function and read the result, or pass it with in_axes none"
    );
    ExecutionError::WithContext { reason }
}
