//! The vjp over (+, ×) as plans: `ā = c̄ b` and `b̄ = c̄ a` with the labels of a step, contractions
//! again.
//!
//! The plan of a cotangent reads c̄ and the other operand and writes in the axes of the operand. What the
//! forward step repeats is summed there and the other way round: a label of the operand only is an
//! output that is repeated, a label of the result only is a label that is summed, a diagonal is written
//! where one was read.

use std::sync::Arc;

use crate::error::{EinsumError, Result};
use crate::label::Label;
use crate::network::Network;
use crate::order::Found;
use crate::plan::Plan;
use crate::subscripts::Subscripts;

impl Plan {
    /// The contraction of c̄ and the other operand, if there is one, that is the cotangent of operand `i`
    /// over (+, ×) of real numbers; complex operands are to be conjugated. For plans of one or two
    /// operands, as those of [`Plan::steps`] are; slices do not enter.
    ///
    /// Cost: built once per plan.
    ///
    /// # Errors
    /// [`EinsumError::OperandCount`] for other plans and operands.
    pub fn cotangent(&self, i: usize) -> Result<Arc<Plan>> {
        let operands = self.operands();
        let slot = match self.cotangents.get(i) {
            Some(slot) if i < operands && operands <= 2 => slot,
            _ => return Err(EinsumError::OperandCount { expected: 2, given: operands.max(i + 1) }),
        };
        if let Some(plan) = slot.get() {
            return Ok(plan.clone());
        }
        let plan = Arc::new(self.transposed(i)?);
        Ok(slot.get_or_init(|| plan).clone())
    }

    fn transposed(&self, i: usize) -> Result<Plan> {
        let mut names: Vec<Label> = Vec::new();
        let mut count = 0;
        // Labels by number; an axis of size 1 broadcasts and is a label of its own.
        let mut number = |labels: &[Label], shape: &[usize]| -> Vec<i64> {
            let one = |(&label, &size): (&Label, &usize)| {
                if size == 1 {
                    count += 1;
                    return -count;
                }
                let known = names.iter().position(|&name| name == label);
                known.unwrap_or_else(|| {
                    names.push(label);
                    names.len() - 1
                }) as i64
            };
            labels.iter().zip(shape).map(one).collect()
        };
        let result = self.shape();
        let mut inputs = vec![number(self.result_labels(), &result)];
        let mut shapes: Vec<&[usize]> = vec![&result];
        let operand = |i: usize| Some((self.operand_labels(i)?, self.operand_shape(i)?));
        if let Some((labels, shape)) = operand(1 - i) {
            inputs.push(number(labels, shape));
            shapes.push(shape);
        }
        let (labels, shape) = operand(i).unwrap_or((&[], &[]));
        let output = number(labels, shape);
        let given: Vec<(Label, usize)> =
            output.iter().map(|&label| label.into()).zip(shape.iter().copied()).collect();
        let pairs = if inputs.len() == 2 { vec![(0, 1)] } else { Vec::new() };
        let mut network = Network::new(&Subscripts::new(inputs, output), &shapes, &given)?;
        // A sum without a term passes nothing on.
        network.is_empty |= self.network.is_empty;
        let plan = Plan::new(network, Found { pairs, cut: false });
        plan.check_sizes()?;
        Ok(plan)
    }
}
