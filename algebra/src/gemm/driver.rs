//! Blocked matrix product over any semiring.
//!
//! ```text
//! for jc in n by NC                      B block, in L3
//!   for pc in k by KC    pack B[pc, jc]
//!     for ic in m by MC  pack A[ic, pc]  A block, in L2
//!       for jr in NC by NR               B panel, in L1
//!         for ir in MC by MR             microkernel: a tile in registers
//! ```
//!
//! The loop order follows Goto and van de Geijn, *Anatomy of High-Performance Matrix
//! Multiplication* (2008). Sums run over k in ascending order within a block of KC, then over
//! the blocks.

use std::marker::PhantomData;

use super::argmax::{ChunkNumber, Panels};
use super::arithmetic::{PackedArgmax, PackedArithmetic, Plain, TileLoop};
use super::pack::{pack, pack_chunks};
use super::partition::{self, OutputBlock};
use super::scratch::{Scratch, StackBuffer};
use super::{Algorithm, MatMut, NO_ARGMAX, Product, Report, argmax, microkernel};
use crate::simd::{self, Isa, Loop};
use crate::{Scalar, Selective, Semiring};

/// Bytes of a B panel: the size of an L1 cache, streamed from L2 if that is smaller.
const PANEL_BYTES: usize = 32 << 10;
/// Bytes of a B panel for the argmax of long sums, where every additional block of k costs a search.
const LONG_PANEL_BYTES: usize = 64 << 10;
/// Bytes of the A block: under half of a 512 KiB L2 cache.
const A_BYTES: usize = 192 << 10;
/// Bytes of the B block.
const B_BYTES: usize = 2 << 20;

/// The product with the generic kernel of this module, which every semiring and element has.
///
/// # Safety
/// The operands must satisfy the contract of [`Product::batch`].
pub(super) unsafe fn product<S: Semiring<T>, T: Scalar>(p: &Product<'_, T>) -> Report {
    // SAFETY: passed on.
    unsafe { partition::for_each(p, |block| run::<S, Plain<S>, T>(&block)) }
    Report::new(Algorithm::Blocked)
}

/// The product and its argmax with the generic kernel of this module.
///
/// # Safety
/// The operands must satisfy the contract of [`Product::batch`], and `p` must have memory for the argmax.
pub(super) unsafe fn product_argmax<S: Selective<T>, T: Scalar>(p: &Product<'_, T>) -> Report {
    // SAFETY: passed on.
    unsafe { partition::for_each(p, |block| run_argmax::<S, Plain<S>, T>(&block)) }
    Report::new(Algorithm::Blocked)
}

/// Calls `$run` on the block with `$micro` and the tile shape for the size of the packed element.
macro_rules! tiled {
    ($block:ident, $micro:ty: $run:path: $($size:literal => $mr:literal by $nr:literal,)* else $mr_else:literal by $nr_else:literal) => {
        $(if const { size_of::<K::Packed>() == $size } {
            $run(Blocked::<S, T, $micro, $mr, $nr>::of($block))
        } else)* {
            $run(Blocked::<S, T, $micro, $mr_else, $nr_else>::of($block))
        }
    };
}

