//! Shape, signed strides and offset: views as arithmetic.
//!
//! Element `[i₀, …, iₙ₋₁]` lies at `offset + Σ iₖ·strideₖ`, counted in elements. A view operation
//! returns a new layout over the same memory and never leaves the range of its parent.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::error::{Result, TensorError, check_axis};

/// Sizes of the axes.
pub type Dims = SmallVec<[usize; 6]>;
/// Distances in elements between neighbours along each axis; 0 repeats, negative runs backwards.
pub type Strides = SmallVec<[isize; 6]>;

/// Where the elements of a tensor lie.
///
/// Layouts are shared like memory: a clone costs one count, and a tensor with its layout is small
/// enough to be moved in registers (bench `backend`, row `add 4×4`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    axes: Arc<Axes>,
    offset: usize,
}

/// Axes and what is asked of them over and over.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Axes {
    shape: Dims,
    strides: Strides,
    numel: usize,
    contiguous: bool,
}

/// Number of elements of a shape, or `None` if it exceeds `isize::MAX`.
///
/// The sizes of a shape with a zero in it may multiply to anything: it holds no element.
#[inline]
pub fn checked_numel(shape: &[usize]) -> Option<usize> {
    let mut numel = 1usize;
    let mut overflow = false;
    for &size in shape {
        if size == 0 {
            return Some(0);
        }
        match numel.checked_mul(size) {
            Some(n) if n <= isize::MAX as usize => numel = n,
            _ => overflow = true,
        }
    }
    if overflow { None } else { Some(numel) }
}

/// Row-major strides of a shape.
#[inline]
pub fn contiguous_strides(shape: &[usize]) -> Strides {
    let mut strides = Strides::from_elem(0, shape.len());
    let mut step = 1isize;
    for (stride, &size) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        // Shapes with a zero may overflow here; their strides are never used.
        step = step.wrapping_mul(size.max(1) as isize);
    }
    strides
}

