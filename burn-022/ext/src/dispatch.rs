//! Operations on Burn's run-time choice of backends (`Dispatch`): runs an operation on the backend of its operands.
//!
//! On backends that are not listed here Burn runs and records the operations of the portable definition one by one.

use std::convert::Infallible;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::{BalancedCheckpointing, NoCheckpointing};
use burn_backend::AutodiffBackend;
use burn_backend::tensor::FloatTensor;
use burn_dispatch::backends::Flex;
#[cfg(feature = "ndarray")]
#[allow(deprecated)]
use burn_dispatch::backends::NdArray;
#[cfg(feature = "remote")]
use burn_dispatch::backends::Remote;
use burn_dispatch::{
    BackendTensor, Dispatch, DispatchAutodiffContext, DispatchKindConversion, DispatchTensor,
    DispatchTensorKind, GradientCheckpointingStrategy,
};
use t4a_diff::{Dual, Operation, Outcome, Value};
use t4a_tensor::TensorError;
use t4a_tensor::route::Route;

use crate::operation::{Operand, Operations, by_definition};
use crate::primitive::{Bools, Floats, Indices};
use crate::tape;

/// Backend of the operands.
#[derive(Clone, Copy, PartialEq)]
enum OperandBackend {
    Flex,
    #[cfg(feature = "ndarray")]
    NdArray,
    #[cfg(feature = "remote")]
    Remote,
    /// On different backends, or on one that is not listed here.
    Elsewhere,
}

fn place(kind: &DispatchTensorKind) -> OperandBackend {
    match kind {
        DispatchTensorKind::Flex(_) => OperandBackend::Flex,
        #[cfg(feature = "ndarray")]
        DispatchTensorKind::NdArray(_) => OperandBackend::NdArray,
        #[cfg(feature = "remote")]
        DispatchTensorKind::Remote(_) => OperandBackend::Remote,
        DispatchTensorKind::Autodiff(inner) => place(inner),
        #[allow(unreachable_patterns)]
        _ => OperandBackend::Elsewhere,
    }
}

/// Returns true if the integer dtype can be changed: a server of Burn 0.22.1 panics on that.
#[cfg(feature = "linalg")]
pub(crate) fn casts_integers(x: &DispatchTensor) -> bool {
    match place(&x.kind) {
        #[cfg(feature = "remote")]
        OperandBackend::Remote => false,
        _ => true,
    }
}

/// Common backend of these tensors, and the tape that they are on.
fn common<'a>(
    all: impl IntoIterator<Item = &'a DispatchTensor>,
) -> (OperandBackend, DispatchAutodiffContext) {
    let mut all = all.into_iter();
    let Some(first) = all.next() else {
        return (OperandBackend::Elsewhere, DispatchAutodiffContext::Disabled);
    };
    let start = (place(&first.kind), first.autodiff);
    all.fold(start, |(at, tape), x| {
        let at = if at == place(&x.kind) { at } else { OperandBackend::Elsewhere };
        (at, tape.merge(x.autodiff))
    })
}

/// Returns true if a node with a user-defined rule can be recorded for results of these tensors.
pub(crate) fn records<'a>(all: impl IntoIterator<Item = &'a DispatchTensor>) -> bool {
    common(all).0 != OperandBackend::Elsewhere
}

type Cotangents = Vec<Option<DispatchTensor>>;

/// Rule of a node with any number of inputs and outputs: cotangents of the inputs from those of the outputs; `None` is zero.
pub(crate) struct ListRule(pub(crate) Box<dyn FnOnce(Cotangents) -> Cotangents + Send>);

impl<B: Concrete> tape::operation::Residuals<B> for ListRule
where
    DispatchTensor: DispatchKindConversion<B>,
{
    fn vjp(self, cotangents: Vec<Option<FloatTensor<B>>>) -> Vec<Option<FloatTensor<B>>> {
        let above = |x: Option<FloatTensor<B>>| x.map(|x| B::dispatched(Floats(x)).0);
        let all = (self.0)(cotangents.into_iter().map(above).collect());
        all.into_iter().map(|x| x.map(B::float)).collect()
    }
}

