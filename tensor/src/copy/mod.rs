//! Copies between layouts: the permutation kernel.
//!
//! The axes are fused and traversed in the order of the destination. Data contiguous on both sides is moved in rows.
//! Otherwise two groups of axes form a block:
//!
//! ```text
//! columns   innermost axes of the source,      contiguous there   ≥ one cache line
//! rows      innermost axes of the destination, contiguous there   ≥ one cache line
//! ```
//!
//! A block is a transposition whose rows and columns are addressed by tables of offsets, so a rotation of twenty axes
//! of size 2 is as fast as a matrix transpose: every cache line is read once and written once. Short runs that are
//! contiguous on both sides are moved as wider elements, longer ones as lists of runs. If the innermost axis of the
//! source is among the rows, there are no columns, and a block is one long row. Elements that the source repeats along
//! the innermost axis are written without rereading.
//!
//! ```text
//! plan   which axes a block covers
//! walk   blocks over the axes and over threads; the elements of one
//! ```

use smallvec::SmallVec;
use t4a_algebra::Scalar;

use crate::error::Result;
use crate::layout::{Layout, Strides};
use crate::loops::parallel::SendPtr;
use crate::output::Output;
use crate::storage::Buffer;
use crate::tensor::Tensor;

mod plan;
#[cfg(test)]
mod tests;
mod walk;

use plan::CopyPlan;

/// The elements in row-major order without gaps, in fresh memory.
///
/// Cost: one read and one write per element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn to_contiguous<T: Scalar>(x: &Tensor<T>) -> Result<Tensor<T>> {
    let mut out = Output::<T>::new("copy", x.shape())?;
    let dst = SendPtr(out.as_mut_ptr().cast());
    let src = SendPtr(x.as_ptr().cast_mut().cast());
    if x.numel() > 0 {
        let strides = [out.layout().strides(), x.layout().strides()];
        // SAFETY: the operand is readable at every index, the fresh result writable, and the
        // result is dense with strides ≥ 0.
        unsafe { CopyPlan::new(x.shape(), strides, size_of::<T>()).run(dst, src) };
    }
    // SAFETY: every element was written.
    Ok(unsafe { out.assume_init() })
}

/// The elements, of `size` bytes each, in new memory without gaps, with the axes in the order given by the strides
/// `order`. Requires at least one element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn to_order(x: &Tensor<()>, size: usize, order: &[isize]) -> Result<Tensor<()>> {
    let shape = x.shape();
    let mut axes: SmallVec<[usize; 6]> = (0..shape.len()).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(order[axis]));
    let mut strides = Strides::from_elem(0, shape.len());
    let mut numel = 1;
    for &axis in axes.iter().rev() {
        strides[axis] = numel as isize;
        numel *= shape[axis];
    }
    let (buffer, dst) = Buffer::fresh("copy", numel * size)?;
    let (dst, src) = (SendPtr(dst), SendPtr(x.first(size).cast_mut()));
    let layout = Layout::from_parts(shape, &strides, 0, numel)?;
    // SAFETY: as in `to_contiguous`; the buffer was allocated for the layout.
    unsafe {
        CopyPlan::new(shape, [&strides, x.layout().strides()], size).run(dst, src);
        Ok(Tensor::from_raw(buffer, layout).with_route(x.route()))
    }
}

/// [`to_contiguous`] without a copy for a contiguous tensor.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn row_major<T: Scalar>(x: &Tensor<T>) -> Result<Tensor<T>> {
    if x.layout().is_contiguous() { Ok(x.clone()) } else { to_contiguous(x) }
}

impl<T: Scalar> Tensor<T> {
    /// The elements for writing, in row-major order: copies first if the memory is shared or
    /// strided.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        if !self.layout().is_contiguous() || self.as_mut_ptr().is_none() {
            *self = to_contiguous(self)?;
        }
        let numel = self.numel();
        match self.as_mut_ptr() {
            // SAFETY: contiguous, in bounds, initialised, and uniquely owned.
            Some(ptr) if numel > 0 => Ok(unsafe { std::slice::from_raw_parts_mut(ptr, numel) }),
            _ => Ok(&mut []),
        }
    }

    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
    pub fn to_vec(&self) -> Result<Vec<T>> {
        match self.as_slice() {
            Some(slice) => Ok(slice.to_vec()),
            None => Ok(to_contiguous(self)?.as_slice().unwrap_or_default().to_vec()),
        }
    }
}
