//! Neural-network operations: convolution, pooling, interpolation, attention, Fourier transforms.

use burn_backend::ops::*;
use burn_backend::{IntDType, TensorMetadata};
use t4a_tensor::nn::attention::AttentionOptions;
use t4a_tensor::nn::conv::ConvOptions as Windows;
use t4a_tensor::nn::pool::{Overhang, PoolOptions};
use t4a_tensor::{AnyTensor, Result, TensorError};

use super::BurnT4a;
use super::image::{deformed, resampled};
use super::primitive::{T4aTensor, with_indices, wrap};
use super::saved::{product, product_key};
use crate::boundary::accept;

/// Defines forward and backward methods of convolutions over `$n` spatial axes.
macro_rules! convolutions {
    ($n:literal: $forward:ident, $x:ident, $weight:ident, $bias:ident;
     $transposed:ident, $transposed_x:ident, $transposed_weight:ident, $transposed_bias:ident) => {
        fn $forward(
            x: T4aTensor,
            weight: T4aTensor,
            bias: Option<T4aTensor>,
            options: ConvOptions<$n>,
        ) -> T4aTensor {
            let what = || format!("conv {options:?}");
            let key = product_key(what, operands(&x, &weight, bias.as_ref()));
            let bias = bias.as_ref().map(T4aTensor::any);
            product(key, || x.then(|x| x.conv(weight.any(), bias, &windows(options))))
        }

        fn $x(
            x: T4aTensor,
            weight: T4aTensor,
            output_grad: T4aTensor,
            options: ConvOptions<$n>,
        ) -> T4aTensor {
            output_grad.then(|dy| dy.conv_x(&x.shape(), weight.any(), &windows(options)))
        }

        fn $weight(
            x: T4aTensor,
            weight: T4aTensor,
            output_grad: T4aTensor,
            options: ConvOptions<$n>,
        ) -> T4aTensor {
            output_grad.then(|dy| dy.conv_weight(x.any(), &weight.shape(), &windows(options)))
        }

        fn $bias(_x: T4aTensor, _bias: T4aTensor, output_grad: T4aTensor) -> T4aTensor {
            output_grad.then(|dy| per_channel(&dy))
        }

        fn $transposed(
            x: T4aTensor,
            weight: T4aTensor,
            bias: Option<T4aTensor>,
            options: ConvTransposeOptions<$n>,
        ) -> T4aTensor {
            let (extra, options) = transposed(options);
            let what = || format!("conv_transpose {extra:?} {options:?}");
            let key = product_key(what, operands(&x, &weight, bias.as_ref()));
            let bias = bias.as_ref().map(T4aTensor::any);
            product(key, || x.then(|x| x.conv_transpose(weight.any(), bias, &extra, &options)))
        }

        fn $transposed_x(
            weight: T4aTensor,
            output_grad: T4aTensor,
            options: ConvTransposeOptions<$n>,
        ) -> T4aTensor {
            let (extra, options) = transposed(options);
            output_grad.then(|dy| {
                let x = unstretched(dy.shape(), weight.any().shape(), &extra, &options)?;
                dy.conv_transpose_x(&x, weight.any(), &extra, &options)
            })
        }

        fn $transposed_weight(
            x: T4aTensor,
            weight: T4aTensor,
            output_grad: T4aTensor,
            options: ConvTransposeOptions<$n>,
        ) -> T4aTensor {
            let (extra, options) = transposed(options);
            output_grad
                .then(|dy| dy.conv_transpose_weight(x.any(), &weight.shape(), &extra, &options))
        }

        fn $transposed_bias(_x: T4aTensor, _bias: T4aTensor, output_grad: T4aTensor) -> T4aTensor {
            output_grad.then(|dy| per_channel(&dy))
        }
    };
}

/// Operands of a product with an optional bias.
fn operands<'a>(
    x: &'a T4aTensor,
    weight: &'a T4aTensor,
    bias: Option<&'a T4aTensor>,
) -> impl Iterator<Item = &'a T4aTensor> {
    [x, weight].into_iter().chain(bias)
}

