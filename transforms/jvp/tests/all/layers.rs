//! Rules of neural-network operations.

use burn::tensor::module::{
    adaptive_avg_pool1d, adaptive_avg_pool2d, attention, avg_pool1d, avg_pool2d, conv_transpose1d,
    conv_transpose2d, conv_transpose3d, conv1d, conv2d, conv3d, ctc_loss, deform_conv2d, embedding,
    interpolate, linear, max_pool1d, max_pool2d, unfold4d,
};
use burn::tensor::ops::{
    AttentionModuleOptions, ConvOptions, ConvTransposeOptions, DeformConvOptions, InterpolateMode,
    InterpolateOptions, UnfoldOptions,
};
use burn::tensor::signal::{irfft, rfft};
use burn::tensor::{Int, Tensor, TensorData, TensorPrimitive, activation, backend::Backend};

use crate::rows::{rows, wrap};

fn ints<B: Backend, const D: usize>(x: &[i64], shape: [usize; D]) -> Tensor<B, D, Int> {
    Tensor::from_data(TensorData::new(x.to_vec(), shape), &Default::default())
}

fn layer_norm<B: Backend>(
    x: Tensor<B, 2>,
    gamma: Tensor<B, 1>,
    beta: Tensor<B, 1>,
) -> Tensor<B, 1> {
    let [gamma, beta] = [gamma, beta].map(|x| x.into_primitive().tensor());
    let y = B::layer_norm(x.into_primitive().tensor(), gamma, Some(beta), 1e-5);
    crate::rows::flat(Tensor::<B, 2>::from_primitive(TensorPrimitive::Float(y)))
}

fn nonlinear<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, D> {
    x.clone() * x
}

fn deformable(groups: usize) -> DeformConvOptions<2> {
    DeformConvOptions::new([1, 1], [1, 1], [1, 1], 1, groups)
}

