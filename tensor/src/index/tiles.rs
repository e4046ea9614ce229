//! Traverses the fused axes of several operands in two-dimensional tiles, serially or multithreaded.

use crate::error::Result;
use crate::layout::{Dims, Strides};
use crate::loops::fuse::Fused;
use crate::loops::parallel;
use crate::output::{Fresh, Full, share};

/// Elements per unit of parallel work.
const GRAIN: usize = 1 << 15;

/// Part of a traversal: the start of each operand, and the extent of the two inner axes.
pub(super) struct TraversalTile<const N: usize> {
    pub(super) at: [isize; N],
    pub(super) rows: usize,
    pub(super) cols: usize,
}

/// A traversal of fused axes; the last two, row axis and column axis, are cut into tiles.
#[derive(Clone)]
pub(super) struct Traversal<const N: usize> {
    shape: Dims,
    strides: [Strides; N],
    base: [isize; N],
    rows: usize,
    cols: usize,
}

impl<const N: usize> Traversal<N> {
    /// A traversal in memory order of operand 0.
    pub(super) fn new(shape: &[usize], strides: [&[isize]; N]) -> Self {
        let mut fused = Fused::by_first(shape, strides);
        while fused.rank() < 2 {
            fused.shape.insert(0, 1);
            fused.strides.iter_mut().for_each(|s| s.insert(0, 0));
        }
        let last = fused.rank() - 1;
        let (rows, cols) = (fused.shape[last - 1], fused.shape[last]);
        Self { shape: fused.shape, strides: fused.strides, base: [0; N], rows, cols }
    }

    /// Sizes of the fused axes.
    pub(super) fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides of an operand along the fused axes.
    pub(super) fn strides(&self, op: usize) -> &[isize] {
        &self.strides[op]
    }

    /// Strides of an operand along the rows and the columns of a tile.
    pub(super) fn inner(&self, op: usize) -> [isize; 2] {
        let last = self.shape.len() - 1;
        [self.strides[op][last - 1], self.strides[op][last]]
    }

    /// Cuts tiles of at most `rows × cols`.
    pub(super) fn tile(mut self, rows: usize, cols: usize) -> Self {
        let last = self.shape.len() - 1;
        self.rows = rows.clamp(1, self.shape[last - 1].max(1));
        self.cols = cols.clamp(1, self.shape[last].max(1));
        self
    }

    /// Cuts tiles of at most `count` elements, as wide as possible.
    pub(super) fn tile_of(self, count: usize) -> Self {
        let cols = self.shape[self.shape.len() - 1].clamp(1, count);
        self.tile(count / cols, cols)
    }

    /// [`Traversal::tile_of`] so that tiles of an operand in row-major order are runs of its memory: of
    /// several rows only if they are whole.
    pub(super) fn runs(self, count: usize, most_rows: usize, most_cols: usize) -> Self {
        let cols = self.shape[self.shape.len() - 1];
        let whole = cols <= most_cols;
        let rows = if whole { (count / cols.max(1)).clamp(1, most_rows) } else { 1 };
        self.tile(rows, most_cols)
    }

    /// Number of elements in a group of adjacent tiles, and in a tile unless it is the last of its group, in the order
    /// of [`Traversal::nth`].
    fn groups(&self) -> (usize, usize) {
        let last = self.shape.len() - 1;
        let (rows, cols) = (self.shape[last - 1], self.shape[last]);
        if self.cols == cols { (rows * cols, self.rows * cols) } else { (cols, self.cols) }
    }

