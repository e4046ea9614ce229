//! Shape, signed strides and offset: views as arithmetic.
//!
//! Element `[i₀, …, iₙ₋₁]` is at offset `offset + Σ iₖ·strideₖ`, counted in elements. A view operation returns a new
//! layout over the same memory, inside the range of its parent.

mod views;

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::error::{Result, TensorError};

/// Sizes of the axes.
pub type Dims = SmallVec<[usize; 6]>;
/// Strides in elements along each axis; 0 repeats, negative ones reverse.
pub type Strides = SmallVec<[isize; 6]>;

/// Mapping from the indices of a tensor to memory.
///
/// Axes are shared: a clone increments one reference count, and a tensor with its layout is small enough to be moved in
/// registers (bench `backend`, row `add 4×4`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    axes: Arc<LayoutAxes>,
    offset: usize,
}

/// Axes and cached properties of them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LayoutAxes {
    shape: Dims,
    strides: Strides,
    numel: usize,
    contiguous: bool,
}

/// Maximum number of elements of a tensor: 2⁴⁸, more than the bytes of an address space. It also applies to views that
/// repeat elements, so numbers of elements, bytes and positions never overflow.
pub const MAX_NUMEL: usize = 1 << 48;

/// Number of elements of a shape, or `None` if it exceeds [`MAX_NUMEL`].
///
/// Sizes other than 0 must satisfy the limit even if a size is 0, so that the product of any subset of the sizes does
/// not overflow.
#[inline]
pub fn checked_numel(shape: &[usize]) -> Option<usize> {
    let mut numel = 1usize;
    let mut empty = false;
    for &size in shape {
        empty |= size == 0;
        numel = numel.checked_mul(size.max(1)).filter(|&n| n <= MAX_NUMEL)?;
    }
    Some(if empty { 0 } else { numel })
}

/// [`checked_numel`] as the error of an operation.
#[inline]
pub(crate) fn numel_of(op: &'static str, shape: &[usize]) -> Result<usize> {
    checked_numel(shape).ok_or_else(|| TensorError::SizeOverflow { op, shape: shape.to_vec() })
}

/// Row-major strides of a shape.
#[inline]
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, shape.len());
    let mut step = 1isize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        // Wraps only for shapes that no layout has.
        step = step.wrapping_mul(size.max(1) as isize);
    }
    strides
}

/// True if elements of this shape and these strides are in row-major order without gaps.
#[inline]
pub fn row_major(shape: &[usize], strides: &[isize]) -> bool {
    let mut step = 1usize;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size != 1 {
            if stride != step as isize && size != 0 {
                return shape.contains(&0);
            }
            step = step.wrapping_mul(size);
        }
    }
    true
}

impl Layout {
    /// The only constructor of layouts; it checks the number of elements.
    ///
    /// # Errors
    /// [`TensorError::SizeOverflow`] above [`MAX_NUMEL`] elements.
    #[inline]
    fn derive(op: &'static str, shape: Dims, strides: Strides, offset: usize) -> Result<Self> {
        let numel = numel_of(op, &shape)?;
        let contiguous = row_major(&shape, &strides);
        Ok(Self { axes: Arc::new(LayoutAxes { shape, strides, numel, contiguous }), offset })
    }

    /// Shape and strides, to be changed.
    fn parts(&self) -> (Dims, Strides) {
        (Dims::from_slice(self.shape()), Strides::from_slice(self.strides()))
    }

    /// Row-major layout from offset 0.
    ///
    /// # Errors
    /// [`TensorError::SizeOverflow`] above [`MAX_NUMEL`] elements, or if the elements, of `elem_size`
    /// bytes each, exceed the address space.
    #[inline]
    pub fn contiguous(op: &'static str, shape: &[usize], elem_size: usize) -> Result<Self> {
        let fits = |&numel: &usize| numel <= isize::MAX as usize / elem_size.max(1);
        let Some(numel) = checked_numel(shape).filter(fits) else {
            return Err(TensorError::SizeOverflow { op, shape: shape.to_vec() });
        };
        let (shape, strides) = (Dims::from_slice(shape), contiguous_strides(shape));
        Ok(Self {
            axes: Arc::new(LayoutAxes { shape, strides, numel, contiguous: true }),
            offset: 0,
        })
    }

