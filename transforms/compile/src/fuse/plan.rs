//! Execution plan of a group: instructions over registers.

use std::collections::HashMap;

use t4a_tensor::Layout;

use super::chain::{Chains, Stage, arrange, chain};
use super::machine::Opcode;
use super::{BinaryOp, Elementwise, ReduceOp};
use crate::recording::Instruction;
use crate::tensor::TensorType;

/// Location of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Input(usize),
    Register(usize),
}

/// Operation of a plan instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Do {
    Each(Elementwise),
    /// Combines every element with the scalar of its row; the scalar is the first operand if true.
    WithRow(BinaryOp, bool),
    /// Broadcasts the scalar of each row along the row.
    Spread,
    /// Sum or mean of a row whose length is a multiple of the accumulator.
    Total(ReduceOp),
}

/// True if rows consist of full accumulators.
fn is_whole(n: usize) -> bool {
    n > 0 && n.is_multiple_of(128)
}

/// True if each row can be a chain execution of its own: it consists of full accumulators, or is so long that the cost
/// of the partial one is negligible.
pub(super) fn is_long(n: usize) -> bool {
    n >= 512 || is_whole(n)
}

/// Instruction of a plan. Float and boolean values have separate register files.
#[derive(Clone, Debug)]
pub(crate) struct FusedOp {
    pub(crate) what: Do,
    pub(crate) args: Vec<Arg>,
    pub(crate) out: usize,
    /// True if the result is one scalar per row.
    pub(crate) row: bool,
    /// True if the result is boolean.
    pub(crate) flag: bool,
    /// Output index, if the result is also an output.
    pub(crate) store: Option<usize>,
}

impl FusedOp {
    /// True if operand `k` is boolean.
    pub(super) fn takes_flag(&self, k: usize) -> bool {
        match self.what {
            Do::Each(what) => what.takes_flag(k),
            Do::WithRow(..) | Do::Total(_) => false,
            Do::Spread => self.flag,
        }
    }

    /// True if operand `k` is a per-row scalar that is combined with or broadcast to full rows.
    pub(crate) fn is_of_row(&self, k: usize) -> bool {
        match self.what {
            Do::WithRow(..) => k == 1,
            Do::Spread => true,
            Do::Each(_) | Do::Total(_) => false,
        }
    }
}

/// An input or an output of the group.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// Index of the value in the program.
    pub(crate) value: usize,
    pub(crate) flag: bool,
    pub(crate) row: bool,
    /// Shape of the level: `[…, n]` or `[…, 1]`.
    pub(crate) shape: Vec<usize>,
    /// True if all instructions that read it execute the rows one by one.
    pub(crate) by_row: bool,
    /// Layout of an output.
    pub(crate) layout: Option<Layout>,
}

/// Execution plan of a group.
#[derive(Clone, Debug)]
pub(crate) struct FusionPlan {
    /// Number of rows, and elements per row; one element per row if no instruction depends on rows.
    pub(crate) rows: usize,
    pub(crate) n: usize,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) stages: Vec<Stage>,
    /// Scalar constants of the chains.
    pub(crate) numbers: Vec<f64>,
    /// Numbers of float and boolean registers.
    pub(crate) registers: [usize; 2],
    /// Work per element, in units of one addition.
    pub(crate) cost: usize,
    /// Instructions before their partition into stages; results are identified by the index of their instruction.
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    pub(super) ops: Vec<FusedOp>,
}

#[derive(Clone, Copy)]
struct KnownValue {
    arg: Arg,
    row: bool,
}

struct PlanBuilder<'a> {
    metas: &'a [TensorType],
    shape: &'a [usize],
    inputs: Vec<Port>,
    ops: Vec<FusedOp>,
    known: HashMap<usize, KnownValue>,
    spread: HashMap<usize, Arg>,
}

