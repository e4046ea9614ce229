//! Linear maps between flat buffers that move blocks: `y[to + Σ i s′] ± = x[from + Σ i s]`.
//!
//! ```text
//! move   from, to, sign, axes (size, stride in x, stride in y), outermost in y first
//! ```
//!
//! The adjoint exchanges the two buffers. Invariant: every move stays inside of both buffers, and `disjoint` is true
//! only if no element is written twice. The kernels rely on both.

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use t4a_diff::array::{BlockCopies, BlockCopy};

use crate::error::{Result, StructuredError};

/// Axis of a move: size, and strides in both buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct MoveAxis {
    pub(crate) size: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

/// Strided block that is copied, or negated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct BlockMove {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) negative: bool,
    /// Index of its first axis in the list of all axes.
    first: u32,
    rank: u32,
}

/// Linear map `y = R x` with entries 1, −1 and 0, on flat buffers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "RearrangementData", into = "RearrangementData")]
pub struct Rearrangement {
    from_len: usize,
    to_len: usize,
    moves: Vec<BlockMove>,
    axes: Vec<MoveAxis>,
    elements: usize,
    /// True if every element of y is written at most once (`disjoint_adjoint`: if every element of x is read at most once).
    disjoint: bool,
    disjoint_adjoint: bool,
    adjoint: OnceLock<Arc<Rearrangement>>,
    copies: OnceLock<Arc<BlockCopies>>,
}

/// Maximum number of moved elements of a deserialised plan, and of elements of its buffers.
const MOST_RECEIVED: usize = 1 << 32;

/// Maximum number of elements of a deserialised plan that the check visits one by one.
const MOST_COMPARED: usize = 1 << 28;

/// Serialised form of a rearrangement.
#[derive(Clone, Serialize, Deserialize)]
struct RearrangementData {
    from_len: usize,
    to_len: usize,
    moves: Vec<BlockMove>,
    axes: Vec<MoveAxis>,
}

impl From<Rearrangement> for RearrangementData {
    fn from(plan: Rearrangement) -> Self {
        let Rearrangement { from_len, to_len, moves, axes, .. } = plan;
        Self { from_len, to_len, moves, axes }
    }
}

/// Checks all invariants of deserialised data.
impl TryFrom<RearrangementData> for Rearrangement {
    type Error = StructuredError;

    fn try_from(data: RearrangementData) -> Result<Self> {
        let corrupt = |what| StructuredError::Corrupt { what };
        if data.from_len.max(data.to_len) > MOST_RECEIVED {
            let what = "elements of a plan that was received";
            return Err(StructuredError::TooLarge { op: "rearrange", what, limit: MOST_RECEIVED });
        }
        let mut elements = 0usize;
        let mut build = RearrangementBuilder::new(data.from_len, data.to_len);
        for one in &data.moves {
            let (first, rank) = (one.first as usize, one.rank as usize);
            let axes = first.checked_add(rank).and_then(|end| data.axes.get(first..end));
            let axes = axes.ok_or_else(|| corrupt("axes of a move"))?;
            let last = |start: usize, stride: fn(&MoveAxis) -> usize| {
                axes.iter().try_fold(start, |at, axis| {
                    at.checked_add(axis.size.checked_sub(1)?.checked_mul(stride(axis))?)
                })
            };
            let inside = |last: Option<usize>, len| last.is_some_and(|last| last < len);
            if !inside(last(one.from, |axis| axis.from), data.from_len)
                || !inside(last(one.to, |axis| axis.to), data.to_len)
            {
                return Err(corrupt("a move outside of its buffers"));
            }
            // Axes with stride 0 in both buffers could repeat a move without bound.
            let count = axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.size));
            let sum = count.and_then(|count| elements.checked_add(count));
            elements =
                sum.filter(|&n| n <= MOST_RECEIVED).ok_or_else(|| corrupt("repeated moves"))?;
            build.push(one.from, one.to, one.negative, axes.iter().copied());
        }
        let mut plan = build.finish(false, false);
        // More moved elements than buffer elements: some element is repeated. Larger plans with interleaved moves count as
        // not disjoint, which costs an addition per element.
        let few = elements.max(data.from_len).max(data.to_len) <= MOST_COMPARED;
        plan.disjoint = elements <= data.to_len
            && (apart(&plan, |one| one.to, |axis| axis.to)
                || few && once(data.to_len, plan.pairs().map(|(_, to, _)| to)));
        plan.disjoint_adjoint = elements <= data.from_len
            && (apart(&plan, |one| one.from, |axis| axis.from)
                || few && once(data.from_len, plan.pairs().map(|(from, ..)| from)));
        Ok(plan)
    }
}

