//! Operands of einsum: tensors on the tape, complex tensors, and elements read to the host.

use std::marker::PhantomData;

use burn_backend::tensor::{BoolTensor, FloatTensor};
use burn_backend::{Backend, DType, FloatDType, Shape, TensorMetadata};
use burn_tensor::{BasicOps, Bool, Float, Tensor};

use super::host::Host;
use crate::ext::complex::Complex;
use crate::ext::operation::Operations;
use crate::ext::primitive::Floats;
use crate::ext::user::tensor;

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

impl<B: Operations> Operand<B> {
    /// Dtype, device and shape.
    pub(super) fn described(&self) -> (DType, B::Device, Shape) {
        (self.0.dtype(), B::float_device(&self.0), self.0.shape())
    }

    /// Reads the elements to the host, without gradients.
    pub(super) fn to_host(&self) -> HostOperand<B, Float> {
        let count = self.0.shape().num_elements();
        let shape = self.0.shape();
        let flat = B::float_reshape(self.0.clone(), [count].into());
        let mut host = HostOperand::from(tensor::<B, 1>(Floats(flat)));
        host.0.shape = shape;
        host
    }
}

/// A boolean tensor of any rank.
#[derive(Clone, Debug)]
pub struct FlagOperand<B: Backend>(BoolTensor<B>);

impl<B: Backend, const D: usize> From<&Tensor<B, D, Bool>> for FlagOperand<B> {
    fn from(tensor: &Tensor<B, D, Bool>) -> Self {
        tensor.clone().into()
    }
}

impl<B: Backend, const D: usize> From<Tensor<B, D, Bool>> for FlagOperand<B> {
    fn from(tensor: Tensor<B, D, Bool>) -> Self {
        Self(tensor.into_primitive())
    }
}

impl<B: Operations> FlagOperand<B> {
    /// Converts booleans to 0 and 1 in `f32`.
    pub(super) fn into_floats(self) -> Operand<B> {
        Operand(B::bool_into_float(self.0, FloatDType::F32))
    }

    /// Reads the elements to the host.
    pub(super) fn into_host(self) -> HostOperand<B, Bool> {
        let shape = self.0.shape();
        let flat = B::bool_reshape(self.0, [shape.num_elements()].into());
        let mut host = HostOperand::from(Tensor::<B, 1, Bool>::from_primitive(flat));
        host.0.shape = shape;
        host
    }
}

/// A complex tensor of any rank as real and imaginary part.
#[derive(Clone, Debug)]
pub struct ComplexOperand<B: Backend>(pub(super) [Operand<B>; 2]);

impl<B: Backend, const D: usize> From<&Complex<B, D>> for ComplexOperand<B> {
    fn from(z: &Complex<B, D>) -> Self {
        Self([z.re().into(), z.im().into()])
    }
}

/// Elements of a tensor of kind `K` and any rank, on the host.
#[derive(Debug)]
pub struct HostOperand<B: Backend, K>(pub(super) Host<B::Device>, PhantomData<fn() -> K>);

impl<B: Operations, K: BasicOps<B>, const D: usize> From<&Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: &Tensor<B, D, K>) -> Self {
        tensor.clone().into()
    }
}

impl<B: Operations, K: BasicOps<B>, const D: usize> From<Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: Tensor<B, D, K>) -> Self {
        let (shape, device, native) = (tensor.shape(), tensor.device(), B::is_engine());
        Self(Host { data: tensor.into_data(), shape, device, native }, PhantomData)
    }
}
