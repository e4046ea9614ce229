//! Copies between layouts.

use std::mem::MaybeUninit;

use t4a_algebra::Scalar;

use crate::error::Result;
use crate::loops::elementwise::{Operand, for_each_run};
use crate::loops::parallel::SendPtr;
use crate::tensor::{Output, Tensor};

/// The elements in row-major order without gaps, in fresh memory.
///
/// Cost: one read and one write per element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn to_contiguous<T: Scalar>(x: &Tensor<T>) -> Result<Tensor<T>> {
    let mut out = Output::<T>::new("copy", x.shape())?;
    let dst = SendPtr(out.as_mut_ptr());
    let out_strides = out.layout().strides();
    // SAFETY: `dst` takes every element once; runs are disjoint.
    unsafe { copy_into(x, dst, out_strides) };
    // SAFETY: every element was written.
    Ok(unsafe { out.assume_init() })
}

/// Writes the elements of `x` to dense memory with the given strides.
///
/// # Safety
/// `dst` is writable at every index of the shape under `strides`, which are dense, not negative,
/// and name memory disjoint from that of `x`.
pub(crate) unsafe fn copy_into<T: Scalar>(x: &Tensor<T>, dst: SendPtr<T>, strides: &[isize]) {
    let size = size_of::<T>();
    let result = Operand { ptr: std::ptr::null(), strides, size, aliased: false };
    let source =
        Operand { ptr: x.as_ptr().cast(), strides: x.layout().strides(), size, aliased: false };
    // SAFETY: the tensor is readable at every index of its shape; runs of the result are inside
    // of it.
    unsafe {
        for_each_run(x.shape(), [result, source], 1, &|position, len, [_, block]| {
            let to = dst.get().add(position).cast::<MaybeUninit<T>>();
            let from = block.ptr.cast::<MaybeUninit<T>>();
            if block.repeat {
                std::slice::from_raw_parts_mut(to, len).fill(*from);
            } else {
                std::ptr::copy_nonoverlapping(from, to, len);
            }
        });
    }
}