/// True if the ranges of moves do not overlap and the stride of each axis exceeds the extent of the axes with shorter
/// strides, so that no index is repeated. Cost: proportional to the number of moves.
fn apart(
    plan: &Rearrangement,
    start: impl Fn(&BlockMove) -> usize,
    stride: impl Fn(&MoveAxis) -> usize,
) -> bool {
    let mut ranges = Vec::with_capacity(plan.moves.len());
    for one in &plan.moves {
        let mut axes: Vec<_> =
            plan.axes(one).iter().map(|axis| (stride(axis), axis.size)).collect();
        axes.sort_unstable();
        let mut extent = 0;
        for (stride, size) in axes {
            if stride <= extent {
                return false;
            }
            extent += (size - 1) * stride;
        }
        ranges.push((start(one), start(one) + extent));
    }
    ranges.sort_unstable();
    ranges.windows(2).all(|pair| pair[0].1 < pair[1].0)
}

/// True if no index is repeated.
fn once(len: usize, mut places: impl Iterator<Item = usize>) -> bool {
    let mut seen = vec![0u64; len.div_ceil(64)];
    places.all(|place| {
        let (word, bit) = (&mut seen[place / 64], 1 << (place % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    })
}

impl PartialEq for Rearrangement {
    fn eq(&self, other: &Self) -> bool {
        (self.from_len, self.to_len, &self.moves, &self.axes)
            == (other.from_len, other.to_len, &other.moves, &other.axes)
    }
}

impl Eq for Rearrangement {}

impl std::hash::Hash for Rearrangement {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.from_len, self.to_len, &self.moves, &self.axes).hash(state);
    }
}

impl Rearrangement {
    /// Number of elements of x.
    pub fn from_len(&self) -> usize {
        self.from_len
    }

    /// Number of elements of y.
    pub fn to_len(&self) -> usize {
        self.to_len
    }

    /// Number of moved elements.
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// True if no element of y is written twice.
    pub fn is_disjoint(&self) -> bool {
        self.disjoint
    }

    /// True if every element of y is written.
    pub(crate) fn is_full(&self) -> bool {
        self.disjoint && self.elements == self.to_len
    }

    pub(crate) fn moves(&self) -> &[BlockMove] {
        &self.moves
    }

    /// Axes of a move.
    pub(crate) fn axes(&self, one: &BlockMove) -> &[MoveAxis] {
        &self.axes[one.first as usize..(one.first + one.rank) as usize]
    }

    /// The moves as a description for devices, `None` if elements are written twice.
    pub(crate) fn copies(&self) -> Option<&BlockCopies> {
        let copy = |one: &BlockMove| BlockCopy {
            offsets: [one.from, one.to],
            negative: one.negative,
            axes: self.axes(one).iter().map(|axis| [axis.size, axis.from, axis.to]).collect(),
        };
        let make = || {
            let copies = self.moves.iter().map(copy).collect();
            let (len, is_full) = (self.to_len, self.is_full());
            Arc::new(BlockCopies { len, is_full, copies, tables: Default::default() })
        };
        self.disjoint.then(|| &**self.copies.get_or_init(make))
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&self.moves[..]) + size_of_val(&self.axes[..])
    }

    /// `Rᵀ`.
    pub fn adjoint(&self) -> Arc<Self> {
        let make = || {
            let mut build = RearrangementBuilder::new(self.to_len, self.from_len);
            for one in &self.moves {
                let swap =
                    |axis: &MoveAxis| MoveAxis { size: axis.size, from: axis.to, to: axis.from };
                build.push(one.to, one.from, one.negative, self.axes(one).iter().map(swap));
            }
            Arc::new(build.finish(self.disjoint_adjoint, self.disjoint))
        };
        self.adjoint.get_or_init(make).clone()
    }

    /// All moved elements: index in x, index in y, and true for a negative sign.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (usize, usize, bool)> + '_ {
        self.moves.iter().flat_map(move |one| {
            let axes = self.axes(one);
            let count: usize = axes.iter().map(|axis| axis.size).product();
            (0..count).map(move |i| {
                let (mut rest, mut from, mut to) = (i, one.from, one.to);
                for axis in axes.iter().rev() {
                    let at = rest % axis.size;
                    rest /= axis.size;
                    (from, to) = (from + at * axis.from, to + at * axis.to);
                }
                (from, to, one.negative)
            })
        })
    }
}

