//! Convolutions over one to three spatial axes, their adjoints and their weight derivatives.
//!
//! With stride s, dilation d, padding p and groups with disjoint inputs and outputs,
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
//! `X̃` is computed in tiles that fit in the L2 cache (`columns`). It is not needed for windows of one element with
//! stride 1, where it equals `x`, and for sums of shifted copies (`shifted`, `weights`, `outer`), which are used for few
//! channels per group, where a matrix product is inefficient, for small planes, and with 512-bit registers for all
//! planes that are not mostly padding.

mod columns;
mod geometry;
mod grid;
mod outer;
mod parts;
mod product;
mod shifted;
mod strips;
mod sums;
mod transpose;
mod weights;

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
/// `y: [N, O, …]` with `⌊(size + p + p′ − d·(k − 1) − 1)/s⌋ + 1` positions along an axis, where x is padded with p
/// zeros before and p′ after.
/// Cost: 2·N·O·(C/groups)·positions·window operations; scratch below 1 MiB per thread for windows of up to 1024
/// elements, otherwise for 64 windows or 16 MiB, at least one window.
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

/// A value per channel written to every position, or zeros: initial values of a sum.
fn filled<T: Float>(shape: &Dims, bias: Option<&Tensor<T>>) -> Result<Tensor<T>> {
    let Some(bias) = bias else { return Tensor::zeros(shape) };
    let mut column: Dims = shape.clone();
    column[0] = 1;
    column[2..].fill(1);
    to_contiguous(&bias.reshape(&column)?.expand(shape)?)
}

/// True if sums of shifted copies are faster than a product: with as many registers as [`sums::WIDE`] channels need,
/// for planes that are not mostly padding (bench `nn`, rows `conv`).
fn is_direct<T: Float>(g: &Geometry, most: usize) -> bool {
    const MOST_BYTES: usize = 1 << 20;
    // Computed elements of a plane, or of the last two axes.
    let lines = if g.y[0] == 1 { g.y[1] } else { g.on_grid(1) };
    let useful = 2 * lines * (g.on_grid(2) - g.shared()) <= 3 * g.y[1] * g.y[2];
    let wide = most == sums::WIDE && g.o >= sums::WIDE;
    wide && useful && !g.is_pointwise() && shifted::bytes::<T>(g) <= MOST_BYTES
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
    let most = sums::most();
    if g.is_thin() || g.is_small(g.c) || is_direct::<T>(g, most) {
        return shifted::forward(&x, &weight, bias, g, most);
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
    // Shifted copies of y are surrounded by zeros, whose product with an infinite weight is NaN.
    let finite = || weight.as_slice().unwrap_or_default().iter().all(|w| w.is_finite());
    let (small, back, most) = (g.is_thin() || g.is_small(g.o), g.reversed(), sums::most());
    match back.filter(|back| small || is_direct::<T>(back, most)) {
        Some(back) if finite() => return shifted::reversed(&weight, &y, bias, &back, most),
        None if small && finite() => return shifted::adjoint(&weight, &y, bias, g),
        _ => {}
    }
    product::adjoint(filled(&g.x_shape(), bias)?, &weight, &y, g)
}

fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let (x, y) = (row_major(x)?, row_major(y)?);
    if g.is_empty() {
        return Tensor::zeros(&g.w_shape());
    }
    if g.is_thin() {
        return weights::of_few_channels(&x, &y, g);
    }
    let small = g.is_small(g.c) && g.c.saturating_mul(g.o) <= 1024;
    let long = g.n.saturating_mul(g.planes()[2]) >= 256 && g.c * g.planes()[1] >= 32;
    if long && g.o >= sums::CHANNELS && (small || is_direct::<T>(g, sums::most())) {
        let w = weights::of_runs(&x, &y, g)?;
        if !w.as_slice().unwrap_or_default().iter().any(|w| w.is_nan()) {
            return Ok(w);
        }
    } else if small && outer::suits(g) {
        return outer::of_positions(&x, &y, g);
    } else if small && g.has_whole_lines(sums::vector::<T>(), sums::CHANNELS) {
        return weights::of_lines(&x, &y, g);
    }
    product::weight(&x, &y, g)
}

/// Result, cotangent of x (stride 1) and, twice, cotangent of the weight as sums of shifted copies, for all sizes.
#[cfg(test)]
pub(super) fn as_sums<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    dy: &Tensor<T>,
    options: &ConvOptions,
    most: usize,
) -> Result<[Option<Tensor<T>>; 4]> {
    let g = Geometry::forward("conv", x.shape(), weight.shape(), options)?;
    let back = g.reversed();
    Ok([
        Some(shifted::forward(x, weight, None, &g, most)?),
        back.map(|back| shifted::reversed(weight, dy, None, &back, most)).transpose()?,
        Some(weights::of_runs(x, dy, &g)?),
        Some(outer::of_positions(x, dy, &g)?),
    ])
}

/// Result, cotangent of x and cotangent of the weight as matrix products, for all sizes.
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
