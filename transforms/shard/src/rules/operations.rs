//! Operations outside of Burn's traits, described by labels of the axes of their arrays, as an einsum is.
//!
//! ```text
//! label in operands and results         its axes stay split
//! label that a result lacks             partial results, completed by a reduction over devices
//! no label                              the axis is gathered
//! ```
//!
//! A derivative has the labels of its operation: tangents and cotangents have the axes of their arrays. The cotangent of
//! an operand without a label is a sum over that label.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use burn_t4a_compile::graph::{
    AnyOperation, OperationArray, OperationPass, RecordedOperation, TensorType,
};
use t4a_diff::Pairs;
use t4a_einsum::{Contraction, Einsum, FloatSemiring, Label, Subscripts};
use t4a_scan::FloatMonoid;

use super::{InstructionContext, Reduce, ShardingRule};
use crate::spec::{Split, moves};
use crate::traffic::{bytes_of, gatherings, local, reduced};

/// Label of each axis of an array; `None` for axes that are not split.
type ArrayLabels = Vec<Option<usize>>;

/// Mesh axes that split the axes of each label.
type LabelSplits = HashMap<usize, Vec<usize>>;

/// The placement with the least traffic; of several, the one with the smallest shards.
pub(super) fn rule(site: &InstructionContext<'_>) -> Option<ShardingRule> {
    let recorded = site.operation?;
    let of = |(array, meta): (&OperationArray, &&TensorType)| {
        let labels = labels(recorded, *array, &meta.shape)?;
        (labels.len() == meta.shape.len()).then_some(labels)
    };
    let operands: Vec<ArrayLabels> =
        recorded.operands.iter().zip(&site.operands).map(of).collect::<Option<_>>()?;
    let results: Vec<ArrayLabels> =
        recorded.results.iter().zip(&site.results).map(of).collect::<Option<_>>()?;
    let reduce = reduction(recorded);
    let all = placements(site, &operands, &results, reduce.is_some());
    // Of equal costs, the placement with the most splits, which is last.
    let rules = all.into_iter().rev().map(|splits| {
        let rule = with_splits(site, [&operands, &results], &splits, reduce);
        (cost(site, &rule), splits, rule)
    });
    let (_, splits, rule) = rules.min_by_key(|(cost, ..)| *cost)?;
    let parts = |label: usize| splits.get(&label).map_or(1, |axes| site.mesh.parts(axes));
    // The other operations are independent of shapes.
    let operation = match contraction(&recorded.operation) {
        Some(own) if !splits.is_empty() => {
            Some(einsum_of(&recorded.operation, local_contraction(own, parts)?))
        }
        _ => None,
    };
    Some(ShardingRule { operation, ..rule })
}

/// All combinations of the current splits of operands in which no mesh axis is used twice.
fn placements(
    site: &InstructionContext<'_>,
    operands: &[ArrayLabels],
    results: &[ArrayLabels],
    reduces: bool,
) -> Vec<LabelSplits> {
    let mut candidates: Vec<(usize, &[usize])> = Vec::new();
    for (split, labels) in site.splits.iter().zip(operands) {
        for (axes, label) in split.0.iter().zip(labels) {
            let (Some(label), axes) = (*label, &axes[..]) else { continue };
            let can = reduces || results.iter().all(|labels| labels.contains(&Some(label)));
            if !axes.is_empty() && can && !candidates.contains(&(label, axes)) {
                candidates.push((label, axes));
            }
        }
    }
    let mut all = vec![LabelSplits::new()];
    for (label, axes) in candidates {
        let free = |splits: &&LabelSplits| {
            let used = |axis: &usize| splits.values().any(|axes| axes.contains(axis));
            !splits.contains_key(&label) && !axes.iter().any(used)
        };
        let with = |splits: &LabelSplits| {
            let mut splits = splits.clone();
            splits.insert(label, axes.to_vec());
            splits
        };
        let more: Vec<LabelSplits> = all.iter().filter(free).map(with).collect();
        all.extend(more);
    }
    all
}

fn with_splits(
    site: &InstructionContext<'_>,
    [operands, results]: [&[ArrayLabels]; 2],
    splits: &LabelSplits,
    reduce: Option<Reduce>,
) -> ShardingRule {
    let axes = |label: &Option<usize>| {
        label.and_then(|label| splits.get(&label)).cloned().unwrap_or_default()
    };
    let split = |labels: &ArrayLabels| Split(labels.iter().map(axes).collect());
    let mut rule = ShardingRule::new(
        operands.iter().map(split).collect(),
        results.iter().map(split).collect(),
    );
    // Mesh axes in their order, so that all processes reduce in the same order.
    let lacks = |split: &Split| -> Vec<usize> {
        let over = |axis: &usize| splits.values().any(|axes| axes.contains(axis));
        (0..site.mesh.axes().len()).filter(|axis| over(axis) && !split.uses(*axis)).collect()
    };
    let over: Vec<Vec<usize>> = rule.results.iter().map(lacks).collect();
    if let Some(reduce) = reduce.filter(|_| over.iter().any(|over| !over.is_empty())) {
        rule.reduce = Some((reduce, over));
    }
    rule
}

