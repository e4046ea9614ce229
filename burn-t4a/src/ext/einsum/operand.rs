//! Operands of einsum: tensors on the tape, complex tensors, and tensors without gradients.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, FloatDType, Shape, TensorMetadata};
use burn_tensor::{BasicOps, Bool, Float, Tensor, TensorPrimitive};

use super::host::Host;
use crate::ext::complex::Complex;
use crate::ext::operation::Operations;

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

    /// The same tensor without gradients.
    pub(super) fn elements(&self) -> HostOperand<B, Float> {
        HostOperand(TensorPrimitive::Float(B::float_detach(self.0.clone())))
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

/// A tensor of kind `K` and any rank, without gradients. Its elements are read to the host on backends without a
/// kernel for the contraction.
#[derive(Clone, Debug)]
pub struct HostOperand<B: Backend, K: BasicOps<B>>(pub(super) K::Primitive);

impl<B: Operations, K: BasicOps<B>, const D: usize> From<&Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: &Tensor<B, D, K>) -> Self {
        tensor.clone().into()
    }
}

impl<B: Operations, K: BasicOps<B>, const D: usize> From<Tensor<B, D, K>> for HostOperand<B, K> {
    fn from(tensor: Tensor<B, D, K>) -> Self {
        Self(tensor.into_primitive())
    }
}

impl<B: Operations, K: BasicOps<B>> HostOperand<B, K> {
    /// Dtype, device and shape.
    pub(super) fn described(&self) -> (DType, B::Device, Shape) {
        (self.0.dtype(), K::device(&self.0), self.0.shape())
    }

    /// Reads the elements to the host.
    pub(super) fn read(self) -> Host<B::Device> {
        let (_, device, shape) = self.described();
        let flat = K::reshape(self.0, [shape.num_elements()].into());
        let data = Tensor::<B, 1, K>::from_primitive(flat).into_data();
        Host { data, shape, device, native: B::is_engine() }
    }
}

impl<B: Operations> HostOperand<B, Bool> {
    /// Converts booleans to 0 and 1 in `f32`.
    pub(super) fn into_floats(self) -> Operand<B> {
        Operand(B::bool_into_float(self.0, FloatDType::F32))
    }
}
