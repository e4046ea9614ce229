//! Cheap instructions of a plan, as chains over an accumulator.
//!
//! Instructions are ordered so that as many as possible use the result of the previous one. Such a result is written to
//! memory only if another instruction or an output needs it.

use std::ops::Range;

use super::machine::Opcode;
use super::plan::{Arg, Do, FusedOp};
use super::{Elementwise, ReduceOp};

/// Location of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandLocation {
    /// No operand besides the accumulator.
    Nowhere,
    Vector(Arg),
    /// One scalar per row.
    Row(Arg),
    Output(usize),
    /// Index into the constants of the plan.
    Number(usize),
    /// Partial sums of the row.
    Sum(usize),
}

/// Accumulator instruction with the location of its operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainStep {
    pub(crate) code: Opcode,
    pub(crate) at: OperandLocation,
}

/// A reduction of each row, computed by a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowReduction {
    pub(crate) reduction: ReduceOp,
    pub(crate) register: usize,
    pub(crate) output: Option<usize>,
}

/// Instructions executed in sequence for one accumulator after another.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// Number of steps in the preceding chains.
    pub(crate) first: usize,
    pub(crate) steps: Vec<ChainStep>,
    /// True if operands or results include per-row scalars, so that rows are executed one by one.
    pub(crate) by_row: bool,
    pub(crate) totals: Vec<RowReduction>,
    /// Number of distinct operands, and the index of the operand of each step among them.
    pub(crate) copies: usize,
    pub(crate) copy_of: Vec<usize>,
}

impl Chain {
    fn new(first: usize, steps: Vec<ChainStep>, by_row: bool, totals: Vec<RowReduction>) -> Self {
        let mut places: Vec<OperandLocation> = Vec::new();
        let copy = |step: &ChainStep| {
            let known = places.iter().position(|place| *place == step.at);
            known.unwrap_or_else(|| {
                places.push(step.at);
                places.len() - 1
            })
        };
        let copy_of = steps.iter().map(copy).collect();
        Self { first, steps, by_row, totals, copies: places.len(), copy_of }
    }

    /// Range of its steps among those of all chains.
    pub(crate) fn range(&self) -> Range<usize> {
        self.first..self.first + self.steps.len()
    }
}

/// Stage of a plan: a chain, or a single instruction on registers.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    Chain(Chain),
    FusedOp(FusedOp),
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    Code(std::sync::Arc<super::code::CodedPart>),
}

impl Stage {
    /// True for machine code.
    pub(crate) fn is_code(&self) -> bool {
        !matches!(self, Self::Chain(_) | Self::FusedOp(_))
    }

    /// Inputs that are read as blocks, not row by row.
    pub(crate) fn whole(&self) -> Vec<usize> {
        let input = |arg: &Arg| if let Arg::Input(i) = arg { Some(*i) } else { None };
        match self {
            Self::FusedOp(op) => op.args.iter().filter_map(input).collect(),
            Self::Chain(chain) if chain.by_row => Vec::new(),
            #[cfg(all(feature = "jit", target_arch = "x86_64"))]
            Self::Code(_) => unreachable!("machine code follows the plan"),
            Self::Chain(chain) => {
                let args = chain.steps.iter().filter_map(|step| match &step.at {
                    OperandLocation::Vector(arg) => input(arg),
                    _ => None,
                });
                args.collect()
            }
        }
    }
}

/// Accumulator form of an instruction.
enum AccumulatorForm {
    /// `f(acc)`, with up to two scalar constants.
    Map(Opcode, Vec<f64>),
    /// `acc ∘ operand`, and `operand ∘ acc` if that has a code.
    Zip(Opcode, Option<Opcode>),
    /// Reduction of the row; the accumulator is unchanged.
    Total(ReduceOp),
}

