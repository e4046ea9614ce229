//! Selection of the instructions that are fused into one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use burn_backend::{Backend, BoolStore, DType};

use super::Elementwise;
use super::plan::FusionPlan;
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
use super::run::GroupCode;
use super::run::{FusedGroup, is_engine};
use crate::program::Unit;
use crate::recording::Instruction;
use crate::tensor::TensorType;

/// Maximum row length of groups with reductions: a block holds whole rows.
const LONGEST: usize = 4096;
/// Maximum number of instructions in a group: registers beyond the cache size give no speedup.
const LARGEST: usize = 96;

struct Grouping<'a, B: Backend> {
    instructions: &'a [Instruction<B>],
    metas: &'a [TensorType],
    /// Index of the instruction that produces each value.
    producer: Vec<Option<usize>>,
    /// Previous random instruction, which must run first even without a data dependency.
    before: Vec<Option<usize>>,
    group: Vec<usize>,
    /// Instructions of each group, in ascending order.
    members: Vec<Vec<usize>>,
    shapes: Vec<Option<Vec<usize>>>,
    /// True if a sum adds the results in memory order: only elementwise instructions and data movement are between them
    /// and the sum.
    ordered: Vec<bool>,
    /// For each instruction, the number of groups with members both before it and at or after it.
    across: Vec<u32>,
    /// Search that visited each group last, and the number of searches so far.
    visited: Vec<usize>,
    searches: usize,
    /// Constants with one element that is repeated along all axes.
    repeated: &'a HashSet<usize>,
}

impl<B: Backend> Grouping<'_, B> {
    fn sources(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        let operands = self.instructions[i].operands.iter();
        operands.filter_map(|&value| self.producer[value]).chain(self.before[i])
    }

    /// Shape of the result if the instruction can be fused; for a reduction, the shape of its operand.
    fn shape(&self, i: usize) -> Option<Vec<usize>> {
        let one = &self.instructions[i];
        let what = one.elementwise?;
        let result = &self.metas[one.first];
        let float = one
            .operands
            .iter()
            .chain([&one.first])
            .map(|&v| &self.metas[v].dtype)
            .find(|dtype| !matches!(dtype, DType::Bool(_)))?;
        let fits = |value: usize, flag: bool| {
            let meta = &self.metas[value];
            let dtype = if flag { DType::Bool(BoolStore::Native) } else { *float };
            meta.dtype == dtype && meta.shape.len() == result.shape.len()
        };
        let operands = one.operands.iter().enumerate().all(|(k, &v)| fits(v, what.takes_flag(k)));
        if !matches!(float, DType::F32 | DType::F64)
            || !operands
            || !fits(one.first, what.gives_flag())
        {
            return None;
        }
        let Elementwise::Reduce(_, axis) = what else { return Some(result.shape.clone()) };
        let operand = &self.metas[one.operands[0]].shape;
        let n = operand.last().copied().unwrap_or(1);
        let whole =
            axis + 1 == operand.len() && n > 1 && n <= LONGEST && !result.shape.contains(&0);
        whole.then(|| operand.clone())
    }

    fn dtype(&self, i: usize) -> DType {
        let one = &self.instructions[i];
        let mut all = one.operands.iter().chain([&one.first]).map(|&v| self.metas[v].dtype);
        all.find(|dtype| matches!(dtype, DType::F32 | DType::F64)).unwrap_or(DType::F32)
    }

    /// True if no dependency path leads from these two groups through others back to them.
    fn is_acyclic(&mut self, pair: [usize; 2]) -> bool {
        // Dependencies precede their users, so no path crosses a position that no group spans.
        let firsts = pair.map(|g| self.members[g].first().copied().unwrap_or(0));
        let mut end = firsts[0].min(firsts[1]);
        while self.across[end] > 0 {
            end -= 1;
        }
        self.searches += 1;
        let search = self.searches;
        let mut visited = std::mem::take(&mut self.visited);
        let leads = |g: usize| self.members[g].last().is_some_and(|&last| last >= end);
        let mut open: Vec<usize> = pair.to_vec();
        let mut acyclic = true;
        while let Some(from) = open.pop() {
            for source in self.members[from].iter().flat_map(|&i| self.sources(i)) {
                let g = self.group[source];
                if pair.contains(&g) {
                    acyclic &= pair.contains(&from);
                } else if leads(g) && std::mem::replace(&mut visited[g], search) != search {
                    open.push(g);
                }
            }
            if !acyclic {
                break;
            }
        }
        self.visited = visited;
        acyclic
    }

    fn join(&mut self, i: usize) {
        let Some(shape) = self.shape(i) else { return };
        self.shapes[i] = Some(shape);
        let mut candidates: Vec<usize> = self.sources(i).map(|source| self.group[source]).collect();
        candidates.sort_unstable();
        candidates.dedup();
        for g in candidates {
            let own = self.group[i];
            if g == own {
                continue;
            }
            let (Some(a), Some(b)) = (&self.shapes[own], &self.shapes[g]) else { continue };
            let Some(shape) = common(a, b) else { continue };
            let size = self.members[own].len() + self.members[g].len();
            if size > LARGEST || self.dtype(i) != self.dtype(g) || !self.is_acyclic([own, g]) {
                continue;
            }
            for part in [own, g] {
                let range = inside(&self.members[part]);
                self.across[range].iter_mut().for_each(|groups| *groups -= 1);
            }
            let moved = std::mem::take(&mut self.members[own]);
            moved.iter().for_each(|&member| self.group[member] = g);
            let all = &mut self.members[g];
            all.extend(moved);
            all.sort_unstable();
            let range = inside(all);
            self.across[range].iter_mut().for_each(|groups| *groups += 1);
            self.shapes[g] = Some(shape);
        }
    }
}

