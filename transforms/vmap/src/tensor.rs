//! Tensors with or without the batch axis.

use std::sync::Arc;

use burn_backend::{DType, Shape, TensorMetadata};

use crate::active::call_of;
use crate::backend::refuse;

/// A tensor of the inner backend: `[batch, …]` if it is batched, else shared by all examples.
///
/// Its shape as [`TensorMetadata`] is that of one example.
///
/// ```
/// use burn::tensor::Tensor;
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn_t4a_transforms::vmap::VmapTensor;
///
/// let x = Tensor::<BurnT4a, 2>::from_floats([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], &T4aDevice);
/// let x = x.into_primitive().tensor();
/// let batch = VmapTensor::batched(x.clone());
/// assert!(batch.is_batched() && batch.size() == Some(3));
/// let (_, is_batched) = VmapTensor::shared(x).into_inner();
/// assert!(!is_batched);
/// ```
#[derive(Clone, Debug)]
pub struct VmapTensor<P> {
    inner: P,
    batched: bool,
    /// Token of the call of `vmap` that created the tensor, if that call is active on this thread.
    _call: Option<Arc<()>>,
}

impl<P: TensorMetadata> TensorMetadata for VmapTensor<P> {
    fn dtype(&self) -> DType {
        self.inner.dtype()
    }
    fn shape(&self) -> Shape {
        let shape = self.inner.shape();
        if self.batched { Shape::from(shape[1..].to_vec()) } else { shape }
    }
    fn rank(&self) -> usize {
        self.inner.rank() - self.prefix()
    }
}

impl<P> VmapTensor<P> {
    /// Wraps a tensor that is shared by all examples.
    pub fn shared(inner: P) -> Self {
        Self { inner, batched: false, _call: None }
    }

    /// True if the first axis is the batch.
    pub fn is_batched(&self) -> bool {
        self.batched
    }

    /// Unwraps the tensor of the inner backend; the flag is true if its first axis is the batch.
    pub fn into_inner(self) -> (P, bool) {
        (self.inner, self.batched)
    }

    /// Tensor of the inner backend.
    pub(crate) fn inner(&self) -> &P {
        &self.inner
    }

    /// Number of hidden leading axes, 0 or 1.
    pub(crate) fn prefix(&self) -> usize {
        self.batched as usize
    }
}

impl<P: 'static> VmapTensor<P> {
    /// Wraps a batch `[batch, …]`.
    pub fn batched(inner: P) -> Self {
        Self { inner, batched: true, _call: call_of::<P>() }
    }

    /// Wraps a batch if there is a size, else a shared tensor.
    pub(crate) fn new(inner: P, size: Option<usize>) -> Self {
        if size.is_some() { Self::batched(inner) } else { Self::shared(inner) }
    }

    /// Applies an operation that treats all leading axes alike.
    pub(crate) fn map<Q: 'static>(self, f: impl FnOnce(P) -> Q) -> VmapTensor<Q> {
        let inner = f(self.inner);
        if self.batched { VmapTensor::batched(inner) } else { VmapTensor::shared(inner) }
    }
}

impl<P: TensorMetadata> VmapTensor<P> {
    /// Batch size, if the tensor is batched.
    pub fn size(&self) -> Option<usize> {
        self.batched.then(|| self.inner.shape()[0])
    }
}

/// Common batch size of the operands of an operation.
///
/// # Panics
/// If the sizes differ: a tensor was kept from another call of `vmap`.
#[track_caller]
pub(crate) fn common(op: &str, sizes: impl IntoIterator<Item = Option<usize>>) -> Option<usize> {
    let mut sizes = sizes.into_iter().flatten();
    let first = sizes.next()?;
    if let Some(other) = sizes.find(|&size| size != first) {
        let reason = format!(
            "operands of batches of {first} and {other} examples: a tensor was kept from another call of vmap"
        );
        refuse(op, &reason)
    }
    Some(first)
}
