//! Calls of operations on Burn tensors of a backend.

use burn_backend::{Backend, TensorMetadata};
use burn_tensor::{Bool, Float, Int, Tensor, TensorPrimitive};
use t4a_diff::{Operation, Value};
use t4a_tensor::TensorError;
use t4a_tensor::route::Route;

use super::operation::{Operand, Operations, apply_jvp, apply_one};
use super::primitive::{Floats, Indices};
use super::tree::{Leaf, Leaves, Structure, Tree, TreeError};

impl<B: Backend, const D: usize> From<Tensor<B, D>> for Floats<B> {
    fn from(x: Tensor<B, D>) -> Self {
        Self(x.into_primitive().tensor())
    }
}

impl<B: Backend> Floats<B> {
    /// Converts the primitive to a tensor of rank `D`.
    ///
    /// # Errors
    /// [`TensorError`] if the primitive has another rank.
    pub fn tensor<const D: usize>(&self) -> Result<Tensor<B, D>, TensorError> {
        let shape = self.0.shape();
        if shape.num_dims() != D {
            let message = format!("rank {D} is asked for, the shape is {shape:?}");
            return Err(TensorError::value("tensor", message));
        }
        Ok(tensor(self.clone()))
    }
}

pub(crate) fn tensor<B: Backend, const D: usize>(x: Floats<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x.0))
}

macro_rules! leaves {
    ($($kind:ident $name:literal: |$x:ident| $into:expr, $from:expr;)*) => {$(
        impl<B: Backend, const D: usize> Tree<B> for Tensor<B, D, $kind> {
            type On<C: Backend> = Tensor<C, D, $kind>;

            fn structure(&self) -> Structure {
                Structure::Leaf
            }
            fn leaves(self, all: &mut Vec<Leaf<B>>) {
                let $x = self.into_primitive();
                all.push(Leaf::$kind($into));
            }
            fn build(structure: &Structure, leaves: &mut Leaves<B>) -> Result<Self, TreeError> {
                leaves.take(structure, $name, D, |leaf| match leaf {
                    Leaf::$kind($x) => Some(Self::from_primitive($from)),
                    _ => None,
                })
            }
        }
    )*};
}

leaves! {
    Float "floats": |x| x.tensor(), TensorPrimitive::Float(x);
    Int "integers": |x| x, x;
    Bool "booleans": |x| x, x;
}

/// Converts a float tensor to an operand.
pub fn float<B: Operations, const D: usize>(x: Tensor<B, D>) -> Operand<B> {
    Value::Float(Floats(x.into_primitive().tensor()))
}

/// As [`apply`](super::operation::apply), for an operation with one result of rank `D`.
///
/// # Errors
/// As [`apply`](super::operation::apply).
pub fn call<O: Operation, B: Operations, const D: usize>(
    op: &O,
    inputs: &[Operand<B>],
) -> Result<Tensor<B, D>, O::Error> {
    apply_one(op, inputs).map(tensor)
}

/// As [`call`], with the tangent of the result; `None` as the tangent of an operand means zero.
///
/// # Errors
/// As [`apply`](super::operation::apply); errors of the derivative rule.
///
/// # Panics
/// Unless `tangents` has one entry per operand, and tangents are given for float operands only.
pub fn call_jvp<O: Operation, B: Operations, const D: usize>(
    op: &O,
    inputs: &[Operand<B>],
    tangents: &[Option<Operand<B>>],
) -> Result<(Tensor<B, D>, Tensor<B, D>), O::Error> {
    apply_jvp(op, inputs, tangents).map(|[y, dy]| (tensor(y), tensor(dy)))
}

/// Route of a value: the kernel that computed it, with the reason for a fallback; `None` on backends that keep no
/// route.
///
/// ```
/// use burn_t4a::ext::linalg::cholesky;
/// use burn_t4a::ext::operation::{float, route};
/// use burn_t4a::route::{Path, Reason};
/// use burn_t4a::{BurnT4a, T4aDevice};
/// use burn::tensor::Tensor;
///
/// let l = cholesky(Tensor::<BurnT4a, 2>::eye(3, &T4aDevice))?;
/// let route = route(&float(l)).expect("the engine keeps routes");
/// assert_eq!((route.path, route.reason), (Path::LinalgSequential, Reason::Native));
/// # Ok::<(), burn_t4a::ext::linalg::LinalgError>(())
/// ```
pub fn route<B: Operations>(x: &Operand<B>) -> Option<Route> {
    B::route(x)
}

/// Attaches a route to an integer tensor that is on no tape.
pub(crate) fn routed<B: Operations, const D: usize>(
    x: Tensor<B, D, Int>,
    route: Route,
) -> Tensor<B, D, Int> {
    let x = B::with_route(Value::Integers(Indices(x.into_primitive())), route);
    Tensor::from_primitive(x.integers().0.clone())
}
