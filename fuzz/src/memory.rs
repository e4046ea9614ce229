//! An allocator that measures the memory held by a thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Allocator for the attribute `global_allocator`.
pub struct Counting;

thread_local! {
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    BYTES.set(BYTES.get() + bytes);
    MOST.set(MOST.get().max(BYTES.get()));
}

// SAFETY: delegates to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the layout is that of the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the block was allocated by `alloc` with this layout.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Result of `run`, and the maximum number of bytes that this thread holds meanwhile beyond those held before;
/// measured if [`Counting`] is the allocator of the program.
pub fn measured<R>(run: impl FnOnce() -> R) -> (R, usize) {
    let before = BYTES.get();
    MOST.set(before);
    let result = run();
    (result, (MOST.get() - before).unsigned_abs())
}
