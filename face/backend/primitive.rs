//! The tensor primitive: float, int and bool at once.
//!
//! Invariant: the dtype is one that Burn has (no complex), and `store` is `Native` unless the
//! dtype is `bool`. Booleans are one byte of 0 or 1 whatever their store: the store is a tag that
//! [`into_data`](T4aTensor::try_into_data) honours and results inherit.

use burn_backend::{BoolDType, DType as BurnDType, IntDType, Scalar, Shape, TensorMetadata};
use t4a_tensor::any::Number;
use t4a_tensor::{AnyTensor, DType, Result, Route, TensorError};

#[cfg(burn_line = "0.22")]
use super::T4aDevice;
use crate::boundary::accept;

/// A tensor of the backend. Cloning shares the memory.
#[derive(Clone)]
pub struct T4aTensor {
    any: AnyTensor,
    store: BoolDType,
}

impl T4aTensor {
    /// Wraps an engine tensor. No copy.
    ///
    /// # Errors
    /// [`TensorError::DTypeUnsupported`] for complex elements, which Burn does not have.
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

    /// The engine tensor.
    #[inline]
    pub fn any(&self) -> &AnyTensor {
        &self.any
    }

    /// The engine tensor, by value: keeps a unique buffer unique.
    #[inline]
    pub fn into_any(self) -> AnyTensor {
        self.any
    }

    /// How this tensor was computed.
    #[inline]
    pub fn route(&self) -> Route {
        self.any.route()
    }

    /// The same tensor with another route, for what runs through host data.
    #[inline]
    #[must_use]
    pub fn with_route(self, route: Route) -> Self {
        Self { any: self.any.with_route(route), ..self }
    }

    /// The store in which Burn sees the booleans.
    #[inline]
    pub(crate) fn store(&self) -> BoolDType {
        self.store
    }

    /// The same booleans under another store tag.
    #[inline]
    pub(crate) fn with_store(mut self, store: BoolDType) -> Self {
        self.store = store;
        self
    }

    /// Another tensor of the same kind, computed from this one.
    #[inline]
    #[track_caller]
    pub(crate) fn then(self, f: impl FnOnce(AnyTensor) -> Result<AnyTensor>) -> Self {
        Self { any: accept(f(self.any)), store: self.store }
    }
}

/// The result of an engine operation: booleans in the native store.
#[inline]
#[track_caller]
pub(crate) fn wrap(result: Result<AnyTensor>) -> T4aTensor {
    let any = accept(result);
    debug_assert!(burn_dtype(any.dtype(), BoolDType::Native).is_some());
    T4aTensor { any, store: BoolDType::Native }
}

/// Values and their indices, the indices in the dtype asked for.
#[track_caller]
pub(crate) fn with_indices(
    pair: Result<(AnyTensor, AnyTensor)>,
    indices: IntDType,
) -> (T4aTensor, T4aTensor) {
    let (values, at) = accept(pair);
    (wrap(Ok(values)), wrap(at.cast(dtype(indices))))
}

/// A scalar argument.
#[inline]
pub(crate) fn number(value: Scalar) -> Number {
    match value {
        Scalar::Float(v) => Number::Float(v),
        Scalar::Int(v) => Number::Int(v),
        Scalar::UInt(v) => Number::UInt(v),
        Scalar::Bool(v) => Number::Bool(v),
    }
}

/// The engine's dtype for a dtype argument.
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
        // Burn asks for the shape several times per operation, and collecting it takes a while.
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

/// Burn's dtype for one of the engine, where there is one; the inverse of [`engine_dtype`].
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
/// [`TensorError::Value`] for quantized dtypes, which live in a primitive of their own.
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
