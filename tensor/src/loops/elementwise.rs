//! Walks the fused axes of a result and its operands in tiles, stages what is strided, and hands
//! contiguous runs to a body.
//!
//! ```text
//! fused axes     outer … row … inner        the result steps by 1 along `inner`
//! tile                   R  ×  C            row axis: along which a staged operand is contiguous
//! ```
//!
//! Without a staged operand a tile is one run of the inner axis. An operand that steps by 1 along
//! the inner axis is read in place, one that stays is a repeated element, any other one is
//! gathered. If the inner axis is short, the tile covers all of it and several rows, so that the
//! result is one run again.

use smallvec::SmallVec;

use super::fuse::Fused;
use super::parallel;
use super::stage::{self, SCRATCH_BYTES, Scratch};

/// An operand of an elementwise walk: where it starts and how it steps over the axes of the
/// result. Operand 0 is the result itself, dense with strides ≥ 0; its pointer is not used.
#[derive(Clone, Copy)]
pub struct Operand<'a> {
    /// First element.
    pub ptr: *const u8,
    /// Strides in elements, one per axis of the result.
    pub strides: &'a [isize],
    /// Bytes per element.
    pub size: usize,
    /// Whether the result is written over this operand; it is then read through scratch.
    pub aliased: bool,
}

// SAFETY: operands are read only.
unsafe impl Sync for Operand<'_> {}
// SAFETY: as above.
unsafe impl Send for Operand<'_> {}

/// A run of an operand that belongs to a run of the result.
#[derive(Clone, Copy)]
pub struct Block {
    /// First element.
    pub ptr: *const u8,
    /// Whether this one element is repeated.
    pub repeat: bool,
}

/// What is done with a run: its position in the result, its length, the runs of the operands.
pub type Body<'a, const M: usize> = &'a (dyn Fn(usize, usize, [Block; M]) + Sync);

/// Longest run handed out at once, so that long runs are split over threads.
const MAX_RUN: usize = 1 << 15;
/// Inner axes below this are joined with their neighbour into one run.
const SHORT: usize = 32;
/// Elements per unit of parallel work.
const GRAIN: usize = 1 << 15;

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Direct,
    Repeat,
    Staged,
}

struct Plan<'a, const M: usize> {
    fused: Fused<M>,
    operands: [Operand<'a>; M],
    access: [Access; M],
    /// Axis of the rows of a tile, if tiles have several.
    row_axis: Option<usize>,
    /// Whether a whole tile is one run of the result.
    joined: bool,
    rows: usize,
    cols: usize,
    /// Axes that are neither row nor inner.
    outer: SmallVec<[usize; 6]>,
    /// Tiles along the row and the inner axis.
    tiles: [usize; 2],
}

