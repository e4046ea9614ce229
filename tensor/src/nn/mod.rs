//! Fused operations of neural networks and their derivatives.
//!
//! ```text
//! lanes      sums and maxima of a contiguous row in vector registers
//! axis       walks a tensor as (outer, axis, inner) in the order of memory
//! softmax    softmax, log-softmax and their vjps, along any axis
//! norm       layer norm, root-mean-square norm and their vjps, along the last axis
//! conv       convolutions of one to three spatial axes, their adjoints and weight derivatives
//! deform     convolutions at points that are moved, and the vjp
//! attention  scaled dot products with an online softmax, and its vjp
//! cross_entropy   of logits and class indices, and its vjp
//! pool       maxima and means of windows, and their vjps
//! resample   images at another size, and the vjp
//! grid_sample     images read at the points of a grid
//! ```
//!
//! Elements are `f32` or `f64`; 16-bit floats are converted to `f32` by the erased methods of
//! [`AnyTensor`](crate::AnyTensor). The number of chunks depends on shapes only, and chunks are summed in order, so
//! results are bit-identical for any number of threads.

pub mod attention;
mod axis;
pub mod conv;
pub mod cross_entropy;
pub mod deform;
pub mod grid_sample;
pub(crate) mod lanes;
pub mod norm;
pub mod pool;
pub mod resample;
pub mod softmax;
#[cfg(test)]
mod tests;

/// Rejects, at compile time, elements that are too large for arrays of them on the stack.
const fn assert_small<T>() {
    assert!(size_of::<T>() <= 16, "a float of more than 16 bytes");
}
