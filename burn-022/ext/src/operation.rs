//! Operations as values on the backends of Burn 0.22: one trait for all of them.
//!
//! An [`Operation`] brings its shapes, its portable definition, its rules and the engine's kernels. A
//! backend says how values run on it, and knows nothing about any single one.
//!
//! One of your own has a name, shapes, a definition and a vjp; tangents follow, on every backend:
//!
//! ```
//! use burn_t4a_022_ext::operation::{
//!     Array, Cotangents, Meta, Operation, Outcome, Reverse, TensorError, Value, call, call_jvp, float,
//! };
//! use burn_tensor::{Device, Tensor};
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
//! let x = Tensor::<1>::from_floats([0.0, 100.0], &Device::flex().autodiff()).require_grad();
//! let y: Tensor<1> = call(&Softplus, &[float(x.clone())])?;
//! let slope = x.grad(&y.sum().backward()).unwrap();
//! slope.into_data().assert_eq(&[0.5f32, 1.0].into(), false);
//!
//! let x = Tensor::<1>::zeros([1], &Device::flex());
//! let dx = Tensor::<1>::ones([1], &Device::flex());
//! let (_, dy): (_, Tensor<1>) = call_jvp(&Softplus, &[float(x)], &[Some(float(dx))])?;
//! dy.into_data().assert_eq(&[0.5f32].into(), false);
//! # Ok::<(), TensorError>(())
//! ```

use std::any::{Any, TypeId};

use burn_backend::Backend;
use burn_backend::tensor::FloatTensor;
use burn_dispatch::Dispatch;
use burn_dispatch::backends::Flex;
use burn_tensor::{Int, Tensor};
use t4a_diff::array::ElementKind;
use t4a_diff::checked_results;
pub use t4a_diff::{
    Array, Cotangents, Dual, Eager, Flags, Integers, Keep, Kind, Meta, Operation, Outcome, Reverse,
    Value,
};
use t4a_tensor::DType;
pub use t4a_tensor::TensorError;
use t4a_tensor::route::{Path, Reason, Route};

use burn_t4a_022::T4aTensor;

use crate::primitive::{Bools, Floats, Indices};
pub use crate::user::{call, call_jvp, flags, float, integers};

/// An operand of an operation on a backend.
pub type Operand<B> = Value<Floats<B>>;

