//! Software prefetching for a pass over memory: hardware prefetchers stop at the end of every 4 KiB page, and fetch a
//! line that is written as one that is read.
//!
//! A pass that writes prefetches its result only: prefetching the operands as well makes an addition of operands in the
//! L3 cache 5 % slower, and in main memory a tenth (AVX2, bench `peers`, row `add 1024²`).

use t4a_algebra::simd::{prefetch, prefetch_write};

/// Distance in bytes to lines that are written: a larger one evicts unused lines from the L1 cache.
const AHEAD: usize = 2048;
/// Distance in bytes to lines that are read by a pass without a result: with less, a sum in main memory is a quarter
/// slower than without prefetching (AVX2).
const AHEAD_READ: usize = 4096;
const LINE: usize = 64;

/// Number of elements between two prefetches, for a widest element of `size` bytes.
pub(super) const fn block(size: usize) -> usize {
    match (4 * LINE).checked_div(size) {
        None | Some(0) => 1,
        Some(n) => n,
    }
}

/// Prefetches the elements that are read after `block`, in a pass without a result.
#[inline(always)]
pub(super) fn read<T>(block: &[T]) {
    for at in (AHEAD_READ..AHEAD_READ + size_of_val(block)).step_by(LINE) {
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
