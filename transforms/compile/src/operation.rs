//! Operations defined outside of Burn's traits: each is one instruction, and so is its reverse rule.
//!
//! A forward rule is recorded as array operations, which fused groups and exports can read. The rules of factorisations
//! read elements of intermediate values (pivots, gaps of spectra), so each of them is one instruction too. Derivatives of
//! these rules are operations of the table as well: [`HostOperation`].

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use burn_backend::{Backend, Shape};
use burn_t4a::ext::operation::{
    Cotangents, DerivativeOf, DerivativeOutcome, Dual, Operand, Operation, Operations, Outcome,
    Reverse, Value,
};
use burn_t4a::ext::primitive::{Bools, Floats, Indices};
use t4a_operations::{AnyOperation, Jvp, OperationError, Vjp};
use t4a_tensor::TensorError;

use crate::backend::Traced;
use crate::call::{Call, Results};
use crate::host_operation::HostOperation;
use crate::pass::{OperationArray, OperationPass, PassArrays};
use crate::recording::{Execute, Frame, NestedPrograms};
use crate::tensor::{AnyPrimitive, FloatKind, TracedTensor};

/// A step given by a closure. It has no encoding as words, since the operation may hold arbitrary data.
pub(crate) struct Function<F> {
    pub(crate) run: F,
}

impl<B, F> Execute<B> for Function<F>
where
    B: Backend,
    F: Fn(&mut Frame<B>, &mut Vec<AnyPrimitive<B>>) -> Result<(), String> + Send + Sync,
{
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> Result<(), String> {
        (self.run)(frame, out)
    }
}

/// Step of an operation, which a closure runs on a frame.
struct OperationStep<O, F> {
    op: O,
    run: Arc<F>,
    arrays: Arc<PassArrays>,
}

impl<B, O, F, R> Execute<B> for OperationStep<O, F>
where
    B: Backend,
    O: Operation,
    F: Fn(&O, &mut Frame<B>, &mut Vec<AnyPrimitive<B>>) -> Result<R, O::Error>,
    F: Send + Sync + 'static,
{
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> Result<(), String> {
        (self.run)(&self.op, frame, out).map(|_| ()).map_err(|error| error.to_string())
    }
    fn operation(&self) -> Option<(AnyOperation, &PassArrays)> {
        Some((HostOperation::any(&self.op)?, &self.arrays))
    }
    fn with_operation(&self, op: &dyn Any) -> Option<Arc<dyn Execute<B>>> {
        let (op, run, arrays) = (op.downcast_ref::<O>()?.clone(), self.run.clone(), &self.arrays);
        Some(Arc::new(Self { op, run, arrays: arrays.clone() }))
    }
}

/// Runs a pass of an operation, and records it as one instruction.
fn recorded<B, O, F, R>(
    call: Call<B>,
    op: &O,
    run: F,
    arrays: impl FnOnce(&R) -> PassArrays,
) -> Result<(R, Results<B>), O::Error>
where
    B: Backend,
    O: Operation,
    F: Fn(&O, &mut Frame<B>, &mut Vec<AnyPrimitive<B>>) -> Result<R, O::Error>,
    F: Send + Sync + 'static,
{
    let (form, all, pending) = call.record(|frame, out| run(op, frame, out))?;
    let step = || -> Arc<dyn Execute<B>> {
        let arrays = Arc::new(arrays(&form));
        Arc::new(OperationStep { op: op.clone(), run: Arc::new(run), arrays })
    };
    let all = pending.finish(all, step);
    Ok((form, all))
}

/// Indices of the true elements, as arrays of a kind.
fn given(
    kind: fn(usize) -> OperationArray,
    mask: &[bool],
) -> impl Iterator<Item = OperationArray> + '_ {
    mask.iter().enumerate().filter(|(_, given)| **given).map(move |(i, _)| kind(i))
}

/// Arrays of a kind, twice if they have a tangent.
fn with_tangents(
    kind: fn(usize) -> OperationArray,
    moves: &[bool],
) -> impl Iterator<Item = OperationArray> + '_ {
    let one = move |(i, &moves): (usize, &bool)| [Some(kind(i)), moves.then(|| kind(i))];
    moves.iter().enumerate().flat_map(one).flatten()
}

/// A step that runs recorded programs.
pub(crate) struct WithPrograms<B: Backend, S> {
    pub(crate) step: S,
    pub(crate) nested: NestedPrograms<B>,
}

impl<B: Backend, S: Execute<B>> Execute<B> for WithPrograms<B, S> {
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> Result<(), String> {
        self.step.run(frame, out)
    }
    fn nested(&self) -> Option<&NestedPrograms<B>> {
        Some(&self.nested)
    }
}

pub(crate) fn operand<B: Operations>(call: &mut Call<B>, x: &Operand<Traced<B>>) {
    match x {
        Value::Float(x) => call.operand(x.0.clone()),
        Value::Integers(x) => call.operand(x.0.clone()),
        Value::Flags(x) => call.operand(x.0.clone()),
    };
}

