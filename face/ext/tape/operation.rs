//! Operations as values on the tape: one node each.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Shape, TensorMetadata};
use t4a_diff::{Array, Dual, Kept, Operation, Outcome, Reverse, Value};
use t4a_tensor::route::Route;

use super::{Tracked, constant, is_tracked, joined, pack, parted, primitive, record, unpack};
use crate::boundary::accept;
use crate::ext::line::float_device;
use crate::ext::operation::{Operand, Operations};
use crate::ext::primitive::{Bools, Floats, Indices};

impl<B: Operations, C: CheckpointStrategy> Operations for Autodiff<B, C> {
    fn is_engine() -> bool {
        B::is_engine()
    }

    fn route(x: &Operand<Self>) -> Option<Route> {
        B::route(&value(x))
    }

    fn with_route(x: Operand<Self>, route: Route) -> Operand<Self> {
        match &x {
            Value::Float(y) if is_tracked::<B, C>(&y.0) => x,
            _ => above(B::with_route(value(&x), route)),
        }
    }

    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        recorded::<O, B, C>(op, inputs, tracked)
    }

    /// On `B` if nothing is tracked; otherwise by the rule in the vocabulary, which Burn records.
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        let floats = |x: &Value<Dual<Floats<Self>>>| match x {
            Value::Float(x) => [Some(x.value.0.clone()), x.tangent.as_ref().map(|t| t.0.clone())],
            _ => [None, None],
        };
        if inputs.iter().flat_map(floats).flatten().any(|x| is_tracked::<B, C>(&x)) {
            return op.jvp(inputs, tracked);
        }
        let inner = |x: &Floats<Self>| Floats(Self::inner(x.0.clone()));
        let below = |x: &Value<Dual<Floats<Self>>>| match x {
            Value::Float(x) => Value::Float(Dual {
                value: inner(&x.value),
                tangent: x.tangent.as_ref().map(inner),
            }),
            Value::Integers(x) => Value::Integers(Indices(x.0.clone())),
            Value::Flags(x) => Value::Flags(Bools(x.0.clone())),
        };
        let outer = |x: Floats<B>| Floats(Self::from_inner(x.0));
        let above =
            |x: Dual<Floats<B>>| Dual { value: outer(x.value), tangent: x.tangent.map(outer) };
        let value = |x: Value<Dual<Floats<B>>>| -> Result<Value<Dual<Floats<Self>>>, O::Error> {
            Ok(match x {
                Value::Float(x) => Value::Float(above(x)),
                Value::Integers(x) => Value::Integers(Indices(x.0)),
                Value::Flags(x) => Value::Flags(Bools(x.0)),
            })
        };
        let inputs: Vec<Value<Dual<Floats<B>>>> = inputs.iter().map(below).collect();
        B::jvp(op, &inputs, tracked)?.try_map(value, |x| Ok(above(x)))
    }

    /// Off the engine what is at the place that `B` finds.
    fn array_extreme(x: &Floats<Self>, axis: usize, least: bool) -> Floats<Self> {
        if B::is_engine() {
            let extreme = if least { Self::float_min_dim } else { Self::float_max_dim };
            return Floats(extreme(x.0.clone(), axis));
        }
        x.gather(axis, &Self::array_place(x, axis, least))
    }

    fn array_place(x: &Floats<Self>, axis: usize, least: bool) -> Indices<Self> {
        Indices(B::array_place(&Floats(Self::inner(x.0.clone())), axis, least).0)
    }
}

/// An operation as one node whose rule is its vjp on `B`; without a tracked operand nothing is recorded.
/// `outer`: what is tracked by a tape above this one, which needs the hidden results.
///
/// # Errors
/// Those of the operation.
fn recorded<O: Operation, B: Operations, C: CheckpointStrategy>(
    op: &O,
    inputs: &[Operand<Autodiff<B, C>>],
    outer: &[bool],
) -> Result<Outcome<Floats<Autodiff<B, C>>>, O::Error> {
    if outer.contains(&true) {
        op.check_second_order()?;
    }
    let float = |x: &Operand<Autodiff<B, C>>| match x {
        Value::Float(x) => Some(x.0.clone()),
        _ => None,
    };
    let floats: Vec<Tracked<B, C>> = inputs.iter().filter_map(float).collect();
    if !floats.iter().any(|x| x.is_tracked()) {
        let below = below(inputs, floats.into_iter().map(Autodiff::<B, C>::inner));
        let out = B::run(op, &below, outer)?;
        return out.try_map(|x| Ok(above(x)), |y| Ok(Floats(constant::<B, C>(y.0))));
    }
    if op.is_composite() {
        return op.portable(inputs, outer);
    }
    match floats.len() {
        1 => node::<O, B, C, 1>(op, inputs, floats, outer),
        2 => node::<O, B, C, 2>(op, inputs, floats, outer),
        3 => node::<O, B, C, 3>(op, inputs, floats, outer),
        4 => node::<O, B, C, 4>(op, inputs, floats, outer),
        _ => packed::<O, B, C>(op, inputs, floats, outer),
    }
}

