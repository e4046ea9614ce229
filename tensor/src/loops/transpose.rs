//! Transposes blocks: contiguous columns to contiguous rows.
//!
//! Memory moves in cache lines, so the unit of work is a square whose sides are one line of 64
//! bytes: each line is read once and written once. Squares follow each other along the columns, which lets the machine
//! read ahead. On x86-64 with AVX2 a square of 2-, 4- or 8-byte elements is transposed in registers.
//!
//! Rows at a distance of a power of two share few cache sets, and each line then waits until another one has left its
//! set. A block of such rows is transposed into scratch and copied row by row, several lines of a row at a time; columns
//! at such distances are copied to scratch in the same way (`crowded`).

#[cfg(target_arch = "x86_64")]
use std::mem::MaybeUninit;

use t4a_algebra::simd::Isa;

/// Offsets of the columns of a source or of the rows of a destination, in elements.
pub trait TransposeOffsets: Copy {
    /// # Safety
    /// Index `k` is in range.
    unsafe fn at(self, k: usize) -> isize;
    /// The offsets from index `k` on.
    #[must_use]
    fn skip(self, k: usize) -> Self;
    /// Distance of consecutive offsets; `None` if they are not known to be equidistant.
    fn step(self) -> Option<isize>;
}

/// Equidistant offsets.
#[derive(Clone, Copy)]
pub struct Even {
    first: isize,
    step: isize,
}

impl Even {
    /// 0, step, 2·step, …
    pub const fn new(step: isize) -> Self {
        Self { first: 0, step }
    }
}

impl TransposeOffsets for Even {
    #[inline(always)]
    unsafe fn at(self, k: usize) -> isize {
        self.first + k as isize * self.step
    }

    #[inline(always)]
    fn skip(self, k: usize) -> Self {
        Self { first: self.first + k as isize * self.step, step: self.step }
    }

    #[inline(always)]
    fn step(self) -> Option<isize> {
        Some(self.step)
    }
}

impl TransposeOffsets for &[isize] {
    #[inline(always)]
    unsafe fn at(self, k: usize) -> isize {
        // SAFETY: the caller's contract.
        unsafe { *self.get_unchecked(k) }
    }

    #[inline(always)]
    fn skip(self, k: usize) -> Self {
        &self[k..]
    }

    #[inline(always)]
    fn step(self) -> Option<isize> {
        None
    }
}

/// Bytes of a row or column in scratch.
#[cfg(target_arch = "x86_64")]
const PART_BYTES: usize = 512;

/// Scratch aligned to cache lines: for rows or columns of [`PART_BYTES`], each followed by one line.
#[cfg(target_arch = "x86_64")]
#[repr(align(64))]
struct Scratch<const COUNT: usize>([[MaybeUninit<u8>; PART_BYTES + 64]; COUNT]);

#[cfg(target_arch = "x86_64")]
impl<const COUNT: usize> Scratch<COUNT> {
    #[inline(always)]
    fn new() -> Self {
        Self([[MaybeUninit::uninit(); PART_BYTES + 64]; COUNT])
    }
}

/// True if lines of 64 bytes at this distance, in elements, share one or two sets of the L1 cache, of 8 to 12 lines each:
/// on x86-64 sets repeat every 4096 bytes, because a way has the size of a page. Other blocks are faster without scratch
/// (`f32`, Zen 5: 1000² takes 76 instead of 110 µs, 1024² 730 instead of 175; bench `peers`, rows `transpose copy`).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn crowded<E>(offsets: impl TransposeOffsets) -> bool {
    offsets.step().is_some_and(|step| (step * size_of::<E>() as isize) % 2048 == 0)
}

/// Starts of parts of `side` elements. The last one is aligned to the end; its overlap with the previous one is written
/// twice.
#[cfg(target_arch = "x86_64")]
fn steps(len: usize, side: usize) -> impl Iterator<Item = usize> {
    (0..len.div_ceil(side)).map(move |i| (i * side).min(len - side))
}

