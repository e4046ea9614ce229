//! Linear algebra on the tape: an operation is one node, whose rule sees the cotangents of all
//! results together.
//!
//! The joint cotangent matters: a loss of `U` and `V` of a singular value decomposition may be
//! free of their arbitrary phases although neither part of it is.

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, Backend, Shape, TensorMetadata};
use t4a_linalg::{LinalgError, Op, Result};
use t4a_tensor::Tensor;

use super::ops::LinalgOps;
use super::value::{Results, Value};
use crate::boundary::accept;
use crate::ext::tape::{self, Cotangents, Tracked};

impl<B: LinalgOps, C: CheckpointStrategy> LinalgOps for Autodiff<B, C> {
    fn linalg_forward(op: &Op, inputs: &[Value<Self>], keep: bool) -> Result<Results<Self>> {
        let mut flat = Vec::new();
        inputs.iter().cloned().for_each(|input| input.flatten(&mut flat));
        if !flat.iter().any(tape::is_tracked::<B, C>) {
            let out = B::linalg_forward(op, &inner(inputs), keep)?;
            return out.try_map(|x| Ok(Self::from_inner(x)));
        }
        // A tape node has a fixed number of inputs: one or two matrices, real or complex.
        match <[_; 1]>::try_from(flat) {
            Ok(flat) => recorded::<B, C, 1>(op, inputs, flat, keep),
            Err(flat) => match <[_; 2]>::try_from(flat) {
                Ok(flat) => recorded::<B, C, 2>(op, inputs, flat, keep),
                Err(flat) => match <[_; 4]>::try_from(flat) {
                    Ok(flat) => recorded::<B, C, 4>(op, inputs, flat, keep),
                    Err(_) => unreachable!("one or two inputs, all real or all complex"),
                },
            },
        }
    }

    fn linalg_info(op: &Op, inputs: &[Value<Self>]) -> Result<Tensor<i32>> {
        B::linalg_info(op, &inner(inputs))
    }
}

/// The values below the tape.
fn inner<B: Backend, C: CheckpointStrategy>(inputs: &[Value<Autodiff<B, C>>]) -> Vec<Value<B>> {
    inputs.iter().cloned().map(|v| v.map(Autodiff::<B, C>::inner)).collect()
}

fn recorded<B: LinalgOps, C: CheckpointStrategy, const N: usize>(
    op: &Op,
    inputs: &[Value<Autodiff<B, C>>],
    flat: [Tracked<B, C>; N],
    keep: bool,
) -> Result<Results<Autodiff<B, C>>> {
    let below = inner(inputs);
    let out = B::linalg_forward(op, &below, true)?;
    let parts = node::<B, C, N>(op, &below, flat.clone(), out.clone())?;
    // Another derivative needs the saved factors on the tape as well, as results of their own.
    let saved = match &out.saved {
        Some((of, factors)) if keep => {
            let out = Results { parts: factors.clone(), saved: None, ..out.clone() };
            Some((*of, node::<B, C, N>(of, &below, flat, out)?))
        }
        _ => None,
    };
    Ok(Results { parts, saved, rows: out.rows, cols: out.cols })
}

/// The results of `op` as one node; `flat` are the inputs on the tape, `below` the same under it.
fn node<B: LinalgOps, C: CheckpointStrategy, const N: usize>(
    op: &Op,
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
        |_, _| Ok((pack::<B>(parts), (below, out, shapes.clone()))),
        move |(below, out, shapes), cotangent, _| {
            let mut bars = unpack::<B>(cotangent, shapes).into_iter();
            let bars: Vec<_> =
                out.parts.iter().map(|part| Value::unflatten(part, &mut bars)).collect();
            let bars = accept(B::linalg_vjp(&op, &below, &out, &bars));
            let mut flat = Vec::new();
            bars.into_iter().for_each(|bar| bar.flatten(&mut flat));
            let mut flat = flat.into_iter();
            // Factors of the first input do not depend on the second: `None`.
            let cotangents: Cotangents<B, N> = std::array::from_fn(|_| flat.next());
            cotangents
        },
    )?;
    let mut parts = unpack::<Autodiff<B, C>>(packed, shapes).into_iter();
    let parts = pattern.iter().map(|part| Value::unflatten(part, &mut parts));
    Ok(parts.collect::<Option<_>>().unwrap_or_else(|| unreachable!("as many as were packed")))
}

/// One tensor as it is, several flattened, one behind the other.
fn pack<B: Backend>(mut parts: Vec<FloatTensor<B>>) -> FloatTensor<B> {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => tape::pack::<B>(parts),
    }
}

/// The tensors of these shapes out of [`pack`].
fn unpack<B: Backend>(packed: FloatTensor<B>, shapes: Vec<Shape>) -> Vec<FloatTensor<B>> {
    match shapes.len() {
        1 => vec![packed],
        _ => shapes.into_iter().map(tape::unpack::<B>(packed)).collect(),
    }
}