/// Marks instructions whose results are summed in memory order.
fn ordered<B: Backend>(instructions: &[Instruction<B>], values: usize) -> Vec<bool> {
    let mut taken = vec![false; values];
    let mut all = vec![false; instructions.len()];
    for (i, one) in instructions.iter().enumerate().rev() {
        let has = |parts: &[&str]| {
            one.elementwise.is_none() && parts.iter().any(|part| one.name.contains(part))
        };
        let is_reduction = matches!(one.elementwise, Some(Elementwise::Reduce(..)));
        let is_sum = is_reduction || has(&["sum", "mean", "prod"]);
        let is_product = || has(&["matmul", "conv", "linear"]);
        all[i] = is_sum || (one.first..one.first + one.results).any(|value| taken[value]);
        if is_sum || (all[i] && !is_product()) {
            one.operands.iter().for_each(|&value| taken[value] = true);
        }
    }
    all
}

/// Range of positions spanned by a group: after its first member, up to its last.
fn inside(members: &[usize]) -> std::ops::Range<usize> {
    match (members.first(), members.last()) {
        (Some(first), Some(last)) => first + 1..last + 1,
        _ => 0..0,
    }
}

/// Common shape of two groups: equal shapes, or one of them has a scalar per row of the other.
fn common(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let (Some((m, a_rows)), Some((n, b_rows))) = (a.split_last(), b.split_last()) else {
        return None;
    };
    let mixed = m == n || (*m.min(n) == 1 && *m.max(n) <= LONGEST);
    (a_rows == b_rows && mixed).then(|| if m > n { a.to_vec() } else { b.to_vec() })
}

/// Converts instructions to units in a valid execution order, with elementwise groups fused. `repeated` are the constants
/// with one element that is repeated along all axes.
pub(crate) fn fuse<B: Backend>(
    instructions: Vec<Instruction<B>>,
    metas: &[TensorType],
    outputs: &[usize],
    repeated: &HashSet<usize>,
    fused: bool,
) -> Vec<Unit<B>> {
    let count = instructions.len();
    let mut producer = vec![None; metas.len()];
    let mut before = vec![None; count];
    let mut previous = None;
    for (i, one) in instructions.iter().enumerate() {
        producer[one.first..one.first + one.results].fill(Some(i));
        if !one.pure {
            before[i] = previous.replace(i);
        }
    }
    let mut all = Grouping {
        instructions: &instructions,
        metas,
        producer,
        before,
        group: (0..count).collect(),
        members: (0..count).map(|i| vec![i]).collect(),
        shapes: vec![None; count],
        ordered: ordered(&instructions, metas.len()),
        across: vec![0; count],
        visited: vec![0; count],
        searches: 0,
        repeated,
    };
    if fused && is_engine::<B>() {
        (0..count).for_each(|i| all.join(i));
    }

    // The group that uses each value; `OUTSIDE` for outputs and values that several groups use.
    const OUTSIDE: usize = usize::MAX;
    let mut user: Vec<Option<usize>> = vec![None; metas.len()];
    for (one, &g) in instructions.iter().zip(&all.group) {
        for &value in &one.operands {
            user[value] = Some(if user[value].is_none_or(|user| user == g) { g } else { OUTSIDE });
        }
    }
    outputs.iter().for_each(|&value| user[value] = Some(OUTSIDE));
    let mut units = Vec::new();
    let groups = all.members.iter().filter(|members| members.len() > 1).count();
    let mut fused_before = 0;
    let mut done = vec![false; count];
    let mut waiting: Vec<usize> = (0..count).filter(|&g| !all.members[g].is_empty()).collect();
    waiting.sort_by_key(|&g| all.members[g].last().copied());
    while !waiting.is_empty() {
        let left = waiting.len();
        waiting.retain(|&g| {
            let members = &all.members[g];
            let ready = members
                .iter()
                .flat_map(|&i| all.sources(i))
                .all(|source| done[source] || all.group[source] == g);
            if !ready {
                return true;
            }
            members.iter().for_each(|&i| done[i] = true);
            let leaves = |value: usize| user[value].is_some_and(|user| user != g);
            units.push(unit(&all, g, [fused_before, groups], leaves));
            fused_before += usize::from(members.len() > 1);
            false
        });
        assert!(waiting.len() < left, "groups are acyclic");
    }
    units
}

