//! The register tile that remembers winners.
//!
//! ```text
//! per step   new ← new ⊕ (a ⊗ b)                      the tile of values, from 0 in every run
//! per run    acc ← new, run ← its number, where new is better
//! per tile   the first step of the run whose term is acc
//! ```
//!
//! A winner in every step costs a comparison and a selection more than the step itself, half of the
//! rate. Long sums therefore note only the run of [`RUN`] steps that has set an accumulator, and
//! search it when the tile is stored; the operands are packed with the steps of a run side by side
//! for that. Short sums have runs of one step, and nothing to search.
//!
//! Numbers of runs count from the start of the block of k and are as wide as an element, so that
//! one comparison mask serves both. A later run replaces an accumulator only if it is strictly
//! better, and a search takes the first step that is not worse: ties go to the smallest k.

use std::hint::select_unpredictable;

use super::kernel::Picks;
use super::tile::rows;
use super::{MatMut, NO_WINNER};
use crate::{Scalar, Selective, simd};

/// Steps in a run of a long sum: with fewer the notes cost more, with more the search does.
pub(super) const RUN: usize = 16;
/// Fewest steps of a sum whose runs are worth searching (bench `semiring`).
pub(super) const LONG: usize = 256;

/// Number of a run within a block, in a lane as wide as the element's.
pub(super) trait Number: Copy + PartialEq + 'static {
    /// No run; blocks have fewer.
    const NONE: Self;
    /// Number of runs that a block may have.
    const MOST: usize;
    fn of(run: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl Number for $t {
            const NONE: Self = <$t>::MAX;
            const MOST: usize = <$t>::MAX as usize;
            #[inline(always)]
            fn of(run: usize) -> Self { run as Self }
            #[inline(always)]
            fn get(self) -> usize { self as usize }
        }
    )*};
}
number!(u8, u16, u32, u64);

/// The operands of a tile.
#[derive(Clone, Copy)]
pub(super) struct Panels<P> {
    /// Steps.
    pub(super) kc: usize,
    /// A with the steps of a run side by side.
    pub(super) a: *const P,
    /// B with the columns of a step side by side.
    pub(super) b: *const P,
    /// B with the steps of a run side by side, if runs have more than one.
    pub(super) b_runs: *const P,
}

/// `⊕ₖ aᵢₖ ⊗ bₖⱼ` over the panels, and the first run that attains it.
///
/// # Safety
/// `panels.a` must hold `⌈kc/RUN⌉·RUN·MR` and `panels.b` `kc·NR` readable elements, and
/// `kc ≤ RUN·I::MOST`.
#[inline(always)]
pub(super) unsafe fn tile<
    K,
    I,
    T,
    const FMA: bool,
    const MR: usize,
    const NR: usize,
    const RUN: usize,
>(
    panels: Panels<K::Packed>,
) -> ([[K::Packed; NR]; MR], [[I; NR]; MR])
where
    K: Picks<T>,
    I: Number,
    T: Scalar,
{
    let unit = K::unit();
    let mut acc = [[K::zero(); NR]; MR];
    let mut runs = [[I::NONE; NR]; MR];
    let (mut a, mut b) = (panels.a, panels.b.cast::<[K::Packed; NR]>());
    for run in 0..panels.kc.div_ceil(RUN) {
        let steps = if const { RUN == 1 } { 1 } else { (panels.kc - run * RUN).min(RUN) };
        let mut new = [[K::zero(); NR]; MR];
        for t in 0..steps {
            // SAFETY: the elements of `steps` more steps are readable.
            let bv = unsafe { &*b };
            rows!(MR, R => {
                // SAFETY: as above.
                let av = unsafe { *a.add(R * RUN + t) };
                for j in 0..NR {
                    new[R][j] = if const { RUN == 1 } {
                        K::mul::<FMA>(av, bv[j], unit)
                    } else {
                        K::mul_add::<FMA>(av, bv[j], new[R][j], unit)
                    };
                }
            });
            b = b.wrapping_add(1);
        }
        a = a.wrapping_add(MR * RUN);
        let run = I::of(run);
        rows!(MR, R => {
            for j in 0..NR {
                let better = K::better(new[R][j], acc[R][j]);
                // Plain `if`s become branches here, and nothing is vectorised.
                acc[R][j] = select_unpredictable(better, new[R][j], acc[R][j]);
                runs[R][j] = select_unpredictable(better, run, runs[R][j]);
            }
        });
    }
    (acc, runs)
}

