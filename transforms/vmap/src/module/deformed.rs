//! Deformable convolution: batching as in [`conv`](super::conv), where offsets and masks have groups, too.

use burn_backend::ops::{DeformConv2dBackward, DeformConvOptions, FloatTensorOps};
use burn_backend::tensor::{Float, FloatTensor};
use burn_backend::{Backend, Shape, TensorMetadata};

use super::fold::{fold, interleave, separate, unfold};
use crate::backend::Vmap;
use crate::movement::{self, reshape};
use crate::rows::F;
use crate::tensor::{VmapTensor, common};

fn times(options: DeformConvOptions<2>, size: usize) -> DeformConvOptions<2> {
    DeformConvOptions {
        weight_groups: options.weight_groups * size,
        offset_groups: options.offset_groups * size,
        ..options
    }
}

fn size_of<B: Backend>(x: &Option<F<B>>) -> Option<usize> {
    x.as_ref().and_then(VmapTensor::size)
}

#[track_caller]
pub(super) fn forward<B: Backend>(
    x: F<B>,
    offset: F<B>,
    weight: F<B>,
    mask: Option<F<B>>,
    bias: Option<F<B>>,
    options: DeformConvOptions<2>,
) -> F<B> {
    let moving = [x.size(), offset.size(), size_of::<B>(&mask)];
    let size =
        common("deform_conv2d", moving.into_iter().chain([weight.size(), size_of::<B>(&bias)]));
    let y = match weight.size() {
        None => {
            let size = common("deform_conv2d", moving);
            let mask = mask.map(|mask| fold::<B, Float>(mask, size));
            let (x, offset) = (fold::<B, Float>(x, size), fold::<B, Float>(offset, size));
            let y = B::deform_conv2d(x, offset, weight.into_inner().0, mask, None, options);
            unfold::<B, Float>(y, size)
        }
        Some(size) => {
            let mask = mask.map(|mask| interleave::<B>(mask, size));
            let (x, offset) = (interleave::<B>(x, size), interleave::<B>(offset, size));
            let weight = fold::<B, Float>(weight, Some(size));
            separate::<B>(
                B::deform_conv2d(x, offset, weight, mask, None, times(options, size)),
                size,
            )
        }
    };
    debug_assert!(size.is_some() || !y.is_batched());
    match bias {
        Some(bias) => {
            let shape = Shape::from([1, bias.shape()[0], 1, 1]);
            Vmap::<B>::float_add(y, reshape::<B, Float>(bias, shape))
        }
        None => y,
    }
}

/// The weights have one cotangent per example, so all cases use the rule of batched weights.
#[track_caller]
pub(super) fn backward<B: Backend>(
    x: F<B>,
    offset: F<B>,
    weight: F<B>,
    mask: Option<F<B>>,
    bias: Option<F<B>>,
    grad: F<B>,
    options: DeformConvOptions<2>,
) -> DeformConv2dBackward<Vmap<B>> {
    let sizes = [x.size(), offset.size(), weight.size(), size_of::<B>(&mask), grad.size()];
    let Some(size) = common("deform_conv2d_backward", sizes) else {
        let one = |x: F<B>| x.into_inner().0;
        let bias = bias.map(|bias| {
            B::float_zeros(bias.shape(), &B::float_device(bias.inner()), bias.dtype().into())
        });
        let all = B::deform_conv2d_backward(
            one(x),
            one(offset),
            one(weight),
            mask.map(one),
            bias,
            one(grad),
            options,
        );
        return DeformConv2dBackward {
            x_grad: VmapTensor::shared(all.x_grad),
            offset_grad: VmapTensor::shared(all.offset_grad),
            weight_grad: VmapTensor::shared(all.weight_grad),
            mask_grad: all.mask_grad.map(VmapTensor::shared),
            bias_grad: all.bias_grad.map(VmapTensor::shared),
        };
    };
    let all = |x: F<B>| -> FloatTensor<B> { interleave::<B>(x, size) };
    // The cotangent of the bias is a sum that has no group structure.
    let bias_grad = bias.map(|bias| {
        let rows = movement::permute::<B, Float>(grad.clone(), &[1, 0, 2, 3]);
        let n = rows.shape().num_elements() / bias.shape()[0].max(1);
        let rows = reshape::<B, Float>(rows, Shape::from([bias.shape()[0], n]));
        reshape::<B, Float>(Vmap::<B>::float_sum_dim(rows, 1), bias.shape())
    });
    let found = B::deform_conv2d_backward(
        all(x),
        all(offset),
        fold::<B, Float>(weight, Some(size)),
        mask.map(all),
        None,
        all(grad),
        times(options, size),
    );
    DeformConv2dBackward {
        x_grad: separate::<B>(found.x_grad, size),
        offset_grad: separate::<B>(found.offset_grad, size),
        weight_grad: unfold::<B, Float>(found.weight_grad, Some(size)),
        mask_grad: found.mask_grad.map(|x| separate::<B>(x, size)),
        bias_grad,
    }
}
