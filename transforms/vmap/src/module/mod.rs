//! Operations of neural-network modules.

mod conv;
mod deformed;
pub(crate) mod fold;

use burn_backend::ops::*;
use burn_backend::tensor::{Bool, Float, FloatTensor, Int};
use burn_backend::{Backend, Shape, TensorMetadata};

use crate::backend::Vmap;
use crate::movement::{MappedTensor, expand, raise, reshape, select, swap_dims};
use crate::rows::{F, I, T};
use crate::tensor::{VmapTensor, common};
use fold::{blank, fold, interleave, separate, unfold};

macro_rules! convolutions {
    ($n:literal: $forward:ident, $x:ident, $weight:ident, $bias:ident;
     $transposed:ident, $transposed_x:ident, $transposed_weight:ident, $transposed_bias:ident) => {
        #[track_caller]
        fn $forward(x: F<B>, weight: F<B>, bias: Option<F<B>>, options: ConvOptions<$n>) -> F<B> {
            conv::forward::<B, $n>(x, weight, bias, options, B::$forward)
        }
        #[track_caller]
        fn $x(x: F<B>, weight: F<B>, grad: F<B>, options: ConvOptions<$n>) -> F<B> {
            conv::x_backward::<B, $n>(x, weight, grad, options, B::$x)
        }
        #[track_caller]
        fn $weight(x: F<B>, weight: F<B>, grad: F<B>, options: ConvOptions<$n>) -> F<B> {
            conv::weight_backward::<B, _>(x, weight, grad, options, B::$weight)
        }
        fn $bias(x: F<B>, bias: F<B>, grad: F<B>) -> F<B> {
            conv::bias_backward::<B>(x, bias, grad, B::$bias)
        }
        #[track_caller]
        fn $transposed(
            x: F<B>,
            weight: F<B>,
            bias: Option<F<B>>,
            options: ConvTransposeOptions<$n>,
        ) -> F<B> {
            conv::any::<B, _>(x, weight, bias, options, B::$transposed)
        }
        #[track_caller]
        fn $transposed_x(weight: F<B>, grad: F<B>, options: ConvTransposeOptions<$n>) -> F<B> {
            conv::transposed_x_backward::<B, $n>(weight, grad, options, B::$transposed_x)
        }
        #[track_caller]
        fn $transposed_weight(
            x: F<B>,
            weight: F<B>,
            grad: F<B>,
            options: ConvTransposeOptions<$n>,
        ) -> F<B> {
            conv::weight_backward::<B, _>(x, weight, grad, options, B::$transposed_weight)
        }
        fn $transposed_bias(x: F<B>, bias: F<B>, grad: F<B>) -> F<B> {
            conv::bias_backward::<B>(x, bias, grad, B::$transposed_bias)
        }
    };
}

/// Operations on samples: the batch is merged into the sample axis.
macro_rules! samples {
    ($($f:ident($($arg:ident: $t:ty),*))*) => {$(
        fn $f(x: F<B>, $($arg: $t),*) -> F<B> {
            let size = x.size();
            unfold::<B, Float>(B::$f(fold::<B, Float>(x, size), $($arg),*), size)
        }
    )*};
}

/// Derivatives of the operations on samples.
macro_rules! samples_backward {
    ($($f:ident($($arg:ident: $t:ty),*))*) => {$(
        #[track_caller]
        fn $f(x: F<B>, grad: F<B>, $($arg: $t),*) -> F<B> {
            let size = common(stringify!($f), [x.size(), grad.size()]);
            let (x, grad) = (fold::<B, Float>(x, size), fold::<B, Float>(grad, size));
            unfold::<B, Float>(B::$f(x, grad, $($arg),*), size)
        }
    )*};
}

impl<B: Backend> ModuleOps<Self> for Vmap<B> {
    convolutions!(1: conv1d, conv1d_x_backward, conv1d_weight_backward, conv1d_bias_backward;
        conv_transpose1d, conv_transpose1d_x_backward, conv_transpose1d_weight_backward,
        conv_transpose1d_bias_backward);
    convolutions!(2: conv2d, conv2d_x_backward, conv2d_weight_backward, conv2d_bias_backward;
        conv_transpose2d, conv_transpose2d_x_backward, conv_transpose2d_weight_backward,
        conv_transpose2d_bias_backward);
    convolutions!(3: conv3d, conv3d_x_backward, conv3d_weight_backward, conv3d_bias_backward;
        conv_transpose3d, conv_transpose3d_x_backward, conv_transpose3d_weight_backward,
        conv_transpose3d_bias_backward);

