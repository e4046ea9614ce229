//! Bytes and arithmetic operations of an instruction, from the shapes of its operands and results.

use burn_backend::{Backend, DType};

use crate::program::Unit;
use crate::tensor::TensorType;

/// Cost of an instruction if every operand is read once and every result is written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnitCost {
    /// Bytes of the operands.
    pub(super) read: u64,
    /// Bytes of the results.
    pub(super) written: u64,
    /// Arithmetic operations; `None` if the instruction, such as a loop, has no count.
    pub(super) operations: Option<u64>,
}

impl Default for UnitCost {
    fn default() -> Self {
        Self { read: 0, written: 0, operations: Some(0) }
    }
}

impl UnitCost {
    /// Sums; an unknown number of operations stays unknown.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let operations = self.operations.zip(other.operations).map(|(x, y)| x.saturating_add(y));
        let (read, written) = (self.read + other.read, self.written + other.written);
        Self { read, written, operations }
    }
}

/// Methods that only change shape and strides.
const VIEWS: [&str; 10] = [
    "reshape",
    "transpose",
    "swap_dims",
    "permute",
    "slice",
    "expand",
    "flip",
    "detach",
    "set_require_grad",
    "unfold",
];

/// Methods that move elements without arithmetic.
const MOVES: [&str; 13] = [
    "gather",
    "select",
    "cat",
    "repeat_dim",
    "slice_assign",
    "slice_fill",
    "scatter",
    "cast",
    "into_int",
    "into_float",
    "zeros",
    "ones",
    "full",
];

/// The name of a tensor method without the kind of its tensor.
fn method(name: &str) -> Option<&str> {
    ["float_", "int_", "bool_", "q_"].iter().find_map(|kind| name.strip_prefix(kind))
}

fn elements(shape: &[usize]) -> u64 {
    shape.iter().map(|&n| n as u64).product()
}

/// Bytes of a value.
pub(crate) fn size(meta: &TensorType) -> u64 {
    let element = match meta.dtype {
        // Packed values, without their scales.
        DType::QFloat(_) => 1,
        dtype => dtype.size() as u64,
    };
    elements(&meta.shape) * element
}

/// Multiplications and additions of products, convolutions and attention: two for each multiply-add.
fn products(name: &str, operands: &[&[usize]], results: &[&[usize]]) -> Option<u64> {
    let last = |shape: &[usize]| shape.last().copied().unwrap_or(1) as u64;
    // Elements of a kernel for one output channel.
    let window = |weight: &[usize]| elements(weight.get(1..).unwrap_or_default());
    let adds = match (name, operands, results) {
        ("float_matmul" | "int_matmul" | "q_matmul", [x, _, ..], [y]) => elements(y) * last(x),
        ("linear", [x, _, ..], [y]) => elements(y) * last(x),
        ("linear_weight_backward", [x, y, ..], _) => elements(x) * last(y),
        ("linear_x_backward", [weight, y, ..], _) => {
            elements(y) * weight.first().copied().unwrap_or(1) as u64
        }
        ("attention", [query, key, value, ..], _) => {
            let rows = elements(query) / last(query).max(1);
            let keys = key.iter().rev().nth(1).copied().unwrap_or(1) as u64;
            rows * keys * (last(query) + last(value))
        }
        (name, [x, weight, rest @ ..], [y, ..]) if name.starts_with("conv") => {
            let transposed = name.starts_with("conv_transpose");
            match (name.strip_suffix("_backward"), transposed) {
                (Some(kind), _) if kind.ends_with("bias") => return Some(elements(rest.last()?)),
                (None, false) => elements(y) * window(weight),
                (None, true) => elements(x) * window(weight),
                (Some(_), false) => elements(rest.first()?) * window(weight),
                (Some(kind), true) if kind.ends_with("weight") => elements(x) * window(weight),
                // Operands are the weight and the cotangent.
                (Some(_), true) => elements(y) * window(x),
            }
        }
        _ => return None,
    };
    Some(adds.saturating_mul(2))
}