/// One block on the calling thread with the arithmetic `K` of `S`. The accumulators use all vector registers except
/// those for one row of B, one element of A, one product and the constant of unrolled forms.
///
/// Rows are unrolled where vectors have 512 bits: otherwise the compiler vectorises loops over rows and columns along
/// k, or leaves them scalar. If a row fits in one 512-bit register, 256-bit vectors are used. G steps/s on one thread
/// (Zen 5, rustc 1.95, n = 256):
///
/// ```text
///                 (max, +)                   (max, ×)   (+, ×)          (max, +) with argmax
///                 f32     f64     i16        f64        i32     i64     f32     f64     i32
/// 512 bits        101     49      236        54         107     52      50      30      35
/// 256 bits        53      26      115        29         55      6.6     31      18      12
/// ```
#[inline]
pub(super) fn run<S: Semiring<T>, K: PackedArithmetic<T>, T: Scalar>(block: &OutputBlock<'_, T>) {
    let mut transposed = None;
    let block = orient::<K, T>(block, &mut transposed);
    match Isa::detect() {
        // SAFETY: `detect` checked the features.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Isa::Avx512 if const { size_of::<K::Packed>() <= 8 } && fills::<K, T>(block) => unsafe {
            tiled!(block, Sums<S, K, true, true>: simd::avx512: 1 => 8 by 128, 2 => 8 by 64, 4 => 8 by 32, else 4 by 32)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 if K::FORM == TileLoop::Unrolled => unsafe {
            tiled!(block, Sums<S, K, true, true>: simd::avx2: 4 => 4 by 16, else 4 by 8)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => unsafe {
            tiled!(block, Sums<S, K, true, false>: simd::avx2: 1 => 6 by 64, 2 => 6 by 32, 4 => 6 by 16, 8 => 6 by 8, else 2 by 4)
        },
        // The masks of 8 more accumulators exceed 32 registers (AArch64).
        _ if K::FORM == TileLoop::Unrolled => {
            tiled!(block, Sums<S, K, false, true>: simd::baseline: 4 => 4 by 8, else 4 by 4)
        }
        _ => {
            tiled!(block, Sums<S, K, false, false>: simd::baseline: 1 => 6 by 32, 2 => 6 by 16, 4 => 4 by 8, 8 => 6 by 4, else 2 by 4)
        }
    }
}

/// True if a row of C exceeds one 512-bit register.
#[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
#[inline]
fn fills<K: PackedArithmetic<T>, T: Scalar>(block: &OutputBlock<'_, T>) -> bool {
    block.c.cols() * size_of::<K::Packed>() > Isa::Avx512.vector_bytes()
}

/// One block with its argmax. One third of the accumulators hold k-chunk numbers, one half if every step is a k-chunk.
/// With two registers per row the compiler joins the numbers of both into one vector and leaves some types scalar;
/// hence the narrow tiles.
#[inline]
pub(super) fn run_argmax<S: Selective<T>, K: PackedArgmax<T>, T: Scalar>(
    block: &OutputBlock<'_, T>,
) {
    let mut transposed = None;
    let block = orient::<K, T>(block, &mut transposed);
    match const { size_of::<K::Packed>() } {
        1 => argmax_by::<S, K, u8, T>(block),
        2 => argmax_by::<S, K, u16, T>(block),
        8 => argmax_by::<S, K, u64, T>(block),
        _ => argmax_by::<S, K, u32, T>(block),
    }
}

#[inline]
fn argmax_by<S: Selective<T>, K: PackedArgmax<T>, I: ChunkNumber, T: Scalar>(
    block: &OutputBlock<'_, T>,
) {
    let long = const { K::CHEAP } && block.a.cols() >= argmax::LONG;
    match Isa::detect() {
        // SAFETY: `detect` checked the features.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Isa::Avx512 if long && fills::<K, T>(block) => unsafe {
            tiled!(block, Argmax<S, K, I, true, { argmax::K_CHUNK }>: simd::avx512: 4 => 8 by 16, else 8 by 8)
        },
        // SAFETY: as above.
        #[cfg(all(target_arch = "x86_64", not(debug_assertions)))]
        Isa::Avx512 if const { size_of::<K::Packed>() <= 8 } && fills::<K, T>(block) => unsafe {
            tiled!(block, Argmax<S, K, I, true, 1>: simd::avx512: 1 => 8 by 64, 2 => 4 by 16, 4 => 8 by 16, else 4 by 16)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 if long => unsafe {
            tiled!(block, Argmax<S, K, I, true, { argmax::K_CHUNK }>: simd::avx2: 4 => 2 by 16, else 2 by 8)
        },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::Avx512 => unsafe {
            tiled!(block, Argmax<S, K, I, true, 1>: simd::avx2: 1 => 2 by 64, 2 => 4 by 16, 4 => 2 by 16, 8 => 2 by 8, else 2 by 4)
        },
        _ if long => {
            tiled!(block, Argmax<S, K, I, false, { argmax::K_CHUNK }>: simd::baseline: 4 => 2 by 8, else 2 by 4)
        }
        _ => {
            tiled!(block, Argmax<S, K, I, false, 1>: simd::baseline: 1 => 3 by 32, 2 => 3 by 16, 4 => 3 by 8, 8 => 3 by 4, else 2 by 4)
        }
    }
}

/// The block, or its transpose if ⊗ commutes and the tile fits it better: rows are stored as vectors, and lanes past
/// the right edge are wasted.
#[inline]
fn orient<'s, 'a, K: PackedArithmetic<T>, T: Scalar>(
    block: &'s OutputBlock<'a, T>,
    transposed: &'s mut Option<OutputBlock<'a, T>>,
) -> &'s OutputBlock<'a, T> {
    let (m, n) = (block.c.rows(), block.c.cols());
    let down = block.c.row_stride() == 1 && block.c.col_stride() != 1;
    let suits = if n < 8 { m > n } else { down && m >= 8 };
    if K::COMMUTES && suits { transposed.insert(block.transpose()) } else { block }
}

/// A register tile: computation and store.
trait Microkernel<T: Scalar> {
    /// Steps that are packed contiguously, see [`pack_chunks`]; 1 if there is no search.
    const CHUNK: usize;
    /// Maximum number of steps of one tile.
    const MOST: usize;
    /// True if ⊕ may round, so that a sum depends on its grouping.
    const ROUNDS: bool;
    type Lanes: PackedArithmetic<T>;

    /// Computes one tile over packed panels and stores the part inside C; `first` is the index of its first step.
    ///
    /// # Safety
    /// As [`microkernel::compute`] and [`microkernel::store`].
    unsafe fn tile<const MR: usize, const NR: usize>(
        panels: Panels<Packed<Self, T>>,
        c: &MatMut<'_, T>,
        arg: *mut u32,
        first: usize,
        add: bool,
    );
}

/// Element type of packed panels.
type Packed<M, T> = <<M as Microkernel<T>>::Lanes as PackedArithmetic<T>>::Packed;

struct Sums<S, K, const FMA: bool, const UNROLLED: bool>(PhantomData<(S, K)>);

impl<S, K, T, const FMA: bool, const UNROLLED: bool> Microkernel<T> for Sums<S, K, FMA, UNROLLED>
where
    S: Semiring<T>,
    K: PackedArithmetic<T>,
    T: Scalar,
{
    const CHUNK: usize = 1;
    const MOST: usize = usize::MAX;
    const ROUNDS: bool = true;
    type Lanes = K;

    #[inline(always)]
    unsafe fn tile<const MR: usize, const NR: usize>(
        Panels { kc, a, b, .. }: Panels<K::Packed>,
        c: &MatMut<'_, T>,
        _: *mut u32,
        _: usize,
        add: bool,
    ) {
        // SAFETY: passed on.
        unsafe {
            let acc = microkernel::compute::<K, T, FMA, UNROLLED, MR, NR>(kc, a, b);
            microkernel::store::<S, K, T, MR, NR>(&acc, c, add);
        }
    }
}

struct Argmax<S, K, I, const FMA: bool, const CHUNK: usize>(PhantomData<(S, K, I)>);

impl<S, K, I, T, const FMA: bool, const CHUNK: usize> Microkernel<T> for Argmax<S, K, I, FMA, CHUNK>
where
    S: Selective<T>,
    K: PackedArgmax<T>,
    I: ChunkNumber,
    T: Scalar,
{
    const CHUNK: usize = CHUNK;
    const MOST: usize = I::MOST.saturating_mul(CHUNK);
    const ROUNDS: bool = false;
    type Lanes = K;

    #[inline(always)]
    unsafe fn tile<const MR: usize, const NR: usize>(
        panels: Panels<K::Packed>,
        c: &MatMut<'_, T>,
        arg: *mut u32,
        first: usize,
        add: bool,
    ) {
        // SAFETY: passed on.
        unsafe {
            let acc = argmax::compute::<K, I, T, FMA, MR, NR, CHUNK>(panels);
            argmax::store::<S, K, I, T, FMA, MR, NR, CHUNK>(&acc, panels, c, arg, first, add);
        }
    }
}

struct Blocked<'a, S, T, M, const MR: usize, const NR: usize> {
    block: &'a OutputBlock<'a, T>,
    /// Steps in a block of k. The number is independent of the tile shape, so that the grouping of sums does not depend
    /// on how threads partition C.
    depth: usize,
    tag: PhantomData<(S, M)>,
}