/// Accumulator form of an instruction; `None` if it is not cheap.
fn form(op: &FusedOp) -> Option<AccumulatorForm> {
    if let Do::Total(f) = op.what {
        return Some(AccumulatorForm::Total(f));
    }
    if op.row || op.flag {
        return None;
    }
    let what = match op.what {
        Do::WithRow(f, flipped) => {
            return Some(AccumulatorForm::Zip(Opcode::zip(f, true, flipped)?, None));
        }
        Do::Spread | Do::Total(_) => return None,
        Do::Each(what) => what,
    };
    Some(match what {
        Elementwise::Unary(f) => AccumulatorForm::Map(Opcode::map(f)?, Vec::new()),
        Elementwise::Scalar(f, y) => AccumulatorForm::Map(Opcode::zip(f, true, false)?, vec![y]),
        Elementwise::Clamp(low, high) => AccumulatorForm::Map(Opcode::Clamp, vec![low, high]),
        Elementwise::Leaky(slope) => AccumulatorForm::Map(Opcode::Leaky, vec![slope]),
        Elementwise::Binary(f) => {
            AccumulatorForm::Zip(Opcode::zip(f, false, false)?, Some(Opcode::zip(f, false, true)?))
        }
        _ => return None,
    })
}

/// Reorders instructions into long chains. Results are identified by the index of their instruction, before and after.
pub(crate) fn arrange(ops: Vec<FusedOp>) -> Vec<FusedOp> {
    let light: Vec<bool> = ops.iter().map(|op| form(op).is_some()).collect();
    let count = ops.len();
    let mut number = vec![usize::MAX; count];
    let mut left: Vec<Option<FusedOp>> = ops.into_iter().map(Some).collect();
    let mut all: Vec<FusedOp> = Vec::with_capacity(count);
    let (mut previous, mut first) = (None, 0);
    while all.len() < count {
        while left[first].is_none() {
            first += 1;
        }
        // Among the instructions whose operands are available, in order of preference: a reduction of the accumulator,
        // which leaves it unchanged; one that uses the accumulator; a cheap one; the first one.
        let mut best: Option<(u8, usize)> = None;
        for (at, op) in left.iter().enumerate().skip(first) {
            let Some(op) = op else { continue };
            let made = |arg: &Arg| !matches!(arg, Arg::Register(v) if number[*v] == usize::MAX);
            if !op.args.iter().all(made) {
                continue;
            }
            let takes = previous.is_some_and(|last| op.args.contains(&last));
            let stays = matches!(op.what, Do::Total(_));
            let rank = u8::from(light[at]) * (1 + u8::from(takes) * (1 + u8::from(stays)));
            if best.is_none_or(|(most, _)| rank > most) {
                best = Some((rank, at));
            }
        }
        let Some((_, at)) = best else { unreachable!("instructions are acyclic") };
        let Some(mut op) = left[at].take() else { unreachable!("instructions run once") };
        previous = if light[at] { holds(&op, at) } else { None };
        number[at] = all.len();
        op.out = all.len();
        for arg in &mut op.args {
            if let Arg::Register(v) = arg {
                *v = number[*v];
            }
        }
        all.push(op);
    }
    all
}

/// Partition of the instructions into chains and single ones, and the results that need a register.
pub(crate) struct Chains {
    /// Ranges of instructions; true for a chain, false for a single instruction.
    pub(crate) parts: Vec<(Range<usize>, bool)>,
    /// True if a result is read from its register.
    pub(crate) kept: Vec<bool>,
}

impl Chains {
    pub(crate) fn new(ops: &[FusedOp]) -> Self {
        let light: Vec<bool> = ops.iter().map(|op| form(op).is_some()).collect();
        let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
        for (at, &light) in light.iter().enumerate() {
            // A row reduction is available only after the row is complete.
            let waits = |range: &Range<usize>| {
                ops[at].args.iter().any(|arg| match *arg {
                    Arg::Register(v) => range.contains(&v) && ops[v].row,
                    Arg::Input(_) => false,
                })
            };
            match parts.last_mut() {
                Some((range, true)) if light && !waits(range) => range.end = at + 1,
                _ => parts.push((at..at + 1, light)),
            }
        }
        let mut kept: Vec<bool> =
            ops.iter().zip(&light).map(|(op, light)| !light || op.row).collect();
        for (range, chain) in &parts {
            let mut acc = None;
            for at in range.clone() {
                let taken = if *chain { taken(&ops[at], acc) } else { None };
                for (k, arg) in ops[at].args.iter().enumerate() {
                    // A chain reads an output value from the output buffer.
                    if let Arg::Register(v) = *arg
                        && taken != Some(k)
                        && !(*chain && !ops[at].is_of_row(k) && ops[v].store.is_some())
                    {
                        kept[v] = true;
                    }
                }
                acc = holds(&ops[at], at);
            }
        }
        Self { parts, kept }
    }
}