/// Whether the elements lie in row-major order without gaps.
#[inline]
fn row_major(shape: &[usize], strides: &[isize]) -> bool {
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
    #[inline]
    fn new(shape: Dims, strides: Strides, offset: usize) -> Self {
        // Wraps only where a zero follows.
        let numel = shape.iter().fold(1usize, |n, &size| n.wrapping_mul(size));
        let contiguous = row_major(&shape, &strides);
        Self { axes: Arc::new(Axes { shape, strides, numel, contiguous }), offset }
    }

    /// Shape and strides, to be changed.
    fn parts(&self) -> (Dims, Strides) {
        (Dims::from_slice(self.shape()), Strides::from_slice(self.strides()))
    }

    /// Row-major layout from offset 0.
    ///
    /// # Errors
    /// [`TensorError::SizeOverflow`] if the element count times `elem_size` exceeds
    /// `isize::MAX`.
    #[inline]
    pub fn contiguous(op: &'static str, shape: &[usize], elem_size: usize) -> Result<Self> {
        let fits = |&numel: &usize| numel <= isize::MAX as usize / elem_size.max(1);
        let Some(numel) = checked_numel(shape).filter(fits) else {
            return Err(TensorError::SizeOverflow { op, shape: shape.to_vec() });
        };
        let (shape, strides) = (Dims::from_slice(shape), contiguous_strides(shape));
        Ok(Self { axes: Arc::new(Axes { shape, strides, numel, contiguous: true }), offset: 0 })
    }

    /// A layout from its parts, if every element lies in `[0, len)`.
    ///
    /// # Errors
    /// [`TensorError::Shape`] if ranks differ, or an element would lie outside.
    pub fn from_parts(
        shape: &[usize],
        strides: &[isize],
        offset: usize,
        len: usize,
    ) -> Result<Self> {
        let layout = Self::new(shape.into(), strides.into(), offset);
        let reject = |required| Err(TensorError::shape("layout", shape, required));
        if shape.len() != strides.len() {
            return reject("one stride per axis");
        }
        if checked_numel(shape).is_none() {
            return Err(TensorError::SizeOverflow { op: "layout", shape: shape.to_vec() });
        }
        match layout.checked_bounds() {
            Some((low, high)) if low >= 0 && high <= len as i128 => Ok(layout),
            _ => reject("every element inside of the buffer"),
        }
    }

    /// Smallest range of element positions that covers the layout; `None` if it is empty of sense
    /// in `i128`. An empty tensor covers `[0, 0)`.
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

    /// The same steps from offset 0.
    #[inline]
    pub(crate) fn at_start(self) -> Self {
        Self { offset: 0, ..self }
    }

    /// Whether the elements lie in row-major order without gaps (at any offset).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.axes.contiguous
    }

    /// Whether distinct indices name distinct elements, by a sufficient test: sorted by
    /// stride, every axis steps over the reach of the smaller ones.
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

    /// Whether the elements fill a range of memory in some order of the axes.
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

    /// The same memory with axis `k` of the result taken from axis `axes[k]`.
    ///
    /// # Errors
    /// [`TensorError::Axis`] unless `axes` is a permutation of all axes.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let op = "permute";
        if axes.len() != self.rank() {
            return Err(TensorError::shape(op, axes, "a permutation of all axes"));
        }
        let mut seen: SmallVec<[bool; 16]> = smallvec![false; self.rank()];
        for &axis in axes {
            check_axis(op, axis, self.rank())?;
            if std::mem::replace(&mut seen[axis], true) {
                return Err(TensorError::Axis { op, axis, rank: self.rank() });
            }
        }
        let (shape, strides) = (self.shape(), self.strides());
        let shape = axes.iter().map(|&a| shape[a]).collect();
        let strides = axes.iter().map(|&a| strides[a]).collect();
        Ok(Self::new(shape, strides, self.offset))
    }

    /// Exchanges two axes.
    pub fn swap_axes(&self, a: usize, b: usize) -> Result<Self> {
        check_axis("swap_axes", a, self.rank())?;
        check_axis("swap_axes", b, self.rank())?;
        let (mut shape, mut strides) = self.parts();
        shape.swap(a, b);
        strides.swap(a, b);
        Ok(Self::new(shape, strides, self.offset))
    }

    /// Keeps `len` elements of an axis: `start`, `start + step`, `start + 2·step`, …
    ///
    /// # Errors
    /// [`TensorError::Index`] if one of them lies outside, [`TensorError::Value`] for step 0.
    pub fn slice_axis(&self, axis: usize, start: usize, len: usize, step: isize) -> Result<Self> {
        let op = "slice";
        check_axis(op, axis, self.rank())?;
        if step == 0 {
            return Err(TensorError::value(op, format!("step of axis {axis} must not be 0")));
        }
        let size = self.shape()[axis];
        let (mut shape, mut strides) = self.parts();
        shape[axis] = len;
        if len == 0 {
            return Ok(Self::new(shape, strides, self.offset));
        }
        let last = start as i128 + (len as i128 - 1) * step as i128;
        for index in [start as i128, last] {
            if index < 0 || index >= size as i128 {
                return Err(TensorError::Index { op, index: index as i64, axis, size });
            }
        }
        let mut offset = self.offset;
        if self.numel() > 0 {
            offset = (offset as isize + start as isize * strides[axis]) as usize;
        }
        // Only strides that are stepped along have to fit.
        if len > 1 {
            strides[axis] *= step;
        }
        Ok(Self::new(shape, strides, offset))
    }

    /// Drops an axis by fixing its index.
    pub fn select(&self, axis: usize, index: usize) -> Result<Self> {
        check_axis("select", axis, self.rank())?;
        let size = self.shape()[axis];
        if index >= size {
            return Err(TensorError::Index { op: "select", index: index as i64, axis, size });
        }
        let one = self.slice_axis(axis, index, 1, 1)?;
        let (mut shape, mut strides) = one.parts();
        shape.remove(axis);
        strides.remove(axis);
        Ok(Self::new(shape, strides, one.offset))
    }

    /// Runs the given axes backwards.
    pub fn flip(&self, axes: &[usize]) -> Result<Self> {
        let mut out = self.clone();
        for &axis in axes {
            check_axis("flip", axis, self.rank())?;
            let size = out.shape()[axis];
            if size > 0 {
                out = out.slice_axis(axis, size - 1, size, -1)?;
            }
        }
        Ok(out)
    }

    /// Repeats axes of size 1, and adds axes in front, to reach `shape` without copying.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`] if an axis has another size than 1 or the one required.
    pub fn expand(&self, shape: &[usize]) -> Result<Self> {
        let op = "expand";
        let reject =
            || TensorError::shapes(op, self.shape(), shape, "sizes equal or 1, aligned at the end");
        let new_axes = shape.len().checked_sub(self.rank()).ok_or_else(reject)?;
        if checked_numel(shape).is_none() {
            return Err(TensorError::SizeOverflow { op, shape: shape.to_vec() });
        }
        let mut strides: Strides = smallvec![0; shape.len()];
        for axis in 0..self.rank() {
            let (have, want) = (self.shape()[axis], shape[new_axes + axis]);
            if have == want {
                strides[new_axes + axis] = self.strides()[axis];
            } else if have != 1 {
                return Err(reject());
            }
        }
        Ok(Self::new(shape.into(), strides, self.offset))
    }

    /// The diagonal of two axes, as a new last axis: `out[…, i] = in[…, i + max(−k, 0), …,
    /// i + max(k, 0), …]` for offset `k`.
    pub fn diagonal(&self, axis1: usize, axis2: usize, k: isize) -> Result<Self> {
        let op = "diagonal";
        check_axis(op, axis1, self.rank())?;
        check_axis(op, axis2, self.rank())?;
        if axis1 == axis2 {
            return Err(TensorError::Axis { op, axis: axis2, rank: self.rank() });
        }
        let (skip1, skip2) = if k < 0 { (k.unsigned_abs(), 0) } else { (0, k.unsigned_abs()) };
        let len1 = self.shape()[axis1].saturating_sub(skip1);
        let len2 = self.shape()[axis2].saturating_sub(skip2);
        let len = len1.min(len2);
        let out = self.slice_axis(axis1, skip1.min(self.shape()[axis1]), len, 1)?;
        let out = out.slice_axis(axis2, skip2.min(self.shape()[axis2]), len, 1)?;
        let stride = self.strides()[axis1] + self.strides()[axis2];
        let (mut shape, mut strides) = out.parts();
        for axis in [axis1.max(axis2), axis1.min(axis2)] {
            shape.remove(axis);
            strides.remove(axis);
        }
        shape.push(len);
        strides.push(stride);
        Ok(Self::new(shape, strides, out.offset))
    }

    /// Sliding windows: the axis becomes `(size_of_axis − size) / step + 1` positions, and a new
    /// last axis of `size` elements runs inside of the window.
    pub fn unfold(&self, axis: usize, size: usize, step: usize) -> Result<Self> {
        let op = "unfold";
        check_axis(op, axis, self.rank())?;
        if step == 0 || size > self.shape()[axis] || step > isize::MAX as usize {
            return Err(TensorError::value(
                op,
                format!(
                    "a window of {size} with step {step} does not fit axis {axis} of size {}",
                    self.shape()[axis]
                ),
            ));
        }
        let windows = (self.shape()[axis] - size) / step + 1;
        let (mut shape, mut strides) = self.parts();
        shape[axis] = windows;
        shape.push(size);
        strides.push(strides[axis]);
        if windows > 1 {
            strides[axis] *= step as isize;
        }
        Ok(Self::new(shape, strides, self.offset))
    }

    /// Inserts an axis of size 1 before `axis`.
    pub fn unsqueeze(&self, axis: usize) -> Result<Self> {
        if axis > self.rank() {
            return Err(TensorError::Axis { op: "unsqueeze", axis, rank: self.rank() });
        }
        let (mut shape, mut strides) = self.parts();
        shape.insert(axis, 1);
        strides.insert(axis, 0);
        Ok(Self::new(shape, strides, self.offset))
    }

    /// Removes an axis of size 1.
    pub fn squeeze(&self, axis: usize) -> Result<Self> {
        check_axis("squeeze", axis, self.rank())?;
        if self.shape()[axis] != 1 {
            return Err(TensorError::shape("squeeze", self.shape(), "size 1 at the axis"));
        }
        self.select(axis, 0)
    }

    /// The same elements in row-major order under another shape, if no copy is needed: groups of
    /// axes that step evenly through memory are merged and split again.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`] if the element counts differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Option<Self>> {
        let op = "reshape";
        let numel = checked_numel(shape)
            .ok_or_else(|| TensorError::SizeOverflow { op, shape: shape.to_vec() })?;
        if numel != self.numel() {
            return Err(TensorError::shapes(op, self.shape(), shape, "equal element counts"));
        }
        if numel <= 1 || self.is_contiguous() {
            let strides = contiguous_strides(shape);
            return Ok(Some(Self::new(shape.into(), strides, self.offset)));
        }
        let mut strides: Strides = smallvec![0; shape.len()];
        // Old axes without those of size 1, and a cursor into the new ones.
        let mut new_axis = 0;
        let mut old_axis = 0;
        while old_axis < self.rank() {
            if self.shape()[old_axis] == 1 {
                old_axis += 1;
                continue;
            }
            // The longest run of old axes that steps evenly …
            let mut run = self.shape()[old_axis];
            let mut inner = self.strides()[old_axis];
            old_axis += 1;
            while old_axis < self.rank() {
                let (size, stride) = (self.shape()[old_axis], self.strides()[old_axis]);
                if size != 1 {
                    if inner != stride * size as isize {
                        break;
                    }
                    run *= size;
                    inner = stride;
                }
                old_axis += 1;
            }
            // … has to be a product of new axes.
            let first = new_axis;
            let mut product = 1;
            while product < run {
                if new_axis == shape.len() {
                    return Ok(None);
                }
                product *= shape[new_axis];
                new_axis += 1;
            }
            if product != run {
                return Ok(None);
            }
            let mut step = inner;
            for axis in (first..new_axis).rev() {
                strides[axis] = step;
                step *= shape[axis] as isize;
            }
        }
        Ok(Some(Self::new(shape.into(), strides, self.offset)))
    }
}

