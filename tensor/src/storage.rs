//! Shared, aligned, copy-on-write memory.
//!
//! A [`Buffer`] is a reference-counted block of bytes. Blocks of 4 KiB and more are allocated from a process-wide cache
//! of size classes ([`pool`]), because fresh pages cost more than the arithmetic on them; smaller ones from the
//! allocator. Foreign memory is held through its owner, so that data is shared between libraries without a copy.
//!
//! Invariant: once a buffer is inside a tensor, its `len` bytes are initialised. It is written
//! only while it has a single owner.

use std::alloc::{Layout as AllocLayout, alloc, dealloc};
use std::any::Any;
use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::error::{Result, TensorError};
use crate::pool;

pub use crate::pool::ALIGN;
/// Alignment of small blocks, as guaranteed by the system allocator.
const SMALL_ALIGN: usize = 16;

/// Blocks up to this size are stored in their header: one allocation instead of two (bench `backend`, row `add 4×4`).
const INLINE: usize = 128;

/// Owner of a block, which frees it.
enum Owner {
    /// The block is inside the header.
    Inline,
    /// A block smaller than [`pool::SMALLEST`], from the global allocator.
    Small,
    /// A block of the given size class, from the pool.
    Pool(pool::Class),
    /// Memory that lives as long as the owner; never written through this buffer.
    Foreign(#[allow(dead_code)] Box<dyn Any + Send + Sync>),
}

struct Allocation {
    /// First byte, unless the block is inline.
    ptr: NonNull<u8>,
    len: usize,
    owner: Owner,
    inline: Inline,
}

/// Memory of a small block, aligned like one from the allocator. All access is through pointers from the cell, never
/// through a reference to the block, so that existing pointers stay valid.
#[repr(align(16))]
struct Inline(UnsafeCell<MaybeUninit<[u8; INLINE]>>);

impl Inline {
    #[inline(always)]
    const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }
}

// SAFETY: a block is plain memory; writes need a `Buffer` that is its only handle.
unsafe impl Send for Allocation {}
// SAFETY: shared access only reads.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// First byte.
    #[inline]
    fn first(&self) -> *mut u8 {
        match self.owner {
            Owner::Inline => self.inline.0.get().cast(),
            _ => self.ptr.as_ptr(),
        }
    }
}

impl Drop for Allocation {
    #[inline]
    fn drop(&mut self) {
        match self.owner {
            // SAFETY: allocated by `Buffer::alloc` with this layout.
            Owner::Small => unsafe { dealloc(self.ptr.as_ptr(), small_layout(self.len)) },
            Owner::Pool(class) => pool::give_back(self.ptr, class),
            Owner::Foreign(_) | Owner::Inline => {}
        }
    }
}

fn small_layout(len: usize) -> AllocLayout {
    // SAFETY: the alignment is a power of two and len < pool::SMALLEST, so nothing overflows.
    unsafe { AllocLayout::from_size_align_unchecked(len.max(1), SMALL_ALIGN) }
}

/// A vector of `len` elements for the operation `op`, where `len` is a user input.
///
/// # Errors
/// [`TensorError::OutOfMemory`].
pub(crate) fn collect<T>(
    op: &'static str,
    len: usize,
    elements: impl Iterator<Item = T>,
) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    out.try_reserve_exact(len).map_err(|_| TensorError::OutOfMemory { op, bytes })?;
    out.extend(elements.take(len));
    Ok(out)
}

/// A reference-counted block of bytes. Cloning shares it.
#[derive(Clone)]
pub struct Buffer(Arc<Allocation>);

impl Buffer {
    /// Unwritten memory and its first byte.
    ///
    /// # Errors
    /// As [`Buffer::alloc`].
    #[inline]
    pub(crate) fn fresh(op: &'static str, len: usize) -> Result<(Self, *mut u8)> {
        let mut buffer = Self::alloc(op, len)?;
        // A fresh buffer has one owner, so there is a pointer.
        let ptr = buffer.as_mut_ptr().unwrap_or(std::ptr::null_mut());
        Ok((buffer, ptr))
    }

