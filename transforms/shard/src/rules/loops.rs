//! Recorded scans: the rules of the instructions of the body determine the splits of its values, and the carry has the same
//! split before and after a step. Mesh axes over which a step would communicate are gathered before the loop.
//!
//! A sum over a split axis is a partial sum in the body. If it reaches results and carries by linear operations only, as the
//! cotangents of weights do in a reverse pass, the reduction over devices follows the loop. The initial value of such a
//! carry is that of the first device, and zero on the others.

use burn_backend::Backend;
use burn_t4a_compile::graph::{Instruction, LoopBody, MethodClass, TensorType, Value};

use super::{InstructionContext, PlacedInstruction, Reduce, ShardingRule, place};
use crate::mesh::Mesh;
use crate::parts::part;
use crate::spec::{Move, Split, moves};
use crate::traffic::local;

/// Splits of the values of a body, and its instructions for local shapes.
struct PlacedBody<B: Backend> {
    splits: Vec<Split>,
    /// For each value, the mesh axes over which its shards are partial sums.
    partial: Vec<Vec<usize>>,
    instructions: Vec<Instruction<B>>,
}

/// True if the operation of sums is the sum of the operations: a reduction over devices may follow it. All operands must be
/// partial sums over the same devices.
fn is_linear<B: Backend>(one: &Instruction<B>) -> bool {
    use MethodClass as Class;
    let names = ["float_add", "float_sub", "float_neg", "float_mul_scalar", "float_div_scalar"];
    let moves = matches!(
        one.class(),
        Class::Transpose
            | Class::SwapDims
            | Class::Permute
            | Class::Reshape
            | Class::Expand
            | Class::Slice
            | Class::Flip
            | Class::SumAxis
            | Class::SumAll
    );
    moves || names.contains(&one.name())
}

/// Keeps the splits of consts, carry, xs and captured values that the body maintains without communication.
pub(super) fn scan<B: Backend>(
    site: &InstructionContext<'_>,
    instruction: &Instruction<B>,
    body: &LoopBody<B>,
) -> Option<PlacedInstruction<B>> {
    let (mesh, [consts, carries, xs]) = (site.mesh, body.counts());
    let first_x = consts + carries;
    // xs and ys have a leading axis of steps. An element of a tensor of rank 1 has shape [1].
    let is_x = |k: usize| (first_x..first_x + xs).contains(&k);
    let mut gathered: Vec<usize> = Vec::new();
    let PlacedBody { splits, partial, instructions } = loop {
        let rest = |over: &Vec<usize>| -> Vec<usize> {
            over.iter().copied().filter(|axis| !gathered.contains(axis)).collect()
        };
        let input = |(k, split): (usize, &&Split)| match is_x(k) {
            true if split.0.len() == 1 => Split::whole(body.metas()[k].shape.len()),
            steps => Split(split.0[usize::from(steps)..].iter().map(rest).collect()),
        };
        match placed(mesh, body, site.splits.iter().enumerate().map(input).collect()) {
            Ok(placed) => break placed,
            Err(over) => gathered.extend(over),
        }
    };
    if !gathered.is_empty() && splits.iter().all(|split| split.all().is_empty()) {
        return None;
    }
    let outer = |value: usize, meta: &TensorType| match splits[value].0.len() {
        rank if rank < meta.shape.len() => Split([&[Vec::new()], &splits[value].0[..]].concat()),
        _ => splits[value].clone(),
    };
    let operand = |(k, meta): (usize, &&TensorType)| outer(k, meta);
    let result = |(&value, meta): (&usize, &&TensorType)| outer(value, meta);
    let mut rule = ShardingRule::new(
        site.operands.iter().enumerate().map(operand).collect(),
        body.outputs().iter().zip(&site.results).map(result).collect(),
    );
    let over: Vec<Vec<usize>> =
        body.outputs().iter().map(|&value| partial[value].clone()).collect();
    if over.iter().any(|over| !over.is_empty()) {
        rule.reduce = Some((Reduce::Sum, over));
        let first = (consts..first_x).map(|carry| (carry, partial[carry].clone()));
        rule.once = first.filter(|(_, over)| !over.is_empty()).collect();
    }
    let metas = body.metas().iter().zip(&splits).map(|(meta, split)| local(meta, split, mesh));
    let constant =
        |(value, x): &(usize, Value<B>)| (*value, shard(x.clone(), &splits[*value], mesh));
    let constants = body.constants().iter().map(constant).collect();
    let local = instruction.with_scan_body(body.with(metas.collect(), constants, instructions))?;
    Some(PlacedInstruction { rule, local })
}