    /// A layout from its parts, if the offset of every element is in `[0, len)`. Strides of axes of size 0 or 1 are
    /// normalised.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if ranks differ, or an element is out of range.
    pub fn from_parts(
        shape: &[usize],
        strides: &[isize],
        offset: usize,
        len: usize,
    ) -> Result<Self> {
        let reject = |required| Err(TensorError::shape("layout", shape, required));
        if shape.len() != strides.len() {
            return reject("one stride per axis");
        }
        let empty = numel_of("layout", shape)? == 0;
        let mut own = contiguous_strides(shape);
        for ((own, &given), &size) in own.iter_mut().zip(strides).zip(shape) {
            if size > 1 && !empty {
                *own = given;
            }
        }
        let offset = if empty { offset.min(len) } else { offset };
        let layout = Self::derive("layout", shape.into(), own, offset)?;
        if layout.lies_in(len) { Ok(layout) } else { reject("every element inside of the buffer") }
    }

    /// True if the offset of every element is in `[0, len)`.
    pub(crate) fn lies_in(&self, len: usize) -> bool {
        self.checked_bounds().is_some_and(|(low, high)| low >= 0 && high <= len as i128)
    }

    /// Smallest range of element positions that contains the layout; `None` on overflow of `i128`. An empty tensor
    /// covers `[0, 0)`.
    fn checked_bounds(&self) -> Option<(i128, i128)> {
        if self.shape().contains(&0) {
            return Some((0, 0));
        }
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (&size, &stride) in self.shape().iter().zip(self.strides()) {
            let reach = (size as i128 - 1).checked_mul(stride as i128)?;
            if reach < 0 {
                low = low.checked_add(reach)?;
            } else {
                high = high.checked_add(reach)?;
            }
        }
        Some((low, high + 1))
    }

    /// Sizes of the axes.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.axes.shape
    }

    /// Strides in elements.
    #[inline]
    pub fn strides(&self) -> &[isize] {
        &self.axes.strides
    }

    /// Position of element `[0, …, 0]`.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of axes.
    #[inline]
    pub fn rank(&self) -> usize {
        self.axes.shape.len()
    }

    /// Number of elements.
    #[inline]
    pub fn numel(&self) -> usize {
        self.axes.numel
    }

    /// The same strides with offset 0.
    #[inline]
    pub(crate) fn at_start(self) -> Self {
        Self { offset: 0, ..self }
    }

    /// True if the elements are in row-major order without gaps (at any offset).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.axes.contiguous
    }

    /// True if distinct indices have distinct offsets, by a sufficient test: sorted by stride, the stride of every axis
    /// exceeds the extent of the smaller ones.
    pub fn is_injective(&self) -> bool {
        if self.numel() == 0 {
            return true;
        }
        let mut axes: SmallVec<[(usize, usize); 6]> = self
            .shape()
            .iter()
            .zip(self.strides())
            .filter(|&(&size, _)| size > 1)
            .map(|(&size, &stride)| (stride.unsigned_abs(), size))
            .collect();
        axes.sort_unstable();
        let mut reach = 0usize;
        for (stride, size) in axes {
            if stride <= reach {
                return false;
            }
            reach += stride * (size - 1);
        }
        true
    }

    /// True if the elements fill a range of memory in some order of the axes.
    pub fn is_dense(&self) -> bool {
        if self.numel() == 0 {
            return true;
        }
        let reach: usize = self
            .shape()
            .iter()
            .zip(self.strides())
            .map(|(&size, &stride)| stride.unsigned_abs() * size.saturating_sub(1))
            .sum();
        reach + 1 == self.numel() && self.is_injective()
    }

    /// Position of the element at an index. The index must be in bounds.
    #[inline]
    pub fn position(&self, index: &[usize]) -> usize {
        let delta: isize = index.iter().zip(self.strides()).map(|(&i, &s)| i as isize * s).sum();
        (self.offset as isize + delta) as usize
    }
}

/// The broadcast shape of two shapes: aligned at the end, sizes equal or 1.
///
/// # Errors
/// [`TensorError::ShapeMismatch`].
#[inline]
pub fn broadcast_shapes(op: &'static str, lhs: &[usize], rhs: &[usize]) -> Result<Dims> {
    if lhs == rhs {
        return Ok(Dims::from_slice(lhs));
    }
    let rank = lhs.len().max(rhs.len());
    let mut shape: Dims = smallvec![1; rank];
    for axis in 0..rank {
        let size = |s: &[usize]| (axis + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
        shape[axis] = match (size(lhs), size(rhs)) {
            (a, b) if a == b => a,
            (1, b) => b,
            (a, 1) => a,
            _ => return Err(TensorError::shapes(op, lhs, rhs, "sizes equal or 1")),
        };
    }
    numel_of(op, &shape)?;
    Ok(shape)
}

#[cfg(test)]
mod tests;
