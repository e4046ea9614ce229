//! Recurrences along an axis, many lanes at a time.
//!
//! ```text
//! memory        outer × n × inner; a lane is one (outer, inner) and runs along n
//! columns       adjacent lanes in SIMD vectors, for large inner
//! gathered      strided lanes, transposed tile by tile, for small inner
//! chunks        a few long lanes, cut into chunks of fixed length that are executed as separate lanes
//! ```
//!
//! Threads partition lanes, never the steps of one lane. Chunk boundaries depend only on the length, so results do not
//! depend on the number of threads.

mod chunks;
mod columns;
mod gathered;

use std::array::from_fn;

use t4a_algebra::Scalar;
use t4a_algebra::parallel::{self, SendPtr};
use t4a_algebra::simd::{Loop, dispatch};
use t4a_tensor::{Buffer, Layout, Result, Tensor, TensorError};

pub(crate) use chunks::{ComposedMap, walk};

/// Number of lanes computed together in vectors. With fewer lanes the compiler unrolls the loop before it can vectorise
/// it.
const WIDTH: usize = 32;
/// Number of lanes in a block, whose states fit in the L1 cache.
const BLOCK: usize = 128;

/// Number of steps of a run, a multiple of the steps of a tile.
pub(crate) const RUN: usize = 32;

/// One step of a lane: `(state, x) ↦ (state, y)`.
pub(crate) trait LaneStep<T: Scalar, const I: usize, const S: usize, const O: usize>:
    Copy + Sync
{
    /// Cost per step in units of one addition; used to decide on multithreading.
    const COST: usize = 1;
    /// True if [`LaneStep::restart`] runs after every [`RUN`] steps of a lane.
    const RESTARTS: bool = false;

    /// The step.
    fn step(self, state: [T; S], x: [T; I]) -> ([T; S], [T; O]);

    /// Moves what a run of steps has accumulated into the part of the state for all earlier runs.
    #[inline(always)]
    fn restart(self, state: [T; S]) -> [T; S] {
        state
    }
}

/// One step of [`WIDTH`] lanes in separate arrays: they do not alias, so the loop vectorises.
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

/// [`LaneStep::restart`] of `N` lanes.
#[inline(always)]
fn restart<
    T: Scalar,
    K: LaneStep<T, I, S, O>,
    const I: usize,
    const S: usize,
    const O: usize,
    const N: usize,
>(
    kernel: K,
    state: &mut [[T; N]; S],
) {
    for i in 0..N {
        let after = kernel.restart(from_fn(|s| state[s][i]));
        for s in 0..S {
            state[s][i] = after[s];
        }
    }
}

/// One value per lane.
#[derive(Clone, Copy)]
pub(crate) enum PerLane<'a, T> {
    /// The same value for all lanes.
    Same(T),
    /// One value for each lane, in memory order.
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
pub(crate) struct LaneOperand<'a, T> {
    /// The elements, `outer × n × inner` of them.
    pub(crate) data: &'a [T],
    /// If present, step t reads element t + 1, and this value at the last step.
    pub(crate) ahead: Option<PerLane<'a, T>>,
}

impl<'a, T> LaneOperand<'a, T> {
    /// An operand read at step t itself.
    pub(crate) fn now(data: &'a [T]) -> Self {
        Self { data, ahead: None }
    }
}

/// Sizes of the operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) outer: usize,
    pub(crate) n: usize,
    pub(crate) inner: usize,
}

impl Extent {
    /// Extent of a shape along an existing axis.
    pub(crate) fn new(shape: &[usize], axis: usize) -> Self {
        Self {
            outer: shape[..axis].iter().product(),
            n: shape[axis],
            inner: shape[axis + 1..].iter().product(),
        }
    }

    /// Number of lanes.
    pub(crate) fn lanes(self) -> usize {
        self.outer * self.inner
    }

    fn len(self) -> usize {
        self.lanes() * self.n
    }
}