impl ModuleOps<BurnT4a> for BurnT4a {
    convolutions!(1: conv1d, conv1d_x_backward, conv1d_weight_backward, conv1d_bias_backward;
        conv_transpose1d, conv_transpose1d_x_backward, conv_transpose1d_weight_backward,
        conv_transpose1d_bias_backward);
    convolutions!(2: conv2d, conv2d_x_backward, conv2d_weight_backward, conv2d_bias_backward;
        conv_transpose2d, conv_transpose2d_x_backward, conv_transpose2d_weight_backward,
        conv_transpose2d_bias_backward);
    convolutions!(3: conv3d, conv3d_x_backward, conv3d_weight_backward, conv3d_bias_backward;
        conv_transpose3d, conv_transpose3d_x_backward, conv_transpose3d_weight_backward,
        conv_transpose3d_bias_backward);

    fn linear(x: T4aTensor, weight: T4aTensor, bias: Option<T4aTensor>) -> T4aTensor {
        let key = product_key(|| "linear".to_owned(), operands(&x, &weight, bias.as_ref()));
        product(key, || x.then(|x| x.linear(weight.any(), bias.map(T4aTensor::into_any))))
    }

    fn linear_weight_backward(x: T4aTensor, output_grad: T4aTensor) -> T4aTensor {
        output_grad.then(|dy| x.any().linear_weight(&dy))
    }

    fn linear_bias_backward(output_grad: T4aTensor) -> T4aTensor {
        output_grad.then(|dy| {
            let axes = dy.rank().saturating_sub(1);
            let sum = dy.sum(&(0..axes).collect::<Vec<_>>())?;
            sum.reshape(&dy.shape()[axes..])
        })
    }

    fn deform_conv2d(
        x: T4aTensor,
        offset: T4aTensor,
        weight: T4aTensor,
        mask: Option<T4aTensor>,
        bias: Option<T4aTensor>,
        options: DeformConvOptions<2>,
    ) -> T4aTensor {
        let (mask, bias) = (mask.as_ref().map(T4aTensor::any), bias.as_ref().map(T4aTensor::any));
        let operands = [offset.any(), weight.any()];
        x.then(|x| x.deform_conv(operands, mask, bias, &deformed(options)))
    }

    fn deform_conv2d_backward(
        x: T4aTensor,
        offset: T4aTensor,
        weight: T4aTensor,
        mask: Option<T4aTensor>,
        bias: Option<T4aTensor>,
        output_grad: T4aTensor,
        options: DeformConvOptions<2>,
    ) -> DeformConv2dBackward<BurnT4a> {
        let operands = [offset.any(), weight.any(), output_grad.any()];
        let mask = mask.as_ref().map(T4aTensor::any);
        let cotangents = x.any().deform_conv_vjp(operands, mask, &deformed(options));
        let ([x_grad, offset_grad, weight_grad], mask_grad) = accept(cotangents);
        let bias_grad = bias.map(|_| accept(per_channel(output_grad.any())));
        let own = |any: AnyTensor| wrap(Ok(any));
        DeformConv2dBackward {
            x_grad: own(x_grad),
            offset_grad: own(offset_grad),
            weight_grad: own(weight_grad),
            mask_grad: mask_grad.map(own),
            bias_grad: bias_grad.map(own),
        }
    }

