//! Engine tensors as batches of matrices.

use t4a_tensor::loops::kernel::{Binary, Unary};
use t4a_tensor::{Tensor, map};

use crate::error::{LinalgError, Result};
use crate::scalar::LinalgScalar;

/// Batch of matrices as an engine tensor `[…, m, n]`, or the first error of its computation.
///
/// The carried error keeps rules free of error handling; [`Batched::into_tensor`] returns it.
#[derive(Clone, Debug)]
pub struct Batched<T: LinalgScalar>(pub(super) Result<Tensor<T>>);

impl<T: LinalgScalar> Batched<T> {
    /// Batch of matrices `[…, m, n]`.
    pub fn new(tensor: &Tensor<T>) -> Self {
        if tensor.rank() < 2 {
            let shape = tensor.shape().to_vec();
            return Self(Err(LinalgError::NotMatrix { op: "matrices", shape }));
        }
        Self(Ok(tensor.clone()))
    }

    /// Batch of vectors `[…, n]` as rows.
    pub fn rows_of(tensor: &Tensor<T>) -> Self {
        let axis = tensor.rank().saturating_sub(1);
        Self::new_checked(tensor.unsqueeze(axis))
    }

    /// Batch of numbers `[…]` as `1 × 1` matrices.
    pub fn numbers(tensor: &Tensor<T>) -> Self {
        let axis = tensor.rank();
        Self::new_checked(tensor.unsqueeze(axis).and_then(|t| t.unsqueeze(axis + 1)))
    }

    fn new_checked(tensor: t4a_tensor::Result<Tensor<T>>) -> Self {
        match tensor {
            Ok(tensor) => Self::new(&tensor),
            Err(error) => Self(Err(error.into())),
        }
    }

    /// The tensor `[…, m, n]`.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    pub fn into_tensor(self) -> Result<Tensor<T>> {
        self.0
    }

    /// The tensor `[…, n]` of a batch of rows.
    ///
    /// # Errors
    /// As [`Batched::into_tensor`].
    pub fn into_vectors(self) -> Result<Tensor<T>> {
        let tensor = self.0?;
        let axis = tensor.rank() - 2;
        Ok(tensor.squeeze(axis)?)
    }

    /// The tensor `[…]` of a batch of numbers.
    ///
    /// # Errors
    /// As [`Batched::into_tensor`].
    pub fn into_numbers(self) -> Result<Tensor<T>> {
        let tensor = self.0?;
        let axis = tensor.rank() - 2;
        Ok(tensor.squeeze(axis)?.squeeze(axis)?)
    }

    pub(super) fn then<U: LinalgScalar>(
        &self,
        f: impl FnOnce(&Tensor<T>) -> Result<Tensor<U>>,
    ) -> Batched<U> {
        Batched(self.0.as_ref().map_err(Clone::clone).and_then(f))
    }

    pub(super) fn map<K: Unary<T>>(&self, kernel: K) -> Batched<K::Out>
    where
        K::Out: LinalgScalar,
    {
        self.then(|t| Ok(map::map(kernel, t.clone())?))
    }

    pub(super) fn zip<U: LinalgScalar, K: Binary<T, U>>(
        &self,
        rhs: &Batched<U>,
        k: K,
    ) -> Batched<K::Out>
    where
        K::Out: LinalgScalar,
    {
        self.then(|a| {
            let b = rhs.0.as_ref().map_err(Clone::clone)?;
            Ok(map::zip(k, a.clone(), b.clone())?)
        })
    }

    pub(super) fn with(
        &self,
        rhs: &Self,
        f: impl FnOnce(&Tensor<T>, &Tensor<T>) -> Result<Tensor<T>>,
    ) -> Self {
        self.then(|a| f(a, rhs.0.as_ref().map_err(Clone::clone)?))
    }

    pub(super) fn axis(&self, from_last: usize) -> usize {
        match &self.0 {
            Ok(t) => t.shape()[t.rank() - from_last],
            Err(_) => 0,
        }
    }
}
