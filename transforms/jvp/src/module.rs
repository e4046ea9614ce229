//! Forward-mode rules of neural-network operations.
//!
//! Convolutions are linear in the pair of input and bias, and in the weight; average pools, interpolation and Fourier
//! transforms are linear in their input, and reverse passes in the gradient. The tangent of a maximum is gathered at
//! its index.

use burn_backend::ops::attention::attention_fallback;
use burn_backend::ops::ctc::ctc_loss_default;
use burn_backend::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConv2dBackward,
    DeformConvOptions, InterpolateOptions, MaxPool2dBackward, MaxPool2dWithIndices, ModuleOps,
    UnfoldOptions,
};
use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};
use burn_backend::{Backend, Scalar, Shape, TensorMetadata, get_device_settings};

use crate::backend::Jvp;
use crate::deform::{self, Deformed};
use crate::primitive::{JvpTensor, expanded, sum};
use crate::real::InnerFloat;

/// `f(x, w) + b`, bilinear in x and w, with b along `axis` of the result.
fn affine<B: Backend>(
    x: JvpTensor<B>,
    w: JvpTensor<B>,
    b: Option<JvpTensor<B>>,
    axis: impl FnOnce(usize) -> usize,
    f: impl Fn(FloatTensor<B>, FloatTensor<B>, Option<FloatTensor<B>>) -> FloatTensor<B>,
) -> JvpTensor<B> {
    let (b, mut of_b) = match b {
        Some(b) => (Some(b.primal), b.tangent),
        None => (None, None),
    };
    // The tangent of the bias is added in a convolution that is computed in any case.
    let left = x.tangent.map(|t| f(t, w.primal.clone(), of_b.take()));
    let right = w.tangent.map(|t| f(x.primal.clone(), t, of_b.take()));
    let primal = f(x.primal, w.primal, b);
    let alone = of_b.map(|t| {
        let mut shape = vec![1; primal.rank()];
        shape[axis(primal.rank())] = t.shape()[0];
        expanded::<B>(B::float_reshape(t, Shape::from(shape)), primal.shape())
    });
    JvpTensor { tangent: sum::<B>(sum::<B>(left, right), alone), primal }
}

macro_rules! convolutions {
    ($($conv:ident $x_backward:ident $weight_backward:ident $bias_backward:ident
       $transposed:ident $transposed_x:ident $transposed_weight:ident $transposed_bias:ident
       $n:literal;)*) => {$(
        fn $conv(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvOptions<$n>,
        ) -> FloatTensor<Self> {
            affine(x, weight, bias, |_| 1, |x, w, b| B::$conv(x, w, b, options.clone()))
        }

        fn $x_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<$n>,
        ) -> FloatTensor<Self> {
            let f = |w, g| B::$x_backward(x.primal.clone(), w, g, options.clone());
            weight.bilinear(output_grad, f)
        }

        fn $weight_backward(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvOptions<$n>,
        ) -> FloatTensor<Self> {
            let f = |x, g| B::$weight_backward(x, weight.primal.clone(), g, options.clone());
            x.bilinear(output_grad, f)
        }

        fn $bias_backward(
            x: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self> {
            output_grad.linear(|g| B::$bias_backward(x.primal.clone(), bias.primal.clone(), g))
        }

        fn $transposed(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            bias: Option<FloatTensor<Self>>,
            options: ConvTransposeOptions<$n>,
        ) -> FloatTensor<Self> {
            affine(x, weight, bias, |_| 1, |x, w, b| B::$transposed(x, w, b, options.clone()))
        }

        fn $transposed_x(
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvTransposeOptions<$n>,
        ) -> FloatTensor<Self> {
            weight.bilinear(output_grad, |w, g| B::$transposed_x(w, g, options.clone()))
        }

        fn $transposed_weight(
            x: FloatTensor<Self>,
            weight: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
            options: ConvTransposeOptions<$n>,
        ) -> FloatTensor<Self> {
            let f = |x, g| B::$transposed_weight(x, weight.primal.clone(), g, options.clone());
            x.bilinear(output_grad, f)
        }

        fn $transposed_bias(
            x: FloatTensor<Self>,
            bias: FloatTensor<Self>,
            output_grad: FloatTensor<Self>,
        ) -> FloatTensor<Self> {
            output_grad.linear(|g| B::$transposed_bias(x.primal.clone(), bias.primal.clone(), g))
        }
    )*};
}

