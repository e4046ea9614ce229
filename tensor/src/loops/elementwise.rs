//! Traverses the fused axes of a result and its operands in tiles, stages strided operands, and passes contiguous runs
//! to a body.
//!
//! The result has stride 1 along the innermost fused axis, and a tile is a part of that axis. An operand with stride 1
//! along it is read in place, one with stride 0 is a repeated element, and others are gathered. If the axis is short, a
//! tile covers it completely and several indices of the adjacent axis, so that the result is again one run.

use smallvec::SmallVec;

use super::fuse::Fused;
use super::parallel;
use super::stage::{self, StagingBuffer};

/// An operand of an elementwise loop: its start and its strides along the axes of the result. Operand 0 is the result
/// itself, dense with strides ≥ 0.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// First element.
    pub ptr: *const u8,
    /// Strides in elements, one per axis of the result.
    pub strides: &'a [isize],
    /// Bytes per element.
    pub size: usize,
    /// True if the result overwrites this operand but the body expects separate memory: the operand is then read
    /// through scratch.
    pub aliased: bool,
}

// SAFETY: operands are read only; runs of the result are disjoint.
unsafe impl Sync for Operand<'_> {}
// SAFETY: as above.
unsafe impl Send for Operand<'_> {}

/// A run of an operand that belongs to a run of the result.
#[derive(Clone, Copy)]
pub struct Block {
    /// First element.
    pub ptr: *const u8,
    /// True if a single element is repeated.
    pub repeat: bool,
}

/// Body of a run: first byte of the result, length, runs of the operands.
pub type Body<'a, const M: usize> = &'a (dyn Fn(*mut u8, usize, &[Block; M]) + Sync);

/// Maximum length of a run, so that long runs are distributed over threads.
const MAX_RUN: usize = 1 << 15;
/// Bytes of scratch per operand. All operands together fit in the L1 cache.
const SCRATCH_BYTES: usize = 8192;
/// Inner axes shorter than this are joined with the adjacent axis into one run.
const SHORT: usize = 32;
/// Elements per unit of parallel work.
const GRAIN: usize = 1 << 15;

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Direct,
    Repeat,
    Staged,
}

struct ElementwisePlan<'a, const M: usize> {
    fused: Fused<M>,
    operands: [Operand<'a>; M],
    access: [Access; M],
    /// True if an operand is staged because of its strides.
    gathers: bool,
    /// True if a tile covers the innermost axis and a part of the adjacent one.
    joined: bool,
    /// Shape of a tile, 1 along the first axis if it is not joined.
    rows: usize,
    cols: usize,
    /// Tiles along these two axes.
    tiles: [usize; 2],
}

