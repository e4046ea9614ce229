//! Machine code for steps of few values: the operations of the kernels in the same order, with intermediate values in
//! registers instead of the arena.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use burn_backend::Backend;
use t4a_jit::{Function, MachineCode, StepProgram, Stream, ValueDef, ValueId};

use super::build::{ScanInstruction, ScanProgram};
use super::kernel::{ArenaInst, KernelKind, apply};
use super::products::Sizes;
use crate::fuse::kernel::FusedFloat;
use crate::fuse::{BinaryOp, Elementwise, UnaryOp};

/// Minimum number of steps for machine code. The choice depends on the program and this number only, so that all calls have
/// bitwise equal results.
const STEPS: usize = 500;

/// Maximum number of values of a program, and the maximum average cost per kernel: kernels are faster above it.
const NUMBERS: usize = 4096;
const PER_LINE: usize = 24;

/// Cost of a function call, in units of one arithmetic operation.
const CALL: usize = 8;

/// Machine code of the steps, and the functions that it calls.
pub(super) struct Machine<T> {
    pub(super) code: MachineCode<T>,
    _functions: Vec<Arc<Elementwise>>,
}

impl<T: FusedFloat> Machine<T> {
    /// Compiles the steps; `None` if kernels are faster or the machine is not supported.
    pub(super) fn new<B: Backend>(l: &ScanProgram<T, B>) -> Option<Self> {
        if l.length < STEPS {
            return None;
        }
        let Lowered { program, functions } = Lower::new(l).run()?;
        Some(Self { code: MachineCode::new(&program).ok()?, _functions: functions })
    }
}

/// Applies an elementwise function to scalars.
///
/// # Safety
/// `data` points to an [`Elementwise`].
unsafe extern "C" fn call<T: FusedFloat>(data: *const u8, a: T, b: T, c: T) -> T {
    // SAFETY: as the caller promises.
    let what = unsafe { *data.cast::<Elementwise>() };
    let mut out = [T::ZERO];
    apply(what, [&[a], &[b], &[c]], &mut out);
    out[0]
}

struct Lower<'a, T, B: Backend> {
    of: &'a ScanProgram<T, B>,
    program: StepProgram<T>,
    /// Current value of each element of the arena, by offset.
    state: HashMap<usize, ValueId>,
    functions: Vec<Arc<Elementwise>>,
    /// Ranges of the carries in the arena.
    carries: Vec<Range<usize>>,
    cost: usize,
}

struct Lowered<T> {
    program: StepProgram<T>,
    functions: Vec<Arc<Elementwise>>,
}

impl<'a, T: FusedFloat, B: Backend> Lower<'a, T, B> {
    fn new(of: &'a ScanProgram<T, B>) -> Self {
        let [consts, carries, _] = of.counts;
        let carries =
            of.inputs[consts..consts + carries].iter().map(|x| x.at..x.at + x.n).collect();
        let (program, state, functions) = (StepProgram::default(), HashMap::new(), Vec::new());
        Self { of, program, state, functions, carries, cost: 0 }
    }

    /// Lowers a step; `None` if kernels are faster.
    fn run(mut self) -> Option<Lowered<T>> {
        let [consts, carries, xs] = self.of.counts;
        let given = self.of.given.iter().map(|(_, at, with)| (*at, with.sizes.m * with.sizes.n));
        let xs = self.of.inputs[consts + carries..][..xs].iter().map(|x| (x.at, x.n));
        for (stream, (at, elements)) in xs.chain(given).enumerate() {
            self.program.inputs.push(self.stream(elements));
            for element in 0..elements {
                let id = self.program.push(ValueDef::Input { stream, element });
                self.state.insert(at + element, id);
            }
            self.check(0)?;
        }
        let mut lines = 0;
        for line in &self.of.step {
            let ScanInstruction::Kernel(inst) = line else { return None };
            self.line(inst)?;
            lines += 1;
            self.check(0)?;
        }
        if self.cost > PER_LINE * lines {
            return None;
        }
        let ys = self.of.ys.iter().map(|y| (y.range.at, y.range.n));
        let sums = self.of.sums.iter().flat_map(|x| [(x.a, x.k * x.m), (x.b, x.k * x.n)]);
        for (at, n) in ys.chain(sums) {
            let ids = (at..at + n).map(|at| self.read(at)).collect();
            let stream = self.stream(n);
            self.program.outputs.push((stream, ids));
        }
        let mut next: Vec<(usize, ValueId)> =
            self.carries.clone().into_iter().flatten().map(|at| (at, self.read(at))).collect();
        for &(from, to, n) in &self.of.moves {
            for j in 0..n {
                let id = self.read(from + j);
                next.iter_mut().filter(|(at, _)| *at == to + j).for_each(|(_, next)| *next = id);
            }
        }
        self.program.carries = next;
        Some(Lowered { program: self.program, functions: self.functions })
    }

    fn check(&self, more: usize) -> Option<()> {
        (self.program.len() + more <= NUMBERS).then_some(())
    }

    fn stream(&self, elements: usize) -> Stream {
        Stream { elements, reverse: self.of.reverse }
    }

