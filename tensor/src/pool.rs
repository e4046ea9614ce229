//! A process-wide cache of memory blocks by size class.
//!
//! A fresh 4 MiB block costs a thousand page faults, more than adding its million floats. Freed
//! blocks are therefore kept and handed out again, up to [`set_cache_limit`] bytes in all.
//! Classes are 2ᵉ·(1, 1¼, 1½, 1¾); what a request does not use is never touched, so it takes
//! address space but no memory.
//!
//! Blocks of 2 MiB and more ask Linux for huge pages: 512 times fewer faults, and walks with large
//! strides find their addresses (bench `backend`, row `transpose copy 1024²`).

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use t4a_algebra::environment::{Variable, bytes};

use crate::config::Bytes;

/// Alignment of pooled blocks: one cache line, and the widest vector register.
pub const ALIGN: usize = 64;
/// Smallest pooled block in bytes.
pub const SMALLEST: usize = 1 << SMALLEST_LOG2;
const SMALLEST_LOG2: u32 = 12;
/// Largest pooled block is below 2⁴⁸ bytes.
const CLASSES: usize = (48 - SMALLEST_LOG2 as usize) * 4;
const DEFAULT_LIMIT: usize = 1 << 30;
/// Bytes of a huge page, and the alignment of blocks that hold one.
const HUGE: usize = 1 << 21;

