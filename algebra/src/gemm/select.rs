//! The register tile that remembers winners.
//!
//! Next to every accumulator lies the number of the step that set it, of the same width, so that
//! one comparison mask serves both. Numbers count from the start of the block of k and are
//! translated when the tile is stored. A later step replaces an accumulator only if it is strictly
//! better: ties go to the smallest k.

use std::hint::select_unpredictable;

use super::kernel::Picks;
use super::tile::rows;
use super::{MatMut, NO_WINNER};
use crate::{Scalar, Selective};

/// Number of a step within a block, in a lane as wide as the element's.
pub(super) trait Step: Copy + PartialEq + 'static {
    /// No step; blocks are shorter.
    const NONE: Self;
    /// Number of steps that a block may have.
    const MOST: usize;
    fn of(k: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! step {
    ($($t:ty),*) => {$(
        impl Step for $t {
            const NONE: Self = <$t>::MAX;
            const MOST: usize = <$t>::MAX as usize;
            #[inline(always)]
            fn of(k: usize) -> Self { k as Self }
            #[inline(always)]
            fn get(self) -> usize { self as usize }
        }
    )*};
}
step!(u8, u16, u32, u64);

/// `⊕ₖ aᵢₖ ⊗ bₖⱼ` over one panel of A and one of B, and the first k that attains it.
///
/// # Safety
/// `a` must hold `kc·MR` and `b` `kc·NR` readable elements, and `kc ≤ I::MOST`.
#[inline(always)]
pub(super) unsafe fn tile<K, I, T, const FMA: bool, const MR: usize, const NR: usize>(
    kc: usize,
    a: *const K::Packed,
    b: *const K::Packed,
) -> ([[K::Packed; NR]; MR], [[I; NR]; MR])
where
    K: Picks<T>,
    I: Step,
    T: Scalar,
{
    let unit = K::unit();
    let mut acc = [[K::zero(); NR]; MR];
    let mut arg = [[I::NONE; NR]; MR];
    let (mut a, mut b) = (a.cast::<[K::Packed; MR]>(), b.cast::<[K::Packed; NR]>());
    for k in 0..kc {
        // SAFETY: `kc` groups are readable.
        let (av, bv) = unsafe { (&*a, &*b) };
        let k = I::of(k);
        rows!(MR, I => {
            for j in 0..NR {
                let new = K::mul::<FMA>(av[I], bv[j], unit);
                let better = K::better(new, acc[I][j]);
                // Plain `if`s become branches here, and nothing is vectorised.
                acc[I][j] = select_unpredictable(better, new, acc[I][j]);
                arg[I][j] = select_unpredictable(better, k, arg[I][j]);
            }
        });
        a = a.wrapping_add(1);
        b = b.wrapping_add(1);
    }
    (acc, arg)
}

/// Writes the part of a tile that lies inside C, or merges it; `first` is the number of the
/// block's first step.
///
/// # Safety
/// `c` must be writable, have at most MR rows and NR columns and be initialised if `merge`; `arg`
/// must be such a matrix with the layout of `c`.
#[inline(always)]
pub(super) unsafe fn store<S, K, I, T, const MR: usize, const NR: usize>(
    (acc, steps): &([[K::Packed; NR]; MR], [[I; NR]; MR]),
    c: &MatMut<'_, T>,
    arg: *mut u32,
    first: usize,
    merge: bool,
) where
    S: Selective<T>,
    K: Picks<T>,
    I: Step,
    T: Scalar,
{
    for i in 0..c.rows() {
        for j in 0..c.cols() {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            let (value, step) = (K::leave(acc[i][j]), steps[i][j]);
            // Stand-ins for 0 may differ among themselves: the element decides.
            let none = step == I::NONE || value == S::ZERO;
            let winner = if none { NO_WINNER } else { (first + step.get()) as u32 };
            // SAFETY: (i, j) is a place of both matrices.
            unsafe {
                let (to, arg) = (c.as_mut_ptr().wrapping_offset(at), arg.wrapping_offset(at));
                if !merge || S::better(value, to.read()) {
                    to.write(value);
                    arg.write(winner);
                }
            }
        }
    }
}