impl<B: Backend> ModuleOps<Self> for Jvp<B> {
    convolutions! {
        conv1d conv1d_x_backward conv1d_weight_backward conv1d_bias_backward
        conv_transpose1d conv_transpose1d_x_backward conv_transpose1d_weight_backward
        conv_transpose1d_bias_backward 1;
        conv2d conv2d_x_backward conv2d_weight_backward conv2d_bias_backward
        conv_transpose2d conv_transpose2d_x_backward conv_transpose2d_weight_backward
        conv_transpose2d_bias_backward 2;
        conv3d conv3d_x_backward conv3d_weight_backward conv3d_bias_backward
        conv_transpose3d conv_transpose3d_x_backward conv_transpose3d_weight_backward
        conv_transpose3d_bias_backward 3;
    }

    fn linear(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: Option<FloatTensor<Self>>,
    ) -> FloatTensor<Self> {
        affine(x, weight, bias, |rank| rank - 1, B::linear)
    }

    fn linear_x_backward(
        weight: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        weight.bilinear(output_grad, B::linear_x_backward)
    }

    fn linear_weight_backward(
        x: FloatTensor<Self>,
        output_grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        x.bilinear(output_grad, B::linear_weight_backward)
    }

    fn linear_bias_backward(output_grad: FloatTensor<Self>) -> FloatTensor<Self> {
        output_grad.linear(B::linear_bias_backward)
    }

    fn embedding(weights: FloatTensor<Self>, indices: IntTensor<Self>) -> FloatTensor<Self> {
        weights.linear(|w| B::embedding(w, indices.clone()))
    }

    fn deform_conv2d(
        x: FloatTensor<Self>,
        offset: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        mask: Option<FloatTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        options: DeformConvOptions<2>,
    ) -> FloatTensor<Self> {
        deform::forward(Deformed { x, offset, weight, mask, options }, bias)
    }

    fn deform_conv2d_backward(
        x: FloatTensor<Self>,
        offset: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        mask: Option<FloatTensor<Self>>,
        bias: Option<FloatTensor<Self>>,
        output_grad: FloatTensor<Self>,
        options: DeformConvOptions<2>,
    ) -> DeformConv2dBackward<Self> {
        deform::backward(Deformed { x, offset, weight, mask, options }, bias, output_grad)
    }

    fn unfold4d(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        options: UnfoldOptions,
    ) -> FloatTensor<Self> {
        x.linear(|x| B::unfold4d(x, kernel_size, options.clone()))
    }