/// Index of a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// The smallest class of at least `bytes ≥ SMALLEST` bytes, if there is one.
    #[inline]
    pub(crate) fn of(bytes: usize) -> Option<Self> {
        if bytes > 1 << 47 {
            return None;
        }
        let last = bytes - 1;
        let exponent = usize::BITS - 1 - last.leading_zeros();
        // Two bits below the leading one select the quarter; one more because we round up.
        let quarter = (last >> (exponent - 2)) & 3;
        let index = (exponent as usize * 4 + quarter + 1).checked_sub(SMALLEST_LOG2 as usize * 4);
        Some(Class(index.unwrap_or(0) as u8))
    }

    /// Bytes in a block of this class.
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        let (octave, quarter) = (self.0 as usize / 4, self.0 as usize % 4);
        (4 + quarter) << (octave + SMALLEST_LOG2 as usize - 2)
    }

    fn layout(self) -> Layout {
        let align = if self.bytes() >= HUGE { HUGE } else { ALIGN };
        // SAFETY: the alignment is a power of two and the size is below 2⁴⁸.
        unsafe { Layout::from_size_align_unchecked(self.bytes(), align) }
    }

    /// A block from the system.
    fn allocate(self) -> Option<NonNull<u8>> {
        let bytes = self.bytes();
        if HELD.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > MEMORY.get() {
            HELD.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        // SAFETY: the layout has a nonzero size.
        let Some(ptr) = NonNull::new(unsafe { alloc(self.layout()) }) else {
            HELD.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        };
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= HUGE {
            // The part after the last whole huge page keeps small ones, so nothing is wasted on it.
            let whole = bytes / HUGE * HUGE;
            // SAFETY: these bytes are ours. The call is a hint; whether it fails does not matter.
            unsafe { libc::madvise(ptr.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
        }
        Some(ptr)
    }

    /// Gives a block back to the system.
    ///
    /// # Safety
    /// `allocate` of this class returned it, and nobody uses it.
    unsafe fn release(self, ptr: NonNull<u8>) {
        // SAFETY: the caller's promise.
        unsafe { dealloc(ptr.as_ptr(), self.layout()) };
        HELD.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

struct Blocks(Vec<NonNull<u8>>);
// SAFETY: the pointers own their blocks.
unsafe impl Send for Blocks {}

static CACHE: [Mutex<Blocks>; CLASSES] = [const { Mutex::new(Blocks(Vec::new())) }; CLASSES];
static CACHED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: Bytes = Bytes::new(CACHE_VARIABLE, DEFAULT_LIMIT);
/// Bytes of all blocks, cached and in use.
static HELD: AtomicUsize = AtomicUsize::new(0);
static MEMORY: Bytes = Bytes::new(MEMORY_VARIABLE, usize::MAX);

/// Unused bytes that may be cached, in the environment.
pub(crate) const CACHE_VARIABLE: Variable<usize> =
    Variable::new("T4A_CACHE_LIMIT", "a number of bytes", bytes);
/// Bytes that tensors may take, in the environment.
pub(crate) const MEMORY_VARIABLE: Variable<usize> =
    Variable::new("T4A_MEMORY_LIMIT", "a number of bytes", bytes);

fn list(class: Class) -> std::sync::MutexGuard<'static, Blocks> {
    // A panic while holding the lock leaves the list valid.
    CACHE[class.0 as usize].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A block of the class, cached or fresh; `None` if the allocator refuses.
// Out of line: small tensors, which need no pool, would save its registers.
#[inline(never)]
pub(crate) fn take(class: Class) -> Option<NonNull<u8>> {
    let cached = list(class).0.pop();
    if let Some(ptr) = cached {
        CACHED.fetch_sub(class.bytes(), Ordering::Relaxed);
        return Some(ptr);
    }
    class.allocate().or_else(|| {
        cleanup();
        class.allocate()
    })
}

/// Takes back a block that [`take`] handed out for the same class.
// Out of line: small tensors, which need no pool, would save its registers.
#[inline(never)]
pub(crate) fn give_back(ptr: NonNull<u8>, class: Class) {
    let bytes = class.bytes();
    if CACHED.fetch_add(bytes, Ordering::Relaxed) + bytes <= LIMIT.get() {
        list(class).0.push(ptr);
    } else {
        CACHED.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: `take` allocated it for this class.
        unsafe { class.release(ptr) };
    }
}

/// Returns every cached block to the allocator.
pub fn cleanup() {
    for index in 0..CLASSES {
        let class = Class(index as u8);
        let blocks = std::mem::take(&mut list(class).0);
        CACHED.fetch_sub(blocks.len() * class.bytes(), Ordering::Relaxed);
        for ptr in blocks {
            // SAFETY: `take` allocated it for this class.
            unsafe { class.release(ptr) };
        }
    }
}

/// Bytes that are cached and not in use.
pub fn cached_bytes() -> usize {
    CACHED.load(Ordering::Relaxed)
}

/// Unused bytes that may be cached.
pub fn cache_limit() -> usize {
    LIMIT.get()
}

/// Bytes that tensors may take in all, if there is a limit.
pub fn memory_limit() -> Option<usize> {
    Some(MEMORY.get()).filter(|&bytes| bytes != usize::MAX)
}

/// Sets how many unused bytes may be cached (1 GiB unless set). Zero turns caching off.
pub fn set_cache_limit(bytes: usize) {
    LIMIT.set(bytes);
    if cached_bytes() > bytes {
        cleanup();
    }
}

/// Sets how many bytes tensors may take in all, cached blocks included (no limit unless set). Beyond it
/// operations fail with [`OutOfMemory`](crate::TensorError::OutOfMemory). Tensors below 4 KiB do not
/// count.
pub fn set_memory_limit(bytes: usize) {
    MEMORY.set(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_requests_with_little_waste() {
        for bytes in (SMALLEST..70_000).chain([1 << 20, (1 << 20) + 1, 1 << 40, 1 << 47]) {
            let class = Class::of(bytes).unwrap();
            assert!(class.bytes() >= bytes, "{bytes}");
            assert!(class.bytes() <= bytes + bytes / 4 + 1, "{bytes} → {}", class.bytes());
            assert!(class.0 == 0 || Class(class.0 - 1).bytes() < bytes, "{bytes}");
        }
        assert_eq!(Class::of((1 << 47) + 1), None);
    }

    #[test]
    fn blocks_come_back_and_the_cache_is_bounded() {
        // A class that no other test uses.
        let class = Class::of(77 << 20).unwrap();
        let a = take(class).unwrap();
        give_back(a, class);
        assert_eq!(take(class), Some(a));
        give_back(a, class);
        assert!(cached_bytes() >= class.bytes());
    }
}