/// Bytes that each device sends, and elements of its shards.
fn cost(site: &InstructionContext<'_>, rule: &ShardingRule) -> (usize, usize) {
    let (mesh, mut sent, mut elements) = (site.mesh, 0, 0);
    for ((meta, &from), to) in site.operands.iter().zip(&site.splits).zip(&rule.operands) {
        let all = gatherings(meta, from, &moves(from, to), mesh);
        sent += all.iter().map(|x| x.sent).sum::<usize>();
        elements += bytes_of(&local(meta, to, mesh)) / meta.dtype.size();
    }
    for (k, (meta, split)) in site.results.iter().zip(&rule.results).enumerate() {
        let shard = local(meta, split, mesh);
        let over = rule.reduce.iter().flat_map(|(_, over)| &over[k]);
        sent += over.map(|&axis| reduced(&shard, mesh.size(axis))).sum::<usize>();
        elements += bytes_of(&shard) / meta.dtype.size();
    }
    (sent, elements)
}

/// Labels of the axes of an array of this shape. `None` if the operation has no rule.
fn labels(of: &RecordedOperation, array: OperationArray, shape: &[usize]) -> Option<ArrayLabels> {
    let rank = shape.len();
    let chosen = |is_chosen: &dyn Fn(usize) -> bool| -> ArrayLabels {
        (0..rank).map(|axis| is_chosen(axis).then_some(axis)).collect()
    };
    let leading = |count: usize| chosen(&|axis| axis < count);
    let without = |other: usize| chosen(&|axis| axis != other);
    let is_first = matches!(array, OperationArray::Operand(0) | OperationArray::Result(_));
    Some(match &of.operation {
        AnyOperation::Einsum(op) => return contraction_labels(op, of, array, rank),
        AnyOperation::ComplexEinsum(Pairs { op, .. }) => {
            // Real and imaginary parts have equal axes.
            let real = match array {
                OperationArray::Operand(i) => OperationArray::Operand(i / 2),
                OperationArray::Result(i) => OperationArray::Result(i / 2),
                _ => return None,
            };
            return contraction_labels(op, of, real, rank);
        }
        op if is_linalg(op) => match array {
            OperationArray::Extra(_) => leading(rank.checked_sub(1)?),
            _ => leading(rank.checked_sub(2)?),
        },
        AnyOperation::Softmax(op) => without(op.axis),
        AnyOperation::LogSoftmax(op) => without(op.axis),
        AnyOperation::LayerNorm(_) | AnyOperation::RmsNorm(_) => {
            leading(if is_first { rank.checked_sub(1)? } else { 0 })
        }
        AnyOperation::Cumulative(op) => without(op.axis),
        AnyOperation::LinearRecurrence(op) => without(op.axis),
        AnyOperation::AssociativeScan(op) => {
            let mut labels = without(op.axis);
            if let FloatMonoid::Matrix(_) = op.monoid {
                let element = (0..rank).rev().filter(|&axis| axis != op.axis);
                element.take(2).for_each(|axis| labels[axis] = None);
            }
            labels
        }
        AnyOperation::MatrixRecurrence(_) => {
            let mut labels = leading(rank.checked_sub(3)?);
            // Columns of H and of B are independent of each other.
            if array != OperationArray::Operand(0) {
                labels[rank - 1] = Some(rank - 1);
            }
            labels
        }
        AnyOperation::Recurrent(op) => {
            let weights = 1..2 + usize::from(op.bias);
            match array {
                OperationArray::Operand(i) if weights.contains(&i) => vec![None; rank],
                // States have the batch first, sequences the steps.
                _ => (0..rank).map(|axis| (axis + 2 == rank).then_some(0)).collect(),
            }
        }
        _ => return None,
    })
}

/// True for linear algebra on batches of matrices, and for its derivatives.
fn is_linalg(op: &AnyOperation) -> bool {
    match op {
        AnyOperation::Linalg(_) => true,
        AnyOperation::Jvp(op) => is_linalg(op.op()),
        AnyOperation::Vjp(op) => is_linalg(op.op()),
        _ => false,
    }
}

/// The contraction of an einsum of real or complex numbers.
fn contraction(op: &AnyOperation) -> Option<&Contraction> {
    match op {
        AnyOperation::Einsum(op) | AnyOperation::ComplexEinsum(Pairs { op, .. }) => Some(op),
        _ => None,
    }
}

