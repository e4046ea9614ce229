//! The batching backend.

use std::cell::Cell;
use std::marker::PhantomData;

use burn_backend::ops::TransactionOps;
use burn_backend::{
    Backend, BackendTypes, DType, DTypeUsageSet, ExecutionError, TensorData, TensorMetadata,
};

use crate::tensor::VmapTensor;

/// The backend `B` with a hidden leading batch axis.
///
/// Tensors without the axis are shared by all examples; operations on such tensors alone are those of `B`.
///
/// Operations that are undefined on a batch panic with a message: reading elements, which would need a value per
/// example, results whose shape depends on data (`argwhere`), quantisation, and random numbers unless
/// [`Vectorized::random`](crate::Vectorized::random) states whether examples share them.
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

/// Panics for an operation that a mapped function must not use; reports the location of the caller.
#[track_caller]
pub(crate) fn refuse(op: &str, reason: &str) -> ! {
    panic!("vmap: {op}: {reason}")
}

thread_local! {
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// True if elements of a batch were read since the last call; resets the flag.
pub(crate) fn read_refused() -> bool {
    REFUSED.take()
}

/// Error for reads of batched elements in methods where Burn's traits can return one.
pub(crate) fn unreadable<P: TensorMetadata>(op: &str, x: &VmapTensor<P>) -> ExecutionError {
    REFUSED.set(true);
    let (size, shape) = (x.size().unwrap_or(1), x.shape());
    let reason = format!(
        "vmap: {op}: elements of a batch cannot be read inside of the mapped function (batch {size}, example \
         {shape:?}); return the tensor from the function and read the result, or pass it with in_axes none"
    );
    ExecutionError::WithContext { reason }
}
