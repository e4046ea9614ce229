//! The microkernel with argmax: the index of the first term that equals the sum.
//!
//! ```text
//! per step      new ← new ⊕ (a ⊗ b)                       the tile of values, reset to 0 in every k-chunk
//! per k-chunk   acc ← new, chunk ← its number, if new is better
//! per tile      the first step of the chunk whose term equals acc
//! ```
//!
//! Storing the number of every step costs one comparison and one selection more than the step itself, which halves the
//! rate. For long sums only the number of the k-chunk of [`K_CHUNK`] steps that set an accumulator is therefore stored,
//! and this chunk is searched when the tile is stored; the operands are packed with the steps of a chunk contiguous for
//! that. For short sums a chunk is one step, and there is no search.
//!
//! Chunk numbers are relative to the block of k and have the width of an element, so that one comparison mask serves
//! both. A later chunk replaces an accumulator only if it is strictly better, and the search takes the first step that
//! is not worse: ties resolve to the smallest k.

use std::hint::select_unpredictable;

use super::arithmetic::PackedArgmax;
use super::microkernel::rows;
use super::{MatMut, NO_ARGMAX};
use crate::{Scalar, Selective, simd};

/// Steps in a chunk of a long sum: fewer increase the cost of the chunk numbers, more increase that of the search.
pub(super) const K_CHUNK: usize = 16;
/// Minimum number of steps for which chunks with a search pay (bench `semiring`).
pub(super) const LONG: usize = 256;