/// The first step of a run whose term is not worse than `best`, without branches: the steps are
/// bits of a set. Steps past the end hold 0 and come last.
#[inline(always)]
fn search<K: Picks<T>, T: Scalar, const FMA: bool, const RUN: usize>(
    best: K::Packed,
    row: &[K::Packed; RUN],
    col: &[K::Packed; RUN],
    unit: K::Unit,
) -> usize {
    const { assert!(RUN < 32) }
    let mut found = 0_u32;
    for t in 0..RUN {
        let worse = K::better(best, K::mul::<FMA>(row[t], col[t], unit));
        // Bits from 1 on: a bit without a shift is computed apart, and nothing is vectorised.
        found |= select_unpredictable(worse, 0, 2 << t);
    }
    found.trailing_zeros() as usize - 1
}

/// Writes the part of a tile that lies inside C, or merges it; `first` is the number of the
/// block's first step.
///
/// # Safety
/// `c` must be writable, have at most MR rows and NR columns and be initialised if `merge`; `arg`
/// must be such a matrix with the layout of `c`. The tile must be that of the panels, whose
/// `b_runs` must hold `⌈kc/RUN⌉·RUN·NR` elements unless `RUN` is 1.
#[inline(always)]
pub(super) unsafe fn store<
    S,
    K,
    I,
    T,
    const FMA: bool,
    const MR: usize,
    const NR: usize,
    const RUN: usize,
>(
    (acc, runs): &([[K::Packed; NR]; MR], [[I; NR]; MR]),
    panels: Panels<K::Packed>,
    c: &MatMut<'_, T>,
    arg: *mut u32,
    first: usize,
    merge: bool,
) where
    S: Selective<T>,
    K: Picks<T>,
    I: Number,
    T: Scalar,
{
    let unit = K::unit();
    if const { RUN > 1 } {
        // The runs of a long panel are outside of the first-level cache.
        for numbers in runs.iter().take(c.rows()) {
            for (j, &run) in numbers.iter().enumerate().take(c.cols()) {
                let run = if run == I::NONE { 0 } else { run.get() };
                simd::prefetch(panels.b_runs.wrapping_add((run * NR + j) * RUN));
            }
        }
    }
    for i in 0..c.rows() {
        for j in 0..c.cols() {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            let (value, run) = (K::leave(acc[i][j]), runs[i][j]);
            // SAFETY: (i, j) is a place of both matrices, and the run is one of the panels'.
            unsafe {
                let (to, arg) = (c.as_mut_ptr().wrapping_offset(at), arg.wrapping_offset(at));
                if merge && !S::better(value, to.read()) {
                    continue;
                }
                to.write(value);
                // Stand-ins for 0 may differ among themselves: the element decides.
                if run == I::NONE || value == S::ZERO {
                    arg.write(NO_WINNER);
                    continue;
                }
                let mut step = run.get() * RUN;
                if const { RUN > 1 } {
                    let row = &*panels.a.add(step * MR + i * RUN).cast::<[K::Packed; RUN]>();
                    let col = &*panels.b_runs.add(step * NR + j * RUN).cast::<[K::Packed; RUN]>();
                    step += search::<K, T, FMA, RUN>(acc[i][j], row, col, unit);
                }
                arg.write((first + step) as u32);
            }
        }
    }
}
