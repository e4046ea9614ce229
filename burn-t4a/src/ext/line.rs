//! Names of Burn 0.21 for functions and types that differ between versions of Burn.

use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IntTensor};
use burn_backend::{Backend, DType, TensorData};

pub(crate) use crate::backend::primitive::dtype;
pub(crate) use crate::backend::saved::{ProductCounts, SavedProducts, product_key, try_product};
pub(crate) use crate::backend::{BurnT4a as Engine, T4aTensor};
pub(crate) use burn_backend::get_device_settings as device_settings;

#[cfg(feature = "flex")]
impl super::operation::Operations for burn_flex::Flex {}

#[cfg(feature = "ndarray")]
impl super::operation::Operations for burn_ndarray::NdArray {}

#[cfg(feature = "router")]
impl<R: burn_router::RunnerChannel> super::operation::Operations for burn_router::BackendRouter<R> {}

/// Returns true if the backend [`Engine`] is the engine.
pub(crate) fn is_engine() -> bool {
    true
}

/// Returns the engine tensor of a primitive.
pub(crate) fn as_engine(x: &FloatTensor<Engine>) -> Option<&T4aTensor> {
    Some(x)
}

/// Converts an engine tensor to a primitive.
pub(crate) fn from_engine(x: T4aTensor) -> FloatTensor<Engine> {
    x
}

pub(crate) fn float_device<B: Backend>(x: &FloatTensor<B>) -> Device<B> {
    B::float_device(x)
}

pub(crate) fn int_device<B: Backend>(x: &IntTensor<B>) -> Device<B> {
    B::int_device(x)
}

pub(crate) fn bool_device<B: Backend>(x: &BoolTensor<B>) -> Device<B> {
    B::bool_device(x)
}

pub(crate) fn scatter_add<B: Backend>(
    axis: usize,
    x: FloatTensor<B>,
    index: IntTensor<B>,
    y: FloatTensor<B>,
) -> FloatTensor<B> {
    B::float_scatter_add(axis, x, index, y)
}

pub(crate) fn data_dtype(data: &TensorData) -> DType {
    data.dtype
}

/// Implements a trait by its defaults for every backend without a tape.
macro_rules! without_tape {
    ($name:ident) => {
        impl $name for crate::backend::BurnT4a {}
        #[cfg(feature = "flex")]
        impl $name for burn_flex::Flex {}

        #[cfg(feature = "cubecl")]
        impl<R, F, I, BT> $name for burn_cubecl::CubeBackend<R, F, I, BT>
        where
            R: burn_cubecl::CubeRuntime,
            F: burn_cubecl::FloatElement,
            I: burn_cubecl::IntElement,
            BT: burn_cubecl::BoolElement,
        {
        }

        #[cfg(feature = "fusion")]
        impl<B> $name for burn_fusion::Fusion<B> where
            B: crate::ext::operation::Operations + burn_fusion::FusionBackend
        {
        }

        #[cfg(feature = "ndarray")]
        impl $name for burn_ndarray::NdArray {}

        #[cfg(feature = "router")]
        impl<R: burn_router::RunnerChannel> $name for burn_router::BackendRouter<R> {}
    };
}
pub(crate) use without_tape;
