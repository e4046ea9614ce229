//! Programs over the engine's tensors, compiled in this crate.
//!
//! A generic function is compiled in the crate that calls it with concrete types, and with the optimisation of that crate:
//! in a debug build little or none. The functions of this module without type parameters contain the passes, the
//! interpreter, fused groups, scans and the methods of `BurnT4a`; those with type parameters select them, and convert
//! between two names of the same type. Steps without words, which are operations beyond Burn's methods, remain in the
//! crate that records them.

use std::any::Any as Dynamic;
use std::sync::Arc;

use burn_backend::Backend;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;

use crate::error::Result;
use crate::fuse::same;
use crate::methods::{NamedStep, make};
use crate::program::Program;
use crate::recording::LoopBody;
use crate::scan::{ExecuteBody, executable};
use crate::tensor::AnyPrimitive;
use crate::trace::Source;

/// The value as one of another type, if that is its type.
fn cast<X: 'static, Y: 'static>(x: &X) -> Option<&Y> {
    (x as &dyn Dynamic).downcast_ref()
}

/// Program of a recording.
pub(crate) fn program<B: Backend>(source: &Source<B>, fused: bool) -> Program<B> {
    match cast(source) {
        Some(source) => same(engine_program(source, fused)),
        None => Program::new(source.clone(), fused),
    }
}

/// Executes a program; see [`Program::interpret`].
pub(crate) fn run<B: Backend>(
    program: &Program<B>,
    inputs: Vec<AnyPrimitive<B>>,
    checked: bool,
) -> Result<Vec<AnyPrimitive<B>>> {
    match cast(program) {
        Some(program) => engine_run(program, same(inputs), checked).map(same),
        None => program.interpret(inputs, checked),
    }
}

/// Executable form of the body of a scan.
pub(crate) fn body<B: Operations>(body: &LoopBody<B>) -> Arc<dyn ExecuteBody<B>> {
    match cast(body) {
        Some(body) => same(engine_body(body)),
        None => executable(body),
    }
}

fn engine_program(source: &Source<BurnT4a>, fused: bool) -> Program<BurnT4a> {
    Program::new(rebuilt(source), fused)
}

fn engine_run(
    program: &Program<BurnT4a>,
    inputs: Vec<AnyPrimitive<BurnT4a>>,
    checked: bool,
) -> Result<Vec<AnyPrimitive<BurnT4a>>> {
    program.interpret(inputs, checked)
}

fn engine_body(body: &LoopBody<BurnT4a>) -> Arc<dyn ExecuteBody<BurnT4a>> {
    executable(&LoopBody { source: rebuilt(&body.source), ..*body })
}

/// The recording with the methods of this crate in place of those of the crate that recorded them. Only in debug builds:
/// in others both are optimised, and the first use of all methods in a process would cost 4 ms.
fn rebuilt(source: &Source<BurnT4a>) -> Source<BurnT4a> {
    let mut source = source.clone();
    if !cfg!(debug_assertions) {
        return source;
    }
    for one in &mut source.instructions {
        let words = one.step.words();
        if let Some(NamedStep { made, .. }) =
            words.and_then(|words| make::<BurnT4a>(one.name, &words))
        {
            one.step = made.step;
        }
    }
    source
}
