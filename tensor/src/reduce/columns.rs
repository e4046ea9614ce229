//! Reductions across rows: the fastest axis of the operand is kept, or rows are short.

use super::folds::{FoldLoops, Pairwise, TILE, merge_all};
use super::plan::{ReducePlan, SCRATCH_BYTES};
use crate::loops::BALANCED;
use crate::loops::parallel::{self, SendPtr};
use crate::loops::stage::StagingBuffer;

/// Number of rows folded into one tile before it is merged; bounds the growth of rounding errors.
pub(super) const ROWS: usize = 256;
/// Minimum number of rows in a group with separate results: merging them costs 1/64 of the work.
const GROUP: usize = 64;
/// Number of jobs above which threads share them evenly, regardless of a remainder.
const MANY: usize = 128;

/// # Safety
/// `dst` takes every result, `n` elements each; the operand is readable.
pub(super) unsafe fn fold_columns(
    plan: &ReducePlan,
    fold: &dyn FoldLoops,
    dst: SendPtr<u8>,
    n: usize,
) {
    let ((len, _), (width, across)) = plan.inner();
    let [_, acc_size, out_size] = fold.sizes();
    let k = plan.kept.rank() - 1;
    let out_step = plan.kept.strides[0][k];
    let outer: usize = plan.kept.shape[..k].iter().product();
    // A gathered row of a tile fits in the scratch for every element size.
    let most = TILE.min(plan.capacity());
    let tiles = width.div_ceil(most);
    let rows = plan.rows_per_result();
    let parallel = parallel::worthwhile(outer.saturating_mul(width).saturating_mul(n), 1);
    // Groups of rows with separate partial results, for few long columns.
    let groups = match len.div_ceil(GROUP).min(64) {
        _ if outer * tiles >= MANY => 1,
        // The same number of groups for each thread.
        groups @ BALANCED.. => groups - groups % BALANCED,
        groups => groups,
    };
    let per_group = len.div_ceil(groups);
    let per_chunk = ((1 << 13) / (TILE.min(width) * per_group * rows).max(1)).max(1);
    let jobs = outer * tiles * groups;
    let spare = if groups > 1 { groups * outer * width } else { 0 };
    let mut partials = vec![0u128; (spare * acc_size).div_ceil(16)];
    let slots = SendPtr(partials.as_mut_ptr().cast::<u8>());
    let slot =
        |group: usize, i: usize| slots.get().wrapping_add((group * outer * width + i) * acc_size);
    parallel::for_each(jobs.div_ceil(per_chunk), parallel, &|chunk| {
        let mut scratch = StagingBuffer::new();
        let blocks = rows.saturating_mul(per_group.div_ceil(ROWS));
        let mut total = Pairwise::new(blocks, most.min(width) * acc_size);
        for job in chunk * per_chunk..((chunk + 1) * per_chunk).min(jobs) {
            let (group, tile) = (job % groups, job / groups);
            let (o, from) = (tile / tiles, tile % tiles * most);
            let cols = most.min(width - from);
            let to = ReducePlan::position(&plan.kept, 0, k, o) + from as isize * out_step;
            let base = ReducePlan::position(&plan.kept, 1, k, o) + from as isize * across;
            let range = group * per_group..((group + 1) * per_group).min(len);
            // SAFETY: rows and columns are in range; jobs have separate slots and results.
            unsafe {
                let acc = fold_tile(plan, fold, base, range, cols, &mut total, &mut scratch);
                match groups {
                    1 => {
                        let out = dst.get().wrapping_offset(to * out_size as isize);
                        fold.finish(acc, n, out, out_step, cols);
                    }
                    _ => {
                        slot(group, o * width + from).copy_from_nonoverlapping(acc, cols * acc_size)
                    }
                }
            }
        }
    });
    if groups > 1 {
        // SAFETY: every slot is written; results are in range.
        unsafe {
            merge_all(fold, &|group| slot(group, 0), groups, outer * width);
            for o in 0..outer {
                let to = ReducePlan::position(&plan.kept, 0, k, o) * out_size as isize;
                let out = dst.get().wrapping_offset(to);
                fold.finish(slot(0, o * width), n, out, out_step, width);
            }
        }
    }
}

/// Folds a range of the innermost reduced axis, under every outer reduced index, into `cols`
/// partial results, those of [`ROWS`] at a time pairwise.
///
/// # Safety
/// Rows and columns are in range; `total` has room for the blocks of rows.
unsafe fn fold_tile(
    plan: &ReducePlan,
    fold: &dyn FoldLoops,
    base: isize,
    range: std::ops::Range<usize>,
    cols: usize,
    total: &mut Pairwise,
    scratch: &mut StagingBuffer<SCRATCH_BYTES>,
) -> *mut u8 {
    let ((_, step), (_, across)) = plan.inner();
    // Gathered rows have to fit the scratch.
    let batch = if across == 1 { ROWS } else { (plan.capacity() / cols).clamp(1, ROWS) };
    total.clear();
    // SAFETY: the caller's contract.
    unsafe {
        if range.is_empty() {
            fold.init(total.next(), cols);
            total.done(fold, cols);
        }
        for outer_row in 0..plan.rows_per_result() {
            let start = base + plan.row_at(outer_row);
            let mut r = range.start;
            while r < range.end {
                let partial = total.next();
                fold.init(partial, cols);
                let stop = (r + ROWS).min(range.end);
                while r < stop {
                    let rows = batch.min(stop - r);
                    let at = start + r as isize * step;
                    let (x, pitch) = plan.tile(at, (rows, step), (cols, across), scratch);
                    fold.columns(rows, x, pitch, partial, cols);
                    r += rows;
                }
                total.done(fold, cols);
            }
        }
        total.finish(fold, cols)
    }
}
