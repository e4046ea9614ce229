//! View operations: a new layout over the same memory.
//!
//! No view exceeds the positions of its parent; sizes are checked by [`Layout::derive`].

use smallvec::{SmallVec, smallvec};

use super::{Layout, Strides, contiguous_strides, numel_of};
use crate::error::{Result, TensorError, check_axis};

impl Layout {
    /// Axis `k` of the result is axis `axes[k]`, without a copy.
    ///
    /// # Errors
    /// [`TensorError::Axis`] unless `axes` is a permutation of all axes.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        let op = "permute";
        if axes.len() != self.rank() {
            return Err(TensorError::shape(op, axes, "a permutation of all axes"));
        }
        if axes.iter().enumerate().all(|(i, &axis)| i == axis) {
            return Ok(self.clone());
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
        Self::derive(op, shape, strides, self.offset)
    }

    /// Exchanges two axes.
    pub fn swap_axes(&self, a: usize, b: usize) -> Result<Self> {
        let op = "swap_axes";
        check_axis(op, a, self.rank())?;
        check_axis(op, b, self.rank())?;
        let (mut shape, mut strides) = self.parts();
        shape.swap(a, b);
        strides.swap(a, b);
        Self::derive(op, shape, strides, self.offset)
    }

    /// Keeps `len` elements of an axis: `start`, `start + step`, `start + 2·step`, …
    ///
    /// # Errors
    /// [`TensorError::Index`] if one of them is out of range, [`TensorError::Value`] for step 0.
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
            return Self::derive(op, shape, strides, self.offset);
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
            strides[axis] = self.times(op, strides[axis], step)?;
        }
        Self::derive(op, shape, strides, offset)
    }

    /// Drops an axis by fixing its index.
    pub fn select(&self, axis: usize, index: usize) -> Result<Self> {
        let op = "select";
        check_axis(op, axis, self.rank())?;
        let size = self.shape()[axis];
        if index >= size {
            return Err(TensorError::Index { op, index: index as i64, axis, size });
        }
        let one = self.slice_axis(axis, index, 1, 1)?;
        let (mut shape, mut strides) = one.parts();
        shape.remove(axis);
        strides.remove(axis);
        Self::derive(op, shape, strides, one.offset)
    }

    /// Reverses the given axes.
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
        numel_of(op, shape)?;
        let mut strides: Strides = smallvec![0; shape.len()];
        for axis in 0..self.rank() {
            let (have, want) = (self.shape()[axis], shape[new_axes + axis]);
            if have == want {
                strides[new_axes + axis] = self.strides()[axis];
            } else if have != 1 {
                return Err(reject());
            }
        }
        Self::derive(op, shape.into(), strides, self.offset)
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
        let stride = out.strides()[axis1].checked_add(out.strides()[axis2]);
        let stride = stride.ok_or_else(|| self.overflow(op))?;
        let (mut shape, mut strides) = out.parts();
        for axis in [axis1.max(axis2), axis1.min(axis2)] {
            shape.remove(axis);
            strides.remove(axis);
        }
        shape.push(len);
        strides.push(stride);
        Self::derive(op, shape, strides, out.offset)
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
            strides[axis] = self.times(op, strides[axis], step as isize)?;
        }
        Self::derive(op, shape, strides, self.offset)
    }

    /// Inserts an axis of size 1 before `axis`.
    pub fn unsqueeze(&self, axis: usize) -> Result<Self> {
        let op = "unsqueeze";
        if axis > self.rank() {
            return Err(TensorError::Axis { op, axis, rank: self.rank() });
        }
        let (mut shape, mut strides) = self.parts();
        shape.insert(axis, 1);
        strides.insert(axis, 0);
        Self::derive(op, shape, strides, self.offset)
    }

    /// Removes an axis of size 1.
    pub fn squeeze(&self, axis: usize) -> Result<Self> {
        check_axis("squeeze", axis, self.rank())?;
        if self.shape()[axis] != 1 {
            return Err(TensorError::shape("squeeze", self.shape(), "size 1 at the axis"));
        }
        self.select(axis, 0)
    }

    /// The same elements in row-major order under another shape; `None` if a copy is needed. Groups of axes with
    /// compatible strides are merged and split again.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`] if the element counts differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Option<Self>> {
        let op = "reshape";
        // Strides of axes of size 1 are normalised below.
        if shape == self.shape() && shape.iter().all(|&n| n > 1) {
            return Ok(Some(self.clone()));
        }
        let numel = numel_of(op, shape)?;
        if numel != self.numel() {
            return Err(TensorError::shapes(op, self.shape(), shape, "equal element counts"));
        }
        if numel <= 1 || self.is_contiguous() {
            let strides = contiguous_strides(shape);
            return Self::derive(op, shape.into(), strides, self.offset).map(Some);
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
        Self::derive(op, shape.into(), strides, self.offset).map(Some)
    }

    /// A stride multiplied by a step.
    fn times(&self, op: &'static str, stride: isize, step: isize) -> Result<isize> {
        stride.checked_mul(step).ok_or_else(|| self.overflow(op))
    }

    #[cold]
    fn overflow(&self, op: &'static str) -> TensorError {
        TensorError::SizeOverflow { op, shape: self.shape().to_vec() }
    }
}
