//! Order of the instructions of a group, in parts that are executed one after another.

use super::super::plan::{Arg, Do, FusedOp, is_long};
use super::lower::has_code;

/// Execution of a part over the rows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlanPartKind {
    /// Machine code over all elements of the rows.
    Elements,
    /// Machine code over one scalar per row.
    Scalars,
    /// One instruction by a kernel of the engine.
    Kernel,
}

/// Instructions executed together.
#[derive(Clone, Debug)]
pub(super) struct PlanPart {
    pub(super) kind: PlanPartKind,
    pub(super) ops: Vec<usize>,
}

fn kind(op: &FusedOp, n: usize) -> PlanPartKind {
    match op.what {
        Do::Total(_) | Do::WithRow(..) => PlanPartKind::Elements,
        Do::Spread if !op.flag && is_long(n) => PlanPartKind::Elements,
        Do::Each(what) if has_code(what) && op.row => PlanPartKind::Scalars,
        Do::Each(what) if has_code(what) => PlanPartKind::Elements,
        Do::Spread | Do::Each(_) => PlanPartKind::Kernel,
    }
}

/// Partition of the instructions: parts are as long as dependencies permit. Kernels and scalars are executed as early as
/// possible, so that more elements are available to one part.
pub(super) fn partition(ops: &[FusedOp], n: usize) -> Vec<PlanPart> {
    let kinds: Vec<PlanPartKind> = ops.iter().map(|op| kind(op, n)).collect();
    let mut part_of = vec![usize::MAX; ops.len()];
    let mut parts: Vec<PlanPart> = Vec::new();
    let mut left = ops.len();
    while left > 0 {
        let current = parts.len().wrapping_sub(1);
        // A row reduction is available only after the row is complete.
        let ready = |at: usize, part: usize| {
            ops[at].args.iter().all(|arg| match *arg {
                Arg::Register(v) => {
                    let complete = part_of[v] != part || !matches!(ops[v].what, Do::Total(_));
                    part_of[v] != usize::MAX && complete
                }
                Arg::Input(_) => true,
            })
        };
        let next = |kind: PlanPartKind, part: usize| {
            (0..ops.len())
                .find(|&at| part_of[at] == usize::MAX && kinds[at] == kind && ready(at, part))
        };
        let open = parts.last().map(|part| part.kind).filter(|&kind| kind != PlanPartKind::Kernel);
        if let Some(at) = open.and_then(|kind| next(kind, current)) {
            part_of[at] = current;
            parts[current].ops.push(at);
        } else {
            let order = [PlanPartKind::Kernel, PlanPartKind::Scalars, PlanPartKind::Elements];
            let found = order.into_iter().find_map(|kind| Some((kind, next(kind, usize::MAX)?)));
            let Some((kind, at)) = found else { unreachable!("instructions are acyclic") };
            part_of[at] = parts.len();
            parts.push(PlanPart { kind, ops: vec![at] });
        }
        left -= 1;
    }
    parts
}
