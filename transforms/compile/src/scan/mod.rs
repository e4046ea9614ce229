//! Scans on the recording backend: the body is recorded once and runs as a program over an arena.
//!
//! ```text
//! build     lowering of the body to kernels over offsets; loop-invariant instructions run once before the steps
//! arena     allocation of slots, which are reused after the last use of their value
//! kernel    elementwise functions, sums and movements over the arena, with small sizes known at compile time
//! products  matrix products over the arena
//! machine   machine code for steps of few values
//! run       execution of the steps
//! stepwise  execution without an arena: the program of the body, once per step
//! custom    functions with user-defined derivative rules
//! control   while loops, fixed points and branches, whose bodies run as programs
//! ```
//!
//! A step over an arena involves no allocation, lock or lookup. A body with integer carries or xs, with several float types,
//! or on a backend other than the engine runs as a program, once per step. In both cases the scan is one instruction of a
//! compiled function. A body that draws random numbers or reads data is executed eagerly in each step, and the scan report
//! states the reason. The reverse pass of a scan on a tape is compiled in the same way, see `t4a_scan::body`.

mod arena;
mod build;
mod control;
mod custom;
mod kernel;
#[cfg(feature = "jit")]
mod machine;
mod products;
mod run;
mod stepwise;

use std::fmt;
use std::sync::Arc;

use burn_backend::{Backend, DType};
use burn_t4a::ext::operation::{Operand, Operations};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{
    FixedPoint, Flat, Options, Repeated, Result, ScanBackend, ScanError, ScanPath, ScanReport,
    Steps,
};
use t4a_scan::body::at;

use crate::backend::Traced;
use crate::call::Call;
use crate::engine;
use crate::fuse::is_engine;
use crate::operation::{Function, WithPrograms, any, operand, value};
use crate::recording::{
    Execute, Frame, LoopBody, NestedPrograms, Recording, RecordingGuard, innermost,
};
use crate::tensor::{AnyPrimitive, ValueNode};
use crate::trace::{Source, parts, traced};
use stepwise::Stepwise;

/// Recorded body, and the values of enclosing recordings that it captures.
struct RecordedBody<B: Operations> {
    program: LoopBody<B>,
    captured: Flat<Floats<Traced<B>>>,
}

/// Inner tensor, and its value in a recording, if any.
fn split<B: Operations>(x: &Operand<Traced<B>>) -> (AnyPrimitive<B>, Option<ValueNode<B>>) {
    parts(any(x.clone()))
}

/// Records the body by executing its first step; the results of that execution are dropped.
fn record<B: Operations>(
    steps: &Steps<Floats<Traced<B>>>,
    consts: &[Operand<Traced<B>>],
    init: &[Operand<Traced<B>>],
    xs: &[Operand<Traced<B>>],
) -> Result<std::result::Result<RecordedBody<B>, &'static str>> {
    let length = steps.length();
    if length == 0 {
        return Ok(Err("no_steps"));
    }
    let all = consts.iter().chain(init).chain(xs);
    let around = all.clone().find_map(|x| split(x).1).map(|node| node.recording);
    let around = around.or_else(innermost);
    let below = |x| value(split(x).0);
    let of_xs: Vec<Operand<B>> = xs.iter().map(below).collect();
    let of_first = at(&of_xs, steps.time(0));
    let inputs: Vec<AnyPrimitive<B>> =
        consts.iter().chain(init).map(below).chain(of_first).map(any).collect();
    let recording = Recording::new(&inputs, around);
    let enter = |(id, x): (usize, AnyPrimitive<B>)| {
        let node = ValueNode { recording: recording.clone(), id };
        value(traced(x, Some(node)))
    };
    let mut inside = inputs.into_iter().enumerate().map(enter);
    let own: Vec<_> = inside.by_ref().take(consts.len()).collect();
    let carry = inside.by_ref().take(init.len()).collect();
    let level = RecordingGuard::enter(recording.clone());
    let stepped = steps.step(&own, carry, inside.collect());
    drop(level);
    let (carry, y) = stepped?;
    let counts = [consts.len(), init.len(), xs.len()];
    // A result that is a value of an enclosing recording is captured as well.
    let results: Vec<(Option<usize>, AnyPrimitive<B>)> = carry
        .into_iter()
        .chain(y)
        .map(|x| {
            let (value, node) = split(&x);
            (node.and_then(|node| recording.enter(&node, &value)), value)
        })
        .collect();
    let Ok(mut tape) = recording.close() else { return Ok(Err("host_read_in_body")) };
    let id = |(id, x): (Option<usize>, AnyPrimitive<B>)| id.unwrap_or_else(|| tape.constant(x));
    let outputs = results.into_iter().map(id).collect();
    if tape.instructions.iter().any(|one| !one.pure) {
        return Ok(Err("random_in_body"));
    }
    let source = Source {
        metas: tape.metas,
        inputs: tape.inputs,
        constants: tape.constants,
        instructions: tape.instructions,
        outputs,
    };
    let (mut ids, mut captured) = (Vec::new(), Vec::new());
    for (id, node, x) in tape.captured {
        ids.push(id);
        captured.push(value(traced(x, Some(node))));
    }
    let reverse = length > 1 && steps.time(0) > steps.time(1);
    let body = LoopBody { source, counts, length, reverse };
    Ok(Ok(RecordedBody { program: body.with_captured_inputs(&ids), captured }))
}

