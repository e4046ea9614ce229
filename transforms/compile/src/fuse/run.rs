//! Execution of a plan: blocks of rows that fit in the L1 cache, on all threads.

use std::any::Any as Dynamic;
use std::collections::HashMap;
use std::ptr::copy_nonoverlapping;
use std::sync::Arc;

use burn_backend::Backend;
use burn_t4a::T4aTensor;
use smallvec::SmallVec;
use t4a_algebra::parallel::{SendPtr, for_each, worthwhile};
use t4a_tensor::{AnyTensor, Buffer, DType, Element, Layout, Result};

use super::Elementwise;
use super::bank::Bank;
use super::chain::Stage;
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
use super::code::coded;
use super::kernel::{self, FusedFloat};
use super::links::{Links, ThreadMemory};
use super::machine::parts;
use super::plan::{Do, FusedOp, FusionPlan, Port};
use super::source::OperandAccess;
use crate::recording::{Execute, Frame, Instruction};
use crate::tensor::AnyPrimitive;

/// Total size of all registers in bytes: a part of the L1 cache.
const SCRATCH: usize = 24 << 10;
/// Number of elements per task.
const CHUNK: usize = 1 << 15;

/// A group of instructions, fused into one step.
pub(crate) struct FusedGroup<B: Backend> {
    pub(crate) plan: FusionPlan,
    pub(crate) dtype: DType,
    /// Recorded shapes of the operands; the plan is valid for these only.
    pub(crate) shapes: Vec<Vec<usize>>,
    pub(crate) members: Arc<[Instruction<B>]>,
    /// Operands that must be row-major, because a sum adds results in memory order.
    pub(crate) row_major: Vec<bool>,
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    pub(crate) code: GroupCode,
}

/// Work of an execution, in additions, from which on code is generated at once: the interpreter would take longer.
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
const WORK: usize = 1 << 18;

/// Number of executions of a program over which the generation of code for its groups is distributed, so that no call has to
/// wait for the code of all groups (bench `compile`, rows `of many`).
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
const TURNS: usize = 8;

/// Machine code of a group, generated after a number of executions, or at the first one of much work.
#[cfg(all(feature = "jit", target_arch = "x86_64"))]
#[derive(Debug)]
pub(crate) struct GroupCode {
    plan: std::sync::OnceLock<Option<FusionPlan>>,
    /// Number of executions left to the interpreter.
    interpreted: std::sync::atomic::AtomicUsize,
}

#[cfg(all(feature = "jit", target_arch = "x86_64"))]
impl GroupCode {
    /// Code of group `at` of `groups`: the first ones are generated at the second execution.
    pub(crate) fn new(at: usize, groups: usize) -> Self {
        let turn = at * TURNS.min(groups) / groups.max(1);
        Self { plan: Default::default(), interpreted: (1 + turn).into() }
    }

    /// True if this execution is left to the interpreter.
    fn is_early(&self) -> bool {
        use std::sync::atomic::Ordering::Relaxed;
        let earlier = |left: usize| left.checked_sub(1);
        self.interpreted.load(Relaxed) > 0
            && self.interpreted.fetch_update(Relaxed, Relaxed, earlier).is_ok()
    }
}

impl<B: Backend> FusedGroup<B> {
    /// The plan to execute. All plans have bitwise equal results.
    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
    fn plan(&self) -> &FusionPlan {
        let plan = &self.plan;
        let work = plan.rows.saturating_mul(plan.n).saturating_mul(plan.cost);
        if work < WORK && self.code.is_early() {
            return plan;
        }
        let code = self.code.plan.get_or_init(|| match self.dtype {
            DType::F64 => coded::<f64>(plan, &self.shapes),
            _ => coded::<f32>(plan, &self.shapes),
        });
        code.as_ref().unwrap_or(plan)
    }

    /// The plan to execute.
    #[cfg(not(all(feature = "jit", target_arch = "x86_64")))]
    fn plan(&self) -> &FusionPlan {
        &self.plan
    }

