//! Blocked matrix product over any semiring.
//!
//! ```text
//! for jc in n by NC                      B block, in L3
//!   for pc in k by KC    pack B[pc, jc]
//!     for ic in m by MC  pack A[ic, pc]  A block, in L2
//!       for jr in NC by NR               B panel, in L1
//!         for ir in MC by MR             tile in registers
//! ```
//!
//! The loop order follows Goto and van de Geijn, *Anatomy of High-Performance Matrix
//! Multiplication* (2008). Sums run over k in ascending order within a block of KC, then over
//! the blocks.

use std::marker::PhantomData;

use super::kernel::{Form, Lanes, Picks, Plain};
use super::pack::pack;
use super::partition::{self, Block};
use super::scratch::{Scratch, Stack};
use super::select::Step;
use super::{MatMut, NO_WINNER, Product, select, tile};
use crate::simd::{self, Isa, Loop};
use crate::{Scalar, Selective, Semiring};

/// Bytes of a B panel: half of a 32 KiB L1 cache.
const PANEL_BYTES: usize = 16 << 10;
/// Bytes of the A block: under half of a 512 KiB L2 cache.
const A_BYTES: usize = 192 << 10;
/// Bytes of the B block.
const B_BYTES: usize = 2 << 20;

/// The product with the generic kernel of this module, which every semiring and element has.
///
/// # Safety
/// The operands must be as [`Product::batch`] promises.
pub unsafe fn product<S: Semiring<T>, T: Scalar>(p: &Product<'_, T>) {
    // SAFETY: passed on.
    unsafe { partition::for_each(p, |block| run::<S, Plain<S>, T>(&block)) }
}

/// The product and its winners with the generic kernel of this module.
///
/// # Safety
/// The operands must be as [`Product::batch`] promises, and `p` must have a place for the winners.
pub unsafe fn product_select<S: Selective<T>, T: Scalar>(p: &Product<'_, T>) {
    // SAFETY: passed on.
    unsafe { partition::for_each(p, |block| run_select::<S, Plain<S>, T>(&block)) }
}

/// Calls `$run` on the block with the tile shape that suits this machine and `$micro`.
macro_rules! tiled {
    ($block:ident, $micro:ty: $run:path: $($size:literal => $mr:literal by $nr:literal,)* else $mr_else:literal by $nr_else:literal) => {
        $(if const { size_of::<K::Packed>() == $size } {
            $run(Blocked::<S, T, $micro, $mr, $nr> { block: $block, tag: PhantomData })
        } else)* {
            $run(Blocked::<S, T, $micro, $mr_else, $nr_else> { block: $block, tag: PhantomData })
        }
    };
}

