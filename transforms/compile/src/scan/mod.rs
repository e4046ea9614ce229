//! Scans on the recording backend: the body is recorded once and runs as a program over an arena.
//!
//! ```text
//! build     instructions of the body → kernels over offsets; what does not change runs once, before
//! arena     which elements lie where: slots that are free again after the last use
//! kernel    one instruction over the arena, with sizes known at compile time where they are small
//! products  those of matrices
//! machine   all lines of a step as machine code, where they are about few numbers
//! run       the steps
//! ```
//!
//! A step allocates nothing, locks nothing and looks nothing up. In a compiled function the whole scan is
//! one instruction. What cannot run so (other dtypes than one float type but for integers between routines,
//! random numbers, data that is read) runs step by step, and the report says why. The reverse pass of a scan on
//! a tape above is such a scan, too: see `t4a_scan::body`.

mod arena;
mod build;
mod kernel;
#[cfg(feature = "jit")]
mod machine;
mod products;
mod run;

use std::sync::Arc;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Shape, Slice, TensorMetadata};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{Options, Result, ScanBackend, ScanPath, ScanReport, Steps};
use t4a_tensor::TensorError;

use crate::backend::Traced;
use crate::call::Call;
use crate::fuse::is_engine;
use crate::operation::Function;
use crate::recording::{Execute, Frame, Level, Recording, innermost};
use crate::tensor::{Any, FloatKind, Node, TracedTensor};
use crate::trace::{Source, traced};

type Flat<B> = Vec<FloatTensor<B>>;

/// A body that was recorded: consts, carry and x, then what it captured, are its inputs.
struct Body<B: Backend> {
    source: Source<B>,
    captured: Vec<TracedTensor<B, FloatKind>>,
    /// How many consts, carries and xs there are.
    counts: [usize; 3],
    length: usize,
    reverse: bool,
}

/// The element of the leading axis that the first step is about.
fn element<B: Backend>(x: &FloatTensor<B>, at: usize) -> FloatTensor<B> {
    let shape = x.shape();
    let of: Shape = match shape.num_dims() {
        1 => Shape::from([1]),
        _ => shape.iter().skip(1).copied().collect(),
    };
    let at = Slice::new(at as isize, Some(at as isize + 1), 1);
    B::float_reshape(B::float_slice(x.clone(), &[at]), of)
}

/// Records the body on the first step, whose results are not used.
fn record<B: Operations>(
    steps: &Steps<Floats<Traced<B>>>,
    consts: &Flat<Traced<B>>,
    init: &Flat<Traced<B>>,
    xs: &Flat<Traced<B>>,
) -> Result<std::result::Result<Body<B>, &'static str>> {
    let length = steps.length();
    if length == 0 {
        return Ok(Err("no_steps"));
    }
    if !is_engine::<B>() {
        return Ok(Err("backend_not_t4a"));
    }
    let all = consts.iter().chain(init).chain(xs);
    let around = all.clone().find_map(|x| x.node.as_ref()).map(|node| node.recording.clone());
    let around = around.or_else(innermost);
    let first = |x: &TracedTensor<B, FloatKind>| element::<B>(&x.primitive, steps.time(0));
    let inputs: Vec<Any<B>> = consts
        .iter()
        .chain(init)
        .map(|x| x.primitive.clone())
        .chain(xs.iter().map(first))
        .map(Any::Float)
        .collect();
    let recording = Recording::new(&inputs, around);
    let enter = |(id, x): (usize, Any<B>)| {
        let node = Node { recording: recording.clone(), id };
        match traced(x, Some(node)) {
            Any::Float(x) => x,
            _ => unreachable!("inputs are floats"),
        }
    };
    let mut inside = inputs.into_iter().enumerate().map(enter);
    let mut inside = inside.by_ref().map(Floats::<Traced<B>>);
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
            let value = Any::Float(x.0.primitive);
            (x.0.node.and_then(|node| recording.enter(&node, &value)), value)
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
        let Any::Float(primitive) = x else { return Ok(Err("captured_integers")) };
        ids.push(id);
        captured.push(TracedTensor { primitive, node: Some(node) });
    }
    let reverse = length > 1 && steps.time(0) > steps.time(1);
    let body = Body { source, captured, counts, length, reverse };
    Ok(Ok(body.with_captured_inputs(&ids)))
}

impl<B: Backend> Body<B> {
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

/// A body of either float type.
enum Compiled<B: Backend> {
    F32(build::Loop<f32, B>),
    F64(build::Loop<f64, B>),
}

impl<B: Backend> Compiled<B> {
    fn new(body: &Body<B>) -> std::result::Result<Self, &'static str> {
        let dtype = body.source.metas.first().map(|meta| meta.dtype);
        match dtype {
            Some(DType::F32) => build::Loop::new(body, DType::F32).map(Self::F32),
            Some(DType::F64) => build::Loop::new(body, DType::F64).map(Self::F64),
            _ => Err("dtype_unsupported"),
        }
    }

    /// The reason that a report states: kernels or machine code.
    fn reason(&self) -> &'static str {
        let coded = match self {
            Self::F32(x) => x.is_coded(),
            Self::F64(x) => x.is_coded(),
        };
        if coded { "machine_code" } else { "body_traced" }
    }

    fn run(&self, operands: Vec<Any<B>>) -> t4a_tensor::Result<Vec<Any<B>>> {
        match self {
            Self::F32(x) => x.run(operands),
            Self::F64(x) => x.run(operands),
        }
    }
}

impl<B: Operations> ScanBackend for Traced<B> {
    fn chooses_path() -> bool {
        true
    }

    fn scan(
        steps: Steps<Floats<Self>>,
        consts: Vec<Floats<Self>>,
        init: Vec<Floats<Self>>,
        xs: Vec<Floats<Self>>,
        options: &Options,
    ) -> Result<[Vec<Floats<Self>>; 2]> {
        let length = steps.length();
        let flat = |xs: &Vec<Floats<Self>>| xs.iter().map(|x| x.0.clone()).collect();
        let operands: [Flat<Self>; 3] = [flat(&consts), flat(&init), flat(&xs)];
        let [of_consts, of_init, of_xs] = &operands;
        let made = record(&steps, of_consts, of_init, of_xs)?
            .and_then(|body| Compiled::new(&body).map(|compiled| (body, compiled)));
        let (body, compiled) = match made {
            Ok(made) => made,
            Err(reason) => {
                options.take_path(ScanReport { path: ScanPath::Fallback, reason, length })?;
                return steps.run(&consts, init, &xs);
            }
        };
        let reason = compiled.reason();
        options.take_path(ScanReport { path: ScanPath::Fused, reason, length })?;
        let mut call = Call::new("scan");
        for x in operands.into_iter().flatten().chain(body.captured) {
            call.operand(x);
        }
        let compiled = Arc::new(compiled);
        let run = move |frame: &mut Frame<B>, out: &mut Vec<Any<B>>| {
            let operands = (0..frame.0.len()).map(|at| frame.any(at)).collect();
            out.extend(compiled.run(operands)?);
            Ok::<_, TensorError>(())
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
        let mut all: Vec<Floats<Self>> =
            (0..count).map(|_| Floats(all.take::<FloatKind>())).collect();
        let ys = all.split_off(body.counts[1]);
        Ok([all, ys])
    }
}