/// Copies element (r, c) from `src + r + columns[c]` to `dst + rows[r] + c`: columns are contiguous in the source and
/// rows in the destination, at arbitrary offsets.
///
/// # Safety
/// Source and destination have `height × width` elements at these offsets and do not overlap. No alignment is required.
#[inline]
pub unsafe fn transpose<E: Copy>(
    src: *const E,
    columns: impl TransposeOffsets,
    dst: *mut E,
    rows: impl TransposeOffsets,
    height: usize,
    width: usize,
) {
    let size = size_of::<E>();
    let side = (64 / size.max(1)).max(1);
    #[cfg(target_arch = "x86_64")]
    if matches!(size, 2 | 4 | 8) && Isa::detect() >= Isa::Avx2 {
        if height >= side && width >= side {
            // SAFETY: the caller's contract; AVX2 has been detected.
            unsafe {
                match height > side && crowded::<E>(rows) {
                    true => by_rows(src, columns, dst, rows, height, width),
                    false => squares(src, columns, dst, rows, height, width),
                }
            }
            return;
        }
        // Strips, as of narrow tables (bench `backend`, row `sum 262144×4`).
        let (tall, long) = if size == 2 { (8, 8) } else { (4, 32 / size) };
        if height >= tall && width >= long {
            for r in steps(height, tall) {
                for c in steps(width, long) {
                    let (columns, rows) = (columns.skip(c), rows.skip(r));
                    let (src, dst) = (src.wrapping_add(r), dst.wrapping_add(c));
                    // SAFETY: as above.
                    unsafe {
                        match size {
                            2 => avx::strip_16(src.cast(), columns, dst.cast(), rows),
                            4 => avx::strip_32(src.cast(), columns, dst.cast(), rows),
                            _ => avx::strip_64(src.cast(), columns, dst.cast(), rows),
                        }
                    }
                }
            }
            return;
        }
    }
    for (c, r) in
        (0..width).step_by(side).flat_map(|c| (0..height).step_by(side).map(move |r| (c, r)))
    {
        for r in r..height.min(r + side) {
            for c in c..width.min(c + side) {
                // SAFETY: the element is inside the block.
                unsafe {
                    let value = src.offset(columns.at(c)).add(r).read_unaligned();
                    dst.offset(rows.at(r)).add(c).write_unaligned(value);
                }
            }
        }
    }
}

/// [`transpose`] by squares.
///
/// # Safety
/// As [`transpose`]; elements of 2, 4 or 8 bytes, at least one square; the machine has AVX2.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn squares<E: Copy>(
    src: *const E,
    columns: impl TransposeOffsets,
    dst: *mut E,
    rows: impl TransposeOffsets,
    height: usize,
    width: usize,
) {
    let side = 64 / size_of::<E>();
    for c in steps(width, side) {
        for r in steps(height, side) {
            let (columns, rows) = (columns.skip(c), rows.skip(r));
            let (src, dst) = (src.wrapping_add(r), dst.wrapping_add(c));
            // SAFETY: the square is inside the block.
            unsafe {
                match side {
                    32 => avx::square_16(src.cast(), columns, dst.cast(), rows),
                    16 => avx::square_32(src.cast(), columns, dst.cast(), rows),
                    _ => avx::square_64(src.cast(), columns, dst.cast(), rows),
                }
            }
        }
    }
}