impl FusionPlan {
    /// Plans these instructions, which are in execution order. `shape` is the shape with the longest rows; `leaves`
    /// returns true for values used outside of the group.
    pub(crate) fn new<'a, B: burn_backend::Backend>(
        members: impl Iterator<Item = &'a Instruction<B>>,
        metas: &[TensorType],
        shape: &[usize],
        leaves: impl Fn(usize) -> bool,
    ) -> Self {
        let mut b = PlanBuilder {
            metas,
            shape,
            inputs: Vec::new(),
            ops: Vec::new(),
            known: HashMap::new(),
            spread: HashMap::new(),
        };
        let mut outputs = Vec::new();
        let mut cost = 0;
        for member in members {
            let Some(what) = member.elementwise else { continue };
            cost += what.cost();
            b.member(what, &member.operands, member.first);
            if leaves(member.first)
                && let Some(op) = b.ops.last_mut()
            {
                op.store = Some(outputs.len());
                let mut port = b.port(member.first, what.gives_flag());
                // Of the largest elements, so that booleans have it too.
                port.layout = Layout::contiguous("fused", &port.shape, size_of::<f64>()).ok();
                outputs.push(port);
            }
        }
        let PlanBuilder { mut inputs, ops, .. } = b;
        let n = shape.last().copied().unwrap_or(1);
        let elements: usize = shape.iter().product();
        let knows_rows = ops.iter().any(|op| op.row || !matches!(op.what, Do::Each(_)))
            || inputs.iter().any(|input| input.row);
        let n = if knows_rows { n } else { 1 };
        let ops = arrange(ops);
        let chains = Chains::new(&ops);
        let mut numbers = Vec::new();
        let mut register = vec![None; ops.len()];
        let registers = [false, true].map(|flag| allocate(&ops, &chains, flag, &mut register));
        let stages = stages(&ops, &chains, &register, &mut numbers);
        for i in stages.iter().flat_map(Stage::whole) {
            inputs[i].by_row = false;
        }
        Self {
            rows: elements / n.max(1),
            n,
            inputs,
            outputs,
            stages,
            numbers,
            registers,
            cost,
            #[cfg(all(feature = "jit", target_arch = "x86_64"))]
            ops,
        }
    }
}

impl PlanBuilder<'_> {
    fn is_row(&self, value: usize) -> bool {
        let last = |shape: &[usize]| shape.last().copied().unwrap_or(1);
        last(&self.metas[value].shape) == 1 && last(self.shape) != 1
    }

    /// [`is_row`](Self::is_row) of an operand, except that a single scalar for all rows (such as a learning rate) is
    /// not a per-row scalar.
    fn is_of_rows(&self, value: usize) -> bool {
        let known = self.known.get(&value).map(|known| known.row);
        known.unwrap_or_else(|| {
            self.is_row(value) && self.metas[value].shape.iter().product::<usize>() != 1
        })
    }

    fn port(&self, value: usize, flag: bool) -> Port {
        let row = self.is_of_rows(value);
        let mut shape = self.shape.to_vec();
        if row && let Some(last) = shape.last_mut() {
            *last = 1;
        }
        Port { value, flag, row, shape, by_row: true, layout: None }
    }

    fn value(&mut self, value: usize, flag: bool) -> KnownValue {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        let port = self.port(value, flag);
        let known = KnownValue { arg: Arg::Input(self.inputs.len()), row: port.row };
        self.inputs.push(port);
        self.known.insert(value, known);
        known
    }

    fn member(&mut self, what: Elementwise, operands: &[usize], result: usize) {
        let row = self.is_row(result);
        if !row && self.with_row(what, operands, result) {
            return;
        }
        let mut args = Vec::with_capacity(operands.len());
        for (at, &operand) in operands.iter().enumerate() {
            let flag = what.takes_flag(at);
            let known = self.value(operand, flag);
            args.push(if known.row && !row {
                self.spread(operand, known, flag)
            } else {
                known.arg
            });
        }
        let what = match what {
            Elementwise::Reduce(f, _) if self.shape.last().is_some_and(|&n| is_whole(n)) => {
                Do::Total(f)
            }
            what => Do::Each(what),
        };
        let flag = matches!(what, Do::Each(what) if what.gives_flag());
        let arg = self.push(what, args, row, flag);
        self.known.insert(result, KnownValue { arg, row });
    }

    /// Handles a binary function with one per-row operand, which need not be broadcast into a register.
    fn with_row(&mut self, what: Elementwise, operands: &[usize], result: usize) -> bool {
        let (Elementwise::Binary(f), &[x, y]) = (what, operands) else { return false };
        let long = self.shape.last().is_some_and(|&n| is_long(n));
        if !long || Opcode::zip(f, true, false).is_none() {
            return false;
        }
        let (x, y, flipped) = match [x, y].map(|value| self.is_of_rows(value)) {
            [false, true] => (x, y, false),
            [true, false] => (y, x, true),
            _ => return false,
        };
        let args = [x, y].map(|value| self.value(value, false).arg);
        let arg = self.push(Do::WithRow(f, flipped), args.to_vec(), false, false);
        self.known.insert(result, KnownValue { arg, row: false });
        true
    }

    fn spread(&mut self, value: usize, known: KnownValue, flag: bool) -> Arg {
        if let Some(&arg) = self.spread.get(&value) {
            return arg;
        }
        let arg = self.push(Do::Spread, vec![known.arg], false, flag);
        self.spread.insert(value, arg);
        arg
    }

    /// Initially every instruction has its own register.
    fn push(&mut self, what: Do, args: Vec<Arg>, row: bool, flag: bool) -> Arg {
        let out = self.ops.len();
        self.ops.push(FusedOp { what, args, out, row, flag, store: None });
        Arg::Register(out)
    }
}

