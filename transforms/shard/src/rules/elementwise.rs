//! Elementwise operations, with broadcasts.

use super::{InstructionContext, ShardingRule};
use crate::spec::Split;

/// An axis stays split if the operands that have its full size can be split that way.
pub(super) fn rule(site: &InstructionContext<'_>) -> Option<ShardingRule> {
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
