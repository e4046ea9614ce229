//! Steps over a few numbers as machine code: the same operations in the same order, with numbers in registers that
//! kernels hand to each other through memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use burn_backend::Backend;
use t4a_jit::{Code, Function, Id, Number, Program, Stream};

use super::build::{Line, Loop};
use super::kernel::{Inst, Kind, apply};
use super::products::Sizes;
use crate::fuse::kernel::Lane;
use crate::fuse::{Binary, Elementwise, Unary};

/// Steps from which a scan is worth its compilation. It depends on nothing else, so that all calls have the same bits.
const STEPS: usize = 500;

/// Numbers of the largest program, and per kernel: where a kernel has more of them, it is faster.
const NUMBERS: usize = 4096;
const PER_LINE: usize = 24;

/// The cost of calling a function, in numbers.
const CALL: usize = 8;

/// The machine code of a loop, and what its calls refer to.
pub(super) struct Machine<T> {
    pub(super) code: Code<T>,
    _functions: Vec<Arc<Elementwise>>,
}

impl<T: Lane> Machine<T> {
    /// The code for the steps of a loop, if that is faster than kernels and there is code for this machine.
    pub(super) fn new<B: Backend>(l: &Loop<T, B>) -> Option<Self> {
        if l.length < STEPS {
            return None;
        }
        let Lowered { program, functions } = Lower::new(l).run()?;
        Some(Self { code: Code::new(&program).ok()?, _functions: functions })
    }
}

/// An elementwise function of single numbers.
///
/// # Safety
/// `data` is the address of the function.
unsafe extern "C" fn call<T: Lane>(data: *const u8, a: T, b: T, c: T) -> T {
    // SAFETY: as the caller promises.
    let what = unsafe { *data.cast::<Elementwise>() };
    let mut out = [T::ZERO];
    apply(what, [&[a], &[b], &[c]], &mut out);
    out[0]
}

struct Lower<'a, T, B: Backend> {
    of: &'a Loop<T, B>,
    program: Program<T>,
    /// The current numbers of elements of the arena.
    state: HashMap<usize, Id>,
    functions: Vec<Arc<Elementwise>>,
    /// The elements of carries.
    carries: Vec<Range<usize>>,
    cost: usize,
}

struct Lowered<T> {
    program: Program<T>,
    functions: Vec<Arc<Elementwise>>,
}

impl<'a, T: Lane, B: Backend> Lower<'a, T, B> {
    fn new(of: &'a Loop<T, B>) -> Self {
        let [consts, carries, _] = of.counts;
        let carries =
            of.inputs[consts..consts + carries].iter().map(|x| x.at..x.at + x.n).collect();
        let (program, state, functions) = (Program::default(), HashMap::new(), Vec::new());
        Self { of, program, state, functions, carries, cost: 0 }
    }

