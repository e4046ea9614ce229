//! Conversion of Burn's options for image operations to the engine's types.

use burn_backend::ops::{
    DeformConvOptions, GridSampleOptions, GridSamplePaddingMode, InterpolateMode,
    InterpolateOptions,
};
use t4a_tensor::nn::deform::DeformOptions;
use t4a_tensor::nn::grid_sample::{GridSampleOptions as Grid, Padding, Sampling};
use t4a_tensor::nn::resample::{Filter, ResampleOptions};
use t4a_tensor::{Result, TensorError};

pub(crate) fn resampled(options: InterpolateOptions) -> ResampleOptions {
    let filter = match options.mode {
        InterpolateMode::Nearest => Filter::Nearest,
        #[cfg(burn_line = "0.22")]
        InterpolateMode::NearestExact => Filter::NearestExact,
        InterpolateMode::Bilinear => Filter::Linear,
        InterpolateMode::Bicubic => Filter::Cubic,
        InterpolateMode::Lanczos3 => Filter::Lanczos3,
    };
    ResampleOptions { filter, align_corners: options.align_corners }
}

pub(crate) fn deformed(options: DeformConvOptions<2>) -> DeformOptions {
    let DeformConvOptions { stride, padding, dilation, weight_groups, offset_groups } = options;
    DeformOptions { stride, padding, dilation, weight_groups, offset_groups }
}

/// # Errors
/// [`TensorError::Value`] for an interpolation mode that `grid_sample` does not support.
pub(crate) fn sampled(options: GridSampleOptions) -> Result<Grid> {
    let sampling = match options.mode {
        #[cfg(burn_line = "0.21")]
        InterpolateMode::Nearest => Sampling::Nearest,
        #[cfg(burn_line = "0.22")]
        InterpolateMode::Nearest | InterpolateMode::NearestExact => Sampling::NearestEven,
        InterpolateMode::Bilinear => Sampling::Linear,
        InterpolateMode::Bicubic => Sampling::Cubic,
        mode @ InterpolateMode::Lanczos3 => {
            let message = format!("{mode:?} does not sample at points of a grid");
            return Err(TensorError::value("grid_sample", message));
        }
    };
    let padding = match options.padding_mode {
        GridSamplePaddingMode::Zeros => Padding::Zeros,
        GridSamplePaddingMode::Border => Padding::Border,
        GridSamplePaddingMode::Reflection => Padding::Reflection,
    };
    Ok(Grid { sampling, padding, align_corners: options.align_corners })
}
