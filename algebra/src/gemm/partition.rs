//! Distributes batch entries and blocks of C over threads.
//!
//! Batch entries are distributed first; if there are fewer of them than threads, C is also cut into a grid of blocks. k
//! is never cut. The arithmetic of an element must not depend on its block, or results would depend on the number of
//! threads. Blocks have at least [`MIN_SIDE`] rows or columns along a cut axis, and one side longer than [`SHORT`] if C
//! has one: a library that derives its blocks of k from that chooses the same for all of them.

use super::{MatMut, MatRef, Parallelism, Product};
use crate::{Scalar, parallel};

/// Minimum number of steps per thread for which a hand-over to another thread pays (some 10 µs).
const MIN_STEPS: usize = 1 << 18;
const MIN_SIDE: usize = 48;
/// If no side is longer, `gemm` 0.19 cuts k at 512, otherwise evenly.
const SHORT: usize = 64;
const MIN_AREA: usize = 1024;
/// Maximum number of groups of batch entries per thread.
const GROUPS: usize = 4;
/// Maximum number of blocks of one entry per thread, for load balancing.
const MAX_BLOCKS: usize = 8;

/// One work item: a block of C of one batch entry, with its rows of A and columns of B.
pub(super) struct OutputBlock<'a, T> {
    pub(super) a: MatRef<'a, T>,
    pub(super) b: MatRef<'a, T>,
    pub(super) c: MatMut<'a, T>,
    pub(super) accumulate: bool,
    /// Output of the argmax, with the layout of C; null if not requested.
    pub(super) arg: *mut u32,
    /// Added to every argmax.
    pub(super) first: usize,
}

impl<'a, T> OutputBlock<'a, T> {
    /// `Cᵀ = Bᵀ ⊗ Aᵀ`, the same product if ⊗ commutes.
    #[inline]
    pub(super) fn transpose(&self) -> Self {
        Self {
            a: self.b.transpose(),
            b: self.a.transpose(),
            // SAFETY: the handle replaces the one in `self`.
            c: unsafe { self.c.alias() }.transpose(),
            ..*self
        }
    }
}

/// Blocks of C along each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockGrid {
    rows: usize,
    cols: usize,
}

impl BlockGrid {
    const WHOLE: Self = Self { rows: 1, cols: 1 };

    /// The coarsest grid for each of `entries` matrices whose load imbalance over `threads` threads is at most 10 %, or
    /// else the most balanced grid with at most [`MAX_BLOCKS`] blocks per thread.
    fn of_entries(m: usize, n: usize, entries: usize, threads: usize) -> Self {
        let rounds = |blocks: usize| (entries * blocks).div_ceil(threads) * threads;
        let longer = |grid: BlockGrid| {
            let blocks = grid.rows * grid.cols;
            rounds(blocks) as f64 / (entries * blocks) as f64
        };
        let mut best = Self::WHOLE;
        for parts in threads.div_ceil(entries).max(2)..=(MAX_BLOCKS * threads).div_ceil(entries) {
            if longer(best) <= 1.1 {
                break;
            }
            let grid = Self::new(m, n, parts);
            if longer(grid) < longer(best) {
                best = grid;
            }
        }
        best
    }

    /// At most `parts` blocks of an m×n matrix, with the minimal total of packed rows and columns.
    fn new(m: usize, n: usize, parts: usize) -> Self {
        let mut best = Self::WHOLE;
        let cost = |g: BlockGrid| (m * g.cols + n * g.rows) as f64;
        // The shortest block of a grid with bounds at multiples of 8.
        let shortest = |size: usize, parts: usize| if parts == 1 { size } else { size / parts - 8 };
        for rows in 1..=parts.min((m / MIN_SIDE).max(1)) {
            let cols = (parts / rows).min((n / MIN_SIDE).max(1));
            let grid = BlockGrid { rows, cols };
            let short = shortest(m, rows).max(shortest(n, cols)) <= SHORT && m.max(n) > SHORT;
            if short || (m / rows) * (n / cols) < MIN_AREA {
                continue;
            }
            let (blocks, most) = (rows * cols, best.rows * best.cols);
            if blocks > most || (blocks == most && cost(grid) < cost(best)) {
                best = grid;
            }
        }
        best
    }
}

/// The `i`-th of `parts` nearly equal ranges of 0..size, bounds on multiples of 8 where possible.
pub(super) fn span(size: usize, parts: usize, i: usize) -> (usize, usize) {
    let at = |i: usize| if i == parts { size } else { (size * i / parts) & !7 };
    (at(i), at(i + 1) - at(i))
}

/// Number of threads for a product with this many steps.
fn threads(parallelism: Parallelism, steps: usize) -> usize {
    match parallelism {
        Parallelism::Seq => 1,
        _ if steps < 2 * MIN_STEPS => 1,
        Parallelism::Threads(n) => {
            let n = if n == 0 { parallel::threads() } else { n };
            n.min(steps / MIN_STEPS)
        }
    }
}

