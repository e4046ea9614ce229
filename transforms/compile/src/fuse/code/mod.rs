//! Machine code of a group: a plan whose chains are replaced by parts with vector code.
//!
//! ```text
//! partition   parts: elements of rows, scalars of rows, single kernels
//! lower       instructions of a part as vector instructions
//! operand     addresses of its operands
//! ```
//!
//! Values that only one part uses stay in vector registers; the others have registers of the block in memory. Results are
//! bitwise equal to those of chains, which are used on other machines and in the tests.

mod lower;
mod operand;
mod partition;

use std::sync::Arc;

use t4a_algebra::simd::Isa;
use t4a_jit::{SUM_BYTES, VectorCode, VectorId, VectorInst, VectorIsa};

use self::lower::Lowering;
use self::operand::{CodedOperand, CodedSite};
use self::partition::{PlanPart, PlanPartKind, partition};
use super::bank::Bank;
use super::chain::{RowReduction, Stage};
use super::kernel::{self, FusedFloat};
use super::links::ThreadMemory;
use super::machine::parts;
use super::plan::{Arg, Do, FusedOp, FusionPlan, is_long};
use super::run::Few;
use super::source::OperandAccess;

/// Part of a plan, as machine code.
#[derive(Debug)]
pub(crate) struct CodedPart {
    code: VectorCode,
    places: Vec<CodedOperand>,
    /// True if the elements are one scalar per row.
    scalars: bool,
    /// True if rows are executed one by one, because operands or results include per-row scalars.
    by_row: bool,
    pub(super) totals: Vec<RowReduction>,
}

/// Boolean registers and inputs of a thread.
pub(super) type FlagMemory<'a> = (&'a Bank<bool>, &'a [Option<OperandAccess<'a, bool>>]);

impl CodedPart {
    /// Number of operands.
    pub(super) fn operands(&self) -> usize {
        self.places.len()
    }

    /// Appends the addresses of the operands in the memory of a thread.
    pub(super) fn sites<T: FusedFloat>(
        &self,
        n: usize,
        memory: &ThreadMemory<'_, T>,
        flags: FlagMemory<'_>,
        to: &mut Few<CodedSite>,
    ) {
        let n = if self.scalars { 1 } else { n };
        to.extend(self.places.iter().map(|&place| CodedSite::find(place, n, memory, flags)));
    }

    /// Executes the part on rows `at..at + rows` of `n` elements. `now` is memory for an address of each operand.
    ///
    /// # Safety
    /// The sites are those of this part in `memory`. Its operands have these rows, and no other thread accesses the
    /// elements that are written.
    pub(super) unsafe fn run<T: FusedFloat>(
        &self,
        (sites, now): (&[CodedSite], &mut [*mut u8]),
        at: usize,
        rows: usize,
        n: usize,
        memory: &ThreadMemory<'_, T>,
    ) {
        let parts = parts::<T>();
        let n = if self.scalars { 1 } else { n };
        let (times, len) = if self.by_row { (rows, n) } else { (1, rows * n) };
        for row in 0..times {
            for (now, site) in now.iter_mut().zip(sites) {
                *now = site.of(at, row);
            }
            for k in 0..self.totals.len() {
                // A size known at compile time, so that no function is called.
                // SAFETY: `sums` has partial sums for every reduction of the part.
                unsafe { memory.sums.add(k * parts).cast::<[u8; SUM_BYTES]>().write_bytes(0, 1) };
            }
            // SAFETY: the operands have `len` elements from these addresses on. A part reads no register that it writes, and
            // rows of full accumulators are a multiple of the partial sums.
            unsafe { self.code.run(now, len) };
            for (k, total) in self.totals.iter().enumerate() {
                // SAFETY: the partial sums, the per-row scalar in a register, and the one in an output are within their
                // buffers.
                unsafe {
                    let sums = std::slice::from_raw_parts(memory.sums.add(k * parts), parts);
                    let number = kernel::total(total.reduction, sums, n);
                    memory.bank.at(total.register).add(row).write(number);
                    if let Some(output) = total.output {
                        memory.outputs[output].at::<T>().add(at + row).write(number);
                    }
                }
            }
        }
    }
}

