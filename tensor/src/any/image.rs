//! Operations on images of erased dtype, computed in the accumulator of the dtype.

use super::AnyTensor;
use super::elementwise::{same_dtype, unsupported};
use super::promote::{computed_in, narrow, wide};
use crate::error::Result;
use crate::nn::deform::{self, Deform, DeformOptions};
use crate::nn::grid_sample::{self, GridSampleOptions};
use crate::nn::resample::{self, ResampleOptions};

/// Errors of all of them: `Shape`, `ShapeMismatch`, `DTypeMismatch`, `DTypeUnsupported`,
/// `SizeOverflow`, `OutOfMemory`.
impl AnyTensor {
    /// See [`resample::resample`].
    pub fn resample(&self, size: [usize; 2], options: &ResampleOptions) -> Result<Self> {
        computed_in!("resample", self.dtype(), T => {
            narrow(resample::resample(&wide::<T>(self)?, size, options)?, self.dtype())
        })
    }

    /// See [`resample::resample_vjp`]; `self` is the cotangent of the result.
    pub fn resample_vjp(&self, x: &[usize], options: &ResampleOptions) -> Result<Self> {
        computed_in!("resample_vjp", self.dtype(), T => {
            narrow(resample::resample_vjp(x, &wide::<T>(self)?, options)?, self.dtype())
        })
    }

    /// See [`grid_sample::grid_sample`].
    pub fn grid_sample(&self, grid: &Self, options: &GridSampleOptions) -> Result<Self> {
        same_dtype("grid_sample", self, grid)?;
        computed_in!("grid_sample", self.dtype(), T => {
            let (x, grid) = (wide::<T>(self)?, wide::<T>(grid)?);
            narrow(grid_sample::grid_sample(&x, &grid, options)?, self.dtype())
        })
    }

    /// See [`deform::deform_conv`]; `self` is `x`.
    pub fn deform_conv(
        &self,
        [offset, weight]: [&Self; 2],
        mask: Option<&Self>,
        bias: Option<&Self>,
        options: &DeformOptions,
    ) -> Result<Self> {
        let op = "deform_conv";
        for other in [Some(offset), Some(weight), mask, bias].into_iter().flatten() {
            same_dtype(op, self, other)?;
        }
        computed_in!(op, self.dtype(), T => {
            let (x, offset, weight) = (wide::<T>(self)?, wide::<T>(offset)?, wide::<T>(weight)?);
            let (mask, bias) = (mask.map(wide::<T>).transpose()?, bias.map(wide::<T>).transpose()?);
            let mask = mask.as_ref();
            let operands = Deform { x: &x, offset: &offset, weight: &weight, mask };
            narrow(deform::deform_conv(&operands, bias.as_ref(), options)?, self.dtype())
        })
    }

    /// Cotangents of `x`, offset and weight, and of the mask if there is one; see
    /// [`deform::deform_conv_vjp`]. `self` is `x`.
    pub fn deform_conv_vjp(
        &self,
        [offset, weight, dy]: [&Self; 3],
        mask: Option<&Self>,
        options: &DeformOptions,
    ) -> Result<([Self; 3], Option<Self>)> {
        let (op, dtype) = ("deform_conv_vjp", self.dtype());
        for other in [Some(offset), Some(weight), Some(dy), mask].into_iter().flatten() {
            same_dtype(op, self, other)?;
        }
        computed_in!(op, dtype, T => {
            let (x, offset, weight) = (wide::<T>(self)?, wide::<T>(offset)?, wide::<T>(weight)?);
            let mask = mask.map(wide::<T>).transpose()?;
            let mask = mask.as_ref();
            let operands = Deform { x: &x, offset: &offset, weight: &weight, mask };
            let d = deform::deform_conv_vjp(&operands, &wide::<T>(dy)?, options)?;
            let mask = d.mask.map(|mask| narrow(mask, dtype)).transpose()?;
            Ok(([narrow(d.x, dtype)?, narrow(d.offset, dtype)?, narrow(d.weight, dtype)?], mask))
        })
    }
}
