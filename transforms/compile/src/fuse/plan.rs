//! A group as instructions over registers.

use std::collections::HashMap;

use super::chain::{Chains, Stage, arrange, chain};
use super::machine::Code;
use super::{Binary, Elementwise, Reduction};
use crate::recording::Instruction;
use crate::tensor::Meta;

/// Where an operand lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arg {
    Input(usize),
    Register(usize),
}

/// What an instruction of a plan does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Do {
    Each(Elementwise),
    /// Of every element and the number of its row, which is the first operand if flipped.
    WithRow(Binary, bool),
    /// Repeats the number of a row along it.
    Spread,
    /// The sum or mean of a row of whole accumulators.
    Total(Reduction),
}

/// Rows of whole accumulators.
fn is_whole(n: usize) -> bool {
    n > 0 && n.is_multiple_of(128)
}

/// Rows that are chains of their own: whole ones, or of so many elements that the last accumulator does not
/// count.
fn is_long(n: usize) -> bool {
    n >= 512 || is_whole(n)
}

/// An instruction of a plan. Floats and truth values have registers of their own.
#[derive(Clone, Debug)]
pub(crate) struct FusedOp {
    pub(crate) what: Do,
    pub(crate) args: Vec<Arg>,
    pub(crate) out: usize,
    /// Whether it gives one number per row.
    pub(crate) row: bool,
    /// Whether it gives truth values.
    pub(crate) flag: bool,
    /// The output that it is, too.
    pub(crate) store: Option<usize>,
}

impl FusedOp {
    /// Whether operand `k` is a truth value.
    fn takes_flag(&self, k: usize) -> bool {
        match self.what {
            Do::Each(what) => what.takes_flag(k),
            Do::WithRow(..) | Do::Total(_) => false,
            Do::Spread => self.flag,
        }
    }

    /// Whether operand `k` has a number per row for elements of rows.
    pub(crate) fn is_of_row(&self, k: usize) -> bool {
        match self.what {
            Do::WithRow(..) => k == 1,
            Do::Spread => true,
            Do::Each(_) | Do::Total(_) => false,
        }
    }
}

/// An input or an output.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    /// The value of the program.
    pub(crate) value: usize,
    pub(crate) flag: bool,
    pub(crate) row: bool,
    /// The shape of the level: `[…, n]` or `[…, 1]`.
    pub(crate) shape: Vec<usize>,
    /// Whether all that reads it runs the rows one by one.
    pub(crate) by_row: bool,
}

/// A group over registers.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Rows, and elements of each; one element each if the group knows no rows.
    pub(crate) rows: usize,
    pub(crate) n: usize,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) stages: Vec<Stage>,
    /// What chains have for constants.
    pub(crate) numbers: Vec<f64>,
    /// Registers of floats, of truth values.
    pub(crate) registers: [usize; 2],
    /// Work per element in additions.
    pub(crate) cost: usize,
}

#[derive(Clone, Copy)]
struct Known {
    arg: Arg,
    row: bool,
}

struct Builder<'a> {
    metas: &'a [Meta],
    shape: &'a [usize],
    inputs: Vec<Port>,
    ops: Vec<FusedOp>,
    known: HashMap<usize, Known>,
    spread: HashMap<usize, Arg>,
}

impl Plan {
    /// The plan of these instructions in order. `shape` is that of the longest rows; `leaves` says which
    /// values are used elsewhere.
    pub(crate) fn new<'a, B: burn_backend::Backend>(
        members: impl Iterator<Item = &'a Instruction<B>>,
        metas: &[Meta],
        shape: &[usize],
        leaves: impl Fn(usize) -> bool,
    ) -> Self {
        let mut b = Builder {
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
                let port = b.port(member.first, what.gives_flag());
                outputs.push(port);
            }
        }
        let Builder { mut inputs, ops, .. } = b;
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
        Self { rows: elements / n.max(1), n, inputs, outputs, stages, numbers, registers, cost }
    }
}

impl Builder<'_> {
    fn is_row(&self, value: usize) -> bool {
        let last = |shape: &[usize]| shape.last().copied().unwrap_or(1);
        last(&self.metas[value].shape) == 1 && last(self.shape) != 1
    }

    /// [`is_row`](Self::is_row) of an operand; one number for all rows, as a rate is, is none per row.
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
        Port { value, flag, row, shape, by_row: true }
    }

    fn value(&mut self, value: usize, flag: bool) -> Known {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        let port = self.port(value, flag);
        let known = Known { arg: Arg::Input(self.inputs.len()), row: port.row };
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
        self.known.insert(result, Known { arg, row });
    }

    /// One operand has a number per row, which does not have to be written out.
    fn with_row(&mut self, what: Elementwise, operands: &[usize], result: usize) -> bool {
        let (Elementwise::Binary(f), &[x, y]) = (what, operands) else { return false };
        let long = self.shape.last().is_some_and(|&n| is_long(n));
        if !long || Code::zip(f, true, false).is_none() {
            return false;
        }
        let (x, y, flipped) = match [x, y].map(|value| self.is_of_rows(value)) {
            [false, true] => (x, y, false),
            [true, false] => (y, x, true),
            _ => return false,
        };
        let args = [x, y].map(|value| self.value(value, false).arg);
        let arg = self.push(Do::WithRow(f, flipped), args.to_vec(), false, false);
        self.known.insert(result, Known { arg, row: false });
        true
    }

    fn spread(&mut self, value: usize, known: Known, flag: bool) -> Arg {
        if let Some(&arg) = self.spread.get(&value) {
            return arg;
        }
        let arg = self.push(Do::Spread, vec![known.arg], false, flag);
        self.spread.insert(value, arg);
        arg
    }

    /// Every instruction has a register of its own at first.
    fn push(&mut self, what: Do, args: Vec<Arg>, row: bool, flag: bool) -> Arg {
        let out = self.ops.len();
        self.ops.push(FusedOp { what, args, out, row, flag, store: None });
        Arg::Register(out)
    }
}

/// Gives results of one kind that are kept registers that are free again after the last use; their number.
fn allocate(ops: &[FusedOp], chains: &Chains, flag: bool, register: &mut [Option<usize>]) -> usize {
    let mut last: Vec<usize> = (0..ops.len()).collect();
    for (range, _) in &chains.parts {
        for at in range.clone() {
            // A chain writes the number of a row after the row, used or not.
            if matches!(ops[at].what, Do::Total(_)) {
                last[at] = last[at].max(range.end - 1);
            }
            for (k, arg) in ops[at].args.iter().enumerate() {
                if let Arg::Register(v) = *arg
                    && ops[at].takes_flag(k) == flag
                {
                    // A chain comes back to the numbers of rows with every row.
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

/// The parts of a plan over registers.
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
