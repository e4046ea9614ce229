//! A process-wide cache of memory blocks by size class.
//!
//! ```text
//! mod     classes, blocks that are kept, limits
//! memory  blocks from the system
//! ```
//!
//! A fresh 4 MiB block costs a thousand page faults, more than adding its million floats. Freed blocks are therefore
//! cached and reused, up to [`set_cache_limit`] bytes in total. Without a limit, as many bytes are cached as tensors
//! recently used at the same time, so that the steps of a loop make no system calls and the process does not grow.
//! Blocks unused for a period of 10 s are returned to the system at its end, at the next allocation or release. Classes
//! are 2ᵉ·(1, 1¼, 1½, 1¾); the unused part of a block is never touched, so it takes address space but no memory.
//!
//! Blocks of 2 MiB and more request huge pages from Linux: 512 times fewer page faults, and fewer TLB misses for large
//! strides (bench `backend`, row `transpose copy 1024²`).

mod memory;

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use t4a_algebra::environment::{Variable, bytes};

use crate::setting::ByteSetting;

/// Alignment of pooled blocks: one cache line, and the widest vector register.
pub const ALIGN: usize = 64;
/// Smallest pooled block in bytes.
pub const SMALLEST: usize = 1 << SMALLEST_LOG2;
const SMALLEST_LOG2: u32 = 12;
/// Largest pooled block is below 2⁴⁸ bytes.
const CLASSES: usize = (48 - SMALLEST_LOG2 as usize) * 4;
/// Number of bytes always cached, unless a limit is set.
const KEPT: usize = 1 << 27;
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
}

/// Free blocks of a class.
struct Blocks {
    free: Vec<NonNull<u8>>,
    /// Minimum number of cached blocks of the class in this period: the first `spare` blocks were not needed.
    spare: usize,
}
// SAFETY: the pointers own their blocks.
unsafe impl Send for Blocks {}

/// Unused bytes that may be cached, in the environment.
pub(crate) const CACHE_VARIABLE: Variable<usize> =
    Variable::new("T4A_CACHE_LIMIT", "a number of bytes", bytes);
/// Bytes that tensors may take, in the environment.
pub(crate) const MEMORY_VARIABLE: Variable<usize> =
    Variable::new("T4A_MEMORY_LIMIT", "a number of bytes", bytes);

/// Blocks of all classes, cached and in use.
struct Pool {
    cache: [Mutex<Blocks>; CLASSES],
    /// Bytes that are cached and not in use.
    cached: AtomicUsize,
    /// Bytes of all blocks, cached and in use.
    held: AtomicUsize,
    /// Bytes of blocks in use.
    used: AtomicUsize,
    /// Maximum number of bytes in use, in this period and in the previous one.
    peaks: [AtomicUsize; 2],
    cache_limit: ByteSetting,
    memory_limit: ByteSetting,
}

/// The pool of the process.
static POOL: Pool = Pool::new();

impl Pool {
    const fn new() -> Self {
        Self {
            cache: [const { Mutex::new(Blocks { free: Vec::new(), spare: 0 }) }; CLASSES],
            cached: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            peaks: [const { AtomicUsize::new(0) }; 2],
            cache_limit: ByteSetting::new(CACHE_VARIABLE, AUTOMATIC),
            memory_limit: ByteSetting::new(MEMORY_VARIABLE, usize::MAX),
        }
    }

    fn list(&self, class: Class) -> MutexGuard<'_, Blocks> {
        // A panic while holding the lock leaves the list valid.
        self.cache[class.0 as usize].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A block of the class, cached or fresh; `None` if the allocator refuses.
    #[inline]
    fn take(&self, class: Class) -> Option<NonNull<u8>> {
        let cached = {
            let mut blocks = self.list(class);
            let cached = blocks.free.pop();
            blocks.spare = blocks.spare.min(blocks.free.len());
            cached
        };
        let block = match cached {
            Some(ptr) => {
                self.cached.fetch_sub(class.bytes(), Ordering::Relaxed);
                ptr
            }
            None => self.allocate(class).or_else(|| {
                self.cleanup();
                self.allocate(class)
            })?,
        };
        let now = self.used.fetch_add(class.bytes(), Ordering::Relaxed) + class.bytes();
        let peak = &self.peaks[0];
        if now > peak.load(Ordering::Relaxed) {
            peak.fetch_max(now, Ordering::Relaxed);
        }
        Some(block)
    }

    /// Returns a block allocated by [`Self::take`] for the same class.
    #[inline]
    fn give_back(&self, ptr: NonNull<u8>, class: Class) {
        let bytes = class.bytes();
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        if self.cached.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.room() {
            self.list(class).free.push(ptr);
        } else {
            self.cached.fetch_sub(bytes, Ordering::Relaxed);
            // SAFETY: `take` allocated it for this class.
            unsafe { self.free(ptr, class) };
        }
    }

    /// A block from the system.
    fn allocate(&self, class: Class) -> Option<NonNull<u8>> {
        let bytes = class.bytes();
        // A rejected request does not temporarily reduce the memory available to others.
        let limit = self.memory_limit.get();
        let fits = |held: usize| held.checked_add(bytes).filter(|&held| held <= limit);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).ok()?;
        let block = memory::allocate(bytes);
        if block.is_none() {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        block
    }

    /// Returns a block to the system.
    ///
    /// # Safety
    /// `allocate` of this pool and class returned the pointer, and no reference to the block exists.
    unsafe fn free(&self, ptr: NonNull<u8>, class: Class) {
        // SAFETY: the caller's contract.
        unsafe { memory::free(ptr, class.bytes()) };
        self.held.fetch_sub(class.bytes(), Ordering::Relaxed);
    }

