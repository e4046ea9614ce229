//! Plan of a copy: the axes of its blocks and the offsets of their elements.

use smallvec::SmallVec;

use crate::layout::Dims;
use crate::loops::fuse::Fused;
use crate::loops::transpose::Even;

/// Bytes of a row of a block: eight cache lines, which amortises the loop over blocks.
const SIDE_BYTES: usize = 512;
/// Bytes of a column of a block: enough for the machine to read ahead.
const COLUMN_BYTES: usize = 1024;
/// Bytes of the shortest rows that are transposed in registers.
const REGISTER_BYTES: usize = 32;
/// Bytes of a row without columns: enough to amortise the loop over blocks.
const ROW_BYTES: usize = 4096;
/// Minimum number of bytes of a run that is a separate block.
const RUN_BYTES: usize = 1024;
/// Minimum number of bytes of a row of one repeated element that is a separate block.
const REPEAT_BYTES: usize = 64;
/// Maximum number of runs in a block.
const RUNS: usize = 64;
/// Elements per unit of parallel work.
pub(super) const GRAIN: usize = 1 << 15;

/// A copy between two layouts without the data.
pub(super) struct CopyPlan {
    /// Destination and source, outermost axis first, in elements of `size` bytes.
    pub(super) fused: Fused<2>,
    pub(super) size: usize,
    /// Indices of each axis that a block covers.
    pub(super) extent: Dims,
    /// Source offset of each row element: axes innermost in the destination.
    pub(super) rows: AxisGroup,
    /// Destination offset of each column element: axes innermost in the source.
    pub(super) columns: AxisGroup,
    /// Offsets of (destination, source) of the runs in a block that is contiguous on both sides.
    pub(super) runs: Vec<(isize, isize)>,
    /// True if a block is a row of one repeated element.
    pub(super) repeat: bool,
}

/// Axes of a block that are contiguous on one side, and the offsets of their elements on the other.
pub(super) struct AxisGroup {
    /// Number of elements.
    full: usize,
    /// Offsets on the other side; empty if that side is contiguous too.
    pub(super) offsets: Vec<isize>,
    /// Start and step of the offsets, if they are equidistant.
    pub(super) even: Option<Even>,
    /// Axis that the block covers partially, if there is one, and the elements per index of it.
    split: Option<(usize, usize)>,
}

impl AxisGroup {
    const ONE: Self = Self { full: 1, offsets: Vec::new(), even: Some(Even::new(0)), split: None };

    /// A contiguous part of an axis.
    fn contiguous(axis: usize, count: usize, size: usize) -> Self {
        let split = if count < size { Some((axis, 1)) } else { None };
        Self { full: count, split, ..Self::ONE }
    }

    /// Adds `count` indices of an axis as the new outermost one.
    fn push(&mut self, axis: usize, count: usize, size: usize, stride: isize) {
        self.even = (self.full == 1).then_some(Even::new(stride));
        let inner = match self.full {
            1 => vec![0],
            _ => std::mem::take(&mut self.offsets),
        };
        self.full *= count;
        self.offsets = Vec::with_capacity(self.full);
        for i in 0..count {
            self.offsets.extend(inner.iter().map(|offset| offset + i as isize * stride));
        }
        if count < size {
            self.split = Some((axis, inner.len()));
        }
    }

    pub(super) fn table(&self) -> &[isize] {
        if self.offsets.is_empty() { &[0] } else { &self.offsets }
    }

    /// Elements of a block that covers `extent(axis)` indices of a split axis.
    pub(super) fn len(&self, extent: impl Fn(usize) -> usize) -> usize {
        self.split.map_or(self.full, |(axis, inner)| inner * extent(axis))
    }
}

impl CopyPlan {
    pub(super) fn new(shape: &[usize], strides: [&[isize]; 2], size: usize) -> Self {
        let mut fused = Fused::by_first(shape, strides);
        if fused.rank() == 0 {
            fused.shape.push(1);
            fused.strides.iter_mut().for_each(|s| s.push(1));
        }
        let mut plan = Self {
            extent: Dims::from_elem(1, fused.rank()),
            fused,
            size,
            rows: AxisGroup::ONE,
            columns: AxisGroup::ONE,
            runs: vec![(0, 0)],
            repeat: false,
        };
        plan.widen();
        plan.choose_block();
        plan
    }

