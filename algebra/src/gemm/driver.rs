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

use super::Product;
use super::pack::pack;
use super::partition::{self, Block};
use super::scratch::{Scratch, Stack};
use super::tile::{store, tile};
use crate::simd::{self, Isa, Loop};
use crate::{Scalar, Semiring};

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
    unsafe { partition::for_each(p, |block| run::<S, T>(&block)) }
}

/// One block on the calling thread, with the tile shape that suits this machine: accumulators
/// fill the vector registers but for one row of B, one element of A and one product.
#[inline]
pub(super) fn run<S: Semiring<T>, T: Scalar>(block: &Block<'_, T>) {
    macro_rules! tiled {
        ($run:path: $($size:literal => $mr:literal by $nr:literal,)* else $mr_else:literal by $nr_else:literal) => {
            $(if const { size_of::<T>() == $size } {
                $run(Blocked::<S, T, $mr, $nr> { block, tag: PhantomData })
            } else)* {
                $run(Blocked::<S, T, $mr_else, $nr_else> { block, tag: PhantomData })
            }
        };
    }
    match Isa::detect() {
        // SAFETY: `detect` has seen the features.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe {
            tiled!(simd::avx512: 1 => 6 by 128, 2 => 6 by 64, 4 => 12 by 32, 8 => 12 by 16, else 2 by 4)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe {
            tiled!(simd::avx2: 1 => 6 by 64, 2 => 6 by 32, 4 => 6 by 16, 8 => 6 by 8, else 2 by 4)
        },
        _ => {
            tiled!(Loop::run: 1 => 6 by 32, 2 => 6 by 16, 4 => 6 by 8, 8 => 6 by 4, else 2 by 4)
        }
    }
}

struct Blocked<'a, S, T, const MR: usize, const NR: usize> {
    block: &'a Block<'a, T>,
    tag: PhantomData<S>,
}

impl<S: Semiring<T>, T: Scalar, const MR: usize, const NR: usize> Blocked<'_, S, T, MR, NR> {
    const SIZE: usize = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
    const KC: usize = {
        let kc = PANEL_BYTES / (NR * Self::SIZE);
        if kc < 16 { 16 } else { kc }
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

impl<S: Semiring<T>, T: Scalar, const MR: usize, const NR: usize> Loop
    for Blocked<'_, S, T, MR, NR>
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Block { a, b, c, accumulate } = self.block;
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        if k == 0 {
            if !accumulate {
                // SAFETY: every (i, j) is a place of C.
                unsafe { fill(S::ZERO, c) }
            }
            return;
        }
        let (mc_max, kc_max, nc_max) = (m.min(Self::MC), k.min(Self::KC), n.min(Self::NC));
        let a_len = mc_max.next_multiple_of(MR) * kc_max;
        let b_len = nc_max.next_multiple_of(NR) * kc_max;
        let mut stack = Stack::new();
        let mut scratch = Scratch::new(a_len + b_len, &mut stack);
        let packed_a: *mut T = scratch.as_mut_ptr();
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
                    pack::<T, NR>(src.as_ptr(), lanes, ks, S::ZERO, packed_b);
                    for ic in (0..m).step_by(Self::MC) {
                        let mc = (m - ic).min(Self::MC);
                        let src = a.block((ic, pc), (mc, kc));
                        let (lanes, ks) = ((mc, a.row_stride()), (kc, a.col_stride()));
                        pack::<T, MR>(src.as_ptr(), lanes, ks, S::ZERO, packed_a);
                        for jr in (0..nc).step_by(NR) {
                            let bp = packed_b.add(jr * kc);
                            for ir in (0..mc).step_by(MR) {
                                let ap = packed_a.add(ir * kc);
                                let acc = tile::<S, T, MR, NR>(kc, ap, bp);
                                let part = ((mc - ir).min(MR), (nc - jr).min(NR));
                                let c = c.alias().block((ic + ir, jc + jr), part);
                                store::<S, T, MR, NR>(&acc, &c, add);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Sets every element of C.
///
/// # Safety
/// C must be writable.
#[inline(always)]
unsafe fn fill<T: Scalar>(value: T, c: &super::MatMut<'_, T>) {
    for i in 0..c.rows() {
        for j in 0..c.cols() {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            // SAFETY: (i, j) is a place of C.
            unsafe { c.as_mut_ptr().wrapping_offset(at).write(value) }
        }
    }
}
