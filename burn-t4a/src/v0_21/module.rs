//! Operations of neural-network modules.

use burn_backend::ops::*;

use super::BurnT4a;
use super::flex::flex;
use super::primitive::T4aTensor;

impl ModuleOps<BurnT4a> for BurnT4a {
    fn conv1d(
        x: T4aTensor,
        weight: T4aTensor,
        bias: Option<T4aTensor>,
        options: ConvOptions<1>,
    ) -> T4aTensor {
        flex!(conv1d(x.into(), weight.into(), bias.map(Into::into), options))
    }

    fn conv2d(
        x: T4aTensor,
        weight: T4aTensor,
        bias: Option<T4aTensor>,
        options: ConvOptions<2>,
    ) -> T4aTensor {
        flex!(conv2d(x.into(), weight.into(), bias.map(Into::into), options))
    }

    fn deform_conv2d(
        x: T4aTensor,
        offset: T4aTensor,
        weight: T4aTensor,
        mask: Option<T4aTensor>,
        bias: Option<T4aTensor>,
        options: DeformConvOptions<2>,
    ) -> T4aTensor {
        flex!(deform_conv2d(
            x.into(),
            offset.into(),
            weight.into(),
            mask.map(Into::into),
            bias.map(Into::into),
            options
        ))
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
        let mask = mask.map(Into::into);
        let bias = bias.map(Into::into);
        let (x, offset, weight, out) = (x.into(), offset.into(), weight.into(), output_grad.into());
        flex!(deform_conv2d_backward(x, offset, weight, mask, bias, out, options))
    }

    fn conv3d(
        x: T4aTensor,
        weight: T4aTensor,
        bias: Option<T4aTensor>,
        options: ConvOptions<3>,
    ) -> T4aTensor {
        flex!(conv3d(x.into(), weight.into(), bias.map(Into::into), options))
    }

    fn conv_transpose1d(
        x: T4aTensor,
        weight: T4aTensor,
        bias: Option<T4aTensor>,
        options: ConvTransposeOptions<1>,
    ) -> T4aTensor {
        flex!(conv_transpose1d(x.into(), weight.into(), bias.map(Into::into), options))
    }

    fn conv_transpose2d(
        x: T4aTensor,
        weight: T4aTensor,
        bias: Option<T4aTensor>,
        options: ConvTransposeOptions<2>,
    ) -> T4aTensor {
        flex!(conv_transpose2d(x.into(), weight.into(), bias.map(Into::into), options))
    }

    fn conv_transpose3d(
        x: T4aTensor,
        weight: T4aTensor,
        bias: Option<T4aTensor>,
        options: ConvTransposeOptions<3>,
    ) -> T4aTensor {
        flex!(conv_transpose3d(x.into(), weight.into(), bias.map(Into::into), options))
    }

    fn avg_pool2d(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        count_include_pad: bool,
        ceil_mode: bool,
    ) -> T4aTensor {
        flex!(avg_pool2d(x.into(), kernel_size, stride, padding, count_include_pad, ceil_mode))
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
        flex!(avg_pool2d_backward(
            x.into(),
            grad.into(),
            kernel_size,
            stride,
            padding,
            count_include_pad,
            ceil_mode
        ))
    }

    fn adaptive_avg_pool2d(x: T4aTensor, output_size: [usize; 2]) -> T4aTensor {
        flex!(adaptive_avg_pool2d(x.into(), output_size))
    }

    fn adaptive_avg_pool2d_backward(x: T4aTensor, grad: T4aTensor) -> T4aTensor {
        flex!(adaptive_avg_pool2d_backward(x.into(), grad.into()))
    }

    fn max_pool2d(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> T4aTensor {
        flex!(max_pool2d(x.into(), kernel_size, stride, padding, dilation, ceil_mode))
    }

    fn max_pool2d_with_indices(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
    ) -> MaxPool2dWithIndices<BurnT4a> {
        flex!(max_pool2d_with_indices(x.into(), kernel_size, stride, padding, dilation, ceil_mode))
    }

    fn max_pool2d_with_indices_backward(
        x: T4aTensor,
        kernel_size: [usize; 2],
        stride: [usize; 2],
        padding: [usize; 2],
        dilation: [usize; 2],
        ceil_mode: bool,
        output_grad: T4aTensor,
        indices: T4aTensor,
    ) -> MaxPool2dBackward<BurnT4a> {
        flex!(max_pool2d_with_indices_backward(
            x.into(),
            kernel_size,
            stride,
            padding,
            dilation,
            ceil_mode,
            output_grad.into(),
            indices.into()
        ))
    }

    fn interpolate(
        x: T4aTensor,
        output_size: [usize; 2],
        options: InterpolateOptions,
    ) -> T4aTensor {
        flex!(interpolate(x.into(), output_size, options))
    }

    fn interpolate_backward(
        x: T4aTensor,
        grad: T4aTensor,
        output_size: [usize; 2],
        options: InterpolateOptions,
    ) -> T4aTensor {
        flex!(interpolate_backward(x.into(), grad.into(), output_size, options))
    }

    fn attention(
        query: T4aTensor,
        key: T4aTensor,
        value: T4aTensor,
        mask: Option<T4aTensor>,
        attn_bias: Option<T4aTensor>,
        options: AttentionModuleOptions,
    ) -> T4aTensor {
        flex!(attention(
            query.into(),
            key.into(),
            value.into(),
            mask.map(Into::into),
            attn_bias.map(Into::into),
            options
        ))
    }

    fn layer_norm(
        tensor: T4aTensor,
        gamma: T4aTensor,
        beta: Option<T4aTensor>,
        epsilon: f64,
    ) -> T4aTensor {
        flex!(layer_norm(tensor.into(), gamma.into(), beta.map(Into::into), epsilon))
    }

    fn rfft(signal: T4aTensor, dim: usize, n: Option<usize>) -> (T4aTensor, T4aTensor) {
        flex!(rfft(signal.into(), dim, n))
    }

    fn irfft(
        spectrum_re: T4aTensor,
        spectrum_im: T4aTensor,
        dim: usize,
        n: Option<usize>,
    ) -> T4aTensor {
        flex!(irfft(spectrum_re.into(), spectrum_im.into(), dim, n))
    }
}
