//! Layers: batch axes stay split; cotangents of operands shared by all examples are sums over devices.

use super::{InstructionContext, ShardingRule};
use crate::spec::Split;

/// Layers on images `[batch, channels, …]`: the first operand and the results have a batch axis, the other operands are
/// replicated.
const SHARED: &[&str] = &[
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "layer_norm",
    "float_grid_sample_2d",
];
/// Layers whose operands all have a batch axis.
const IMAGES: &[&str] = &[
    "avg_pool1d",
    "avg_pool1d_backward",
    "avg_pool2d",
    "avg_pool2d_backward",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool1d_backward",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool2d_backward",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool1d_with_indices_backward",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward",
    "interpolate",
    "interpolate_backward",
    "unfold4d",
    "attention",
    "rfft",
    "irfft",
    "max_pool3d",
    "avg_pool3d",
    "adaptive_avg_pool3d",
];

pub(super) fn rule(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let name = site.name;
    if SHARED.contains(&name) && name != "float_grid_sample_2d" {
        return images(site, &[0], name == "layer_norm");
    }
    if IMAGES.contains(&name) {
        let all: Vec<usize> = (0..site.operands.len()).collect();
        return images(site, &all, false);
    }
    if name == "embedding_backward" {
        return embedding_backward(site);
    }
    if !name.starts_with("conv") {
        return None;
    }
    match name.rsplit_once("d_")?.1 {
        // Operands: x, weight and cotangent, or weight and cotangent.
        "x_backward" if site.operands.len() == 3 => images(site, &[0, 2], false),
        "x_backward" => images(site, &[1], false),
        "weight_backward" | "bias_backward" => summed(site),
        _ => None,
    }
}

/// Keeps the batch axis of the operands `which` and of the results split; with `inner`, all axes but the last.
fn images(site: &InstructionContext<'_>, which: &[usize], inner: bool) -> Option<ShardingRule> {
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
fn summed(site: &InstructionContext<'_>) -> Option<ShardingRule> {
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
fn embedding_backward(site: &InstructionContext<'_>) -> Option<ShardingRule> {
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
