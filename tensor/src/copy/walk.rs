//! Loop over the blocks of a copy, and over the elements of a block.

use std::mem::MaybeUninit;

use super::plan::{CopyPlan, GRAIN};
use crate::layout::Dims;
use crate::loops::parallel::{self, SendPtr};
use crate::loops::transpose::transpose;

impl CopyPlan {
    /// # Safety
    /// Every index of the shape is inside source and destination, which do not overlap.
    pub(super) unsafe fn run(&self, dst: SendPtr<u8>, src: SendPtr<u8>) {
        let counts: Dims =
            self.fused.shape.iter().zip(&self.extent).map(|(n, e)| n.div_ceil(*e)).collect();
        let blocks: usize = counts.iter().product();
        let numel: usize = self.fused.shape.iter().product();
        let per_chunk = (GRAIN / numel.div_ceil(blocks)).max(1);
        let parallel = parallel::worthwhile(numel, 1);
        parallel::for_each(blocks.div_ceil(per_chunk), parallel, &|chunk| {
            let first = chunk * per_chunk;
            // SAFETY: the caller's contract; blocks are disjoint.
            unsafe { self.walk(&counts, first, per_chunk.min(blocks - first), dst, src) };
        });
    }

    /// Copies `count` blocks from block `first` on.
    ///
    /// # Safety
    /// As [`CopyPlan::run`]; the blocks exist.
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
        // SAFETY: the caller's contract; elements are moved as possibly uninitialised words.
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
    /// As [`CopyPlan::block`], for elements of the size of `W`.
    unsafe fn block_of<W: Copy>(
        &self,
        src: *const MaybeUninit<W>,
        dst: *mut MaybeUninit<W>,
        rows: usize,
        cols: usize,
    ) {
        // SAFETY: the caller's contract.
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
    // SAFETY: the caller's contract.
    unsafe {
        let element = src.cast::<MaybeUninit<W>>().read_unaligned();
        for i in 0..len {
            dst.cast::<MaybeUninit<W>>().add(i).write_unaligned(element);
        }
    }
}