/// Arguments of a pass: `sources` and initial states `start`, forward or reverse in time.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a, T, const I: usize, const S: usize> {
    pub(crate) extent: Extent,
    pub(crate) reverse: bool,
    pub(crate) sources: [LaneOperand<'a, T>; I],
    pub(crate) start: [PerLane<'a, T>; S],
}

/// The outputs, `outer × n × inner` elements each, and the last states, one per lane.
pub(crate) struct Walked<T, const S: usize, const O: usize> {
    pub(crate) outputs: [Tensor<T>; O],
    pub(crate) last: [Tensor<T>; S],
}

/// Uninitialised output memory, flat.
struct LaneOutput<T> {
    buffer: Buffer,
    first: SendPtr<T>,
    len: usize,
}

impl<T: Scalar> LaneOutput<T> {
    fn new(len: usize) -> Result<Self> {
        let bytes = len.checked_mul(size_of::<T>());
        let overflow = || TensorError::SizeOverflow { op: "scan", shape: vec![len] };
        let mut buffer = Buffer::alloc("scan", bytes.ok_or_else(overflow)?)?;
        let first = buffer.as_mut_ptr().unwrap_or_else(|| unreachable!("fresh memory is unique"));
        Ok(Self { buffer, first: SendPtr(first.cast()), len })
    }

    /// Rank-1 tensor of the written elements.
    ///
    /// # Safety
    /// All of them have been written.
    unsafe fn finish(self) -> Result<Tensor<T>> {
        let layout = Layout::contiguous("scan", &[self.len], size_of::<T>())?;
        // SAFETY: all elements are written, by the caller's contract.
        unsafe { Tensor::from_buffer(self.buffer, layout) }
    }
}

/// `N` buffers of `len` elements.
fn fresh<T: Scalar, const N: usize>(len: usize) -> Result<[LaneOutput<T>; N]> {
    let all = (0..N).map(|_| LaneOutput::new(len)).collect::<Result<Vec<_>>>()?;
    Ok(all.try_into().unwrap_or_else(|_| unreachable!("N of them")))
}

/// # Safety
/// As [`LaneOutput::finish`].
unsafe fn finish<T: Scalar, const N: usize>(all: [LaneOutput<T>; N]) -> Result<[Tensor<T>; N]> {
    // SAFETY: the caller's contract.
    let all = all.into_iter().map(|x| unsafe { x.finish() }).collect::<Result<Vec<_>>>()?;
    Ok(all.try_into().unwrap_or_else(|_| unreachable!("N of them")))
}

/// Partition of rows into lanes: entry `g` of `groups` begins at time `g·len` after `first`, and every lane has `len`
/// steps. A row is one (outer, inner) pair; without chunks there is one group with all steps.
#[derive(Clone, Copy)]
struct LanePartition {
    /// The first time of group 0.
    first: usize,
    groups: usize,
    /// Steps of a lane, equal to the distance between groups.
    len: usize,
}

/// One pass of a kernel over lanes.
struct Pass<'a, T, K, const I: usize, const S: usize, const O: usize> {
    kernel: K,
    extent: Extent,
    reverse: bool,
    cut: LanePartition,
    sources: [LaneOperand<'a, T>; I],
    /// One value per lane, with lane index `(outer · groups + group) · inner + inner index`.
    start: [PerLane<'a, T>; S],
    outputs: [SendPtr<T>; O],
    /// One value per lane.
    last: [SendPtr<T>; S],
}

impl<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize>
    Pass<'_, T, K, I, S, O>
{
    fn lanes(&self) -> usize {
        self.extent.lanes() * self.cut.groups
    }

    /// Runs all lanes, multithreaded if the cost justifies it.
    ///
    /// # Safety
    /// Sources have as many elements as the extent, outputs have room for as many, and `last` and `start` for one per
    /// lane; no other reference to the written memory exists.
    unsafe fn run(&self) {
        if self.cut.groups != 1 || self.extent.inner < WIDTH / 2 {
            // SAFETY: the caller's contract.
            return unsafe { self.gather() };
        }
        let parallel = self.check();
        let blocks = self.extent.inner.div_ceil(BLOCK);
        parallel::for_each(self.extent.outer * blocks, parallel, &|unit| {
            let (outer, first) = (unit / blocks, unit % blocks * BLOCK);
            let width = (self.extent.inner - first).min(BLOCK);
            // Each work unit writes disjoint lanes.
            dispatch(LaneBlock { pass: self, outer, first, width });
        });
    }

    /// [`Pass::run`] for lanes that are not adjacent.
    ///
    /// # Safety
    /// As [`Pass::run`].
    unsafe fn gather(&self) {
        let parallel = self.check();
        parallel::for_each(self.lanes().div_ceil(WIDTH), parallel, &|unit| {
            dispatch(Gathered { pass: self, first: unit * WIDTH });
        });
    }

    /// Checks the lengths of the sources; returns true if multithreading pays.
    fn check(&self) -> bool {
        for source in &self.sources {
            assert_eq!(source.data.len(), self.extent.len());
        }
        parallel::worthwhile(self.lanes() * self.cut.len, K::COST)
    }
}

/// A block of adjacent lanes.
struct LaneBlock<'a, 'p, T, K, const I: usize, const S: usize, const O: usize> {
    pass: &'p Pass<'a, T, K, I, S, O>,
    outer: usize,
    first: usize,
    width: usize,
}

/// Up to [`WIDTH`] lanes, starting at `first`.
struct Gathered<'a, 'p, T, K, const I: usize, const S: usize, const O: usize> {
    pass: &'p Pass<'a, T, K, I, S, O>,
    first: usize,
}

impl<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize> Loop
    for LaneBlock<'_, '_, T, K, I, S, O>
{
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: constructed in `Pass::run`, under its caller's contract.
        unsafe { columns::run(self.pass, self.outer, self.first, self.width) }
    }
}

impl<T: Scalar, K: LaneStep<T, I, S, O>, const I: usize, const S: usize, const O: usize> Loop
    for Gathered<'_, '_, T, K, I, S, O>
{
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: constructed in `Pass::run`, under its caller's contract.
        unsafe { gathered::run(self.pass, self.first) }
    }
}
