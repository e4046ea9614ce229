//! Operations on whole tensors of 16-bit floats in `f32`: operands are widened, the result is rounded once, and its
//! route has the reason `DtypePromoted`.
//!
//! The compute type of an element type is [`Numeric::Acc`](t4a_algebra::Numeric) everywhere. Elementwise kernels
//! ([`Promoted`](crate::loops::kernel::Promoted)), reductions and matrix products widen as they read; the operations
//! here read their operands several times.

use super::AnyTensor;
use crate::Element;
use crate::dtype::DType;
use crate::error::Result;
use crate::route::Route;
use crate::tensor::Tensor;

/// Binds `$t` to the type that a float dtype is computed in.
macro_rules! computed_in {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {{
        let dtype: $crate::DType = $dtype;
        $crate::with_dtype!(dtype.accumulator(), $t in [float] => $body, else => {
            Err(unsupported($op, dtype, "float"))
        })
    }};
}
pub(super) use computed_in;

/// The tensor in the type that its dtype is computed in.
pub(super) fn wide<T: Element>(x: &AnyTensor) -> Result<Tensor<T>> {
    x.clone().cast(T::DTYPE)?.into_typed()
}

/// The result under the dtype of the operands.
pub(super) fn narrow<T: Element>(result: Tensor<T>, dtype: DType) -> Result<AnyTensor> {
    let promoted = Route::promoted(result.route().path, dtype != T::DTYPE);
    Ok(AnyTensor::from(result).cast(dtype)?.with_route(promoted))
}
