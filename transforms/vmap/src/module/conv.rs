//! Convolutions and their derivatives.
//!
//! Batched inputs are additional samples. Batched weights are additional groups: the channels of example i are
//! convolved with the weights of example i. Batched weights on a shared input are additional output channels. A bias
//! that the convolution does not support is added afterwards.

use burn_backend::ops::{ConvOptions, ConvTransposeOptions};
use burn_backend::tensor::{Float, FloatTensor};
use burn_backend::{Backend, Shape, TensorMetadata};

use super::fold::{blank, fold, folded, interleave, interleaved, separate, unfold};
use crate::backend::Vmap;
use crate::movement;
use crate::rows::F;
use crate::tensor::{VmapTensor, common};
use burn_backend::ops::FloatTensorOps;

/// Options of a convolution, forward or transposed.
pub(super) trait GroupedOptions: Clone {
    /// Options with the number of groups multiplied by `size`.
    fn times(&self, size: usize) -> Self;
    /// Number of groups.
    fn groups(&self) -> usize;
}

impl<const N: usize> GroupedOptions for ConvOptions<N> {
    fn times(&self, size: usize) -> Self {
        Self { groups: self.groups * size, ..self.clone() }
    }
    fn groups(&self) -> usize {
        self.groups
    }
}

impl<const N: usize> GroupedOptions for ConvTransposeOptions<N> {
    fn times(&self, size: usize) -> Self {
        Self { groups: self.groups * size, ..self.clone() }
    }
    fn groups(&self) -> usize {
        self.groups
    }
}

type ConvMethod<B, O> =
    fn(FloatTensor<B>, FloatTensor<B>, Option<FloatTensor<B>>, O) -> FloatTensor<B>;
type Three<B, O> = fn(FloatTensor<B>, FloatTensor<B>, FloatTensor<B>, O) -> FloatTensor<B>;

/// `y + b`, with `b` along the channel axis.
fn biased<B: Backend>(y: F<B>, bias: Option<F<B>>) -> F<B> {
    let Some(bias) = bias else { return y };
    let mut shape = vec![1; y.rank()];
    shape[1] = bias.shape()[0];
    Vmap::<B>::float_add(y, movement::reshape::<B, Float>(bias, Shape::from(shape)))
}

/// Batched weights on a shared input: the output channels `[o, …]` of all examples in one result.
fn wide<B: Backend, O: GroupedOptions>(
    x: F<B>,
    weight: F<B>,
    options: O,
    size: usize,
    conv: ConvMethod<B, O>,
) -> F<B> {
    let (groups, shape) = (options.groups(), weight.shape());
    let (out, rest) = (shape[0], shape[1..].iter().product::<usize>());
    // Output channels stay within their group.
    let parted =
        B::float_reshape(weight.into_inner().0, Shape::from([size, groups, out / groups, rest]));
    let mut all = shape.to_vec();
    all[0] = size * out;
    let weight = B::float_reshape(B::float_swap_dims(parted, 0, 1), Shape::from(all));
    let y = conv(x.into_inner().0, weight, None, options);
    let shape = y.shape();
    let (n, space) = (shape[0], shape[2..].iter().product::<usize>());
    let y = B::float_reshape(y, Shape::from([n, groups, size, out / groups, space]));
    let y = B::float_permute(y, &[2, 0, 1, 3, 4]);
    let sizes = [size, n, out].into_iter().chain(shape[2..].iter().copied());
    VmapTensor::batched(B::float_reshape(y, sizes.collect()))
}

#[track_caller]
pub(super) fn forward<B: Backend, const N: usize>(
    x: F<B>,
    weight: F<B>,
    bias: Option<F<B>>,
    options: ConvOptions<N>,
    conv: ConvMethod<B, ConvOptions<N>>,
) -> F<B> {
    match weight.size() {
        Some(size) if !x.is_batched() => {
            biased::<B>(wide::<B, _>(x, weight, options, size, conv), bias)
        }
        _ => any::<B, _>(x, weight, bias, options, conv),
    }
}

