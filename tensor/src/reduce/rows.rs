//! Reductions along rows: the fastest axis of the operand is reduced.

use super::folds::{FoldLoops, Pairwise, merge_all};
use super::plan::{ReducePlan, SCRATCH_BYTES};
use crate::loops::parallel::{self, SendPtr};
use crate::loops::stage::StagingBuffer;

/// Elements of a row that are folded into one partial result.
pub(super) const BLOCK: usize = 1 << 14;
/// Maximum number of pending partial results.
const SLOTS: usize = 1 << 12;

/// Folds block `b` of the blocks of a result's rows into a partial result.
///
/// # Safety
/// The block exists.
unsafe fn fold_block(
    plan: &ReducePlan,
    fold: &dyn FoldLoops,
    base: isize,
    b: usize,
    acc: *mut u8,
    scratch: &mut StagingBuffer<SCRATCH_BYTES>,
) {
    let ((len, step), _) = plan.inner();
    let per_row = len.div_ceil(BLOCK);
    let (row, from) = (b / per_row, b % per_row * BLOCK);
    let mut at = base + plan.row_at(row) + from as isize * step;
    let mut left = BLOCK.min(len - from);
    // SAFETY: inside of the row; gathered parts fit the scratch.
    unsafe {
        fold.init(acc, 1);
        while left > 0 {
            let part = if step == 1 { left } else { left.min(plan.capacity()) };
            fold.row(plan.run(at, step, part, scratch), part, acc);
            at += part as isize * step;
            left -= part;
        }
    }
}

/// # Safety
/// `dst` takes every result, `n` elements each; the operand is readable.
pub(super) unsafe fn fold_rows(
    plan: &ReducePlan,
    fold: &dyn FoldLoops,
    dst: SendPtr<u8>,
    n: usize,
) {
    let ((len, step), (width, across)) = plan.inner();
    let [_, acc_size, out_size] = fold.sizes();
    let blocks = plan.rows_per_result() * len.div_ceil(BLOCK);
    let results: usize = plan.kept.shape.iter().product();
    let parallel = parallel::worthwhile(results.saturating_mul(n), 1);
    let place = |i: usize| dst.get().wrapping_offset(plan.kept_at(i).0 * out_size as isize);
    if results >= 16 || blocks == 1 {
        let per_chunk = (BLOCK * 2 / n).max(1);
        parallel::for_each(results.div_ceil(per_chunk), parallel, &|chunk| {
            let range = chunk * per_chunk..((chunk + 1) * per_chunk).min(results);
            if step == 1 && blocks == 1 {
                // Rows in place, in groups of equidistant rows (bench `backend`, row `sum 1024² rows`).
                let pitch = [across, plan.kept.strides[0][plan.kept.rank() - 1]];
                let mut i = range.start;
                while i < range.end {
                    let rows = (width - i % width).min(range.end - i);
                    // SAFETY: rows exist; results are in range and disjoint.
                    unsafe { fold.rows(plan.at(plan.kept_at(i).1), place(i), pitch, rows, len) };
                    i += rows;
                }
                return;
            }
            let mut scratch = StagingBuffer::new();
            let mut total = Pairwise::new(blocks, acc_size);
            for i in range {
                let base = plan.kept_at(i).1;
                total.clear();
                // SAFETY: blocks exist; results are in range and disjoint.
                unsafe {
                    for b in 0..blocks {
                        fold_block(plan, fold, base, b, total.next(), &mut scratch);
                        total.done(fold, 1);
                    }
                    fold.finish(total.finish(fold, 1), n, place(i), 0, 1);
                }
            }
        });
        return;
    }
    // Partial results are combined pairwise in batches, and the results of the batches too.
    let most = blocks.min(SLOTS);
    let mut partials = vec![0u128; most * acc_size.div_ceil(16)];
    let slots = SendPtr(partials.as_mut_ptr().cast::<u8>());
    let slot = |b: usize| slots.get().wrapping_add(b * acc_size);
    let per_chunk = (BLOCK / len).max(1);
    let mut total = Pairwise::new(blocks.div_ceil(most), acc_size);
    for i in 0..results {
        let base = plan.kept_at(i).1;
        total.clear();
        for first in (0..blocks).step_by(most) {
            let count = most.min(blocks - first);
            parallel::for_each(count.div_ceil(per_chunk), parallel, &|chunk| {
                let mut scratch = StagingBuffer::new();
                for b in chunk * per_chunk..((chunk + 1) * per_chunk).min(count) {
                    // SAFETY: the block exists and its slot is written once.
                    unsafe { fold_block(plan, fold, base, first + b, slot(b), &mut scratch) };
                }
            });
            // SAFETY: these slots are written.
            unsafe {
                merge_all(fold, &slot, count, 1);
                total.next().copy_from_nonoverlapping(slot(0), acc_size);
                total.done(fold, 1);
            }
        }
        // SAFETY: there is a block; the result is in range.
        unsafe { fold.finish(total.finish(fold, 1), n, place(i), 0, 1) };
    }
}