/// Value in the accumulator after instruction `at`.
fn holds(op: &FusedOp, at: usize) -> Option<Arg> {
    match op.what {
        Do::Total(_) => op.args.first().copied(),
        _ => Some(Arg::Register(at)),
    }
}

/// Index of the operand that is in the accumulator, if any.
fn taken(op: &FusedOp, acc: Option<Arg>) -> Option<usize> {
    let acc = acc?;
    match (form(op)?, op.args.as_slice()) {
        (_, [x, ..]) if *x == acc => Some(0),
        (AccumulatorForm::Zip(_, Some(_)), [_, y]) if *y == acc => Some(1),
        _ => None,
    }
}

/// Builds the chain of these instructions; `first` is the number of steps in the preceding chains. `register` gives the
/// register of each result that has one; constants are appended to `numbers`.
pub(crate) fn chain(
    ops: &[FusedOp],
    range: Range<usize>,
    register: &[Option<usize>],
    numbers: &mut Vec<f64>,
    first: usize,
) -> Chain {
    let mut steps = Vec::new();
    let (mut by_row, mut totals, mut acc) = (false, Vec::new(), None);
    let vector = |arg: Arg| match arg {
        Arg::Register(v) => match (register[v], ops[v].store) {
            (_, Some(output)) if is_light(&ops[v]) => OperandLocation::Output(output),
            (Some(r), _) => OperandLocation::Vector(Arg::Register(r)),
            _ => unreachable!("what is read has been written"),
        },
        input => OperandLocation::Vector(input),
    };
    for at in range.clone() {
        let op = &ops[at];
        let Some(form) = form(op) else { unreachable!("chains are light") };
        let taken = taken(op, acc);
        acc = holds(&ops[at], at);
        if taken.is_none() {
            steps.push(ChainStep { code: Opcode::Load, at: vector(op.args[0]) });
        }
        match form {
            AccumulatorForm::Total(reduction) => {
                by_row = true;
                steps.push(ChainStep { code: Opcode::Sum, at: OperandLocation::Sum(totals.len()) });
                let register =
                    register[at].unwrap_or_else(|| unreachable!("numbers of rows are kept"));
                totals.push(RowReduction { reduction, register, output: op.store });
                continue;
            }
            AccumulatorForm::Map(code, of) => {
                let place = if of.is_empty() {
                    OperandLocation::Nowhere
                } else {
                    OperandLocation::Number(numbers.len())
                };
                numbers.extend(of);
                steps.push(ChainStep { code, at: place });
            }
            AccumulatorForm::Zip(code, flipped) => {
                let step = match (taken, flipped) {
                    (Some(1), Some(flipped)) => ChainStep { code: flipped, at: vector(op.args[0]) },
                    (_, Some(_)) => ChainStep { code, at: vector(op.args[1]) },
                    (_, None) => {
                        by_row = true;
                        let row = match op.args[1] {
                            Arg::Register(v) => Arg::Register(
                                register[v].unwrap_or_else(|| unreachable!("rows are in memory")),
                            ),
                            input => input,
                        };
                        ChainStep { code, at: OperandLocation::Row(row) }
                    }
                };
                steps.push(step);
            }
        }
        if let Some(output) = op.store {
            steps.push(ChainStep { code: Opcode::Store, at: OperandLocation::Output(output) });
        }
        if let Some(r) = register[at] {
            steps.push(ChainStep {
                code: Opcode::Store,
                at: OperandLocation::Vector(Arg::Register(r)),
            });
        }
    }
    Chain::new(first, steps, by_row, totals)
}

fn is_light(op: &FusedOp) -> bool {
    form(op).is_some()
}