    /// Executes the instructions without fusion. Sums over views add in memory order, and unfused results keep the
    /// layout of the view.
    fn one_by_one(
        &self,
        operands: Vec<AnyPrimitive<B>>,
        out: &mut Vec<AnyPrimitive<B>>,
    ) -> ReplayResult {
        let names = self.plan.inputs.iter().map(|port| port.value);
        let mut values: HashMap<usize, AnyPrimitive<B>> = names.zip(operands).collect();
        let mut results = Vec::new();
        for one in &*self.members {
            let operands = one.operands.iter().map(|value| values.get(value).cloned());
            let mut frame = Frame(operands.collect());
            one.step.run(&mut frame, &mut results)?;
            values.extend((one.first..).zip(results.drain(..)));
        }
        for port in &self.plan.outputs {
            let x = values.get(&port.value).cloned();
            out.push(x.ok_or("a group does not make its outputs")?);
        }
        Ok(())
    }
}

type ReplayResult = std::result::Result<(), String>;

impl<B: Backend> Execute<B> for FusedGroup<B> {
    fn run(&self, frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>) -> ReplayResult {
        let is_row_major = |x: &Option<AnyPrimitive<B>>| x.as_ref().is_some_and(self::is_row_major);
        if frame.0.iter().zip(&self.row_major).any(|(x, &row_major)| row_major && !is_row_major(x))
        {
            let operands = (0..self.plan.inputs.len()).map(|at| frame.any(at)).collect();
            return self.one_by_one(operands, out);
        }
        let result = {
            let operands = frame.0.iter().map(|x| x.as_ref().and_then(engine_ref));
            let operands: Option<Few<&AnyTensor>> = operands.collect();
            let operands = operands.unwrap_or_else(|| unreachable!("operands are there"));
            for (x, shape) in operands.iter().zip(&self.shapes) {
                if x.shape() != shape {
                    let given = x.shape();
                    return Err(format!("an operand of shape {given:?} was recorded as {shape:?}"));
                }
            }
            let finish = |x: AnyTensor, port: &Port| {
                let x = T4aTensor::from_any(x)?;
                out.push(if port.flag {
                    AnyPrimitive::Bool(same(x))
                } else {
                    AnyPrimitive::Float(same(x))
                });
                Ok(())
            };
            match self.dtype {
                DType::F64 => run::<f64>(self.plan(), &operands, finish),
                _ => run::<f32>(self.plan(), &operands, finish),
            }
        };
        frame.0.clear();
        result.map_err(|error| error.to_string())
    }
}

/// List that holds the operands of most groups without an allocation.
pub(super) type Few<T> = SmallVec<[T; 8]>;

/// True if the tensors of backend `B` are those of the engine.
pub(crate) fn is_engine<B: Backend>() -> bool {
    use std::any::TypeId;
    TypeId::of::<B::FloatTensorPrimitive>() == TypeId::of::<T4aTensor>()
        && TypeId::of::<B::BoolTensorPrimitive>() == TypeId::of::<T4aTensor>()
}

/// Converts between two generic names of the same concrete type.
pub(crate) fn same<X: 'static, Y: 'static>(x: X) -> Y {
    let mut x = Some(x);
    let y = (&mut x as &mut dyn Dynamic).downcast_mut::<Option<Y>>().and_then(Option::take);
    y.unwrap_or_else(|| unreachable!("both names are of one type"))
}

/// True if a tensor of the engine has one element that is repeated along all axes.
pub(crate) fn is_repeated<B: Backend>(x: &AnyPrimitive<B>) -> bool {
    if !is_engine::<B>() {
        return false;
    }
    let x = engine(x.clone());
    let mut axes = x.shape().iter().zip(x.layout().strides());
    axes.all(|(&n, &stride)| n == 1 || stride == 0)
}

/// True for a row-major tensor of the engine.
pub(crate) fn is_row_major<B: Backend>(x: &AnyPrimitive<B>) -> bool {
    engine_ref(x).is_some_and(|x| x.layout().is_contiguous())
}