/// Runs operations on a backend.
///
/// The defaults are the portable definitions in Burn's own operations, so `impl Operations for
/// MyBackend {}` is all that another backend needs. The engine runs its kernels; `Autodiff<B>`
/// records one node whose rule is the vjp on `B`, and its own vjp is the portable one, which Burn
/// records: so it can be differentiated again.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how it runs burn-t4a's operations",
    label = "not a backend with `Operations`",
    note = "a backend of your own: `impl burn_t4a_022_ext::operation::Operations for MyBackend {{}}`"
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

    /// What [`Operations::vjp`] needs here if these operands are tracked.
    fn keep<O: Operation>(op: &O, tracked: &[bool]) -> Keep {
        op.keep(tracked)
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

#[cfg(feature = "ndarray")]
#[allow(deprecated)]
impl Operations for burn_dispatch::backends::NdArray {}

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

pub(crate) fn meta<B: Operations>(x: &Operand<B>) -> Meta {
    match x {
        Value::Float(x) => Meta { shape: x.shape(), dtype: x.dtype() },
        Value::Integers(x) => Meta { shape: x.shape(), dtype: DType::I64 },
        Value::Flags(x) => Meta { shape: x.shape(), dtype: DType::Bool },
    }
}

/// The engine's kernels where this is `burn-t4a` in the place of `burn-flex`, and the portable
/// definitions where it is Burn's own backend.
impl Operations for Flex {
    fn is_engine() -> bool {
        is_engine()
    }

    fn route(x: &Operand<Self>) -> Option<Route> {
        let (Value::Float(Floats(x)) | Value::Integers(Indices(x)) | Value::Flags(Bools(x))) = x;
        let x: &dyn Any = x;
        x.downcast_ref::<T4aTensor>().map(T4aTensor::route)
    }

    fn with_route(x: Operand<Self>, route: Route) -> Operand<Self> {
        let routed = |mut x: FloatTensor<Self>| {
            let any: &mut dyn Any = &mut x;
            if let Some(x) = any.downcast_mut::<T4aTensor>() {
                *x = x.clone().with_route(route);
            }
            x
        };
        match x {
            Value::Float(x) => Value::Float(Floats(routed(x.0))),
            Value::Integers(x) => Value::Integers(Indices(routed(x.0))),
            Value::Flags(x) => Value::Flags(Bools(routed(x.0))),
        }
    }

    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        let Some(inputs) = inputs.iter().map(enter).collect::<Option<Vec<_>>>() else {
            return by_definition(op, inputs, tracked);
        };
        Ok(op.forward(&inputs, tracked)?.try_map(leave_value, leave)?)
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        if !is_engine() {
            return op.vjp(reverse);
        }
        let &Reverse { kept, cotangents, hidden, wanted } = reverse;
        let kept = kept
            .try_map(|x| Ok::<_, O::Error>(on_engine(enter(x))), |x| Ok(on_engine(eager(&x.0))))?;
        let all = |cotangents: &[Option<Floats<Self>>]| -> Vec<Option<Eager>> {
            cotangents.iter().map(|x| x.as_ref().and_then(|x| eager(&x.0))).collect()
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
        if !is_engine() {
            return op.jvp(inputs, tracked);
        }
        let dual = |x: &Value<Dual<Floats<Self>>>| {
            let tangent = match x {
                Value::Float(x) => x.tangent.as_ref().and_then(|t| eager(&t.0)),
                _ => None,
            };
            on_engine(enter(&x.clone().below())).dual(tangent)
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

/// Whether the tensors of Flex are those of the engine.
fn is_engine() -> bool {
    TypeId::of::<FloatTensor<Flex>>() == TypeId::of::<T4aTensor>()
}

/// A value of which it is known already that it is one of the engine.
fn on_engine<T>(x: Option<T>) -> T {
    x.unwrap_or_else(|| unreachable!("tensors of one backend are of one type"))
}

fn eager<K: ElementKind>(x: &FloatTensor<Flex>) -> Option<Eager<K>> {
    let x: &dyn Any = x;
    x.downcast_ref::<T4aTensor>().map(|x| Eager::from(x.any()))
}

fn enter(x: &Operand<Flex>) -> Option<Value<Eager>> {
    Some(match x {
        Value::Float(x) => Value::Float(eager(&x.0)?),
        Value::Integers(x) => Value::Integers(eager(&x.0)?),
        Value::Flags(x) => Value::Flags(eager(&x.0)?),
    })
}

/// A number has shape `[1]` in Burn.
fn primitive<K: ElementKind>(x: Eager<K>) -> Result<FloatTensor<Flex>, TensorError> {
    let x = x.into_tensor()?;
    let mut x = Some(T4aTensor::new(if x.rank() == 0 { x.reshape(&[1])? } else { x })?);
    let x: &mut dyn Any = &mut x;
    Ok(on_engine(x.downcast_mut::<Option<FloatTensor<Flex>>>().and_then(Option::take)))
}

fn leave(x: Eager) -> Result<Floats<Flex>, TensorError> {
    Ok(Floats(primitive(x)?))
}

fn leave_value(x: Value<Eager>) -> Result<Operand<Flex>, TensorError> {
    Ok(match x {
        Value::Float(x) => Value::Float(leave(x)?),
        Value::Integers(x) => Value::Integers(Indices(primitive(x)?)),
        Value::Flags(x) => Value::Flags(Bools(primitive(x)?)),
    })
}
