//! The derivative rules of [`t4a_linalg`] on the primitives of a backend.

use t4a_linalg::op::{Kind, Outcome, Part};
use t4a_linalg::{Op, Result};

use super::matrices::{ComplexMatrix, Entries, RealMatrix};
use super::ops::LinalgOps;
use super::value::{Results, Value};

fn part<B: LinalgOps, M: Entries<B>>(kind: Kind, value: &Value<B>) -> Part<M> {
    match kind {
        Kind::Full => Part::Full(M::from_value(value)),
        Kind::Real => Part::Real(RealMatrix::from_value(value)),
        Kind::Complex => Part::Complex(ComplexMatrix::from_value(value)),
    }
}

pub(super) fn value<B: LinalgOps, M: Entries<B>>(part: Part<M>) -> Result<Value<B>> {
    match part {
        Part::Full(m) => m.into_value(),
        Part::Real(m) => m.into_value(),
        Part::Complex(m) => m.into_value(),
    }
}

fn parts<B: LinalgOps, M: Entries<B>>(op: &Op, values: &[Value<B>]) -> Vec<Part<M>> {
    op.results().iter().zip(values).map(|(&kind, v)| part(kind, v)).collect()
}

fn outcome<B: LinalgOps, M: Entries<B>>(op: &Op, out: &Results<B>) -> Outcome<M> {
    let saved = out.saved.as_ref().map(|(op, values)| (*op, parts(op, values)));
    let (rows, cols) = (out.rows.clone(), out.cols.clone());
    Outcome { parts: parts(op, &out.parts), saved, rows, cols }
}

pub(super) fn matrices<B: LinalgOps, M: Entries<B>>(values: &[Value<B>]) -> Vec<M> {
    values.iter().map(M::from_value).collect()
}

fn vjp_on<B: LinalgOps, M: Entries<B>>(
    op: &Op,
    inputs: &[Value<B>],
    out: &Results<B>,
    bars: &[Option<Value<B>>],
) -> Result<Vec<Value<B>>> {
    let bars: Vec<Option<Part<M>>> = op
        .results()
        .iter()
        .zip(bars)
        .map(|(&kind, bar)| bar.as_ref().map(|bar| part(kind, bar)))
        .collect();
    let bars = op.vjp(&matrices::<B, M>(inputs), &outcome(op, out), &bars)?;
    bars.into_iter().map(M::into_value).collect()
}

fn jvp_on<B: LinalgOps, M: Entries<B>>(
    op: &Op,
    inputs: &[Value<B>],
    out: &Results<B>,
    tangents: &[Value<B>],
) -> Result<Vec<Value<B>>> {
    let (inputs, tangents) = (matrices::<B, M>(inputs), matrices::<B, M>(tangents));
    op.jvp(&inputs, &outcome(op, out), &tangents)?.into_iter().map(value).collect()
}

/// Cotangents of the inputs.
pub(super) fn vjp<B: LinalgOps>(
    op: &Op,
    inputs: &[Value<B>],
    out: &Results<B>,
    bars: &[Option<Value<B>>],
) -> Result<Vec<Value<B>>> {
    match inputs.iter().any(Value::is_complex) {
        true => vjp_on::<B, ComplexMatrix<B>>(op, inputs, out, bars),
        false => vjp_on::<B, RealMatrix<B>>(op, inputs, out, bars),
    }
}

/// Tangents of the results.
pub(super) fn jvp<B: LinalgOps>(
    op: &Op,
    inputs: &[Value<B>],
    out: &Results<B>,
    tangents: &[Value<B>],
) -> Result<Vec<Value<B>>> {
    match inputs.iter().any(Value::is_complex) {
        true => jvp_on::<B, ComplexMatrix<B>>(op, inputs, out, tangents),
        false => jvp_on::<B, RealMatrix<B>>(op, inputs, out, tangents),
    }
}