pub(crate) fn value<B: Operations>(x: AnyPrimitive<B>) -> Operand<B> {
    match x {
        AnyPrimitive::Float(x) => Value::Float(Floats(x)),
        AnyPrimitive::Int(x) => Value::Integers(Indices(x)),
        AnyPrimitive::Bool(x) => Value::Flags(Bools(x)),
        AnyPrimitive::Quantized(_) => unreachable!("operations have no quantized operands"),
    }
}

/// Converts an operand to a tensor of any kind.
pub(crate) fn any<B: Operations>(x: Operand<B>) -> AnyPrimitive<B> {
    match x {
        Value::Float(x) => AnyPrimitive::Float(x.0),
        Value::Integers(x) => AnyPrimitive::Int(x.0),
        Value::Flags(x) => AnyPrimitive::Bool(x.0),
    }
}

/// Appends the tensors of an outcome to `all`; returns the numbers of results, hidden values and extra values.
fn flatten<B: Operations>(
    outcome: Outcome<Floats<B>>,
    all: &mut Vec<AnyPrimitive<B>>,
) -> (usize, usize, usize) {
    let counts = (outcome.results.len(), outcome.hidden.len(), outcome.extra.len());
    all.extend(outcome.results.into_iter().chain(outcome.hidden).map(|x| AnyPrimitive::Float(x.0)));
    all.extend(outcome.extra.into_iter().map(any));
    counts
}

/// For each result, hidden value and extra value of an outcome, true if it has a tangent.
struct TangentMasks {
    results: Vec<bool>,
    hidden: Vec<bool>,
    extra: Vec<bool>,
}

/// Splits an operand into its value and its tangent.
fn halves<B: Operations>(x: Value<Dual<Floats<B>>>) -> [Option<Operand<B>>; 2] {
    let tangent = match &x {
        Value::Float(x) => x.tangent.clone().map(Value::Float),
        _ => None,
    };
    [Some(x.below()), tangent]
}

/// Appends the tensors of an outcome with tangents to `all`: each value, and its tangent if it has one.
fn flatten_duals<B: Operations>(
    outcome: Outcome<Dual<Floats<B>>>,
    all: &mut Vec<AnyPrimitive<B>>,
) -> TangentMasks {
    let mut append = |values: Vec<Value<Dual<Floats<B>>>>| -> Vec<bool> {
        let moving = values.iter().map(Value::moves).collect();
        all.extend(values.into_iter().flat_map(halves).flatten().map(any));
        moving
    };
    let floats = |values: Vec<Dual<Floats<B>>>| values.into_iter().map(Value::Float).collect();
    TangentMasks {
        results: append(floats(outcome.results)),
        hidden: append(floats(outcome.hidden)),
        extra: append(outcome.extra),
    }
}

fn dual<B: Operations>(all: &mut Results<B>, moves: bool) -> Value<Dual<Floats<Traced<B>>>> {
    let x = value(all.any());
    let tangent = moves.then(|| float(all));
    x.dual(tangent)
}

fn float<B: Operations>(all: &mut Results<B>) -> Floats<Traced<B>> {
    Floats(all.take::<FloatKind>())
}

