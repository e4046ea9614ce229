//! Reductions: a reduction along a split axis is completed by a reduction over devices.

use super::{InstructionContext, Reduce, ShardingRule};
use crate::spec::Split;

/// Operations along an axis that must not be split; splits of other axes are kept.
const ALONG: &[&str] = &[
    "float_prod_dim",
    "float_argmax",
    "float_argmin",
    "float_argsort",
    "float_sort",
    "float_sort_with_indices",
    "float_max_dim_with_indices",
    "float_min_dim_with_indices",
    "float_max_abs_dim",
    "float_cumsum",
    "float_cumprod",
    "float_cummax",
    "float_cummin",
    "float_any_dim",
    "float_all_dim",
    "int_prod_dim",
    "int_argmax",
    "int_argmin",
    "int_argsort",
    "int_sort",
    "int_cumsum",
    "bool_any_dim",
    "bool_all_dim",
    "softmax",
    "log_softmax",
    "softmin",
    "float_topk",
];

pub(super) fn rule(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    if ALONG.contains(&site.name) {
        return along(site, site.int(1)?);
    }
    let kinds = ["float_", "int_"];
    let name = kinds.iter().find_map(|kind| site.name.strip_prefix(kind))?;
    match name {
        "sum_dim" => over(site, Some(site.int(1)?), Reduce::Sum),
        "mean_dim" if site.name == "float_mean_dim" => over(site, Some(site.int(1)?), Reduce::Mean),
        "max_dim" => over(site, Some(site.int(1)?), Reduce::Max),
        "min_dim" => over(site, Some(site.int(1)?), Reduce::Min),
        "sum" => over(site, None, Reduce::Sum),
        "mean" if site.name == "float_mean" => over(site, None, Reduce::Mean),
        "max" => over(site, None, Reduce::Max),
        "min" => over(site, None, Reduce::Min),
        _ => None,
    }
}

/// Keeps all splits except along one axis.
pub(super) fn along(site: &InstructionContext<'_>, axis: usize) -> Option<ShardingRule> {
    let mut split = site.splits.first()?.cloned_without(axis)?;
    if site.operands.len() != 1 || site.results.iter().any(|x| x.shape.len() != split.0.len()) {
        return None;
    }
    split.0[axis].clear();
    Some(ShardingRule::new(vec![split.clone()], vec![split; site.results.len()]))
}

impl Split {
    /// A copy in which `axis` is not split.
    pub(super) fn cloned_without(&self, axis: usize) -> Option<Self> {
        let mut split = self.clone();
        split.0.get_mut(axis)?.clear();
        Some(split)
    }
}

/// Reduction along one axis or all axes: first within each shard, then over devices.
fn over(
    site: &InstructionContext<'_>,
    axis: Option<usize>,
    reduce: Reduce,
) -> Option<ShardingRule> {
    let split = site.splits[0].clone();
    let (out, devices) = match axis {
        Some(axis) => (split.cloned_without(axis)?, split.0[axis].clone()),
        None => (Split::whole(site.results[0].shape.len()), split.all()),
    };
    let mut rule = ShardingRule::new(vec![split], vec![out]);
    if !devices.is_empty() {
        rule.reduce = Some((reduce, devices));
    }
    Some(rule)
}