/// Builds a rearrangement from moves.
pub(crate) struct RearrangementBuilder {
    from_len: usize,
    to_len: usize,
    moves: Vec<BlockMove>,
    axes: Vec<MoveAxis>,
    elements: usize,
}

impl RearrangementBuilder {
    pub(crate) fn new(from_len: usize, to_len: usize) -> Self {
        Self { from_len, to_len, moves: Vec::new(), axes: Vec::new(), elements: 0 }
    }

    /// [`RearrangementBuilder::new`] with room for this number of moves.
    pub(crate) fn with_capacity(from_len: usize, to_len: usize, moves: usize) -> Self {
        let (moves, axes) = (Vec::with_capacity(moves), Vec::with_capacity(3 * moves));
        Self { moves, axes, ..Self::new(from_len, to_len) }
    }

    /// Number of moves so far.
    pub(crate) fn count(&self) -> u32 {
        self.moves.len() as u32
    }

    /// Adds the move of a nonempty block. Axes are sorted by their stride in y; axes that are contiguous in both
    /// buffers are merged.
    pub(crate) fn push(
        &mut self,
        from: usize,
        to: usize,
        negative: bool,
        axes: impl Iterator<Item = MoveAxis>,
    ) {
        let mut axes: SmallVec<[MoveAxis; 6]> = axes.filter(|axis| axis.size != 1).collect();
        axes.sort_by_key(|axis| std::cmp::Reverse((axis.to, axis.from)));
        self.push_sorted(from, to, negative, axes.into_iter());
    }

    /// [`RearrangementBuilder::push`] of axes in descending order of their strides in y; axes of size 1 may be anywhere.
    #[inline]
    pub(crate) fn push_sorted(
        &mut self,
        from: usize,
        to: usize,
        negative: bool,
        axes: impl Iterator<Item = MoveAxis>,
    ) {
        let (first, mut elements) = (self.axes.len(), 1);
        for inner in axes.filter(|axis| axis.size != 1) {
            elements *= inner.size;
            let behind = |outer: &MoveAxis| {
                debug_assert!(outer.to >= inner.to, "sorted axes");
                inner.size * inner.from == outer.from && inner.size * inner.to == outer.to
            };
            match self.axes[first..].last_mut() {
                Some(outer) if behind(outer) => {
                    *outer = MoveAxis { size: outer.size * inner.size, ..inner };
                }
                _ => self.axes.push(inner),
            }
        }
        self.elements += elements;
        let rank = (self.axes.len() - first) as u32;
        self.moves.push(BlockMove { from, to, negative, first: first as u32, rank });
    }

    /// `disjoint`: no element is written twice; `adjoint`: no element is read twice.
    pub(crate) fn finish(self, disjoint: bool, adjoint: bool) -> Rearrangement {
        let Self { from_len, to_len, moves, axes, elements } = self;
        let (disjoint_adjoint, adjoint, copies) = (adjoint, OnceLock::new(), OnceLock::new());
        let plan = Rearrangement {
            from_len,
            to_len,
            moves,
            axes,
            elements,
            disjoint,
            disjoint_adjoint,
            adjoint,
            copies,
        };
        debug_assert!(!disjoint || once(to_len, plan.pairs().map(|(_, to, _)| to)));
        debug_assert!(!disjoint_adjoint || once(from_len, plan.pairs().map(|(from, ..)| from)));
        plan
    }
}
