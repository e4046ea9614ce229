//! Zero-copy view operations on typed and erased tensors: each returns a new layout over the same memory. Only
//! `reshape` may copy.

use t4a_algebra::Scalar;

use crate::any::AnyTensor;
use crate::error::{Result, TensorError};
use crate::layout::Layout;
use crate::tensor::Tensor;

/// A range of an axis with the semantics of Python slices: negative bounds count from the end, bounds beyond the axis
/// are clipped, a negative step decreases from `start` to `end`, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// First index; `None` is the first one in the direction of the step.
    pub start: Option<isize>,
    /// Bound; `None` runs through the last one.
    pub end: Option<isize>,
    /// Step between consecutive elements, not 0.
    pub step: isize,
}

impl Slice {
    /// The whole axis.
    pub const ALL: Slice = Slice { start: None, end: None, step: 1 };

    /// `start..end`.
    pub const fn range(start: isize, end: isize) -> Self {
        Slice { start: Some(start), end: Some(end), step: 1 }
    }

    /// First index and length on an axis of the given size.
    fn resolve(self, size: usize) -> Option<(usize, usize)> {
        let n = isize::try_from(size).ok()?;
        let clip = |bound: Option<isize>, low: isize, high: isize, default: isize| match bound {
            None => default,
            Some(b) if b < 0 => b.saturating_add(n).clamp(low, high),
            Some(b) => b.clamp(low, high),
        };
        let (start, distance) = if self.step > 0 {
            let start = clip(self.start, 0, n, 0);
            (start, clip(self.end, 0, n, n) - start)
        } else {
            let start = clip(self.start, -1, n - 1, n - 1);
            (start, start - clip(self.end, -1, n - 1, -1))
        };
        if distance <= 0 {
            return Some((0, 0));
        }
        let len = (distance as usize).div_ceil(self.step.unsigned_abs());
        Some((start as usize, len))
    }
}

/// Methods of typed and of erased tensors: a clone of the tensor under a derived layout.
macro_rules! views {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl<T: Scalar> Tensor<T> {
            $($(#[$doc])*
            #[inline]
            pub fn $name(&self, $($arg: $ty),*) -> Result<Self> {
                let layout = self.layout().$name($($arg),*)?;
                // SAFETY: a view of this tensor.
                Ok(unsafe { self.clone().with_layout(layout) })
            })*
        }

        impl AnyTensor {
            $($(#[$doc])*
            #[inline]
            pub fn $name(&self, $($arg: $ty),*) -> Result<Self> {
                let layout = self.layout().$name($($arg),*)?;
                // SAFETY: a view of this tensor.
                Ok(unsafe { self.clone().with_layout(layout) })
            })*
        }
    };
}

views! {
    /// Axis `k` of the result is axis `axes[k]`.
    ///
    /// # Errors
    /// [`TensorError::Axis`], [`TensorError::Shape`] unless `axes` is a permutation.
    permute(axes: &[usize]);
    /// Exchanges two axes.
    swap_axes(a: usize, b: usize);
    /// `len` elements of an axis: `start`, `start + step`, … with a step of either sign.
    ///
    /// # Errors
    /// [`TensorError::Index`] if one is out of range, [`TensorError::Value`] for step 0.
    slice_axis(axis: usize, start: usize, len: usize, step: isize);
    /// Drops an axis by fixing its index.
    select(axis: usize, index: usize);
    /// Reverses the given axes.
    flip(axes: &[usize]);
    /// Repeats axes of size 1, and prepends axes, to reach `shape`.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`] if an axis has another size than 1 or the one required.
    expand(shape: &[usize]);
    /// The diagonal of two axes at offset `k`, as a new last axis.
    diagonal(axis1: usize, axis2: usize, k: isize);
    /// Sliding windows of `size` along an axis, as a new last axis.
    unfold(axis: usize, size: usize, step: usize);
    /// Inserts an axis of size 1 before `axis`.
    unsqueeze(axis: usize);
    /// Removes an axis of size 1.
    squeeze(axis: usize);
    /// The slices of the leading axes; axes without a slice are taken whole.
    ///
    /// # Errors
    /// [`TensorError::Shape`] for more slices than axes, [`TensorError::Value`] for step 0.
    slice(slices: &[Slice]);
}

impl Layout {
    /// The slices of the leading axes; axes without a slice are taken whole.
    ///
    /// # Errors
    /// [`TensorError::Shape`] for more slices than axes, [`TensorError::Value`] for step 0.
    pub fn slice(&self, slices: &[Slice]) -> Result<Self> {
        if slices.len() > self.rank() {
            return Err(TensorError::shape("slice", self.shape(), "at most one slice per axis"));
        }
        let mut out = self.clone();
        for (axis, slice) in slices.iter().enumerate() {
            if slice.step == 0 {
                let message = format!("step of axis {axis} must not be 0");
                return Err(TensorError::value("slice", message));
            }
            let (start, len) = slice.resolve(out.shape()[axis]).unwrap_or((0, 0));
            out = out.slice_axis(axis, start, len, slice.step)?;
        }
        Ok(out)
    }
}

impl<T: Scalar> Tensor<T> {
    /// The same elements in row-major order under another shape; copies only if the strides do not permit a view.
    ///
    /// # Errors
    /// [`TensorError::ShapeMismatch`] if the element counts differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self> {
        self.clone().into_shape(shape)
    }

    /// [`Tensor::reshape`] by value: keeps a unique buffer unique.
    pub(crate) fn into_shape(self, shape: &[usize]) -> Result<Self> {
        let (x, layout) = match self.layout().reshape(shape)? {
            Some(layout) => (self, layout),
            None => (
                crate::copy::to_contiguous(&self)?,
                Layout::contiguous("reshape", shape, size_of::<T>())?,
            ),
        };
        // SAFETY: a view of the tensor, or of its row-major copy, with as many elements.
        Ok(unsafe { x.with_layout(layout) })
    }

    /// [`Tensor::permute`] by value: keeps a unique buffer unique.
    pub(crate) fn into_permuted(self, axes: &[usize]) -> Result<Self> {
        let layout = self.layout().permute(axes)?;
        // SAFETY: a view of this tensor.
        Ok(unsafe { self.with_layout(layout) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_mean_what_they_mean_in_python() {
        let v = Tensor::from_vec((0..6).collect::<Vec<i32>>(), &[6]).unwrap();
        let s =
            |start, end, step| v.slice(&[Slice { start, end, step }]).unwrap().to_vec().unwrap();
        assert_eq!(s(None, None, -1), [5, 4, 3, 2, 1, 0]);
        assert_eq!(s(Some(-2), None, 1), [4, 5]);
        assert_eq!(s(Some(1), Some(-1), 2), [1, 3]);
        assert_eq!(s(Some(4), Some(0), -2), [4, 2]);
        assert_eq!(s(Some(100), Some(-100), -3), [5, 2]);
        assert_eq!(s(Some(3), Some(3), 1), []);
        assert_eq!(s(Some(4), Some(2), 1), []);
        assert_eq!(s(Some(isize::MIN), Some(isize::MAX), isize::MAX), [0]);
        assert!(v.slice(&[Slice { start: None, end: None, step: 0 }]).is_err());
        assert!(v.slice(&[Slice::ALL, Slice::ALL]).is_err());
    }
}
