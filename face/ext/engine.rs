//! Implementation of `Operations` for the engine: operations run as kernels on `Eager` arrays.
//!
//! In Burn 0.22 the engine is the type `Flex` in programs that patch `burn-flex`; in other programs `Flex` is
//! Burn's own CPU backend.

use std::any::Any;
use std::hash::{DefaultHasher, Hash, Hasher};

use burn_backend::tensor::FloatTensor;
use t4a_diff::array::ElementKind;
use t4a_diff::{Cotangents, Dual, Eager, Operation, Outcome, Reverse, Value};
use t4a_einsum::{Contraction, FloatSemiring};
use t4a_tensor::TensorError;
use t4a_tensor::route::Route;

use super::line::{Engine, T4aTensor, as_engine, from_engine, is_engine, product_key, try_product};
use super::operation::{Operand, Operations, by_definition};
use super::primitive::{Bools, Floats, Indices};

/// Runs the engine's kernels; where `Flex` is Burn's own backend, the portable definitions.
impl Operations for Engine {
    fn is_engine() -> bool {
        is_engine()
    }

    fn route(x: &Operand<Self>) -> Option<Route> {
        let (Value::Float(Floats(x)) | Value::Integers(Indices(x)) | Value::Flags(Bools(x))) = x;
        as_engine(x).map(T4aTensor::route)
    }

    fn with_route(x: Operand<Self>, route: Route) -> Operand<Self> {
        let routed = |x: FloatTensor<Self>| match as_engine(&x) {
            Some(of_engine) => from_engine(of_engine.clone().with_route(route)),
            None => x,
        };
        x.map(|x| Floats(routed(x.0)), |x| Indices(routed(x.0)), |x| Bools(routed(x.0)))
    }

    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        let Some(arrays) = inputs.iter().map(enter).collect::<Option<Vec<_>>>() else {
            return by_definition(op, inputs, tracked);
        };
        let run = || -> Result<_, O::Error> {
            Ok(op.forward(&arrays, tracked)?.try_map(leave_value, leave)?)
        };
        let Some(key) = contraction_key(op, inputs) else { return run() };
        let only = |mut out: Outcome<Floats<Self>>| match as_engine(&out.results.swap_remove(0).0) {
            Some(y) => y.clone(),
            None => unreachable!("results are on the engine"),
        };
        Ok(Floats(from_engine(try_product(key, || run().map(only))?)).into())
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

/// Key of a contraction of two arrays over (+, ×), whose result a checkpointed function may keep.
fn contraction_key<O: Operation>(op: &O, inputs: &[Operand<Engine>]) -> Option<u64> {
    let [Value::Float(a), Value::Float(b)] = inputs else { return None };
    let op: &Contraction = (op as &dyn Any).downcast_ref()?;
    let what = || {
        let mut hasher = DefaultHasher::new();
        op.hash(&mut hasher);
        format!("einsum {:x}", hasher.finish())
    };
    let is_product = op.semiring == FloatSemiring::Standard;
    is_product.then(|| product_key(what, [as_engine(&a.0)?, as_engine(&b.0)?]))?
}

/// Unwraps a value whose backend was checked to be the engine.
fn on_engine<T>(x: Option<T>) -> T {
    x.unwrap_or_else(|| unreachable!("tensors of one backend are of one type"))
}

fn eager<K: ElementKind>(x: &FloatTensor<Engine>) -> Option<Eager<K>> {
    as_engine(x).map(|x| Eager::from(x.any()))
}

fn enter(x: &Operand<Engine>) -> Option<Value<Eager>> {
    Some(match x {
        Value::Float(x) => Value::Float(eager(&x.0)?),
        Value::Integers(x) => Value::Integers(eager(&x.0)?),
        Value::Flags(x) => Value::Flags(eager(&x.0)?),
    })
}

/// Converts an engine array to a primitive. A tensor of rank 0 gets shape `[1]`, since Burn has no rank 0.
fn primitive<K: ElementKind>(x: Eager<K>) -> Result<FloatTensor<Engine>, TensorError> {
    let x = x.into_tensor()?;
    Ok(from_engine(T4aTensor::from_any(if x.rank() == 0 { x.reshape(&[1])? } else { x })?))
}

fn leave(x: Eager) -> Result<Floats<Engine>, TensorError> {
    Ok(Floats(primitive(x)?))
}

fn leave_value(x: Value<Eager>) -> Result<Operand<Engine>, TensorError> {
    Ok(match x {
        Value::Float(x) => Value::Float(leave(x)?),
        Value::Integers(x) => Value::Integers(Indices(primitive(x)?)),
        Value::Flags(x) => Value::Flags(Bools(primitive(x)?)),
    })
}