/// One block on the calling thread with the arithmetic `K` of `S`. Accumulators fill the vector
/// registers but for one row of B, one element of A, one product and, with 256 bits, the constant
/// of unrolled forms.
#[inline]
pub(super) fn run<S: Semiring<T>, K: Lanes<T>, T: Scalar>(block: &Block<'_, T>) {
    let transposed;
    let block = if K::COMMUTES && wants_transpose(block) {
        transposed = block.transpose();
        &transposed
    } else {
        block
    };
    match Isa::detect() {
        // SAFETY: `detect` has seen the features.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if K::FORM != Form::Narrow => unsafe {
            tiled!(block, Sums<S, K, true>: simd::avx512: 1 => 6 by 128, 2 => 6 by 64, 4 => 12 by 32, 8 => 12 by 16, else 2 by 4)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 if K::FORM == Form::Unrolled => unsafe {
            tiled!(block, Sums<S, K, true>: simd::avx2: 4 => 4 by 16, else 4 by 8)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => unsafe {
            tiled!(block, Sums<S, K, true>: simd::avx2: 1 => 6 by 64, 2 => 6 by 32, 4 => 6 by 16, 8 => 6 by 8, else 2 by 4)
        },
        _ => {
            tiled!(block, Sums<S, K, false>: Loop::run: 1 => 6 by 32, 2 => 6 by 16, 4 => 6 by 8, 8 => 6 by 4, else 2 by 4)
        }
    }
}

/// One block with its winners. Half of the accumulators are step numbers.
#[inline]
pub(super) fn run_select<S: Selective<T>, K: Picks<T>, T: Scalar>(block: &Block<'_, T>) {
    let transposed;
    let block = if K::COMMUTES && wants_transpose(block) {
        transposed = block.transpose();
        &transposed
    } else {
        block
    };
    match const { size_of::<K::Packed>() } {
        1 => picks_by::<S, K, u8, T>(block),
        2 => picks_by::<S, K, u16, T>(block),
        8 => picks_by::<S, K, u64, T>(block),
        _ => picks_by::<S, K, u32, T>(block),
    }
}

#[inline]
fn picks_by<S: Selective<T>, K: Picks<T>, I: Step, T: Scalar>(block: &Block<'_, T>) {
    match Isa::detect() {
        // SAFETY: `detect` has seen the features.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe {
            tiled!(block, Winners<S, K, I, true>: simd::avx512: 1 => 6 by 64, 2 => 6 by 32, 4 => 6 by 32, 8 => 6 by 16, else 2 by 4)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 if K::FORM == Form::Unrolled => unsafe {
            tiled!(block, Winners<S, K, I, true>: simd::avx2: 4 => 2 by 16, else 2 by 8)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe {
            tiled!(block, Winners<S, K, I, true>: simd::avx2: 1 => 3 by 64, 2 => 3 by 32, 4 => 3 by 16, 8 => 3 by 8, else 2 by 4)
        },
        _ => {
            tiled!(block, Winners<S, K, I, false>: Loop::run: 1 => 3 by 32, 2 => 3 by 16, 4 => 3 by 8, 8 => 3 by 4, else 2 by 4)
        }
    }
}

/// Whether the transposed product suits the tile better: its rows are stored as vectors, and lanes
/// past the right edge are wasted.
#[inline]
fn wants_transpose<T>(block: &Block<'_, T>) -> bool {
    let (m, n) = (block.c.rows(), block.c.cols());
    let down = block.c.row_stride() == 1 && block.c.col_stride() != 1;
    if n < 8 { m > n } else { down && m >= 8 }
}

/// Packed panels of A and B.
type Panels<K, T> = (*const <K as Lanes<T>>::Packed, *const <K as Lanes<T>>::Packed);

/// A tile and where it goes.
trait Micro<T: Scalar> {
    /// Steps that one tile may take.
    const MOST: usize;
    type Lanes: Lanes<T>;

    /// Computes one tile over packed panels and stores the part that lies inside C; `first` is the
    /// number of its first step.
    ///
    /// # Safety
    /// As [`tile::tile`] and [`tile::store`].
    unsafe fn tile<const MR: usize, const NR: usize>(
        kc: usize,
        panels: Panels<Self::Lanes, T>,
        c: &MatMut<'_, T>,
        arg: *mut u32,
        first: usize,
        add: bool,
    );
}

struct Sums<S, K, const FMA: bool>(PhantomData<(S, K)>);

impl<S, K, T, const FMA: bool> Micro<T> for Sums<S, K, FMA>
where
    S: Semiring<T>,
    K: Lanes<T>,
    T: Scalar,
{
    const MOST: usize = usize::MAX;
    type Lanes = K;

    #[inline(always)]
    unsafe fn tile<const MR: usize, const NR: usize>(
        kc: usize,
        (a, b): Panels<K, T>,
        c: &MatMut<'_, T>,
        _: *mut u32,
        _: usize,
        add: bool,
    ) {
        // SAFETY: passed on.
        unsafe {
            let acc = tile::tile::<K, T, FMA, MR, NR>(kc, a, b);
            tile::store::<S, K, T, MR, NR>(&acc, c, add);
        }
    }
}

struct Winners<S, K, I, const FMA: bool>(PhantomData<(S, K, I)>);

impl<S, K, I, T, const FMA: bool> Micro<T> for Winners<S, K, I, FMA>
where
    S: Selective<T>,
    K: Picks<T>,
    I: Step,
    T: Scalar,
{
    const MOST: usize = I::MOST;
    type Lanes = K;

    #[inline(always)]
    unsafe fn tile<const MR: usize, const NR: usize>(
        kc: usize,
        (a, b): Panels<K, T>,
        c: &MatMut<'_, T>,
        arg: *mut u32,
        first: usize,
        add: bool,
    ) {
        // SAFETY: passed on.
        unsafe {
            let acc = select::tile::<K, I, T, FMA, MR, NR>(kc, a, b);
            select::store::<S, K, I, T, MR, NR>(&acc, c, arg, first, add);
        }
    }
}

struct Blocked<'a, S, T, M, const MR: usize, const NR: usize> {
    block: &'a Block<'a, T>,
    tag: PhantomData<(S, M)>,
}

impl<S, T, M, const MR: usize, const NR: usize> Blocked<'_, S, T, M, MR, NR>
where
    S: Semiring<T>,
    T: Scalar,
    M: Micro<T>,
{
    const SIZE: usize = {
        let size = size_of::<<M::Lanes as Lanes<T>>::Packed>();
        if size == 0 { 1 } else { size }
    };
    const KC: usize = {
        let kc = PANEL_BYTES / (NR * Self::SIZE);
        let kc = if kc < 16 { 16 } else { kc };
        if kc < M::MOST { kc } else { M::MOST }
    };
    const MC: usize = {
        let panels = A_BYTES / (Self::KC * Self::SIZE * MR);
        if panels == 0 { MR } else { panels * MR }
    };
    const NC: usize = {
        let panels = B_BYTES / (Self::KC * Self::SIZE * NR);
        if panels == 0 { NR } else { panels * NR }
    };
}

impl<S, T, M, const MR: usize, const NR: usize> Loop for Blocked<'_, S, T, M, MR, NR>
where
    S: Semiring<T>,
    T: Scalar,
    M: Micro<T>,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Block { a, b, c, accumulate, arg, first } = self.block;
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        if k == 0 {
            if !accumulate {
                // SAFETY: every (i, j) is a place of C.
                unsafe { fill(S::ZERO, c, *arg) }
            }
            return;
        }
        let (mc_max, kc_max, nc_max) = (m.min(Self::MC), k.min(Self::KC), n.min(Self::NC));
        let a_len = mc_max.next_multiple_of(MR) * kc_max;
        let b_len = nc_max.next_multiple_of(NR) * kc_max;
        let mut stack = Stack::new();
        let mut scratch = Scratch::<<M::Lanes as Lanes<T>>::Packed>::new(a_len + b_len, &mut stack);
        let packed_a = scratch.as_mut_ptr();
        let packed_b = packed_a.wrapping_add(a_len);
        for jc in (0..n).step_by(Self::NC) {
            let nc = (n - jc).min(Self::NC);
            for pc in (0..k).step_by(Self::KC) {
                let kc = (k - pc).min(Self::KC);
                let add = *accumulate || pc > 0;
                // SAFETY: the blocks lie inside the operands, and the scratch has room for the
                // largest block of each.
                unsafe {
                    let src = b.block((pc, jc), (kc, nc));
                    let (lanes, ks) = ((nc, b.col_stride()), (kc, b.row_stride()));
                    pack::<M::Lanes, T, NR>(src.as_ptr(), lanes, ks, packed_b);
                    for ic in (0..m).step_by(Self::MC) {
                        let mc = (m - ic).min(Self::MC);
                        let src = a.block((ic, pc), (mc, kc));
                        let (lanes, ks) = ((mc, a.row_stride()), (kc, a.col_stride()));
                        pack::<M::Lanes, T, MR>(src.as_ptr(), lanes, ks, packed_a);
                        for jr in (0..nc).step_by(NR) {
                            let bp = packed_b.add(jr * kc);
                            for ir in (0..mc).step_by(MR) {
                                let ap = packed_a.add(ir * kc);
                                let part = ((mc - ir).min(MR), (nc - jr).min(NR));
                                let at = (ic + ir, jc + jr);
                                let arg = arg.wrapping_offset(
                                    at.0 as isize * c.row_stride() + at.1 as isize * c.col_stride(),
                                );
                                let c = c.alias().block(at, part);
                                prefetch(&c);
                                M::tile::<MR, NR>(kc, (ap, bp), &c, arg, first + pc, add);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Asks for the rows of a tile of C, which are needed after all of its steps: products of matrices
/// beyond the second-level cache wait for them otherwise (bench `semiring`, 1024).
#[inline(always)]
fn prefetch<T>(c: &MatMut<'_, T>) {
    #[cfg(target_arch = "x86_64")]
    if c.col_stride() == 1 {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        for i in 0..c.rows() {
            let row = c.as_mut_ptr().wrapping_offset(i as isize * c.row_stride());
            // SAFETY: SSE is part of x86-64, and a prefetch never faults.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(row.cast());
                _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(c.cols()).cast());
            }
        }
    }
    let _ = c;
}

/// Sets every element of C, and its winner to none.
///
/// # Safety
/// C must be writable, and `arg` with the same layout unless it is null.
#[inline(always)]
unsafe fn fill<T: Scalar>(value: T, c: &MatMut<'_, T>, arg: *mut u32) {
    for i in 0..c.rows() {
        for j in 0..c.cols() {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            // SAFETY: (i, j) is a place of C.
            unsafe {
                c.as_mut_ptr().wrapping_offset(at).write(value);
                if !arg.is_null() {
                    arg.wrapping_offset(at).write(NO_WINNER);
                }
            }
        }
    }
}
