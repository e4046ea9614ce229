//! Scans on the recording backend: the body is recorded once and runs as a program over an arena.
//!
//! ```text
//! build     instructions of the body → kernels over offsets; what does not change runs once, before
//! arena     which elements lie where: slots that are free again after the last use
//! kernel    one instruction over the arena, with sizes known at compile time where they are small
//! products  those of matrices
//! machine   all lines of a step as machine code, where they are about few numbers
//! run       the steps
//! stepwise  without an arena: the program of the body, once for each step
//! custom    functions with user-defined derivative rules
//! control   loops that end by a test or at a solution, and branches: their programs, run as an eager loop runs its body
//! ```
//!
//! A step over an arena allocates nothing, locks nothing and looks nothing up. A body with carries or xs of integers or of
//! several float types, and any body on another backend than the engine, is a program that runs once for each step. In a
//! compiled function the whole scan is one instruction either way. A body that draws random numbers or reads data runs step by
//! step, and the report says why. The reverse pass of a scan on a tape above is such a scan, too: see `t4a_scan::body`.

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

use burn_backend::DType;
use burn_t4a::ext::operation::{Operand, Operations};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{
    FixedPoint, Flat, Options, Repeated, Result, ScanBackend, ScanPath, ScanReport, Steps,
};
use t4a_scan::body::at;

use crate::backend::Traced;
use crate::call::Call;
use crate::fuse::is_engine;
use crate::operation::{Function, any, operand, value};
use crate::recording::{Execute, Frame, Level, Recording, innermost};
use crate::tensor::{Any, Node};
use crate::trace::{Source, parts, traced};
use stepwise::Stepwise;

/// A body that was recorded: consts, carry and x, then what it captured, are its inputs.
struct Body<B: Operations> {
    source: Source<B>,
    captured: Flat<Floats<Traced<B>>>,
    /// The numbers of consts, carries and xs.
    counts: [usize; 3],
    length: usize,
    reverse: bool,
}

/// The tensor below, and which value it is.
fn split<B: Operations>(x: &Operand<Traced<B>>) -> (Any<B>, Option<Node<B>>) {
    parts(any(x.clone()))
}

/// Records the body on the first step, whose results are not used.
fn record<B: Operations>(
    steps: &Steps<Floats<Traced<B>>>,
    consts: &[Operand<Traced<B>>],
    init: &[Operand<Traced<B>>],
    xs: &[Operand<Traced<B>>],
) -> Result<std::result::Result<Body<B>, &'static str>> {
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
    let inputs: Vec<Any<B>> =
        consts.iter().chain(init).map(below).chain(of_first).map(any).collect();
    let recording = Recording::new(&inputs, around);
    let enter = |(id, x): (usize, Any<B>)| {
        let node = Node { recording: recording.clone(), id };
        value(traced(x, Some(node)))
    };
    let mut inside = inputs.into_iter().enumerate().map(enter);
    let own: Vec<_> = inside.by_ref().take(consts.len()).collect();
    let carry = inside.by_ref().take(init.len()).collect();
    let level = Level::enter(recording.clone());
    let stepped = steps.step(&own, carry, inside.collect());
    drop(level);
    let (carry, y) = stepped?;
    let counts = [consts.len(), init.len(), xs.len()];
    // Results from outside are captured, too.
    let results: Vec<(Option<usize>, Any<B>)> = carry
        .into_iter()
        .chain(y)
        .map(|x| {
            let (value, node) = split(&x);
            (node.and_then(|node| recording.enter(&node, &value)), value)
        })
        .collect();
    let Ok(mut tape) = recording.close() else { return Ok(Err("host_read_in_body")) };
    let id = |(id, x): (Option<usize>, Any<B>)| id.unwrap_or_else(|| tape.constant(x));
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
    let body = Body { source, captured, counts, length, reverse };
    Ok(Ok(body.with_captured_inputs(&ids)))
}

