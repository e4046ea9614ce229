//! Operations of neural-network modules.

use burn_backend::Backend;
use burn_backend::ops::*;
use burn_tensor::{Bool, Int, Tensor};

use crate::rows::{p, rows, t};

/// Result of the forward pass, cotangents of input and weights, and cotangent of the bias.
type Four<B, const D: usize> = (Vec<Tensor<B, D>>, Tensor<B, 1>);

/// All rules of a convolution; `y` has the shape of the result.
macro_rules! convolution {
    ($d:literal; $x:ident, $w:ident, $b:ident, $y:ident, $options:expr;
     $forward:ident, $of_x:ident, $of_w:ident, $of_b:ident) => {{
        let (x, w, b, y) = (p($x), p($w), p($b), p($y));
        let o = $options;
        let all = vec![
            t(B::$forward(x.clone(), w.clone(), Some(b.clone()), o.clone())),
            t(B::$forward(x.clone(), w.clone(), None, o.clone())),
            t(B::$of_x(x.clone(), w.clone(), y.clone(), o.clone())),
            t(B::$of_w(x.clone(), w, y.clone(), o)),
        ];
        (all, t(B::$of_b(x, b, y)))
    }};
}

/// All rules of a transposed convolution.
macro_rules! transposed {
    ($x:ident, $w:ident, $b:ident, $y:ident, $options:expr;
     $forward:ident, $of_x:ident, $of_w:ident, $of_b:ident) => {{
        let (x, w, b, y) = (p($x), p($w), p($b), p($y));
        let o = $options;
        let all = vec![
            t(B::$forward(x.clone(), w.clone(), Some(b.clone()), o.clone())),
            t(B::$of_x(w.clone(), y.clone(), o.clone())),
            t(B::$of_w(x.clone(), w, y.clone(), o)),
        ];
        (all, t(B::$of_b(x, b, y)))
    }};
}

