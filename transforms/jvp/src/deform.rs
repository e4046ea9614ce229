//! Deformable convolutions: linear in input, weight, mask and bias; piecewise bilinear in the offsets.
//!
//! A sampling point reads x between the corners of a cell, so its slope along an axis is the value at the upper edge of
//! the cell minus that at the lower edge:
//!
//! ```text
//! ∂S(p)/∂p₀ = S(⌊p₀⌋ + 1, p₁) − S(⌊p₀⌋, p₁)
//! ```
//!
//! Both are the same operation with other offsets, where the tangent of the offset multiplies the mask. At cell edges
//! the slope is the right-sided one, and 0 for sampling points at −1, as in the reverse passes of `BurnT4a` and Flex.

use burn_backend::ops::{DeformConv2dBackward, DeformConvOptions};
use burn_backend::tensor::{BoolTensor, FloatTensor};
use burn_backend::{Backend, Scalar, Shape, Slice, TensorData, TensorMetadata};

use crate::backend::Jvp;
use crate::primitive::{JvpTensor, expanded, sum};
use crate::real::InnerFloat;

/// The operands in which the operation is multilinear.
pub(crate) struct Deformed<B: Backend> {
    pub(crate) x: JvpTensor<B>,
    pub(crate) offset: JvpTensor<B>,
    pub(crate) weight: JvpTensor<B>,
    pub(crate) mask: Option<JvpTensor<B>>,
    pub(crate) options: DeformConvOptions<2>,
}

/// Both components of the offsets, each in the shape of the mask.
fn components<B: Backend>(offset: &FloatTensor<B>) -> [InnerFloat<B>; 2] {
    let shape = offset.shape();
    let taps = Shape::new([shape[0], shape[1] / 2, 2, shape[2], shape[3]]);
    let pairs = B::float_reshape(offset.clone(), taps);
    [0, 1].map(|i| {
        let slices = [Slice::full(), Slice::full(), Slice::new(i, Some(i + 1), 1)];
        let one = B::float_slice(pairs.clone(), &slices);
        let shape = [shape[0], shape[1] / 2, shape[2], shape[3]];
        InnerFloat(B::float_reshape(one, Shape::new(shape)))
    })
}

/// Inverse of [`components`].
fn offsets<B: Backend>(components: [InnerFloat<B>; 2]) -> FloatTensor<B> {
    let [n, taps, h, w] = components[0].0.shape().dims();
    let single = components.map(|x| B::float_reshape(x.0, Shape::new([n, taps, 1, h, w])));
    B::float_reshape(B::float_cat(single.into(), 2), Shape::new([n, 2 * taps, h, w]))
}

impl<B: Backend> Deformed<B> {
    fn mask(&self) -> Option<FloatTensor<B>> {
        self.mask.as_ref().map(|x| x.primal.clone())
    }

    /// The mask; ones if there is none.
    fn full_mask(&self) -> FloatTensor<B> {
        self.mask().unwrap_or_else(|| {
            let offset = &self.offset.primal;
            let mut shape = offset.shape();
            shape[1] /= 2;
            B::float_ones(shape, &B::float_device(offset), offset.dtype().into())
        })
    }

    /// The operation on these operands.
    fn run(
        &self,
        x: &FloatTensor<B>,
        offset: &FloatTensor<B>,
        weight: &FloatTensor<B>,
        mask: Option<FloatTensor<B>>,
    ) -> FloatTensor<B> {
        let (x, offset, weight) = (x.clone(), offset.clone(), weight.clone());
        B::deform_conv2d(x, offset, weight, mask, None, self.options.clone())
    }

    /// Reverse pass of the operation, including the cotangent of the mask.
    fn back(
        &self,
        x: &FloatTensor<B>,
        offset: &FloatTensor<B>,
        weight: &FloatTensor<B>,
        mask: FloatTensor<B>,
        grad: &FloatTensor<B>,
    ) -> DeformConv2dBackward<B> {
        let (x, offset, weight) = (x.clone(), offset.clone(), weight.clone());
        let (grad, options) = (grad.clone(), self.options.clone());
        B::deform_conv2d_backward(x, offset, weight, Some(mask), None, grad, options)
    }

