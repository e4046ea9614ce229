//! Transposes blocks: contiguous columns to contiguous rows.
//!
//! Memory moves in cache lines, so the unit of work is a square whose sides are one line of 64
//! bytes: each line is read once and written once, however many lines share a cache set. On
//! x86-64 with AVX a square of 4- or 8-byte elements is transposed in registers.

use t4a_algebra::simd::Isa;

/// Copies element (r, c) from `src + r + column(c)` to `dst + row(r) + c`: each column is
/// contiguous in the source, each row in the destination, and either lie anywhere.
///
/// # Safety
/// Source and destination hold `rows × cols` elements at these places and do not overlap. No
/// alignment is required.
#[inline]
pub unsafe fn transpose<E: Copy>(
    src: *const E,
    column: impl Fn(usize) -> isize,
    dst: *mut E,
    row: impl Fn(usize) -> isize,
    rows: usize,
    cols: usize,
) {
    let side = (64 / size_of::<E>()).max(1);
    let wide = Isa::detect() >= Isa::Avx2;
    for r in (0..rows).step_by(side) {
        for c in (0..cols).step_by(side) {
            let (height, width) = (side.min(rows - r), side.min(cols - c));
            let full = wide && height == side && width == side;
            let from = |k: usize| src.wrapping_offset(r as isize + column(c + k));
            let to = |k: usize| dst.wrapping_offset(row(r + k) + c as isize);
            // SAFETY: the square lies inside of the block; AVX2 has been detected.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                if full && size_of::<E>() == 4 {
                    let (from, to) = (|k| from(k).cast(), |k| to(k).cast());
                    avx::square_32(&std::array::from_fn(from), &std::array::from_fn(to));
                    continue;
                }
                #[cfg(target_arch = "x86_64")]
                if full && size_of::<E>() == 8 {
                    let (from, to) = (|k| from(k).cast(), |k| to(k).cast());
                    avx::square_64(&std::array::from_fn(from), &std::array::from_fn(to));
                    continue;
                }
                let _ = full;
                // Strips of four rows, as of narrow tables (bench `backend`, row `sum 262144×4`).
                let mut done = [0; 2];
                #[cfg(target_arch = "x86_64")]
                if wide && (size_of::<E>() == 4 || size_of::<E>() == 8) {
                    let side = 32 / size_of::<E>();
                    done = [height / 4 * 4, width / side * side];
                    for r in (0..done[0]).step_by(4) {
                        for c in (0..done[1]).step_by(side) {
                            let column = |k: usize| from(c + k).add(r);
                            let row = |k: usize| to(r + k).add(c);
                            if size_of::<E>() == 4 {
                                let from = std::array::from_fn(|k| column(k).cast());
                                avx::strip_32(&from, &std::array::from_fn(|k| row(k).cast()));
                            } else {
                                let from: [_; 4] = std::array::from_fn(|k| column(k).cast());
                                let to: [_; 4] = std::array::from_fn(|k| row(k).cast());
                                avx::four(from.as_slice(), 0, to.as_slice(), 0);
                            }
                        }
                    }
                }
                for r in 0..height {
                    let first = if r < done[0] { done[1] } else { 0 };
                    for c in first..width {
                        to(r).add(c).write_unaligned(from(c).add(r).read_unaligned());
                    }
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx {
    use std::arch::x86_64::*;

    /// A square of one cache line by as many elements as a line has. Columns of a matrix whose pitch
    /// is a power of two share a cache set: a line that is written in two halves would leave the
    /// cache in between, so rows are put together here.
    #[repr(C, align(64))]
    struct Square<T, const SIDE: usize>([[T; SIDE]; SIDE]);

    /// A 16 × 16 square of 32-bit elements, given by its columns and rows, as four 8 × 8 ones.
    ///
    /// # Safety
    /// Columns are readable, rows writable; the machine has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn square_32(columns: &[*const f32; 16], rows: &[*mut f32; 16]) {
        let mut square = Square([[0.0f32; 16]; 16]);
        let place: [*mut f32; 16] = square.0.each_mut().map(|row| row.as_mut_ptr());
        for c in [0, 8] {
            for r in [0, 8] {
                // SAFETY: an 8 × 8 part of the square.
                unsafe { eight(&columns[c..c + 8], r, &place[r..r + 8], c) };
            }
        }
        for (from, &to) in square.0.iter().zip(rows) {
            // SAFETY: sixteen elements of a row.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, 16) };
        }
    }

    /// # Safety
    /// As [`square_32`], for 8 × 8 from element `r` of the columns to element `c` of the rows.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn eight(columns: &[*const f32], r: usize, rows: &[*mut f32], c: usize) {
        let mut a = [_mm256_setzero_ps(); 8];
        for (a, column) in a.iter_mut().zip(columns) {
            // SAFETY: eight elements of a column.
            *a = unsafe { _mm256_loadu_ps(column.add(r)) };
        }
        // Pairs, quadruples, halves: after each step twice as many neighbours lie side by side.
        let mut b = a;
        for i in 0..4 {
            b[2 * i] = _mm256_unpacklo_ps(a[2 * i], a[2 * i + 1]);
            b[2 * i + 1] = _mm256_unpackhi_ps(a[2 * i], a[2 * i + 1]);
        }
        for i in [0, 4] {
            a[i] = _mm256_shuffle_ps::<0x44>(b[i], b[i + 2]);
            a[i + 1] = _mm256_shuffle_ps::<0xee>(b[i], b[i + 2]);
            a[i + 2] = _mm256_shuffle_ps::<0x44>(b[i + 1], b[i + 3]);
            a[i + 3] = _mm256_shuffle_ps::<0xee>(b[i + 1], b[i + 3]);
        }
        for i in 0..4 {
            b[i] = _mm256_permute2f128_ps::<0x20>(a[i], a[i + 4]);
            b[i + 4] = _mm256_permute2f128_ps::<0x31>(a[i], a[i + 4]);
        }
        for (&b, row) in b.iter().zip(rows) {
            // SAFETY: eight elements of a row.
            unsafe { _mm256_storeu_ps(row.add(c), b) };
        }
    }

    /// Four rows of eight 32-bit elements from eight columns of four.
    ///
    /// # Safety
    /// As [`square_32`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn strip_32(columns: &[*const f32; 8], rows: &[*mut f32; 4]) {
        let mut a = [_mm256_setzero_ps(); 4];
        for (i, a) in a.iter_mut().enumerate() {
            // SAFETY: four elements of a column.
            let halves = unsafe { (_mm_loadu_ps(columns[i]), _mm_loadu_ps(columns[i + 4])) };
            *a = _mm256_set_m128(halves.1, halves.0);
        }
        let low = [_mm256_unpacklo_ps(a[0], a[1]), _mm256_unpacklo_ps(a[2], a[3])];
        let high = [_mm256_unpackhi_ps(a[0], a[1]), _mm256_unpackhi_ps(a[2], a[3])];
        let out = [
            _mm256_shuffle_ps::<0x44>(low[0], low[1]),
            _mm256_shuffle_ps::<0xee>(low[0], low[1]),
            _mm256_shuffle_ps::<0x44>(high[0], high[1]),
            _mm256_shuffle_ps::<0xee>(high[0], high[1]),
        ];
        for (&row, &to) in out.iter().zip(rows) {
            // SAFETY: eight elements of a row.
            unsafe { _mm256_storeu_ps(to, row) };
        }
    }

    /// An 8 × 8 square of 64-bit elements, given by its columns and rows, as four 4 × 4 ones.
    ///
    /// # Safety
    /// As [`square_32`].
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn square_64(columns: &[*const f64; 8], rows: &[*mut f64; 8]) {
        let mut square = Square([[0.0f64; 8]; 8]);
        let place: [*mut f64; 8] = square.0.each_mut().map(|row| row.as_mut_ptr());
        for c in [0, 4] {
            for r in [0, 4] {
                // SAFETY: a 4 × 4 part of the square.
                unsafe { four(&columns[c..c + 4], r, &place[r..r + 4], c) };
            }
        }
        for (from, &to) in square.0.iter().zip(rows) {
            // SAFETY: eight elements of a row.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, 8) };
        }
    }

    /// # Safety
    /// As [`eight`], for 4 × 4.
    #[target_feature(enable = "avx2")]
    #[inline]
    pub(super) unsafe fn four(columns: &[*const f64], r: usize, out: &[*mut f64], c: usize) {
        let mut a = [_mm256_setzero_pd(); 4];
        for (a, column) in a.iter_mut().zip(columns) {
            // SAFETY: four elements of a column.
            *a = unsafe { _mm256_loadu_pd(column.add(r)) };
        }
        let low = [_mm256_unpacklo_pd(a[0], a[1]), _mm256_unpacklo_pd(a[2], a[3])];
        let high = [_mm256_unpackhi_pd(a[0], a[1]), _mm256_unpackhi_pd(a[2], a[3])];
        let rows = [
            _mm256_permute2f128_pd::<0x20>(low[0], low[1]),
            _mm256_permute2f128_pd::<0x20>(high[0], high[1]),
            _mm256_permute2f128_pd::<0x31>(low[0], low[1]),
            _mm256_permute2f128_pd::<0x31>(high[0], high[1]),
        ];
        for (&row, out) in rows.iter().zip(out) {
            // SAFETY: four elements of a row.
            unsafe { _mm256_storeu_pd(out.add(c), row) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<E: Copy + PartialEq + std::fmt::Debug + Default>(value: impl Fn(usize) -> E) {
        for (rows, cols) in
            [(1, 1), (16, 16), (8, 8), (33, 17), (5, 64), (4, 37), (100, 3), (40, 41)]
        {
            let (src_pitch, dst_pitch) = (rows + 3, cols + 2);
            let src: Vec<E> = (0..cols * src_pitch).map(&value).collect();
            let mut dst = vec![E::default(); rows * dst_pitch];
            // SAFETY: both hold the block under these pitches.
            unsafe {
                let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
                let column = |c| (c * src_pitch) as isize;
                transpose(from, column, to, |r| (r * dst_pitch) as isize, rows, cols);
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
