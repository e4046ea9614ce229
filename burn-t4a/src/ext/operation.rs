//! Operations as values on Burn's backends: one trait for all of them.
//!
//! An [`Operation`] brings its shapes, its portable definition, its rules and the engine's kernels. A
//! backend says how values run on it, and knows nothing about any single one.
//!
//! One of your own has a name, shapes, a definition and a vjp; tangents and second derivatives follow, on
//! every backend:
//!
//! ```
//! use burn::backend::Autodiff;
//! use burn_t4a::ext::operation::{
//!     Array, Cotangents, Meta, Operation, Outcome, Reverse, TensorError, Value, call, call_jvp, float,
//! };
//! use burn_t4a::{BurnT4a, T4aDevice};
//! use burn::tensor::Tensor;
//!
//! /// `ln(1 + eˣ)`, whose derivative is `1/(1 + e⁻ˣ)`.
//! #[derive(Clone, Debug)]
//! struct Softplus;
//!
//! impl Operation for Softplus {
//!     type Error = TensorError;
//!
//!     fn name(&self) -> &'static str {
//!         "softplus"
//!     }
//!     fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, TensorError> {
//!         Ok(vec![inputs[0].clone()])
//!     }
//!     fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>, TensorError> {
//!         Ok(inputs[0].float().exp().shift(1.0).ln().into())
//!     }
//!     fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, TensorError> {
//!         let x = reverse.kept.float(0);
//!         Ok(vec![Some(reverse.cotangent().div(&x.neg().exp().shift(1.0)))])
//!     }
//! }
//!
//! let x = Tensor::<Autodiff<BurnT4a>, 1>::from_floats([0.0, 100.0], &T4aDevice).require_grad();
//! let y: Tensor<_, 1> = call(&Softplus, &[float(x.clone())])?;
//! let slope = x.grad(&y.sum().backward()).unwrap();
//! slope.into_data().assert_eq(&[0.5f32, 1.0].into(), false);
//!
//! let x = Tensor::<BurnT4a, 1>::zeros([1], &T4aDevice);
//! let dx = Tensor::<BurnT4a, 1>::ones([1], &T4aDevice);
//! let (_, dy): (_, Tensor<_, 1>) = call_jvp(&Softplus, &[float(x)], &[Some(float(dx))])?;
//! dy.into_data().assert_eq(&[0.5f32].into(), false);
//! # Ok::<(), TensorError>(())
//! ```

use burn_backend::Backend;
use burn_tensor::{Int, Tensor, TensorPrimitive};
use t4a_diff::array::ElementKind;
use t4a_diff::checked_results;
pub use t4a_diff::{
    Array, Cotangents, Dual, Eager, Flags, Integers, Keep, Kind, Meta, OnBatch, Operation, Outcome,
    Reverse, Value,
};
use t4a_tensor::DType;
pub use t4a_tensor::TensorError;
use t4a_tensor::route::{Path, Reason, Route};

use super::primitive::{Bools, Floats, Indices};
use crate::v0_21::{BurnT4a, T4aTensor};

/// An operand of an operation on a backend.
pub type Operand<B> = Value<Floats<B>>;

/// Runs operations on a backend.
///
/// The defaults are the portable definitions in Burn's own operations, so `impl Operations for
/// MyBackend {}` is all that another backend needs. `BurnT4a` runs the engine's kernels; `Autodiff<B>`
/// records one node whose rule is the vjp on `B`, and its own vjp is the portable one, which Burn
/// records: so it can be differentiated again.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it runs burn-t4a's operations",
    label = "not a backend with `Operations`",
    note = "code that is generic over its backend asks for it: `B: Operations` in the place of `B: Backend`",
    note = "a backend of your own: `impl burn_t4a::ext::operation::Operations for MyBackend {{}}`",
    note = "Flex needs burn-t4a's feature `flex`, NdArray `ndarray`, backends of burn-router `router`"
)]
pub trait Operations: Backend {
    /// Whether tensors here are the engine's. Elsewhere operations run by their definitions in those of the
    /// backend, or in the engine through host data, which [`Policy::RejectFallback`] rejects.
    ///
    /// [`Policy::RejectFallback`]: crate::route::Policy::RejectFallback
    fn is_engine() -> bool {
        false
    }

