//! Tangents of cumulative operations and products.

use burn_backend::{Backend, Scalar, Shape, Slice, TensorMetadata, get_device_settings};

use crate::real::InnerFloat;

/// Elements `start..end` along an axis.
fn part<B: Backend>(x: &InnerFloat<B>, dim: usize, start: usize, end: usize) -> InnerFloat<B> {
    let mut slices = vec![Slice::full(); dim + 1];
    slices[dim] = Slice::new(start as isize, Some(end as isize), 1);
    InnerFloat(B::float_slice(x.0.clone(), &slices))
}

/// Tangent of y_i = x_1 … x_i, exact also for zero elements.
///
/// A prefix sum over dual numbers, (p, ṗ)(q, q̇) = (p q, ṗ q + p q̇), that doubles the span in every round: 3 products
/// and a sum of the size of x in each of ⌈log₂ n⌉ rounds.
pub(crate) fn cumprod_tangent<B: Backend>(
    t: InnerFloat<B>,
    x: InnerFloat<B>,
    dim: usize,
) -> InnerFloat<B> {
    let n = x.0.shape()[dim];
    let (mut p, mut q) = (x, t);
    let mut span = 1;
    while span < n {
        let late = |x: &InnerFloat<B>| part(x, dim, span, n);
        let early = |x: &InnerFloat<B>| part(x, dim, 0, n - span);
        let tangent = early(&q) * late(&p) + early(&p) * late(&q);
        let value = early(&p) * late(&p);
        let head = |x: &InnerFloat<B>| part(x, dim, 0, span).0;
        let joined = |x: &InnerFloat<B>, rest: InnerFloat<B>| {
            InnerFloat(B::float_cat(vec![head(x), rest.0], dim))
        };
        (p, q) = (joined(&p, value), joined(&q, tangent));
        span *= 2;
    }
    q
}

/// Tangent of the product along an axis: dual numbers are multiplied pairwise until one is left. For an empty axis the
/// product is 1 and the tangent is zero.
pub(crate) fn product_tangent<B: Backend>(
    t: InnerFloat<B>,
    x: InnerFloat<B>,
    dim: usize,
) -> InnerFloat<B> {
    let (mut p, mut q) = (x, t);
    loop {
        let n = p.0.shape()[dim];
        if n == 0 {
            let mut shape = p.0.shape();
            shape[dim] = 1;
            let device = B::float_device(&p.0);
            return InnerFloat(B::float_zeros(shape, &device, p.0.dtype().into()));
        }
        if n == 1 {
            return q;
        }
        let half = n / 2;
        let first = |x: &InnerFloat<B>| part(x, dim, 0, half);
        let second = |x: &InnerFloat<B>| part(x, dim, half, 2 * half);
        let mut tangent = first(&q) * second(&p) + first(&p) * second(&q);
        let mut value = first(&p) * second(&p);
        if n % 2 == 1 {
            let last = |x: &InnerFloat<B>| part(x, dim, n - 1, n).0;
            tangent = InnerFloat(B::float_cat(vec![tangent.0, last(&q)], dim));
            value = InnerFloat(B::float_cat(vec![value.0, last(&p)], dim));
        }
        (p, q) = (value, tangent);
    }
}

/// Tangent of a cumulative extremum: the tangent at the last index that attains it, as in Burn's `Autodiff`.
pub(crate) fn extremum_tangent<B: Backend>(
    t: InnerFloat<B>,
    x: InnerFloat<B>,
    y: InnerFloat<B>,
    dim: usize,
) -> InnerFloat<B> {
    let shape = x.0.shape();
    let device = B::float_device(&x.0);
    let settings = get_device_settings::<B>(&device);
    let mut axis = vec![1; shape.num_dims()];
    axis[dim] = shape[dim];
    let place = B::int_arange(0..shape[dim] as i64, &device, settings.int_dtype);
    let place = B::int_expand(B::int_reshape(place, Shape::from(axis)), shape);
    let elsewhere = B::float_not_equal(x.0, y.0, settings.bool_dtype);
    let place = B::int_cummax(B::int_mask_fill(place, elsewhere, Scalar::Int(0)), dim);
    t.map(|t| B::float_gather(dim, t, place))
}
