//! Reductions: a reduction along a split axis is completed by a reduction over devices.

use super::{InstructionContext, Reduce, ShardingRule};
use crate::spec::Split;

impl Split {
    /// A copy in which `axis` is not split.
    pub(super) fn cloned_without(&self, axis: usize) -> Option<Self> {
        let mut split = self.clone();
        split.0.get_mut(axis)?.clear();
        Some(split)
    }
}

/// Reduction along one axis or all axes: first within each shard, then over devices.
pub(super) fn over(
    site: &InstructionContext<'_>,
    axis: Option<usize>,
    reduce: Reduce,
) -> Option<ShardingRule> {
    let split = site.splits[0].clone();
    let (out, devices) = match axis {
        Some(axis) => (split.cloned_without(axis)?, split.0[axis].clone()),
        None => (Split::whole(site.results[0].shape.len()), split.all()),
    };
    Some(ShardingRule::new(vec![split], vec![out]).completed(reduce, devices))
}
