//! Products: rows, columns and batches stay split; a split contraction is a sum over devices.

use super::{InstructionContext, ShardingRule};
use crate::spec::Split;

/// Mesh axes that split a contracted axis of two operands: those of the first operand, else those of the second.
fn contracted(
    site: &InstructionContext<'_>,
    used: &mut Vec<usize>,
    pairs: [(usize, usize); 2],
) -> Vec<usize> {
    let of = |(k, axis): (usize, usize)| (&site.splits[k].0[axis], site.shape(k)[axis]);
    let [(a, size), (b, _)] = pairs.map(of);
    let first = site.claim(used, a, size);
    if first.is_empty() { site.claim(used, b, size) } else { first }
}

/// `[…, m, k] · [k, n]` with broadcast batch axes.
pub(super) fn matmul(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let shape = &site.results[0].shape;
    let rank = shape.len();
    if rank < 2 || site.rank(0) != rank || site.rank(1) != rank {
        return None;
    }
    let mut used = Vec::new();
    let [mut a, mut b, mut out] = [0; 3].map(|_| Split::whole(rank));
    for axis in 0..rank - 2 {
        let has = [0, 1].map(|k| site.shape(k)[axis] == shape[axis]);
        let split = (0..2).filter(|&k| has[k]).map(|k| &site.splits[k].0[axis]);
        let finest = split.max_by_key(|axes| axes.len())?;
        let axes = site.claim(&mut used, finest, shape[axis]);
        for (operand, has) in [&mut a, &mut b].into_iter().zip(has) {
            if has {
                operand.0[axis] = axes.clone();
            }
        }
        out.0[axis] = axes;
    }
    let (m, n) = (rank - 2, rank - 1);
    a.0[m] = site.claim(&mut used, &site.splits[0].0[m], shape[m]);
    b.0[n] = site.claim(&mut used, &site.splits[1].0[n], shape[n]);
    (out.0[m], out.0[n]) = (a.0[m].clone(), b.0[n].clone());
    let k = contracted(site, &mut used, [(0, n), (1, m)]);
    (a.0[n], b.0[m]) = (k.clone(), k.clone());
    Some(ShardingRule::new(vec![a, b], vec![out]).summed(k))
}

/// `x[…, k] · w[k, n] + b[n]`.
pub(super) fn linear(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let last = site.rank(0).checked_sub(1)?;
    let mut used = Vec::new();
    let mut x = Split::whole(last + 1);
    for axis in 0..last {
        x.0[axis] = site.claim(&mut used, &site.splits[0].0[axis], site.shape(0)[axis]);
    }
    let n = site.claim(&mut used, &site.splits[1].0[1], site.shape(1)[1]);
    let mut out = x.clone();
    out.0[last] = n.clone();
    let k = contracted(site, &mut used, [(0, last), (1, 0)]);
    x.0[last] = k.clone();
    let mut operands = vec![x, Split(vec![k.clone(), n.clone()])];
    let mut once = Vec::new();
    if site.operands.len() == 3 {
        operands.push(Split(vec![n]));
        once.push((2, k.clone()));
    }
    Some(ShardingRule { once, ..ShardingRule::new(operands, vec![out]).summed(k) })
}

/// `g[…, n] · wᵀ`; operands: w and g.
pub(super) fn linear_x(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let last = site.rank(1).checked_sub(1)?;
    let mut used = Vec::new();
    let mut g = Split::whole(last + 1);
    for axis in 0..last {
        g.0[axis] = site.claim(&mut used, &site.splits[1].0[axis], site.shape(1)[axis]);
    }
    let k = site.claim(&mut used, &site.splits[0].0[0], site.shape(0)[0]);
    let mut out = g.clone();
    out.0[last] = k.clone();
    let n = contracted(site, &mut used, [(0, 1), (1, last)]);
    g.0[last] = n.clone();
    Some(ShardingRule::new(vec![Split(vec![k, n.clone()]), g], vec![out]).summed(n))
}

/// `xᵀ · g`, summed over all axes but the last.
pub(super) fn linear_weight(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let last = site.rank(0).checked_sub(1)?;
    if site.rank(1) != last + 1 {
        return None;
    }
    let mut used = Vec::new();
    let [mut x, mut g] = [0; 2].map(|_| Split::whole(last + 1));
    // Column splits have priority: they make the local result smaller.
    x.0[last] = site.claim(&mut used, &site.splits[0].0[last], site.shape(0)[last]);
    g.0[last] = site.claim(&mut used, &site.splits[1].0[last], site.shape(1)[last]);
    let mut over = Vec::new();
    for axis in 0..last {
        let axes = contracted(site, &mut used, [(0, axis), (1, axis)]);
        over.extend(&axes);
        (x.0[axis], g.0[axis]) = (axes.clone(), axes);
    }
    let out = Split(vec![x.0[last].clone(), g.0[last].clone()]);
    Some(ShardingRule::new(vec![x, g], vec![out]).summed(over))
}

/// `g`, summed over all axes but the last.
pub(super) fn linear_bias(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let g = site.splits[0].clone();
    let (n, rest) = g.0.split_last()?;
    let (out, over) = (Split(vec![n.clone()]), rest.concat());
    Some(ShardingRule::new(vec![g], vec![out]).summed(over))
}