/// `place` is the index of the unit among the fused ones, and their number.
#[cfg_attr(not(all(feature = "jit", target_arch = "x86_64")), allow(unused_variables))]
fn unit<B: Backend>(
    all: &Grouping<'_, B>,
    g: usize,
    place: [usize; 2],
    leaves: impl Fn(usize) -> bool,
) -> Unit<B> {
    let members = &all.members[g];
    let each = members.iter().map(|&i| &all.instructions[i]);
    if let (1, Some(one)) = (members.len(), each.clone().next()) {
        return Unit {
            name: one.name,
            step: one.step.clone(),
            operands: one.operands.clone(),
            results: (one.first..one.first + one.results).collect(),
            members: None,
        };
    }
    let shape = all.shapes[g].clone().unwrap_or_default();
    let plan = FusionPlan::new(each.clone(), all.metas, &shape, &leaves);
    let operands: Vec<usize> = plan.inputs.iter().map(|port| port.value).collect();
    let results = plan.outputs.iter().map(|port| port.value).collect();
    let dtype = match all.dtype(g) {
        DType::F64 => t4a_tensor::DType::F64,
        _ => t4a_tensor::DType::F32,
    };
    let shapes = plan.inputs.iter().map(|port| all.metas[port.value].shape.clone()).collect();
    let sums = members.iter().any(|&i| all.ordered[i]);
    let alike = !sums_repeated(all, members, leaves);
    let row_major =
        operands.iter().map(|value| sums && !(alike && all.repeated.contains(value))).collect();
    let members: Arc<[Instruction<B>]> = each.cloned().collect();
    let step = Arc::new(FusedGroup {
        plan,
        dtype,
        shapes,
        members: members.clone(),
        row_major,
        #[cfg(all(feature = "jit", target_arch = "x86_64"))]
        code: GroupCode::new(place[0], place[1]),
    });
    Unit { name: "fused", step, operands, results, members: Some(members) }
}

/// True if a sum adds a value that is repeated along an axis because all operands of its instruction are. Without fusion
/// the engine stores such a value once, and its sum adds in another order than that of full rows.
fn sums_repeated<B: Backend>(
    all: &Grouping<'_, B>,
    members: &[usize],
    leaves: impl Fn(usize) -> bool,
) -> bool {
    let mut axes: HashMap<usize, Vec<usize>> = HashMap::new();
    members.iter().any(|&i| {
        let one = &all.instructions[i];
        let shape = &all.metas[one.first].shape;
        // True if the value has one element along an axis of the result, or repeats one.
        let repeats = |value: usize, axis: usize| {
            all.metas[value].shape[axis] < shape[axis]
                || all.repeated.contains(&value)
                || axes.get(&value).is_some_and(|axes| axes.contains(&axis))
        };
        if let Some(Elementwise::Reduce(_, axis)) = one.elementwise {
            let operand = one.operands[0];
            return axes.get(&operand).is_some_and(|axes| !axes.is_empty())
                || all.repeated.contains(&operand) && all.metas[operand].shape[axis] > 1;
        }
        let along = (0..shape.len()).filter(|&axis| {
            shape[axis] > 1 && one.operands.iter().all(|&value| repeats(value, axis))
        });
        let along: Vec<usize> = along.collect();
        let summed = !along.is_empty() && all.ordered[i] && leaves(one.first);
        axes.insert(one.first, along);
        summed
    })
}