    /// Offsets with the given components at an edge of the cell: 0 for the lower edge, 1 for the upper edge.
    fn corner(&self, edges: [Option<f64>; 2]) -> FloatTensor<B> {
        let mut axes = components::<B>(&self.offset.primal).into_iter().zip(edges);
        let mut next = || match axes.next() {
            Some((x, Some(edge))) => x.map(B::float_floor) + edge,
            Some((x, None)) => x,
            None => unreachable!("two components"),
        };
        offsets([next(), next()])
    }

    /// Tangent of the offsets by component, 0 for sampling points at −1.
    fn moved(&self, tangent: &FloatTensor<B>) -> [InnerFloat<B>; 2] {
        let [a, b] = components::<B>(tangent);
        let [outside_a, outside_b] = self.one_outside();
        [a.without(outside_a), b.without(outside_b)]
    }

    /// Mask of the sampling points at −1, per component.
    fn one_outside(&self) -> [BoolTensor<B>; 2] {
        let offset = &self.offset.primal;
        let [_, channels, height, width] = offset.shape().dims();
        let [_, _, kernel_height, kernel_width] = self.weight.shape().dims();
        let [stride, padding, dilation] =
            [self.options.stride, self.options.padding, self.options.dilation];
        let taps = channels / 2;
        let place = |i: usize, tap: usize, t: usize| {
            let tap = tap % (kernel_height * kernel_width);
            let element = [tap / kernel_width, tap % kernel_width][i];
            let position = [t / width, t % width][i];
            (position * stride[i] + element * dilation[i]) as f64 - padding[i] as f64
        };
        let all = components::<B>(offset);
        let mut axis = 0;
        all.map(|x| {
            let area = height * width;
            let places: Vec<f64> =
                (0..taps * area).map(|k| place(axis, k / area, k % area)).collect();
            axis += 1;
            let places = TensorData::new(places, [1, taps, height, width]);
            let places = places.convert_dtype(offset.dtype());
            let bools = x.bools();
            let at = InnerFloat::<B>(B::float_from_data(places, &B::float_device(offset))) + x;
            B::float_equal_elem(at.0, Scalar::Float(-1.0), bools)
        })
    }
}

/// Edge `at` for component `i`, none for the other component.
fn edge(i: usize, at: f64) -> [Option<f64>; 2] {
    let mut edges = [None; 2];
    edges[i] = Some(at);
    edges
}

pub(crate) fn forward<B: Backend>(op: Deformed<B>, bias: Option<JvpTensor<B>>) -> JvpTensor<B> {
    let [x, offset, weight] = [&op.x, &op.offset, &op.weight].map(|x| &x.primal);
    let (bias, of_bias) = match bias {
        Some(bias) => (Some(bias.primal), bias.tangent),
        None => (None, None),
    };
    let primal = B::deform_conv2d(
        x.clone(),
        offset.clone(),
        weight.clone(),
        op.mask(),
        bias,
        op.options.clone(),
    );
    let of_mask = op.mask.as_ref().and_then(JvpTensor::tangent);
    let mut tangents = vec![
        op.x.tangent().map(|t| op.run(t, offset, weight, op.mask())),
        op.weight.tangent().map(|t| op.run(x, offset, t, op.mask())),
        of_mask.map(|t| op.run(x, offset, weight, Some(t.clone()))),
    ];
    if let Some(t) = op.offset.tangent() {
        for (i, t) in op.moved(t).into_iter().enumerate() {
            let mask = (t * InnerFloat(op.full_mask())).0;
            let at = |e| op.run(x, &op.corner(edge(i, e)), weight, Some(mask.clone()));
            tangents.push(Some(B::float_sub(at(1.0), at(0.0))));
        }
    }
    tangents.push(of_bias.map(|t| {
        let row = Shape::new([1, t.shape()[0], 1, 1]);
        expanded::<B>(B::float_reshape(t, row), primal.shape())
    }));
    JvpTensor { tangent: tangents.into_iter().fold(None, sum::<B>), primal }
}

/// Tangents of the cotangents, one per operand.
struct Tangents<B: Backend> {
    x: Option<FloatTensor<B>>,
    offset: Option<FloatTensor<B>>,
    weight: Option<FloatTensor<B>>,
    mask: Option<FloatTensor<B>>,
}

