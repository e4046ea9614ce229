//! While loops, fixed points and branches as single instructions. Their bodies are recorded once and run as programs; tests,
//! branch indices and convergence are evaluated when the compiled function runs, not when it is recorded.

use burn_t4a::ext::operation::{Operand, Operations};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{
    FixedPoint, Flat, Method, Options, Repeated, Result, ScanBackend, ScanError, Steps,
};
use t4a_scan::body;
use t4a_tensor::TensorError;

use super::{RecordedBody, instruction, record, stepwise};
use crate::backend::Traced;
use crate::operation::{any, value};
use crate::recording::NestedPrograms;
use crate::tensor::AnyPrimitive;

type RecordedLeaves<B> = Flat<Floats<Traced<B>>>;

/// Records the body of a loop or a branch.
///
/// # Errors
/// The errors of the body. The inner error is the reason for which a body cannot be recorded.
fn recorded<B: Operations>(
    steps: &Steps<Floats<Traced<B>>>,
    consts: &[Operand<Traced<B>>],
    carry: &[Operand<Traced<B>>],
    x: &[Operand<Traced<B>>],
) -> Result<std::result::Result<RecordedBody<B>, &'static str>> {
    // `record` expects xs with a leading axis of steps.
    let stacked = |x: &Operand<Traced<B>>| x.reshape(&[&[1], &x.shape()[..]].concat());
    record(steps, consts, carry, &x.iter().map(stacked).collect::<Vec<_>>())
}

/// Steps on the inner backend. The captured values are read from the consts, from index `at` on.
fn with_captured<B: Operations>(body: &RecordedBody<B>, at: usize) -> Steps<Floats<B>> {
    let (own, consts, captured) =
        (stepwise::steps(&body.program), body.program.counts[0], body.captured.len());
    let steps = own.clone();
    steps.with_body(move |all: Flat<Floats<B>>, carry, x| {
        let consts = [&all[..consts], &all[at..at + captured]].concat();
        own.step(&consts, carry, x)
    })
}

/// Final carry of a while loop, or the result of its reverse pass, as one instruction.
///
/// # Errors
/// The errors of the steps.
pub(super) fn iterate<B: ScanBackend>(
    repeated: Repeated<Floats<Traced<B>>>,
    [consts, init, given]: [RecordedLeaves<B>; 3],
    options: &Options,
) -> Result<RecordedLeaves<B>> {
    let Repeated { test, body, back, limit } = &repeated;
    let back = back.as_ref().map(|back| recorded(back, &consts, &given, &init)).transpose()?;
    let bodies = (recorded(test, &consts, &init, &[])?, recorded(body, &consts, &init, &[])?);
    let (test, body, back) = match (bodies, back.transpose()) {
        ((Ok(test), Ok(body)), Ok(back)) => (test, body, back),
        // Executed eagerly: reading the test ends the recording, with an error that names the reason.
        _ => return body::iterate(&repeated, &consts, init, given),
    };
    let mut captured: RecordedLeaves<B> = Vec::new();
    let mut below = |body: &RecordedBody<B>| {
        let at = consts.len() + captured.len();
        captured.extend(body.captured.iter().cloned());
        with_captured(body, at)
    };
    let below = Repeated {
        test: below(&test),
        body: below(&body),
        back: back.as_ref().map(below),
        limit: *limit,
    };
    let counts = [consts.len() + captured.len(), init.len()];
    // The reverse pass keeps all carries, whose number is not known before the loop ends.
    let nested = match back {
        None => Some(NestedPrograms::While([test.program, body.program])),
        Some(_) => None,
    };
    let options = options.clone();
    let run = move |all: Vec<AnyPrimitive<B>>| {
        let mut all = all.into_iter().map(value);
        let consts = all.by_ref().take(counts[0]).collect();
        let init = all.by_ref().take(counts[1]).collect();
        let last = B::iterate(below.clone(), [consts, init, all.collect()], &options)?;
        Ok(last.into_iter().map(any).collect())
    };
    let all = consts.iter().chain(&captured).chain(&init).chain(&given);
    instruction("while_loop", nested, all, run)
}

/// Fixed point as one instruction that iterates the program of its body.
///
/// # Errors
/// The errors of the steps.
pub(super) fn fixed_point<B: ScanBackend>(
    steps: Steps<Floats<Traced<B>>>,
    consts: RecordedLeaves<B>,
    init: RecordedLeaves<B>,
    settings: &FixedPoint,
) -> Result<RecordedLeaves<B>> {
    let Ok(body) = recorded(&steps, &consts, &init, &[])? else {
        return body::fixed_point(&steps, &consts, init, settings);
    };
    let (below, settings) = (with_captured(&body, consts.len()), *settings);
    let count = consts.len() + body.captured.len();
    let run = move |all: Vec<AnyPrimitive<B>>| {
        let mut consts: Vec<Operand<B>> = all.into_iter().map(value).collect();
        let init = consts.split_off(count);
        let x = B::fixed_point(below.clone(), consts, init, &settings)?;
        Ok(x.into_iter().map(any).collect())
    };
    let nested = match settings.method {
        Method::Iterate => Some(NestedPrograms::FixedPoint(body.program, settings)),
        Method::Broyden(_) => None,
    };
    instruction("fixed_point", nested, consts.iter().chain(&body.captured).chain(&init), run)
}

/// Results of the branch selected by an index, as one instruction that contains the programs of all branches.
///
/// # Errors
/// The errors of the branches; `Branches` if their results differ in number, shape or dtype.
pub(super) fn switch<B: ScanBackend>(
    index: Operand<Traced<B>>,
    branches: Vec<Steps<Floats<Traced<B>>>>,
    operands: RecordedLeaves<B>,
) -> Result<RecordedLeaves<B>> {
    let mut bodies: Vec<RecordedBody<B>> = Vec::new();
    for branch in &branches {
        match recorded(branch, &operands, &[], &[])? {
            Ok(body) => bodies.push(body),
            Err(_) => return body::switch(&index, &branches, &operands),
        }
    }
    let metas = |body: &RecordedBody<B>| {
        let of = |id: &usize| body.program.source.metas[*id].clone();
        body.program.source.outputs.iter().map(of).collect::<Vec<_>>()
    };
    if let Some(first) = bodies.first().map(metas)
        && let Some(branch) = bodies.iter().position(|body| metas(body) != first)
    {
        let [first, other] = [&first, &metas(&bodies[branch])].map(|all| {
            let all: Vec<String> = all.iter().map(ToString::to_string).collect();
            format!("({})", all.join(", "))
        });
        return Err(ScanError::Branches { branch, first, other });
    }
    let mut captured: RecordedLeaves<B> = Vec::new();
    let below = |body: &RecordedBody<B>| {
        let at = operands.len() + captured.len();
        captured.extend(body.captured.iter().cloned());
        with_captured(body, at)
    };
    let below: Vec<Steps<Floats<B>>> = bodies.iter().map(below).collect();
    let run = move |all: Vec<AnyPrimitive<B>>| {
        let mut all = all.into_iter().map(value);
        let index = all.next().ok_or_else(|| TensorError::value("switch", "no index"))?;
        Ok(B::switch(index, below.clone(), all.collect())?.into_iter().map(any).collect())
    };
    let nested = NestedPrograms::Switch(bodies.into_iter().map(|body| body.program).collect());
    instruction(
        "switch",
        Some(nested),
        std::iter::once(&index).chain(&operands).chain(&captured),
        run,
    )
}
