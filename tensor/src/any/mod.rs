//! The dtype-tagged tensor, for interfaces where the element type is a run-time property.
//!
//! An `AnyTensor` is an untyped tensor with a tag instead of an enum over typed ones: layouts count
//! in elements, so every view operation is independent of the dtype and compiled once. An
//! operation that touches elements matches on the tag once, with
//! [`with_dtype!`](crate::with_dtype), and works on [`AnyTensor::typed`] below.

mod complex;
mod create;
mod cumulative;
mod elementwise;
mod fft;
mod image;
mod index;
mod matmul;
mod nn;
mod promote;
mod reduce;
mod sort;
mod words;

use crate::dtype::{DType, Element};
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::route::Route;
use crate::storage::Buffer;
use crate::tensor::Tensor;

pub use crate::number::{FromNumber, Number};

/// Placeholder for the element type of the tag.
#[derive(Clone, Copy)]
enum ErasedElement {}

/// A tensor whose element type is known at run time.
#[derive(Clone)]
pub struct AnyTensor {
    tensor: Tensor<ErasedElement>,
    dtype: DType,
}

impl<T: Element> From<Tensor<T>> for AnyTensor {
    #[inline]
    fn from(tensor: Tensor<T>) -> Self {
        // SAFETY: the tag records the erased element type.
        Self { tensor: unsafe { tensor.retag() }, dtype: T::DTYPE }
    }
}

impl AnyTensor {
    /// The element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        self.tensor.shape()
    }

    /// Shape, strides and offset.
    #[inline]
    pub fn layout(&self) -> &Layout {
        self.tensor.layout()
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.tensor.rank()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.tensor.numel()
    }

    /// The memory below.
    #[inline]
    pub fn buffer(&self) -> &Buffer {
        self.tensor.buffer()
    }

    /// The underlying buffer, by value: keeps a unique buffer unique.
    #[inline]
    pub fn into_buffer(self) -> Buffer {
        self.tensor.into_buffer()
    }

    /// The route by which this tensor was computed.
    #[inline]
    pub fn route(&self) -> Route {
        self.tensor.route()
    }

    /// The same tensor with another route tag.
    #[inline]
    pub fn with_route(mut self, route: Route) -> Self {
        self.tensor = self.tensor.with_route(route);
        self
    }

    /// The typed tensor.
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] if the tag names another type.
    #[inline]
    pub fn typed<T: Element>(&self) -> Result<&Tensor<T>> {
        if self.dtype != T::DTYPE {
            return Err(self.wrong_dtype::<T>());
        }
        // SAFETY: `Tensor` is `repr(C)` and its fields do not depend on the element type; by the tag the elements are
        // of type `T`.
        Ok(unsafe { &*std::ptr::from_ref(&self.tensor).cast::<Tensor<T>>() })
    }

    /// The typed tensor, by value: keeps a unique buffer unique.
    ///
    /// # Errors
    /// As [`AnyTensor::typed`].
    #[inline]
    pub fn into_typed<T: Element>(self) -> Result<Tensor<T>> {
        if self.dtype != T::DTYPE {
            return Err(self.wrong_dtype::<T>());
        }
        // SAFETY: by the tag the elements are of type `T`.
        Ok(unsafe { self.tensor.retag() })
    }

    #[cold]
    fn wrong_dtype<T: Element>(&self) -> TensorError {
        let expected = T::DTYPE.name();
        TensorError::DTypeUnsupported { op: "typed access", dtype: self.dtype, expected }
    }

    /// A tensor over an existing buffer.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if the layout reaches outside of the buffer, or the memory is not
    /// aligned for the dtype.
    ///
    /// # Safety
    /// The buffer holds initialised, valid values of the dtype: for `bool`, bytes of 0 or 1.
    pub unsafe fn from_buffer(buffer: Buffer, layout: Layout, dtype: DType) -> Result<Self> {
        crate::with_dtype!(dtype, T in all => {
            // SAFETY: the caller's contract.
            unsafe { Tensor::<T>::from_buffer(buffer, layout) }.map(Self::from)
        }, else => Err(TensorError::DTypeUnsupported { op: "from_buffer", dtype, expected: "any" }))
    }

    /// The same memory with another layout; keeps a unique buffer unique.
    ///
    /// # Safety
    /// The layout is that of this tensor after view operations.
    #[inline]
    pub(crate) unsafe fn with_layout(self, layout: Layout) -> Self {
        // SAFETY: passed on.
        Self { tensor: unsafe { self.tensor.with_layout(layout) }, dtype: self.dtype }
    }

    /// The same elements in row-major order under another shape; copies only if the strides do not permit a view.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`] if the element counts differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        match self.layout().reshape(shape)? {
            // SAFETY: a view of this tensor.
            Some(layout) => Ok(unsafe { self.clone().with_layout(layout) }),
            None => self.to_contiguous()?.reshape(shape),
        }
    }

    /// The elements in row-major order without gaps; shares the memory if they already are.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn to_contiguous(&self) -> Result<Self> {
        crate::with_dtype!(self.dtype, T in all => {
            crate::copy::row_major(self.typed::<T>()?).map(Self::from)
        }, else => unreachable!("every dtype is covered"))
    }
}

impl std::fmt::Debug for AnyTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        crate::with_dtype!(self.dtype, T in all => match self.typed::<T>() {
            Ok(tensor) => write!(f, "{} {tensor:?}", self.dtype),
            Err(error) => write!(f, "{error}"),
        }, else => write!(f, "{}", self.dtype))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typed_access_checks_the_tag() {
        let any = AnyTensor::from(Tensor::from_vec(vec![1.0f32, 2.0], &[2]).unwrap());
        assert_eq!(any.typed::<f32>().unwrap().to_vec().unwrap(), [1.0, 2.0]);
        assert!(matches!(any.typed::<i32>(), Err(TensorError::DTypeUnsupported { .. })));
        assert!(any.clone().into_typed::<f64>().is_err());
        let view = any.flip(&[0]).unwrap();
        assert_eq!(view.typed::<f32>().unwrap().to_vec().unwrap(), [2.0, 1.0]);
    }
}
