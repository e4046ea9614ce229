//! The tensor primitive of the backend, used for float, integer and boolean tensors alike.
//!
//! Invariant: the dtype is one that Burn supports (no complex dtypes), and `store` is `Native` unless the dtype is
//! `bool`. Booleans are always one byte of 0 or 1 in memory; `store` is the boolean dtype that Burn sees. It is
//! inherited by results and applied by [`try_into_data`](T4aTensor::try_into_data).

use burn_backend::{BoolDType, DType as BurnDType, IntDType, Scalar, Shape, TensorMetadata};
use t4a_tensor::any::Number;
use t4a_tensor::{AnyTensor, DType, Result, Route, TensorError};

#[cfg(burn_line = "0.22")]
use super::T4aDevice;
use crate::boundary::accept;

/// A tensor of the backend. Cloning shares the memory.
///
#[cfg_attr(
    burn_line = "0.21",
    doc = "
```
use burn::tensor::{BoolDType, TensorData};
use burn_t4a::route::{Path, Route};
use burn_t4a::{T4aTensor, burn_dtype, engine_dtype};

let data = TensorData::from([3.0f32, 1.0]);
let x = T4aTensor::try_from_data(data.clone())?.into_owned()?;
assert_eq!(x.any().dtype(), engine_dtype(data.dtype)?);
assert_eq!(burn_dtype(x.any().dtype(), BoolDType::Native), Some(data.dtype));
// To the engine and back, marked as computed on the host.
let x = T4aTensor::from_any(x.into_any())?.with_route(Route::native(Path::HostData));
assert_eq!(x.route().path, Path::HostData);
x.try_into_data()?.assert_eq(&data, true);
# Ok::<(), burn_t4a::ext::operation::TensorError>(())
```"
)]
#[derive(Clone)]
pub struct T4aTensor {
    any: AnyTensor,
    store: BoolDType,
}

impl T4aTensor {
    /// Wraps an engine tensor, without a copy.
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] for complex dtypes, which Burn does not support.
    pub fn from_any(any: AnyTensor) -> Result<Self> {
        let dtype = any.dtype();
        if burn_dtype(dtype, BoolDType::Native).is_none() {
            return Err(TensorError::DTypeUnsupported {
                op: "T4aTensor",
                dtype,
                expected: "a float, an integer or bool",
            });
        }
        Ok(Self { any, store: BoolDType::Native })
    }

    /// Returns the engine tensor by reference.
    #[inline]
    pub fn any(&self) -> &AnyTensor {
        &self.any
    }

    /// Returns the engine tensor by value; a buffer with one handle stays unique.
    #[inline]
    pub fn into_any(self) -> AnyTensor {
        self.any
    }

    /// Route by which this tensor was computed: the kernel, and the reason for a fallback.
    #[inline]
    pub fn route(&self) -> Route {
        self.any.route()
    }

    /// Replaces the route, for operations computed through host data.
    #[inline]
    #[must_use]
    pub fn with_route(self, route: Route) -> Self {
        Self { any: self.any.with_route(route), ..self }
    }

    /// Boolean dtype under which Burn sees this tensor.
    #[inline]
    pub(crate) fn store(&self) -> BoolDType {
        self.store
    }

    /// Replaces the boolean dtype under which Burn sees this tensor.
    #[inline]
    pub(crate) fn with_store(mut self, store: BoolDType) -> Self {
        self.store = store;
        self
    }

    /// Applies an engine operation that keeps the boolean store; panics on its errors.
    #[inline]
    #[track_caller]
    pub(crate) fn then(self, f: impl FnOnce(AnyTensor) -> Result<AnyTensor>) -> Self {
        Self { any: accept(f(self.any)), store: self.store }
    }
}

/// Wraps the result of an engine operation, booleans in the native store; panics on its errors.
#[inline]
#[track_caller]
pub(crate) fn wrap(result: Result<AnyTensor>) -> T4aTensor {
    let any = accept(result);
    debug_assert!(burn_dtype(any.dtype(), BoolDType::Native).is_some());
    T4aTensor { any, store: BoolDType::Native }
}