impl<'a, S, T, M, const MR: usize, const NR: usize> Blocked<'a, S, T, M, MR, NR>
where
    S: Semiring<T>,
    T: Scalar,
    M: Microkernel<T>,
{
    const SIZE: usize = {
        let size = size_of::<Packed<M, T>>();
        if size == 0 { 1 } else { size }
    };
    const KC: usize = {
        let bytes = if M::CHUNK > 1 { LONG_PANEL_BYTES } else { PANEL_BYTES };
        let kc = bytes / (NR * Self::SIZE);
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

    #[inline]
    fn of(block: &'a OutputBlock<'a, T>) -> Self {
        // With the widest tiles, see `run`, a row of B is longer than with others.
        let wide = cfg!(all(target_arch = "x86_64", not(debug_assertions)));
        if wide && M::ROUNDS && Self::SIZE <= 8 && Isa::detect() == Isa::Avx512 {
            let row = if matches!(Self::SIZE, 1 | 2 | 4) { 128 } else { 32 * Self::SIZE };
            return Self { block, depth: Self::KC.min(PANEL_BYTES / row), tag: PhantomData };
        }
        Self { block, depth: Self::KC, tag: PhantomData }
    }
}

impl<S, T, M, const MR: usize, const NR: usize> Loop for Blocked<'_, S, T, M, MR, NR>
where
    S: Semiring<T>,
    T: Scalar,
    M: Microkernel<T>,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Blocked { block: OutputBlock { a, b, c, accumulate, arg, first }, depth, .. } = self;
        let (m, k, n) = (a.rows(), a.cols(), b.cols());
        if k == 0 {
            if !accumulate {
                // SAFETY: every (i, j) is an element of C.
                unsafe { fill(S::ZERO, c, *arg) }
            }
            return;
        }
        let (mc_max, kc_max, nc_max) = (m.min(Self::MC), k.min(depth), n.min(Self::NC));
        let padded_max = kc_max.next_multiple_of(M::CHUNK);
        let a_len = mc_max.next_multiple_of(MR) * padded_max;
        let b_len = nc_max.next_multiple_of(NR) * kc_max;
        let b_chunks_len = if M::CHUNK == 1 { 0 } else { nc_max.next_multiple_of(NR) * padded_max };
        let mut stack = StackBuffer::new();
        let len = a_len + b_len + b_chunks_len;
        let mut scratch = Scratch::<Packed<M, T>>::new(len, &mut stack);
        let packed_a = scratch.as_mut_ptr();
        let packed_b = packed_a.wrapping_add(a_len);
        let b_chunks = packed_b.wrapping_add(b_len);
        for jc in (0..n).step_by(Self::NC) {
            let nc = (n - jc).min(Self::NC);
            for pc in (0..k).step_by(depth) {
                let kc = (k - pc).min(depth);
                let padded = kc.next_multiple_of(M::CHUNK);
                let add = *accumulate || pc > 0;
                // SAFETY: the blocks are inside the operands, and the scratch has room for the largest block of each.
                unsafe {
                    let src = b.block((pc, jc), (kc, nc));
                    let (lanes, ks) = ((nc, b.col_stride()), (kc, b.row_stride()));
                    pack::<M::Lanes, T, NR>(src.as_ptr(), lanes, ks, packed_b);
                    if M::CHUNK > 1 {
                        pack_chunks::<M::Lanes, T, NR>(src.as_ptr(), lanes, ks, M::CHUNK, b_chunks);
                    }
                    for ic in (0..m).step_by(Self::MC) {
                        let mc = (m - ic).min(Self::MC);
                        let src = a.block((ic, pc), (mc, kc));
                        let (lanes, ks) = ((mc, a.row_stride()), (kc, a.col_stride()));
                        pack_chunks::<M::Lanes, T, MR>(src.as_ptr(), lanes, ks, M::CHUNK, packed_a);
                        for jr in (0..nc).step_by(NR) {
                            for ir in (0..mc).step_by(MR) {
                                let panels = Panels {
                                    kc,
                                    a: packed_a.add(ir * padded),
                                    b: packed_b.add(jr * kc),
                                    b_chunks: b_chunks.wrapping_add(jr * padded),
                                };
                                let part = ((mc - ir).min(MR), (nc - jr).min(NR));
                                let at = (ic + ir, jc + jr);
                                let arg = arg.wrapping_offset(
                                    at.0 as isize * c.row_stride() + at.1 as isize * c.col_stride(),
                                );
                                let c = c.alias().block(at, part);
                                prefetch(&c);
                                M::tile::<MR, NR>(panels, &c, arg, first + pc, add);
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Prefetches the rows of a tile of C, which are accessed after all of its steps: for matrices larger than the L2 cache
/// the store would otherwise stall (bench `semiring`, 1024).
#[inline(always)]
fn prefetch<T>(c: &MatMut<'_, T>) {
    if c.col_stride() == 1 {
        for i in 0..c.rows() {
            let row = c.as_mut_ptr().wrapping_offset(i as isize * c.row_stride());
            simd::prefetch(row);
            simd::prefetch(row.wrapping_add(c.cols()));
        }
    }
}

/// Sets every element of C to `value`, and its argmax to [`NO_ARGMAX`].
///
/// # Safety
/// C must be writable, and `arg` with the same layout unless it is null.
#[inline(always)]
unsafe fn fill<T: Scalar>(value: T, c: &MatMut<'_, T>, arg: *mut u32) {
    for i in 0..c.rows() {
        for j in 0..c.cols() {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            // SAFETY: (i, j) is an element of C.
            unsafe {
                c.as_mut_ptr().wrapping_offset(at).write(value);
                if !arg.is_null() {
                    arg.wrapping_offset(at).write(NO_ARGMAX);
                }
            }
        }
    }
}
