//! Fused operations of neural networks and their derivatives.
//!
//! ```text
//! lanes      sums and maxima of a contiguous row in vector registers
//! axis       walks a tensor as (outer, axis, inner) in the order of memory
//! softmax    softmax, log-softmax and their vjps, along any axis
//! norm       layer norm, root-mean-square norm and their vjps, along the last axis
//! conv       convolutions of one to three spatial axes, their adjoints and weight derivatives
//! attention  scaled dot products with an online softmax, and its vjp
//! cross_entropy   of logits and class indices, and its vjp
//! pool       maxima and means of windows, and their vjps
//! ```
//!
//! Elements are `f32` or `f64`; 16-bit floats are converted to `f32` by the erased methods of
//! [`AnyTensor`](crate::AnyTensor). Work is cut into chunks whose number depends on shapes alone,
//! and sums over chunks run in their order, so results have the same bits on any number of
//! threads.

use std::sync::OnceLock;

use crate::error::{Result, TensorError};
use crate::loops::parallel;

pub mod attention;
mod axis;
pub mod conv;
pub mod cross_entropy;
mod lanes;
pub mod norm;
pub mod pool;
pub mod softmax;
#[cfg(test)]
mod tests;

/// Runs `body` for every chunk. The only error it may meet is a refused allocation of scratch;
/// the first one is returned.
fn for_each_chunk(
    chunks: usize,
    parallel: bool,
    body: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<()> {
    let failure: OnceLock<TensorError> = OnceLock::new();
    parallel::for_each(chunks, parallel, &|chunk| {
        if failure.get().is_none()
            && let Err(error) = body(chunk)
        {
            let _ = failure.set(error);
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}
