//! Extrema and sorting: the tangent is gathered at the index of the value.

use burn_backend::tensor::{FloatTensor, IntTensor};
use burn_backend::{Backend, IntDType, Shape, TensorMetadata, get_device_settings};

use crate::primitive::JvpTensor;

/// Values whose indices along `dim` are returned by `f`.
pub(crate) fn picked<B: Backend>(
    x: JvpTensor<B>,
    dim: usize,
    f: impl FnOnce(FloatTensor<B>) -> (FloatTensor<B>, IntTensor<B>),
) -> (JvpTensor<B>, IntTensor<B>) {
    let (primal, places) = f(x.primal);
    let tangent = x.tangent.map(|t| B::float_gather(dim, t, places.clone()));
    (JvpTensor { primal, tangent }, places)
}

/// Values along `dim`; the indices are computed only if there is a tangent.
pub(crate) fn along<B: Backend>(
    x: JvpTensor<B>,
    dim: usize,
    values: impl FnOnce(FloatTensor<B>, usize) -> FloatTensor<B>,
    with_places: impl FnOnce(FloatTensor<B>, usize, IntDType) -> (FloatTensor<B>, IntTensor<B>),
) -> JvpTensor<B> {
    if !x.moves() {
        return JvpTensor::constant(values(x.primal, dim));
    }
    let ints = get_device_settings::<B>(&B::float_device(&x.primal)).int_dtype;
    picked(x, dim, |x| with_places(x, dim, ints)).0
}

/// Extremum over all elements, `[1]`.
pub(crate) fn over_all<B: Backend>(
    x: JvpTensor<B>,
    value: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>,
    along: impl FnOnce(JvpTensor<B>, usize) -> JvpTensor<B>,
) -> JvpTensor<B> {
    if !x.moves() {
        return JvpTensor::constant(value(x.primal));
    }
    let flat = Shape::new([x.shape().num_elements()]);
    along(x.linear(|x| B::float_reshape(x, flat.clone())), 0)
}