/// What `vjp` needs: the operation, what it kept, and the shapes of what is on the tape.
struct Recorded<O, B: Operations> {
    op: O,
    kept: Kept<Floats<B>>,
    results: Vec<Shape>,
    hidden: Vec<Shape>,
    /// Which operands are floats.
    floats: Vec<bool>,
}

/// What leaves a node beside its output: shapes of results and of hidden results, and constants.
type Rest<B> = (Vec<Shape>, Vec<Shape>, Vec<Operand<B>>);

impl<O: Operation, B: Operations> Recorded<O, B> {
    /// Runs the operation: the packed results, with hidden ones if there is a tape above, and what is
    /// needed later.
    fn run(
        op: &O,
        inputs: Vec<Operand<B>>,
        tracked: impl IntoIterator<Item = bool>,
        outer: &[bool],
    ) -> Result<(FloatTensor<B>, Self, Rest<B>), O::Error> {
        let mut tracked = tracked.into_iter();
        let floats: Vec<bool> = inputs.iter().map(|x| matches!(x, Value::Float(_))).collect();
        let tracked: Vec<bool> =
            floats.iter().map(|&float| float && tracked.next().unwrap_or(true)).collect();
        let all: Vec<bool> = tracked.iter().zip(outer).map(|(a, b)| a | b).collect();
        let mut out = B::run(op, &inputs, &all)?;
        let kept = Kept::new(B::keep(op, &tracked), &inputs, &out);
        if !outer.contains(&true) {
            out.hidden.clear();
        }
        let shapes = |all: &[Floats<B>]| all.iter().map(|y| y.0.shape()).collect::<Vec<_>>();
        let (results, hidden) = (shapes(&out.results), shapes(&out.hidden));
        let rest = (results.clone(), hidden.clone(), out.extra);
        let route = out.results.first().and_then(|y| B::route(&Value::Float(y.clone())));
        let several = results.len() + hidden.len() > 1;
        let flat = joined::<B>(out.results.into_iter().chain(out.hidden).map(|y| y.0).collect());
        // Views of it keep the route of the operation.
        let flat = match route {
            Some(route) if several => {
                B::with_route(Value::Float(Floats(flat)), route).float().0.clone()
            }
            _ => flat,
        };
        Ok((flat, Self { op: op.clone(), kept, results, hidden, floats }, rest))
    }

    /// Cotangents of the float operands, in their order.
    fn vjp(
        self,
        cotangent: FloatTensor<B>,
        wanted: impl IntoIterator<Item = bool>,
    ) -> Vec<Option<FloatTensor<B>>> {
        let mut wanted = wanted.into_iter();
        let wanted: Vec<bool> =
            self.floats.iter().map(|&float| float && wanted.next().unwrap_or(true)).collect();
        let results = self.results.len();
        let parts = parted::<B>(cotangent, self.results.into_iter().chain(self.hidden).collect());
        let cotangents: Vec<_> = parts.into_iter().map(|x| Some(Floats(x))).collect();
        let (cotangents, hidden) = cotangents.split_at(results);
        let reverse = Reverse { kept: &self.kept, cotangents, hidden, wanted: &wanted };
        let all = accept(B::vjp(&self.op, &reverse));
        let floats = all.into_iter().zip(self.floats).filter(|(_, float)| *float);
        floats.map(|(x, _)| x.map(|x| x.0)).collect()
    }
}