/// A listed backend, with or without a tape: conversion from and to `Dispatch`.
trait Concrete: Operations
where
    DispatchTensor: DispatchKindConversion<Self>,
{
    const TAPE: DispatchAutodiffContext;

    /// Primitive of a float tensor that is on this backend.
    fn float(x: DispatchTensor) -> FloatTensor<Self>;

    /// Records one node over tensors on this backend; without a tape returns the output of `forward`.
    fn record<R: Send + 'static, E, const N: usize>(
        inputs: [DispatchTensor; N],
        forward: impl FnOnce([DispatchTensor; N]) -> Result<(DispatchTensor, R), E>,
        vjp: impl FnOnce(R, DispatchTensor) -> [Option<DispatchTensor>; N] + Send + 'static,
    ) -> Result<DispatchTensor, E>;

    /// Records one node with these outputs, at least one; without a tape returns the outputs.
    fn record_list(
        inputs: Vec<DispatchTensor>,
        outputs: Vec<DispatchTensor>,
        rule: ListRule,
    ) -> Vec<DispatchTensor>;

    fn taken(x: DispatchTensor) -> BackendTensor<Self> {
        match DispatchTensor::try_into_backend(x) {
            Ok(x) => x,
            Err(message) => unreachable!("{message}"),
        }
    }

    fn value(x: &Operand<Dispatch>) -> Operand<Self> {
        // Tensors without a derivative are constants of any tape.
        let constant =
            |x: DispatchTensor| Self::taken(DispatchTensor { autodiff: Self::TAPE, ..x });
        x.clone().map(
            |x| Floats(Self::float(x.0)),
            |x| Indices(constant(x.0).int()),
            |x| Bools(constant(x.0).bool()),
        )
    }

    fn dispatched(x: Floats<Self>) -> Floats<Dispatch> {
        Floats(DispatchTensor::from_backend(BackendTensor::Float(x.0)))
    }

    fn dispatched_value(x: Operand<Self>) -> Operand<Dispatch> {
        match x {
            Value::Float(x) => Value::Float(Self::dispatched(x)),
            Value::Integers(x) => {
                Value::Integers(Indices(DispatchTensor::from_backend(BackendTensor::Int(x.0))))
            }
            Value::Flags(x) => {
                Value::Flags(Bools(DispatchTensor::from_backend(BackendTensor::Bool(x.0))))
            }
        }
    }
}

macro_rules! concrete {
    ($($B:ident),*) => {$(
        #[allow(deprecated)]
        impl Concrete for $B {
            const TAPE: DispatchAutodiffContext = DispatchAutodiffContext::Disabled;

            fn float(x: DispatchTensor) -> FloatTensor<Self> {
                Self::taken(x).float()
            }
            fn record<R: Send + 'static, E, const N: usize>(
                inputs: [DispatchTensor; N],
                forward: impl FnOnce([DispatchTensor; N]) -> Result<(DispatchTensor, R), E>,
                _: impl FnOnce(R, DispatchTensor) -> [Option<DispatchTensor>; N] + Send + 'static,
            ) -> Result<DispatchTensor, E> {
                Ok(forward(inputs)?.0)
            }
            fn record_list(
                _: Vec<DispatchTensor>,
                outputs: Vec<DispatchTensor>,
                _: ListRule,
            ) -> Vec<DispatchTensor> {
                outputs
            }
        }
        concrete!(@tape $B, NoCheckpointing, Disabled);
        concrete!(@tape $B, BalancedCheckpointing, Balanced);
    )*};
    (@tape $B:ident, $C:ident, $strategy:ident) => {
        #[allow(deprecated)]
        impl Concrete for Autodiff<$B, $C> {
            const TAPE: DispatchAutodiffContext =
                DispatchAutodiffContext::Enabled(GradientCheckpointingStrategy::$strategy);

            fn float(x: DispatchTensor) -> FloatTensor<Self> {
                match x.autodiff {
                    DispatchAutodiffContext::Disabled => Self::from_inner($B::float(x)),
                    DispatchAutodiffContext::Enabled(_) => Self::taken(x).float(),
                }
            }
            fn record<R: Send + 'static, E, const N: usize>(
                inputs: [DispatchTensor; N],
                forward: impl FnOnce([DispatchTensor; N]) -> Result<(DispatchTensor, R), E>,
                vjp: impl FnOnce(R, DispatchTensor) -> [Option<DispatchTensor>; N] + Send + 'static,
            ) -> Result<DispatchTensor, E> {
                let above = |x: FloatTensor<$B>| <$B as Concrete>::dispatched(Floats(x)).0;
                let node = tape::record::<$B, $C, R, E, N>(
                    inputs.map(Self::float),
                    |inputs, _| {
                        let (output, kept) = forward(inputs.map(above))?;
                        Ok(($B::float(output), kept))
                    },
                    move |kept, cotangent, _| {
                        vjp(kept, above(cotangent)).map(|x| x.map(<$B as Concrete>::float))
                    },
                );
                Ok(Self::dispatched(Floats(node?)).0)
            }
            fn record_list(
                inputs: Vec<DispatchTensor>,
                outputs: Vec<DispatchTensor>,
                rule: ListRule,
            ) -> Vec<DispatchTensor> {
                let inputs = inputs.into_iter().map(Self::float).collect();
                let outputs = outputs.into_iter().map(<$B as Concrete>::float).collect();
                let node = || Ok((outputs, rule));
                let Ok(all) = tape::operation::record_list::<_, $B, $C, Infallible>(inputs, node);
                all.into_iter().map(|y| Self::dispatched(Floats(y)).0).collect()
            }
        }
    };
}
concrete!(Flex);
#[cfg(feature = "ndarray")]
concrete!(NdArray);
#[cfg(feature = "remote")]
concrete!(Remote);

