//! Linear algebra on the tape: an operation is one node, whose rule sees the cotangents of all
//! results together.
//!
//! The joint cotangent matters: a loss of `U` and `V` of a singular value decomposition may be
//! free of their arbitrary phases although neither part of it is.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, Shape, TensorMetadata};
use t4a_linalg::spectrum::Spectrum;
use t4a_linalg::{LinalgError, Op, Result};
use t4a_tensor::Tensor;

use super::ops::LinalgOps;
use super::rules;
use super::value::{Results, Value};
use crate::boundary::accept;
use crate::ext::tape::{self, Cotangents, Tracked};

impl<B: LinalgOps, C: CheckpointStrategy> LinalgOps for Autodiff<B, C> {
    fn linalg_forward(op: &Op, inputs: &[Value<Self>], keep: bool) -> Result<Results<Self>> {
        let flat = flat(inputs);
        let below = inner(inputs);
        if !flat.iter().any(tape::is_tracked::<B, C>) {
            let out = B::linalg_forward(op, &below, keep)?;
            return out.try_map(|x| Ok(Self::from_inner(x)));
        }
        let out = B::linalg_forward(op, &below, true)?;
        if !keep {
            let parts = record::<B, C>(op, false, below, flat, out.clone())?;
            return Ok(Results { parts, saved: None, rows: out.rows, cols: out.cols });
        }
        recorded::<B, C>(op, below, flat, out)
    }

    fn linalg_info(op: &Op, inputs: &[Value<Self>]) -> Result<Tensor<i32>> {
        B::linalg_info(op, &inner(inputs))
    }

    fn linalg_vjp(
        op: &Op,
        inputs: &[Value<Self>],
        out: &Results<Self>,
        bars: &[Option<Value<Self>>],
    ) -> Result<Vec<Value<Self>>> {
        let (Some(values), Some(Some(bar))) = (Values::of(op, out), bars.first()) else {
            return unsplit::<B, C>(op, out, rules::vjp(op, inputs, out, bars)?);
        };
        let below = below(out);
        let slopes = bar.clone().map(Self::inner);
        let gradient = B::linalg_vjp(op, &inner(inputs), &below, &[Some(slopes)])?;
        values.record(Op::SpectrumGradient, bar.clone().like(values.padded), gradient, below)
    }

    fn linalg_jvp(
        op: &Op,
        inputs: &[Value<Self>],
        out: &Results<Self>,
        tangents: &[Value<Self>],
    ) -> Result<Vec<Value<Self>>> {
        let Some(values) = Values::of(op, out) else {
            return rules::jvp(op, inputs, out, tangents);
        };
        let below = below(out);
        let moved = B::linalg_jvp(op, &inner(inputs), &below, &inner(tangents))?;
        values.record(Op::SpectrumTangent, tangents[0].clone(), moved, below)
    }
}

/// The gradient of a decomposition as a node that refuses derivatives along directions which split
/// ties: its rule has none there.
fn unsplit<B: LinalgOps, C: CheckpointStrategy>(
    op: &Op,
    out: &Results<Autodiff<B, C>>,
    gradient: Vec<Value<Autodiff<B, C>>>,
) -> Result<Vec<Value<Autodiff<B, C>>>> {
    if !op.is_spectral() {
        return Ok(gradient);
    }
    let saved = match &out.saved {
        Some((op, parts)) => (*op, inner(parts)),
        None => (*op, inner(&out.parts)),
    };
    let below = inner(&gradient);
    let out = Results { parts: below.clone(), saved: Some(saved), rows: None, cols: None };
    record::<B, C>(&Op::Unsplit, true, below, flat(&gradient), out)
}

/// Singular values or eigenvalues on the tape with what a second derivative needs: the factors, and
/// behind them `[A; 0]`, a result of the node of the values ([`t4a_linalg::spectrum`]).
struct Values<'a, B: LinalgOps, C: CheckpointStrategy> {
    of: Spectrum,
    padded: &'a Value<Autodiff<B, C>>,
}

impl<'a, B: LinalgOps, C: CheckpointStrategy> Values<'a, B, C> {
    fn of(op: &Op, out: &'a Results<Autodiff<B, C>>) -> Option<Self> {
        let (factored, factors) = out.saved.as_ref()?;
        let padded = factors.get(factored.results().len())?;
        Some(Self { of: op.values_of()?, padded })
    }

    /// The results of `op` of `[A; 0]` and `x`.
    fn record(
        &self,
        op: fn(Spectrum) -> Op,
        x: Value<Autodiff<B, C>>,
        parts: Vec<Value<B>>,
        out: Results<B>,
    ) -> Result<Vec<Value<Autodiff<B, C>>>> {
        let inputs = [self.padded.clone(), x];
        let out = Results { parts, ..out };
        record::<B, C>(&op(self.of), true, inner(&inputs), flat(&inputs), out)
    }
}

/// The primitives of all values.
fn flat<B: Backend>(values: &[Value<B>]) -> Vec<FloatTensor<B>> {
    let mut flat = Vec::new();
    values.iter().cloned().for_each(|value| value.flatten(&mut flat));
    flat
}