fn node<O: Operation, B: Operations, C: CheckpointStrategy, const N: usize>(
    op: &O,
    inputs: &[Operand<Autodiff<B, C>>],
    floats: Vec<Tracked<B, C>>,
    outer: &[bool],
) -> Result<Outcome<Floats<Autodiff<B, C>>>, O::Error> {
    let Ok(floats) = <[Tracked<B, C>; N]>::try_from(floats) else {
        unreachable!("the number of floats was matched on");
    };
    let mut rest = None;
    let flat = record::<B, C, _, O::Error, N>(
        floats,
        |floats, tracked| {
            let below = below(inputs, floats.into_iter());
            let (flat, recorded, others) = Recorded::run(op, below, tracked, outer)?;
            rest = Some(others);
            Ok((flat, recorded))
        },
        |recorded: Recorded<O, B>, cotangent, wanted| {
            let mut all = recorded.vjp(cotangent, wanted).into_iter();
            std::array::from_fn(|_| all.next().flatten())
        },
    )?;
    Ok(outcome(flat, rest))
}

/// More operands than nodes have inputs for: they enter side by side.
fn packed<O: Operation, B: Operations, C: CheckpointStrategy>(
    op: &O,
    inputs: &[Operand<Autodiff<B, C>>],
    floats: Vec<Tracked<B, C>>,
    outer: &[bool],
) -> Result<Outcome<Floats<Autodiff<B, C>>>, O::Error> {
    let shapes: Vec<Shape> = floats.iter().map(TensorMetadata::shape).collect();
    let operands = shapes.clone();
    let mut rest = None;
    let flat = record::<B, C, _, O::Error, 1>(
        [pack::<Autodiff<B, C>>(floats)],
        |[flat], _| {
            let below = below(inputs, shapes.into_iter().map(unpack::<B>(flat)));
            let (flat, recorded, others) = Recorded::run(op, below, [], outer)?;
            rest = Some(others);
            Ok((flat, recorded))
        },
        |recorded: Recorded<O, B>, cotangent, _| {
            let like = cotangent.clone();
            let zeros =
                |shape| B::float_zeros(shape, &float_device::<B>(&like), like.dtype().into());
            let all = recorded.vjp(cotangent, []).into_iter().zip(operands);
            [Some(pack::<B>(all.map(|(x, shape)| x.unwrap_or_else(|| zeros(shape)))))]
        },
    )?;
    Ok(outcome(flat, rest))
}

/// Results on the tape, and what has no derivative.
fn outcome<B: Operations, C: CheckpointStrategy>(
    flat: Tracked<B, C>,
    rest: Option<Rest<B>>,
) -> Outcome<Floats<Autodiff<B, C>>> {
    let (results, hidden, extra) = rest.unwrap_or_else(|| unreachable!("forward has succeeded"));
    let count = results.len();
    let all = parted::<Autodiff<B, C>>(flat, results.into_iter().chain(hidden).collect());
    let mut results: Vec<_> = all.into_iter().map(Floats).collect();
    let hidden = results.split_off(count);
    Outcome { results, hidden, extra: extra.into_iter().map(above).collect() }
}

/// Operands with these floats, below the tape.
fn below<B: Operations, C: CheckpointStrategy>(
    inputs: &[Operand<Autodiff<B, C>>],
    mut floats: impl Iterator<Item = FloatTensor<B>>,
) -> Vec<Operand<B>> {
    let one = |x: &Operand<Autodiff<B, C>>| match x {
        Value::Float(_) => {
            Value::Float(Floats(floats.next().unwrap_or_else(|| unreachable!("one per operand"))))
        }
        Value::Integers(x) => Value::Integers(Indices(x.0.clone())),
        Value::Flags(x) => Value::Flags(Bools(x.0.clone())),
    };
    inputs.iter().map(one).collect()
}

/// A value, without the tape that it may be on.
fn value<B: Operations, C: CheckpointStrategy>(x: &Operand<Autodiff<B, C>>) -> Operand<B> {
    match x {
        Value::Float(x) => Value::Float(Floats(primitive::<B, C>(&x.0).clone())),
        Value::Integers(x) => Value::Integers(Indices(x.0.clone())),
        Value::Flags(x) => Value::Flags(Bools(x.0.clone())),
    }
}

/// A value without a derivative, on the tape.
fn above<B: Operations, C: CheckpointStrategy>(x: Operand<B>) -> Operand<Autodiff<B, C>> {
    match x {
        Value::Float(x) => Value::Float(Floats(constant::<B, C>(x.0))),
        Value::Integers(x) => Value::Integers(Indices(x.0)),
        Value::Flags(x) => Value::Flags(Bools(x.0)),
    }
}
