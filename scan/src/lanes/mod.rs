//! Recurrences along an axis, many lanes at a time.
//!
//! ```text
//! memory        outer × n × inner; a lane is one (outer, inner) and runs along n
//! columns       neighbouring lanes side by side in vectors: inner is large
//! gathered      lanes that lie apart, brought together tile by tile: inner is small
//! chunks        few long lanes, cut into chunks of a fixed length that run as lanes of their own
//! ```
//!
//! Threads share lanes and never the time of one. Where lanes are cut, lengths alone decide: results do
//! not depend on the number of threads.

mod chunks;
mod columns;
mod gathered;

use std::array::from_fn;

use t4a_algebra::Scalar;
use t4a_algebra::parallel::{self, SendPtr};
use t4a_algebra::simd::{Loop, dispatch};
use t4a_tensor::{Buffer, Layout, Result, Tensor, TensorError};

pub(crate) use chunks::{Total, walk};

/// Lanes that are computed together in vectors. Loops over fewer are unrolled before they could be
/// vectorised.
const WIDTH: usize = 32;
/// Lanes of a block whose state stays in the first-level cache.
const BLOCK: usize = 128;

/// One step of a lane: `(state, x) ↦ (state, y)`.
pub(crate) trait LaneStep<T: Scalar, const I: usize, const S: usize, const O: usize>:
    Copy + Sync
{
    /// Work per step in additions; it decides about threads.
    const COST: usize = 1;

    /// The step.
    fn step(self, state: [T; S], x: [T; I]) -> ([T; S], [T; O]);
}

/// One step of [`WIDTH`] lanes, in arrays of their own: nothing overlaps, so that the loop is vectorised.
#[inline(always)]
fn together<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize>(
    kernel: K,
    x: &[[T; WIDTH]; I],
    state: &mut [[T; WIDTH]; S],
    y: &mut [[T; WIDTH]; O],
) {
    for i in 0..WIDTH {
        let (after, out) = kernel.step(from_fn(|s| state[s][i]), from_fn(|k| x[k][i]));
        for s in 0..S {
            state[s][i] = after[s];
        }
        for o in 0..O {
            y[o][i] = out[o];
        }
    }
}

/// One value per lane.
#[derive(Clone, Copy)]
pub(crate) enum PerLane<'a, T> {
    /// The same one.
    Same(T),
    /// As many as there are lanes, in the order of memory.
    Each(&'a [T]),
}

impl<T: Copy> PerLane<'_, T> {
    #[inline(always)]
    fn get(&self, lane: usize) -> T {
        match self {
            Self::Same(x) => *x,
            Self::Each(x) => x[lane],
        }
    }
}

/// An operand.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, T> {
    /// The elements, `outer × n × inner` of them.
    pub(crate) data: &'a [T],
    /// If given, a step reads the element of the step after it, and this one if there is none.
    pub(crate) ahead: Option<PerLane<'a, T>>,
}

impl<'a, T> Source<'a, T> {
    /// Read at its own time.
    pub(crate) fn now(data: &'a [T]) -> Self {
        Self { data, ahead: None }
    }
}

/// Sizes of operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) outer: usize,
    pub(crate) n: usize,
    pub(crate) inner: usize,
}

