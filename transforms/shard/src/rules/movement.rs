//! Movement operations: splits follow their axes; operands are gathered along axes that the operation mixes.

use burn_t4a_compile::graph::{TensorType, Word};

use super::{InstructionContext, ShardingRule};
use crate::spec::Split;

/// Exchange of the last two axes.
pub(super) fn transpose(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let rank = site.rank(0);
    swapped(site, rank.checked_sub(2)?, rank - 1)
}

pub(super) fn swap_dims(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    swapped(site, site.int(1)?, site.int(2)?)
}

pub(super) fn permute(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    permuted(site, &axes(site)?)
}

pub(super) fn flip(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let mut split = site.splits[0].clone();
    for axis in axes(site)? {
        split = split.cloned_without(axis)?;
    }
    Some(ShardingRule::new(vec![split.clone()], vec![split]))
}

/// The axes of argument 1, which is preceded by their number.
fn axes(site: &InstructionContext<'_>) -> Option<Vec<usize>> {
    (0..site.int(1)?).map(|i| site.int(2 + i)).collect()
}

fn permuted(site: &InstructionContext<'_>, axes: &[usize]) -> Option<ShardingRule> {
    let split = site.splits[0].clone();
    let axis = |&axis: &usize| split.0.get(axis).cloned();
    let out = Split(axes.iter().map(axis).collect::<Option<_>>()?);
    Some(ShardingRule::new(vec![split], vec![out]))
}

fn swapped(site: &InstructionContext<'_>, a: usize, b: usize) -> Option<ShardingRule> {
    let mut axes: Vec<usize> = (0..site.rank(0)).collect();
    if a >= axes.len() || b >= axes.len() {
        return None;
    }
    axes.swap(a, b);
    permuted(site, &axes)
}

/// Static arguments that end with a shape, rewritten for a local shape; `before` is the number of words before it.
fn with_shape(site: &InstructionContext<'_>, before: usize, shape: &[usize]) -> Option<Vec<Word>> {
    let mut words = site.words?.get(..before)?.to_vec();
    words.push(Word::Int(shape.len() as i64));
    words.extend(shape.iter().map(|&n| Word::Int(n as i64)));
    Some(words)
}

/// Factors the reshape into groups of axes with equal products; the first axis of size > 1 of a group stays split.
pub(super) fn reshape(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let (from, to) = (site.shape(0), &site.results[0].shape);
    if from.contains(&0) {
        return None;
    }
    let [mut operand, mut out] = [from.len(), to.len()].map(Split::whole);
    let (mut i, mut j) = (0, 0);
    while i < from.len() && j < to.len() {
        let (first, of) = ((i, j), (from[i], to[j]));
        let (mut a, mut b) = of;
        (i, j) = (i + 1, j + 1);
        while a != b {
            if a < b {
                a *= from.get(i)?;
                i += 1;
            } else {
                b *= to.get(j)?;
                j += 1;
            }
        }
        // Leading axes of size 1 are skipped.
        let long = |shape: &[usize], from: usize, to: usize| (from..to).find(|&k| shape[k] > 1);
        if let (Some(p), Some(q)) = (long(from, first.0, i), long(to, first.1, j)) {
            let axes = &site.splits[0].0[p];
            if to[q].is_multiple_of(site.mesh.parts(axes)) {
                (operand.0[p], out.0[q]) = (axes.clone(), axes.clone());
            }
        }
    }
    let words = with_shape(site, 1, &out.local(site.mesh, to))?;
    Some(ShardingRule { words: Some(words), ..ShardingRule::new(vec![operand], vec![out]) })
}

/// Broadcast axes are not split.
pub(super) fn expand(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let (from, to) = (site.shape(0), &site.results[0].shape);
    let new = to.len().checked_sub(from.len())?;
    let [mut operand, mut out] = [from.len(), to.len()].map(Split::whole);
    for axis in 0..from.len() {
        if from[axis] == to[new + axis] {
            operand.0[axis] = site.splits[0].0[axis].clone();
            out.0[new + axis] = operand.0[axis].clone();
        }
    }
    let words = with_shape(site, 1, &out.local(site.mesh, to))?;
    Some(ShardingRule { words: Some(words), ..ShardingRule::new(vec![operand], vec![out]) })
}

