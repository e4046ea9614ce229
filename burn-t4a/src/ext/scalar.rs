//! The single element of a tensor, without rounding.

use burn_backend::{Backend, Element};
use burn_tensor::{BasicOps, Bool, Float, Int, Tensor};

/// Kind of a tensor with the type of Rust that holds every element of it.
pub trait ScalarKind<B: Backend>: BasicOps<B> {
    /// `f64`, `i64` or `bool`.
    type Number: Element;
}

impl<B: Backend> ScalarKind<B> for Float {
    type Number = f64;
}

impl<B: Backend> ScalarKind<B> for Int {
    type Number = i64;
}

impl<B: Backend> ScalarKind<B> for Bool {
    type Number = bool;
}

/// The element of a tensor with one element: `f64` for floats, `i64` for integers, `bool` for booleans.
///
/// Burn's `into_scalar` returns the default float type of the backend, `f32`, and rounds an `f64` tensor to it. A `u64`
/// above `i64::MAX` is not representable and wraps.
///
/// ```
/// use burn::tensor::{DType, Tensor};
/// use burn_t4a::{BurnT4a, T4aDevice, ext::scalar};
///
/// let x = Tensor::<BurnT4a, 1>::from_data([0.1f64], (&T4aDevice, DType::F64));
/// assert_eq!(scalar(&x), 0.1);
/// assert_eq!(x.into_scalar(), 0.1f32);
/// ```
///
/// # Panics
/// If the tensor does not have exactly one element, as `into_scalar`.
#[track_caller]
pub fn scalar<B: Backend, K: ScalarKind<B>, const D: usize>(x: &Tensor<B, D, K>) -> K::Number {
    let shape = x.shape();
    assert!(
        shape.num_elements() == 1,
        "scalar: a tensor of one element is required, the shape is {shape:?}"
    );
    let data = x.clone().into_data();
    let element = data.iter::<K::Number>().next();
    element.unwrap_or_else(|| unreachable!("one element"))
}