impl<B: Operations> Operations for Traced<B> {
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        let mut call = Call::new(op.name());
        inputs.iter().for_each(|x| operand(&mut call, x));
        let (tracked, count) = (tracked.to_vec(), inputs.len());
        let run = move |op: &O, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
            let inputs: Vec<Operand<B>> = (0..count).map(|at| value(frame.any(at))).collect();
            Ok::<_, O::Error>(flatten(B::run(op, &inputs, &tracked)?, out))
        };
        let arrays = |&(results, hidden, extra): &(usize, usize, usize)| PassArrays {
            pass: OperationPass::Forward,
            operands: (0..count).map(OperationArray::Operand).collect(),
            results: (0..results)
                .map(OperationArray::Result)
                .chain((0..hidden).map(OperationArray::Hidden))
                .chain((0..extra).map(OperationArray::Extra))
                .collect(),
        };
        let ((results, hidden, extra), mut all) = recorded(call, op, run, arrays)?;
        let results = (0..results).map(|_| float(&mut all)).collect();
        let hidden = (0..hidden).map(|_| float(&mut all)).collect();
        let extra = (0..extra).map(|_| value(all.any())).collect();
        Ok(Outcome { results, hidden, extra })
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floats<Self>>,
    ) -> Result<Cotangents<Floats<Self>>, O::Error> {
        let call = RefCell::new(Call::<B>::new(op.name()));
        // The residuals keep their form, but their tensors are replaced by empty ones, so that the rule retains no
        // memory.
        let none = |x: &TracedTensor<B, FloatKind>| {
            let device = B::float_device(&x.primitive);
            let dtype = burn_backend::TensorMetadata::dtype(x).into();
            B::float_empty(Shape::from([0]), &device, dtype)
        };
        let form = reverse.kept.try_map(
            |x| {
                operand(&mut call.borrow_mut(), x);
                let float = |x: Floats<Self>| Floats::<B>(none(&x.0));
                let integers = |x: Indices<Self>| Indices(x.0.primitive);
                Ok::<_, O::Error>(x.clone().map(float, integers, |x| Bools(x.0.primitive)))
            },
            |x| {
                call.borrow_mut().operand(x.0.clone());
                Ok(Floats(none(&x.0)))
            },
        )?;
        let mut call = call.into_inner();
        let mut append = |all: &[Option<Floats<Self>>]| -> Vec<bool> {
            let one =
                |x: &Option<Floats<Self>>| x.as_ref().map(|x| call.operand(x.0.clone())).is_some();
            all.iter().map(one).collect()
        };
        let (cotangents, hidden) = (append(reverse.cotangents), append(reverse.hidden));
        let kept = reverse.kept;
        let inputs: Vec<bool> = kept.inputs().iter().map(Option::is_some).collect();
        let results: Vec<bool> = kept.results().iter().map(Option::is_some).collect();
        let operands = given(OperationArray::Operand, &inputs)
            .chain(given(OperationArray::Result, &results))
            .chain((0..kept.hidden.len()).map(OperationArray::Hidden))
            .chain((0..kept.extra.len()).map(OperationArray::Extra))
            .chain(given(OperationArray::Result, &cotangents))
            .chain(given(OperationArray::Hidden, &hidden))
            .collect();
        let wanted = reverse.wanted.to_vec();
        let run = move |op: &O, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
            let (next, frame) = (Cell::new(0), RefCell::new(frame));
            let any = || value(frame.borrow_mut().any(next.replace(next.get() + 1)));
            let kept =
                form.try_map(|_| Ok::<_, TensorError>(any()), |_| Ok(any().float().clone()))?;
            let all = |given: &[bool]| -> Vec<Option<Floats<B>>> {
                given.iter().map(|&given| given.then(|| any().float().clone())).collect()
            };
            let (cotangents, hidden) = (all(&cotangents), all(&hidden));
            let reverse =
                Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted: &wanted };
            let results = B::vjp(op, &reverse)?;
            let form: Vec<bool> = results.iter().map(Option::is_some).collect();
            out.extend(results.into_iter().flatten().map(|x| AnyPrimitive::Float(x.0)));
            Ok::<_, O::Error>(form)
        };
        let arrays = |form: &Vec<bool>| {
            let results = given(OperationArray::Operand, form).collect();
            PassArrays { pass: OperationPass::Vjp, operands, results }
        };
        let (form, mut all) = recorded(call, op, run, arrays)?;
        Ok(form.into_iter().map(|given| given.then(|| float(&mut all))).collect())
    }

    /// One instruction if the rule reads elements; otherwise the array operations of its definition.
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        if !op.is_on_host() {
            return op.jvp(inputs, tracked);
        }
        let mut call = Call::new(op.name());
        let moving: Vec<bool> = inputs.iter().map(Value::moves).collect();
        inputs.iter().cloned().flat_map(halves).flatten().for_each(|x| operand(&mut call, &x));
        let tracked = tracked.to_vec();
        let operands = with_tangents(OperationArray::Operand, &moving).collect();
        let run = move |op: &O, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
            let mut places = 0..;
            let mut next = || value(frame.any(places.next().unwrap_or_default()));
            let one = |&moves: &bool| {
                let x = next();
                x.dual(moves.then(|| next().float().clone()))
            };
            let inputs: Vec<Value<Dual<Floats<B>>>> = moving.iter().map(one).collect();
            Ok::<_, O::Error>(flatten_duals(B::jvp(op, &inputs, &tracked)?, out))
        };
        let arrays = |masks: &TangentMasks| PassArrays {
            pass: OperationPass::Jvp,
            operands,
            results: with_tangents(OperationArray::Result, &masks.results)
                .chain(with_tangents(OperationArray::Hidden, &masks.hidden))
                .chain(with_tangents(OperationArray::Extra, &masks.extra))
                .collect(),
        };
        let (moving, mut all) = recorded(call, op, run, arrays)?;
        let mut floats = |moving: Vec<bool>| -> Vec<Dual<Floats<Self>>> {
            moving.into_iter().map(|moves| dual(&mut all, moves).float().clone()).collect()
        };
        let (results, hidden) = (floats(moving.results), floats(moving.hidden));
        let extra = moving.extra.into_iter().map(|moves| dual(&mut all, moves)).collect();
        Ok(Outcome { results, hidden, extra })
    }

    /// Rules that read elements are operations of their own.
    fn run_derivative<O: Operation, A: Operations>(
        of: DerivativeOf<'_, O>,
        inputs: &[Operand<A>],
        tracked: &[bool],
    ) -> DerivativeOutcome<O, A> {
        let (DerivativeOf::Jvp { op, .. } | DerivativeOf::Vjp { op, .. }) = of;
        let HostOperation(any) = HostOperation::of(op)?;
        let derivative = match of {
            DerivativeOf::Jvp { moving, .. } => Jvp::new(any, moving.to_vec()).map(Into::into),
            DerivativeOf::Vjp { given, wanted, .. } => {
                Vjp::new(any, given.to_vec(), wanted.to_vec()).map(Into::into)
            }
        };
        let run = |op| A::run(&HostOperation(op), inputs, tracked);
        Some(derivative.and_then(run).map_err(OperationError::into_of::<O>))
    }
}