impl<B: Backend> Tangents<B> {
    fn add(
        &mut self,
        x: Option<FloatTensor<B>>,
        offset: Option<FloatTensor<B>>,
        weight: Option<FloatTensor<B>>,
        mask: Option<FloatTensor<B>>,
    ) {
        let Self { x: of_x, offset: of_offset, weight: of_weight, mask: of_mask } = self;
        let pairs = [(of_x, x), (of_offset, offset), (of_weight, weight), (of_mask, mask)];
        for (total, term) in pairs {
            *total = sum::<B>(total.take(), term);
        }
    }
}

/// Reverse pass with tangents. Each cotangent is linear in the operands it depends on, and in the offsets through the
/// edges of cells; mixed derivatives in both components use the four corners.
pub(crate) fn backward<B: Backend>(
    op: Deformed<B>,
    bias: Option<JvpTensor<B>>,
    grad: JvpTensor<B>,
) -> DeformConv2dBackward<Jvp<B>> {
    let [x, offset, weight] = [&op.x, &op.offset, &op.weight].map(|x| &x.primal);
    let g = &grad.primal;
    let bias = bias.map(|x| x.primal);
    let all = |grad: FloatTensor<B>| {
        let (x, offset, weight) = (x.clone(), offset.clone(), weight.clone());
        let (mask, options) = (op.mask(), op.options.clone());
        B::deform_conv2d_backward(x, offset, weight, mask, bias.clone(), grad, options)
    };
    let mut sums = Tangents::<B> { x: None, offset: None, weight: None, mask: None };
    let mut of_bias = None;
    let mask = op.full_mask();
    if let Some(t) = grad.tangent() {
        let d = all(t.clone());
        of_bias = d.bias_grad;
        sums.add(Some(d.x_grad), Some(d.offset_grad), Some(d.weight_grad), d.mask_grad);
    }
    if let Some(t) = op.x.tangent() {
        let d = op.back(t, offset, weight, mask.clone(), g);
        sums.add(None, Some(d.offset_grad), Some(d.weight_grad), d.mask_grad);
    }
    if let Some(t) = op.weight.tangent() {
        let d = op.back(x, offset, t, mask.clone(), g);
        sums.add(Some(d.x_grad), Some(d.offset_grad), None, d.mask_grad);
    }
    if let Some(t) = op.mask.as_ref().and_then(JvpTensor::tangent) {
        let d = op.back(x, offset, weight, t.clone(), g);
        sums.add(Some(d.x_grad), Some(d.offset_grad), Some(d.weight_grad), None);
    }
    if let Some(t) = op.offset.tangent() {
        let moved = op.moved(t);
        for (i, t) in moved.iter().enumerate() {
            let masked = (t.clone() * InnerFloat(mask.clone())).0;
            let at = |e| op.back(x, &op.corner(edge(i, e)), weight, masked.clone(), g);
            let (upper, lower) = (at(1.0), at(0.0));
            let slope = upper.mask_grad.zip(lower.mask_grad);
            let of_mask = slope.map(|(a, b)| (t.clone() * (InnerFloat(a) - InnerFloat(b))).0);
            let of_x = B::float_sub(upper.x_grad, lower.x_grad);
            let of_weight = B::float_sub(upper.weight_grad, lower.weight_grad);
            sums.add(Some(of_x), None, Some(of_weight), of_mask);
        }
        let value = |a, b| {
            let d = op.back(x, &op.corner([Some(a), Some(b)]), weight, mask.clone(), g);
            d.mask_grad.map(InnerFloat::<B>)
        };
        let corners = (value(1.0, 1.0), value(1.0, 0.0), value(0.0, 1.0), value(0.0, 0.0));
        if let (Some(both), Some(down), Some(right), Some(none)) = corners {
            let [a, b] = moved;
            let [outside_a, outside_b] = op.one_outside();
            let cross = (both - down - right + none) * InnerFloat(mask);
            let of_a = (b * cross.clone()).without(outside_a);
            let of_b = (a * cross).without(outside_b);
            sums.add(None, Some(offsets([of_a, of_b])), None, None);
        }
    }
    let d = all(g.clone());
    let pair = |primal, tangent| JvpTensor { primal, tangent };
    DeformConv2dBackward {
        x_grad: pair(d.x_grad, sums.x),
        offset_grad: pair(d.offset_grad, sums.offset),
        weight_grad: pair(d.weight_grad, sums.weight),
        mask_grad: d.mask_grad.map(|x| pair(x, sums.mask)),
        bias_grad: d.bias_grad.map(|x| pair(x, of_bias)),
    }
}
