//! Strided matrices over borrowed memory.
//!
//! Element (i, j) is at `ptr + i·row_stride + j·col_stride`, with strides in elements and of any sign; stride 0 repeats
//! one row or column. The safe constructors prove once that every element is inside the slice, and for [`MatMut`] that
//! no two elements share an address.

use std::marker::PhantomData;

use super::GemmError;

/// A read-only strided matrix.
#[derive(Debug)]
pub struct MatRef<'a, T> {
    ptr: *const T,
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
    life: PhantomData<&'a [T]>,
}

/// A writable strided matrix. Overwriting products never read it, so it may then be
/// uninitialised.
#[derive(Debug)]
pub struct MatMut<'a, T> {
    ptr: *mut T,
    rows: usize,
    cols: usize,
    row_stride: isize,
    col_stride: isize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: a `MatRef` is a shared borrow of its elements.
unsafe impl<T: Sync> Send for MatRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for MatRef<'_, T> {}
// SAFETY: a `MatMut` is an exclusive borrow of its elements.
unsafe impl<T: Send> Send for MatMut<'_, T> {}
// SAFETY: a shared `MatMut` gives out only its pointer and layout.
unsafe impl<T: Sync> Sync for MatMut<'_, T> {}

impl<T> Clone for MatRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for MatRef<'_, T> {}

/// Proves `0 ≤ offset + i·row_stride + j·col_stride < len` for all i, j.
fn check_bounds(
    len: usize,
    offset: usize,
    (rows, cols): (usize, usize),
    (row_stride, col_stride): (isize, isize),
) -> Result<(), GemmError> {
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    let range = || {
        let (mut low, mut high) = (offset as i128, offset as i128);
        for (size, stride) in [(rows, row_stride), (cols, col_stride)] {
            // Each reach is below 2¹²⁷, but the sum may overflow.
            let reach = (size - 1) as i128 * stride as i128;
            low = low.checked_add(reach.min(0))?;
            high = high.checked_add(reach.max(0))?;
        }
        Some((low, high))
    };
    match range() {
        Some((low, high)) if low >= 0 && high < len as i128 => Ok(()),
        _ => Err(GemmError::OutOfBounds { rows, cols, row_stride, col_stride, offset, len }),
    }
}

/// Proves that (i, j) ↦ `i·row_stride + j·col_stride` is injective, by requiring that the larger stride exceeds the
/// whole extent of the smaller one.
fn check_distinct(
    (rows, cols): (usize, usize),
    (row_stride, col_stride): (isize, isize),
) -> Result<(), GemmError> {
    if rows == 0 || cols == 0 {
        return Ok(());
    }
    let mut axes = [(row_stride.unsigned_abs(), rows), (col_stride.unsigned_abs(), cols)];
    axes.sort_unstable();
    let mut extent: u128 = 1;
    for (stride, size) in axes {
        if size > 1 {
            if (stride as u128) < extent {
                return Err(GemmError::Overlap { rows, cols, row_stride, col_stride });
            }
            extent += stride as u128 * (size as u128 - 1);
        }
    }
    Ok(())
}

impl<'a, T> MatRef<'a, T> {
    /// A row-major matrix.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if the slice is too short.
    pub fn row_major(data: &'a [T], rows: usize, cols: usize) -> Result<Self, GemmError> {
        Self::strided(data, 0, (rows, cols), (cols as isize, 1))
    }

    /// A matrix whose element (0, 0) is `data[offset]`.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if an element is outside `data`.
    pub fn strided(
        data: &'a [T],
        offset: usize,
        shape: (usize, usize),
        strides: (isize, isize),
    ) -> Result<Self, GemmError> {
        check_bounds(data.len(), offset, shape, strides)?;
        let ptr = data.as_ptr().wrapping_add(offset);
        // SAFETY: just proved.
        Ok(unsafe { Self::from_raw_parts(ptr, shape, strides) })
    }

