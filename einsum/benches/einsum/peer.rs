//! The peer: strided-opteinsum, with the same contraction order.
//!
//! It is fastest with column-major arrays. Shapes and labels are therefore reversed, without moving data.

use std::collections::HashMap;

use strided_opteinsum::{EinsumOperand, einsum};
use strided_view::{StridedView, col_major_strides};
use t4a_einsum::{Label, Plan};
use t4a_tensor::Tensor;

/// A contraction order as nested subscripts, and the operands in the order of their occurrence.
pub(crate) struct Expression {
    text: String,
    order: Vec<usize>,
}

impl Expression {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut letters: HashMap<Label, char> = HashMap::new();
        let mut term = |labels: &[Label]| -> String {
            let letter = |label: &Label| {
                let next = 0x4e00 + letters.len() as u32;
                *letters.entry(*label).or_insert(char::from_u32(next).expect("a letter"))
            };
            labels.iter().rev().map(letter).collect()
        };
        let operands = plan.operands();
        let mut left: Vec<(String, Vec<usize>)> = (0..operands)
            .map(|i| (term(plan.operand_labels(i).expect("an operand")), vec![i]))
            .collect();
        for step in plan.path().steps() {
            let taken: Vec<_> = step.iter().map(|&i| left[i].clone()).collect();
            let mut positions = step.clone();
            positions.sort_unstable();
            positions.iter().rev().for_each(|&i| drop(left.remove(i)));
            let text: Vec<&str> = taken.iter().map(|(text, _)| text.as_str()).collect();
            let order = taken.iter().flat_map(|(_, order)| order.clone()).collect();
            left.push((format!("({})", text.join(",")), order));
        }
        let (text, order) = left.pop().expect("at least one operand");
        Self { text: format!("{text}->{}", term(plan.result_labels())), order }
    }

    /// The result, which may be a view with any strides.
    pub(crate) fn run<'a>(&self, operands: &[&'a Tensor<f64>]) -> EinsumOperand<'a> {
        let view = |&i: &usize| {
            let x = operands[i];
            let shape: Vec<usize> = x.shape().iter().rev().copied().collect();
            let data = x.as_slice().expect("a contiguous operand");
            let strides = col_major_strides(&shape);
            let view = StridedView::new(data, &shape, &strides, 0).expect("a view");
            EinsumOperand::from_view(&view)
        };
        let inputs = self.order.iter().map(view).collect();
        einsum(&self.text, inputs, None).expect("a contraction by the peer")
    }
}

/// The elements of the peer's result in row-major order: its first axis is the last one here.
pub(crate) fn values(result: &EinsumOperand<'_>) -> Vec<f64> {
    let EinsumOperand::F64(data) = result else { unreachable!("operands are real") };
    let view = data.as_view();
    let mut index = vec![0; view.dims().len()];
    let next = |_| {
        let value = view.get(&index);
        for (i, &size) in index.iter_mut().zip(view.dims()) {
            *i += 1;
            if *i < size {
                break;
            }
            *i = 0;
        }
        value
    };
    (0..view.len()).map(next).collect()
}