/// Calls `body(position, len, blocks)` for runs that cover the result: `len` elements from
/// `position` (in elements) and the matching run of every operand (entry 0 is meaningless).
///
/// `cost` is the work per element in additions; it decides about threads. The body is called
/// through a pointer, so that the walk is compiled once and not per kernel.
///
/// # Safety
/// Every operand is readable at every index of `shape`; the result's strides are dense and not
/// negative.
pub unsafe fn for_each_run<const M: usize>(
    shape: &[usize],
    operands: [Operand<'_>; M],
    cost: usize,
    body: Body<'_, M>,
) {
    if shape.contains(&0) {
        return;
    }
    let numel: usize = shape.iter().product();
    let plan = Plan::new(shape, operands);
    let items = plan.items();
    let per_item = numel.div_ceil(items);
    let per_chunk = (GRAIN / cost.max(1) / per_item).max(1);
    let chunks = items.div_ceil(per_chunk);
    parallel::for_each(chunks, parallel::worthwhile(numel, cost), &|chunk| {
        let first = chunk * per_chunk;
        // SAFETY: the caller's promise.
        unsafe { plan.walk(first, per_chunk.min(items - first), body) };
    });
}

impl<'a, const M: usize> Plan<'a, M> {
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

        let joined = inner < SHORT && last > 0;
        let mut access = [Access::Direct; M];
        for op in 1..M {
            access[op] = match fused.strides[op][last] {
                _ if fused.strides[op].iter().all(|&s| s == 0) => Access::Repeat,
                _ if joined || operands[op].aliased => Access::Staged,
                0 => Access::Repeat,
                1 => Access::Direct,
                _ => Access::Staged,
            };
        }
        let row_axis = if joined { Some(last - 1) } else { Self::tile_axis(&fused, &access) };
        let staged = access.contains(&Access::Staged);
        let (rows, cols) = match row_axis {
            Some(axis) if joined => (fused.shape[axis].min(capacity / inner), inner),
            // One cache line along the rows, the rest of the scratch along the columns: the runs of
            // the other operands should be long.
            Some(axis) => {
                let rows = (64 / widest).max(4).min(fused.shape[axis]);
                (rows, inner.min(capacity / rows))
            }
            None if staged => (1, inner.min(capacity)),
            None => (1, inner.min(MAX_RUN)),
        };
        let tiles =
            [row_axis.map_or(1, |axis| fused.shape[axis].div_ceil(rows)), inner.div_ceil(cols)];
        let outer = (0..last).filter(|&axis| Some(axis) != row_axis).collect();
        Self { fused, operands, access, row_axis, joined, rows, cols, outer, tiles }
    }

    /// The axis along which the first staged operand is closest to contiguous, if that is not the
    /// inner one.
    fn tile_axis(fused: &Fused<M>, access: &[Access; M]) -> Option<usize> {
        let last = fused.rank() - 1;
        let stride = |op: usize, axis: usize| fused.strides[op][axis].unsigned_abs();
        let op = (1..M).find(|&op| access[op] == Access::Staged && stride(op, last) > 1)?;
        let axis =
            (0..last).filter(|&axis| stride(op, axis) != 0).min_by_key(|&axis| stride(op, axis))?;
        (stride(op, axis) < stride(op, last)).then_some(axis)
    }

    /// Number of tiles.
    fn items(&self) -> usize {
        self.outer.iter().map(|&axis| self.fused.shape[axis]).product::<usize>()
            * self.tiles[0]
            * self.tiles[1]
    }

    /// Processes `count` tiles from tile `first` on, inner tiles fastest.
    ///
    /// # Safety
    /// As [`for_each_run`]; the tiles exist.
    unsafe fn walk(&self, first: usize, count: usize, body: Body<'_, M>) {
        let mut scratch = [const { Scratch::new() }; M];
        let mut tile = [first / self.tiles[1] % self.tiles[0], first % self.tiles[1]];
        let mut index: SmallVec<[usize; 6]> = SmallVec::from_elem(0, self.outer.len());
        let mut base = [0isize; M];
        let mut rest = first / (self.tiles[0] * self.tiles[1]);
        for (slot, &axis) in index.iter_mut().zip(&self.outer).rev() {
            *slot = rest % self.fused.shape[axis];
            rest /= self.fused.shape[axis];
            for op in 0..M {
                base[op] += *slot as isize * self.fused.strides[op][axis];
            }
        }
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
            for (slot, &axis) in index.iter_mut().zip(&self.outer).rev() {
                *slot += 1;
                let wrapped = *slot == self.fused.shape[axis];
                let steps = if wrapped { 1 - *slot as isize } else { 1 };
                if wrapped {
                    *slot = 0;
                }
                for op in 0..M {
                    base[op] += steps * self.fused.strides[op][axis];
                }
                if !wrapped {
                    break;
                }
            }
        }
    }

    /// Stages one tile and hands out its runs.
    ///
    /// # Safety
    /// As [`for_each_run`]; `base` is the position of the tile's outer index.
    unsafe fn process(
        &self,
        base: [isize; M],
        tile: [usize; 2],
        scratch: &mut [Scratch; M],
        body: Body<'_, M>,
    ) {
        let last = self.fused.rank() - 1;
        let row_stride = |op: usize| self.row_axis.map_or(0, |axis| self.fused.strides[op][axis]);
        let row = tile[0] * self.rows;
        let col = tile[1] * self.cols;
        let rows = self.row_axis.map_or(1, |axis| self.rows.min(self.fused.shape[axis] - row));
        let cols = self.cols.min(self.fused.shape[last] - col);

        // Where the tile starts, and how its rows step, for each operand.
        let mut start = [std::ptr::null::<u8>(); M];
        let mut pitch = [0isize; M];
        for op in 1..M {
            let operand = &self.operands[op];
            let strides = &self.fused.strides[op];
            let at = base[op] + row as isize * row_stride(op) + col as isize * strides[last];
            let src = operand.ptr.wrapping_offset(at * operand.size as isize);
            if self.access[op] == Access::Staged {
                let dst = scratch[op].as_mut_ptr();
                let (step, size) = (row_stride(op), operand.size);
                // SAFETY: the tile lies inside of the operand; rows · cols fit the scratch.
                unsafe {
                    let strides = (step, strides[last]);
                    stage::gather(src, strides, (rows, cols), size, dst, cols as isize);
                }
                start[op] = dst;
                pitch[op] = (cols * size) as isize;
            } else {
                start[op] = src;
                pitch[op] = row_stride(op) * operand.size as isize;
            }
        }
        let at =
            base[0] + row as isize * row_stride(0) + col as isize * self.fused.strides[0][last];
        let block = |op: usize, row: usize| Block {
            ptr: start[op].wrapping_offset(row as isize * pitch[op]),
            repeat: self.access[op] == Access::Repeat,
        };
        if self.joined {
            body(at as usize, rows * cols, std::array::from_fn(|op| block(op, 0)));
        } else {
            for r in 0..rows {
                let position = at + r as isize * row_stride(0);
                body(position as usize, cols, std::array::from_fn(|op| block(op, r)));
            }
        }
    }
}
