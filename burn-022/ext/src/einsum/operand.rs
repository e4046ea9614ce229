//! Tensors as operands: on the tape, complex, and as elements that leave it.

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
    /// Dtype, device below the tape, and shape: constants take part in what is differentiated.
    pub(super) fn described(&self) -> (DType, DispatchDevice, Shape) {
        (self.0.dtype(), self.0.device().inner(), self.0.shape())
    }

    /// The elements, with the gradient left behind.
    pub(super) fn to_host(&self) -> HostOperand<Float> {
        let shape = self.0.shape();
        let flat = Dispatch::float_reshape(self.0.clone(), [shape.num_elements()].into());
        let mut host = HostOperand::from(Tensor::<1>::from_dispatch(flat));
        host.0.shape = shape;
        host
    }
}

/// Both parts of a complex tensor of any rank.
#[derive(Clone, Debug)]
pub struct ComplexOperand(pub(super) [Operand; 2]);

impl<const D: usize> From<&Complex<D>> for ComplexOperand {
    fn from(z: &Complex<D>) -> Self {
        Self([z.re().into(), z.im().into()])
    }
}

/// The elements of a tensor of any rank of kind `K`.
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
