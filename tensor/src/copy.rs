//! Copies between layouts: the permutation kernel.
//!
//! The axes are fused and walked in the order of the destination. What is contiguous on both
//! sides moves as rows. Otherwise two groups of axes form a block:
//!
//! ```text
//! columns   innermost axes of the source,      contiguous there   ≥ one cache line
//! rows      innermost axes of the destination, contiguous there   ≥ one cache line
//! ```
//!
//! A block is a transposition whose rows and columns are found through tables of offsets, so a
//! rotation of twenty axes of size 2 runs like a matrix transpose: every cache line is read once
//! and written once. Short runs that are contiguous on both sides move as wider elements, longer
//! ones as lists of runs. Where the innermost axis of the source is among the rows, there are no
//! columns, and a block is one long row. Elements that the source repeats along the innermost axis
//! are written without a second look.

use std::mem::MaybeUninit;

use smallvec::SmallVec;
use t4a_algebra::Scalar;

use crate::error::Result;
use crate::layout::{Dims, Layout, Strides};
use crate::loops::fuse::Fused;
use crate::loops::parallel::{self, SendPtr};
use crate::loops::transpose::{Even, transpose};
use crate::output::Output;
use crate::storage::Buffer;
use crate::tensor::Tensor;

/// Bytes of a row of a block: four cache lines, which hides the walk between blocks.
const SIDE_BYTES: usize = 256;
/// Bytes of a column of a block: enough for the machine to read ahead.
const COLUMN_BYTES: usize = 1024;
/// Bytes of the shortest rows that are transposed in registers.
const REGISTER_BYTES: usize = 32;
/// Bytes of a row without columns: enough to make the walk between blocks cheap.
const ROW_BYTES: usize = 4096;
/// Bytes of a run from which on it is a block of its own.
const RUN_BYTES: usize = 1024;
/// Bytes of the shortest row of one repeated element that is a block of its own.
const REPEAT_BYTES: usize = 64;
/// Runs in a block, at most.
const RUNS: usize = 64;
/// Elements per unit of parallel work.
const GRAIN: usize = 1 << 15;

/// The elements in row-major order without gaps, in fresh memory.
///
/// Cost: one read and one write per element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn to_contiguous<T: Scalar>(x: &Tensor<T>) -> Result<Tensor<T>> {
    let mut out = Output::<T>::new("copy", x.shape())?;
    let dst = SendPtr(out.as_mut_ptr().cast());
    let src = SendPtr(x.as_ptr().cast_mut().cast());
    if x.numel() > 0 {
        let strides = [out.layout().strides(), x.layout().strides()];
        // SAFETY: the operand is readable at every index, the fresh result writable, and the
        // result is dense with strides ≥ 0.
        unsafe { Plan::new(x.shape(), strides, size_of::<T>()).run(dst, src) };
    }
    // SAFETY: every element was written.
    Ok(unsafe { out.assume_init() })
}

/// The elements, of `size` bytes each, in fresh memory without gaps, the axes in memory ordered as
/// by `order`, a stride for each of them. There is at least one element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn to_order(x: &Tensor<()>, size: usize, order: &[isize]) -> Result<Tensor<()>> {
    let shape = x.shape();
    let mut axes: SmallVec<[usize; 6]> = (0..shape.len()).collect();
    axes.sort_by_key(|&axis| std::cmp::Reverse(order[axis]));
    let mut strides = Strides::from_elem(0, shape.len());
    let mut numel = 1;
    for &axis in axes.iter().rev() {
        strides[axis] = numel as isize;
        numel *= shape[axis];
    }
    let (buffer, dst) = Buffer::fresh(numel * size)?;
    let (dst, src) = (SendPtr(dst), SendPtr(x.first(size).cast_mut()));
    let layout = Layout::from_parts(shape, &strides, 0, numel)?;
    // SAFETY: as in `to_contiguous`; the buffer was allocated for the layout.
    unsafe {
        Plan::new(shape, [&strides, x.layout().strides()], size).run(dst, src);
        Ok(Tensor::from_raw(buffer, layout).with_route(x.route()))
    }
}