/// Plan with machine code for this machine, or `None` if there is no generator for it, or if no instruction has code.
///
/// `shapes` are the recorded shapes of the inputs.
pub(super) fn coded<T: FusedFloat>(plan: &FusionPlan, shapes: &[Vec<usize>]) -> Option<FusionPlan> {
    let isa = match Isa::detect() {
        Isa::Avx512 => VectorIsa::Avx512,
        Isa::Avx2 => VectorIsa::Avx2,
        _ => return None,
    };
    Builder::new(plan, shapes, isa).plan::<T>()
}

struct Builder<'a> {
    plan: &'a FusionPlan,
    isa: VectorIsa,
    parts: Vec<PlanPart>,
    part_of: Vec<usize>,
    /// Register of each value that another part uses.
    register: Vec<Option<usize>>,
    /// True for inputs with one number for all rows.
    single: Vec<bool>,
    /// True for inputs with one row for all rows, which are read in place if rows are executed one by one.
    one_row: Vec<bool>,
    rows: usize,
    n: usize,
}

impl<'a> Builder<'a> {
    fn new(plan: &'a FusionPlan, shapes: &[Vec<usize>], isa: VectorIsa) -> Self {
        let one_row = plan.inputs.iter().zip(shapes).map(|(port, shape)| {
            let n = port.shape.last().copied().unwrap_or(1);
            let elements = |shape: &[usize]| shape.iter().product::<usize>();
            let repeats = elements(shape) == n && elements(&port.shape) > n;
            !port.row && repeats && shape.last() == Some(&n) && is_long(n)
        });
        let one_row: Vec<bool> = one_row.collect();
        // A plan without per-row scalars has no rows.
        let (mut rows, mut n) = (plan.rows, plan.n);
        if let (1, Some(i)) = (n, one_row.iter().position(|&one| one)) {
            n = plan.inputs[i].shape.last().copied().unwrap_or(1);
            rows /= n;
        }
        let parts = partition(&plan.ops, n);
        let mut part_of = vec![0; plan.ops.len()];
        for (p, part) in parts.iter().enumerate() {
            part.ops.iter().for_each(|&at| part_of[at] = p);
        }
        let single = shapes.iter().map(|shape| shape.iter().all(|&size| size == 1)).collect();
        let register = vec![None; plan.ops.len()];
        Self { plan, isa, parts, part_of, register, single, one_row, rows, n }
    }

    fn plan<T: FusedFloat>(mut self) -> Option<FusionPlan> {
        if self.parts.iter().all(|part| part.kind == PlanPartKind::Kernel) {
            return None;
        }
        let registers = [false, true].map(|flag| self.allocate(flag));
        let mut inputs = self.plan.inputs.clone();
        let mut stages = Vec::new();
        for part in &self.parts {
            let by_row = part.kind == PlanPartKind::Elements && self.is_by_row(part);
            if !by_row {
                let args = part.ops.iter().flat_map(|&at| &self.plan.ops[at].args);
                args.for_each(|arg| {
                    if let Arg::Input(i) = *arg {
                        inputs[i].by_row = false;
                    }
                });
            }
            stages.push(match part.kind {
                PlanPartKind::Kernel => Stage::FusedOp(self.kernel(&self.plan.ops[part.ops[0]])),
                _ => Stage::Code(Arc::new(self.code::<T>(part, by_row)?)),
            });
        }
        let FusionPlan { outputs, cost, .. } = self.plan.clone();
        let (rows, n) = (self.rows, self.n);
        let (numbers, ops) = (Vec::new(), Vec::new());
        Some(FusionPlan { rows, n, inputs, outputs, stages, numbers, registers, cost, ops })
    }

    fn is_by_row(&self, part: &PlanPart) -> bool {
        part.ops.iter().any(|&at| {
            let op = &self.plan.ops[at];
            let reads_row = |arg: &Arg| matches!(*arg, Arg::Input(i) if self.one_row[i]);
            !matches!(op.what, Do::Each(_)) || op.args.iter().any(reads_row)
        })
    }

