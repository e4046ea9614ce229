//! Fold loops over contiguous memory, erased in the types of elements and results.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::slice;

use t4a_algebra::Scalar;

use crate::kernels::fold::Fold;
use crate::loops;

/// Maximum size of a partial result in bytes.
const ACC_BYTES: usize = 16;
/// Kept elements in a tile of partial results: rows of the operand are read in long runs (bench
/// `backend`, row `sum 1024² columns`).
pub(super) const TILE: usize = 1024;

/// Rejects partial results that do not fit, at compile time.
pub(super) const fn assert_storable<A>() {
    assert!(size_of::<A>() <= ACC_BYTES && align_of::<A>() <= 16);
}

/// Room for `N` partial results of any type.
#[repr(C, align(64))]
pub(super) struct Acc<const N: usize>([[MaybeUninit<u8>; ACC_BYTES]; N]);

impl<const N: usize> Acc<N> {
    pub(super) fn new() -> Self {
        Self([[MaybeUninit::uninit(); ACC_BYTES]; N])
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Pairwise combination of the partial results of blocks: the slot of each bit set in the number of blocks so far holds
/// the result of as many blocks as the value of the bit.
pub(super) struct Pairwise {
    /// The only memory if all results fit.
    few: Acc<TILE>,
    memory: Vec<Acc<4>>,
    /// Bytes of a tile.
    size: usize,
    top: usize,
    count: usize,
}

impl Pairwise {
    /// Room for `blocks` tiles of `size` bytes, one by one.
    #[inline]
    pub(super) fn new(blocks: usize, size: usize) -> Self {
        let size = size.next_multiple_of(size_of::<Acc<4>>());
        let slots = blocks.max(1).ilog2() as usize + 1;
        let many = slots * size > size_of::<Acc<TILE>>();
        Self {
            few: Acc::new(),
            memory: Vec::with_capacity(if many { slots * size / size_of::<Acc<4>>() } else { 0 }),
            size,
            top: 0,
            count: 0,
        }
    }

    /// Forgets all results.
    pub(super) fn clear(&mut self) {
        (self.top, self.count) = (0, 0);
    }

    fn slot(&mut self, i: usize) -> *mut u8 {
        let memory = match self.memory.capacity() {
            0 => self.few.as_mut_ptr(),
            _ => self.memory.as_mut_ptr().cast(),
        };
        memory.wrapping_add(i * self.size)
    }

    /// The address for the partial results of the next block.
    pub(super) fn next(&mut self) -> *mut u8 {
        self.slot(self.top)
    }

    /// The next block is done.
    ///
    /// # Safety
    /// Its `len` partial results are written, as those of all blocks before it, which are as many as
    /// promised at most.
    pub(super) unsafe fn done(&mut self, fold: &dyn FoldLoops, len: usize) {
        self.top += 1;
        for _ in 0..self.count.trailing_ones() {
            // SAFETY: the two slots below the top are written.
            unsafe { self.join(fold, len) };
        }
        self.count += 1;
    }

    /// The partial results of all blocks, of which there is one at least.
    ///
    /// # Safety
    /// As [`Pairwise::done`].
    pub(super) unsafe fn finish(&mut self, fold: &dyn FoldLoops, len: usize) -> *mut u8 {
        while self.top > 1 {
            // SAFETY: as above.
            unsafe { self.join(fold, len) };
        }
        self.slot(0)
    }

    unsafe fn join(&mut self, fold: &dyn FoldLoops, len: usize) {
        self.top -= 1;
        let (early, late) = (self.slot(self.top - 1), self.slot(self.top));
        // SAFETY: the caller's contract.
        unsafe { fold.merge(early, late, len) };
    }
}

/// Merges the first `count` slots pairwise into slot 0.
///
/// # Safety
/// Slots of `len` partial results are written.
pub(super) unsafe fn merge_all(
    fold: &dyn FoldLoops,
    slot: &dyn Fn(usize) -> *mut u8,
    count: usize,
    len: usize,
) {
    let mut reach = 1;
    while reach < count {
        for i in (0..count - reach).step_by(2 * reach) {
            // SAFETY: the caller's contract.
            unsafe { fold.merge(slot(i), slot(i + reach), len) };
        }
        reach *= 2;
    }
}

/// Fold loops over contiguous memory, behind raw pointers: the loop over axes is compiled once and not per fold.
///
/// # Safety
/// Pointers are valid and aligned for the element, partial and final types of the fold, and for
/// the lengths given.
pub(super) trait FoldLoops: Sync {
    /// Bytes per element, partial result and result.
    fn sizes(&self) -> [usize; 3];
    /// `acc[..len] ← init`.
    unsafe fn init(&self, acc: *mut u8, len: usize);
    /// `acc ← acc ∘ x₀ ∘ x₁ ∘ …` along a row.
    unsafe fn row(&self, x: *const u8, len: usize, acc: *mut u8);
    /// `outᵢ` ← the result over row i of `rows` rows of `len` elements; pitches count elements
    /// of the operand and of the result.
    unsafe fn rows(&self, x: *const u8, out: *mut u8, pitch: [isize; 2], rows: usize, len: usize);
    /// `accⱼ ← accⱼ ∘ x₀ⱼ ∘ x₁ⱼ ∘ …` across rows; the pitch counts elements.
    unsafe fn columns(&self, rows: usize, x: *const u8, pitch: isize, acc: *mut u8, len: usize);
    /// `accⱼ ← accⱼ ∘ partialⱼ`.
    unsafe fn merge(&self, acc: *mut u8, partial: *const u8, len: usize);
    /// `outⱼ` ← the result of `accⱼ`, a partial result over `n` elements; the pitch counts results.
    unsafe fn finish(&self, acc: *const u8, n: usize, out: *mut u8, pitch: isize, len: usize);
}

pub(super) struct TypedFold<T, F>(F, PhantomData<T>);

impl<F> TypedFold<(), F> {
    /// The loops of a fold over elements `T`.
    pub(super) fn new<T>(fold: F) -> TypedFold<T, F> {
        TypedFold(fold, PhantomData)
    }
}

// SAFETY (every block): the contract of the trait.
#[allow(clippy::undocumented_unsafe_blocks)]
impl<T: Scalar, F: Fold<T>> FoldLoops for TypedFold<T, F> {
    fn sizes(&self) -> [usize; 3] {
        [size_of::<T>(), size_of::<F::Acc>(), size_of::<F::Out>()]
    }
    unsafe fn init(&self, acc: *mut u8, len: usize) {
        let acc = unsafe { slice::from_raw_parts_mut(acc.cast::<MaybeUninit<F::Acc>>(), len) };
        acc.fill(MaybeUninit::new(self.0.init()));
    }
    unsafe fn row(&self, x: *const u8, len: usize, acc: *mut u8) {
        unsafe {
            let partial = loops::fold::row(self.0, slice::from_raw_parts(x.cast::<T>(), len));
            let acc = acc.cast::<F::Acc>();
            acc.write(self.0.merge(acc.read(), partial));
        }
    }
    unsafe fn rows(&self, x: *const u8, out: *mut u8, pitch: [isize; 2], rows: usize, len: usize) {
        let (x, out) = (x.cast::<T>(), out.cast::<F::Out>());
        for i in 0..rows as isize {
            unsafe {
                let row = slice::from_raw_parts(x.offset(i * pitch[0]), len);
                out.offset(i * pitch[1]).write(self.0.finish(loops::fold::row(self.0, row), len));
            }
        }
    }
    unsafe fn columns(&self, rows: usize, x: *const u8, pitch: isize, acc: *mut u8, len: usize) {
        unsafe {
            let acc = slice::from_raw_parts_mut(acc.cast::<F::Acc>(), len);
            loops::fold::columns(self.0, rows, x.cast::<T>(), pitch, acc);
        }
    }
    unsafe fn merge(&self, acc: *mut u8, partial: *const u8, len: usize) {
        unsafe {
            let acc = slice::from_raw_parts_mut(acc.cast::<F::Acc>(), len);
            let partial = slice::from_raw_parts(partial.cast::<F::Acc>(), len);
            for (acc, &partial) in acc.iter_mut().zip(partial) {
                *acc = self.0.merge(*acc, partial);
            }
        }
    }
    unsafe fn finish(&self, acc: *const u8, n: usize, out: *mut u8, pitch: isize, len: usize) {
        let acc = unsafe { slice::from_raw_parts(acc.cast::<F::Acc>(), len) };
        for (j, &acc) in acc.iter().enumerate() {
            let out = out.cast::<F::Out>().wrapping_offset(j as isize * pitch);
            unsafe { out.write(self.0.finish(acc, n)) };
        }
    }
}
