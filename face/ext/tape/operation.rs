//! Operations as values on the tape: one node each.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend};
use t4a_diff::{Array, Cotangents, Dual, Kept, Operation, Outcome, Reverse, Value};
use t4a_einsum::EinsumError;
use t4a_tensor::route::Route;

use super::{Handed, InputMeta, Tracked, constant, is_tracked, primitive, record};
use crate::boundary::accept;
use crate::ext::operation::{
    DerivativeOf, DerivativeOutcome, Kernel, Meta, Operand, Operations, rule_jvp, rule_vjp,
};
use crate::ext::primitive::{Bools, Floats, Indices, SemiringArray};

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

    /// The rule on tracked tensors, which Burn records.
    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        rule_vjp(op, reverse)
    }

    /// On `B` if nothing is tracked; otherwise the rule on tracked tensors, which Burn records.
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
            return rule_jvp(op, inputs, tracked);
        }
        let inner = |x: &Floats<Self>| Floats(Self::inner(x.0.clone()));
        let below = |x: Dual<Floats<Self>>| Dual {
            value: inner(&x.value),
            tangent: x.tangent.as_ref().map(inner),
        };
        let below =
            |x: &Value<Dual<Floats<Self>>>| x.clone().map(below, |x| Indices(x.0), |x| Bools(x.0));
        let outer = |x: Floats<B>| Floats(Self::from_inner(x.0));
        let above =
            |x: Dual<Floats<B>>| Dual { value: outer(x.value), tangent: x.tangent.map(outer) };
        let value = |x: Value<Dual<Floats<B>>>| Ok(x.map(above, |x| Indices(x.0), |x| Bools(x.0)));
        let inputs: Vec<Value<Dual<Floats<B>>>> = inputs.iter().map(below).collect();
        B::jvp(op, &inputs, tracked)?.try_map(value, |x| Ok(above(x)))
    }

    fn run_derivative<O: Operation, A: Operations>(
        of: DerivativeOf<'_, O>,
        inputs: &[Operand<A>],
        tracked: &[bool],
    ) -> DerivativeOutcome<O, A> {
        B::run_derivative(of, inputs, tracked)
    }

    fn has_kernel(kernel: Kernel, inputs: &[Meta]) -> bool {
        B::has_kernel(kernel, inputs)
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

    fn has_element_product(a: &SemiringArray<Self>) -> bool {
        B::has_element_product(&without_tape(a))
    }

    /// The result is a constant of the tape.
    fn element_product(
        a: &SemiringArray<Self>,
        b: &SemiringArray<Self>,
    ) -> Result<SemiringArray<Self>, EinsumError> {
        let c = B::element_product(&without_tape(a), &without_tape(b))?;
        Ok(c.on(|x| Floats(Self::from_inner(x.0.clone())), |i| Indices(i.0.clone())))
    }
}

fn without_tape<B: Operations, C: CheckpointStrategy>(
    x: &SemiringArray<Autodiff<B, C>>,
) -> SemiringArray<B> {
    x.on(|x| Floats(Autodiff::<B, C>::inner(x.0.clone())), |i| Indices(i.0.clone()))
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
    let primitives: Vec<FloatTensor<B>> =
        floats.iter().map(|x| primitive::<B, C>(x).clone()).collect();
    let tracked: Vec<bool> = floats.iter().map(is_tracked::<B, C>).collect();
    let mut rest = None;
    let mut results = record_list::<_, B, C, O::Error>(floats, || {
        let below = below(inputs, primitives.into_iter());
        let ((values, count, extra), recorded) = Recorded::run(op, below, tracked, outer)?;
        rest = Some((count, extra));
        Ok((values, recorded))
    })?;
    let (count, extra) = rest.unwrap_or_else(|| unreachable!("forward has succeeded"));
    let hidden = results.split_off(count).into_iter().map(Floats).collect();
    let results = results.into_iter().map(Floats).collect();
    Ok(Outcome { results, hidden, extra: extra.into_iter().map(above).collect() })
}

