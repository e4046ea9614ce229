//! Memory of blocks from the system.
//!
//! ```text
//! below 2 MiB  the global allocator, aligned here
//! from 2 MiB   on Linux a mapping for each block, aligned to huge pages
//! ```
//!
//! glibc looks for the size plus the alignment when it gets a request for aligned memory. It never finds the gap that a
//! freed block of the same size has left, so that a heap of such blocks grows to many times what it holds. A sweep of DMRG
//! with 512 states took 7 GiB instead of 0.6 with a cache limit of 64 MiB (bench `networks` of t4a-networks).

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;

use super::{ALIGN, HUGE};

/// Alignment of what the global allocator returns.
const WORD: usize = 16;

/// A block and the bytes before it.
fn heap_layout(bytes: usize) -> Layout {
    let align = if bytes >= HUGE { HUGE } else { ALIGN };
    // SAFETY: the alignment is a power of two, and blocks are below 2⁴⁸ bytes.
    unsafe { Layout::from_size_align_unchecked(bytes + align, WORD) }
}

/// A block, aligned to [`ALIGN`] or, from [`HUGE`] bytes on, to that; `None` if the system refuses.
pub(super) fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= HUGE {
        return map(bytes);
    }
    let layout = heap_layout(bytes);
    // SAFETY: the layout has a nonzero size.
    let start = NonNull::new(unsafe { alloc(layout) })?;
    let align = layout.size() - bytes;
    let gap = align - start.addr().get() % align;
    // SAFETY: the gap is at least 16 bytes and at most the alignment, so the word before the block and the block are
    // within the allocation; the word is aligned as the allocation is.
    unsafe {
        let block = start.add(gap);
        block.cast::<usize>().sub(1).write(gap);
        Some(block)
    }
}

/// Returns a block to the system.
///
/// # Safety
/// `allocate` returned the block for this number of bytes, and no reference to it exists.
pub(super) unsafe fn free(block: NonNull<u8>, bytes: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    if bytes >= HUGE {
        // SAFETY: the mapping of `map` has this start and size.
        unsafe { libc::munmap(block.as_ptr().cast(), bytes) };
        return;
    }
    // SAFETY: `allocate` wrote the distance from the start of the allocation before the block.
    unsafe {
        let gap = block.cast::<usize>().sub(1).read();
        dealloc(block.sub(gap).as_ptr(), heap_layout(bytes));
    }
}

/// A mapping of a multiple of the size of a page, aligned to huge pages, which it requests.
#[cfg(all(target_os = "linux", not(miri)))]
fn map(bytes: usize) -> Option<NonNull<u8>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let reserved = bytes + HUGE;
    // SAFETY: a new mapping at an address that the system chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), reserved, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = NonNull::new(start.cast::<u8>())?;
    let before = start.addr().get().wrapping_neg() % HUGE;
    // SAFETY: the block is within the mapping, and the parts before and after it are whole pages of it. The advice is a
    // hint, whose failure is ignored; what follows the last whole huge page keeps small pages, so no memory is wasted.
    unsafe {
        let block = start.add(before);
        let unmap = |from: NonNull<u8>, bytes: usize| {
            if bytes > 0 {
                libc::munmap(from.as_ptr().cast(), bytes);
            }
        };
        unmap(start, before);
        unmap(block.add(bytes), HUGE - before);
        libc::madvise(block.as_ptr().cast(), bytes / HUGE * HUGE, libc::MADV_HUGEPAGE);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_apart() {
        let sizes = [1 << 12, 5 << 10, 7 << 16, (1 << 21) - (1 << 18), 1 << 21, 5 << 19, 3 << 21];
        let blocks: Vec<_> = sizes.iter().map(|&bytes| allocate(bytes).unwrap()).collect();
        for (i, (&block, &bytes)) in blocks.iter().zip(&sizes).enumerate() {
            let align = if bytes >= HUGE { HUGE } else { ALIGN };
            assert!(block.addr().get().is_multiple_of(align), "{bytes}");
            // SAFETY: the block has this size and one owner, this test.
            unsafe { block.write_bytes(i as u8, bytes) };
        }
        for (i, (&block, &bytes)) in blocks.iter().zip(&sizes).enumerate() {
            // SAFETY: all bytes have been written; the block is freed once.
            unsafe {
                let all = std::slice::from_raw_parts(block.as_ptr(), bytes);
                assert!(all.iter().all(|&x| x == i as u8), "{bytes}");
                free(block, bytes);
            }
        }
    }
}
