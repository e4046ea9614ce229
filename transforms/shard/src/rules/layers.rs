//! Layers: batch axes stay split; cotangents of operands shared by all examples are sums over devices.

use super::{InstructionContext, ShardingRule};
use crate::spec::Split;

/// Keeps the batch axis of the operands `which` and of the results split; with `inner`, all axes but the last.
pub(super) fn images(
    site: &InstructionContext<'_>,
    which: &[usize],
    inner: bool,
) -> Option<ShardingRule> {
    let mut rule = site.whole();
    let n = *site.results.first()?.shape.first()?;
    let axes = if inner { site.rank(0).checked_sub(1)? } else { 1 };
    let mut used = Vec::new();
    for axis in 0..axes {
        let size = if axis == 0 { n } else { site.shape(0)[axis] };
        let has = |k: &&usize| site.shape(**k).get(axis) == Some(&size);
        let all = which.iter().filter(has).map(|&k| &site.splits[k].0[axis]);
        let finest = all.max_by_key(|axes| axes.len())?;
        let axes = site.claim(&mut used, finest, size);
        for k in which.iter().filter(has) {
            rule.operands[*k].0[axis] = axes.clone();
        }
        for (out, meta) in rule.results.iter_mut().zip(&site.results) {
            if meta.shape.get(axis) != Some(&size) {
                return None;
            }
            out.0[axis] = axes.clone();
        }
    }
    Some(rule)
}

/// Cotangents of weights. Operands: x, an optional replicated operand, and the cotangent of the result.
pub(super) fn summed(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let last = site.operands.len().checked_sub(1)?;
    let n = site.shape(0).first()?;
    if site.shape(last).first() != Some(n) {
        return None;
    }
    let mut rule = site.whole();
    let mut used = Vec::new();
    let finest =
        [0, last].map(|k| &site.splits[k].0[0]).into_iter().max_by_key(|axes| axes.len())?;
    let axes = site.claim(&mut used, finest, *n);
    for k in [0, last] {
        rule.operands[k].0[0] = axes.clone();
    }
    Some(rule.summed(axes))
}

/// Operands: weights, cotangent `[…, features]` and indices `[…]`.
pub(super) fn embedding_backward(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let mut used = Vec::new();
    let [mut g, mut indices] = [1, 2].map(|k| Split::whole(site.rank(k)));
    let last = site.rank(1).checked_sub(1)?;
    let mut over = Vec::new();
    for axis in 0..last {
        let both = [1, 2].map(|k| &site.splits[k].0[axis]);
        let finest = both.into_iter().max_by_key(|axes| axes.len())?;
        let axes = site.claim(&mut used, finest, site.shape(1)[axis]);
        over.extend(&axes);
        (g.0[axis], indices.0[axis]) = (axes.clone(), axes);
    }
    let features = site.claim(&mut used, &site.splits[1].0[last], site.shape(1)[last]);
    g.0[last] = features.clone();
    let weights = Split(vec![Vec::new(), features]);
    let out = weights.clone();
    Some(ShardingRule::new(vec![weights, g, indices], vec![out]).summed(over))
}