/// Expands `$body` with `$B` as the backend of a place, or `$elsewhere` for unlisted backends.
macro_rules! at {
    ($place:expr, |$B:ident| $body:expr, else $elsewhere:expr) => {{
        use DispatchAutodiffContext as Tape;
        use GradientCheckpointingStrategy as Strategy;
        macro_rules! on {
            ($inner:ident, $tape:expr) => {
                match $tape {
                    Tape::Disabled => {
                        type $B = $inner;
                        $body
                    }
                    Tape::Enabled(Strategy::Disabled) => {
                        type $B = Autodiff<$inner, NoCheckpointing>;
                        $body
                    }
                    Tape::Enabled(Strategy::Balanced) => {
                        type $B = Autodiff<$inner, BalancedCheckpointing>;
                        $body
                    }
                }
            };
        }
        match $place {
            (OperandBackend::Flex, tape) => on!(Flex, tape),
            #[cfg(feature = "ndarray")]
            #[allow(deprecated)]
            (OperandBackend::NdArray, tape) => on!(NdArray, tape),
            #[cfg(feature = "remote")]
            (OperandBackend::Remote, tape) => on!(Remote, tape),
            (OperandBackend::Elsewhere, _) => $elsewhere,
        }
    }};
}

/// As [`tape::record`], on the backend of these tensors, which is a listed one.
///
/// # Errors
/// Errors of `forward`; an error if the output is on another backend.
pub(crate) fn record<R, E, const N: usize>(
    inputs: [DispatchTensor; N],
    forward: impl FnOnce([DispatchTensor; N]) -> Result<(DispatchTensor, R), E>,
    vjp: impl FnOnce(R, DispatchTensor) -> [Option<DispatchTensor>; N] + Send + 'static,
) -> Result<DispatchTensor, E>
where
    R: Send + 'static,
    E: From<TensorError>,
{
    let (at, tape) = common(&inputs);
    let forward = |inputs: [DispatchTensor; N]| -> Result<(DispatchTensor, R), E> {
        let (output, kept) = forward(inputs)?;
        if place(&output.kind) != at {
            let message = "the result is on another backend than the operands";
            return Err(TensorError::value("record", message).into());
        }
        Ok((output, kept))
    };
    at!((at, tape), |B| B::record(inputs, forward, vjp),
        else unreachable!("asked for where rules are recorded"))
}

