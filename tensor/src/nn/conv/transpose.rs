//! Transposed convolutions, the adjoints of convolutions. A weight `[C_in, C_out/groups, …]` is that of the convolution
//! from `C_out` to `C_in` channels.

use t4a_algebra::Float;

use super::geometry::{ConvOptions, Geometry};
use super::{adjoint, check_bias, forward, weight};
use crate::error::{Result, TensorError};
use crate::tensor::Tensor;

/// `y[n, c, s] = β[c] + Σ_{o,k,t: t·s + k·d − p = s} w[o, c, k]·x[n, o, t]`.
///
/// Shapes: `x: [N, C, …]`, `weight: [C, O/groups, …]`, `bias: [O]`; `y: [N, O, …]` with
/// `(size − 1)·s + d·(k − 1) + 1 + extra − p − p′` positions along an axis.
///
/// Cost: that of the convolution from `y` to `x`.
///
/// # Errors
/// As [`conv`](super::conv).
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::nn::conv::{ConvOptions, conv_transpose};
///
/// // Each element of x adds a copy of the weight.
/// let x = Tensor::from_vec(vec![1.0f32, 10.0], &[1, 1, 2])?;
/// let weight = Tensor::from_vec(vec![1.0, 2.0], &[1, 1, 2])?;
/// let y = conv_transpose(&x, &weight, None, &[0], &ConvOptions::new(1))?;
/// assert_eq!(y.to_vec()?, [1.0, 12.0, 20.0]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn conv_transpose<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    extra: &[usize],
    options: &ConvOptions,
) -> Result<Tensor<T>> {
    let g = Geometry::transposed("conv_transpose", x.shape(), weight.shape(), extra, options)?;
    check_bias("conv_transpose", bias, g.groups * g.c)?;
    adjoint(weight, x, bias, &g)
}

/// Cotangent of `x` of [`conv_transpose`] from that of `y`; `x_shape` is the shape of `x`.
///
/// # Errors
/// As [`conv`](super::conv).
pub fn conv_transpose_x<T: Float>(
    x_shape: &[usize],
    weight: &Tensor<T>,
    dy: &Tensor<T>,
    extra: &[usize],
    options: &ConvOptions,
) -> Result<Tensor<T>> {
    let op = "conv_transpose_x";
    let g = Geometry::transposed(op, x_shape, weight.shape(), extra, options)?;
    check(op, dy, &g)?;
    forward(dy, weight, None, &g)
}

/// Cotangent of the weight of [`conv_transpose`] from that of `y`.
///
/// # Errors
/// As [`conv`](super::conv).
pub fn conv_transpose_weight<T: Float>(
    x: &Tensor<T>,
    weight_shape: &[usize],
    dy: &Tensor<T>,
    extra: &[usize],
    options: &ConvOptions,
) -> Result<Tensor<T>> {
    let op = "conv_transpose_weight";
    let g = Geometry::transposed(op, x.shape(), weight_shape, extra, options)?;
    check(op, dy, &g)?;
    weight(dy, x, &g)
}

fn check<T: Float>(op: &'static str, dy: &Tensor<T>, g: &Geometry) -> Result<()> {
    let want = g.x_shape();
    if dy.shape() == want.as_slice() {
        return Ok(());
    }
    let required = "the shape of the result of the transposed convolution";
    Err(TensorError::shapes(op, dy.shape(), &want, required))
}