    /// The results; the operands have been checked. `tracked`: whose derivative will be asked for.
    ///
    /// # Errors
    /// Those of the operation; `RouteRejected`.
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        by_definition(op, inputs, tracked)
    }

    /// Which kernel computed a value, and why not its own one; none where no route is kept.
    fn route(_x: &Operand<Self>) -> Option<Route> {
        None
    }

    /// A value that is on no tape, with this route, where one is kept.
    #[must_use]
    fn with_route(x: Operand<Self>, _route: Route) -> Operand<Self> {
        x
    }

    /// Cotangents of the operands that want one; `None` is zero.
    ///
    /// # Errors
    /// Those of the rule.
    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        op.vjp(reverse)
    }

    /// The results with their tangents, of operands with theirs.
    ///
    /// # Errors
    /// Those of the rule.
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        op.jvp(inputs, tracked)
    }
}

#[cfg(feature = "flex")]
impl Operations for burn_flex::Flex {}

#[cfg(feature = "ndarray")]
impl Operations for burn_ndarray::NdArray {}

#[cfg(feature = "router")]
impl<R: burn_router::RunnerChannel> Operations for burn_router::BackendRouter<R> {}

/// The portable definition, if the policy lets an operation leave its kernels.
pub(crate) fn by_definition<O: Operation, A: Array>(
    op: &O,
    inputs: &[Value<A>],
    tracked: &[bool],
) -> Result<Outcome<A>, O::Error> {
    Route::fallback(op.name(), Path::Portable, Reason::OpUnsupported)?;
    op.portable(inputs, tracked)
}

/// Which kernel computed a value, and why not its own one: none on backends that keep no routes.
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

/// Integers that are on no tape, with this route.
pub(crate) fn routed<B: Operations, const D: usize>(
    x: Tensor<B, D, Int>,
    route: Route,
) -> Tensor<B, D, Int> {
    let x = B::with_route(Value::Integers(Indices(x.into_primitive())), route);
    Tensor::from_primitive(x.integers().0.clone())
}

/// Checks the operands and runs the operation.
///
/// # Errors
/// Those of the operation, before any work where shapes and dtypes tell.
pub fn apply<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Operand<B>],
) -> Result<Outcome<Floats<B>>, O::Error> {
    let metas: Vec<Meta> = inputs.iter().map(meta).collect();
    checked_results(op, &metas)?;
    B::run(op, inputs, &vec![false; inputs.len()])
}

/// A tensor as an operand.
pub fn float<B: Operations, const D: usize>(x: Tensor<B, D>) -> Operand<B> {
    Value::Float(Floats(x.into_primitive().tensor()))
}

/// [`apply`] for an operation with one result, of rank `D`.
///
/// # Errors
/// As [`apply`].
pub fn call<O: Operation, B: Operations, const D: usize>(
    op: &O,
    inputs: &[Operand<B>],
) -> Result<Tensor<B, D>, O::Error> {
    let result = apply(op, inputs)?.results.into_iter().next();
    Ok(tensor(result.unwrap_or_else(|| unreachable!("one result"))))
}

/// [`call`], and the tangent of the result along tangents of the operands; `None` stands for zero.
///
/// # Errors
/// As [`apply`]; those of the rule.
///
/// # Panics
/// Unless there is a tangent, or none, for each operand, floats for floats.
pub fn call_jvp<O: Operation, B: Operations, const D: usize>(
    op: &O,
    inputs: &[Operand<B>],
    tangents: &[Option<Operand<B>>],
) -> Result<(Tensor<B, D>, Tensor<B, D>), O::Error> {
    assert_eq!(inputs.len(), tangents.len(), "{}: operands and tangents", op.name());
    let metas: Vec<Meta> = inputs.iter().map(meta).collect();
    op.results(&metas)?;
    let dual = |(x, t): (&Operand<B>, &Option<Operand<B>>)| {
        x.clone().dual(t.as_ref().map(|t| t.float().clone()))
    };
    let duals: Vec<_> = inputs.iter().zip(tangents).map(dual).collect();
    let tracked: Vec<bool> = duals.iter().map(Value::moves).collect();
    let result = B::jvp(op, &duals, &tracked)?.results.into_iter().next();
    let result = result.unwrap_or_else(|| unreachable!("one result"));
    Ok((tensor(result.value.clone()), tensor(result.into_tangent())))
}