    /// Has `body` write every tile of a row-major operand, cut by [`Traversal::runs`]; on several threads
    /// if `cost` additions per element are worth it.
    pub(super) fn write<'o, T: Copy + Send>(
        &self,
        out: Fresh<'o, T>,
        cost: usize,
        body: impl Fn(TraversalTile<N>, Fresh<'o, T>) -> Result<Full<'o, T>> + Sync,
    ) -> Result<Full<'o, T>> {
        let (group, len) = self.groups();
        let parallel = parallel::worthwhile(out.len(), cost);
        share(out.parts_of_groups(group, len), self.per_chunk(cost), parallel, |i, out| {
            body(self.nth(i, self.counts()), out)
        })
    }

    /// The part of the traversal with `len` indices of a fused axis, starting at `start`.
    pub(super) fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        let mut part = self.clone();
        part.shape[axis] = len;
        for op in 0..N {
            part.base[op] += start as isize * self.strides[op][axis];
        }
        let last = part.shape.len() - 1;
        part.rows = part.rows.min(part.shape[last - 1]);
        part.cols = part.cols.min(part.shape[last]);
        part
    }

    /// Number of elements.
    pub(super) fn numel(&self) -> usize {
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// Tiles along the rows and the columns.
    fn counts(&self) -> [usize; 2] {
        let last = self.shape.len() - 1;
        [self.shape[last - 1].div_ceil(self.rows), self.shape[last].div_ceil(self.cols)]
    }

    /// Number of tiles.
    fn count(&self) -> usize {
        let outer = &self.shape[..self.shape.len() - 2];
        if self.numel() == 0 { 0 } else { outer.iter().chain(&self.counts()).product() }
    }

    /// Tiles per unit of parallel work.
    fn per_chunk(&self, cost: usize) -> usize {
        (GRAIN / cost.max(1) / (self.rows * self.cols)).max(1)
    }

    /// Calls `body` for every tile, in order within a chunk of them; chunks run on several threads
    /// if `cost` additions per element are worth it.
    pub(super) fn for_each(&self, cost: usize, body: impl Fn(TraversalTile<N>) + Sync + Send) {
        let (count, per_chunk, counts) = (self.count(), self.per_chunk(cost), self.counts());
        let parallel = parallel::worthwhile(self.numel(), cost);
        parallel::for_each(count.div_ceil(per_chunk), parallel, &|chunk| {
            let first = chunk * per_chunk;
            for item in first..(first + per_chunk).min(count) {
                body(self.nth(item, counts));
            }
        });
    }

    /// Calls `body` for every tile in order, on this thread.
    pub(super) fn for_each_in_order(&self, mut body: impl FnMut(TraversalTile<N>)) {
        let counts = self.counts();
        for item in 0..self.count() {
            body(self.nth(item, counts));
        }
    }

    #[inline]
    fn nth(&self, item: usize, tiles: [usize; 2]) -> TraversalTile<N> {
        let last = self.shape.len() - 1;
        let col = item % tiles[1] * self.cols;
        let mut rest = item / tiles[1];
        let row = rest % tiles[0] * self.rows;
        rest /= tiles[0];
        let mut at = self.base;
        for op in 0..N {
            let [row_stride, col_stride] = self.inner(op);
            at[op] += row as isize * row_stride + col as isize * col_stride;
        }
        for axis in (0..last - 1).rev() {
            let index = (rest % self.shape[axis]) as isize;
            rest /= self.shape[axis];
            for op in 0..N {
                at[op] += index * self.strides[op][axis];
            }
        }
        let rows = self.rows.min(self.shape[last - 1] - row);
        let cols = self.cols.min(self.shape[last] - col);
        TraversalTile { at, rows, cols }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_every_element_once() {
        for shape in [&[][..], &[1], &[7], &[3, 5, 4], &[4, 1, 9], &[2, 0]] {
            let strides = crate::layout::contiguous_strides(shape);
            let reversed: Vec<isize> = strides.iter().map(|s| -s).collect();
            let numel: usize = shape.iter().product();
            let seen = std::sync::Mutex::new(vec![0; numel]);
            let tiles = Traversal::new(shape, [&strides, &reversed]).tile(2, 3);
            tiles.for_each(1, |tile| {
                let mut seen = seen.lock().unwrap();
                assert_eq!(tile.at[0], -tile.at[1]);
                for r in 0..tile.rows {
                    for c in 0..tile.cols {
                        let [row, col] = tiles.inner(0);
                        seen[(tile.at[0] + r as isize * row + c as isize * col) as usize] += 1;
                    }
                }
            });
            assert!(seen.lock().unwrap().iter().all(|&n| n == 1), "{shape:?}");
        }
    }
}