/// Chunk number within a block, in an integer as wide as the element.
pub(super) trait ChunkNumber: Copy + PartialEq + 'static {
    /// Marks "no chunk"; blocks have fewer chunks.
    const NONE: Self;
    /// Maximum number of chunks of a block.
    const MOST: usize;
    fn of(chunk: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! number {
    ($($t:ty),*) => {$(
        impl ChunkNumber for $t {
            const NONE: Self = <$t>::MAX;
            const MOST: usize = <$t>::MAX as usize;
            #[inline(always)]
            fn of(chunk: usize) -> Self { chunk as Self }
            #[inline(always)]
            fn get(self) -> usize { self as usize }
        }
    )*};
}
number!(u8, u16, u32, u64);

/// The operands of a tile.
#[derive(Clone, Copy)]
pub(super) struct Panels<P> {
    /// Number of steps.
    pub(super) kc: usize,
    /// A with the steps of a chunk contiguous.
    pub(super) a: *const P,
    /// B with the columns of a step contiguous.
    pub(super) b: *const P,
    /// B with the steps of a chunk contiguous, if chunks have more than one step.
    pub(super) b_chunks: *const P,
}

/// `⊕ₖ aᵢₖ ⊗ bₖⱼ` over the panels, and the first chunk that attains it.
///
/// # Safety
/// `panels.a` must hold `⌈kc/CHUNK⌉·CHUNK·MR` and `panels.b` `kc·NR` readable elements, and
/// `kc ≤ CHUNK·I::MOST`.
#[inline(always)]
pub(super) unsafe fn compute<
    K,
    I,
    T,
    const FMA: bool,
    const MR: usize,
    const NR: usize,
    const CHUNK: usize,
>(
    panels: Panels<K::Packed>,
) -> ([[K::Packed; NR]; MR], [[I; NR]; MR])
where
    K: PackedArgmax<T>,
    I: ChunkNumber,
    T: Scalar,
{
    let unit = K::unit();
    let mut acc = [[K::zero(); NR]; MR];
    let mut chunks = [[I::NONE; NR]; MR];
    let (mut a, mut b) = (panels.a, panels.b.cast::<[K::Packed; NR]>());
    for chunk in 0..panels.kc.div_ceil(CHUNK) {
        let steps = if const { CHUNK == 1 } { 1 } else { (panels.kc - chunk * CHUNK).min(CHUNK) };
        let mut new = [[K::zero(); NR]; MR];
        for t in 0..steps {
            // SAFETY: the elements of `steps` more steps are readable.
            let bv = unsafe { &*b };
            rows!(MR, R => {
                // SAFETY: as above.
                let av = unsafe { *a.add(R * CHUNK + t) };
                for j in 0..NR {
                    new[R][j] = if const { CHUNK == 1 } {
                        K::mul::<FMA>(av, bv[j], unit)
                    } else {
                        K::mul_add::<FMA>(av, bv[j], new[R][j], unit)
                    };
                }
            });
            b = b.wrapping_add(1);
        }
        a = a.wrapping_add(MR * CHUNK);
        let chunk = I::of(chunk);
        rows!(MR, R => {
            for j in 0..NR {
                let better = K::better(new[R][j], acc[R][j]);
                // `select_unpredictable`, because plain `if`s compile to branches here and prevent vectorisation.
                acc[R][j] = select_unpredictable(better, new[R][j], acc[R][j]);
                chunks[R][j] = select_unpredictable(better, chunk, chunks[R][j]);
            }
        });
    }
    (acc, chunks)
}

/// The first step of a chunk whose term is not worse than `best`, without branches: candidate steps are a bit set.
/// Steps past the end have the term 0 and are last.
#[inline(always)]
fn search<K: PackedArgmax<T>, T: Scalar, const FMA: bool, const CHUNK: usize>(
    best: K::Packed,
    row: &[K::Packed; CHUNK],
    col: &[K::Packed; CHUNK],
    unit: K::Unit,
) -> usize {
    const { assert!(CHUNK < 32) }
    let mut found = 0_u32;
    for t in 0..CHUNK {
        let worse = K::better(best, K::mul::<FMA>(row[t], col[t], unit));
        // Bits start at 1: a bit without a shift would be computed separately and prevent vectorisation.
        found |= select_unpredictable(worse, 0, 2 << t);
    }
    found.trailing_zeros() as usize - 1
}

/// Writes the part of a tile inside C, or merges it; `first` is the index of the block's first step.
///
/// # Safety
/// `c` must be writable, have at most MR rows and NR columns and be initialised if `merge`; `arg`
/// must be such a matrix with the layout of `c`. The tile must be that of the panels, whose
/// `b_chunks` must hold `⌈kc/CHUNK⌉·CHUNK·NR` elements unless `CHUNK` is 1.
#[inline(always)]
pub(super) unsafe fn store<
    S,
    K,
    I,
    T,
    const FMA: bool,
    const MR: usize,
    const NR: usize,
    const CHUNK: usize,
>(
    (acc, chunks): &([[K::Packed; NR]; MR], [[I; NR]; MR]),
    panels: Panels<K::Packed>,
    c: &MatMut<'_, T>,
    arg: *mut u32,
    first: usize,
    merge: bool,
) where
    S: Selective<T>,
    K: PackedArgmax<T>,
    I: ChunkNumber,
    T: Scalar,
{
    let unit = K::unit();
    if const { CHUNK > 1 } {
        // The chunks of a long panel are outside of the L1 cache.
        for numbers in chunks.iter().take(c.rows()) {
            for (j, &chunk) in numbers.iter().enumerate().take(c.cols()) {
                let chunk = if chunk == I::NONE { 0 } else { chunk.get() };
                simd::prefetch(panels.b_chunks.wrapping_add((chunk * NR + j) * CHUNK));
            }
        }
    }
    for i in 0..c.rows() {
        for j in 0..c.cols() {
            let at = i as isize * c.row_stride() + j as isize * c.col_stride();
            let (value, chunk) = (K::decode(acc[i][j]), chunks[i][j]);
            // SAFETY: (i, j) is an element of both matrices, and the chunk is one of the panels'.
            unsafe {
                let (to, arg) = (c.as_mut_ptr().wrapping_offset(at), arg.wrapping_offset(at));
                if merge && !S::better(value, to.read()) {
                    continue;
                }
                to.write(value);
                // Packed zeros may differ among themselves, so the decoded element is compared.
                if chunk == I::NONE || value == S::ZERO {
                    arg.write(NO_ARGMAX);
                    continue;
                }
                let mut step = chunk.get() * CHUNK;
                if const { CHUNK > 1 } {
                    let row = &*panels.a.add(step * MR + i * CHUNK).cast::<[K::Packed; CHUNK]>();
                    let col =
                        &*panels.b_chunks.add(step * NR + j * CHUNK).cast::<[K::Packed; CHUNK]>();
                    step += search::<K, T, FMA, CHUNK>(acc[i][j], row, col, unit);
                }
                arg.write((first + step) as u32);
            }
        }
    }
}