impl<B: Operations> LoopBody<B> {
    /// Renumbers the values so that captured values follow the other inputs.
    fn with_captured_inputs(mut self, ids: &[usize]) -> Self {
        let source = &mut self.source;
        let inputs = source.inputs;
        let mut order: Vec<usize> = (0..inputs).chain(ids.iter().copied()).collect();
        order.extend((inputs..source.metas.len()).filter(|id| !ids.contains(id)));
        let mut to = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| to[old] = new);
        source.metas = order.iter().map(|&old| source.metas[old].clone()).collect();
        source.inputs += ids.len();
        source.constants.iter_mut().for_each(|(id, _)| *id = to[*id]);
        source.outputs.iter_mut().for_each(|id| *id = to[*id]);
        for one in &mut source.instructions {
            one.operands.iter_mut().for_each(|id| *id = to[*id]);
            // The results of an instruction have consecutive numbers, also after renumbering.
            one.first = to.get(one.first).copied().unwrap_or(one.first);
        }
        self
    }
}

/// Executable form of a body.
pub(crate) trait ExecuteBody<B: Operations>: Send + Sync {
    /// Reason in the scan report.
    fn reason(&self) -> &'static str;
    /// Final carry and ys. The operands are consts, the initial carry, xs and the captured values.
    fn run(&self, operands: Vec<AnyPrimitive<B>>) -> Result<Vec<AnyPrimitive<B>>>;
}

/// Form of a body: over an arena of f32 or f64, or stepwise.
enum CompiledBody<B: Operations> {
    F32(build::ScanProgram<f32, B>),
    F64(build::ScanProgram<f64, B>),
    Stepwise(Stepwise<B>),
}

impl<B: Operations> CompiledBody<B> {
    fn new(body: &LoopBody<B>) -> Self {
        let dtypes = body.source.metas.iter().map(|meta| meta.dtype);
        let in_arena = match dtypes.into_iter().find(|dtype| dtype.is_float()) {
            _ if !is_engine::<B>() => None,
            Some(DType::F32) => build::ScanProgram::new(body, DType::F32).map(Self::F32).ok(),
            Some(DType::F64) => build::ScanProgram::new(body, DType::F64).map(Self::F64).ok(),
            _ => None,
        };
        in_arena.unwrap_or_else(|| Self::Stepwise(Stepwise::new(body)))
    }
}

impl<B: Operations> ExecuteBody<B> for CompiledBody<B> {
    fn reason(&self) -> &'static str {
        let coded = match self {
            Self::F32(x) => x.is_coded(),
            Self::F64(x) => x.is_coded(),
            Self::Stepwise(_) => return "body_program",
        };
        if coded { "machine_code" } else { "body_traced" }
    }

    fn run(&self, operands: Vec<AnyPrimitive<B>>) -> Result<Vec<AnyPrimitive<B>>> {
        match self {
            Self::F32(x) => Ok(x.run(operands)?),
            Self::F64(x) => Ok(x.run(operands)?),
            Self::Stepwise(x) => x.run(operands),
        }
    }
}

/// Compiles the body of a scan.
pub(crate) fn executable<B: Operations>(body: &LoopBody<B>) -> Arc<dyn ExecuteBody<B>> {
    Arc::new(CompiledBody::new(body))
}

/// Executes `run` and records it as one instruction, with the programs of its bodies unless an export cannot express it.
///
/// # Errors
/// The errors of `run`.
fn instruction<'a, B: Operations, E: fmt::Display>(
    name: &'static str,
    nested: Option<NestedPrograms<B>>,
    operands: impl IntoIterator<Item = &'a Operand<Traced<B>>>,
    run: impl Fn(Vec<AnyPrimitive<B>>) -> Result<Vec<AnyPrimitive<B>>, E> + Send + Sync + 'static,
) -> Result<Flat<Floats<Traced<B>>>, E> {
    let run = move |frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
        out.extend(run(all_of(frame))?);
        Ok::<_, E>(())
    };
    stepped(name, operands, run, |run| {
        let run = move |frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
            run(frame, out).map_err(|error| error.to_string())
        };
        let step = Function { run };
        match nested {
            Some(nested) => Arc::new(WithPrograms { step, nested }),
            None => Arc::new(step),
        }
    })
}