    fn read(&mut self, at: usize) -> ValueId {
        if let Some(&id) = self.state.get(&at) {
            return id;
        }
        let is_carry = self.carries.iter().any(|range| range.contains(&at));
        let id =
            self.program.push(if is_carry { ValueDef::Carry(at) } else { ValueDef::Memory(at) });
        self.state.insert(at, id);
        id
    }

    fn push(&mut self, number: ValueDef<T>) -> ValueId {
        self.cost += 1;
        self.program.push(number)
    }

    fn line(&mut self, i: &ArenaInst<T>) -> Option<()> {
        let made: Vec<ValueId> = match i.kind {
            KernelKind::Gather => i.table.iter().map(|&from| self.read(from)).collect(),
            KernelKind::Copy => (0..i.n).map(|j| self.read(i.a + j)).collect(),
            KernelKind::Sum => self.sum(i)?,
            KernelKind::Product => self.product(i)?,
            KernelKind::Each(one) => self.each(i, one)?,
        };
        for (j, id) in made.into_iter().enumerate() {
            self.state.insert(i.out + j, id);
        }
        Some(())
    }

    /// Sum in the order of the kernel [`sum`](super::kernel::sum).
    fn sum(&mut self, i: &ArenaInst<T>) -> Option<Vec<ValueId>> {
        self.check(i.k + i.n)?;
        let terms = i.k / i.n.max(1);
        let over = self.program.push(ValueDef::Constant(i.scalar));
        let one = |j: usize| {
            let first = i.a + j / i.inner * i.inner * terms + j % i.inner;
            let mut total = self.read(first);
            for t in 1..terms {
                let term = self.read(first + t * i.inner);
                total = self.push(ValueDef::Add([total, term]));
            }
            if i.scalar == T::ONE { total } else { self.push(ValueDef::Div([total, over])) }
        };
        Some((0..i.n).map(one).collect())
    }

    /// Matrix product with sums in ascending order of k, as in the kernels with sizes known at compile time.
    fn product(&mut self, i: &ArenaInst<T>) -> Option<Vec<ValueId>> {
        let Sizes { batch, m, k, n, steps, transposed } = i.sizes;
        self.check(2 * batch * m * k * n)?;
        let [row, column] = if transposed { [1, k] } else { [n, 1] };
        let mut all = Vec::new();
        for t in 0..batch {
            for r in 0..m {
                for c in 0..n {
                    let mut total = None;
                    for l in 0..k {
                        let a = self.read(i.a + t * steps[0] + r * k + l);
                        let b = self.read(i.b + t * steps[1] + l * row + c * column);
                        let term = self.push(ValueDef::Mul([a, b]));
                        total = Some(match total {
                            Some(total) => self.push(ValueDef::Add([term, total])),
                            None => term,
                        });
                    }
                    all.push(total?);
                }
            }
        }
        Some(all)
    }

    fn each(&mut self, i: &ArenaInst<T>, one: [bool; 2]) -> Option<Vec<ValueId>> {
        let what = i.what?;
        self.check(2 * i.n)?;
        let operands = match what {
            Elementwise::Select => 3,
            Elementwise::Binary(_) | Elementwise::Compare(_) | Elementwise::Fill(_) => 2,
            _ => 1,
        };
        let direct = matches!(
            what,
            Elementwise::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sqrt)
                | Elementwise::Binary(
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div
                )
                | Elementwise::Scalar(
                    BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div,
                    _
                )
                | Elementwise::Indicator
        );
        let function = (!direct).then(|| {
            self.functions.push(Arc::new(what));
            let data: *const Elementwise = &raw const **self.functions.last()?;
            // SAFETY: `Machine` owns the functions as long as the code, and `apply` does not unwind.
            Some(unsafe { Function::new(call::<T>, data.cast()) })
        });
        let mut all = Vec::new();
        for j in 0..i.n {
            let at = |start: usize, one: bool| if one { start } else { start + j };
            let a = self.read(at(i.a, one[0]));
            let b = if operands > 1 { self.read(at(i.b, one[1])) } else { a };
            let c = if operands > 2 { self.read(i.c + j) } else { a };
            let number = match what {
                Elementwise::Indicator => {
                    all.push(a);
                    continue;
                }
                Elementwise::Unary(UnaryOp::Neg) => ValueDef::Neg(a),
                Elementwise::Unary(UnaryOp::Abs) => ValueDef::Abs(a),
                Elementwise::Unary(UnaryOp::Sqrt) => ValueDef::Sqrt(a),
                Elementwise::Binary(f) if direct => of_two(f, a, b)?,
                Elementwise::Scalar(f, y) if direct => {
                    let y = self.program.push(ValueDef::Constant(T::from_f64(y)));
                    of_two(f, a, y)?
                }
                _ => {
                    self.cost += CALL;
                    ValueDef::Call(function??, [a, b, c])
                }
            };
            all.push(self.push(number));
        }
        Some(all)
    }
}

fn of_two<T>(f: BinaryOp, a: ValueId, b: ValueId) -> Option<ValueDef<T>> {
    Some(match f {
        BinaryOp::Add => ValueDef::Add([a, b]),
        BinaryOp::Sub => ValueDef::Sub([a, b]),
        BinaryOp::Mul => ValueDef::Mul([a, b]),
        BinaryOp::Div => ValueDef::Div([a, b]),
        _ => return None,
    })
}