/// Forward or transposed convolution: in both, the first axis of the weights contains the groups.
#[track_caller]
pub(super) fn any<B: Backend, O: GroupedOptions>(
    x: F<B>,
    weight: F<B>,
    bias: Option<F<B>>,
    options: O,
    conv: ConvMethod<B, O>,
) -> F<B> {
    let bias_size = bias.as_ref().and_then(VmapTensor::size);
    common("conv", [x.size(), weight.size(), bias_size]);
    match weight.size() {
        None => {
            let size = x.size();
            let (own, behind) = if bias_size.is_none() { (bias, None) } else { (None, bias) };
            let own = own.map(|bias| bias.into_inner().0);
            let y = conv(fold::<B, Float>(x, size), weight.into_inner().0, own, options);
            biased::<B>(unfold::<B, Float>(y, size), behind)
        }
        Some(size) => {
            let groups = options.times(size);
            let weight = fold::<B, Float>(weight, Some(size));
            let y = conv(interleave::<B>(x, size), weight, None, groups);
            biased::<B>(separate::<B>(y, size), bias)
        }
    }
}

/// Cotangent of the input; of the input itself only the shape is used.
#[track_caller]
pub(super) fn x_backward<B: Backend, const N: usize>(
    x: F<B>,
    weight: F<B>,
    grad: F<B>,
    options: ConvOptions<N>,
    rule: Three<B, ConvOptions<N>>,
) -> F<B> {
    common("conv_x_backward", [weight.size(), grad.size()]);
    let shape = x.shape();
    match weight.size() {
        None => {
            let size = grad.size();
            let like = blank::<B>(&x, folded(&shape, size));
            let grad = fold::<B, Float>(grad, size);
            unfold::<B, Float>(rule(like, weight.into_inner().0, grad, options), size)
        }
        Some(size) => {
            let like = blank::<B>(&x, interleaved(&shape, size));
            let weight = fold::<B, Float>(weight, Some(size));
            let grad = interleave::<B>(grad, size);
            separate::<B>(rule(like, weight, grad, options.times(size)), size)
        }
    }
}

/// Cotangent of the input of a transposed convolution.
#[track_caller]
pub(super) fn transposed_x_backward<B: Backend, const N: usize>(
    weight: F<B>,
    grad: F<B>,
    options: ConvTransposeOptions<N>,
    rule: fn(FloatTensor<B>, FloatTensor<B>, ConvTransposeOptions<N>) -> FloatTensor<B>,
) -> F<B> {
    common("conv_transpose_x_backward", [weight.size(), grad.size()]);
    match weight.size() {
        None => {
            let size = grad.size();
            let grad = fold::<B, Float>(grad, size);
            unfold::<B, Float>(rule(weight.into_inner().0, grad, options), size)
        }
        Some(size) => {
            let weight = fold::<B, Float>(weight, Some(size));
            let grad = interleave::<B>(grad, size);
            separate::<B>(rule(weight, grad, options.times(size)), size)
        }
    }
}

/// Cotangent of the weights per example, with one group per example.
#[track_caller]
pub(super) fn weight_backward<B: Backend, O: GroupedOptions>(
    x: F<B>,
    weight: F<B>,
    grad: F<B>,
    options: O,
    rule: Three<B, O>,
) -> F<B> {
    let shape = weight.shape();
    let Some(size) = common("conv_weight_backward", [x.size(), grad.size()]) else {
        let like = blank::<B>(&weight, shape);
        let (x, grad) = (x.into_inner().0, grad.into_inner().0);
        return VmapTensor::shared(rule(x, like, grad, options));
    };
    let like = blank::<B>(&weight, folded(&shape, Some(size)));
    let (x, grad) = (interleave::<B>(x, size), interleave::<B>(grad, size));
    unfold::<B, Float>(rule(x, like, grad, options.times(size)), Some(size))
}

/// Cotangent of the bias per example.
pub(super) fn bias_backward<B: Backend>(
    x: F<B>,
    bias: F<B>,
    grad: F<B>,
    rule: fn(FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
) -> F<B> {
    let shape = grad.shape();
    let Some(size) = grad.size() else {
        let (x, bias) = (blank::<B>(&x, x.shape()), blank::<B>(&bias, bias.shape()));
        return VmapTensor::shared(rule(x, bias, grad.into_inner().0));
    };
    let space = shape[2..].iter().product();
    let grad =
        B::float_reshape(grad.into_inner().0, Shape::from([size, shape[0], shape[1], space]));
    let sum = B::float_sum_dim(B::float_sum_dim(grad, 3), 1);
    VmapTensor::batched(B::float_reshape(sum, Shape::from([size, shape[1]])))
}
