//! A process-wide cache of memory blocks by size class.
//!
//! A fresh 4 MiB block costs a thousand page faults, more than adding its million floats. Freed blocks are therefore
//! cached and reused, up to [`set_cache_limit`] bytes in total. Without a limit, as many bytes are cached as tensors
//! recently used at the same time, so that the steps of a loop make no system calls and the process does not grow.
//! Blocks unused for a period of 10 s are returned to the system at its end, at the next allocation or release. Classes
//! are 2ᵉ·(1, 1¼, 1½, 1¾); the unused part of a block is never touched, so it takes address space but no memory.
//!
//! Blocks of 2 MiB and more request huge pages from Linux: 512 times fewer page faults, and fewer TLB misses for large
//! strides (bench `backend`, row `transpose copy 1024²`).

use std::alloc::{Layout, alloc, dealloc};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use t4a_algebra::environment::{Variable, bytes};

use crate::config::ByteSetting;

/// Alignment of pooled blocks: one cache line, and the widest vector register.
pub const ALIGN: usize = 64;
/// Smallest pooled block in bytes.
pub const SMALLEST: usize = 1 << SMALLEST_LOG2;
const SMALLEST_LOG2: u32 = 12;
/// Largest pooled block is below 2⁴⁸ bytes.
const CLASSES: usize = (48 - SMALLEST_LOG2 as usize) * 4;
/// Number of bytes always cached, unless a limit is set.
const KEPT: usize = 1 << 30;
/// Cache limit that adapts to the recent use.
const AUTOMATIC: usize = usize::MAX;
/// Time after which an unused block is returned to the system.
const PERIOD: Duration = Duration::from_secs(10);
/// Bytes of a huge page, and the alignment of blocks that hold one.
const HUGE: usize = 1 << 21;

/// Index of a size class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class(u8);

impl Class {
    /// The smallest class of at least `bytes ≥ SMALLEST` bytes; `None` if there is none.
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
        // A rejected request does not temporarily reduce the memory available to others.
        let fits = |held: usize| held.checked_add(bytes).filter(|&held| held <= MEMORY.get());
        HELD.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        // SAFETY: the layout has a nonzero size.
        let Some(ptr) = NonNull::new(unsafe { alloc(self.layout()) }) else {
            HELD.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        };
        #[cfg(all(target_os = "linux", not(miri)))]
        if bytes >= HUGE {
            // The part after the last whole huge page keeps small pages, so no memory is wasted.
            let whole = bytes / HUGE * HUGE;
            // SAFETY: the bytes are exclusively owned. The call is a hint; its failure is ignored.
            unsafe { libc::madvise(ptr.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
        }
        Some(ptr)
    }

    /// Returns a block to the system.
    ///
    /// # Safety
    /// `allocate` of this class returned the pointer, and no reference to the block exists.
    unsafe fn release(self, ptr: NonNull<u8>) {
        // SAFETY: the caller's contract.
        unsafe { dealloc(ptr.as_ptr(), self.layout()) };
        HELD.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

/// Free blocks of a class.
struct Blocks {
    free: Vec<NonNull<u8>>,
    /// Minimum number of cached blocks of the class in this period: the first `spare` blocks were not needed.
    spare: usize,
}
// SAFETY: the pointers own their blocks.
unsafe impl Send for Blocks {}

static CACHE: [Mutex<Blocks>; CLASSES] =
    [const { Mutex::new(Blocks { free: Vec::new(), spare: 0 }) }; CLASSES];
static CACHED: AtomicUsize = AtomicUsize::new(0);
static LIMIT: ByteSetting = ByteSetting::new(CACHE_VARIABLE, AUTOMATIC);
/// Bytes of all blocks, cached and in use.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// Bytes of blocks in use.
static USED: AtomicUsize = AtomicUsize::new(0);
static MEMORY: ByteSetting = ByteSetting::new(MEMORY_VARIABLE, usize::MAX);
/// Maximum number of bytes in use, in this period and in the previous one.
static PEAKS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];
/// Blocks that came back, to look at the clock now and then.
static RETURNED: AtomicU64 = AtomicU64::new(0);
/// End of the period in milliseconds since the first.
static END: AtomicU64 = AtomicU64::new(0);

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
    let cached = {
        let mut blocks = list(class);
        let cached = blocks.free.pop();
        blocks.spare = blocks.spare.min(blocks.free.len());
        cached
    };
    let block = match cached {
        Some(ptr) => {
            CACHED.fetch_sub(class.bytes(), Ordering::Relaxed);
            ptr
        }
        None => class.allocate().or_else(|| {
            cleanup();
            class.allocate()
        })?,
    };
    let now = USED.fetch_add(class.bytes(), Ordering::Relaxed) + class.bytes();
    let peak = &PEAKS[0];
    if now > peak.load(Ordering::Relaxed) {
        peak.fetch_max(now, Ordering::Relaxed);
    }
    Some(block)
}

/// Returns a block allocated by [`take`] for the same class.
// Out of line: small tensors, which need no pool, would save its registers.
#[inline(never)]
pub(crate) fn give_back(ptr: NonNull<u8>, class: Class) {
    let bytes = class.bytes();
    USED.fetch_sub(bytes, Ordering::Relaxed);
    if CACHED.fetch_add(bytes, Ordering::Relaxed) + bytes <= room() {
        list(class).free.push(ptr);
    } else {
        CACHED.fetch_sub(bytes, Ordering::Relaxed);
        // SAFETY: `take` allocated it for this class.
        unsafe { class.release(ptr) };
    }
    if RETURNED.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
        look_at_the_clock();
    }
}