/// The values below the tape.
fn inner<B: Backend, C: CheckpointStrategy>(inputs: &[Value<Autodiff<B, C>>]) -> Vec<Value<B>> {
    inputs.iter().cloned().map(|v| v.map(Autodiff::<B, C>::inner)).collect()
}

/// The results below the tape.
fn below<B: Backend, C: CheckpointStrategy>(out: &Results<Autodiff<B, C>>) -> Results<B> {
    let saved = out.saved.as_ref().map(|(op, parts)| (*op, inner(parts)));
    Results { parts: inner(&out.parts), saved, rows: out.rows.clone(), cols: out.cols.clone() }
}

/// Results for another derivative: the saved factors are on the tape as well, as results of their
/// own.
fn recorded<B: LinalgOps, C: CheckpointStrategy>(
    op: &Op,
    inputs: Vec<Value<B>>,
    flat: Vec<Tracked<B, C>>,
    out: Results<B>,
) -> Result<Results<Autodiff<B, C>>> {
    let (mut parts, mut padded) = (Vec::new(), None);
    match (op.values_of(), &out.saved) {
        (Some(of), Some((factored, factors))) => {
            let below = factors.get(factored.results().len()).cloned();
            let below = below.unwrap_or_else(|| inputs[0].clone().with_zero_row());
            let both = out.parts.iter().cloned().chain([below]).collect();
            let results = Results { parts: both, ..out.clone() };
            parts = record::<B, C>(&Op::Spectrum(of), true, inputs.clone(), flat.clone(), results)?;
            padded = parts.pop();
        }
        _ => parts.extend(record::<B, C>(op, true, inputs.clone(), flat.clone(), out.clone())?),
    }
    let saved = match &out.saved {
        Some((of, factors)) => {
            let factors = factors[..of.results().len()].to_vec();
            let results = Results { parts: factors, saved: None, ..out.clone() };
            let mut factors = record::<B, C>(of, true, inputs, flat, results)?;
            factors.extend(padded);
            Some((*of, factors))
        }
        None => None,
    };
    Ok(Results { parts, saved, rows: out.rows, cols: out.cols })
}

/// A tape node has a fixed number of inputs: one or two matrices, real or complex. `again`: results
/// for a derivative that is differentiated in turn.
fn record<B: LinalgOps, C: CheckpointStrategy>(
    op: &Op,
    again: bool,
    inputs: Vec<Value<B>>,
    flat: Vec<Tracked<B, C>>,
    out: Results<B>,
) -> Result<Vec<Value<Autodiff<B, C>>>> {
    match <[_; 1]>::try_from(flat) {
        Ok(flat) => node::<B, C, 1>(op, again, &inputs, flat, out),
        Err(flat) => match <[_; 2]>::try_from(flat) {
            Ok(flat) => node::<B, C, 2>(op, again, &inputs, flat, out),
            Err(flat) => match <[_; 4]>::try_from(flat) {
                Ok(flat) => node::<B, C, 4>(op, again, &inputs, flat, out),
                Err(_) => unreachable!("one or two inputs, all real or all complex"),
            },
        },
    }
}

/// The loss is not to blame for what its derivative does with the factors.
fn second_order(error: LinalgError) -> LinalgError {
    match error {
        LinalgError::GaugeIllDefined { op, batch, .. } => {
            LinalgError::SecondOrderAtTie { op, batch }
        }
        other => other,
    }
}

/// The results of `op` as one node; `flat` are the inputs on the tape, `below` the same under it.
fn node<B: LinalgOps, C: CheckpointStrategy, const N: usize>(
    op: &Op,
    again: bool,
    below: &[Value<B>],
    flat: [Tracked<B, C>; N],
    out: Results<B>,
) -> Result<Vec<Value<Autodiff<B, C>>>> {
    let (op, below) = (*op, below[..op.arity()].to_vec());
    let pattern = out.parts.clone();
    let mut parts = Vec::new();
    pattern.iter().cloned().for_each(|part| part.flatten(&mut parts));
    let shapes: Vec<Shape> = parts.iter().map(|x| x.shape()).collect();
    let packed = tape::record::<B, C, _, LinalgError, N>(
        flat,
        |_, _| Ok((tape::joined::<B>(parts), (below, out, shapes.clone()))),
        move |(below, out, shapes), cotangent, _| {
            let mut bars = tape::parted::<B>(cotangent, shapes).into_iter();
            let bars: Vec<_> =
                out.parts.iter().map(|part| Value::unflatten(part, &mut bars)).collect();
            let bars = B::linalg_vjp(&op, &below, &out, &bars);
            let bars =
                accept(bars.map_err(|error| if again { second_order(error) } else { error }));
            let mut flat = Vec::new();
            bars.into_iter().for_each(|bar| bar.flatten(&mut flat));
            let mut flat = flat.into_iter();
            // Factors of the first input do not depend on the second: `None`.
            let cotangents: Cotangents<B, N> = std::array::from_fn(|_| flat.next());
            cotangents
        },
    )?;
    let mut parts = tape::parted::<Autodiff<B, C>>(packed, shapes).into_iter();
    let parts = pattern.iter().map(|part| Value::unflatten(part, &mut parts));
    Ok(parts.collect::<Option<_>>().unwrap_or_else(|| unreachable!("as many as were packed")))
}