/// Wraps values and their indices, the latter cast to the requested integer dtype.
#[track_caller]
pub(crate) fn with_indices(
    pair: Result<(AnyTensor, AnyTensor)>,
    indices: IntDType,
) -> (T4aTensor, T4aTensor) {
    let (values, at) = accept(pair);
    (wrap(Ok(values)), wrap(at.cast(dtype(indices))))
}

/// Converts a scalar of Burn to the engine's.
#[inline]
pub(crate) fn number(value: Scalar) -> Number {
    match value {
        Scalar::Float(v) => Number::Float(v),
        Scalar::Int(v) => Number::Int(v),
        Scalar::UInt(v) => Number::UInt(v),
        Scalar::Bool(v) => Number::Bool(v),
    }
}

/// Converts a dtype of Burn to the engine's; panics for quantized dtypes.
#[inline]
#[track_caller]
pub(crate) fn dtype(dtype: impl Into<BurnDType>) -> DType {
    accept(engine_dtype(dtype.into()))
}

impl TensorMetadata for T4aTensor {
    #[cfg(burn_line = "0.22")]
    type Device = T4aDevice;

    #[cfg(burn_line = "0.22")]
    fn device(&self) -> T4aDevice {
        T4aDevice
    }

    #[cfg(burn_line = "0.22")]
    fn can_mut(&self) -> bool {
        !self.any.buffer().is_shared()
    }

    fn dtype(&self) -> BurnDType {
        burn_dtype(self.any.dtype(), self.store).expect("a primitive has a dtype of Burn")
    }

    fn shape(&self) -> Shape {
        // Burn reads the shape several times per operation, so short shapes are built without an iterator.
        match *self.any.shape() {
            [a] => Shape::new([a]),
            [a, b] => Shape::new([a, b]),
            [a, b, c] => Shape::new([a, b, c]),
            [a, b, c, d] => Shape::new([a, b, c, d]),
            ref dims => dims.iter().copied().collect(),
        }
    }

    fn rank(&self) -> usize {
        self.any.rank()
    }
}

/// Returns Burn's dtype for an engine dtype, or `None` for complex dtypes. Inverse of [`engine_dtype`].
pub fn burn_dtype(dtype: DType, store: BoolDType) -> Option<BurnDType> {
    Some(match dtype {
        DType::F64 => BurnDType::F64,
        DType::F32 => BurnDType::F32,
        DType::F16 => BurnDType::F16,
        DType::BF16 => BurnDType::BF16,
        DType::I64 => BurnDType::I64,
        DType::I32 => BurnDType::I32,
        DType::I16 => BurnDType::I16,
        DType::I8 => BurnDType::I8,
        DType::U64 => BurnDType::U64,
        DType::U32 => BurnDType::U32,
        DType::U16 => BurnDType::U16,
        DType::U8 => BurnDType::U8,
        DType::Bool => BurnDType::Bool(store),
        _ => return None,
    })
}

/// The engine's dtype for a dtype of Burn. `Flex32` is stored as `f32`.
///
/// # Errors
/// [`TensorError::Value`] for quantized dtypes, which have a primitive of their own (`T4aQTensor`).
pub fn engine_dtype(dtype: BurnDType) -> Result<DType> {
    Ok(match dtype {
        BurnDType::F64 => DType::F64,
        BurnDType::F32 | BurnDType::Flex32 => DType::F32,
        BurnDType::F16 => DType::F16,
        BurnDType::BF16 => DType::BF16,
        BurnDType::I64 => DType::I64,
        BurnDType::I32 => DType::I32,
        BurnDType::I16 => DType::I16,
        BurnDType::I8 => DType::I8,
        BurnDType::U64 => DType::U64,
        BurnDType::U32 => DType::U32,
        BurnDType::U16 => DType::U16,
        BurnDType::U8 => DType::U8,
        BurnDType::Bool(_) => DType::Bool,
        BurnDType::QFloat(_) => {
            return Err(TensorError::value("dtype", "quantized data is not a dense tensor"));
        }
    })
}

impl std::fmt::Debug for T4aTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.any.fmt(f)
    }
}