impl<B: Operations> Body<B> {
    /// Numbers values anew, so that captured ones follow the other inputs.
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
            // Results are numbered one after the other, and nothing is captured between them.
            one.first = to.get(one.first).copied().unwrap_or(one.first);
        }
        self
    }
}

/// A body over an arena of either float type, or without one.
enum Compiled<B: Operations> {
    F32(build::Loop<f32, B>),
    F64(build::Loop<f64, B>),
    Stepwise(Stepwise<B>),
}

impl<B: Operations> Compiled<B> {
    fn new(body: &Body<B>) -> Self {
        let dtypes = body.source.metas.iter().map(|meta| meta.dtype);
        let in_arena = match dtypes.into_iter().find(|dtype| dtype.is_float()) {
            _ if !is_engine::<B>() => None,
            Some(DType::F32) => build::Loop::new(body, DType::F32).map(Self::F32).ok(),
            Some(DType::F64) => build::Loop::new(body, DType::F64).map(Self::F64).ok(),
            _ => None,
        };
        in_arena.unwrap_or_else(|| Self::Stepwise(Stepwise::new(body)))
    }

    /// The reason that a report states.
    fn reason(&self) -> &'static str {
        let coded = match self {
            Self::F32(x) => x.is_coded(),
            Self::F64(x) => x.is_coded(),
            Self::Stepwise(_) => return "body_program",
        };
        if coded { "machine_code" } else { "body_traced" }
    }

    fn run(&self, operands: Vec<Any<B>>) -> Result<Vec<Any<B>>> {
        match self {
            Self::F32(x) => Ok(x.run(operands)?),
            Self::F64(x) => Ok(x.run(operands)?),
            Self::Stepwise(x) => x.run(operands),
        }
    }
}

/// Runs what is one instruction of a function, and records it.
///
/// # Errors
/// Those of the run.
fn instruction<'a, B: Operations, E: fmt::Display>(
    name: &'static str,
    operands: impl IntoIterator<Item = &'a Operand<Traced<B>>>,
    run: impl Fn(Vec<Any<B>>) -> Result<Vec<Any<B>>, E> + Send + Sync + 'static,
) -> Result<Flat<Floats<Traced<B>>>, E> {
    let mut call = Call::new(name);
    operands.into_iter().for_each(|x| operand(&mut call, x));
    let run = move |frame: &mut Frame<B>, out: &mut Vec<Any<B>>| {
        let operands = (0..frame.0.len()).map(|at| frame.any(at)).collect();
        out.extend(run(operands)?);
        Ok::<_, E>(())
    };
    let ((), all, pending) = call.record(&run)?;
    let count = all.len();
    let step = move || -> Arc<dyn Execute<B>> {
        let run = move |frame: &mut Frame<B>, out: &mut Vec<Any<B>>| {
            run(frame, out).map_err(|error| error.to_string())
        };
        Arc::new(Function { run })
    };
    let mut all = pending.finish(all, step);
    Ok((0..count).map(|_| value(all.any())).collect())
}

impl<B: Operations> ScanBackend for Traced<B> {
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
        let body = match record(&steps, &consts, &init, &xs)? {
            Ok(body) => body,
            Err(reason) => {
                options.take_path(ScanReport { path: ScanPath::Fallback, reason, length })?;
                return steps.run(&consts, init, &xs);
            }
        };
        let compiled = Compiled::new(&body);
        let reason = compiled.reason();
        options.take_path(ScanReport { path: ScanPath::Fused, reason, length })?;
        let all = consts.iter().chain(&init).chain(&xs).chain(&body.captured);
        let compiled = Arc::new(compiled);
        let mut all = instruction("scan", all, move |operands| compiled.run(operands))?;
        let ys = all.split_off(body.counts[1]);
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
        _options: &Options,
    ) -> Result<Flat<Floats<Self>>> {
        control::iterate(repeated, all)
    }

    fn switch(
        index: Operand<Self>,
        branches: Vec<Steps<Floats<Self>>>,
        operands: Flat<Floats<Self>>,
    ) -> Result<Flat<Floats<Self>>> {
        control::switch(index, branches, operands)
    }
}
