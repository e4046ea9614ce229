//! Disjoint parts of one or more runs of elements, each for one chunk of work.
//!
//! ```text
//! share((values.parts(k), indices.parts(k)), …, |i, (values, indices)| …)
//! ```
//!
//! The body receives part `i` of uninitialised elements and returns it written; the whole is available after all parts
//! are returned. Parts of initialised elements need no proof.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::OnceLock;

use t4a_algebra::parallel;

use super::{Fresh, Full};
use crate::error::{Result, TensorError};

/// Memory in disjoint parts.
///
/// # Safety
/// Parts of different indices share no element, and `check` returns for whole written parts only.
pub(crate) unsafe trait DisjointParts {
    /// One part.
    type Part;
    /// The proof that it was written.
    type Done;
    /// The whole after all parts are written.
    type Whole;
    /// Number of parts.
    fn count(&self) -> usize;
    /// Part `i`.
    ///
    /// # Safety
    /// `i < count`, and this part is not lent.
    unsafe fn part(&self, i: usize) -> Self::Part;
    /// Panics unless part `i` is written.
    fn check(&self, i: usize, done: Self::Done);
    /// All parts together.
    ///
    /// # Safety
    /// All parts have been checked, and none is lent.
    unsafe fn whole(self) -> Self::Whole;
}

/// Calls `body` on every part, `grain` consecutive parts at a time, on several threads if `parallel`. The first error
/// is returned, and parts that have not started by then are skipped.
pub(crate) fn share<S: DisjointParts + Sync>(
    parts: S,
    grain: usize,
    parallel: bool,
    body: impl Fn(usize, S::Part) -> Result<S::Done> + Sync,
) -> Result<S::Whole> {
    share_with(parts, grain, parallel, || Ok(()), |(), i, part| body(i, part))
}

/// [`share`] with a state that `init` makes for every `grain` parts: scratch, say.
pub(crate) fn share_with<S: DisjointParts + Sync, C>(
    parts: S,
    grain: usize,
    parallel: bool,
    init: impl Fn() -> Result<C> + Sync,
    body: impl Fn(&mut C, usize, S::Part) -> Result<S::Done> + Sync,
) -> Result<S::Whole> {
    for_each_range(parts.count(), grain, parallel, &|range| {
        let mut state = init()?;
        for i in range {
            // SAFETY: i < count, and every index is visited once.
            let part = unsafe { parts.part(i) };
            parts.check(i, body(&mut state, i, part)?);
        }
        Ok(())
    })?;
    // SAFETY: every part was checked: no error and no panic occurred.
    Ok(unsafe { parts.whole() })
}

/// Calls `body` for every range of `grain` indices below `count`, on several threads if `parallel`, and
/// returns the first error. Called through a pointer: compiled once and not per operation.
fn for_each_range(
    count: usize,
    grain: usize,
    parallel: bool,
    body: &(dyn Fn(Range<usize>) -> Result<()> + Sync),
) -> Result<()> {
    let grain = grain.max(1);
    let failure: OnceLock<TensorError> = OnceLock::new();
    parallel::for_each(count.div_ceil(grain), parallel, &|i| {
        if failure.get().is_none()
            && let Err(error) = body(i * grain..((i + 1) * grain).min(count))
        {
            let _ = failure.set(error);
        }
    });
    failure.into_inner().map_or(Ok(()), Err)
}

/// Groups of `group` elements, each in parts of `len` elements; the last part may be shorter.
#[derive(Clone, Copy)]
struct Chunking {
    groups: usize,
    group: usize,
    per_group: usize,
    len: usize,
}

impl Chunking {
    fn new(numel: usize, group: usize, len: usize) -> Self {
        if numel == 0 {
            return Self { groups: 0, group, per_group: 1, len };
        }
        assert!(numel.is_multiple_of(group));
        Self { groups: numel / group, group, per_group: group.div_ceil(len), len }
    }

    /// `count` parts of the same length, which may be 0.
    fn equal(numel: usize, count: usize) -> Self {
        let len = numel.checked_div(count).unwrap_or(0);
        assert_eq!(len * count, numel);
        Self { groups: count, group: len, per_group: 1, len }
    }

    #[inline(always)]
    fn count(&self) -> usize {
        self.groups * self.per_group
    }

