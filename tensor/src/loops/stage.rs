//! Brings a strided block into contiguous scratch. Compiled per element size, not per kernel.

use std::mem::MaybeUninit;

use super::transpose::{Even, transpose};

/// Scratch for one operand, aligned for every element type.
#[repr(C, align(64))]
pub struct StagingBuffer<const BYTES: usize>(MaybeUninit<[u8; BYTES]>);

impl<const BYTES: usize> StagingBuffer<BYTES> {
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

/// Copies a `rows × cols` block of elements of `size` bytes to rows of `dst` at a distance of `pitch` elements.
///
/// # Safety
/// Element (r, c) of the source, `src + (r·row_stride + c·col_stride)·size`, is readable for all r
/// and c; rows of `cols` elements are writable in `dst` and overlap none of them.
#[inline]
pub unsafe fn gather(
    src: *const u8,
    (row_stride, col_stride): (isize, isize),
    (rows, cols): (usize, usize),
    size: usize,
    dst: *mut u8,
    pitch: isize,
) {
    let (strides, shape) = ((row_stride, col_stride), (rows, cols));
    // SAFETY: the caller's contract, for elements of the matched size. They are moved as possibly uninitialised words
    // without alignment, so any type of that size may be copied.
    unsafe {
        match size {
            4 => gather_sized::<MaybeUninit<u32>>(src.cast(), strides, shape, dst.cast(), pitch),
            8 => gather_sized::<MaybeUninit<u64>>(src.cast(), strides, shape, dst.cast(), pitch),
            1 => gather_sized::<MaybeUninit<u8>>(src.cast(), strides, shape, dst.cast(), pitch),
            2 => gather_sized::<MaybeUninit<u16>>(src.cast(), strides, shape, dst.cast(), pitch),
            16 => gather_sized::<MaybeUninit<u128>>(src.cast(), strides, shape, dst.cast(), pitch),
            _ => gather_bytes(src, strides, shape, size, dst, pitch),
        }
    }
}

/// # Safety
/// As [`gather`], without the requirement of alignment.
unsafe fn gather_sized<E: Copy>(
    src: *const E,
    (row_stride, col_stride): (isize, isize),
    (rows, cols): (usize, usize),
    dst: *mut E,
    pitch: isize,
) {
    if row_stride == 1 && col_stride != 1 && rows > 1 {
        // SAFETY: the caller's contract.
        unsafe { transpose(src, Even::new(col_stride), dst, Even::new(pitch), rows, cols) };
        return;
    }
    for r in 0..rows as isize {
        // SAFETY: (r, c) is inside rows × cols in all pointer arithmetic here.
        unsafe {
            let from = src.offset(r * row_stride);
            let to = dst.offset(r * pitch);
            match col_stride {
                1 => {
                    let bytes = cols * size_of::<E>();
                    std::ptr::copy_nonoverlapping(from.cast::<u8>(), to.cast::<u8>(), bytes);
                }
                0 => {
                    let value = from.read_unaligned();
                    for c in 0..cols {
                        to.add(c).write_unaligned(value);
                    }
                }
                step => {
                    for c in 0..cols {
                        let value = from.offset(c as isize * step).read_unaligned();
                        to.add(c).write_unaligned(value);
                    }
                }
            }
        }
    }
}

/// # Safety
/// As [`gather`].
unsafe fn gather_bytes(
    src: *const u8,
    (row_stride, col_stride): (isize, isize),
    (rows, cols): (usize, usize),
    size: usize,
    dst: *mut u8,
    pitch: isize,
) {
    for r in 0..rows as isize {
        for c in 0..cols as isize {
            let from = (r * row_stride + c * col_stride) * size as isize;
            let to = (r * pitch + c) * size as isize;
            // SAFETY: (r, c) is inside rows × cols.
            unsafe {
                std::ptr::copy_nonoverlapping(src.offset(from), dst.offset(to), size);
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
                // SAFETY: positions are within 0..4000 for these strides.
                unsafe {
                    let src = memory.as_ptr().offset(origin * size as isize);
                    gather(src, (row, col), (rows, cols), size, dst.as_mut_ptr(), cols as isize);
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