/// As [`tape::operation::record_list`], on the backend of these tensors, which is a listed one. The outputs, at least one, are on
/// no tape.
///
/// # Errors
/// An output on another backend.
pub(crate) fn record_list(
    inputs: Vec<DispatchTensor>,
    outputs: Vec<DispatchTensor>,
    rule: ListRule,
) -> Result<Vec<DispatchTensor>, TensorError> {
    let (at, tape) = common(&inputs);
    if outputs.iter().any(|y| place(&y.kind) != at) {
        let message = "a result is on another backend than the arguments";
        return Err(TensorError::value("record", message));
    }
    Ok(at!((at, tape), |B| B::record_list(inputs, outputs, rule),
        else unreachable!("asked for where rules are recorded")))
}

fn inner(x: &Operand<Dispatch>) -> &DispatchTensor {
    match x {
        Value::Float(x) => &x.0,
        Value::Integers(x) => &x.0,
        Value::Flags(x) => &x.0,
    }
}

fn run<O: Operation, B: Concrete>(
    op: &O,
    inputs: &[Operand<Dispatch>],
    tracked: &[bool],
) -> Result<Outcome<Floats<Dispatch>>, O::Error>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let inputs: Vec<Operand<B>> = inputs.iter().map(B::value).collect();
    let out = B::run(op, &inputs, tracked)?;
    out.try_map(|x| Ok(B::dispatched_value(x)), |x| Ok(B::dispatched(x)))
}

fn jvp<O: Operation, B: Concrete>(
    op: &O,
    inputs: &[Value<Dual<Floats<Dispatch>>>],
    tracked: &[bool],
) -> Result<Outcome<Dual<Floats<Dispatch>>>, O::Error>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    let dual = |x: &Value<Dual<Floats<Dispatch>>>| {
        let tangent = match x {
            Value::Float(x) => x.tangent.as_ref().map(|t| Floats(B::float(t.0.clone()))),
            _ => None,
        };
        B::value(&x.clone().below()).dual(tangent)
    };
    let inputs: Vec<_> = inputs.iter().map(dual).collect();
    let above = |x: Dual<Floats<B>>| Dual {
        value: B::dispatched(x.value),
        tangent: x.tangent.map(B::dispatched),
    };
    let value = |x: Value<Dual<Floats<B>>>| {
        Ok(match x {
            Value::Float(x) => Value::Float(above(x)),
            other => B::dispatched_value(other.below()).dual(None),
        })
    };
    B::jvp(op, &inputs, tracked)?.try_map(value, |x| Ok(above(x)))
}

/// Returns true if the tensor is an engine tensor.
pub(crate) fn is_engine(x: &DispatchTensor) -> bool {
    at!(common([x]), |B| B::is_engine(), else false)
}

fn with_route<B: Concrete>(x: &Operand<Dispatch>, route: Route) -> Operand<Dispatch>
where
    DispatchTensor: DispatchKindConversion<B>,
{
    B::dispatched_value(B::with_route(B::value(x), route))
}

impl Operations for Dispatch {
    fn route(x: &Operand<Self>) -> Option<Route> {
        at!(common([inner(x)]), |B| B::route(&B::value(x)), else None)
    }

    fn with_route(x: Operand<Self>, route: Route) -> Operand<Self> {
        at!(common([inner(&x)]), |B| with_route::<B>(&x, route), else x)
    }

    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floats<Self>>, O::Error> {
        at!(common(inputs.iter().map(inner)), |B| run::<O, B>(op, inputs, tracked),
            else by_definition(op, inputs, tracked))
    }

    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floats<Self>>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floats<Self>>>, O::Error> {
        let below: Vec<_> = inputs.iter().map(|x| x.clone().below()).collect();
        let tangent = |x: &Value<Dual<Floats<Self>>>| match x {
            Value::Float(x) => x.tangent.as_ref().map(|t| t.0.clone()),
            _ => None,
        };
        let tangents: Vec<DispatchTensor> = inputs.iter().filter_map(tangent).collect();
        at!(common(below.iter().map(inner).chain(&tangents)), |B| jvp::<O, B>(op, inputs, tracked),
            else op.jvp(inputs, tracked))
    }
}