/// Arithmetic operations of a method: one for each element that a function is evaluated at or that is reduced, two for
/// each multiply-add of a product.
fn operations(name: &str, operands: &[&[usize]], results: &[&[usize]]) -> Option<u64> {
    if let Some(count) = products(name, operands, results) {
        return Some(count);
    }
    let method = method(name)?;
    if VIEWS.contains(&method) || MOVES.contains(&method) {
        return Some(0);
    }
    operands.iter().chain(results).map(|shape| elements(shape)).max()
}

/// Cost of an instruction. Views have no cost, since the engine neither reads nor writes elements for them.
pub(super) fn cost<B: Backend>(unit: &Unit<B>, metas: &[TensorType]) -> UnitCost {
    if method(unit.name).is_some_and(|name| VIEWS.contains(&name)) {
        return UnitCost::default();
    }
    let total = |values: &[usize]| values.iter().map(|&value| size(&metas[value])).sum();
    let (read, written) = (total(&unit.operands), total(&unit.results));
    let count = |name, operands: &[usize], results: &mut dyn Iterator<Item = usize>| {
        let operands: Vec<&[usize]> = operands.iter().map(|&v| &metas[v].shape[..]).collect();
        let results: Vec<&[usize]> = results.map(|v| &metas[v].shape[..]).collect();
        operations(name, &operands, &results)
    };
    let operations = match &unit.members {
        None => count(unit.name, &unit.operands, &mut unit.results.iter().copied()),
        Some(members) => {
            members.iter().map(|one| count(one.name, &one.operands, &mut one.results())).sum()
        }
    };
    UnitCost { read, written, operations }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_from_shapes() {
        let count =
            |name, operands: &[&[usize]], results: &[&[usize]]| operations(name, operands, results);
        assert_eq!(count("float_matmul", &[&[2, 3, 5], &[2, 5, 7]], &[&[2, 3, 7]]), Some(420));
        assert_eq!(count("linear", &[&[4, 3], &[3, 5], &[5]], &[&[4, 5]]), Some(120));
        assert_eq!(count("linear_weight_backward", &[&[4, 3], &[4, 5]], &[&[3, 5]]), Some(120));
        assert_eq!(count("linear_x_backward", &[&[3, 5], &[4, 5]], &[&[4, 3]]), Some(120));
        // 2 images, 6 channels to 4 in 2 groups, kernel 3, output 10: 2 · 4 · 10 · (3 · 3) multiply-adds.
        let (x, weight, y): (&[usize], &[usize], &[usize]) = (&[2, 6, 12], &[4, 3, 3], &[2, 4, 10]);
        assert_eq!(count("conv1d", &[x, weight], &[y]), Some(1440));
        assert_eq!(count("conv1d_x_backward", &[x, weight, y], &[x]), Some(1440));
        assert_eq!(count("conv1d_weight_backward", &[x, weight, y], &[weight]), Some(1440));
        assert_eq!(count("conv1d_bias_backward", &[x, &[4], y], &[&[4]]), Some(80));
        // The transposed convolution from y to x has the same products.
        assert_eq!(count("conv_transpose1d", &[y, weight], &[x]), Some(1440));
        assert_eq!(count("conv_transpose1d_x_backward", &[weight, x], &[y]), Some(1440));
        assert_eq!(
            count("conv_transpose1d_weight_backward", &[y, weight, x], &[weight]),
            Some(1440)
        );
        let heads: &[usize] = &[1, 2, 4, 8];
        assert_eq!(count("attention", &[heads, heads, heads], &[heads]), Some(2 * 8 * 4 * 16));
        assert_eq!(count("float_exp", &[&[4, 5]], &[&[4, 5]]), Some(20));
        assert_eq!(count("float_sum_dim", &[&[4, 5]], &[&[4, 1]]), Some(20));
        assert_eq!(count("float_reshape", &[&[4, 5]], &[&[20]]), Some(0));
        assert_eq!(count("float_gather", &[&[4, 5], &[4, 2]], &[&[4, 2]]), Some(0));
        assert_eq!(count("scan", &[&[4, 5]], &[&[4, 2]]), None);
    }
}