/// Takes all operands of a frame.
fn all_of<B: Backend>(frame: &mut Frame<B>) -> Vec<AnyPrimitive<B>> {
    (0..frame.0.len()).map(|at| frame.any(at)).collect()
}

/// Executes `run` and records it as the instruction with this step.
///
/// # Errors
/// The errors of `run`.
fn stepped<'a, B: Operations, E, F>(
    name: &'static str,
    operands: impl IntoIterator<Item = &'a Operand<Traced<B>>>,
    run: F,
    step: impl FnOnce(F) -> Arc<dyn Execute<B>>,
) -> Result<Flat<Floats<Traced<B>>>, E>
where
    F: Fn(&mut Frame<B>, &mut Vec<AnyPrimitive<B>>) -> Result<(), E>,
{
    let mut call = Call::new(name);
    operands.into_iter().for_each(|x| operand(&mut call, x));
    let ((), all, pending) = call.record(&run)?;
    let count = all.len();
    let mut all = pending.finish(all, || step(run));
    Ok((0..count).map(|_| value(all.any())).collect())
}

/// Step of a scan, with its compiled body.
struct ScanStep<B: Operations> {
    nested: NestedPrograms<B>,
    compiled: Arc<dyn ExecuteBody<B>>,
}

impl<B: Operations> ScanStep<B> {
    fn new(body: LoopBody<B>) -> Self {
        let compiled = engine::body(&body);
        Self { nested: NestedPrograms::Scan(body), compiled }
    }
}

impl<B: Operations> Execute<B> for ScanStep<B> {
    fn run(
        &self,
        frame: &mut Frame<B>,
        out: &mut Vec<AnyPrimitive<B>>,
    ) -> std::result::Result<(), String> {
        out.extend(self.compiled.run(all_of(frame)).map_err(|error| error.to_string())?);
        Ok(())
    }
    fn nested(&self) -> Option<&NestedPrograms<B>> {
        Some(&self.nested)
    }
    fn with_body(&self, body: LoopBody<B>) -> Option<Arc<dyn Execute<B>>> {
        Some(Arc::new(Self::new(body)))
    }
}

impl<B: ScanBackend> ScanBackend for Traced<B> {
    fn chooses_path() -> bool {
        true
    }

    fn scan(
        steps: Steps<Floats<Self>>,
        consts: Flat<Floats<Self>>,
        init: Flat<Floats<Self>>,
        xs: Flat<Floats<Self>>,
        options: &Options,
    ) -> Result<[Flat<Floats<Self>>; 2]> {
        let length = steps.length();
        let RecordedBody { program, captured } = match record(&steps, &consts, &init, &xs)? {
            Ok(body) => body,
            Err(reason) => {
                options.take_path(ScanReport { path: ScanPath::Fallback, reason, length })?;
                return steps.run(&consts, init, &xs);
            }
        };
        let (carries, step) = (program.counts[1], Arc::new(ScanStep::new(program)));
        let (compiled, reason) = (step.compiled.clone(), step.compiled.reason());
        options.take_path(ScanReport { path: ScanPath::Fused, reason, length })?;
        let all = consts.iter().chain(&init).chain(&xs).chain(&captured);
        let run = move |frame: &mut Frame<B>, out: &mut Vec<AnyPrimitive<B>>| {
            out.extend(compiled.run(all_of(frame))?);
            Ok::<_, ScanError>(())
        };
        let mut all = stepped("scan", all, run, |_| step)?;
        let ys = all.split_off(carries);
        Ok([all, ys])
    }

    fn fixed_point(
        steps: Steps<Floats<Self>>,
        consts: Flat<Floats<Self>>,
        init: Flat<Floats<Self>>,
        settings: &FixedPoint,
    ) -> Result<Flat<Floats<Self>>> {
        control::fixed_point(steps, consts, init, settings)
    }

    fn iterate(
        repeated: Repeated<Floats<Self>>,
        all: [Flat<Floats<Self>>; 3],
        options: &Options,
    ) -> Result<Flat<Floats<Self>>> {
        control::iterate(repeated, all, options)
    }

    fn switch(
        index: Operand<Self>,
        branches: Vec<Steps<Floats<Self>>>,
        operands: Flat<Floats<Self>>,
    ) -> Result<Flat<Floats<Self>>> {
        control::switch(index, branches, operands)
    }

    fn batches() -> bool {
        B::batches()
    }

    /// True on a backend with batches: a recording serves calls with and without a batch axis.
    fn is_batched(_: &Operand<Self>) -> bool {
        B::batches()
    }
}