    fn avg_pool1d(
        x: T4aTensor,
        kernel_size: usize,
        stride: usize,
        padding: usize,
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> T4aTensor {
        let options = line(kernel_size, stride, padding, 1, ceil_mode);
        x.then(|x| flat(&plane(&x)?.mean_pool(&options, count_include_pad)?))
    }

    fn avg_pool1d_backward(
        x: T4aTensor,
        grad: T4aTensor,
        kernel_size: usize,
        stride: usize,
        padding: usize,
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> T4aTensor {
        let options = line(kernel_size, stride, padding, 1, ceil_mode);
        grad.then(|dy| {
            let x = plane(x.any())?;
            flat(&plane(&dy)?.mean_pool_vjp(x.shape(), &options, count_include_pad)?)
        })
    }

    fn avg_pool2d(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> T4aTensor {
        let options = plane_windows(kernel_size, stride, padding, [1; 2], ceil_mode);
        x.then(|x| x.mean_pool(&options, count_include_pad))
    }

    fn avg_pool2d_backward(
        x: T4aTensor,
        grad: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> T4aTensor {
        let options = plane_windows(kernel_size, stride, padding, [1; 2], ceil_mode);
        grad.then(|dy| dy.mean_pool_vjp(&x.shape(), &options, count_include_pad))
    }

    fn adaptive_avg_pool1d(x: T4aTensor, output_size: usize) -> T4aTensor {
        x.then(|x| flat(&plane(&x)?.adaptive_mean_pool([1, output_size])?))
    }

    fn adaptive_avg_pool1d_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        grad.then(|dy| flat(&plane(&dy)?.adaptive_mean_pool_vjp(plane(x.any())?.shape())?))
    }

    fn adaptive_avg_pool2d(x: T4aTensor, output_size: [usize; 2]) -> T4aTensor {
        x.then(|x| x.adaptive_mean_pool(output_size))
    }

    fn adaptive_avg_pool2d_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        grad.then(|dy| dy.adaptive_mean_pool_vjp(&x.shape()))
    }

    #[cfg(burn_line = "0.22")]
    fn adaptive_avg_pool3d(x: T4aTensor, output_size: [usize; 3]) -> T4aTensor {
        x.then(|x| {
            let [planes, lines] = separated(x.shape(), output_size)?;
            let x = x.reshape(&planes)?.adaptive_mean_pool([output_size[1], output_size[2]])?;
            let [depth, rest] = [output_size[0], lines[3]];
            let y = x.reshape(&lines)?.adaptive_mean_pool([depth, rest])?;
            let [n, c] = [lines[0], lines[1]];
            y.reshape(&[n, c, depth, output_size[1], output_size[2]])
        })
    }

    #[cfg(burn_line = "0.22")]
    fn adaptive_avg_pool3d_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        grad.then(|dy| {
            let &[n, c, depth, height, width] = dy.shape() else {
                return Err(TensorError::shape("adaptive_avg_pool3d", dy.shape(), VOLUME));
            };
            let x = x.any().shape();
            let [planes, lines] = separated(x, [depth, height, width])?;
            let dy = dy.reshape(&[n, c, depth, lines[3]])?.adaptive_mean_pool_vjp(&lines)?;
            let pooled = [planes[0], planes[1], height, width];
            dy.reshape(&pooled)?.adaptive_mean_pool_vjp(&planes)?.reshape(x)
        })
    }

    fn max_pool1d(
        x: T4aTensor,
        kernel_size: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
        ceil_mode: bool,
    ) -> T4aTensor {
        let options = line(kernel_size, stride, padding, dilation, ceil_mode);
        x.then(|x| flat(&plane(&x)?.max_pool(&options)?))
    }

    fn max_pool1d_with_indices_backward(
        x: T4aTensor,
        _kernel_size: usize,
        _stride: usize,
        _padding: usize,
        _dilation: usize,
        _ceil_mode: bool,
        output_grad: T4aTensor,
        indices: T4aTensor,
    ) -> MaxPool1dBackward<BurnT4a> {
        MaxPool1dBackward::new(output_grad.then(|dy| {
            let (x, at) = (plane(x.any())?, plane(indices.any())?);
            flat(&plane(&dy)?.max_pool_vjp(x.shape(), &at)?)
        }))
    }

    fn max_pool2d(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> T4aTensor {
        let options = plane_windows(kernel_size, stride, padding, dilation, ceil_mode);
        x.then(|x| x.max_pool(&options))
    }

    fn max_pool2d_with_indices(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        #[cfg(burn_line = "0.22")] indices_dtype: IntDType,
    ) -> MaxPool2dWithIndices<BurnT4a> {
        let options = plane_windows(kernel_size, stride, padding, dilation, ceil_mode);
        let pair = x.any().max_pool_with_indices(&options);
        #[cfg(burn_line = "0.21")]
        let indices_dtype = IntDType::I64;
        let (output, indices) = with_indices(pair, indices_dtype);
        MaxPool2dWithIndices::new(output, indices)
    }

    fn max_pool2d_with_indices_backward(
        x: T4aTensor,
        _kernel_size: [usize; 2],
        _stride: [usize; 2],
        _padding: [usize; 2],
        _dilation: [usize; 2],
        _ceil_mode: bool,
        output_grad: T4aTensor,
        indices: T4aTensor,
    ) -> MaxPool2dBackward<BurnT4a> {
        let dx = output_grad.then(|dy| dy.max_pool_vjp(&x.shape(), indices.any()));
        MaxPool2dBackward::new(dx)
    }

    fn interpolate(
        x: T4aTensor,
        output_size: [usize; 2],
        options: InterpolateOptions,
    ) -> T4aTensor {
        x.then(|x| x.resample(output_size, &resampled(options)))
    }

    fn interpolate_backward(
        x: T4aTensor,
        grad: T4aTensor,
        output_size: [usize; 2],
        options: InterpolateOptions,
    ) -> T4aTensor {
        grad.then(|dy| match dy.shape() {
            [_, _, size @ ..] if *size == output_size => {
                dy.resample_vjp(&x.shape(), &resampled(options))
            }
            shape => {
                let required = "the size of the result";
                Err(TensorError::shapes("resample_vjp", shape, &output_size, required))
            }
        })
    }

    fn attention(
        query: T4aTensor,
        key: T4aTensor,
        value: T4aTensor,
        mask: Option<T4aTensor>,
        attn_bias: Option<T4aTensor>,
        options: AttentionModuleOptions,
    ) -> T4aTensor {
        let options = scores(options);
        let (mask, bias) = (mask.as_ref().map(T4aTensor::any), attn_bias.as_ref());
        query
            .then(|q| q.attention(key.any(), value.any(), mask, bias.map(T4aTensor::any), &options))
    }

    fn layer_norm(
        tensor: T4aTensor,
        gamma: T4aTensor,
        beta: Option<T4aTensor>,
        epsilon: f64,
    ) -> T4aTensor {
        tensor.then(|x| x.layer_norm(gamma.any(), beta.as_ref().map(T4aTensor::any), epsilon))
    }

    #[cfg(burn_line = "0.21")]
    fn rfft(signal: T4aTensor, dim: usize, n: Option<usize>) -> (T4aTensor, T4aTensor) {
        rfft(signal, dim, n)
    }

    #[cfg(burn_line = "0.21")]
    fn irfft(
        spectrum_re: T4aTensor,
        spectrum_im: T4aTensor,
        dim: usize,
        n: Option<usize>,
    ) -> T4aTensor {
        irfft(spectrum_re, spectrum_im, dim, n)
    }
}

/// Converts Burn's attention options to the engine's.
pub(crate) fn scores(options: AttentionModuleOptions) -> AttentionOptions {
    let AttentionModuleOptions { scale, softcap, is_causal } = options;
    AttentionOptions { scale, softcap, causal: is_causal }
}

#[cfg(burn_line = "0.21")]
fn windows<const N: usize>(options: ConvOptions<N>) -> Windows {
    let ConvOptions { stride, padding, dilation, groups } = options;
    let [stride, dilation] = [stride, dilation].map(|v| v.as_slice().into());
    Windows { stride, dilation, groups, ..Windows::new(N) }.padded(&padding)
}

#[cfg(burn_line = "0.22")]
fn windows<const N: usize>(options: ConvOptions<N>) -> Windows {
    let (padding, padding_end) = (options.padding_begin(), options.padding_end());
    let ConvOptions { stride, dilation, groups, .. } = options;
    let [stride, padding, padding_end, dilation] =
        [stride, padding, padding_end, dilation].map(|v| v.as_slice().into());
    Windows { stride, padding, padding_end, dilation, groups }
}

/// Returns the output padding per axis, and the options of the convolution whose adjoint the transposed convolution
/// is.
fn transposed<const N: usize>(options: ConvTransposeOptions<N>) -> ([usize; N], Windows) {
    let ConvTransposeOptions { stride, padding, padding_out, dilation, groups } = options;
    (padding_out, windows(ConvOptions::new(stride, padding, dilation, groups)))
}

/// Shape of the input of a transposed convolution with this output. Per axis:
/// `(out + 2p − d·(k − 1) − 1 − extra)/s + 1`. Sizes that the stride does not divide are rejected later, by the
/// shape check of the convolution.
///
/// # Errors
/// [`TensorError::ShapeMismatch`] if no such shape exists.
fn unstretched(
    dy: &[usize],
    weight: &[usize],
    extra: &[usize],
    options: &Windows,
) -> Result<Vec<usize>> {
    let error = || {
        let required = "the result of a transposed convolution with this weight";
        TensorError::shapes("conv_transpose_x", dy, weight, required)
    };
    if dy.len() != extra.len() + 2 || weight.len() != dy.len() {
        return Err(error());
    }
    let mut x = vec![dy[0], weight[0]];
    for (i, &extra) in extra.iter().enumerate() {
        let reach = weight[2 + i].checked_sub(1).and_then(|k| k.checked_mul(options.dilation[i]));
        let room = options.padding[i].checked_mul(2).and_then(|p| p.checked_add(dy[2 + i]));
        let steps = room
            .zip(reach)
            .and_then(|(room, reach)| room.checked_sub(reach)?.checked_sub(1)?.checked_sub(extra));
        x.push(steps.ok_or_else(error)? / options.stride[i] + 1);
    }
    Ok(x)
}

/// Sums a tensor over all axes but axis 1, the channels.
fn per_channel(dy: &AnyTensor) -> Result<AnyTensor> {
    let axes: Vec<usize> = (0..dy.rank()).filter(|&axis| axis != 1).collect();
    dy.sum(&axes)?.reshape(&dy.shape()[1..2])
}

#[cfg(burn_line = "0.22")]
const VOLUME: &str = "[images, channels, depth, height, width]";

/// Shapes for a mean over boxes as a mean over planes followed by a mean along lines: `[n, c·depth, h, w]` for the
/// planes, `[n, c, depth, height·width]` for the lines.
#[cfg(burn_line = "0.22")]
fn separated(x: &[usize], [_, height, width]: [usize; 3]) -> Result<[[usize; 4]; 2]> {
    let &[n, c, depth, h, w] = x else {
        return Err(TensorError::shape("adaptive_avg_pool3d", x, VOLUME));
    };
    Ok([[n, c * depth, h, w], [n, c, depth, height * width]])
}

/// Treatment of the last window with `ceil_mode`: Burn 0.22 drops a window that would begin in the trailing
/// padding.
#[cfg(burn_line = "0.21")]
const CEIL: Overhang = Overhang::Always;
#[cfg(burn_line = "0.22")]
const CEIL: Overhang = Overhang::BeginsInside;

/// Pooling options of a plane.
fn plane_windows(
    window: [usize; 2],
    stride: [usize; 2],
    padding: [usize; 2],
    dilation: [usize; 2],
    ceil: bool,
) -> PoolOptions {
    let overhang = if ceil { CEIL } else { Overhang::Never };
    PoolOptions { window, stride, padding, dilation, overhang }
}

/// Pooling options along a line, as a plane of height 1.
fn line(window: usize, stride: usize, padding: usize, dilation: usize, ceil: bool) -> PoolOptions {
    plane_windows([1, window], [1, stride], [0, padding], [1, dilation], ceil)
}

/// Reshapes `[N, C, L]` to `[N, C, 1, L]`.
fn plane(x: &AnyTensor) -> Result<AnyTensor> {
    match *x.shape() {
        [n, c, len] => x.reshape(&[n, c, 1, len]),
        _ => Err(TensorError::shape("pool1d", x.shape(), "[images, channels, length]")),
    }
}

/// Reshapes `[N, C, 1, L]` to `[N, C, L]`.
fn flat(x: &AnyTensor) -> Result<AnyTensor> {
    let shape = x.shape();
    x.reshape(&[shape[0], shape[1], shape[3]])
}

/// Fourier transform of a real signal along an axis: real and imaginary parts. Called by Burn's trait in 0.21 and
/// by `burn-signal` in 0.22.
///
#[cfg_attr(
    burn_line = "0.21",
    doc = "
```
use burn::tensor::TensorData;
use burn_t4a::{T4aTensor, irfft, rfft};

// A constant signal has one frequency.
let x = T4aTensor::try_from_data(TensorData::from([1.0f32; 4]))?;
let (re, im) = rfft(x, 0, None);
re.clone().try_into_data()?.assert_eq(&TensorData::from([4.0f32, 0.0, 0.0]), true);
let signal = irfft(re, im, 0, None).try_into_data()?;
signal.assert_eq(&TensorData::from([1.0f32; 4]), true);
# Ok::<(), burn_t4a::ext::operation::TensorError>(())
```"
)]
#[cfg_attr(burn_line = "0.21", allow(unreachable_pub))]
#[track_caller]
pub fn rfft(x: T4aTensor, dim: usize, n: Option<usize>) -> (T4aTensor, T4aTensor) {
    let (re, im) = accept(x.any().rfft(dim, n));
    (wrap(Ok(re)), wrap(Ok(im)))
}

/// Inverse of [`rfft`]: the real signal of a spectrum along an axis. Called by Burn's trait in 0.21 and by
/// `burn-signal` in 0.22.
#[cfg_attr(burn_line = "0.21", allow(unreachable_pub))]
#[track_caller]
pub fn irfft(re: T4aTensor, im: T4aTensor, dim: usize, n: Option<usize>) -> T4aTensor {
    re.then(|re| re.irfft(im.any(), dim, n))
}