/// Register allocation for the kept results of one kind; a register is free after the last use of its value. Returns
/// the number of registers.
fn allocate(ops: &[FusedOp], chains: &Chains, flag: bool, register: &mut [Option<usize>]) -> usize {
    let mut last: Vec<usize> = (0..ops.len()).collect();
    for (range, _) in &chains.parts {
        for at in range.clone() {
            // A chain writes the result of a reduction at the end of each row, even if it is unused.
            if matches!(ops[at].what, Do::Total(_)) {
                last[at] = last[at].max(range.end - 1);
            }
            for (k, arg) in ops[at].args.iter().enumerate() {
                if let Arg::Register(v) = *arg
                    && ops[at].takes_flag(k) == flag
                {
                    // A chain reads the per-row scalars again for every row.
                    let until = if ops[at].is_of_row(k) { range.end - 1 } else { at };
                    last[v] = last[v].max(until);
                }
            }
        }
    }
    let (mut free, mut count) = (Vec::new(), 0);
    let mut ending: Vec<Vec<usize>> = vec![Vec::new(); ops.len()];
    for at in 0..ops.len() {
        if ops[at].flag == flag && chains.kept[at] {
            let r = free.pop().unwrap_or_else(|| {
                count += 1;
                count - 1
            });
            register[at] = Some(r);
            ending[last[at]].push(r);
        }
        free.append(&mut ending[at]);
    }
    count
}

/// Stages of a plan, with allocated registers.
fn stages(
    ops: &[FusedOp],
    chains: &Chains,
    register: &[Option<usize>],
    numbers: &mut Vec<f64>,
) -> Vec<Stage> {
    let kept = |v: usize| register[v].unwrap_or_else(|| unreachable!("what is read is kept"));
    let mut steps = 0;
    let one = |(range, is_chain): &(std::ops::Range<usize>, bool)| {
        if *is_chain {
            let chain = chain(ops, range.clone(), register, numbers, steps);
            steps = chain.range().end;
            return Stage::Chain(chain);
        }
        let mut op = ops[range.start].clone();
        for arg in &mut op.args {
            if let Arg::Register(v) = arg {
                *v = kept(*v);
            }
        }
        op.out = kept(op.out);
        Stage::FusedOp(op)
    };
    chains.parts.iter().map(one).collect()
}