/// Bytes that may be cached now.
fn room() -> usize {
    match LIMIT.get() {
        AUTOMATIC => {
            let peak = PEAKS.iter().map(|peak| peak.load(Ordering::Relaxed)).max();
            peak.unwrap_or(0).saturating_sub(USED.load(Ordering::Relaxed)).max(KEPT)
        }
        set => set,
    }
}

/// Ends the period if its time is over.
fn look_at_the_clock() {
    static START: OnceLock<Instant> = OnceLock::new();
    let now = START.get_or_init(Instant::now).elapsed().as_millis() as u64;
    let end = END.load(Ordering::Relaxed);
    let next = now + PERIOD.as_millis() as u64;
    let mine = || END.compare_exchange(end, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    // The first look begins the first period.
    if now >= end && mine() && end > 0 {
        end_period();
    }
}

/// Returns blocks to the allocator that were not needed since the last call.
fn end_period() {
    let now = USED.load(Ordering::Relaxed);
    PEAKS[1].store(PEAKS[0].swap(now, Ordering::Relaxed), Ordering::Relaxed);
    release(|blocks| blocks.spare);
}

/// Returns every cached block to the allocator.
pub fn cleanup() {
    release(|blocks| blocks.free.len());
}

/// Returns the first of the free blocks of each class to the allocator.
fn release(number: impl Fn(&Blocks) -> usize) {
    for index in 0..CLASSES {
        let class = Class(index as u8);
        let unused: Vec<_> = {
            let mut blocks = list(class);
            let number = number(&blocks);
            let unused = blocks.free.drain(..number).collect();
            blocks.spare = blocks.free.len();
            unused
        };
        CACHED.fetch_sub(unused.len() * class.bytes(), Ordering::Relaxed);
        for ptr in unused {
            // SAFETY: `take` allocated it for this class.
            unsafe { class.release(ptr) };
        }
    }
}

/// Bytes that are cached and not in use.
pub fn cached_bytes() -> usize {
    CACHED.load(Ordering::Relaxed)
}

/// Unused bytes that may be cached, if a limit has been set.
pub fn cache_limit() -> Option<usize> {
    Some(LIMIT.get()).filter(|&bytes| bytes != AUTOMATIC)
}

/// Bytes that tensors may take in all, if there is a limit.
pub fn memory_limit() -> Option<usize> {
    Some(MEMORY.get()).filter(|&bytes| bytes != usize::MAX)
}

/// Sets the maximum number of unused cached bytes; zero disables the cache. The default is 1 GiB, or the peak of the
/// tensors of the last 10 to 20 s minus their current size.
pub fn set_cache_limit(bytes: usize) {
    LIMIT.set(bytes.min(AUTOMATIC - 1));
    if cached_bytes() > bytes {
        cleanup();
    }
}

/// Sets the maximum number of bytes of all tensors, including cached blocks (default: no limit). Above it operations
/// fail with [`OutOfMemory`](crate::TensorError::OutOfMemory). Tensors below 4 KiB are not counted.
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

    /// One test: periods are those of the process.
    #[test]
    fn blocks_come_back_until_a_period_has_not_needed_them() {
        // Size classes that no other test uses; their memory is never touched.
        let class = Class::of(77 << 20).unwrap();
        let free = |class| list(class).free.len();
        let use_at_once = |number: usize, class| {
            let blocks: Vec<_> = (0..number).map(|_| take(class).unwrap()).collect();
            blocks.into_iter().for_each(|ptr| give_back(ptr, class));
        };
        let a = take(class).unwrap();
        give_back(a, class);
        assert_eq!(take(class), Some(a));
        give_back(a, class);
        assert!(cached_bytes() >= class.bytes());

        let class = Class::of(93 << 20).unwrap();
        use_at_once(3, class);
        end_period();
        assert_eq!(free(class), 3, "all were in use");
        use_at_once(2, class);
        end_period();
        assert_eq!(free(class), 2, "one lay unused");
        end_period();
        assert_eq!(free(class), 0);

        // The cache holds as much as was in use at the peak.
        let class = Class::of(1 << 30).unwrap();
        use_at_once(4, class);
        assert_eq!(free(class), 4);
        assert!(room() >= 3 << 30);
        end_period();
        end_period();
        assert_eq!(room(), KEPT);
        assert_eq!(free(class), 0);
    }
}