    samples! {
        avg_pool1d(size_: usize, stride: usize, padding: usize, count_pad: bool, ceil: bool)
        avg_pool2d(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2], count_pad: bool, ceil: bool)
        max_pool1d(kernel: usize, stride: usize, padding: usize, dilation: usize, ceil: bool)
        max_pool2d(kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2], dilation: [usize; 2], ceil: bool)
        adaptive_avg_pool1d(output: usize)
        adaptive_avg_pool2d(output: [usize; 2])
        interpolate(output: [usize; 2], options: InterpolateOptions)
        unfold4d(kernel: [usize; 2], options: UnfoldOptions)
    }
    samples_backward! {
        avg_pool1d_backward(kernel: usize, stride: usize, padding: usize, count_pad: bool, ceil: bool)
        avg_pool2d_backward(
            kernel: [usize; 2], stride: [usize; 2], padding: [usize; 2], count_pad: bool, ceil: bool
        )
        adaptive_avg_pool1d_backward()
        adaptive_avg_pool2d_backward()
        interpolate_backward(output: [usize; 2], options: InterpolateOptions)
    }

    fn max_pool1d_with_indices(
        x: F<B>,
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
        ceil: bool,
    ) -> MaxPool1dWithIndices<Self> {
        let size = x.size();
        let x = fold::<B, Float>(x, size);
        let y = B::max_pool1d_with_indices(x, kernel, stride, padding, dilation, ceil);
        let (output, indices) = (unfold::<B, Float>(y.output, size), y.indices);
        MaxPool1dWithIndices { output, indices: unfold::<B, Int>(indices, size) }
    }

    #[track_caller]
    fn max_pool1d_with_indices_backward(
        x: F<B>,
        kernel: usize,
        stride: usize,
        padding: usize,
        dilation: usize,
        ceil: bool,
        grad: F<B>,
        indices: I<B>,
    ) -> MaxPool1dBackward<Self> {
        let size = common("max_pool1d_backward", [x.size(), grad.size(), indices.size()]);
        let (x, grad) = (fold::<B, Float>(x, size), fold::<B, Float>(grad, size));
        let at = fold::<B, Int>(indices, size);
        let back = B::max_pool1d_with_indices_backward;
        let dx = back(x, kernel, stride, padding, dilation, ceil, grad, at).x_grad;
        MaxPool1dBackward { x_grad: unfold::<B, Float>(dx, size) }
    }

    fn max_pool2d_with_indices(
        x: F<B>,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil: bool,
    ) -> MaxPool2dWithIndices<Self> {
        let size = x.size();
        let x = fold::<B, Float>(x, size);
        let y = B::max_pool2d_with_indices(x, kernel, stride, padding, dilation, ceil);
        let (output, indices) = (unfold::<B, Float>(y.output, size), y.indices);
        MaxPool2dWithIndices { output, indices: unfold::<B, Int>(indices, size) }
    }

    #[track_caller]
    fn max_pool2d_with_indices_backward(
        x: F<B>,
        kernel: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil: bool,
        grad: F<B>,
        indices: I<B>,
    ) -> MaxPool2dBackward<Self> {
        let size = common("max_pool2d_backward", [x.size(), grad.size(), indices.size()]);
        let (x, grad) = (fold::<B, Float>(x, size), fold::<B, Float>(grad, size));
        let at = fold::<B, Int>(indices, size);
        let back = B::max_pool2d_with_indices_backward;
        let dx = back(x, kernel, stride, padding, dilation, ceil, grad, at).x_grad;
        MaxPool2dBackward { x_grad: unfold::<B, Float>(dx, size) }
    }

    #[track_caller]
    fn deform_conv2d(
        x: F<B>,
        offset: F<B>,
        weight: F<B>,
        mask: Option<F<B>>,
        bias: Option<F<B>>,
        options: DeformConvOptions<2>,
    ) -> F<B> {
        deformed::forward::<B>(x, offset, weight, mask, bias, options)
    }

    #[track_caller]
    fn deform_conv2d_backward(
        x: F<B>,
        offset: F<B>,
        weight: F<B>,
        mask: Option<F<B>>,
        bias: Option<F<B>>,
        grad: F<B>,
        options: DeformConvOptions<2>,
    ) -> DeformConv2dBackward<Self> {
        deformed::backward::<B>(x, offset, weight, mask, bias, grad, options)
    }

    #[track_caller]
    fn attention(
        query: F<B>,
        key: F<B>,
        value: F<B>,
        mask: Option<T<B>>,
        bias: Option<F<B>>,
        options: AttentionModuleOptions,
    ) -> F<B> {
        let sizes = [query.size(), key.size(), value.size()];
        let others =
            [mask.as_ref().and_then(VmapTensor::size), bias.as_ref().and_then(VmapTensor::size)];
        let size = common("attention", sizes.into_iter().chain(others));
        let samples = query.shape()[0];
        let mask = mask.map(|mask| fold::<B, Bool>(sampled::<B, Bool>(mask, samples), size));
        let bias = bias.map(|bias| fold::<B, Float>(sampled::<B, Float>(bias, samples), size));
        let [q, k, v] = [query, key, value].map(|x| fold::<B, Float>(x, size));
        unfold::<B, Float>(B::attention(q, k, v, mask, bias, options), size)
    }

    #[track_caller]
    fn rfft(x: F<B>, dim: usize, n: Option<usize>) -> (F<B>, F<B>) {
        let (dim, size) = (dim + x.prefix(), x.size());
        let (re, im) = B::rfft(x.into_inner().0, dim, n);
        (VmapTensor::new(re, size), VmapTensor::new(im, size))
    }

    #[track_caller]
    fn irfft(re: F<B>, im: F<B>, dim: usize, n: Option<usize>) -> F<B> {
        let size = common("irfft", [re.size(), im.size()]);
        let (re, im) = (raise::<B, Float>(re, size), raise::<B, Float>(im, size));
        VmapTensor::new(B::irfft(re, im, dim + size.is_some() as usize, n), size)
    }

    #[track_caller]
    fn embedding(weights: F<B>, indices: I<B>) -> F<B> {
        if !weights.is_batched() {
            let size = indices.size();
            let indices = fold::<B, Int>(indices, size);
            return unfold::<B, Float>(B::embedding(weights.into_inner().0, indices), size);
        }
        let (shape, width) = (indices.shape(), weights.shape()[1]);
        let rows = Shape::from([shape.num_elements()]);
        let y = select::<B, Float>(weights, 0, reshape::<B, Int>(indices, rows));
        reshape::<B, Float>(y, shape.iter().copied().chain([width]).collect())
    }

    #[track_caller]
    fn embedding_backward(weights: F<B>, grad: F<B>, indices: I<B>) -> F<B> {
        let shape = weights.shape();
        let like = blank::<B>(&weights, shape.clone());
        if common("embedding_backward", [grad.size(), indices.size()]).is_none() {
            let (grad, indices) = (grad.into_inner().0, indices.into_inner().0);
            return VmapTensor::shared(B::embedding_backward(like, grad, indices));
        }
        let rows = indices.shape().num_elements();
        let indices = reshape::<B, Int>(indices, Shape::from([rows]));
        let grad = reshape::<B, Float>(grad, Shape::from([rows, shape[1]]));
        Self::float_select_add(VmapTensor::shared(like), 0, indices, grad)
    }

    #[track_caller]
    fn linear(x: F<B>, weight: F<B>, bias: Option<F<B>>) -> F<B> {
        if !weight.is_batched() && bias.as_ref().is_none_or(|bias| !bias.is_batched()) {
            let (weight, bias) = (weight.into_inner().0, bias.map(|bias| bias.into_inner().0));
            return x.map(|x| B::linear(x, weight, bias));
        }
        // All leading axes are flattened into rows.
        let shape = x.shape();
        let out = weight.shape()[1];
        let y = Self::float_matmul(rows::<B>(x), weight);
        let y = match bias {
            Some(bias) => Self::float_add(y, reshape::<B, Float>(bias, Shape::from([1, out]))),
            None => y,
        };
        let last = shape.num_dims() - 1;
        reshape::<B, Float>(y, shape[..last].iter().copied().chain([out]).collect())
    }

    #[track_caller]
    fn linear_x_backward(weight: F<B>, grad: F<B>) -> F<B> {
        if !weight.is_batched() {
            let weight = weight.into_inner().0;
            return grad.map(|grad| B::linear_x_backward(weight, grad));
        }
        Self::linear(grad, swap_dims::<B, Float>(weight, 0, 1), None)
    }

    #[track_caller]
    fn linear_weight_backward(x: F<B>, grad: F<B>) -> F<B> {
        if common("linear_weight_backward", [x.size(), grad.size()]).is_none() {
            let grad = grad.into_inner().0;
            return x.map(|x| B::linear_weight_backward(x, grad));
        }
        Self::float_matmul(swap_dims::<B, Float>(rows::<B>(x), 0, 1), rows::<B>(grad))
    }

    fn linear_bias_backward(grad: F<B>) -> F<B> {
        if !grad.is_batched() {
            return grad.map(B::linear_bias_backward);
        }
        let out = grad.shape()[grad.rank() - 1];
        let sum = Self::float_sum_dim(rows::<B>(grad), 0);
        reshape::<B, Float>(sum, Shape::from([out]))
    }

    #[track_caller]
    fn layer_norm(x: F<B>, gamma: F<B>, beta: Option<F<B>>, epsilon: f64) -> F<B> {
        let shared = !gamma.is_batched() && beta.as_ref().is_none_or(|beta| !beta.is_batched());
        if shared {
            let (gamma, beta) = (gamma.into_inner().0, beta.map(|beta| beta.into_inner().0));
            return x.map(|x| B::layer_norm(x, gamma, beta, epsilon));
        }
        let mut shape = vec![1; x.rank()];
        shape[x.rank() - 1] = gamma.shape()[0];
        let along = |w: F<B>| reshape::<B, Float>(w, Shape::from(shape.clone()));
        let device = B::float_device(x.inner());
        let one = B::float_ones(gamma.shape(), &device, x.dtype().into());
        let y = x.map(|x| B::layer_norm(x, one, None, epsilon));
        let y = Self::float_mul(y, along(gamma));
        match beta {
            Some(beta) => Self::float_add(y, along(beta)),
            None => y,
        }
    }

    #[track_caller]
    fn ctc_loss(x: F<B>, targets: I<B>, lengths: I<B>, target_lengths: I<B>, blank: usize) -> F<B> {
        let sizes = [x.size(), targets.size(), lengths.size(), target_lengths.size()];
        let size = common("ctc_loss", sizes);
        let x = time_first::<B>(x, size);
        let [t, n, m] = [targets, lengths, target_lengths].map(|x| fold::<B, Int>(x, size));
        unfold::<B, Float>(B::ctc_loss(x, t, n, m, blank), size)
    }

    fn has_ctc_loss_backward() -> bool {
        B::has_ctc_loss_backward()
    }

    #[track_caller]
    fn ctc_loss_backward(
        x: F<B>,
        targets: I<B>,
        lengths: I<B>,
        target_lengths: I<B>,
        grad: F<B>,
        blank: usize,
    ) -> F<B> {
        let sizes = [x.size(), targets.size(), lengths.size(), target_lengths.size(), grad.size()];
        let size = common("ctc_loss_backward", sizes);
        let (x, grad) = (time_first::<B>(x, size), fold::<B, Float>(grad, size));
        let [t, n, m] = [targets, lengths, target_lengths].map(|x| fold::<B, Int>(x, size));
        let dx = B::ctc_loss_backward(x, t, n, m, grad, blank);
        match size {
            None => VmapTensor::shared(dx),
            Some(size) => separate::<B>(dx, size),
        }
    }
}

/// Flattens `[…, d]` to `[n, d]`.
fn rows<B: Backend>(x: F<B>) -> F<B> {
    let shape = x.shape();
    let last = shape.num_dims() - 1;
    let n = shape[..last].iter().product();
    reshape::<B, Float>(x, Shape::from([n, shape[last]]))
}

/// A mask or bias, broadcast to the number of samples of the queries.
fn sampled<B: Backend, K: crate::kind::DataKind<B>>(
    x: MappedTensor<B, K>,
    samples: usize,
) -> MappedTensor<B, K> {
    let mut shape = x.shape().to_vec();
    if shape[0] == samples {
        return x;
    }
    shape[0] = samples;
    expand::<B, K>(x, Shape::from(shape))
}

/// `[time, b n, classes]` from examples `[time, n, classes]`.
fn time_first<B: Backend>(x: F<B>, size: Option<usize>) -> FloatTensor<B> {
    match size {
        None => x.into_inner().0,
        Some(size) => interleave::<B>(x, size),
    }
}