/// [`to_contiguous`] that shares the memory of a tensor whose elements already lie like that.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn row_major<T: Scalar>(x: &Tensor<T>) -> Result<Tensor<T>> {
    if x.layout().is_contiguous() { Ok(x.clone()) } else { to_contiguous(x) }
}

/// A copy between two layouts without the data.
struct Plan {
    /// Destination and source, outermost axis first, in elements of `size` bytes.
    fused: Fused<2>,
    size: usize,
    /// Indices of each axis that a block covers.
    extent: Dims,
    /// Source offset of each row element: axes innermost in the destination.
    rows: Group,
    /// Destination offset of each column element: axes innermost in the source.
    columns: Group,
    /// Offsets of (destination, source) of the runs in a block that is contiguous on both sides.
    runs: Vec<(isize, isize)>,
    /// Whether a block is a row of one repeated element.
    repeat: bool,
}

/// Axes of a block that are contiguous on one side, and where their elements lie on the other.
struct Group {
    /// Number of elements.
    full: usize,
    /// Their offsets on the other side; left out where that is contiguous too.
    offsets: Vec<isize>,
    /// Distance between the offsets, if they lie evenly apart.
    even: Option<Even>,
    /// Axis that the block covers only in part, if any, and the elements per index of it.
    split: Option<(usize, usize)>,
}

impl Group {
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

    fn table(&self) -> &[isize] {
        if self.offsets.is_empty() { &[0] } else { &self.offsets }
    }

    /// Elements of a block that covers `extent(axis)` indices of a split axis.
    fn len(&self, extent: impl Fn(usize) -> usize) -> usize {
        self.split.map_or(self.full, |(axis, inner)| inner * extent(axis))
    }
}