rows! {
    check linear_bias(x: [2, 3] in (-1.0, 1.0), w: [3, 2] in (-1.0, 1.0), b: [2] in (-1.0, 1.0)) => linear(x, w, Some(b));
    check linear_3d(x: [2, 2, 3] in (-1.0, 1.0), w: [3, 2] in (-1.0, 1.0)) => linear(x, w, None);
    check embedded(w: [4, 2] in (-1.0, 1.0)) => nonlinear(embedding(w, ints(&[0, 3, 3, 1], [2, 2])));
    check normalised(x: [3, 4] in (-1.0, 1.0), gamma: [4] in (0.5, 1.5), beta: [4] in (-1.0, 1.0)) => layer_norm(x, gamma, beta);

    check conv_1d(x: [2, 2, 6] in (-1.0, 1.0), w: [2, 2, 3] in (-1.0, 1.0), b: [2] in (-1.0, 1.0)) => conv1d(x, w, Some(b), ConvOptions::new([2], [1], [1], 1));
    check conv_2d(x: [1, 2, 4, 4] in (-1.0, 1.0), w: [2, 2, 3, 2] in (-1.0, 1.0), b: [2] in (-1.0, 1.0)) => conv2d(x, w, Some(b), ConvOptions::new([2, 1], [1, 0], [1, 2], 1));
    check conv_2d_groups(x: [1, 4, 3, 3] in (-1.0, 1.0), w: [4, 2, 2, 2] in (-1.0, 1.0)) => conv2d(x, w, None, ConvOptions::new([1, 1], [0, 0], [1, 1], 2));
    check conv_3d(x: [1, 1, 3, 3, 3] in (-1.0, 1.0), w: [2, 1, 2, 2, 2] in (-1.0, 1.0), b: [2] in (-1.0, 1.0)) => conv3d(x, w, Some(b), ConvOptions::new([1, 1, 1], [0, 1, 0], [1, 1, 1], 1));
    check transposed_1d(x: [1, 2, 4] in (-1.0, 1.0), w: [2, 2, 3] in (-1.0, 1.0), b: [2] in (-1.0, 1.0)) => conv_transpose1d(x, w, Some(b), ConvTransposeOptions::new([2], [1], [1], [1], 1));
    check transposed_2d(x: [1, 2, 3, 3] in (-1.0, 1.0), w: [2, 1, 2, 2] in (-1.0, 1.0), b: [1] in (-1.0, 1.0)) => conv_transpose2d(x, w, Some(b), ConvTransposeOptions::new([2, 1], [0, 1], [1, 0], [1, 1], 1));
    check transposed_3d(x: [1, 1, 2, 2, 2] in (-1.0, 1.0), w: [1, 2, 2, 2, 2] in (-1.0, 1.0), b: [2] in (-1.0, 1.0)) => conv_transpose3d(x, w, Some(b), ConvTransposeOptions::new([1, 2, 1], [0, 0, 0], [0, 0, 0], [1, 1, 1], 1));
    check unfold_4d(x: [1, 2, 4, 4] in (-1.0, 1.0)) => nonlinear(unfold4d(x, [2, 3], UnfoldOptions::new([1, 1], [0, 0], [1, 1])));

    check avg_1d(x: [1, 2, 7] in (-1.0, 1.0)) => avg_pool1d(x.sin(), 3, 2, 1, true, false);
    check avg_2d(x: [1, 2, 5, 4] in (-1.0, 1.0)) => avg_pool2d(x.sin(), [3, 2], [2, 1], [1, 0], false, false);
    check max_1d(x: [1, 2, 7] in (-1.0, 1.0)) => max_pool1d(x.sin(), 3, 2, 1, 1, false);
    check max_2d(x: [2, 2, 5, 4] in (-1.0, 1.0)) => max_pool2d(x.sin(), [3, 2], [2, 1], [1, 0], [1, 1], false);
    check adaptive_1d(x: [1, 2, 7] in (-1.0, 1.0)) => adaptive_avg_pool1d(x.sin(), 3);
    check adaptive_2d(x: [1, 2, 5, 4] in (-1.0, 1.0)) => adaptive_avg_pool2d(x.sin(), [2, 3]);
    check nearest(x: [1, 1, 3, 4] in (-1.0, 1.0)) => interpolate(x.sin(), [5, 6], InterpolateOptions::new(InterpolateMode::Nearest));
    check_forward bilinear(x: [1, 1, 3, 4] in (-1.0, 1.0)) => interpolate(x.sin(), [5, 6], InterpolateOptions::new(InterpolateMode::Bilinear));
    check_forward bicubic(x: [1, 1, 4, 4] in (-1.0, 1.0)) => interpolate(x.sin(), [5, 6], InterpolateOptions::new(InterpolateMode::Bicubic));

    check deformed(
        x: [1, 2, 4, 4] in (-1.0, 1.0), offset: [1, 8, 3, 3] in (0.2, 0.8), w: [2, 2, 2, 2] in (-1.0, 1.0),
        mask: [1, 4, 3, 3] in (0.2, 1.0), b: [2] in (-1.0, 1.0)
    ) => deform_conv2d(x, offset, w, Some(mask), Some(b), DeformConvOptions::new([1, 1], [0, 0], [1, 1], 1, 1));
    check deformed_outside(
        x: [1, 2, 3, 3] in (-1.0, 1.0), offset: [1, 16, 4, 4] in (-2.7, -2.2), w: [1, 2, 2, 2] in (-1.0, 1.0)
    ) => deform_conv2d(x, offset, w, None, None, deformable(2));

    check attended(q: [1, 2, 3, 2] in (-1.0, 1.0), k: [1, 2, 4, 2] in (-1.0, 1.0), v: [1, 2, 4, 2] in (-1.0, 1.0), bias: [1, 2, 3, 4] in (-1.0, 1.0)) => {
        let options = AttentionModuleOptions { scale: Some(0.7), softcap: Some(3.0), is_causal: true };
        let mask = ints::<Back, 4>(&(0..24).map(|i| i64::from(i % 5 == 1)).collect::<Vec<_>>(), [1, 2, 3, 4]).equal_elem(1);
        attention(q, k, v, Some(mask), Some(bias), options)
    };
    check ctc(x: [4, 2, 3] in (-1.0, 1.0)) => {
        let logs = activation::log_softmax(x, 2);
        ctc_loss(logs, ints(&[1, 2, 2, 1], [2, 2]), ints(&[4, 3], [2]), ints(&[2, 1], [2]), 0)
    };
    check_forward rfft_both(x: [2, 8] in (-1.0, 1.0)) => {
        let (re, im) = rfft(x.sin(), 1, None);
        re.clone() * re + im.clone() * im
    };
    check_forward irfft_both(re: [2, 5] in (-1.0, 1.0), im: [2, 5] in (-1.0, 1.0)) => irfft(re.sin(), im, 1, None);
    check_first mean_of_a_wrapped_primitive(x: [3] in (-1.0, 1.0)) => wrap::<Back>(Back::float_mean(x.into_primitive().tensor()));
}