/// The engine's tensor, if it is one.
fn engine_ref<B: Backend>(x: &AnyPrimitive<B>) -> Option<&AnyTensor> {
    let x: Option<&T4aTensor> = match x {
        AnyPrimitive::Float(x) => (x as &dyn Dynamic).downcast_ref(),
        AnyPrimitive::Int(x) => (x as &dyn Dynamic).downcast_ref(),
        AnyPrimitive::Bool(x) => (x as &dyn Dynamic).downcast_ref(),
        AnyPrimitive::Quantized(x) => (&**x as &dyn Dynamic).downcast_ref(),
    };
    x.map(T4aTensor::any)
}

/// Unwraps the engine's tensor.
pub(crate) fn engine<B: Backend>(x: AnyPrimitive<B>) -> AnyTensor {
    let x: T4aTensor = match x {
        AnyPrimitive::Float(x) => same(x),
        AnyPrimitive::Int(x) => same(x),
        AnyPrimitive::Bool(x) => same(x),
        AnyPrimitive::Quantized(x) => same(*x),
    };
    x.into_any()
}

/// Distinct elements in row-major order, with broadcast axes (stride 0) reduced to size 1.
pub(crate) fn squeezed(x: AnyTensor) -> Result<AnyTensor> {
    let mut out = x;
    for axis in 0..out.rank() {
        if out.shape()[axis] > 1 && out.layout().strides()[axis] == 0 {
            out = out.slice_axis(axis, 0, 1, 1)?;
        }
    }
    out.to_contiguous()
}

/// Buffer of an output during execution.
#[derive(Clone, Copy)]
pub(super) struct OutputBuffer(SendPtr<u8>);

impl OutputBuffer {
    /// Address of the first element.
    pub(super) fn at<T>(self) -> *mut T {
        self.0.get().cast()
    }
}

fn allocate(port: &Port, size: usize) -> Result<(Buffer, Layout, OutputBuffer)> {
    let layout = match &port.layout {
        Some(layout) => layout.clone(),
        None => Layout::contiguous("fused", &port.shape, size)?,
    };
    let mut buffer = Buffer::alloc("fused", layout.numel() * size)?;
    let at = buffer.as_mut_ptr().unwrap_or(std::ptr::null_mut());
    Ok((buffer, layout, OutputBuffer(SendPtr(at))))
}

/// Appends the operands of one kind, and `None` in the place of the others.
fn sources<'a, T: Element>(
    all: &[&'a AnyTensor],
    copies: &'a [(usize, AnyTensor)],
    inputs: &[Port],
    flag: bool,
    to: &mut Few<Option<OperandAccess<'a, T>>>,
) -> Result<()> {
    for (i, port) in inputs.iter().enumerate() {
        if port.flag != flag {
            to.push(None);
            continue;
        }
        let copy = copies.iter().find(|(at, _)| *at == i);
        let x = copy.map_or(all[i], |(_, x)| x).typed::<T>()?;
        let by_row = port.by_row && !port.row;
        let elements = x.as_slice().unwrap_or_default();
        to.push(Some(OperandAccess::new(elements, x.shape(), &port.shape, by_row)));
    }
    Ok(())
}