impl Extent {
    /// Of a shape, along an axis that it has.
    pub(crate) fn new(shape: &[usize], axis: usize) -> Self {
        Self {
            outer: shape[..axis].iter().product(),
            n: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }

    /// How many lanes there are.
    pub(crate) fn lanes(self) -> usize {
        self.outer * self.inner
    }

    fn len(self) -> usize {
        self.lanes() * self.n
    }
}

/// What is computed: `sources` from `start`, forwards or backwards in time.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a, T, const I: usize, const S: usize> {
    pub(crate) extent: Extent,
    pub(crate) reverse: bool,
    pub(crate) sources: [Source<'a, T>; I],
    pub(crate) start: [PerLane<'a, T>; S],
}

/// The outputs, `outer × n × inner` elements each, and the last states, one per lane.
pub(crate) struct Walked<T, const S: usize, const O: usize> {
    pub(crate) outputs: [Tensor<T>; O],
    pub(crate) last: [Tensor<T>; S],
}

/// Memory to be written, flat.
struct Fresh<T> {
    buffer: Buffer,
    first: SendPtr<T>,
    len: usize,
}

impl<T: Scalar> Fresh<T> {
    fn new(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let overflow = || TensorError::SizeOverflow { op: "scan", shape: vec![len] };
        let mut buffer = Buffer::alloc(bytes.ok_or_else(overflow)?)?;
        let first = buffer.as_mut_ptr().unwrap_or_else(|| unreachable!("fresh memory is unique"));
        Ok(Self { buffer, first: SendPtr(first.cast()), len })
    }

    /// The tensor of these elements, of rank 1.
    ///
    /// # Safety
    /// All of them have been written.
    unsafe fn finish(self) -> Result<Tensor<T>> {
        let layout = Layout::contiguous("scan", &[self.len], size_of::<T>())?;
        // SAFETY: the elements are written, by the caller's promise.
        unsafe { Tensor::from_buffer(self.buffer, layout) }
    }
}

/// `N` buffers of `len` elements.
fn fresh<T: Scalar, const N: usize>(len: usize) -> Result<[Fresh<T>; N]> {
    let all = (0..N).map(|_| Fresh::new(len)).collect::<Result<Vec<_>>>()?;
    Ok(all.try_into().unwrap_or_else(|_| unreachable!("N of them")))
}

/// # Safety
/// As [`Fresh::finish`].
unsafe fn finish<T: Scalar, const N: usize>(all: [Fresh<T>; N]) -> Result<[Tensor<T>; N]> {
    // SAFETY: the caller's promise.
    let all = all.into_iter().map(|x| unsafe { x.finish() }).collect::<Result<Vec<_>>>()?;
    Ok(all.try_into().unwrap_or_else(|_| unreachable!("N of them")))
}

/// Where lanes lie: entry `g` of `groups` begins at time `g·stride` of its row, and every lane has `len`
/// steps. A row is one (outer, inner); without chunks a group is all of the time.
#[derive(Clone, Copy)]
struct Cut {
    /// The first time of group 0.
    first: usize,
    groups: usize,
    /// Steps of a lane, which is also the distance of groups.
    len: usize,
}

/// One pass of a kernel over lanes.
struct Pass<'a, T, K, const I: usize, const S: usize, const O: usize> {
    kernel: K,
    extent: Extent,
    reverse: bool,
    cut: Cut,
    sources: [Source<'a, T>; I],
    /// By lane: `(outer · groups + group) · inner + inner index`.
    start: [PerLane<'a, T>; S],
    outputs: [SendPtr<T>; O],
    /// By lane.
    last: [SendPtr<T>; S],
}

impl<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize>
    Pass<'_, T, K, I, S, O>
{
    fn lanes(&self) -> usize {
        self.extent.lanes() * self.cut.groups
    }

    /// Runs over all lanes, on several threads where that pays.
    ///
    /// # Safety
    /// Sources have as many elements as the extent says, outputs room for as many, `last` and `start` for
    /// the lanes; nobody else uses what is written.
    unsafe fn run(&self) {
        if self.cut.groups != 1 || self.extent.inner < WIDTH / 2 {
            // SAFETY: the caller's promise.
            return unsafe { self.gather() };
        }
        let parallel = self.check();
        let blocks = self.extent.inner.div_ceil(BLOCK);
        parallel::for_each(self.extent.outer * blocks, parallel, &|unit| {
            let (outer, first) = (unit / blocks, unit % blocks * BLOCK);
            let width = (self.extent.inner - first).min(BLOCK);
            // Units have lanes of their own.
            dispatch(Columns { pass: self, outer, first, width });
        });
    }

    /// [`Pass::run`] of lanes that need not be neighbours.
    ///
    /// # Safety
    /// As there.
    unsafe fn gather(&self) {
        let parallel = self.check();
        parallel::for_each(self.lanes().div_ceil(WIDTH), parallel, &|unit| {
            dispatch(Gathered { pass: self, first: unit * WIDTH });
        });
    }

    /// Checks the lengths of the sources; whether several threads are worth it.
    fn check(&self) -> bool {
        for source in &self.sources {
            assert_eq!(source.data.len(), self.extent.len());
        }
        parallel::worthwhile(self.lanes() * self.cut.len, K::COST)
    }
}

/// A block of neighbouring lanes.
struct Columns<'a, 'p, T, K, const I: usize, const S: usize, const O: usize> {
    pass: &'p Pass<'a, T, K, I, S, O>,
    outer: usize,
    first: usize,
    width: usize,
}

/// Up to [`WIDTH`] lanes from this one on.
struct Gathered<'a, 'p, T, K, const I: usize, const S: usize, const O: usize> {
    pass: &'p Pass<'a, T, K, I, S, O>,
    first: usize,
}

impl<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize> Loop
    for Columns<'_, '_, T, K, I, S, O>
{
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: made in `Pass::run`, whose caller has promised it.
        unsafe { columns::run(self.pass, self.outer, self.first, self.width) }
    }
}

impl<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize> Loop
    for Gathered<'_, '_, T, K, I, S, O>
{
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: made in `Pass::run`, whose caller has promised it.
        unsafe { gathered::run(self.pass, self.first) }
    }
}