rows! {
    conv1(
        x: Tensor<B, 3> = [2, 4, 5], w: Tensor<B, 3> = [6, 2, 3], b: Tensor<B, 1> = [6], y: Tensor<B, 3> = [2, 6, 3]
    ) -> Four<B, 3> {
        convolution!(3; x, w, b, y, ConvOptions::new([2], [1], [1], 2);
            conv1d, conv1d_x_backward, conv1d_weight_backward, conv1d_bias_backward)
    }
    conv2(
        x: Tensor<B, 4> = [2, 4, 5, 4], w: Tensor<B, 4> = [6, 2, 3, 2], b: Tensor<B, 1> = [6],
        y: Tensor<B, 4> = [2, 6, 3, 3]
    ) -> Four<B, 4> {
        convolution!(4; x, w, b, y, ConvOptions::new([2, 1], [1, 0], [1, 1], 2);
            conv2d, conv2d_x_backward, conv2d_weight_backward, conv2d_bias_backward)
    }
    conv3(
        x: Tensor<B, 5> = [1, 2, 3, 3, 3], w: Tensor<B, 5> = [2, 2, 2, 2, 2], b: Tensor<B, 1> = [2],
        y: Tensor<B, 5> = [1, 2, 2, 2, 2]
    ) -> Four<B, 5> {
        convolution!(5; x, w, b, y, ConvOptions::new([1; 3], [0; 3], [1; 3], 1);
            conv3d, conv3d_x_backward, conv3d_weight_backward, conv3d_bias_backward)
    }
    conv_transpose1(
        x: Tensor<B, 3> = [2, 4, 3], w: Tensor<B, 3> = [4, 3, 3], b: Tensor<B, 1> = [6], y: Tensor<B, 3> = [2, 6, 6]
    ) -> Four<B, 3> {
        transposed!(x, w, b, y, ConvTransposeOptions::new([2], [1], [1], [1], 2);
            conv_transpose1d, conv_transpose1d_x_backward, conv_transpose1d_weight_backward,
            conv_transpose1d_bias_backward)
    }
    conv_transpose2(
        x: Tensor<B, 4> = [2, 4, 3, 2], w: Tensor<B, 4> = [4, 3, 2, 2], b: Tensor<B, 1> = [6],
        y: Tensor<B, 4> = [2, 6, 4, 3]
    ) -> Four<B, 4> {
        transposed!(x, w, b, y, ConvTransposeOptions::new([1; 2], [0; 2], [0; 2], [1; 2], 2);
            conv_transpose2d, conv_transpose2d_x_backward, conv_transpose2d_weight_backward,
            conv_transpose2d_bias_backward)
    }
    conv_transpose3(
        x: Tensor<B, 5> = [1, 2, 2, 2, 2], w: Tensor<B, 5> = [2, 2, 2, 2, 2], b: Tensor<B, 1> = [2],
        y: Tensor<B, 5> = [1, 2, 3, 3, 3]
    ) -> Four<B, 5> {
        transposed!(x, w, b, y, ConvTransposeOptions::new([1; 3], [0; 3], [0; 3], [1; 3], 1);
            conv_transpose3d, conv_transpose3d_x_backward, conv_transpose3d_weight_backward,
            conv_transpose3d_bias_backward)
    }
    deformable(
        x: Tensor<B, 4> = [2, 4, 3, 3], o: Tensor<B, 4> = [2, 16, 2, 2], w: Tensor<B, 4> = [2, 2, 2, 2],
        m: Tensor<B, 4> = [2, 8, 2, 2], b: Tensor<B, 1> = [2]
    ) -> (Vec<Tensor<B, 4>>, Vec<Tensor<B, 1>>) {
        let options = || DeformConvOptions::new([1; 2], [0; 2], [1; 2], 2, 2);
        let (x, o, w, m, b) = (p(x), p(o * 0.3), p(w), p(m), p(b));
        let y = B::deform_conv2d(x.clone(), o.clone(), w.clone(), Some(m.clone()), Some(b.clone()), options());
        let plain = B::deform_conv2d(x.clone(), o.clone(), w.clone(), None, None, options());
        let back = B::deform_conv2d_backward(x, o, w, Some(m), Some(b), y.clone(), options());
        let all = [Some(y), Some(plain), Some(back.x_grad), Some(back.offset_grad), Some(back.weight_grad), back.mask_grad];
        (all.into_iter().flatten().map(t).collect(), back.bias_grad.into_iter().map(t).collect())
    }
    pools1(x: Tensor<B, 3> = [2, 2, 6], y: Tensor<B, 3> = [2, 2, 3]) -> Vec<Tensor<B, 3>> {
        let (x, y) = (p(x), p(y));
        let found = B::max_pool1d_with_indices(x.clone(), 2, 2, 0, 1, false);
        let back = B::max_pool1d_with_indices_backward(x.clone(), 2, 2, 0, 1, false, y.clone(), found.indices);
        [
            B::avg_pool1d(x.clone(), 3, 2, 1, false, false), B::max_pool1d(x.clone(), 2, 2, 0, 1, false), found.output,
            back.x_grad, B::avg_pool1d_backward(x.clone(), y.clone(), 2, 2, 0, true, false),
            B::adaptive_avg_pool1d(x.clone(), 4), B::adaptive_avg_pool1d_backward(x, y),
        ].into_iter().map(t).collect()
    }
    pools2(x: Tensor<B, 4> = [2, 2, 4, 6], y: Tensor<B, 4> = [2, 2, 2, 3]) -> Vec<Tensor<B, 4>> {
        let (x, y) = (p(x), p(y));
        let two = [2, 2];
        let found = B::max_pool2d_with_indices(x.clone(), two, two, [0, 0], [1, 1], false);
        let back =
            B::max_pool2d_with_indices_backward(x.clone(), two, two, [0, 0], [1, 1], false, y.clone(), found.indices);
        [
            B::avg_pool2d(x.clone(), [3, 2], two, [1, 0], false, false),
            B::max_pool2d(x.clone(), two, two, [0, 0], [1, 1], false), found.output, back.x_grad,
            B::avg_pool2d_backward(x.clone(), y.clone(), two, two, [0, 0], true, false),
            B::adaptive_avg_pool2d(x.clone(), [3, 2]), B::adaptive_avg_pool2d_backward(x, y),
        ].into_iter().map(t).collect()
    }
    interpolated(x: Tensor<B, 4> = [2, 2, 3, 4], y: Tensor<B, 4> = [2, 2, 5, 6]) -> Vec<Tensor<B, 4>> {
        let of = |mode: InterpolateMode| InterpolateOptions::new(mode);
        let (x, y) = (p(x), p(y));
        let grid = B::float_clamp(
            B::float_reshape(B::float_slice(y.clone(), &[burn_backend::Slice::full()]), [2, 5, 6, 2].into()),
            (-1.0).into(),
            1.0.into(),
        );
        [
            B::interpolate(x.clone(), [5, 6], of(InterpolateMode::Bilinear)),
            B::interpolate(x.clone(), [5, 6], of(InterpolateMode::Nearest)),
            B::interpolate_backward(x.clone(), y, [5, 6], of(InterpolateMode::Nearest)),
            B::float_grid_sample_2d(x, grid, GridSampleOptions::default()),
        ].into_iter().map(t).collect()
    }
    windows(x: Tensor<B, 4> = [2, 2, 4, 4]) -> (Tensor<B, 3>, Tensor<B, 3>) {
        let x = p(x);
        let plain = UnfoldOptions::new([1, 2], [0, 0], [1, 1]);
        let padded = UnfoldOptions::new([1, 2], [1, 0], [1, 1]);
        (t(B::unfold4d(x.clone(), [2, 2], plain)), t(B::unfold4d(x, [2, 2], padded)))
    }
    attended(
        q: Tensor<B, 4> = [2, 2, 3, 4], k: Tensor<B, 4> = [2, 2, 5, 4], v: Tensor<B, 4> = [2, 2, 5, 3],
        m: Tensor<B, 4, Bool> = [1, 2, 3, 5], b: Tensor<B, 4> = [2, 1, 3, 5]
    ) -> Vec<Tensor<B, 4>> {
        let options = AttentionModuleOptions { is_causal: true, ..Default::default() };
        let (q, k, v, b) = (p(q), p(k), p(v), p(b));
        let m = m.into_primitive();
        vec![
            t(B::attention(q.clone(), k.clone(), v.clone(), None, None, options)),
            t(B::attention(q, k, v, Some(m), Some(b), Default::default())),
        ]
    }
    fourier(x: Tensor<B, 2> = [2, 8], y: Tensor<B, 2> = [2, 5]) -> Vec<Tensor<B, 2>> {
        let (x, y) = (p(x), p(y));
        let (re, im) = B::rfft(x, 1, None);
        vec![t(re.clone()), t(im), t(B::irfft(re, y, 1, None))]
    }
    embedded(
        w: Tensor<B, 2> = [3, 4], i: Tensor<B, 2, Int> = [2, 5], y: Tensor<B, 3> = [2, 5, 4]
    ) -> (Tensor<B, 3>, Tensor<B, 2>) {
        let i = i.into_primitive();
        (t(B::embedding(p(w.clone()), i.clone())), t(B::embedding_backward(p(w), p(y), i)))
    }
    linear(
        x: Tensor<B, 3> = [2, 4, 3], w: Tensor<B, 2> = [3, 2], b: Tensor<B, 1> = [2], y: Tensor<B, 3> = [2, 4, 2]
    ) -> (Vec<Tensor<B, 3>>, Tensor<B, 2>, Tensor<B, 1>) {
        let (x, w, b, y) = (p(x), p(w), p(b), p(y));
        let all = vec![
            t(B::linear(x.clone(), w.clone(), Some(b))), t(B::linear(x.clone(), w.clone(), None)),
            t(B::linear_x_backward(w, y.clone())),
        ];
        (all, t(B::linear_weight_backward(x, y.clone())), t(B::linear_bias_backward(y)))
    }
    linear_of_rows(x: Tensor<B, 2> = [4, 3], w: Tensor<B, 2> = [3, 2], b: Tensor<B, 1> = [2]) -> Tensor<B, 2> {
        t(B::linear(p(x), p(w), Some(p(b))))
    }
    layer_norms(x: Tensor<B, 3> = [2, 3, 4], g: Tensor<B, 1> = [4], b: Tensor<B, 1> = [4]) -> Vec<Tensor<B, 3>> {
        let (x, g, b) = (p(x), p(g), p(b));
        vec![t(B::layer_norm(x.clone(), g.clone(), Some(b), 1e-5)), t(B::layer_norm(x, g, None, 1e-5))]
    }
    ctc(x: Tensor<B, 3> = [5, 2, 4], i: Tensor<B, 2, Int> = [2, 2]) -> Tensor<B, 1> {
        let device = x.device();
        let x = burn_tensor::activation::log_softmax(x, 2);
        let ones = Tensor::<B, 1, Int>::ones([2], &device);
        let (lengths, targets) = ((ones.clone() * 5).into_primitive(), (ones * 2).into_primitive());
        t(B::ctc_loss(p(x), (i + 1).into_primitive(), lengths, targets, 0))
    }
}
