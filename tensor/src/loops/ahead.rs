//! Software prefetching for a pass over memory: hardware prefetchers stop at the end of every 4 KiB page (bench
//! `backend`: a sum of 4 MiB is a quarter faster, an addition of operands in main memory two fifths).

use t4a_algebra::simd::{prefetch, prefetch_write};

/// Prefetch distance in bytes: a larger one evicts unused lines from the L1 cache.
const AHEAD: usize = 2048;
const LINE: usize = 64;

/// Number of elements between two prefetches, for a widest element of `size` bytes.
pub(super) const fn block(size: usize) -> usize {
    match (4 * LINE).checked_div(size) {
        None | Some(0) => 1,
        Some(n) => n,
    }
}

/// Prefetches the elements that are read after `block`.
#[inline(always)]
pub(super) fn read<T>(block: &[T]) {
    for at in (AHEAD..AHEAD + size_of_val(block)).step_by(LINE) {
        prefetch(block.as_ptr().wrapping_byte_add(at));
    }
}

/// Prefetches the elements that are written after `block`.
#[inline(always)]
pub(super) fn write<T>(block: &mut [T]) {
    overwrite(block.as_mut_ptr(), block.len());
}

/// Prefetches the elements that are read and written after the `len` elements at `block`.
#[inline(always)]
pub(super) fn overwrite<T>(block: *mut T, len: usize) {
    for at in (AHEAD..AHEAD + len * size_of::<T>()).step_by(LINE) {
        prefetch_write(block.wrapping_byte_add(at));
    }
}