/// Reduction over devices of results that lack a label. `None` if such a label cannot be split.
fn reduction(of: &RecordedOperation) -> Option<Reduce> {
    // Cotangents of an operand are summed over the results that it contributes to.
    if of.pass == OperationPass::Vjp {
        return Some(Reduce::Sum);
    }
    // The argmax numbers all terms of a sum.
    let has_argmax = of.results.iter().any(|x| matches!(x, OperationArray::Extra(_)));
    match contraction(&of.operation)?.semiring {
        FloatSemiring::Standard => Some(Reduce::Sum),
        _ if has_argmax || of.pass == OperationPass::Jvp => None,
        FloatSemiring::MaxPlus | FloatSemiring::MaxMul | FloatSemiring::MaxMin => Some(Reduce::Max),
        FloatSemiring::MinPlus | FloatSemiring::MinMul => Some(Reduce::Min),
        _ => None,
    }
}

/// Labels of an array of a contraction, numbered as in its plan.
fn contraction_labels(
    op: &Contraction,
    of: &RecordedOperation,
    array: OperationArray,
    rank: usize,
) -> Option<ArrayLabels> {
    let plan = &op.plan;
    // Steps of an empty contraction do not contain the label of size 0.
    if plan.is_empty() {
        return None;
    }
    let number = |label: &Label| plan.labels().iter().position(|known| known == label);
    let kept = plan.result_labels();
    let is_linear = op.semiring == FloatSemiring::Standard;
    let arrays = || of.operands.iter().chain(&of.results);
    let roles = arrays().any(|x| matches!(x, OperationArray::Extra(_))).then(|| plan.roles());
    let groups = match roles {
        Some(roles) => roles.map(|roles| [roles.batch, roles.left, roles.right]),
        None => Some([const { Vec::new() }; 3]),
    }?;
    let is_split = |label: &Label| {
        let terms = (0..plan.operands()).filter_map(|i| plan.operand_labels(i)).chain([kept]);
        let count = |term: &[Label]| term.iter().filter(|&other| other == label).count();
        // A diagonal is not split; a cotangent over a nonlinear semiring depends on all terms of a sum.
        let is_diagonal = terms.map(count).any(|count| count > 1);
        let is_local = is_linear || of.pass == OperationPass::Forward || kept.contains(label);
        // Only the first label of a group splits the merged axis of the argmax into blocks.
        let is_first = groups.iter().all(|group| !group[1.min(group.len())..].contains(label));
        !is_diagonal && is_local && is_first
    };
    let label = |label: &Label| if is_split(label) { number(label) } else { None };
    let axes = |labels: &[Label], shape: &[usize]| -> ArrayLabels {
        let axis = |(name, &n): (&Label, &usize)| if n == 1 { None } else { label(name) };
        labels.iter().zip(shape).map(axis).collect()
    };
    let labels = match array {
        OperationArray::Operand(i) => axes(plan.operand_labels(i)?, plan.operand_shape(i)?),
        OperationArray::Result(_) => axes(kept, &plan.shape()),
        OperationArray::Hidden(_) => return None,
        OperationArray::Extra(_) => groups.iter().map(|group| label(group.first()?)).collect(),
    };
    // A scalar may have shape [1].
    Some(if labels.is_empty() { vec![None; rank] } else { labels })
}

/// The einsum with another contraction.
fn einsum_of(op: &AnyOperation, contraction: Contraction) -> Arc<dyn Any + Send + Sync> {
    match op {
        AnyOperation::ComplexEinsum(Pairs { conj, .. }) => {
            Arc::new(Pairs { op: contraction, conj: *conj })
        }
        _ => Arc::new(contraction),
    }
}

/// The contraction with the same labels and order for local shapes, in which the size of a label is divided by `parts`.
fn local_contraction(op: &Contraction, parts: impl Fn(usize) -> usize) -> Option<Contraction> {
    let plan = &op.plan;
    let size = |(label, &n): (&Label, &usize)| {
        let number = plan.labels().iter().position(|known| known == label);
        if n == 1 { n } else { n / number.map_or(1, &parts) }
    };
    let sizes = |labels: &[Label], shape: &[usize]| -> Vec<usize> {
        labels.iter().zip(shape).map(size).collect()
    };
    let operands =
        (0..plan.operands()).map(|i| Some((plan.operand_labels(i)?, plan.operand_shape(i)?)));
    let (terms, shapes): (Vec<Vec<Label>>, Vec<Vec<usize>>) = operands
        .map(|x| x.map(|(labels, shape)| (labels.to_vec(), sizes(labels, shape))))
        .collect::<Option<_>>()?;
    let kept = plan.result_labels();
    let mut einsum =
        Einsum::from(Subscripts::new(terms, kept.iter().copied())).path(plan.path().clone());
    for (&label, size) in kept.iter().zip(sizes(kept, &plan.shape())) {
        einsum = einsum.size(label, size);
    }
    if let Some(bytes) = plan.budget() {
        einsum = einsum.memory(bytes);
    }
    let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
    Some(Contraction { plan: einsum.plan(&shapes, size_of::<f64>()).ok()?, ..op.clone() })
}
