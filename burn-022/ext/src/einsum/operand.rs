//! Operands of einsum: tensors on the tape, complex tensors, and elements read to the host.

use std::marker::PhantomData;

use burn_backend::ops::FloatTensorOps;
use burn_backend::{DType, Shape, TensorMetadata};
use burn_dispatch::{Dispatch, DispatchDevice, DispatchTensor};
use burn_tensor::kind::Basic;
use burn_tensor::{Device, Float, Tensor};

use super::host::Host;
use crate::Complex;
use crate::{dispatch, user};

/// A float tensor of any rank, for lists of operands of different ranks.
#[derive(Clone, Debug)]
pub struct Operand(pub(super) DispatchTensor);

impl<const D: usize> From<&Tensor<D>> for Operand {
    fn from(tensor: &Tensor<D>) -> Self {
        tensor.clone().into()
    }
}

impl<const D: usize> From<Tensor<D>> for Operand {
    fn from(tensor: Tensor<D>) -> Self {
        Self(user::primitive(tensor))
    }
}

impl Operand {
    /// Dtype, device without the tape, and shape; constants may be combined with tensors on a tape.
    pub(super) fn described(&self) -> (DType, DispatchDevice, Shape) {
        (self.0.dtype(), self.0.device().inner(), self.0.shape())
    }

    /// Reads the elements to the host, without gradients.
    pub(super) fn to_host(&self) -> HostOperand<Float> {
        let shape = self.0.shape();
        let flat = Dispatch::float_reshape(self.0.clone(), [shape.num_elements()].into());
        let mut host = HostOperand::from(Tensor::<1>::from_dispatch(flat));
        host.0.shape = shape;
        host
    }
}

/// A complex tensor of any rank as real and imaginary part.
#[derive(Clone, Debug)]
pub struct ComplexOperand(pub(super) [Operand; 2]);

impl<const D: usize> From<&Complex<D>> for ComplexOperand {
    fn from(z: &Complex<D>) -> Self {
        Self([z.re().into(), z.im().into()])
    }
}

/// Elements of a tensor of kind `K` and any rank, on the host.
#[derive(Debug)]
pub struct HostOperand<K>(pub(super) Host<Device>, PhantomData<fn() -> K>);

impl<K: Basic, const D: usize> From<&Tensor<D, K>> for HostOperand<K> {
    fn from(tensor: &Tensor<D, K>) -> Self {
        tensor.clone().into()
    }
}

impl<K: Basic, const D: usize> From<Tensor<D, K>> for HostOperand<K> {
    fn from(tensor: Tensor<D, K>) -> Self {
        let (shape, device) = (tensor.shape(), tensor.device());
        let native = dispatch::is_engine(&tensor.clone().into_dispatch());
        Self(Host { data: tensor.into_data(), shape, device, native }, PhantomData)
    }
}