/// Executes a plan; `finish` receives each output and its port. Lists are filled in place: moves of lists cost as much as
/// the elements of small groups.
fn run<T: FusedFloat>(
    plan: &FusionPlan,
    operands: &[&AnyTensor],
    mut finish: impl FnMut(AnyTensor, &Port) -> Result<()>,
) -> Result<()> {
    let views = operands.iter().enumerate().filter(|(_, x)| !x.layout().is_contiguous());
    let copies: Vec<(usize, AnyTensor)> =
        views.map(|(i, &x)| Ok((i, squeezed(x.clone())?))).collect::<Result<_>>()?;
    let (mut floats, mut flags) = (Few::new(), Few::new());
    sources::<T>(operands, &copies, &plan.inputs, false, &mut floats)?;
    if plan.inputs.iter().any(|port| port.flag) {
        sources::<bool>(operands, &copies, &plan.inputs, true, &mut flags)?;
    }
    let size = |port: &Port| if port.flag { 1 } else { size_of::<T>() };
    let (mut outputs, mut targets) = (Few::new(), Few::new());
    for port in &plan.outputs {
        let (buffer, layout, target) = allocate(port, size(port))?;
        outputs.push((buffer, layout));
        targets.push(target);
    }

    let elements = plan.rows * plan.n;
    if elements > 0 {
        let lane = (plan.registers[0] + plan.inputs.len()) * size_of::<T>() + plan.registers[1];
        let lanes = (SCRATCH / lane.max(1)).clamp(256, 4096) & !127;
        // Code that uses no registers of the block needs no blocks.
        let in_place = floats.iter().flatten().all(OperandAccess::is_in_place)
            && flags.iter().flatten().all(OperandAccess::is_in_place);
        let one_pass = in_place && matches!(&plan.stages[..], [stage] if stage.is_code());
        let lanes = if one_pass && plan.registers == [0, 0] { CHUNK } else { lanes };
        let block = (lanes / plan.n).clamp(1, plan.rows);
        let chunk = (CHUNK / plan.n).max(1).next_multiple_of(block);
        let chunks = plan.rows.div_ceil(chunk);
        let numbers: Vec<T> = plan.numbers.iter().map(|&x| T::from_f64(x)).collect();
        let body = BlockContext {
            plan,
            floats: &floats,
            flags: &flags,
            targets: &targets,
            numbers: &numbers,
            block,
        };
        for_each(chunks, chunks > 1 && worthwhile(elements, plan.cost), &|c| {
            body.rows(c * chunk, plan.rows.min((c + 1) * chunk));
        });
    }
    for ((buffer, layout), port) in outputs.into_iter().zip(&plan.outputs) {
        let dtype = if port.flag { DType::Bool } else { T::DTYPE };
        // SAFETY: every row has been written by the instruction that stores this output; booleans are written as values
        // of type `bool`.
        finish(unsafe { AnyTensor::from_buffer(buffer, layout, dtype) }?, port)?;
    }
    Ok(())
}

/// State shared by all blocks.
struct BlockContext<'a, T: FusedFloat> {
    plan: &'a FusionPlan,
    floats: &'a [Option<OperandAccess<'a, T>>],
    flags: &'a [Option<OperandAccess<'a, bool>>],
    targets: &'a [OutputBuffer],
    /// Scalar constants of the chains.
    numbers: &'a [T],
    /// Rows per block.
    block: usize,
}

impl<'a, T: FusedFloat> BlockContext<'a, T> {
    #[cfg_attr(not(all(feature = "jit", target_arch = "x86_64")), allow(unused_variables))]
    fn rows(&self, start: usize, end: usize) {
        let (plan, n) = (self.plan, self.plan.n);
        let [floats, flags] = plan.registers;
        let mut floats = Bank::new(floats, self.floats, self.block * n, T::ZERO);
        let mut flags = Bank::new(flags, self.flags, self.block * n, false);
        let totals = plan.stages.iter().map(|stage| match stage {
            Stage::Chain(chain) => chain.totals.len(),
            Stage::FusedOp(_) => 0,
            #[cfg(all(feature = "jit", target_arch = "x86_64"))]
            Stage::Code(part) => part.totals.len(),
        });
        let mut sums = vec![T::ZERO; totals.max().unwrap_or(0) * parts::<T>()];
        let sums = sums.as_mut_ptr();
        let (outputs, numbers) = (self.targets, self.numbers);
        let memory = ThreadMemory { bank: &floats, sources: self.floats, outputs, numbers, sums };
        let mut links = Links::new(plan, &memory);
        #[cfg(all(feature = "jit", target_arch = "x86_64"))]
        let mut sites = Few::new();
        #[cfg(all(feature = "jit", target_arch = "x86_64"))]
        for stage in &plan.stages {
            if let Stage::Code(part) = stage {
                part.sites(n, &memory, (&flags, self.flags), &mut sites);
            }
        }
        #[cfg(all(feature = "jit", target_arch = "x86_64"))]
        let mut now: Few<*mut u8> = SmallVec::from_elem(std::ptr::null_mut(), sites.len());
        for at in (start..end).step_by(self.block) {
            let rows = self.block.min(end - at);
            floats.load(self.floats, &plan.inputs, rows, at, n);
            flags.load(self.flags, &plan.inputs, rows, at, n);
            #[cfg(all(feature = "jit", target_arch = "x86_64"))]
            let mut first = 0;
            for stage in &plan.stages {
                match stage {
                    #[cfg(all(feature = "jit", target_arch = "x86_64"))]
                    Stage::Code(part) => {
                        let own = &sites[first..first + part.operands()];
                        first += own.len();
                        let sources = self.floats;
                        let memory =
                            ThreadMemory { bank: &floats, sources, outputs, numbers, sums };
                        // SAFETY: as for chains.
                        unsafe { part.run((own, &mut now[..own.len()]), at, rows, n, &memory) };
                    }
                    // SAFETY: registers hold a block, inputs and outputs all rows; rows of other blocks are not
                    // written.
                    Stage::Chain(chain) => unsafe {
                        let sources = self.floats;
                        let memory =
                            ThreadMemory { bank: &floats, sources, outputs, numbers, sums };
                        links.run(chain, at, rows, &memory);
                    },
                    Stage::FusedOp(op) => self.op(op, at, rows, &mut floats, &mut flags),
                }
            }
        }
    }

