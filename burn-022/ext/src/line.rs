//! Names of Burn 0.22 for functions and types that differ between versions of Burn.

use std::any::{Any, TypeId};

use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IndexingUpdateOp, IntTensor};
use burn_backend::{Backend, DType as BurnDType, TensorData, TensorMetadata};
use burn_t4a_022::engine_dtype;
use t4a_tensor::DType;

use crate::boundary::accept;

pub(crate) use burn_backend::get_or_init_device_settings as device_settings;
pub(crate) use burn_dispatch::backends::Flex as Engine;
pub(crate) use burn_t4a_022::T4aTensor;
pub(crate) use burn_t4a_022::saved::{ProductCounts, SavedProducts, product_key, try_product};

#[cfg(feature = "ndarray")]
#[allow(deprecated)]
impl crate::operation::Operations for burn_dispatch::backends::NdArray {}

/// Returns true if the backend [`Engine`] is the engine, that is, if `burn-flex` is patched.
pub(crate) fn is_engine() -> bool {
    TypeId::of::<FloatTensor<Engine>>() == TypeId::of::<T4aTensor>()
}

/// Returns the engine tensor of a primitive.
pub(crate) fn as_engine(x: &FloatTensor<Engine>) -> Option<&T4aTensor> {
    let x: &dyn Any = x;
    x.downcast_ref()
}

/// Converts an engine tensor to a primitive.
pub(crate) fn from_engine(x: T4aTensor) -> FloatTensor<Engine> {
    let mut x = Some(x);
    let x: &mut dyn Any = &mut x;
    let x = x.downcast_mut::<Option<FloatTensor<Engine>>>().and_then(Option::take);
    x.unwrap_or_else(|| unreachable!("tensors of one backend are of one type"))
}

#[track_caller]
pub(crate) fn dtype(dtype: BurnDType) -> DType {
    accept(engine_dtype(dtype))
}

pub(crate) fn float_device<B: Backend>(x: &FloatTensor<B>) -> Device<B> {
    x.device()
}

pub(crate) fn int_device<B: Backend>(x: &IntTensor<B>) -> Device<B> {
    x.device()
}

pub(crate) fn bool_device<B: Backend>(x: &BoolTensor<B>) -> Device<B> {
    x.device()
}

pub(crate) fn scatter_add<B: Backend>(
    axis: usize,
    x: FloatTensor<B>,
    index: IntTensor<B>,
    y: FloatTensor<B>,
) -> FloatTensor<B> {
    B::float_scatter(axis, x, index, y, IndexingUpdateOp::Add)
}

pub(crate) fn data_dtype(data: &TensorData) -> BurnDType {
    data.dtype()
}