/// The shape to which two shapes broadcast: aligned at the end, sizes equal or 1.
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
    if checked_numel(&shape).is_none() {
        return Err(TensorError::SizeOverflow { op, shape: shape.to_vec() });
    }
    Ok(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[usize]) -> Layout {
        Layout::contiguous("test", shape, 4).unwrap()
    }

    fn positions(layout: &Layout) -> Vec<usize> {
        let mut out = Vec::new();
        let mut index = vec![0; layout.rank()];
        for _ in 0..layout.numel() {
            out.push(layout.position(&index));
            for axis in (0..layout.rank()).rev() {
                index[axis] += 1;
                if index[axis] < layout.shape()[axis] {
                    break;
                }
                index[axis] = 0;
            }
        }
        out
    }

    #[test]
    fn slices_of_either_sign() {
        let v = layout(&[10]);
        assert_eq!(positions(&v.slice_axis(0, 1, 3, 4).unwrap()), [1, 5, 9]);
        assert_eq!(positions(&v.slice_axis(0, 8, 4, -2).unwrap()), [8, 6, 4, 2]);
        assert_eq!(positions(&v.flip(&[0]).unwrap().slice_axis(0, 1, 2, 3).unwrap()), [8, 5]);
        assert!(v.slice_axis(0, 8, 2, 2).is_err());
        assert!(v.slice_axis(0, 1, 3, -1).is_err());
        assert!(v.slice_axis(0, 0, 1, 0).is_err());
        assert_eq!(v.slice_axis(0, 99, 0, 1).unwrap().shape(), [0]);
    }

    #[test]
    fn reshape_is_a_view_exactly_when_runs_allow_it() {
        let t = layout(&[2, 3, 4]);
        assert!(t.reshape(&[6, 4]).unwrap().is_some());
        let p = t.permute(&[0, 2, 1]).unwrap();
        assert!(p.reshape(&[8, 3]).unwrap().is_none());
        let split = p.reshape(&[2, 2, 2, 3]).unwrap().unwrap();
        assert_eq!(positions(&split), positions(&p));
        let merged = t.flip(&[0, 1, 2]).unwrap().reshape(&[24]).unwrap().unwrap();
        assert_eq!(positions(&merged), (0..24).rev().collect::<Vec<_>>());
        assert!(t.reshape(&[5, 5]).is_err());
        let e = layout(&[1, 3]).expand(&[4, 3]).unwrap();
        assert!(e.reshape(&[12]).unwrap().is_none());
        assert_eq!(positions(&e.reshape(&[2, 2, 3]).unwrap().unwrap()), positions(&e));
        let one = layout(&[3, 1, 4]).permute(&[1, 0, 2]).unwrap();
        assert_eq!(
            positions(&one.reshape(&[12, 1]).unwrap().unwrap()),
            (0..12).collect::<Vec<_>>()
        );
    }

    #[test]
    fn diagonal_and_unfold() {
        let m = layout(&[3, 4]);
        assert_eq!(positions(&m.diagonal(0, 1, 0).unwrap()), [0, 5, 10]);
        assert_eq!(positions(&m.diagonal(0, 1, 1).unwrap()), [1, 6, 11]);
        assert_eq!(positions(&m.diagonal(0, 1, -1).unwrap()), [4, 9]);
        assert_eq!(positions(&m.diagonal(1, 0, 1).unwrap()), [4, 9]);
        assert_eq!(m.diagonal(0, 1, 9).unwrap().shape(), [0]);
        let w = layout(&[5]).unfold(0, 3, 2).unwrap();
        assert_eq!((w.shape(), positions(&w)), (&[2, 3][..], vec![0, 1, 2, 2, 3, 4]));
        assert!(layout(&[5]).unfold(0, 6, 1).is_err());
    }

    #[test]
    fn sizes_that_overflow_are_errors() {
        let huge = 1usize << 40;
        assert!(matches!(
            Layout::contiguous("x", &[huge, huge], 4),
            Err(TensorError::SizeOverflow { .. })
        ));
        assert_eq!(Layout::contiguous("x", &[huge, huge, 0], 4).unwrap().numel(), 0);
        assert!(layout(&[1]).expand(&[huge, huge]).is_err());
        assert!(Layout::from_parts(&[2, 3], &[3, 1], 1, 6).is_err());
        assert!(Layout::from_parts(&[2, 3], &[-3, 1], 3, 6).is_ok());
        assert!(Layout::from_parts(&[2], &[isize::MAX], 0, 6).is_err());
    }

    #[test]
    fn predicates() {
        let t = layout(&[2, 3, 4]);
        let p = t.permute(&[2, 0, 1]).unwrap();
        assert!(t.is_contiguous() && t.is_dense() && t.is_injective());
        assert!(!p.is_contiguous() && p.is_dense());
        let s = t.slice_axis(2, 0, 2, 2).unwrap();
        assert!(s.is_injective() && !s.is_dense());
        let e = layout(&[1, 3]).expand(&[2, 3]).unwrap();
        assert!(!e.is_injective() && !e.is_dense());
        assert!(!layout(&[5]).unfold(0, 3, 1).unwrap().is_injective());
        assert!(layout(&[3, 1]).permute(&[1, 0]).unwrap().is_contiguous());
    }

    #[test]
    fn broadcasting() {
        assert_eq!(broadcast_shapes("x", &[3, 1], &[4]).unwrap().as_slice(), [3, 4]);
        assert_eq!(broadcast_shapes("x", &[0, 1], &[1, 5]).unwrap().as_slice(), [0, 5]);
        assert!(broadcast_shapes("x", &[3], &[4]).is_err());
    }
}