/// Runs `kernel` on blocks that cover every batch entry of `p` once.
///
/// # Safety
/// The operands must satisfy the contract of [`Product::batch`].
pub(super) unsafe fn for_each<T: Scalar>(
    p: &Product<'_, T>,
    kernel: impl Fn(OutputBlock<'_, T>) + Sync,
) {
    let (m, k, n) = (p.a.rows(), p.a.cols(), p.b.cols());
    let entries: usize = p.batch.iter().map(|axis| axis.size).product();
    if m == 0 || n == 0 || entries == 0 {
        return;
    }
    let steps = [m, n, k.max(1)].into_iter().fold(entries, usize::saturating_mul);
    let threads = threads(p.parallelism, steps);
    let grid = BlockGrid::of_entries(m, n, entries, threads);
    let blocks = grid.rows * grid.cols;
    // Whole entries are distributed in groups, a few per thread, because a thread may be descheduled.
    let run = if blocks == 1 { entries.min(GROUPS * threads) } else { entries };
    let tasks = run * blocks;

    let task = |t: usize| {
        let (group, cell) = (t / blocks, t % blocks);
        let (row, m) = span(m, grid.rows, cell / grid.cols);
        let (col, n) = span(n, grid.cols, cell % grid.cols);
        let first = entries * group / run;
        let last = entries * (group + 1) / run;
        // SAFETY: the block is inside C, tasks have disjoint blocks or entries, and the offsets are those of an entry.
        walk(p, first, last, |a, b, c| unsafe {
            kernel(OutputBlock {
                a: p.a.offset(a).block((row, 0), (m, k)),
                b: p.b.offset(b).block((0, col), (k, n)),
                c: p.c.alias().offset(c).block((row, col), (m, n)),
                accumulate: p.accumulate,
                arg: p.arg.map_or(std::ptr::null_mut(), |arg| {
                    let (rs, cs) = (p.c.row_stride(), p.c.col_stride());
                    arg.0.wrapping_offset(c + row as isize * rs + col as isize * cs)
                }),
                first: p.first,
            });
        });
    };
    parallel::for_each_limited(tasks, threads, &task);
}

/// True if `holds` is true for A and B of all batch entries.
///
/// # Safety
/// As [`for_each`].
pub(super) unsafe fn all_operands<T: Scalar>(
    p: &Product<'_, T>,
    holds: impl Fn(MatRef<'_, T>) -> bool,
) -> bool {
    let mut all = true;
    let entries: usize = p.batch.iter().map(|axis| axis.size).product();
    walk(p, 0, entries, |a, b, _| {
        // SAFETY: the offsets are those of an entry.
        all = all && unsafe { holds(p.a.offset(a)) && holds(p.b.offset(b)) };
    });
    all
}

/// Calls `visit` with the offsets into A, B and C of the batch entries `first..last`.
fn walk<T>(
    p: &Product<'_, T>,
    first: usize,
    last: usize,
    mut visit: impl FnMut(isize, isize, isize),
) {
    let Some((inner, outer)) = p.batch.split_last() else {
        return visit(0, 0, 0);
    };
    let mut entry = first;
    while entry < last {
        // Decoded once per run along the innermost axis.
        let start = entry % inner.size;
        let mut rest = entry / inner.size;
        let (mut a, mut b, mut c) =
            (start as isize * inner.a, start as isize * inner.b, start as isize * inner.c);
        for axis in outer.iter().rev() {
            let i = (rest % axis.size) as isize;
            rest /= axis.size;
            a += i * axis.a;
            b += i * axis.b;
            c += i * axis.c;
        }
        let count = (inner.size - start).min(last - entry);
        for _ in 0..count {
            visit(a, b, c);
            a = a.wrapping_add(inner.a);
            b = b.wrapping_add(inner.b);
            c = c.wrapping_add(inner.c);
        }
        entry += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_cover_the_axis_once() {
        for size in [1, 7, 96, 1000, 1023] {
            for parts in 1..=9 {
                let mut next = 0;
                for i in 0..parts {
                    let (at, len) = span(size, parts, i);
                    assert_eq!(at, next);
                    next += len;
                }
                assert_eq!(next, size);
            }
        }
    }

    #[test]
    fn grids_use_all_threads_on_large_outputs_and_none_on_small_ones() {
        assert_eq!(BlockGrid::new(1024, 1024, 4), BlockGrid { rows: 2, cols: 2 });
        assert_eq!(BlockGrid::new(4096, 64, 4), BlockGrid { rows: 4, cols: 1 });
        assert_eq!(BlockGrid::new(64, 4096, 4), BlockGrid { rows: 1, cols: 4 });
        assert_eq!(BlockGrid::new(90, 90, 8), BlockGrid::WHOLE);
        assert_eq!(BlockGrid::new(128, 128, 2), BlockGrid { rows: 1, cols: 2 });
        // With blocks of 64 × 64 the library would cut k at other positions.
        assert_eq!(BlockGrid::new(128, 128, 4), BlockGrid { rows: 1, cols: 2 });
    }

    #[test]
    fn entries_are_cut_where_they_do_not_go_into_the_threads() {
        let blocks = |entries, threads| {
            let BlockGrid { rows, cols } = BlockGrid::of_entries(1024, 1024, entries, threads);
            rows * cols
        };
        assert_eq!((blocks(32, 16), blocks(160, 16), blocks(1, 1)), (1, 1, 1));
        for (entries, threads) in [(17, 16), (3, 2), (5, 4), (1, 16), (12, 16), (40, 16)] {
            let tasks = entries * blocks(entries, threads);
            let rounds = tasks.div_ceil(threads);
            assert!(rounds * threads * 10 <= 11 * tasks, "{entries} {threads} {tasks}");
        }
        assert_eq!(BlockGrid::of_entries(64, 64, 17, 16), BlockGrid::WHOLE);
    }
}