    /// Allocates `len` uninitialised bytes for the operation `op`.
    ///
    /// # Errors
    /// [`TensorError::OutOfMemory`].
    pub fn alloc(op: &'static str, len: usize) -> Result<Self> {
        if len <= INLINE {
            let (ptr, owner) = (NonNull::dangling(), Owner::Inline);
            return Ok(Self(Arc::new(Allocation { ptr, len, owner, inline: Inline::new() })));
        }
        let (ptr, owner) = if len < pool::SMALLEST {
            // SAFETY: the layout has a nonzero size.
            let ptr = NonNull::new(unsafe { alloc(small_layout(len)) });
            (ptr, Owner::Small)
        } else {
            match pool::Class::of(len) {
                Some(class) => (pool::take(class), Owner::Pool(class)),
                None => (None, Owner::Small),
            }
        };
        let ptr = ptr.ok_or(TensorError::OutOfMemory { op, bytes: len })?;
        Ok(Self(Arc::new(Allocation { ptr, len, owner, inline: Inline::new() })))
    }

    /// Wraps foreign memory without copying it. The buffer counts as shared: operations never
    /// write into it.
    ///
    /// # Safety
    /// `ptr` is valid for reads of `len` initialised bytes, unchanged, for as long as `owner`
    /// lives.
    pub unsafe fn from_foreign(
        ptr: NonNull<u8>,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        let owner = Owner::Foreign(owner);
        Self(Arc::new(Allocation { ptr, len, owner, inline: Inline::new() }))
    }

    /// Length in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// First byte.
    #[inline]
    pub fn as_ptr(&self) -> *const u8 {
        self.0.first()
    }

    /// First byte for writing; only for the single owner of memory of the engine.
    #[inline]
    pub fn as_mut_ptr(&mut self) -> Option<*mut u8> {
        // `Arc::get_mut` without the `&mut Allocation`, which would invalidate pointers returned before. There are no weak
        // handles, and `&mut self` excludes concurrent clones.
        if Arc::strong_count(&self.0) != 1 {
            return None;
        }
        // Synchronises with the release of other handles.
        fence(Ordering::Acquire);
        match self.0.owner {
            Owner::Foreign(_) => None,
            _ => Some(self.0.first()),
        }
    }

    /// True if this is the only handle to memory of the engine, so that it may be overwritten.
    #[inline]
    pub fn is_unique(&mut self) -> bool {
        self.as_mut_ptr().is_some()
    }

    /// True if operations must not overwrite this memory: there are other handles to it, or it is foreign.
    #[inline]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) != 1 || matches!(self.0.owner, Owner::Foreign(_))
    }

    /// True if two buffers are the same memory.
    #[inline]
    pub fn same_memory(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Copies the bytes to a new buffer.
    pub fn duplicate(&self) -> Result<Self> {
        let mut copy = Self::alloc("copy", self.len())?;
        if let Some(dst) = copy.as_mut_ptr() {
            // SAFETY: both blocks hold `len` bytes and do not overlap.
            unsafe { std::ptr::copy_nonoverlapping(self.as_ptr(), dst, self.len()) };
        }
        Ok(copy)
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffer").field("ptr", &self.as_ptr()).field("len", &self.0.len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharing_forbids_writing() {
        let mut a = Buffer::alloc("test", 100_000).unwrap();
        assert!(a.is_unique());
        let b = a.clone();
        assert!(!a.is_unique() && a.is_shared() && b.is_shared());
        drop(b);
        assert!(!a.is_shared());
        assert!(a.is_unique());
        assert_eq!(a.as_ptr() as usize % ALIGN, 0);
    }

    #[test]
    fn foreign_memory_is_read_in_place_and_outlives_its_handle() {
        let data = vec![1u8, 2, 3];
        let ptr = NonNull::new(data.as_ptr().cast_mut()).unwrap();
        // SAFETY: the vector is moved into the owner, and its heap block is not moved.
        let mut buffer = unsafe { Buffer::from_foreign(ptr, 3, Box::new(data)) };
        assert!(!buffer.is_unique() && buffer.is_shared());
        let copy = buffer.duplicate().unwrap();
        assert_eq!(buffer.as_ptr(), ptr.as_ptr());
        // SAFETY: three initialised bytes each.
        unsafe {
            assert_eq!(std::slice::from_raw_parts(copy.as_ptr(), 3), &[1, 2, 3]);
        }
    }

    #[test]
    fn absurd_sizes_are_refused() {
        for bytes in [1usize << 60, isize::MAX as usize, usize::MAX] {
            let (op, error) = ("test", Buffer::alloc("test", bytes).unwrap_err());
            assert_eq!(error, TensorError::OutOfMemory { op, bytes });
        }
    }
}
