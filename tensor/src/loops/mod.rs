//! The only element loops. A loop knows layouts and pointers, a kernel knows scalars; neither
//! knows the other.
//!
//! ```text
//! kernel        what a kernel is: Unary, Binary, Ternary on scalars
//! contiguous    one vectorised pass over contiguous runs; the only loops compiled per kernel
//! ahead         asks for memory before it is needed
//! fuse          merges and orders the axes of several operands
//! stage         brings strided blocks into contiguous scratch; compiled per element size
//! fold          the two reduction loops, along a row and across rows
//! transpose     contiguous columns to contiguous rows
//! elementwise   walks the fused axes in tiles: stage, then contiguous
//! ```
//!
//! Every operand of a contiguous pass is a run of neighbours or one repeated element. What lies
//! otherwise is staged through a block that stays in the first-level cache, so a kernel is
//! compiled for one layout per operand instead of for all of them, and a transposed operand is
//! read cache line by cache line.

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

/// Threads among which work is cut evenly, however many there are: results do not depend on their number.
pub(crate) const BALANCED: usize = 16;

/// A slice all of whose elements have been written.
///
/// # Safety
/// They have.
#[inline(always)]
pub unsafe fn written<T>(slice: &mut [MaybeUninit<T>]) -> &mut [T] {
    // SAFETY: initialised, and the layouts agree.
    unsafe { &mut *(std::ptr::from_mut(slice) as *mut [T]) }
}