    fn avg_pool2d(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> FloatTensor<Self> {
        x.linear(|x| B::avg_pool2d(x, kernel_size, stride, padding, count_include_pad, ceil_mode))
    }

    fn avg_pool2d_backward(
        x: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> FloatTensor<Self> {
        grad.linear(|grad| {
            let x = x.primal.clone();
            B::avg_pool2d_backward(
                x,
                grad,
                kernel_size,
                stride,
                padding,
                count_include_pad,
                ceil_mode,
            )
        })
    }

    fn adaptive_avg_pool2d(x: FloatTensor<Self>, output_size: [usize; 2]) -> FloatTensor<Self> {
        x.linear(|x| B::adaptive_avg_pool2d(x, output_size))
    }

    fn adaptive_avg_pool2d_backward(
        x: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        grad.linear(|grad| B::adaptive_avg_pool2d_backward(x.primal.clone(), grad))
    }

    fn max_pool2d(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> FloatTensor<Self> {
        if !x.moves() {
            return JvpTensor::constant(B::max_pool2d(
                x.primal,
                kernel_size,
                stride,
                padding,
                dilation,
                ceil_mode,
            ));
        }
        Self::max_pool2d_with_indices(x, kernel_size, stride, padding, dilation, ceil_mode).output
    }

    fn max_pool2d_with_indices(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> MaxPool2dWithIndices<Self> {
        let shape = x.shape();
        let pooled =
            B::max_pool2d_with_indices(x.primal, kernel_size, stride, padding, dilation, ceil_mode);
        let tangent = x.tangent.map(|t| {
            let planes = |n: usize| Shape::new([shape[0], shape[1], n]);
            let out = pooled.output.shape();
            let places = B::int_reshape(pooled.indices.clone(), planes(out[2] * out[3]));
            let flat = B::float_reshape(t, planes(shape[2] * shape[3]));
            // A window that contains only padding has no index, and its tangent is zero.
            let bools = get_device_settings::<B>(&B::float_device(&flat)).bool_dtype;
            let none = B::int_lower_elem(places.clone(), Scalar::Int(0), bools);
            let places = B::int_mask_fill(places, none.clone(), Scalar::Int(0));
            let moved = B::float_gather(2, flat, places);
            B::float_reshape(B::float_mask_fill(moved, none, Scalar::Float(0.0)), out)
        });
        MaxPool2dWithIndices::new(JvpTensor { primal: pooled.output, tangent }, pooled.indices)
    }

    fn max_pool2d_with_indices_backward(
        x: FloatTensor<Self>,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        output_grad: FloatTensor<Self>,
        indices: IntTensor<Self>,
    ) -> MaxPool2dBackward<Self> {
        let x_grad = output_grad.linear(|grad| {
            B::max_pool2d_with_indices_backward(
                x.primal.clone(),
                kernel_size,
                stride,
                padding,
                dilation,
                ceil_mode,
                grad,
                indices.clone(),
            )
            .x_grad
        });
        MaxPool2dBackward::new(x_grad)
    }

    fn interpolate(
        x: FloatTensor<Self>,
        output_size: [usize; 2],
        options: InterpolateOptions,
    ) -> FloatTensor<Self> {
        x.linear(|x| B::interpolate(x, output_size, options.clone()))
    }

    fn interpolate_backward(
        x: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        output_size: [usize; 2],
        options: InterpolateOptions,
    ) -> FloatTensor<Self> {
        grad.linear(|grad| {
            B::interpolate_backward(x.primal.clone(), grad, output_size, options.clone())
        })
    }

    fn attention(
        query: FloatTensor<Self>,
        key: FloatTensor<Self>,
        value: FloatTensor<Self>,
        mask: Option<BoolTensor<Self>>,
        attn_bias: Option<FloatTensor<Self>>,
        options: AttentionModuleOptions,
    ) -> FloatTensor<Self> {
        let floats = [Some(&query), Some(&key), Some(&value), attn_bias.as_ref()];
        if floats.into_iter().flatten().any(JvpTensor::moves) {
            return attention_fallback::<Self>(query, key, value, mask, attn_bias, options);
        }
        let bias = attn_bias.map(|x| x.primal);
        JvpTensor::constant(B::attention(
            query.primal,
            key.primal,
            value.primal,
            mask,
            bias,
            options,
        ))
    }

    /// γ x̂ + β with x̂ = (x − x̄)/σ: the tangent of x̂ is (ẋ − mean(ẋ) − x̂ mean(x̂ ẋ))/σ.
    fn layer_norm(
        x: FloatTensor<Self>,
        gamma: FloatTensor<Self>,
        beta: Option<FloatTensor<Self>>,
        epsilon: f64,
    ) -> FloatTensor<Self> {
        let primal = B::layer_norm(
            x.primal.clone(),
            gamma.primal.clone(),
            beta.as_ref().map(|x| x.primal.clone()),
            epsilon,
        );
        let last = primal.rank() - 1;
        let row = |x: FloatTensor<B>| {
            let mut shape = vec![1; last + 1];
            shape[last] = x.shape()[0];
            InnerFloat::<B>(B::float_reshape(x, Shape::from(shape)))
        };
        let of_beta = beta.and_then(|x| x.tangent).map(|t| row(t).0);
        if !x.moves() && !gamma.moves() {
            return JvpTensor::joined(primal, of_beta, None);
        }
        let mean = |x: InnerFloat<B>| x.map(|x| B::float_mean_dim(x, last));
        let centered = InnerFloat::<B>(x.primal.clone()) - mean(InnerFloat(x.primal));
        let deviation = (mean(centered.clone().square()) + epsilon).map(B::float_sqrt);
        let unit = centered / deviation.clone();
        let left = x.tangent.map(|t| {
            let along = unit.clone() * mean(unit.clone() * InnerFloat(t.clone()));
            let moved = (InnerFloat(t.clone()) - mean(InnerFloat(t)) - along) / deviation;
            (moved * row(gamma.primal)).0
        });
        let right = gamma.tangent.map(|t| (unit * row(t)).0);
        JvpTensor::joined(primal, sum::<B>(left, right), of_beta)
    }

    /// With tangents: the recursion in differentiable operations.
    fn ctc_loss(
        log_probs: FloatTensor<Self>,
        targets: IntTensor<Self>,
        input_lengths: IntTensor<Self>,
        target_lengths: IntTensor<Self>,
        blank: usize,
    ) -> FloatTensor<Self> {
        if log_probs.moves() {
            return ctc_loss_default::<Self>(
                log_probs,
                targets,
                input_lengths,
                target_lengths,
                blank,
            );
        }
        let log_probs = log_probs.primal;
        let loss = B::ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
        JvpTensor::constant(loss)
    }

    fn rfft(
        signal: FloatTensor<Self>,
        dim: usize,
        n: Option<usize>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (re, im) = B::rfft(signal.primal, dim, n);
        let (of_re, of_im) = signal.tangent.map(|t| B::rfft(t, dim, n)).unzip();
        (JvpTensor { primal: re, tangent: of_re }, JvpTensor { primal: im, tangent: of_im })
    }

    fn irfft(
        re: FloatTensor<Self>,
        im: FloatTensor<Self>,
        dim: usize,
        n: Option<usize>,
    ) -> FloatTensor<Self> {
        re.together(im, |re, im| B::irfft(re, im, dim, n))
    }
}