/// Splits of all values, given those of the inputs, which are refined until each step maps the split of the carry to
/// itself. The error contains the mesh axes over which the body would communicate.
fn placed<B: Backend>(
    mesh: &Mesh,
    body: &LoopBody<B>,
    inputs: Vec<Split>,
) -> Result<PlacedBody<B>, Vec<usize>> {
    let (metas, [consts, carries, _]) = (body.metas(), body.counts());
    let mut given: Vec<Split> = metas.iter().map(|meta| Split::whole(meta.shape.len())).collect();
    given[..inputs.len()].clone_from_slice(&inputs);
    // Slices of inputs are taken before the loop; those of equal numbers need no device index.
    let is_given = |value: usize| {
        let constant = body.constants().iter().find(|x| x.0 == value);
        value < inputs.len() || constant.is_some_and(|(_, x)| is_uniform(x))
    };
    let mut sums: Vec<Vec<usize>> = vec![Vec::new(); metas.len()];
    loop {
        let (mut splits, mut partial) = (given.clone(), sums.clone());
        let (mut instructions, mut communicated, mut sliced) = (Vec::new(), Vec::new(), Vec::new());
        for one in body.instructions() {
            let PlacedInstruction { rule, local } = place(mesh, metas, &splits, one)
                .unwrap_or_else(|| PlacedInstruction::replicated(metas, one));
            for (&value, to) in one.operands().iter().zip(&rule.operands) {
                for step in moves(&splits[value], to) {
                    match step {
                        Move::Slice { axis, over } if is_given(value) => {
                            sliced.push((value, axis, over));
                        }
                        Move::Gather { over, .. }
                        | Move::Slice { over, .. }
                        | Move::First { over } => communicated.push(over),
                    }
                }
            }
            communicated.extend(rule.once.iter().flat_map(|(_, over)| over));
            let mut all: Vec<usize> =
                one.operands().iter().flat_map(|&value| partial[value].clone()).collect();
            all.sort_unstable();
            all.dedup();
            if !(is_linear(one) && one.operands().iter().all(|&value| partial[value] == all)) {
                communicated.extend(&all);
            }
            for (k, (value, split)) in one.results().zip(&rule.results).enumerate() {
                splits[value] = split.clone();
                partial[value] = all.clone();
                match &rule.reduce {
                    Some((Reduce::Sum, over)) => partial[value].extend(&over[k]),
                    Some((_, over)) => communicated.extend(&over[k]),
                    None => {}
                }
                partial[value].sort_unstable();
                partial[value].dedup();
            }
            instructions.push(local);
        }
        let mut refined = false;
        for (carry, &next) in (consts..consts + carries).zip(body.outputs()) {
            for (axis, (from, to)) in given[carry].0.iter().zip(&splits[next].0).enumerate() {
                match to.strip_prefix(&from[..]) {
                    Some(rest) => sliced.extend(rest.iter().map(|&over| (carry, axis, over))),
                    None => communicated.extend(from.iter().chain(to)),
                }
            }
            if sums[carry] != partial[next] {
                match sums[carry].iter().all(|axis| partial[next].contains(axis)) {
                    true => {
                        sums[carry] = partial[next].clone();
                        refined = true;
                    }
                    false => communicated.extend(&sums[carry]),
                }
            }
        }
        for &(value, axis, over) in &sliced {
            if !given[value].uses(over) {
                given[value].0[axis].push(over);
                refined = true;
            }
        }
        if !refined {
            communicated.extend(sliced.iter().map(|&(.., over)| over));
            return match communicated.is_empty() {
                true => Ok(PlacedBody { splits, partial, instructions }),
                false => Err(communicated),
            };
        }
    }
}

/// True if all elements are equal.
fn is_uniform<B: Backend>(x: &Value<B>) -> bool {
    let size = x.meta().dtype.size();
    let Ok(data) = x.clone().data() else { return false };
    let mut all = data.bytes.chunks(size.max(1));
    let first = all.next();
    all.all(|one| Some(one) == first)
}

/// Part of a tensor with equal elements.
fn shard<B: Backend>(x: Value<B>, split: &Split, mesh: &Mesh) -> Value<B> {
    let axes = split.0.iter().enumerate().map(|(axis, over)| (axis, mesh.parts(over)));
    axes.filter(|&(_, parts)| parts > 1).fold(x, |x, (axis, parts)| part(x, axis, parts, 0))
}