    fn op(
        &self,
        op: &FusedOp,
        at: usize,
        rows: usize,
        floats: &mut Bank<T>,
        flags: &mut Bank<bool>,
    ) {
        let n = if op.row { 1 } else { self.plan.n };
        let (lo, len) = (at * n, rows * n);
        if op.flag {
            let (out, others) = flags.split(op.out, len);
            let float = |k: usize| floats.others().get(op.args[k], self.floats, lo, len);
            match op.what {
                Do::Spread => {
                    let x = others.get(op.args[0], self.flags, at, rows);
                    out.chunks_exact_mut(n).zip(x).for_each(|(row, &x)| row.fill(x));
                }
                Do::Each(Elementwise::Compare(f)) => kernel::compare(f, float(0), float(1), out),
                Do::Each(Elementwise::CompareScalar(f, c)) => {
                    kernel::compare_scalar(f, float(0), T::from_f64(c), out);
                }
                Do::Each(_) | Do::WithRow(..) | Do::Total(_) => {
                    unreachable!("comparisons alone give truth values")
                }
            }
            self.store(op, lo, out);
            return;
        }
        let (out, others) = floats.split(op.out, len);
        let float = |k: usize| others.get(op.args[k], self.floats, lo, len);
        let flag = |k: usize| flags.others().get(op.args[k], self.flags, lo, len);
        let c = T::from_f64;
        match op.what {
            Do::Spread => {
                let x = others.get(op.args[0], self.floats, at, rows);
                out.chunks_exact_mut(n).zip(x).for_each(|(row, &x)| row.fill(x));
            }
            Do::WithRow(..) | Do::Total(_) => unreachable!("rows and their numbers are chains"),
            Do::Each(what) => match what {
                Elementwise::Unary(f) => kernel::unary(f, float(0), out),
                Elementwise::Binary(f) => kernel::binary(f, float(0), float(1), out),
                Elementwise::Scalar(f, y) => kernel::scalar(f, float(0), c(y), out),
                Elementwise::Clamp(low, high) => kernel::clamp(float(0), c(low), c(high), out),
                Elementwise::Leaky(slope) => kernel::leaky(float(0), c(slope), out),
                Elementwise::Select => kernel::select(float(0), flag(1), float(2), out),
                Elementwise::Fill(y) => kernel::fill(float(0), flag(1), c(y), out),
                Elementwise::Indicator => kernel::indicator(flag(0), out),
                Elementwise::Reduce(f, _) => {
                    let n = self.plan.n;
                    let x = others.get(op.args[0], self.floats, at * n, rows * n);
                    kernel::reduce(f, x, n, out);
                }
                Elementwise::Compare(_) | Elementwise::CompareScalar(..) => {
                    unreachable!("comparisons give truth values")
                }
            },
        }
        self.store(op, lo, out);
    }

    /// Copies a register to its output.
    fn store<U: Copy>(&self, op: &FusedOp, lo: usize, x: &[U]) {
        let Some(output) = op.store else { return };
        let to = self.targets[output].at::<U>();
        // SAFETY: the output has as many elements as the shape of its level; blocks are disjoint, and each is stored
        // once.
        unsafe { copy_nonoverlapping(x.as_ptr(), to.add(lo), x.len()) };
    }
}