/// Calls `body(out, len, blocks)` for runs that cover the result: `len` elements from `out` on and the corresponding run of
/// every operand (entry 0 is the result).
///
/// `cost` is the work per element in additions, used to decide on multithreading. The body is called through a pointer,
/// so that the loop over tiles is compiled once and not per kernel. Returns true if an operand was gathered from
/// strided memory.
///
/// # Safety
/// Every operand is readable at every index of `shape`, the result writable; its strides are dense and not negative.
pub unsafe fn for_each_run<const M: usize>(
    shape: &[usize],
    operands: [Operand<'_>; M],
    cost: usize,
    body: Body<'_, M>,
) -> bool {
    if shape.contains(&0) {
        return false;
    }
    let numel: usize = shape.iter().product();
    let plan = ElementwisePlan::new(shape, operands);
    let items = plan.items();
    let per_item = numel.div_ceil(items);
    let per_chunk = (GRAIN / cost.max(1) / per_item).max(1);
    let chunks = items.div_ceil(per_chunk);
    parallel::for_each(chunks, parallel::worthwhile(numel, cost), &|chunk| {
        let first = chunk * per_chunk;
        // SAFETY: the caller's contract.
        unsafe { plan.walk(first, per_chunk.min(items - first), body) };
    });
    plan.gathers
}

impl<'a, const M: usize> ElementwisePlan<'a, M> {
    fn new(shape: &[usize], operands: [Operand<'a>; M]) -> Self {
        let mut fused = Fused::by_first(shape, operands.map(|op| op.strides));
        if fused.rank() == 0 {
            fused.shape.push(1);
            fused.strides.iter_mut().for_each(|s| s.push(0));
        }
        let last = fused.rank() - 1;
        let inner = fused.shape[last];
        let widest = operands.iter().map(|op| op.size).max().unwrap_or(1);
        let capacity = SCRATCH_BYTES / widest;

        let joined = inner < SHORT.min(capacity) && last > 0;
        let mut access = [Access::Direct; M];
        let mut gathers = false;
        for op in 1..M {
            let strides = &fused.strides[op];
            let repeats = strides.iter().all(|&s| s == 0);
            access[op] = match strides[last] {
                _ if repeats => Access::Repeat,
                _ if joined || operands[op].aliased => Access::Staged,
                0 => Access::Repeat,
                1 => Access::Direct,
                _ => Access::Staged,
            };
            gathers |= !repeats && (joined || !matches!(strides[last], 0 | 1));
        }
        let staged = access.contains(&Access::Staged);
        let (rows, cols) = match (joined, staged) {
            (true, _) => (fused.shape[last - 1].min(capacity / inner), inner),
            (false, true) => (1, inner.min(capacity)),
            (false, false) => (1, inner.min(MAX_RUN)),
        };
        let tiles =
            [if joined { fused.shape[last - 1].div_ceil(rows) } else { 1 }, inner.div_ceil(cols)];
        Self { fused, operands, access, gathers, joined, rows, cols, tiles }
    }

    /// Axes that a tile has one index of.
    fn outer(&self) -> &[usize] {
        &self.fused.shape[..self.fused.rank() - 1 - usize::from(self.joined)]
    }

    /// Number of tiles.
    fn items(&self) -> usize {
        self.outer().iter().product::<usize>() * self.tiles[0] * self.tiles[1]
    }

    /// Processes `count` tiles from tile `first` on, inner tiles fastest.
    ///
    /// # Safety
    /// As [`for_each_run`]; the tiles exist.
    unsafe fn walk(&self, first: usize, count: usize, body: Body<'_, M>) {
        let mut tile = [first / self.tiles[1] % self.tiles[0], first % self.tiles[1]];
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.outer().len());
        let mut base = [0isize; M];
        let mut rest = first / (self.tiles[0] * self.tiles[1]);
        for (axis, (slot, size)) in index.iter_mut().zip(self.outer()).enumerate().rev() {
            *slot = rest % size;
            rest /= size;
            for op in 0..M {
                base[op] += *slot as isize * self.fused.strides[op][axis];
            }
        }
        if self.tiles == [1, 1] && !self.joined && !self.access.contains(&Access::Staged) {
            // SAFETY: passed on.
            return unsafe { self.walk_lines(index, base, count, body) };
        }
        let mut scratch = [const { StagingBuffer::new() }; M];
        for _ in 0..count {
            // SAFETY: the tile exists.
            unsafe { self.process(base, tile, &mut scratch, body) };
            tile[1] += 1;
            if tile[1] < self.tiles[1] {
                continue;
            }
            tile[1] = 0;
            tile[0] += 1;
            if tile[0] < self.tiles[0] {
                continue;
            }
            tile[0] = 0;
            self.advance(&mut index, &mut base, 1);
        }
    }

    /// [`ElementwisePlan::walk`] if tiles are whole lines that are read in place (bench `backend`, row
    /// `add 1024² by a row`).
    ///
    /// # Safety
    /// As [`ElementwisePlan::walk`], with the outer index of the first line and its positions.
    unsafe fn walk_lines(
        &self,
        mut index: SmallVec<[usize; 6]>,
        mut base: [isize; M],
        count: usize,
        body: Body<'_, M>,
    ) {
        let mut left = count;
        while left > 0 {
            let (lines, axis) = match index.last() {
                Some(&at) => (left.min(self.outer()[index.len() - 1] - at), index.len() - 1),
                None => (1, 0),
            };
            let mut blocks: [Block; M] = std::array::from_fn(|op| {
                let Operand { ptr, size, .. } = self.operands[op];
                let repeat = self.access[op] == Access::Repeat;
                Block { ptr: ptr.wrapping_offset(base[op] * size as isize), repeat }
            });
            let steps: [isize; M] = std::array::from_fn(|op| {
                self.fused.strides[op][axis] * self.operands[op].size as isize
            });
            for _ in 0..lines {
                body(blocks[0].ptr.cast_mut(), self.cols, &blocks);
                for op in 0..M {
                    blocks[op].ptr = blocks[op].ptr.wrapping_offset(steps[op]);
                }
            }
            left -= lines;
            self.advance(&mut index, &mut base, lines);
        }
    }

    /// Advances the outer index and its positions by `count` along the innermost outer axis, at most to its end.
    fn advance(&self, index: &mut [usize], base: &mut [isize; M], count: usize) {
        let mut count = count;
        for (axis, (slot, &size)) in index.iter_mut().zip(self.outer()).enumerate().rev() {
            *slot += count;
            let wrapped = *slot == size;
            let steps = count as isize - if wrapped { size as isize } else { 0 };
            if wrapped {
                *slot = 0;
            }
            for op in 0..M {
                base[op] += steps * self.fused.strides[op][axis];
            }
            if !wrapped {
                break;
            }
            count = 1;
        }
    }

    /// Stages one tile and calls the body for its runs.
    ///
    /// # Safety
    /// As [`for_each_run`]; `base` is the position of the tile's outer index.
    unsafe fn process(
        &self,
        base: [isize; M],
        tile: [usize; 2],
        scratch: &mut [StagingBuffer<SCRATCH_BYTES>; M],
        body: Body<'_, M>,
    ) {
        let last = self.fused.rank() - 1;
        let row_stride = |op: usize| if self.joined { self.fused.strides[op][last - 1] } else { 0 };
        let row = tile[0] * self.rows;
        let col = tile[1] * self.cols;
        let rows = if self.joined { self.rows.min(self.fused.shape[last - 1] - row) } else { 1 };
        let cols = self.cols.min(self.fused.shape[last] - col);

        let at = |op: usize| {
            let along = row as isize * row_stride(op);
            base[op] + along + col as isize * self.fused.strides[op][last]
        };
        let mut blocks = [Block { ptr: std::ptr::null(), repeat: false }; M];
        for op in 0..M {
            let operand = &self.operands[op];
            let src = operand.ptr.wrapping_offset(at(op) * operand.size as isize);
            blocks[op] = Block { ptr: src, repeat: self.access[op] == Access::Repeat };
            if self.access[op] == Access::Staged {
                let dst = scratch[op].as_mut_ptr();
                let strides = (row_stride(op), self.fused.strides[op][last]);
                // SAFETY: the tile is inside the operand; rows · cols elements fit in the scratch.
                unsafe {
                    stage::gather(src, strides, (rows, cols), operand.size, dst, cols as isize);
                }
                blocks[op].ptr = dst;
            }
        }
        body(blocks[0].ptr.cast_mut(), rows * cols, &blocks);
    }
}
