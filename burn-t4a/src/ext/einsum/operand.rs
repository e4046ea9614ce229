//! Tensors as operands: on the tape, complex, and as elements that leave it.

use std::marker::PhantomData;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Shape, TensorData, TensorMetadata};
use burn_tensor::{BasicOps, Float, Tensor, TensorPrimitive};

use crate::ext::complex::Complex;

/// A float tensor of any rank, for lists of operands of different ranks.
#[derive(Clone, Debug)]
pub struct Operand<B: Backend>(pub(super) FloatTensor<B>);

impl<B: Backend, const D: usize> From<&Tensor<B, D>> for Operand<B> {
    fn from(tensor: &Tensor<B, D>) -> Self {
        Self(tensor.clone().into_primitive().tensor())
    }
}

impl<B: Backend, const D: usize> From<Tensor<B, D>> for Operand<B> {
    fn from(tensor: Tensor<B, D>) -> Self {
        Self(tensor.into_primitive().tensor())
    }
}

impl<B: Backend> Operand<B> {
    /// Dtype, device and shape.
    pub(super) fn described(&self) -> (DType, B::Device, Shape) {
        (self.0.dtype(), B::float_device(&self.0), self.0.shape())
    }

    /// The elements, with the gradient left behind.
    pub(super) fn to_host(&self) -> HostOperand<B, Float> {
        let count = self.0.shape().num_elements();
        let shape = self.0.shape();
        let flat = B::float_reshape(self.0.clone(), [count].into());
        let flat = Tensor::<B, 1>::from_primitive(TensorPrimitive::Float(flat));
        HostOperand::from(flat).with_shape(shape)
    }
}

/// Both parts of a complex tensor of any rank.
#[derive(Clone, Debug)]
pub struct ComplexOperand<B: Backend>(pub(super) [Operand<B>; 2]);

impl<B: Backend, const D: usize> From<&Complex<B, D>> for ComplexOperand<B> {
    fn from(z: &Complex<B, D>) -> Self {
        Self([z.re().into(), z.im().into()])
    }
}

/// The elements of a tensor of any rank of kind `K`.
#[derive(Debug)]
pub struct HostOperand<B: Backend, K> {
    pub(super) data: TensorData,
    pub(super) device: B::Device,
    kind: PhantomData<fn() -> K>,
}

impl<B: Backend, K: BasicOps<B>, const D: usize> From<&Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: &Tensor<B, D, K>) -> Self {
        tensor.clone().into()
    }
}

impl<B: Backend, K: BasicOps<B>, const D: usize> From<Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: Tensor<B, D, K>) -> Self {
        let device = tensor.device();
        Self { data: tensor.into_data(), device, kind: PhantomData }
    }
}

impl<B: Backend, K> HostOperand<B, K> {
    /// Dtype, device and shape.
    pub(super) fn described(&self) -> (DType, B::Device, Shape) {
        (self.data.dtype, self.device.clone(), self.data.shape.clone())
    }

    /// The same elements in another shape.
    fn with_shape(mut self, shape: Shape) -> Self {
        self.data.shape = shape;
        self
    }
}