fn tensor<B: Backend, const D: usize>(x: Floats<B>) -> Tensor<B, D> {
    Tensor::from_primitive(TensorPrimitive::Float(x.0))
}

fn meta<B: Operations>(x: &Operand<B>) -> Meta {
    match x {
        Value::Float(x) => Meta { shape: x.shape(), dtype: x.dtype() },
        Value::Integers(x) => Meta { shape: x.shape(), dtype: DType::I64 },
        Value::Flags(x) => Meta { shape: x.shape(), dtype: DType::Bool },
    }
}

impl Operations for BurnT4a {
    fn is_engine() -> bool {
        true
    }

    fn route(x: &Operand<Self>) -> Option<Route> {
        let (Value::Float(Floats(x)) | Value::Integers(Indices(x)) | Value::Flags(Bools(x))) = x;
        Some(x.route())
    }

    fn with_route(x: Operand<Self>, route: Route) -> Operand<Self> {
        match x {
            Value::Float(x) => Value::Float(Floats(x.0.with_route(route))),
            Value::Integers(x) => Value::Integers(Indices(x.0.with_route(route))),
            Value::Flags(x) => Value::Flags(Bools(x.0.with_route(route))),
        }
    }

    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        let inputs: Vec<Value<Eager>> = inputs.iter().map(enter).collect();
        Ok(op.forward(&inputs, tracked)?.try_map(leave_value, leave)?)
    }

    fn vjp<O: Operation>(
        op: &O,
        &Reverse { kept, cotangents, hidden, wanted }: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        let kept = kept.try_map(|x| Ok::<_, O::Error>(enter(x)), |x| Ok(eager(&x.0)))?;
        let all = |cotangents: &[Option<Floats<Self>>]| -> Vec<Option<Eager>> {
            cotangents.iter().map(|x| x.as_ref().map(|x| eager(&x.0))).collect()
        };
        let (cotangents, hidden) = (all(cotangents), all(hidden));
        let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted };
        let all = op.fused_vjp(&reverse)?;
        Ok(all.into_iter().map(|x| x.map(leave).transpose()).collect::<Result<_, _>>()?)
    }

    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        let dual = |x: &Value<Dual<Floats<Self>>>| {
            let tangent = match x {
                Value::Float(x) => x.tangent.as_ref().map(|t| eager(&t.0)),
                _ => None,
            };
            enter(&x.clone().below()).dual(tangent)
        };
        let inputs: Vec<Value<Dual<Eager>>> = inputs.iter().map(dual).collect();
        let moving = |Dual { value, tangent }: Dual<Eager>| -> Result<_, TensorError> {
            Ok(Dual { value: leave(value)?, tangent: tangent.map(leave).transpose()? })
        };
        let value = |x: Value<Dual<Eager>>| match x {
            Value::Float(x) => Ok(Value::Float(moving(x)?)),
            other => Ok(leave_value(other.below())?.dual(None)),
        };
        Ok(op.fused_jvp(&inputs, tracked)?.try_map(value, moving)?)
    }
}

fn eager<K: ElementKind>(x: &T4aTensor) -> Eager<K> {
    Eager::from(x.any())
}

fn enter(x: &Operand<BurnT4a>) -> Value<Eager> {
    match x {
        Value::Float(x) => Value::Float(eager(&x.0)),
        Value::Integers(x) => Value::Integers(eager(&x.0)),
        Value::Flags(x) => Value::Flags(eager(&x.0)),
    }
}

/// A number has shape `[1]` in Burn.
fn primitive<K: ElementKind>(x: Eager<K>) -> Result<T4aTensor, TensorError> {
    let x = x.into_tensor()?;
    T4aTensor::new(if x.rank() == 0 { x.reshape(&[1])? } else { x })
}

fn leave(x: Eager) -> Result<Floats<BurnT4a>, TensorError> {
    Ok(Floats(primitive(x)?))
}

fn leave_value(x: Value<Eager>) -> Result<Operand<BurnT4a>, TensorError> {
    Ok(match x {
        Value::Float(x) => Value::Float(leave(x)?),
        Value::Integers(x) => Value::Integers(Indices(primitive(x)?)),
        Value::Flags(x) => Value::Flags(Bools(primitive(x)?)),
    })
}
