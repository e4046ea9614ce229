//! Cache lines that a pass over memory will need are asked for some way ahead: the prefetchers of
//! the machine stop at every page of 4 KiB, and start anew (bench `backend`: a sum of 4 MiB gains a
//! quarter, an addition of operands that come from memory two fifths).

use t4a_algebra::simd::{prefetch, prefetch_write};

/// Bytes ahead: further requests push out of the first-level cache what is not yet used.
const AHEAD: usize = 2048;
const LINE: usize = 64;

/// Elements between two requests, the widest of which has `size` bytes.
pub(super) const fn block(size: usize) -> usize {
    match (4 * LINE).checked_div(size) {
        None | Some(0) => 1,
        Some(n) => n,
    }
}

/// Asks for what will be read after `block`.
#[inline(always)]
pub(super) fn read<T>(block: &[T]) {
    for at in (AHEAD..AHEAD + size_of_val(block)).step_by(LINE) {
        prefetch(block.as_ptr().wrapping_byte_add(at));
    }
}

/// Asks for what will be written after `block`.
#[inline(always)]
pub(super) fn write<T>(block: &mut [T]) {
    overwrite(block.as_mut_ptr(), block.len());
}

/// Asks for what will be read and written after the `len` elements at `block`.
#[inline(always)]
pub(super) fn overwrite<T>(block: *mut T, len: usize) {
    for at in (AHEAD..AHEAD + len * size_of::<T>()).step_by(LINE) {
        prefetch_write(block.wrapping_byte_add(at));
    }
}
