//! Elementwise operations, with broadcasts.

use super::{InstructionContext, ShardingRule};
use crate::spec::Split;

/// Names without the prefix of the tensor kind.
const NAMES: &[&str] = &[
    "add",
    "add_scalar",
    "sub",
    "sub_scalar",
    "mul",
    "mul_scalar",
    "div",
    "div_scalar",
    "remainder",
    "remainder_scalar",
    "powf",
    "powf_scalar",
    "powf_scalar_impl",
    "powi",
    "powi_scalar",
    "powi_scalar_impl",
    "neg",
    "abs",
    "sign",
    "exp",
    "log",
    "log1p",
    "sqrt",
    "recip",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "atan2",
    "erf",
    "floor",
    "ceil",
    "round",
    "trunc",
    "clamp",
    "clamp_min",
    "clamp_max",
    "equal",
    "equal_elem",
    "not_equal",
    "not_equal_elem",
    "greater",
    "greater_elem",
    "greater_equal",
    "greater_equal_elem",
    "lower",
    "lower_elem",
    "lower_equal",
    "lower_equal_elem",
    "mask_where",
    "mask_fill",
    "cast",
    "into_int",
    "into_float",
    "not",
    "and",
    "or",
    "xor",
    "is_nan",
    "is_inf",
    "detach",
    "set_require_grad",
    "bitwise_and",
    "bitwise_or",
];
const OTHERS: &[&str] = &[
    "gelu",
    "gelu_backward",
    "hard_sigmoid",
    "leaky_relu",
    "log_sigmoid",
    "log_sigmoid_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "bitwise_xor",
    "bitwise_not",
    "bitwise_and_scalar",
];

pub(super) fn rule(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let kinds = ["float_", "int_", "bool_"];
    let of_kind = kinds.iter().find_map(|kind| site.name.strip_prefix(kind));
    let known = of_kind.is_some_and(|name| NAMES.contains(&name) || OTHERS.contains(&name));
    if !site.elementwise && !known && !OTHERS.contains(&site.name) {
        return None;
    }
    join(site)
}

/// An axis stays split if the operands that have its full size can be split that way.
pub(super) fn join(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let shape = &site.results.first()?.shape;
    if site.operands.iter().any(|x| x.shape.len() != shape.len()) {
        return None;
    }
    let (mut used, mut result) = (Vec::new(), Split::whole(shape.len()));
    for axis in 0..shape.len() {
        // The finest split among the operands that have the axis at full size.
        let of = |k: &usize| site.shape(*k)[axis] == shape[axis];
        let all = (0..site.operands.len()).filter(of).map(|k| &site.splits[k].0[axis]);
        if let Some(finest) = all.max_by_key(|axes| axes.len()) {
            result.0[axis] = site.claim(&mut used, finest, shape[axis]);
        }
    }
    let operand = |k: usize| {
        let axis = |axis: usize| {
            let has = site.shape(k)[axis] == shape[axis];
            if has { result.0[axis].clone() } else { Vec::new() }
        };
        Split((0..shape.len()).map(axis).collect())
    };
    let operands = (0..site.operands.len()).map(operand).collect();
    Some(ShardingRule::new(operands, vec![result.clone(); site.results.len()]))
}