    /// Merges a short run that is contiguous on both sides into one wider element.
    fn widen(&mut self) {
        let last = self.fused.rank() - 1;
        let run = self.fused.shape[last];
        let bytes = run * self.size;
        let whole = |strides: &[isize]| strides[..last].iter().all(|s| s % run as isize == 0);
        let contiguous = self.fused.strides[0][last] == 1 && self.fused.strides[1][last] == 1;
        if last == 0 || !contiguous || !matches!(bytes, 2 | 4 | 8 | 16) {
            return;
        }
        if self.fused.strides.iter().all(|strides| whole(strides)) {
            self.fused.shape.pop();
            self.extent.pop();
            for strides in &mut self.fused.strides {
                strides.pop();
                strides.iter_mut().for_each(|s| *s /= run as isize);
            }
            self.size = bytes;
        }
    }

    /// Chooses the axes that a block covers.
    fn choose_block(&mut self) {
        let last = self.fused.rank() - 1;
        let (size, stride) = (self.fused.shape[last], self.fused.strides[1][last]);
        self.repeat = stride == 0 && size * self.size >= REPEAT_BYTES;
        if stride == 1 || self.repeat {
            let count = size.min(GRAIN);
            self.rows = AxisGroup::contiguous(last, count, size);
            self.extent[last] = count;
            if count == size && !self.repeat {
                self.choose_runs(size * self.size);
            }
            return;
        }
        let side = |bytes: usize| (bytes / self.size.max(1)).max(1);
        let (across, along) = (side(SIDE_BYTES), side(COLUMN_BYTES));
        self.choose_rows(across);
        self.choose_columns(along);
        if self.columns.full == 1 {
            self.extent.fill(1);
            self.choose_rows(ROW_BYTES / self.size.max(1));
        }
    }

    /// Rows are the inner axes of the destination, which is dense. The innermost axis of the source is left to the
    /// columns, unless rows would be shorter than the squares transposed in registers.
    fn choose_rows(&mut self, side: usize) {
        self.rows = AxisGroup::ONE;
        let [dst, src] = &self.fused.strides;
        for axis in (0..self.fused.rank()).rev() {
            let (have, size) = (self.rows.full, self.fused.shape[axis]);
            let for_columns = src[axis] == 1 && have * self.size >= REGISTER_BYTES;
            if have >= side || dst[axis] != have as isize || for_columns {
                break;
            }
            let count = size.min(side.div_ceil(have));
            self.rows.push(axis, count, size, src[axis]);
            self.extent[axis] = count;
            if count < size {
                break;
            }
        }
    }

    /// Columns: from the inside of the source.
    fn choose_columns(&mut self, side: usize) {
        let [dst, src] = &self.fused.strides;
        let rank = self.fused.rank();
        let mut axes: SmallVec<[usize; 6]> = (0..rank).filter(|&a| self.extent[a] == 1).collect();
        axes.sort_by_key(|&axis| src[axis].unsigned_abs());
        for axis in axes {
            let (have, size) = (self.columns.full, self.fused.shape[axis]);
            if have >= side || src[axis] != have as isize {
                break;
            }
            let count = size.min(side.div_ceil(have));
            self.columns.push(axis, count, size, dst[axis]);
            self.extent[axis] = count;
            if count < size {
                break;
            }
        }
    }

    /// Number of runs of the given bytes that a block copies one by one: whole axes next to the innermost.
    fn choose_runs(&mut self, bytes: usize) {
        let [dst, src] = &self.fused.strides;
        for axis in (0..self.fused.rank() - 1).rev() {
            let size = self.fused.shape[axis];
            let runs = self.runs.len() * size;
            if runs > RUNS || runs * bytes > RUN_BYTES * RUNS || bytes >= RUN_BYTES {
                return;
            }
            let along = |i: isize| (i * dst[axis], i * src[axis]);
            let from = |(d, s): (isize, isize)| self.runs.iter().map(move |r| (r.0 + d, r.1 + s));
            self.runs = (0..size as isize).map(along).flat_map(from).collect();
            self.extent[axis] = size;
        }
    }
}
