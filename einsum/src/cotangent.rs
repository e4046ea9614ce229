//! The vjp over (+, ×) as plans: `ā = c̄ b` and `b̄ = c̄ a` with the labels of a step are contractions.
//!
//! The plan of a cotangent reads c̄ and the other operand, and its output has the axes of the operand. Repetition and
//! summation are exchanged: a label of the operand only becomes a repeated output label, a label of the result only
//! becomes a summed label, and a diagonal that is read becomes a diagonal that is written.

use std::sync::Arc;

use crate::error::{EinsumError, Result};
use crate::label::Label;
use crate::network::Network;
use crate::order::ContractionOrder;
use crate::plan::Plan;
use crate::subscripts::Subscripts;

impl Plan {
    /// The plan whose contraction of c̄ and the other operand, if there is one, is the cotangent of operand `i` over
    /// (+, ×) of real numbers; complex operands must be conjugated. For plans of one or two operands, as all plans of
    /// [`Plan::steps`]; slices are ignored.
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
        // Numbers the labels; an axis of size 1 broadcasts and has a separate label.
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
        // An empty sum has zero derivatives.
        network.is_empty |= self.network.is_empty;
        let plan = Plan::new(network, ContractionOrder { pairs, cut: false });
        plan.check_sizes()?;
        Ok(plan)
    }
}
