//! Brings a strided block into contiguous scratch. Compiled per element size, not per kernel.

use std::mem::MaybeUninit;

/// Bytes of scratch per operand: three operands and the result stay in a 32 KiB first-level cache.
pub const SCRATCH_BYTES: usize = 8192;

/// Scratch for one operand, aligned for every element type.
#[repr(C, align(64))]
pub struct Scratch(MaybeUninit<[u8; SCRATCH_BYTES]>);

impl Scratch {
    /// Uninitialised scratch.
    #[inline(always)]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// First byte.
    #[inline(always)]
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Copies a `rows × cols` block of elements of `size` bytes to row-major `dst`.
///
/// # Safety
/// Element (r, c) of the source, `src + (r·row_stride + c·col_stride)·size`, is readable for all r
/// and c; `dst` takes `rows·cols·size` bytes and overlaps none of them.
#[inline]
pub unsafe fn gather(
    src: *const u8,
    row_stride: isize,
    col_stride: isize,
    rows: usize,
    cols: usize,
    size: usize,
    dst: *mut u8,
) {
    // SAFETY: the caller's promise, with elements of the size matched on. They are moved as
    // possibly uninitialised words without alignment, so any type of that size may be copied.
    unsafe {
        match size {
            4 => gather_sized::<MaybeUninit<u32>>(
                src.cast(),
                row_stride,
                col_stride,
                rows,
                cols,
                dst.cast(),
            ),
            8 => gather_sized::<MaybeUninit<u64>>(
                src.cast(),
                row_stride,
                col_stride,
                rows,
                cols,
                dst.cast(),
            ),
            1 => gather_sized::<MaybeUninit<u8>>(
                src.cast(),
                row_stride,
                col_stride,
                rows,
                cols,
                dst.cast(),
            ),
            2 => gather_sized::<MaybeUninit<u16>>(
                src.cast(),
                row_stride,
                col_stride,
                rows,
                cols,
                dst.cast(),
            ),
            16 => gather_sized::<MaybeUninit<u128>>(
                src.cast(),
                row_stride,
                col_stride,
                rows,
                cols,
                dst.cast(),
            ),
            _ => gather_bytes(src, row_stride, col_stride, rows, cols, size, dst),
        }
    }
}

/// # Safety
/// As [`gather`], except for alignment, of which none is required.
unsafe fn gather_sized<E: Copy>(
    src: *const E,
    row_stride: isize,
    col_stride: isize,
    rows: usize,
    cols: usize,
    dst: *mut E,
) {
    // SAFETY: (r, c) stays inside of rows × cols in all pointer arithmetic here.
    unsafe {
        if col_stride == 1 {
            for r in 0..rows {
                let from = src.offset(r as isize * row_stride).cast::<u8>();
                let bytes = cols * size_of::<E>();
                std::ptr::copy_nonoverlapping(from, dst.add(r * cols).cast::<u8>(), bytes);
            }
        } else if col_stride == 0 {
            for r in 0..rows {
                let value = src.offset(r as isize * row_stride).read_unaligned();
                for c in 0..cols {
                    dst.add(r * cols + c).write_unaligned(value);
                }
            }
        } else if row_stride.unsigned_abs() < col_stride.unsigned_abs() && rows > 1 {
            // A transposed block. Four columns at a time: the reads run along cache lines and the
            // writes are short runs.
            let mut c = 0;
            while c + 4 <= cols {
                let from = src.offset(c as isize * col_stride);
                for r in 0..rows {
                    let at = from.offset(r as isize * row_stride);
                    let to = dst.add(r * cols + c);
                    for lane in 0..4 {
                        let value = at.offset(lane * col_stride).read_unaligned();
                        to.offset(lane).write_unaligned(value);
                    }
                }
                c += 4;
            }
            for c in c..cols {
                for r in 0..rows {
                    let at = src.offset(r as isize * row_stride + c as isize * col_stride);
                    dst.add(r * cols + c).write_unaligned(at.read_unaligned());
                }
            }
        } else {
            for r in 0..rows {
                let from = src.offset(r as isize * row_stride);
                for c in 0..cols {
                    let value = from.offset(c as isize * col_stride).read_unaligned();
                    dst.add(r * cols + c).write_unaligned(value);
                }
            }
        }
    }
}

/// # Safety
/// As [`gather`].
unsafe fn gather_bytes(
    src: *const u8,
    row_stride: isize,
    col_stride: isize,
    rows: usize,
    cols: usize,
    size: usize,
    dst: *mut u8,
) {
    for r in 0..rows {
        for c in 0..cols {
            let at = (r as isize * row_stride + c as isize * col_stride) * size as isize;
            // SAFETY: (r, c) stays inside of rows × cols.
            unsafe {
                std::ptr::copy_nonoverlapping(src.offset(at), dst.add((r * cols + c) * size), size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_and_stride_gathers_the_right_elements() {
        for size in [1usize, 2, 3, 4, 8, 12, 16] {
            let memory: Vec<u8> = (0..4000 * size).map(|i| (i * 7 + i / 256) as u8).collect();
            for (row, col) in
                [(50, 1), (1, 50), (-1, 37), (37, -1), (3, 0), (0, 3), (-60, -2), (0, 0)]
            {
                let (rows, cols) = (11usize, 13usize);
                let mut dst = vec![0u8; rows * cols * size];
                let origin = 2000isize;
                // SAFETY: positions stay within 0..4000 for these strides.
                unsafe {
                    let src = memory.as_ptr().offset(origin * size as isize);
                    gather(src, row, col, rows, cols, size, dst.as_mut_ptr());
                }
                for r in 0..rows {
                    for c in 0..cols {
                        let at = (origin + r as isize * row + c as isize * col) as usize * size;
                        let to = (r * cols + c) * size;
                        assert_eq!(dst[to..to + size], memory[at..at + size], "{size} {row} {col}");
                    }
                }
            }
        }
    }
}