    /// Elements of part `i`.
    #[inline(always)]
    fn range(&self, i: usize) -> Range<usize> {
        // One part per group is the usual case, and divisions are expensive.
        let (group, part) = match self.per_group {
            1 => (i, 0),
            count => (i / count, i % count),
        };
        let from = part * self.len;
        let len = self.len.min(self.group - from);
        group * self.group + from..group * self.group + from + len
    }
}

/// Parts of a run that is not written yet.
pub(crate) struct RunParts<'a, T> {
    first: *mut T,
    cut: Chunking,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: threads access disjoint parts.
unsafe impl<T: Send> Sync for RunParts<'_, T> {}

impl<'a, T: Copy> Fresh<'a, T> {
    /// Parts of `len` elements; the last one may be shorter.
    #[inline(always)]
    pub(crate) fn parts(self, len: usize) -> RunParts<'a, T> {
        let numel = self.len();
        self.cut(Chunking::new(numel, numel, len))
    }

    /// `count` parts of the same length, which may be 0.
    pub(crate) fn equal_parts(self, count: usize) -> RunParts<'a, T> {
        let numel = self.len();
        self.cut(Chunking::equal(numel, count))
    }

    /// Parts of `len` elements within every group of `group` elements.
    pub(crate) fn parts_of_groups(self, group: usize, len: usize) -> RunParts<'a, T> {
        let numel = self.len();
        self.cut(Chunking::new(numel, group, len))
    }

    #[inline(always)]
    fn cut(self, cut: Chunking) -> RunParts<'a, T> {
        RunParts { first: self.0.as_mut_ptr().cast(), cut, len: self.0.len(), life: PhantomData }
    }

    /// Parts from one of the `bounds` to the next. They begin with 0, do not fall, and end with the
    /// number of elements.
    pub(crate) fn between(self, bounds: &[usize]) -> Between<'a, '_, T> {
        assert!(bounds.is_sorted());
        assert_eq!((bounds.first(), bounds.last()), (Some(&0), Some(&self.len())));
        Between { first: self.0.as_mut_ptr().cast(), bounds, life: PhantomData }
    }

    /// Has `f` write parts of `len` elements, on several threads if `parallel`.
    pub(crate) fn par_chunks(
        self,
        len: usize,
        parallel: bool,
        f: impl Fn(usize, Fresh<'a, T>) -> Full<'a, T> + Sync,
    ) -> Full<'a, T>
    where
        T: Send,
    {
        let parts = self.parts(len);
        parallel::for_each(parts.count(), parallel, &|i| {
            // SAFETY: i < count, and every index is visited once.
            parts.check(i, f(i, unsafe { parts.part(i) }));
        });
        // SAFETY: every part was checked.
        unsafe { parts.whole() }
    }
}

// SAFETY: ranges of different parts are disjoint, and `check` compares the addresses.
unsafe impl<'a, T: Copy> DisjointParts for RunParts<'a, T> {
    type Part = Fresh<'a, T>;
    type Done = Full<'a, T>;
    type Whole = Full<'a, T>;
    #[inline(always)]
    fn count(&self) -> usize {
        self.cut.count()
    }
    #[inline(always)]
    unsafe fn part(&self, i: usize) -> Fresh<'a, T> {
        // SAFETY: the range is inside the run and exclusively borrowed.
        Fresh(unsafe { run(self.first, self.cut.range(i)) })
    }
    #[inline(always)]
    fn check(&self, i: usize, done: Full<'a, T>) {
        check(self.first, self.cut.range(i), done);
    }
    #[inline(always)]
    unsafe fn whole(self) -> Full<'a, T> {
        // SAFETY: the parts are the run.
        Full(unsafe { std::slice::from_raw_parts_mut(self.first, self.len) })
    }
}

/// # Safety
/// The elements exist and are exclusively borrowed.
#[inline(always)]
unsafe fn run<'a, T>(first: *mut T, range: Range<usize>) -> &'a mut [MaybeUninit<T>] {
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts_mut(first.add(range.start).cast(), range.len()) }
}

#[inline(always)]
fn check<T>(first: *mut T, range: Range<usize>, done: Full<'_, T>) {
    let part = (first.wrapping_add(range.start).cast_const(), range.len());
    assert!(done.span() == part, "not all was written");
}

