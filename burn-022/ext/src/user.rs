//! Calls of operations on Burn tensors, on any backend.

use burn_backend::TensorMetadata;
use burn_dispatch::{Dispatch, DispatchTensor};
use burn_tensor::{Bool, Float, Int, Tensor};
use t4a_diff::{Operation, Value};
use t4a_tensor::TensorError;
use t4a_tensor::route::Route;

use crate::operation::{Operand, Operations, apply_jvp, apply_one};
use crate::primitive::{Bools, Floats, Indices};
use crate::tree::{Leaf, Leaves, Structure, Tree, TreeError};

/// Converts a float tensor to an operand; a quantized tensor is dequantized.
pub fn float<const D: usize>(x: Tensor<D>) -> Operand<Dispatch> {
    Value::Float(Floats(primitive(x)))
}

/// Converts an integer tensor to an operand.
pub fn integers<const D: usize>(x: Tensor<D, Int>) -> Operand<Dispatch> {
    Value::Integers(Indices(x.into_dispatch()))
}

/// Converts a boolean tensor to an operand.
pub fn flags<const D: usize>(x: Tensor<D, Bool>) -> Operand<Dispatch> {
    Value::Flags(Bools(x.into_dispatch()))
}

pub(crate) fn primitive<const D: usize>(x: Tensor<D>) -> DispatchTensor {
    let x = if matches!(x.dtype(), burn_backend::DType::QFloat(_)) { x.dequantize() } else { x };
    x.into_dispatch()
}

impl<const D: usize> From<Tensor<D>> for Floats<Dispatch> {
    fn from(x: Tensor<D>) -> Self {
        Self(primitive(x))
    }
}

impl Floats<Dispatch> {
    /// Converts the primitive to a tensor of rank `D`.
    ///
    /// # Errors
    /// [`TensorError`] if the primitive has another rank.
    pub fn tensor<const D: usize>(&self) -> Result<Tensor<D>, TensorError> {
        let shape = self.0.shape();
        if shape.num_dims() != D {
            let message = format!("rank {D} is asked for, the shape is {shape:?}");
            return Err(TensorError::value("tensor", message));
        }
        Ok(tensor(self.clone()))
    }
}

pub(crate) fn tensor<const D: usize>(x: Floats<Dispatch>) -> Tensor<D> {
    Tensor::from_dispatch(x.0)
}

macro_rules! leaves {
    ($($kind:ident $name:literal $into:expr;)*) => {$(
        impl<const D: usize> Tree for Tensor<D, $kind> {
            fn structure(&self) -> Structure {
                Structure::Leaf
            }
            fn leaves(self, all: &mut Vec<Leaf<Dispatch>>) {
                all.push(Leaf::$kind($into(self)));
            }
            fn build(
                structure: &Structure,
                leaves: &mut Leaves<Dispatch>,
            ) -> Result<Self, TreeError> {
                leaves.take(structure, $name, D, |leaf| match leaf {
                    Leaf::$kind(x) => Some(Self::from_dispatch(x)),
                    _ => None,
                })
            }
        }
    )*};
}

leaves! {
    Float "floats" primitive;
    Int "integers" Self::into_dispatch;
    Bool "booleans" Self::into_dispatch;
}

/// As [`apply`](crate::operation::apply), for an operation with one result of rank `D`.
///
/// # Errors
/// As [`apply`](crate::operation::apply).
pub fn call<O: Operation, const D: usize>(
    op: &O,
    inputs: &[Operand<Dispatch>],
) -> Result<Tensor<D>, O::Error> {
    apply_one(op, inputs).map(tensor)
}

/// As [`call`], with the tangent of the result; `None` as the tangent of an operand means zero.
///
/// # Errors
/// As [`apply`](crate::operation::apply); errors of the derivative rule.
///
/// # Panics
/// Unless `tangents` has one entry per operand, and tangents are given for float operands only.
pub fn call_jvp<O: Operation, const D: usize>(
    op: &O,
    inputs: &[Operand<Dispatch>],
    tangents: &[Option<Operand<Dispatch>>],
) -> Result<(Tensor<D>, Tensor<D>), O::Error> {
    apply_jvp(op, inputs, tangents).map(|[y, dy]| (tensor(y), tensor(dy)))
}

/// Route of a value: the kernel that computed it, with the reason for a fallback; `None` on backends that keep no
/// route.
///
/// ```
/// use burn_t4a_022_ext::linalg::cholesky;
/// use burn_t4a_022_ext::operation::{float, route};
/// use burn_t4a_022_ext::route::{Path, Reason};
/// use burn::tensor::{Device, Tensor};
///
/// let l = cholesky(Tensor::<2>::eye(3, &Device::flex()))?;
/// let route = route(&float(l)).expect("the engine keeps routes");
/// assert_eq!((route.path, route.reason), (Path::LinalgSequential, Reason::Native));
/// # Ok::<(), burn_t4a_022_ext::linalg::LinalgError>(())
/// ```
pub fn route(x: &Operand<Dispatch>) -> Option<Route> {
    Dispatch::route(x)
}

/// Attaches a route to an integer tensor that is on no tape.
pub(crate) fn routed<const D: usize>(x: Tensor<D, Int>, route: Route) -> Tensor<D, Int> {
    Tensor::from_dispatch(Dispatch::with_route(integers(x), route).integers().0.clone())
}