    /// Bytes that may be cached now.
    fn room(&self) -> usize {
        match self.cache_limit.get() {
            AUTOMATIC => {
                let peak = self.peaks.iter().map(|peak| peak.load(Ordering::Relaxed)).max();
                peak.unwrap_or(0).saturating_sub(self.used.load(Ordering::Relaxed)).max(KEPT)
            }
            set => set,
        }
    }

    /// Returns blocks to the allocator that were not needed since the last call.
    fn end_period(&self) {
        let now = self.used.load(Ordering::Relaxed);
        self.peaks[1].store(self.peaks[0].swap(now, Ordering::Relaxed), Ordering::Relaxed);
        self.release(|blocks| blocks.spare);
    }

    /// Returns every cached block to the allocator.
    fn cleanup(&self) {
        self.release(|blocks| blocks.free.len());
    }

    /// Returns the first of the free blocks of each class to the allocator.
    fn release(&self, number: impl Fn(&Blocks) -> usize) {
        for index in 0..CLASSES {
            let class = Class(index as u8);
            let unused: Vec<_> = {
                let mut blocks = self.list(class);
                let number = number(&blocks);
                let unused = blocks.free.drain(..number).collect();
                blocks.spare = blocks.free.len();
                unused
            };
            self.cached.fetch_sub(unused.len() * class.bytes(), Ordering::Relaxed);
            for ptr in unused {
                // SAFETY: `take` allocated it for this class.
                unsafe { self.free(ptr, class) };
            }
        }
    }
}

/// A block of the class, cached or fresh; `None` if the allocator refuses.
// Out of line: small tensors, which need no pool, would save its registers.
#[inline(never)]
pub(crate) fn take(class: Class) -> Option<NonNull<u8>> {
    POOL.take(class)
}

/// Returns a block allocated by [`take`] for the same class.
// Out of line: small tensors, which need no pool, would save its registers.
#[inline(never)]
pub(crate) fn give_back(ptr: NonNull<u8>, class: Class) {
    /// Calls, to look at the clock now and then.
    static RETURNED: AtomicU64 = AtomicU64::new(0);
    POOL.give_back(ptr, class);
    if RETURNED.fetch_add(1, Ordering::Relaxed).is_multiple_of(64) {
        look_at_the_clock();
    }
}

/// Ends the period of the process's pool if its time is over.
fn look_at_the_clock() {
    static START: OnceLock<Instant> = OnceLock::new();
    /// End of the period in milliseconds since the first look.
    static END: AtomicU64 = AtomicU64::new(0);
    let now = START.get_or_init(Instant::now).elapsed().as_millis() as u64;
    let end = END.load(Ordering::Relaxed);
    let next = now + PERIOD.as_millis() as u64;
    let mine = || END.compare_exchange(end, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
    // The first look begins the first period.
    if now >= end && mine() && end > 0 {
        POOL.end_period();
    }
}

/// Returns every cached block to the allocator.
pub fn cleanup() {
    POOL.cleanup();
}

/// Bytes that are cached and not in use.
pub fn cached_bytes() -> usize {
    POOL.cached.load(Ordering::Relaxed)
}

/// Unused bytes that may be cached, if a limit has been set.
pub fn cache_limit() -> Option<usize> {
    Some(POOL.cache_limit.get()).filter(|&bytes| bytes != AUTOMATIC)
}

/// Bytes that tensors may take in all, if there is a limit.
pub fn memory_limit() -> Option<usize> {
    Some(POOL.memory_limit.get()).filter(|&bytes| bytes != usize::MAX)
}

/// Sets the maximum number of unused cached bytes; zero disables the cache. The default is 128 MiB, or the peak of
/// the tensors of the last 10 to 20 s minus their current size.
pub fn set_cache_limit(bytes: usize) {
    POOL.cache_limit.set(bytes.min(AUTOMATIC - 1));
    if cached_bytes() > bytes {
        cleanup();
    }
}

/// Sets the maximum number of bytes of all tensors, including cached blocks (default: no limit). Above it operations
/// fail with [`OutOfMemory`](crate::TensorError::OutOfMemory). Tensors below 4 KiB are not counted.
pub fn set_memory_limit(bytes: usize) {
    POOL.memory_limit.set(bytes);
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
    fn blocks_come_back_until_a_period_has_not_needed_them() {
        // The memory of these blocks is never touched.
        static POOL: Pool = Pool::new();
        let cached = || POOL.cached.load(Ordering::Relaxed);
        let free = |class| POOL.list(class).free.len();
        let use_at_once = |number: usize, class| {
            let blocks: Vec<_> = (0..number).map(|_| POOL.take(class).unwrap()).collect();
            blocks.into_iter().for_each(|ptr| POOL.give_back(ptr, class));
        };
        let class = Class::of(7 << 20).unwrap();
        let a = POOL.take(class).unwrap();
        POOL.give_back(a, class);
        assert_eq!(POOL.take(class), Some(a));
        POOL.give_back(a, class);
        assert_eq!(cached(), class.bytes());

        let class = Class::of(9 << 20).unwrap();
        use_at_once(3, class);
        POOL.end_period();
        assert_eq!(free(class), 3, "all were in use");
        use_at_once(2, class);
        POOL.end_period();
        assert_eq!(free(class), 2, "one lay unused");
        POOL.end_period();
        assert_eq!(free(class), 0);
        assert_eq!(cached(), 0);

        // The cache holds as much as was in use at the peak.
        let class = Class::of(1 << 30).unwrap();
        use_at_once(4, class);
        assert_eq!(free(class), 4);
        assert_eq!(POOL.room(), 4 << 30);
        POOL.end_period();
        POOL.end_period();
        assert_eq!(POOL.room(), KEPT);
        assert_eq!(free(class), 0);
        assert_eq!(POOL.held.load(Ordering::Relaxed), 0);
    }
}
