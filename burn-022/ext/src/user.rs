//! Operations on tensors, whatever backend they are on.

use burn_backend::TensorMetadata;
use burn_dispatch::{Dispatch, DispatchTensor};
use burn_tensor::{Bool, Float, Int, Tensor};
use t4a_diff::{Operation, Value};
use t4a_tensor::TensorError;
use t4a_tensor::route::Route;

use crate::operation::{Operand, Operations, apply_jvp, apply_one};
use crate::primitive::{Bools, Floats, Indices};
use crate::tree::{Leaf, Leaves, Structure, Tree, TreeError};

/// A tensor as an operand; one that is quantized, dequantized.
pub fn float<const D: usize>(x: Tensor<D>) -> Operand<Dispatch> {
    Value::Float(Floats(primitive(x)))
}

/// Integers as an operand.
pub fn integers<const D: usize>(x: Tensor<D, Int>) -> Operand<Dispatch> {
    Value::Integers(Indices(x.into_dispatch()))
}

/// Booleans as an operand.
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
    /// The tensor of rank `D` that these are.
    ///
    /// # Errors
    /// If they have another rank.
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

/// [`apply`](crate::operation::apply) for an operation with one result, of rank `D`.
///
/// # Errors
/// As [`apply`](crate::operation::apply).
pub fn call<O: Operation, const D: usize>(
    op: &O,
    inputs: &[Operand<Dispatch>],
) -> Result<Tensor<D>, O::Error> {
    apply_one(op, inputs).map(tensor)
}

/// [`call`], and the tangent of the result along tangents of the operands; `None` stands for zero.
///
/// # Errors
/// As [`apply`](crate::operation::apply); those of the rule.
///
/// # Panics
/// Unless there is a tangent, or none, for each operand, floats for floats.
pub fn call_jvp<O: Operation, const D: usize>(
    op: &O,
    inputs: &[Operand<Dispatch>],
    tangents: &[Option<Operand<Dispatch>>],
) -> Result<(Tensor<D>, Tensor<D>), O::Error> {
    apply_jvp(op, inputs, tangents).map(|[y, dy]| (tensor(y), tensor(dy)))
}

/// The kernel that computed a value, with the reason if it was a fallback; none on backends that keep no routes.
///
/// ```
/// use burn_t4a_022_ext::linalg::cholesky;
/// use burn_t4a_022_ext::operation::{float, route};
/// use burn_t4a_022_ext::route::{Path, Reason};
/// use burn_tensor::{Device, Tensor};
///
/// let l = cholesky(Tensor::<2>::eye(3, &Device::flex()))?;
/// let route = route(&float(l)).expect("the engine keeps routes");
/// assert_eq!((route.path, route.reason), (Path::LinalgSequential, Reason::Native));
/// # Ok::<(), burn_t4a_022_ext::linalg::LinalgError>(())
/// ```
pub fn route(x: &Operand<Dispatch>) -> Option<Route> {
    Dispatch::route(x)
}

/// Integers that are on no tape, with this route.
pub(crate) fn routed<const D: usize>(x: Tensor<D, Int>, route: Route) -> Tensor<D, Int> {
    Tensor::from_dispatch(Dispatch::with_route(integers(x), route).integers().0.clone())
}