/// Residuals of a node with any number of inputs and outputs, and its rule.
pub(crate) trait Residuals<B: Backend>: Send + 'static {
    /// Cotangents of the inputs from those of the outputs; `None` is zero.
    fn vjp(self, cotangents: Vec<Option<FloatTensor<B>>>) -> Vec<Option<FloatTensor<B>>>;
}

/// Values from inputs, one of which is tracked, as one node: `start` gives at least one output and the residuals.
///
/// # Errors
/// Those of `start`; nothing is recorded then.
pub(crate) fn record_list<R, B, C, E>(
    inputs: Vec<Tracked<B, C>>,
    start: impl FnOnce() -> Result<(Vec<FloatTensor<B>>, R), E>,
) -> Result<Vec<Tracked<B, C>>, E>
where
    R: Residuals<B>,
    B: Backend,
    C: CheckpointStrategy,
{
    let (own, entered) = entered::<B, C>(inputs);
    match own.len() {
        1 => node::<R, B, C, E, 1>(own, entered, start),
        2 => node::<R, B, C, E, 2>(own, entered, start),
        3 => node::<R, B, C, E, 3>(own, entered, start),
        _ => node::<R, B, C, E, 4>(own, entered, start),
    }
}

/// Inputs of earlier nodes, whose cotangents a node puts there, and the number of their places.
type Earlier<B> = Option<(Handed<B>, usize)>;

/// At most four inputs of a node. The first one is the token of those before if there are more.
fn entered<B: Backend, C: CheckpointStrategy>(
    floats: Vec<Tracked<B, C>>,
) -> (Vec<Tracked<B, C>>, Earlier<B>) {
    if floats.len() <= 4 {
        return (floats, None);
    }
    let handed = Handed::<B>::new(0);
    let mut floats = floats.into_iter();
    let mut next = || floats.next().unwrap_or_else(|| unreachable!("there are more than four"));
    let mut token = handed.enter::<C, 4>([next(), next(), next(), next()], 0);
    let mut places = 4;
    while floats.len() > 3 {
        let mut next =
            || floats.next().unwrap_or_else(|| unreachable!("there are more than three"));
        token = handed.enter::<C, 4>([token, next(), next(), next()], places);
        places += 4;
    }
    (std::iter::once(token).chain(floats).collect(), Some((handed, places)))
}

/// Values of the results and the hidden results, the number of the former, and constants.
type Values<B> = (Vec<FloatTensor<B>>, usize, Vec<Operand<B>>);

/// Residuals of a node: the operation, its kept values, and masks of the operands that are floats and tracked.
struct Recorded<O, B: Operations> {
    op: O,
    kept: Kept<Floats<B>>,
    results: usize,
    /// Of the first result.
    first: InputMeta<B>,
    floats: Vec<bool>,
    tracked: Vec<bool>,
}

impl<O: Operation, B: Operations> Recorded<O, B> {
    /// Runs the operation. `tracked` is of the floats; hidden results leave if there is a tape above.
    fn run(
        op: &O,
        inputs: Vec<Operand<B>>,
        tracked: Vec<bool>,
        outer: &[bool],
    ) -> Result<(Values<B>, Self), O::Error> {
        let mut tracked = tracked.into_iter();
        let floats: Vec<bool> = inputs.iter().map(|x| matches!(x, Value::Float(_))).collect();
        let tracked: Vec<bool> =
            floats.iter().map(|&float| float && tracked.next() == Some(true)).collect();
        let all: Vec<bool> = tracked.iter().zip(outer).map(|(a, b)| a | b).collect();
        let mut out = B::run(op, &inputs, &all)?;
        let kept = Kept::new(B::keep(op, &tracked), &inputs, &out);
        if !outer.contains(&true) {
            out.hidden.clear();
        }
        let results = out.results.len();
        let values: Vec<_> = out.results.into_iter().chain(out.hidden).map(|y| y.0).collect();
        let first = InputMeta::<B>::of(&values[0]);
        let recorded = Self { op: op.clone(), kept, results, first, floats, tracked };
        Ok(((values, results, out.extra), recorded))
    }
}

