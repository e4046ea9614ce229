//! Convolutions over one to three spatial axes, their adjoints and their weight derivatives.
//!
//! With stride s, dilation d, padding p and groups that share neither inputs nor outputs,
//!
//! ```text
//! y[n, o, t] = β[o] + Σ_{c, k} w[o, c, k] · x[n, c, t·s + k·d − p]       x = 0 outside
//! ```
//!
//! As a matrix product per image and group, `Y = W·X̃` with `X̃[(c, k), t]` the window under
//! position t. Three operations cover every convolution of a network:
//!
//! ```text
//! conv          Y = W·X̃          forward; cotangent of x of a transposed convolution
//! conv_adjoint  X̃ = Wᵀ·Y, summed over windows: cotangent of x; transposed convolution forward
//! conv_weight   W = Y·X̃ᵀ, summed over images: cotangent of the weight of both
//! ```
//!
//! `X̃` exists in tiles that stay in the second-level cache (`columns`), and not at all where it
//! is `x` itself: windows of one element with stride 1. Few channels per group have no matrix
//! product worth the name and are sums of shifted copies instead (`shifted`), as are those of small
//! planes.

mod columns;
mod geometry;
mod grid;
mod product;
mod shifted;
mod sums;
mod transpose;

use t4a_algebra::Float;

pub use geometry::ConvOptions;
pub use transpose::{conv_transpose, conv_transpose_weight, conv_transpose_x};

use crate::copy::{row_major, to_contiguous};
use crate::error::{Result, TensorError};
use crate::layout::Dims;
use crate::tensor::Tensor;
use geometry::Geometry;

/// `y[n, o, t] = β[o] + Σ_{c,k} w[o, c, k]·x[n, c, t·s + k·d − p]`.
///
/// Shapes: `x: [N, C, …]`, `weight: [O, C/groups, …]`, `bias: [O]`, one to three spatial axes;
/// `y: [N, O, …]` with `⌊(size + p + p′ − d·(k − 1) − 1)/s⌋ + 1` positions along an axis, where p
/// zeros lie before and p′ behind x.
///
/// Cost: 2·N·O·(C/groups)·positions·window operations; scratch below 1 MiB per thread for windows
/// of up to 1024 elements, then of 64 windows or 16 MiB, at least one window.
///
/// # Errors
/// [`TensorError::Shape`], [`TensorError::ShapeMismatch`], [`TensorError::Value`] for options
/// that do not fit, `OutOfMemory`.
pub fn conv<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    options: &ConvOptions,
) -> Result<Tensor<T>> {
    let g = Geometry::forward("conv", x.shape(), weight.shape(), options)?;
    check_bias("conv", bias, g.groups * g.o)?;
    forward(x, weight, bias, &g)
}

/// Cotangent of `x` of [`conv`] from that of `y`; `x_shape` is the shape of `x`.
///
/// # Errors
/// As [`conv`].
pub fn conv_x<T: Float>(
    x_shape: &[usize],
    weight: &Tensor<T>,
    dy: &Tensor<T>,
    options: &ConvOptions,
) -> Result<Tensor<T>> {
    let g = Geometry::forward("conv_x", x_shape, weight.shape(), options)?;
    check_output("conv_x", dy, &g)?;
    adjoint(weight, dy, None, &g)
}

/// Cotangent of the weight of [`conv`] from that of `y`; `weight_shape` is the shape of the weight.
///
/// # Errors
/// As [`conv`].
pub fn conv_weight<T: Float>(
    x: &Tensor<T>,
    weight_shape: &[usize],
    dy: &Tensor<T>,
    options: &ConvOptions,
) -> Result<Tensor<T>> {
    let g = Geometry::forward("conv_weight", x.shape(), weight_shape, options)?;
    check_output("conv_weight", dy, &g)?;
    weight(x, dy, &g)
}

fn check_bias<T: Float>(op: &'static str, bias: Option<&Tensor<T>>, channels: usize) -> Result<()> {
    match bias {
        Some(bias) if bias.shape() != [channels] => {
            Err(TensorError::shapes(op, bias.shape(), &[channels], "one bias per output channel"))
        }
        _ => Ok(()),
    }
}

fn check_output<T: Float>(op: &'static str, dy: &Tensor<T>, g: &Geometry) -> Result<()> {
    let want = g.y_shape();
    if dy.shape() == want.as_slice() {
        return Ok(());
    }
    Err(TensorError::shapes(op, dy.shape(), &want, "the shape of the result of the convolution"))
}

/// A value per channel written to every position, or zeros: what a sum starts from.
fn filled<T: Float>(shape: &Dims, bias: Option<&Tensor<T>>) -> Result<Tensor<T>> {
    let Some(bias) = bias else { return Tensor::zeros(shape) };
    let mut column: Dims = shape.clone();
    column[0] = 1;
    column[2..].fill(1);
    to_contiguous(&bias.reshape(&column)?.expand(shape)?)
}

fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let (x, weight) = (row_major(x)?, row_major(weight)?);
    if g.is_empty() {
        return filled(&g.y_shape(), bias);
    }
    if g.is_thin() || g.is_small(g.c) {
        return shifted::forward(&x, &weight, bias, g);
    }
    product::forward(&x, &weight, bias, g)
}

fn adjoint<T: Float>(
    weight: &Tensor<T>,
    y: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let (y, weight) = (row_major(y)?, row_major(weight)?);
    if g.is_empty() {
        return filled(&g.x_shape(), bias);
    }
    // Shifted copies of y have zeros around them, which no infinite weight may meet.
    let finite = || weight.as_slice().unwrap_or_default().iter().all(|w| w.is_finite());
    if (g.is_thin() || g.is_small(g.o)) && finite() {
        return shifted::adjoint(&weight, &y, bias, g);
    }
    product::adjoint(filled(&g.x_shape(), bias)?, &weight, &y, g)
}

fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let (x, y) = (row_major(x)?, row_major(y)?);
    if g.is_empty() {
        return Tensor::zeros(&g.w_shape());
    }
    if g.is_thin() || g.is_small_weight(sums::vector::<T>(), sums::CHANNELS) {
        return shifted::weight(&x, &y, g);
    }
    product::weight(&x, &y, g)
}

/// Result, cotangent of x and cotangent of the weight as matrix products, whatever the sizes.
#[cfg(test)]
pub(super) fn as_products<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    dy: &Tensor<T>,
    options: &ConvOptions,
) -> Result<[Tensor<T>; 3]> {
    let g = Geometry::forward("conv", x.shape(), weight.shape(), options)?;
    Ok([
        product::forward(x, weight, None, &g)?,
        product::adjoint(filled(&g.x_shape(), None)?, weight, dy, &g)?,
        product::weight(x, dy, &g)?,
    ])
}