    /// A matrix at `ptr`, which is element (0, 0).
    ///
    /// # Safety
    /// Every element must be readable for `'a` and must not be written during `'a`.
    #[inline(always)]
    pub const unsafe fn from_raw_parts(
        ptr: *const T,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        Self { ptr, rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// Address of element (0, 0).
    #[inline(always)]
    pub const fn as_ptr(&self) -> *const T {
        self.ptr
    }

    /// The transposed matrix.
    #[inline(always)]
    pub const fn transpose(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The `rows` × `cols` matrix starting at element (i, j).
    ///
    /// # Safety
    /// The block must be inside this matrix.
    #[inline(always)]
    pub const unsafe fn block(self, (i, j): (usize, usize), (rows, cols): (usize, usize)) -> Self {
        let ptr =
            self.ptr.wrapping_offset(i as isize * self.row_stride + j as isize * self.col_stride);
        Self { ptr, rows, cols, ..self }
    }

    /// The matrix with its pointer advanced by `by` elements.
    ///
    /// # Safety
    /// Every element of the result must be readable for `'a`.
    #[inline(always)]
    pub const unsafe fn offset(self, by: isize) -> Self {
        Self { ptr: self.ptr.wrapping_offset(by), ..self }
    }
}

impl<'a, T> MatMut<'a, T> {
    /// A row-major matrix.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if the slice is too short.
    pub fn row_major(data: &'a mut [T], rows: usize, cols: usize) -> Result<Self, GemmError> {
        Self::strided(data, 0, (rows, cols), (cols as isize, 1))
    }

    /// A matrix whose element (0, 0) is `data[offset]`.
    ///
    /// # Errors
    /// [`GemmError::OutOfBounds`] if an element is outside `data`, and [`GemmError::Overlap`] if two elements share an
    /// address.
    pub fn strided(
        data: &'a mut [T],
        offset: usize,
        shape: (usize, usize),
        strides: (isize, isize),
    ) -> Result<Self, GemmError> {
        check_bounds(data.len(), offset, shape, strides)?;
        check_distinct(shape, strides)?;
        let ptr = data.as_mut_ptr().wrapping_add(offset);
        // SAFETY: just proved.
        Ok(unsafe { Self::from_raw_parts(ptr, shape, strides) })
    }

    /// A matrix at `ptr`, which is element (0, 0).
    ///
    /// # Safety
    /// Every element must be exclusively writable for `'a`, and no two may share an address. Elements may be
    /// uninitialised if this matrix is used only by overwriting products.
    #[inline(always)]
    pub const unsafe fn from_raw_parts(
        ptr: *mut T,
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (isize, isize),
    ) -> Self {
        Self { ptr, rows, cols, row_stride, col_stride, life: PhantomData }
    }

    /// Address of element (0, 0).
    #[inline(always)]
    pub const fn as_mut_ptr(&self) -> *mut T {
        self.ptr
    }

    /// A second handle to the same elements.
    ///
    /// # Safety
    /// No element may be written through one handle while another thread accesses it.
    #[inline(always)]
    pub const unsafe fn alias(&self) -> Self {
        Self { ..*self }
    }

    /// The transposed matrix.
    #[inline(always)]
    pub const fn transpose(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }

    /// The `rows` × `cols` matrix starting at element (i, j).
    ///
    /// # Safety
    /// The block must be inside this matrix.
    #[inline(always)]
    pub const unsafe fn block(self, (i, j): (usize, usize), (rows, cols): (usize, usize)) -> Self {
        let ptr =
            self.ptr.wrapping_offset(i as isize * self.row_stride + j as isize * self.col_stride);
        Self { ptr, rows, cols, ..self }
    }

    /// The matrix with its pointer advanced by `by` elements.
    ///
    /// # Safety
    /// Every element of the result must be exclusively writable for `'a`.
    #[inline(always)]
    pub const unsafe fn offset(self, by: isize) -> Self {
        Self { ptr: self.ptr.wrapping_offset(by), ..self }
    }
}

macro_rules! layout {
    ($mat:ident) => {
        impl<T> $mat<'_, T> {
            /// Number of rows.
            #[inline(always)]
            pub const fn rows(&self) -> usize {
                self.rows
            }
            /// Number of columns.
            #[inline(always)]
            pub const fn cols(&self) -> usize {
                self.cols
            }
            /// Stride between rows, in elements.
            #[inline(always)]
            pub const fn row_stride(&self) -> isize {
                self.row_stride
            }
            /// Stride between columns, in elements.
            #[inline(always)]
            pub const fn col_stride(&self) -> isize {
                self.col_stride
            }
        }
    };
}
layout!(MatRef);
layout!(MatMut);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_outside_the_slice_are_refused() {
        let data = [0u8; 12];
        assert!(MatRef::row_major(&data, 3, 4).is_ok());
        assert!(matches!(MatRef::row_major(&data, 3, 5), Err(GemmError::OutOfBounds { .. })));
        assert!(MatRef::strided(&data, 11, (3, 4), (-4, -1)).is_ok());
        assert!(MatRef::strided(&data, 10, (3, 4), (-4, -1)).is_err());
        assert!(MatRef::strided(&data, 99, (0, 4), (4, 1)).is_ok());
        assert!(MatRef::strided(&data, 0, (usize::MAX, 2), (isize::MAX, 1)).is_err());
        for stride in [isize::MIN, isize::MAX] {
            let (all, both) = ((usize::MAX, usize::MAX), (stride, stride));
            assert!(MatRef::strided(&data, usize::MAX, all, both).is_err());
        }
        assert!(MatRef::row_major(&data, usize::MAX, 0).is_ok());
    }

    #[test]
    fn writable_views_must_not_fold() {
        let mut data = [0u8; 12];
        for (shape, strides, fine) in [
            ((3, 4), (4, 1), true),
            ((3, 4), (1, 3), true),
            ((3, 4), (-1, 3), true),
            ((3, 4), (3, 1), false),
            ((3, 4), (0, 1), false),
            ((1, 4), (0, 1), true),
            ((0, 4), (0, 0), true),
            ((2, 3), (3, 2), false),
        ] {
            let got = MatMut::strided(&mut data, 2, shape, strides);
            assert_eq!(
                !matches!(got, Err(GemmError::Overlap { .. })),
                fine,
                "{shape:?} {strides:?}"
            );
        }
    }
}
