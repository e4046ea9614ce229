//! All element loops. A loop depends only on layouts and pointers, a kernel only on scalars.
//!
//! ```text
//! kernel        kernel traits: Unary, Binary, Ternary on scalars
//! contiguous    one vectorised pass over contiguous runs; the only loops compiled per kernel
//! ahead         prefetching
//! fuse          merges and orders the axes of several operands
//! stage         copies strided blocks to contiguous scratch; compiled per element size
//! fold          the two reduction loops, along a row and across rows
//! transpose     contiguous columns to contiguous rows
//! elementwise   traverses the fused axes in tiles: stage, then contiguous
//! ```
//!
//! Every operand of a contiguous pass is a contiguous run or one repeated element. Other layouts are staged through a
//! block that fits in the L1 cache, so that a kernel is compiled for one layout per operand instead of for all of them,
//! and a transposed operand is read cache line by cache line.

mod ahead;
pub mod contiguous;
pub mod elementwise;
pub mod fold;
pub mod fuse;
pub mod kernel;
pub mod stage;
pub mod transpose;

use std::mem::MaybeUninit;

pub use t4a_algebra::parallel;

/// Number of threads for which work is balanced; a constant, so that results do not depend on the actual number.
pub(crate) const BALANCED: usize = 16;

/// Converts a completely written slice.
///
/// # Safety
/// All elements have been written.
#[inline(always)]
pub unsafe fn written<T>(slice: &mut [MaybeUninit<T>]) -> &mut [T] {
    // SAFETY: initialised, and the layouts agree.
    unsafe { &mut *(std::ptr::from_mut(slice) as *mut [T]) }
}