impl Plan {
    fn new(shape: &[usize], strides: [&[isize]; 2], size: usize) -> Self {
        let mut fused = Fused::by_first(shape, strides);
        if fused.rank() == 0 {
            fused.shape.push(1);
            fused.strides.iter_mut().for_each(|s| s.push(1));
        }
        let mut plan = Self {
            extent: Dims::from_elem(1, fused.rank()),
            fused,
            size,
            rows: Group::ONE,
            columns: Group::ONE,
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
            self.rows = Group::contiguous(last, count, size);
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

    /// Rows: from the inside of the destination, which is dense. The innermost axis of the source is
    /// left to the columns, unless rows were shorter than what is transposed in registers.
    fn choose_rows(&mut self, side: usize) {
        self.rows = Group::ONE;
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

    /// Runs of the given bytes that a block copies one by one: whole axes next to the innermost.
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

    /// # Safety
    /// Source and destination hold every index of the shape, and do not overlap.
    unsafe fn run(&self, dst: SendPtr<u8>, src: SendPtr<u8>) {
        let counts: Dims =
            self.fused.shape.iter().zip(&self.extent).map(|(n, e)| n.div_ceil(*e)).collect();
        let blocks: usize = counts.iter().product();
        let numel: usize = self.fused.shape.iter().product();
        let per_chunk = (GRAIN / numel.div_ceil(blocks)).max(1);
        let parallel = parallel::worthwhile(numel, 1);
        parallel::for_each(blocks.div_ceil(per_chunk), parallel, &|chunk| {
            let first = chunk * per_chunk;
            // SAFETY: the caller's promise; blocks are disjoint.
            unsafe { self.walk(&counts, first, per_chunk.min(blocks - first), dst, src) };
        });
    }

    /// Copies `count` blocks from block `first` on.
    ///
    /// # Safety
    /// As [`Plan::run`]; the blocks exist.
    unsafe fn walk(
        &self,
        counts: &[usize],
        first: usize,
        count: usize,
        dst: SendPtr<u8>,
        src: SendPtr<u8>,
    ) {
        let rank = counts.len();
        let mut index = Dims::from_elem(0, rank);
        let mut at = [0isize; 2];
        let mut rest = first;
        let step =
            |axis: usize, op: usize| self.fused.strides[op][axis] * self.extent[axis] as isize;
        for axis in (0..rank).rev() {
            index[axis] = rest % counts[axis];
            rest /= counts[axis];
            for (op, at) in at.iter_mut().enumerate() {
                *at += index[axis] as isize * step(axis, op);
            }
        }
        for _ in 0..count {
            let covered = |axis: usize| {
                self.extent[axis].min(self.fused.shape[axis] - index[axis] * self.extent[axis])
            };
            let (cols, rows) = (self.rows.len(covered), self.columns.len(covered));
            let to = dst.get().wrapping_offset(at[0] * self.size as isize);
            let from = src.get().cast_const().wrapping_offset(at[1] * self.size as isize);
            // SAFETY: the block exists.
            unsafe { self.block(from, to, rows, cols) };
            for axis in (0..rank).rev() {
                index[axis] += 1;
                let wrapped = index[axis] == counts[axis];
                let steps = if wrapped { 1 - index[axis] as isize } else { 1 };
                for (op, at) in at.iter_mut().enumerate() {
                    *at += steps * step(axis, op);
                }
                if !wrapped {
                    break;
                }
                index[axis] = 0;
            }
        }
    }

    /// # Safety
    /// The block holds `rows × cols` elements on both sides.
    unsafe fn block(&self, src: *const u8, dst: *mut u8, rows: usize, cols: usize) {
        let bytes = cols * self.size;
        // SAFETY: the caller's promise; elements move as possibly uninitialised words.
        unsafe {
            if self.repeat {
                return match self.size {
                    1 => repeat::<u8>(src, dst, cols),
                    2 => repeat::<u16>(src, dst, cols),
                    4 => repeat::<u32>(src, dst, cols),
                    8 => repeat::<u64>(src, dst, cols),
                    16 => repeat::<u128>(src, dst, cols),
                    size => (0..cols).for_each(|i| {
                        std::ptr::copy_nonoverlapping(src, dst.add(i * size), size);
                    }),
                };
            }
            if self.rows.offsets.is_empty() && rows == 1 {
                let size = self.size as isize;
                for &(to, from) in &self.runs {
                    let (from, to) = (src.offset(from * size), dst.offset(to * size));
                    std::ptr::copy_nonoverlapping(from, to, bytes);
                }
                return;
            }
            match self.size {
                1 => self.block_of::<u8>(src.cast(), dst.cast(), rows, cols),
                2 => self.block_of::<u16>(src.cast(), dst.cast(), rows, cols),
                4 => self.block_of::<u32>(src.cast(), dst.cast(), rows, cols),
                8 => self.block_of::<u64>(src.cast(), dst.cast(), rows, cols),
                16 => self.block_of::<u128>(src.cast(), dst.cast(), rows, cols),
                size => {
                    for (r, &to) in self.columns.table()[..rows].iter().enumerate() {
                        for (c, &from) in self.rows.table()[..cols].iter().enumerate() {
                            let from = src.offset((r as isize + from) * size as isize);
                            let to = dst.offset((to + c as isize) * size as isize);
                            std::ptr::copy_nonoverlapping(from, to, size);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// As [`Plan::block`], for elements of the size of `W`.
    unsafe fn block_of<W: Copy>(
        &self,
        src: *const MaybeUninit<W>,
        dst: *mut MaybeUninit<W>,
        rows: usize,
        cols: usize,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            match (self.rows.even, self.columns.even) {
                (Some(from), Some(to)) => transpose(src, from, dst, to, rows, cols),
                _ => transpose(src, self.rows.table(), dst, self.columns.table(), rows, cols),
            }
        }
    }
}

/// Writes one element `len` times.
///
/// # Safety
/// `src` holds an element of the size of `W`, and `dst` room for `len`; no alignment is required.
unsafe fn repeat<W: Copy>(src: *const u8, dst: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let element = src.cast::<MaybeUninit<W>>().read_unaligned();
        for i in 0..len {
            dst.cast::<MaybeUninit<W>>().add(i).write_unaligned(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(x: &Tensor<u32>) -> Vec<u32> {
        let mut index = vec![0; x.rank()];
        (0..x.numel())
            .map(|_| {
                let value = x.get(&index).unwrap();
                for axis in (0..x.rank()).rev() {
                    index[axis] += 1;
                    if index[axis] < x.shape()[axis] {
                        break;
                    }
                    index[axis] = 0;
                }
                value
            })
            .collect()
    }

    fn arange(shape: &[usize]) -> Tensor<u32> {
        Tensor::from_fn(shape, |i| i as u32).unwrap()
    }

    fn check(x: &Tensor<u32>) {
        assert_eq!(to_contiguous(x).unwrap().as_slice().unwrap(), naive(x), "{:?}", x.layout());
    }

    #[test]
    fn permutations_of_every_kind() {
        let shapes: [&[usize]; 13] = [
            &[5],
            &[40, 70],
            &[3, 50, 33],
            &[17, 4, 2, 19],
            &[2; 12],
            &[3; 7],
            &[2; 14],
            &[3; 9],
            &[5, 6, 4, 40],
            &[1, 5, 1, 7],
            &[64, 3, 64],
            &[2, 100, 1, 3, 9],
            &[9, 2, 7, 3, 11, 20],
        ];
        for shape in shapes {
            let x = arange(shape);
            let n = shape.len();
            for k in 0..n {
                let rotated: Vec<usize> = (0..n).map(|a| (a + k) % n).collect();
                let reversed: Vec<usize> = rotated.iter().rev().copied().collect();
                let mixed: Vec<usize> = (0..n).map(|a| (a * 5 + k) % n).collect();
                for axes in [rotated, reversed, mixed] {
                    if let Ok(p) = x.permute(&axes) {
                        check(&p);
                        check(&p.flip(&[0, n - 1]).unwrap_or_else(|_| p.clone()));
                    }
                }
            }
        }
    }

    #[test]
    fn strided_repeated_and_empty_operands() {
        let x = arange(&[30, 41]);
        let s = x.slice_axis(0, 3, 13, 2).unwrap().slice_axis(1, 39, 19, -2).unwrap();
        check(&s);
        check(&s.swap_axes(0, 1).unwrap());
        check(&arange(&[1, 33]).expand(&[29, 33]).unwrap());
        check(&arange(&[33, 1]).expand(&[33, 29]).unwrap());
        check(&arange(&[]).expand(&[3, 4]).unwrap());
        check(&arange(&[]).expand(&[300, 401]).unwrap());
        check(&arange(&[7, 1, 5, 1]).expand(&[7, 3, 5, 401]).unwrap().swap_axes(0, 2).unwrap());
        check(&arange(&[0, 3]).swap_axes(0, 1).unwrap());
        check(&arange(&[50]).unfold(0, 20, 3).unwrap());
        check(&arange(&[50]).unfold(0, 20, 1).unwrap().swap_axes(0, 1).unwrap());
    }

    #[test]
    fn elements_of_odd_sizes() {
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Pixel([u8; 3]);
        impl Scalar for Pixel {}
        let x = Tensor::from_fn(&[20, 30], |i| Pixel([i as u8, (i >> 8) as u8, 7])).unwrap();
        let t = to_contiguous(&x.swap_axes(0, 1).unwrap()).unwrap();
        for (r, c) in [(0, 0), (19, 29), (11, 3), (5, 28)] {
            assert_eq!(t.get(&[c, r]), x.get(&[r, c]));
        }
        let y = x.slice_axis(1, 29, 1, 1).unwrap().expand(&[20, 50]).unwrap();
        let t = to_contiguous(&y).unwrap();
        assert!((0..1000).all(|i| t.get(&[i / 50, i % 50]) == x.get(&[i / 50, 29])));
    }

    #[test]
    fn repeated_elements_of_every_size() {
        fn check<T: Scalar + PartialEq + std::fmt::Debug>(value: impl Fn(usize) -> T) {
            let x = Tensor::from_fn(&[3, 2], value).unwrap();
            // An element that is aligned for its type only, with 16 bytes the hardest case.
            let y = x.slice_axis(1, 1, 1, 1).unwrap().expand(&[3, 99]).unwrap();
            let want: Vec<T> = (0..297).map(|i| x.get(&[i / 99, 1]).unwrap()).collect();
            assert_eq!(to_contiguous(&y).unwrap().to_vec().unwrap(), want);
        }
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as f32);
        check(|i| i as f64);
        check(|i| t4a_algebra::c64::new(i as f64, 1.0));
    }
}