impl<O: Operation, B: Operations> Residuals<B> for Recorded<O, B> {
    fn vjp(self, cotangents: Vec<Option<FloatTensor<B>>>) -> Vec<Option<FloatTensor<B>>> {
        let mut cotangents: Vec<_> = cotangents.into_iter().map(|x| x.map(Floats)).collect();
        let hidden = cotangents.split_off(self.results);
        if cotangents.iter().all(Option::is_none) {
            // A rule is given one of a result.
            cotangents[0] = Some(Floats(self.first.zeros()));
        }
        let (kept, cotangents, hidden) = (&self.kept, &cotangents[..], &hidden[..]);
        let reverse = Reverse { kept, cotangents, hidden, wanted: &self.tracked };
        let all = accept(B::vjp(&self.op, &reverse));
        let floats = all.into_iter().zip(self.floats).filter(|(_, float)| *float);
        floats.map(|(x, _)| x.map(|x| x.0)).collect()
    }
}

fn node<R: Residuals<B>, B: Backend, C: CheckpointStrategy, E, const N: usize>(
    own: Vec<Tracked<B, C>>,
    earlier: Earlier<B>,
    start: impl FnOnce() -> Result<(Vec<FloatTensor<B>>, R), E>,
) -> Result<Vec<Tracked<B, C>>, E> {
    let Ok(own) = <[Tracked<B, C>; N]>::try_from(own) else {
        unreachable!("the number of inputs was matched on");
    };
    let mut several = None;
    let output = record::<B, C, _, E, N>(
        own,
        |_, _| {
            let (mut values, residuals) = start()?;
            // An only result is the output of the node.
            let handed = (values.len() > 1).then(|| Handed::<B>::new(values.len()));
            let output = match &handed {
                None => values.swap_remove(0),
                Some(handed) => {
                    let number = InputMeta::<B>::of(&values[0]).number();
                    several = Some((values, handed.clone()));
                    number
                }
            };
            Ok((output, (residuals, handed)))
        },
        |(residuals, handed): (R, Option<Handed<B>>), cotangent, _| {
            let cotangents = handed.map_or_else(|| vec![Some(cotangent)], |given| given.take());
            let mut all = residuals.vjp(cotangents);
            if let Some((handed, places)) = earlier {
                // Tokens have places too, without cotangents.
                (4..=places).step_by(4).for_each(|place| all.insert(place, None));
                let own = all.split_off(places);
                handed.put(std::mem::replace(&mut all, own));
            }
            let mut all = all.into_iter();
            std::array::from_fn(|_| all.next().flatten())
        },
    )?;
    Ok(match several {
        None => vec![output],
        Some((values, handed)) => {
            let leave = |(place, y)| handed.leave::<C>(&output, place, y);
            values.into_iter().enumerate().map(leave).collect()
        }
    })
}

/// Operands with these floats, below the tape.
fn below<B: Operations, C: CheckpointStrategy>(
    inputs: &[Operand<Autodiff<B, C>>],
    mut floats: impl Iterator<Item = FloatTensor<B>>,
) -> Vec<Operand<B>> {
    let mut float = |_| Floats(floats.next().unwrap_or_else(|| unreachable!("one per operand")));
    let one =
        |x: &Operand<Autodiff<B, C>>| x.clone().map(&mut float, |x| Indices(x.0), |x| Bools(x.0));
    inputs.iter().map(one).collect()
}

/// A value, without the tape that it may be on.
fn value<B: Operations, C: CheckpointStrategy>(x: &Operand<Autodiff<B, C>>) -> Operand<B> {
    let float = |x: Floats<Autodiff<B, C>>| Floats(primitive::<B, C>(&x.0).clone());
    x.clone().map(float, |x| Indices(x.0), |x| Bools(x.0))
}

/// A value without a derivative, on the tape.
fn above<B: Operations, C: CheckpointStrategy>(x: Operand<B>) -> Operand<Autodiff<B, C>> {
    x.map(|x| Floats(constant::<B, C>(x.0)), |x| Indices(x.0), |x| Bools(x.0))
}
