//! Tensors with or without the batch axis.

use std::sync::Arc;

use burn_backend::{DType, Shape, TensorMetadata};

use crate::backend::refuse;
use crate::running::call_of;

/// A tensor of the backend below: `[batch, …]` if it is batched, else the same for every example.
///
/// Its shape as [`TensorMetadata`] is that of one example.
#[derive(Clone, Debug)]
pub struct VmapTensor<P> {
    inner: P,
    batched: bool,
    /// The call that it belongs to, if that runs on this thread.
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
    /// The same for every example.
    pub fn shared(inner: P) -> Self {
        Self { inner, batched: false, _call: None }
    }

    /// Whether its first axis is the batch.
    pub fn is_batched(&self) -> bool {
        self.batched
    }

    /// The tensor of the backend below, and whether its first axis is the batch.
    pub fn into_inner(self) -> (P, bool) {
        (self.inner, self.batched)
    }

    /// The tensor of the backend below.
    pub(crate) fn inner(&self) -> &P {
        &self.inner
    }

    /// How many hidden axes are in front.
    pub(crate) fn prefix(&self) -> usize {
        self.batched as usize
    }
}

impl<P: 'static> VmapTensor<P> {
    /// A batch `[batch, …]`.
    pub fn batched(inner: P) -> Self {
        Self { inner, batched: true, _call: call_of::<P>() }
    }

    /// Batched if there is a size.
    pub(crate) fn new(inner: P, size: Option<usize>) -> Self {
        if size.is_some() { Self::batched(inner) } else { Self::shared(inner) }
    }

    /// An operation that treats all leading axes alike.
    pub(crate) fn map<Q: 'static>(self, f: impl FnOnce(P) -> Q) -> VmapTensor<Q> {
        let inner = f(self.inner);
        if self.batched { VmapTensor::batched(inner) } else { VmapTensor::shared(inner) }
    }
}

impl<P: TensorMetadata> VmapTensor<P> {
    /// The size of the batch.
    pub fn size(&self) -> Option<usize> {
        self.batched.then(|| self.inner.shape()[0])
    }
}

/// The batch of operands that go together.
///
/// # Panics
/// If there are several: a tensor has left the call of `vmap` that it belongs to.
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