/// Axes that are taken in full stay split. `values`: number of further operands, which are written to the slice.
pub(super) fn slice(site: &InstructionContext<'_>, values: usize) -> Option<ShardingRule> {
    let shape = site.shape(0);
    let words = site.words?;
    let count = site.int(1)?;
    let mut split = site.splits[0].clone();
    let mut out = vec![words[0].clone(), words[1].clone()];
    let mut at = 2;
    for axis in 0..count {
        let start = words.get(at)?.clone();
        let ends = words.get(at + 1) == Some(&Word::Int(1));
        let end = if ends { words.get(at + 2)?.clone() } else { Word::Int(shape[axis] as i64) };
        at += if ends { 3 } else { 2 };
        let step = words.get(at)?.clone();
        at += 1;
        let whole = [0, shape[axis] as i64, 1].map(Word::Int);
        if [&start, &end, &step] == whole.each_ref() {
            let n = shape[axis] / site.mesh.parts(&split.0[axis]);
            out.extend([0, 1, n as i64, 1].map(Word::Int));
        } else {
            split.0[axis].clear();
            out.extend([start, Word::Int(1), end, step]);
        }
    }
    out.extend(words.get(at..)?.iter().cloned());
    let mut operands = vec![split.clone()];
    if values == 1 {
        operands.push(split.clone());
    }
    Some(ShardingRule { words: Some(out), ..ShardingRule::new(operands, vec![split]) })
}

/// Splits common to all operands, except along the concatenated axis.
pub(super) fn cat(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let axis = site.int(site.words?.len().checked_sub(1)?)?;
    let rank = site.rank(0);
    let mut split = Split::whole(rank);
    let mut used = Vec::new();
    for other in (0..rank).filter(|&other| other != axis) {
        let finest = site.splits.iter().map(|x| &x.0[other]).max_by_key(|axes| axes.len())?;
        split.0[other] = site.claim(&mut used, finest, site.shape(0)[other]);
    }
    Some(ShardingRule::new(vec![split.clone(); site.operands.len()], vec![split]))
}

/// Operands: a tensor and indices of rank 1.
pub(super) fn select(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let axis = site.int(1)?;
    let x = site.splits[0].cloned_without(axis)?;
    let mut used = x.all();
    let indices = site.claim(&mut used, site.splits[1].0.first()?, site.shape(1)[0]);
    let mut out = x.clone();
    out.0[axis] = indices.clone();
    Some(ShardingRule::new(vec![x, Split(vec![indices])], vec![out]))
}

/// Operands and results of equal shape except along `axis`, which is not split.
pub(super) fn along(site: &InstructionContext<'_>, axis: usize) -> Option<ShardingRule> {
    let shape = site.shape(0);
    let equal = |x: &&TensorType| {
        x.shape.len() == shape.len()
            && (0..shape.len()).all(|at| at == axis || x.shape[at] == shape[at])
    };
    if axis >= shape.len() || !site.operands.iter().chain(&site.results).all(equal) {
        return None;
    }
    let mut split = Split::whole(shape.len());
    let mut used = Vec::new();
    for other in (0..shape.len()).filter(|&other| other != axis) {
        let finest = site.splits.iter().map(|x| &x.0[other]).max_by_key(|axes| axes.len())?;
        split.0[other] = site.claim(&mut used, finest, shape[other]);
    }
    let results = vec![split.clone(); site.results.len()];
    Some(ShardingRule::new(vec![split; site.operands.len()], results))
}

/// The window axis is appended as the last axis.
pub(super) fn unfold(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let split = site.splits[0].cloned_without(site.int(1)?)?;
    let mut out = split.clone();
    out.0.push(Vec::new());
    (site.results[0].shape.len() == out.0.len()).then(|| ShardingRule::new(vec![split], vec![out]))
}

/// Operands: weights `[words, features]` and indices of any rank.
pub(super) fn embedding(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let indices = site.splits[1].clone();
    let mut used = indices.all();
    let features = site.claim(&mut used, &site.splits[0].0[1], site.shape(0)[1]);
    let mut out = indices.clone();
    out.0.push(features.clone());
    Some(ShardingRule::new(vec![Split(vec![Vec::new(), features]), indices], vec![out]))
}
