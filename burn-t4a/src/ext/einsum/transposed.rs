//! The vjp over (+, ×): `ā = c̄ b` and `b̄ = c̄ a` with the labels of the step, contractions again.

use burn_backend::tensor::FloatTensor;
use t4a_algebra::Standard;
use t4a_einsum::Plan;

use super::backend::EinsumOps;
use crate::ext::error::Result;

/// Cotangents of the operands that want one.
pub(super) fn vjp<B: EinsumOps>(
    step: &Plan,
    operands: Vec<FloatTensor<B>>,
    g: FloatTensor<B>,
    wanted: &[bool],
) -> Result<Vec<Option<FloatTensor<B>>>> {
    let cotangent = |i: usize| {
        let mut inputs = vec![g.clone()];
        inputs.extend(operands.get(1 - i).filter(|_| operands.len() == 2).cloned());
        B::einsum::<Standard>(&step.cotangent(i)?, inputs)
    };
    (0..operands.len()).map(|i| wanted[i].then(|| cotangent(i)).transpose()).collect()
}
