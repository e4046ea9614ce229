//! The forward-mode backend, and its combination with tapes.

use std::marker::PhantomData;

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor, QuantizedTensor};
use burn_backend::{
    AutodiffBackend, Backend, BackendTypes, DType, DTypeUsageSet, ExecutionError, TensorData,
};

use crate::boundary::refused;
use crate::primitive::JvpTensor;

/// Forward-mode differentiation on a backend: every float tensor carries its tangent.
///
/// Integer, boolean and quantized tensors are those of `B`. An operation without tangents is the operation of `B`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jvp<B>(PhantomData<B>);

impl<B: Backend> BackendTypes for Jvp<B> {
    type Device = B::Device;
    type FloatTensorPrimitive = JvpTensor<B>;
    type FloatElem = B::FloatElem;
    type IntTensorPrimitive = B::IntTensorPrimitive;
    type IntElem = B::IntElem;
    type BoolTensorPrimitive = B::BoolTensorPrimitive;
    type BoolElem = B::BoolElem;
    type QuantizedTensorPrimitive = B::QuantizedTensorPrimitive;
}

impl<B: Backend> Backend for Jvp<B> {
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
        format!("jvp<{}>", B::name(device))
    }

    fn seed(device: &Self::Device, seed: u64) {
        B::seed(device, seed);
    }

    fn sync(device: &Self::Device) -> Result<(), ExecutionError> {
        B::sync(device)
    }

    fn staging<'a, Iter>(data: Iter, device: &Self::Device)
    where
        Iter: Iterator<Item = &'a mut TensorData>,
    {
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

/// A tape below the tangents: gradients of the primal value. The tangent of a gradient would require a second reverse
/// pass over a tape that the first one consumes, so a loss with a tangent is rejected; `Autodiff<Jvp<B>>` computes that
/// derivative, and the tangent of a loss can be differentiated as a tensor of `B`.
impl<B: AutodiffBackend> AutodiffBackend for Jvp<B> {
    type InnerBackend = Jvp<B::InnerBackend>;
    type Gradients = B::Gradients;

    fn backward(tensor: FloatTensor<Self>) -> Self::Gradients {
        if tensor.moves() {
            refused(
                "backward",
                "the loss has a tangent, so its gradient has one as well: put the tape outside, \
                 Autodiff<Jvp<_>>",
            );
        }
        B::backward(tensor.primal)
    }

    fn grad(
        tensor: &FloatTensor<Self>,
        grads: &Self::Gradients,
    ) -> Option<FloatTensor<Self::InnerBackend>> {
        B::grad(&tensor.primal, grads).map(JvpTensor::constant)
    }

    fn grad_remove(
        tensor: &FloatTensor<Self>,
        grads: &mut Self::Gradients,
    ) -> Option<FloatTensor<Self::InnerBackend>> {
        B::grad_remove(&tensor.primal, grads).map(JvpTensor::constant)
    }

    fn grad_replace(
        tensor: &FloatTensor<Self>,
        grads: &mut Self::Gradients,
        grad: FloatTensor<Self::InnerBackend>,
    ) {
        if grad.moves() {
            refused("grad_replace", "gradients of a tape below have no tangents");
        }
        B::grad_replace(&tensor.primal, grads, grad.primal);
    }

    fn inner(tensor: FloatTensor<Self>) -> FloatTensor<Self::InnerBackend> {
        JvpTensor { primal: B::inner(tensor.primal), tangent: tensor.tangent.map(B::inner) }
    }

    fn int_inner(tensor: IntTensor<Self>) -> IntTensor<Self::InnerBackend> {
        B::int_inner(tensor)
    }

    fn bool_inner(tensor: BoolTensor<Self>) -> BoolTensor<Self::InnerBackend> {
        B::bool_inner(tensor)
    }

    fn q_inner(tensor: QuantizedTensor<Self>) -> QuantizedTensor<Self::InnerBackend> {
        B::q_inner(tensor)
    }

    fn from_inner(tensor: FloatTensor<Self::InnerBackend>) -> FloatTensor<Self> {
        JvpTensor {
            primal: B::from_inner(tensor.primal),
            tangent: tensor.tangent.map(B::from_inner),
        }
    }

    fn int_from_inner(tensor: IntTensor<Self::InnerBackend>) -> IntTensor<Self> {
        B::int_from_inner(tensor)
    }

    fn bool_from_inner(tensor: BoolTensor<Self::InnerBackend>) -> BoolTensor<Self> {
        B::bool_from_inner(tensor)
    }

    fn q_from_inner(tensor: QuantizedTensor<Self::InnerBackend>) -> QuantizedTensor<Self> {
        B::q_from_inner(tensor)
    }
}