/// Parts of different lengths.
pub(crate) struct Between<'a, 'b, T> {
    first: *mut T,
    bounds: &'b [usize],
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: as for `RunParts`.
unsafe impl<T: Send> Sync for Between<'_, '_, T> {}

// SAFETY: the bounds do not fall, and `check` compares the addresses.
unsafe impl<'a, T: Copy> DisjointParts for Between<'a, '_, T> {
    type Part = Fresh<'a, T>;
    type Done = Full<'a, T>;
    type Whole = Full<'a, T>;
    fn count(&self) -> usize {
        self.bounds.len() - 1
    }
    unsafe fn part(&self, i: usize) -> Fresh<'a, T> {
        // SAFETY: the range is inside the run and exclusively borrowed.
        Fresh(unsafe { run(self.first, self.bounds[i]..self.bounds[i + 1]) })
    }
    fn check(&self, i: usize, done: Full<'a, T>) {
        check(self.first, self.bounds[i]..self.bounds[i + 1], done);
    }
    unsafe fn whole(self) -> Full<'a, T> {
        // SAFETY: the parts are the run.
        Full(unsafe { std::slice::from_raw_parts_mut(self.first, self.bounds[self.count()]) })
    }
}

/// Parts of elements that are written already.
pub(crate) struct PartsMut<'a, T>(RunParts<'a, T>);

/// `count` parts of the same length.
pub(crate) fn parts_mut<T>(elements: &mut [T], count: usize) -> PartsMut<'_, T> {
    let cut = Chunking::equal(elements.len(), count);
    let len = elements.len();
    PartsMut(RunParts { first: elements.as_mut_ptr(), cut, len, life: PhantomData })
}

/// Parts of `len` elements within every group of `group` elements; the last one may be shorter.
pub(crate) fn parts_of_groups_mut<T>(
    elements: &mut [T],
    group: usize,
    len: usize,
) -> PartsMut<'_, T> {
    let cut = Chunking::new(elements.len(), group, len);
    let len = elements.len();
    PartsMut(RunParts { first: elements.as_mut_ptr(), cut, len, life: PhantomData })
}

// SAFETY: ranges of different parts are disjoint, and all elements are written.
unsafe impl<'a, T> DisjointParts for PartsMut<'a, T> {
    type Part = &'a mut [T];
    type Done = ();
    type Whole = ();
    #[inline(always)]
    fn count(&self) -> usize {
        self.0.cut.count()
    }
    #[inline(always)]
    unsafe fn part(&self, i: usize) -> &'a mut [T] {
        let range = self.0.cut.range(i);
        // SAFETY: the range is inside the slice and exclusively borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.0.first.add(range.start), range.len()) }
    }
    #[inline(always)]
    fn check(&self, _i: usize, _done: ()) {}
    #[inline(always)]
    unsafe fn whole(self) {}
}

// SAFETY: a part of all is a part of each.
unsafe impl<'a, T, const N: usize> DisjointParts for [PartsMut<'a, T>; N] {
    type Part = [&'a mut [T]; N];
    type Done = ();
    type Whole = ();
    fn count(&self) -> usize {
        let count = self.first().map_or(0, DisjointParts::count);
        assert!(self.iter().all(|parts| parts.count() == count));
        count
    }
    unsafe fn part(&self, i: usize) -> Self::Part {
        // SAFETY: the caller's contract; all have the same number of parts.
        std::array::from_fn(|of| unsafe { self[of].part(i) })
    }
    fn check(&self, _i: usize, _done: ()) {}
    unsafe fn whole(self) {}
}

// SAFETY: a part of the pair is a part of each.
unsafe impl<A: DisjointParts, B: DisjointParts> DisjointParts for (A, B) {
    type Part = (A::Part, B::Part);
    type Done = (A::Done, B::Done);
    type Whole = (A::Whole, B::Whole);
    #[inline(always)]
    fn count(&self) -> usize {
        assert_eq!(self.0.count(), self.1.count());
        self.0.count()
    }
    #[inline(always)]
    unsafe fn part(&self, i: usize) -> Self::Part {
        // SAFETY: the caller's contract; both have the same number of parts.
        unsafe { (self.0.part(i), self.1.part(i)) }
    }
    #[inline(always)]
    fn check(&self, i: usize, done: Self::Done) {
        self.0.check(i, done.0);
        self.1.check(i, done.1);
    }
    #[inline(always)]
    unsafe fn whole(self) -> Self::Whole {
        // SAFETY: passed on.
        unsafe { (self.0.whole(), self.1.whole()) }
    }
}
