//! Uninitialised memory for packed panels: on the stack for small products, else a buffer retained by each thread.

use std::cell::Cell;
use std::mem::MaybeUninit;

/// One cache line, so that panels start on vector boundaries.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([MaybeUninit<u8>; 64]);

thread_local! {
    static KEPT: Cell<Vec<CacheLine>> = const { Cell::new(Vec::new()) };
}

/// 8 KiB of stack.
pub(super) struct StackBuffer(MaybeUninit<[CacheLine; StackBuffer::LINES]>);

impl StackBuffer {
    const LINES: usize = 128;

    #[inline(always)]
    pub(super) fn new() -> Self {
        Self(MaybeUninit::uninit())
    }
}

/// Memory for a number of elements, returned to the thread on drop.
pub(super) struct Scratch<T> {
    ptr: *mut T,
    heap: Option<Vec<CacheLine>>,
}

impl<T> Scratch<T> {
    /// Memory for `len` elements, in `stack` if they fit.
    #[inline(always)]
    pub(super) fn new(len: usize, stack: &mut StackBuffer) -> Self {
        let lines = len.saturating_mul(size_of::<T>()).div_ceil(size_of::<CacheLine>());
        if lines <= StackBuffer::LINES && align_of::<T>() <= align_of::<CacheLine>() {
            Self { ptr: stack.0.as_mut_ptr().cast(), heap: None }
        } else {
            Self::on_heap(lines)
        }
    }

    #[inline(never)]
    fn on_heap(lines: usize) -> Self {
        let lines = lines + align_of::<T>() / align_of::<CacheLine>();
        // Taken out while in use: the arithmetic of an element may call a matrix product recursively.
        let mut buffer = KEPT.take();
        if buffer.capacity() < lines {
            buffer = Vec::with_capacity(lines);
        }
        let ptr: *mut u8 = buffer.as_mut_ptr().cast();
        let ptr = ptr.wrapping_add(ptr.align_offset(align_of::<T>())).cast();
        Self { ptr, heap: Some(buffer) }
    }

    /// Start of the memory, aligned to a cache line and to `T`.
    #[inline(always)]
    pub(super) fn as_mut_ptr(&mut self) -> *mut T {
        self.ptr
    }
}

impl<T> Drop for Scratch<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(buffer) = self.heap.take() {
            KEPT.set(buffer);
        }
    }
}