    /// Registers for the values of one kind that several parts use. A register is free after the part with the last use.
    fn allocate(&mut self, flag: bool) -> usize {
        let ops = &self.plan.ops;
        let mut last = vec![None; ops.len()];
        for (at, op) in ops.iter().enumerate() {
            let own = self.part_of[at];
            if matches!(op.what, Do::Total(_)) || self.parts[own].kind == PlanPartKind::Kernel {
                last[at] = last[at].max(Some(own));
            }
            for arg in &op.args {
                if let Arg::Register(v) = *arg
                    && self.part_of[v] != own
                {
                    last[v] = last[v].max(Some(own));
                }
            }
        }
        let (mut free, mut count) = (Vec::new(), 0);
        let mut ending: Vec<Vec<usize>> = vec![Vec::new(); self.parts.len()];
        for (p, part) in self.parts.iter().enumerate() {
            for &at in &part.ops {
                let Some(until) = last[at].filter(|_| ops[at].flag == flag) else { continue };
                let r = free.pop().unwrap_or_else(|| {
                    count += 1;
                    count - 1
                });
                self.register[at] = Some(r);
                ending[until].push(r);
            }
            free.append(&mut ending[p]);
        }
        count
    }

    fn arg(&self, arg: Arg) -> Arg {
        match arg {
            Arg::Register(v) => {
                let r = self.register[v];
                Arg::Register(r.unwrap_or_else(|| unreachable!("other parts read registers")))
            }
            input => input,
        }
    }

    /// An instruction with registers of the block.
    fn kernel(&self, op: &FusedOp) -> FusedOp {
        let args = op.args.iter().map(|&arg| self.arg(arg)).collect();
        let Arg::Register(out) = self.arg(Arg::Register(op.out)) else { unreachable!() };
        FusedOp { args, out, ..op.clone() }
    }

    /// Machine code of a part.
    fn code<T: FusedFloat>(&self, part: &PlanPart, by_row: bool) -> Option<CodedPart> {
        let mut lowering = Lowering::<T>::new();
        let mut values: Vec<Option<VectorId>> = vec![None; self.plan.ops.len()];
        let mut totals = Vec::new();
        for &at in &part.ops {
            let op = &self.plan.ops[at];
            let args: Vec<VectorId> = (0..op.args.len())
                .map(|k| {
                    if let Arg::Register(v) = op.args[k]
                        && let Some(id) = values[v]
                    {
                        return id;
                    }
                    lowering.read(self.place(op, k))
                })
                .collect();
            let value = match op.what {
                Do::Total(reduction) => {
                    let sums = lowering.operand(CodedOperand::Sums(totals.len()));
                    lowering.program.push(VectorInst::Sum(sums, args[0]));
                    let register = self.register[at]?;
                    totals.push(RowReduction { reduction, register, output: op.store });
                    continue;
                }
                Do::Spread => args[0],
                Do::WithRow(f, flipped) => {
                    let [x, y] = if flipped { [args[1], args[0]] } else { [args[0], args[1]] };
                    lowering.each(super::Elementwise::Binary(f), &[x, y])
                }
                Do::Each(what) => lowering.each(what, &args),
            };
            values[at] = Some(value);
            let memory = |place| {
                if op.flag {
                    VectorInst::StoreMask(place, value)
                } else {
                    VectorInst::Store(place, value)
                }
            };
            if let Some(output) = op.store {
                let to = if op.flag {
                    CodedOperand::FlagOutput(output)
                } else {
                    CodedOperand::Output(output)
                };
                let to = lowering.operand(to);
                lowering.program.push(memory(to));
            }
            if let Some(r) = self.register[at] {
                let arg = Arg::Register(r);
                let to = lowering.operand(if op.flag {
                    CodedOperand::Flags(arg)
                } else {
                    CodedOperand::Floats(arg)
                });
                lowering.program.push(memory(to));
            }
        }
        let places = lowering.places.iter().map(|&(place, _)| place).collect();
        let code = VectorCode::new(&lowering.program, self.isa).ok()?;
        let scalars = part.kind == PlanPartKind::Scalars;
        Some(CodedPart { code, places, scalars, by_row, totals })
    }

    /// Place of operand `k`: an input, or a value that another part computes.
    fn place(&self, op: &FusedOp, k: usize) -> CodedOperand {
        let arg = self.arg(op.args[k]);
        if op.takes_flag(k) {
            return CodedOperand::Flags(arg);
        }
        match arg {
            _ if op.is_of_row(k) => CodedOperand::RowScalar(arg),
            Arg::Input(i) if self.single[i] => CodedOperand::Scalar(i),
            arg => CodedOperand::Floats(arg),
        }
    }
}
