//! The vjp over (+, ×): `ā = c̄ b` and `b̄ = c̄ a` with the labels of the step, contractions again.
//!
//! The plan of a cotangent reads c̄ and the other operand and writes in the axes of the operand.
//! What the forward step repeats is summed there and the other way round: a label of the operand
//! only is an output that is repeated, a label of the result only is a label that is summed, a
//! diagonal is written where one was read.

use std::sync::Arc;

use burn_backend::TensorMetadata;
use burn_backend::tensor::FloatTensor;
use t4a_algebra::Standard;
use t4a_einsum::{Einsum, Label, Plan, Subscripts};

use super::backend::EinsumOps;
use crate::ext::error::Result;

/// The plan of the cotangent of operand `i` of a step: operands are c̄ and, if any, the other one.
fn plan(step: &Plan, i: usize, element: usize) -> Result<Arc<Plan>> {
    let mut names: Vec<Label> = Vec::new();
    let mut count = 0;
    // Labels by number; an axis of size 1 broadcasts and is a label of its own.
    let mut number = |labels: &[Label], shape: &[usize]| -> Vec<i64> {
        let one = |(&label, &size): (&Label, &usize)| {
            let known = names.iter().position(|&name| name == label);
            if size == 1 {
                count += 1;
                return -count;
            }
            let at = known.unwrap_or_else(|| {
                names.push(label);
                names.len() - 1
            });
            at as i64
        };
        labels.iter().zip(shape).map(one).collect()
    };
    let operand = |i: usize| Some((step.operand_labels(i)?, step.operand_shape(i)?));
    let result = step.shape();
    let mut inputs = vec![number(step.result_labels(), &result)];
    let mut shapes: Vec<&[usize]> = vec![&result];
    if step.operands() == 2
        && let Some((labels, shape)) = operand(1 - i)
    {
        inputs.push(number(labels, shape));
        shapes.push(shape);
    }
    let (labels, shape) = operand(i).unwrap_or((&[], &[]));
    let output = number(labels, shape);
    let sizes: Vec<(i64, usize)> = output.iter().copied().zip(shape.iter().copied()).collect();
    let einsum = Einsum::from(Subscripts::new(inputs, output));
    let einsum = sizes.into_iter().fold(einsum, |einsum, (label, n)| einsum.size(label, n));
    Ok(einsum.plan(&shapes, element)?)
}

/// Cotangents of the operands that want one.
pub(super) fn vjp<B: EinsumOps>(
    step: &Plan,
    operands: Vec<FloatTensor<B>>,
    g: FloatTensor<B>,
    wanted: &[bool],
) -> Result<Vec<Option<FloatTensor<B>>>> {
    let element = g.dtype().size();
    let cotangent = |i: usize| {
        let mut inputs = vec![g.clone()];
        inputs.extend(operands.get(1 - i).filter(|_| operands.len() == 2).cloned());
        B::einsum::<Standard>(&plan(step, i, element)?, inputs)
    };
    (0..operands.len()).map(|i| wanted[i].then(|| cotangent(i)).transpose()).collect()
}