/// [`transpose`] by parts of rows in scratch.
///
/// # Safety
/// As [`squares`].
#[cfg(target_arch = "x86_64")]
unsafe fn by_rows<E: Copy>(
    src: *const E,
    columns: impl TransposeOffsets,
    dst: *mut E,
    rows: impl TransposeOffsets,
    height: usize,
    width: usize,
) {
    /// Rows in scratch, of one square, and columns.
    const ROWS: usize = 32;
    const COLUMNS: usize = 128;
    let size = size_of::<E>();
    let (side, most) = (64 / size, PART_BYTES / size);
    let pitch = most + side;
    let (tall, long) = (height.min(most), width.min(most).min(COLUMNS));
    let (mut lines, mut own) = (Scratch::<ROWS>::new(), Scratch::<COLUMNS>::new());
    let (lines, own): (*mut E, *mut E) = (lines.0.as_mut_ptr().cast(), own.0.as_mut_ptr().cast());
    let even = Even::new(pitch as isize);
    for (c, top) in steps(width, long).flat_map(|c| steps(height, tall).map(move |top| (c, top))) {
        let columns = columns.skip(c);
        let src = src.wrapping_add(top);
        let staged = crowded::<E>(columns);
        if staged {
            for i in 0..long {
                // SAFETY: part of a column of the block; the scratch has `long ≤ COLUMNS` columns of `tall ≤ most` elements.
                unsafe {
                    let (from, to) = (src.offset(columns.at(i)), own.add(i * pitch));
                    from.cast::<u8>().copy_to_nonoverlapping(to.cast(), tall * size);
                }
            }
        }
        for r in steps(tall, side) {
            // SAFETY: `side ≤ ROWS` rows of `long ≤ most` elements; parts of rows of the block.
            unsafe {
                match staged {
                    true => squares(own.cast_const().add(r), even, lines, even, side, long),
                    false => squares(src.wrapping_add(r), columns, lines, even, side, long),
                }
                for i in 0..side {
                    let (from, to) =
                        (lines.add(i * pitch), dst.offset(rows.at(top + r + i)).add(c));
                    from.cast::<u8>().copy_to_nonoverlapping(to.cast(), long * size);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx {
    use std::arch::x86_64::*;

    use super::TransposeOffsets;

    /// A 32 × 32 square of 16-bit elements.
    ///
    /// # Safety
    /// As [`square_32`], with a side of 32.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn square_16(
        src: *const __m128i,
        columns: impl TransposeOffsets,
        dst: *mut __m128i,
        rows: impl TransposeOffsets,
    ) {
        for r in 0..4 {
            for c in 0..4 {
                // SAFETY: a strip of the square; `__m128i` is eight elements.
                unsafe { strip_16(src.add(r), columns.skip(8 * c), dst.add(c), rows.skip(8 * r)) };
            }
        }
    }

    /// Eight rows of eight 16-bit elements.
    ///
    /// # Safety
    /// As [`square_32`].
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn strip_16(
        src: *const __m128i,
        columns: impl TransposeOffsets,
        dst: *mut __m128i,
        rows: impl TransposeOffsets,
    ) {
        // SAFETY: eight elements of a column.
        let load = |k| unsafe { _mm_loadu_si128(src.byte_offset(2 * columns.at(k))) };
        let a = [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        // Pairs of columns, rows (0 1 2 3) and (4 5 6 7).
        let b = [
            _mm_unpacklo_epi16(a[0], a[1]),
            _mm_unpacklo_epi16(a[2], a[3]),
            _mm_unpacklo_epi16(a[4], a[5]),
            _mm_unpacklo_epi16(a[6], a[7]),
            _mm_unpackhi_epi16(a[0], a[1]),
            _mm_unpackhi_epi16(a[2], a[3]),
            _mm_unpackhi_epi16(a[4], a[5]),
            _mm_unpackhi_epi16(a[6], a[7]),
        ];
        // Quadruples of columns, rows (0 1), (2 3), (4 5), (6 7).
        let c = [
            (_mm_unpacklo_epi32(b[0], b[1]), _mm_unpacklo_epi32(b[2], b[3])),
            (_mm_unpackhi_epi32(b[0], b[1]), _mm_unpackhi_epi32(b[2], b[3])),
            (_mm_unpacklo_epi32(b[4], b[5]), _mm_unpacklo_epi32(b[6], b[7])),
            (_mm_unpackhi_epi32(b[4], b[5]), _mm_unpackhi_epi32(b[6], b[7])),
        ];
        for (k, (left, right)) in c.into_iter().enumerate() {
            // SAFETY: eight elements of two rows.
            unsafe {
                let to = |r| dst.byte_offset(2 * rows.at(r));
                _mm_storeu_si128(to(2 * k), _mm_unpacklo_epi64(left, right));
                _mm_storeu_si128(to(2 * k + 1), _mm_unpackhi_epi64(left, right));
            }
        }
    }

    /// A 16 × 16 square of 32-bit elements. Both halves of a row are written together: rows of a matrix with a
    /// power-of-two pitch share a cache set, and a line with only its first half written could be evicted in between.
    ///
    /// # Safety
    /// As [`transpose`](super::transpose) with a side of 16; the machine has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn square_32(
        src: *const f32,
        columns: impl TransposeOffsets,
        dst: *mut f32,
        rows: impl TransposeOffsets,
    ) {
        for r in [0, 8] {
            // SAFETY: halves of the square.
            unsafe {
                let left = eight(src.add(r), columns);
                let right = eight(src.add(r), columns.skip(8));
                for k in 0..8 {
                    let to = dst.offset(rows.at(r + k));
                    _mm256_storeu_ps(to, left[k]);
                    _mm256_storeu_ps(to.add(8), right[k]);
                }
            }
        }
    }

    /// The eight rows of eight columns.
    ///
    /// # Safety
    /// Eight elements of eight columns are readable; the machine has AVX2.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn eight(src: *const f32, columns: impl TransposeOffsets) -> [__m256; 8] {
        // SAFETY: eight elements of a column.
        let load = |k| unsafe { _mm256_loadu_ps(src.offset(columns.at(k))) };
        let a: [__m256; 8] =
            [load(0), load(1), load(2), load(3), load(4), load(5), load(6), load(7)];
        // Interleaves single elements, pairs, then halves: each step doubles the length of the transposed runs.
        let b = [
            _mm256_unpacklo_ps(a[0], a[1]),
            _mm256_unpackhi_ps(a[0], a[1]),
            _mm256_unpacklo_ps(a[2], a[3]),
            _mm256_unpackhi_ps(a[2], a[3]),
            _mm256_unpacklo_ps(a[4], a[5]),
            _mm256_unpackhi_ps(a[4], a[5]),
            _mm256_unpacklo_ps(a[6], a[7]),
            _mm256_unpackhi_ps(a[6], a[7]),
        ];
        let c = [
            _mm256_shuffle_ps::<0x44>(b[0], b[2]),
            _mm256_shuffle_ps::<0xee>(b[0], b[2]),
            _mm256_shuffle_ps::<0x44>(b[1], b[3]),
            _mm256_shuffle_ps::<0xee>(b[1], b[3]),
            _mm256_shuffle_ps::<0x44>(b[4], b[6]),
            _mm256_shuffle_ps::<0xee>(b[4], b[6]),
            _mm256_shuffle_ps::<0x44>(b[5], b[7]),
            _mm256_shuffle_ps::<0xee>(b[5], b[7]),
        ];
        [
            _mm256_permute2f128_ps::<0x20>(c[0], c[4]),
            _mm256_permute2f128_ps::<0x20>(c[1], c[5]),
            _mm256_permute2f128_ps::<0x20>(c[2], c[6]),
            _mm256_permute2f128_ps::<0x20>(c[3], c[7]),
            _mm256_permute2f128_ps::<0x31>(c[0], c[4]),
            _mm256_permute2f128_ps::<0x31>(c[1], c[5]),
            _mm256_permute2f128_ps::<0x31>(c[2], c[6]),
            _mm256_permute2f128_ps::<0x31>(c[3], c[7]),
        ]
    }

    /// Four rows of eight 32-bit elements.
    ///
    /// # Safety
    /// As [`square_32`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn strip_32(
        src: *const f32,
        columns: impl TransposeOffsets,
        dst: *mut f32,
        rows: impl TransposeOffsets,
    ) {
        // SAFETY: four elements of a column.
        let load = |k| unsafe { _mm_loadu_ps(src.offset(columns.at(k))) };
        let pair = |k| _mm256_set_m128(load(k + 4), load(k));
        let a = [pair(0), pair(1), pair(2), pair(3)];
        let low = [_mm256_unpacklo_ps(a[0], a[1]), _mm256_unpacklo_ps(a[2], a[3])];
        let high = [_mm256_unpackhi_ps(a[0], a[1]), _mm256_unpackhi_ps(a[2], a[3])];
        let out = [
            _mm256_shuffle_ps::<0x44>(low[0], low[1]),
            _mm256_shuffle_ps::<0xee>(low[0], low[1]),
            _mm256_shuffle_ps::<0x44>(high[0], high[1]),
            _mm256_shuffle_ps::<0xee>(high[0], high[1]),
        ];
        for (k, row) in out.into_iter().enumerate() {
            // SAFETY: eight elements of a row.
            unsafe { _mm256_storeu_ps(dst.offset(rows.at(k)), row) };
        }
    }

    /// An 8 × 8 square of 64-bit elements; see [`square_32`].
    ///
    /// # Safety
    /// As [`square_32`], with a side of 8.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn square_64(
        src: *const f64,
        columns: impl TransposeOffsets,
        dst: *mut f64,
        rows: impl TransposeOffsets,
    ) {
        for r in [0, 4] {
            // SAFETY: halves of the square.
            unsafe {
                let left = four(src.add(r), columns);
                let right = four(src.add(r), columns.skip(4));
                for k in 0..4 {
                    let to = dst.offset(rows.at(r + k));
                    _mm256_storeu_pd(to, left[k]);
                    _mm256_storeu_pd(to.add(4), right[k]);
                }
            }
        }
    }

    /// The four rows of four columns.
    ///
    /// # Safety
    /// As [`eight`].
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn four(src: *const f64, columns: impl TransposeOffsets) -> [__m256d; 4] {
        // SAFETY: four elements of a column.
        let load = |k| unsafe { _mm256_loadu_pd(src.offset(columns.at(k))) };
        let a = [load(0), load(1), load(2), load(3)];
        let low = [_mm256_unpacklo_pd(a[0], a[1]), _mm256_unpacklo_pd(a[2], a[3])];
        let high = [_mm256_unpackhi_pd(a[0], a[1]), _mm256_unpackhi_pd(a[2], a[3])];
        [
            _mm256_permute2f128_pd::<0x20>(low[0], low[1]),
            _mm256_permute2f128_pd::<0x20>(high[0], high[1]),
            _mm256_permute2f128_pd::<0x31>(low[0], low[1]),
            _mm256_permute2f128_pd::<0x31>(high[0], high[1]),
        ]
    }

    /// Four rows of four 64-bit elements.
    ///
    /// # Safety
    /// As [`square_32`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn strip_64(
        src: *const f64,
        columns: impl TransposeOffsets,
        dst: *mut f64,
        rows: impl TransposeOffsets,
    ) {
        // SAFETY: the caller's contract.
        unsafe {
            for (k, row) in four(src, columns).into_iter().enumerate() {
                _mm256_storeu_pd(dst.offset(rows.at(k)), row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: Copy + PartialEq + std::fmt::Debug + Default>(value: impl Fn(usize) -> E) {
        let shapes =
            [(1, 1), (16, 16), (8, 8), (33, 17), (5, 64), (4, 37), (100, 3), (40, 41), (270, 150)];
        // Columns and rows at distances of powers of two, also one of the two.
        let cases =
            shapes.iter().flat_map(|&s| (0..8).map(move |i| (s, i & 1 > 0, i & 2 > 0, i & 4 > 0)));
        for ((rows, cols), tables, crowded_columns, crowded_rows) in cases {
            let pitch = |len: usize, crowded: bool| {
                if crowded { len.next_multiple_of(4096) } else { len + 3 }
            };
            let (src_pitch, dst_pitch) = (pitch(rows, crowded_columns), pitch(cols, crowded_rows));
            let src: Vec<E> = (0..cols * src_pitch).map(&value).collect();
            let mut dst = vec![E::default(); rows * dst_pitch];
            // SAFETY: both hold the block under these pitches.
            unsafe {
                let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
                let (columns, lines) = (src_pitch as isize, dst_pitch as isize);
                if tables {
                    let columns: Vec<isize> = (0..cols as isize).map(|c| c * columns).collect();
                    let lines: Vec<isize> = (0..rows as isize).map(|r| r * lines).collect();
                    transpose(from, columns.as_slice(), to, lines.as_slice(), rows, cols);
                } else {
                    transpose(from, Even::new(columns), to, Even::new(lines), rows, cols);
                }
            }
            for r in 0..rows {
                for c in 0..dst_pitch {
                    let want = if c < cols { src[r + c * src_pitch] } else { E::default() };
                    assert_eq!(dst[r * dst_pitch + c], want, "({r}, {c}) of {rows}×{cols}");
                }
            }
        }
    }

    #[test]
    fn blocks_of_any_size_are_transposed_and_nothing_else_is_written() {
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as f32);
        check(|i| i as f64);
        check(|i| i as u128);
    }
}