    /// The program of all steps; `None` if kernels are faster.
    fn run(mut self) -> Option<Lowered<T>> {
        let [consts, carries, xs] = self.of.counts;
        let given = self.of.given.iter().map(|(_, at, with)| (*at, with.sizes.m * with.sizes.n));
        let xs = self.of.inputs[consts + carries..][..xs].iter().map(|x| (x.at, x.n));
        for (stream, (at, elements)) in xs.chain(given).enumerate() {
            self.program.inputs.push(self.stream(elements));
            for element in 0..elements {
                let id = self.program.push(Number::Input { stream, element });
                self.state.insert(at + element, id);
            }
            self.check(0)?;
        }
        let mut lines = 0;
        for line in &self.of.step {
            let Line::Kernel(inst) = line else { return None };
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
        let mut next: Vec<(usize, Id)> =
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

    fn read(&mut self, at: usize) -> Id {
        if let Some(&id) = self.state.get(&at) {
            return id;
        }
        let is_carry = self.carries.iter().any(|range| range.contains(&at));
        let id = self.program.push(if is_carry { Number::Carry(at) } else { Number::Memory(at) });
        self.state.insert(at, id);
        id
    }

    fn push(&mut self, number: Number<T>) -> Id {
        self.cost += 1;
        self.program.push(number)
    }

    fn line(&mut self, i: &Inst<T>) -> Option<()> {
        let made: Vec<Id> = match i.kind {
            Kind::Gather => i.table.iter().map(|&from| self.read(from)).collect(),
            Kind::Copy => (0..i.n).map(|j| self.read(i.a + j)).collect(),
            Kind::Sum => self.sum(i)?,
            Kind::Product => self.product(i)?,
            Kind::Each(one) => self.each(i, one)?,
        };
        for (j, id) in made.into_iter().enumerate() {
            self.state.insert(i.out + j, id);
        }
        Some(())
    }

    /// As the kernel `sum`.
    fn sum(&mut self, i: &Inst<T>) -> Option<Vec<Id>> {
        self.check(i.k + i.n)?;
        let terms = i.k / i.n.max(1);
        let over = self.program.push(Number::Constant(i.scalar));
        let one = |j: usize| {
            let first = i.a + j / i.inner * i.inner * terms + j % i.inner;
            let mut total = self.read(first);
            for t in 1..terms {
                let term = self.read(first + t * i.inner);
                total = self.push(Number::Add([total, term]));
            }
            if i.scalar == T::ONE { total } else { self.push(Number::Div([total, over])) }
        };
        Some((0..i.n).map(one).collect())
    }

    /// Sums in the order of k, as those kernels have them whose sizes are known when they are compiled.
    fn product(&mut self, i: &Inst<T>) -> Option<Vec<Id>> {
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
                        let term = self.push(Number::Mul([a, b]));
                        total = Some(match total {
                            Some(total) => self.push(Number::Add([term, total])),
                            None => term,
                        });
                    }
                    all.push(total?);
                }
            }
        }
        Some(all)
    }

    fn each(&mut self, i: &Inst<T>, one: [bool; 2]) -> Option<Vec<Id>> {
        let what = i.what?;
        self.check(2 * i.n)?;
        let operands = match what {
            Elementwise::Select => 3,
            Elementwise::Binary(_) | Elementwise::Compare(_) | Elementwise::Fill(_) => 2,
            _ => 1,
        };
        let direct = matches!(
            what,
            Elementwise::Unary(Unary::Neg | Unary::Abs | Unary::Sqrt)
                | Elementwise::Binary(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div)
                | Elementwise::Scalar(Binary::Add | Binary::Sub | Binary::Mul | Binary::Div, _)
                | Elementwise::Indicator
        );
        let function = (!direct).then(|| {
            self.functions.push(Arc::new(what));
            let data: *const Elementwise = &raw const **self.functions.last()?;
            // SAFETY: they live as long as the code, and the kernels do not unwind.
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
                Elementwise::Unary(Unary::Neg) => Number::Neg(a),
                Elementwise::Unary(Unary::Abs) => Number::Abs(a),
                Elementwise::Unary(Unary::Sqrt) => Number::Sqrt(a),
                Elementwise::Binary(f) if direct => of_two(f, a, b)?,
                Elementwise::Scalar(f, y) if direct => {
                    let y = self.program.push(Number::Constant(T::from_f64(y)));
                    of_two(f, a, y)?
                }
                _ => {
                    self.cost += CALL;
                    Number::Call(function??, [a, b, c])
                }
            };
            all.push(self.push(number));
        }
        Some(all)
    }
}

fn of_two<T>(f: Binary, a: Id, b: Id) -> Option<Number<T>> {
    Some(match f {
        Binary::Add => Number::Add([a, b]),
        Binary::Sub => Number::Sub([a, b]),
        Binary::Mul => Number::Mul([a, b]),
        Binary::Div => Number::Div([a, b]),
        _ => return None,
    })
}
