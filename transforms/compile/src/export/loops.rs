//! Recorded loops and branches as `stablehlo.while` and `stablehlo.case`.
//!
//! ```text
//! scan         number of the step, carry, ys, consts, xs, captured = while(0, init, zeros, consts, xs, captured)
//!                  k < n
//!                  body(consts, carry, xs[t], captured), with t = k or n − 1 − k; ys[t] = y; k + 1
//! while_loop   carry, consts, captured = while(init, consts, captured)
//!                  test(consts, carry, captured)
//!                  body(consts, carry, captured)
//! fixed_point  number of the step, converged, carry, consts, captured = while(0, false, init, consts, captured)
//!                  k < n and not converged
//!                  body(consts, carry, captured); change ≤ tolerance · (1 + size); k + 1
//! switch       case(index): branch(operands, captured)
//! ```

use burn_backend::Backend;
use burn_t4a::ext::scan::FixedPoint;

use super::text::{ModuleText, Ssa, Type, array};
use super::{ExportError, program};
use crate::recording::{LoopBody, NestedPrograms};
use crate::tensor::TensorType;

/// Results of an instruction with recorded programs.
///
/// # Errors
/// Those of the instructions of the programs.
pub(super) fn write<B: Backend>(
    text: &mut ModuleText,
    nested: &NestedPrograms<B>,
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    match nested {
        NestedPrograms::Scan(body) => scan(text, body, operands, results),
        NestedPrograms::While(bodies) => while_loop(text, bodies, operands, results),
        NestedPrograms::Switch(branches) => switch(text, branches, operands, results),
        NestedPrograms::FixedPoint(body, settings) => {
            fixed_point(text, body, settings, operands, results)
        }
    }
}

/// Final carry and ys of a scan over `operands`: consts, init, xs and captured values.
///
/// # Errors
/// Those of the instructions of the body.
fn scan<B: Backend>(
    text: &mut ModuleText,
    body: &LoopBody<B>,
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    let [consts, carries, xs] = body.counts;
    let (fixed, rest) = operands.split_at(consts);
    let (init, rest) = rest.split_at(carries);
    let mut state = vec![text.full(0.0, &[], Type::INDEX)];
    state.extend(typed(text, init, results)?);
    for meta in &results[carries..] {
        let of = Type::of(meta)?;
        state.push(text.full(0.0, &meta.shape, of));
    }
    state.extend(fixed.iter().chain(rest).cloned());

    let condition = text.region_of(&state, |text, state| {
        let length = text.full(body.length as f64, &[], Type::INDEX);
        Ok(vec![text.compare("LT", &state[0], &length)])
    })?;
    let step = text.region_of(&state, |text, state| {
        let (loop_state, rest) = state.split_at(1 + results.len());
        let (fixed, rest) = rest.split_at(consts);
        let (xs, captured) = rest.split_at(xs);
        let last = text.full(body.length as f64 - 1.0, &[], Type::INDEX);
        let one = text.full(1.0, &[], Type::INDEX);
        let at = match body.reverse {
            true => text.map("subtract", &[&last, &loop_state[0]]),
            false => loop_state[0].clone(),
        };
        let mut inputs = fixed.to_vec();
        inputs.extend_from_slice(&loop_state[1..=carries]);
        for (k, x) in xs.iter().enumerate() {
            let of_step = text.element(x, &at);
            inputs.push(text.reshape(&of_step, &body.source.metas[consts + carries + k].shape));
        }
        inputs.extend_from_slice(captured);
        let stepped = program(text, &body.source, inputs)?;
        let mut next = vec![text.map("add", &[&loop_state[0], &one])];
        next.extend(text.in_types_of(&stepped[..carries], &loop_state[1..]));
        for (y, all) in stepped[carries..].iter().zip(&loop_state[1 + carries..]) {
            let y = text.convert(y, all.of);
            next.push(text.with_element(all, &y, &at));
        }
        next.extend_from_slice(&state[1 + results.len()..]);
        Ok(next)
    })?;
    let mut all = text.repeat(&condition, &step, &state);
    Ok(all.drain(1..=results.len()).collect())
}

/// Values in the types of the results.
///
/// # Errors
/// `Type`.
fn typed(
    text: &mut ModuleText,
    values: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    let one = |(x, meta): (&Ssa, _)| Ok(text.convert(x, Type::of(meta)?));
    values.iter().zip(results).map(one).collect()
}

impl<B: Backend> LoopBody<B> {
    /// Writes the program of a body without xs, whose captured values begin at index `at` of `fixed`; its outputs.
    ///
    /// # Errors
    /// Those of its instructions.
    fn write(
        &self,
        text: &mut ModuleText,
        (fixed, at): (&[Ssa], usize),
        carry: &[Ssa],
    ) -> Result<Vec<Ssa>, ExportError> {
        let captured = &fixed[at..at + self.captured()];
        program(text, &self.source, [&fixed[..self.counts[0]], carry, captured].concat())
    }

    /// Number of captured values.
    fn captured(&self) -> usize {
        self.source.inputs - self.counts.iter().sum::<usize>()
    }
}

/// Final carry of a while loop. The number of its steps is not bounded.
///
/// # Errors
/// Those of the instructions of test and body.
fn while_loop<B: Backend>(
    text: &mut ModuleText,
    [test, body]: &[LoopBody<B>; 2],
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    let (consts, carries) = (body.counts[0], results.len());
    let (fixed, init) = operands.split_at(operands.len() - carries);
    let mut state = typed(text, init, results)?;
    state.extend_from_slice(fixed);
    let condition = text.region_of(&state, |text, state| {
        let (carry, fixed) = state.split_at(carries);
        let outputs = test.write(text, (fixed, consts), carry)?;
        Ok(outputs[carries..].iter().map(|holds| text.truth(holds)).collect())
    })?;
    let step = text.region_of(&state, |text, state| {
        let (carry, fixed) = state.split_at(carries);
        let next = body.write(text, (fixed, consts + test.captured()), carry)?;
        let mut next = text.in_types_of(&next, carry);
        next.extend_from_slice(fixed);
        Ok(next)
    })?;
    let mut all = text.repeat(&condition, &step, &state);
    all.truncate(carries);
    Ok(all)
}

/// Solution of `x = f(x)` by iteration; NaN if it does not converge.
///
/// # Errors
/// Those of the instructions of the body.
fn fixed_point<B: Backend>(
    text: &mut ModuleText,
    body: &LoopBody<B>,
    settings: &FixedPoint,
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    let (consts, carries) = (body.counts[0], results.len());
    let (fixed, init) = operands.split_at(operands.len() - carries);
    let mut state = vec![text.full(0.0, &[], Type::INDEX), text.full(0.0, &[], Type::BOOL)];
    state.extend(typed(text, init, results)?);
    state.extend_from_slice(fixed);
    let condition = text.region_of(&state, |text, state| {
        let most = text.full(settings.steps as f64, &[], Type::INDEX);
        let more = text.compare("LT", &state[0], &most);
        let open = text.map("not", &[&state[1]]);
        Ok(vec![text.map("and", &[&more, &open])])
    })?;
    let step = text.region_of(&state, |text, state| {
        let (carry, fixed) = state[2..].split_at(carries);
        let next = body.write(text, (fixed, consts), carry)?;
        let next = text.in_types_of(&next, carry);
        let [mut change, mut size] = [0; 2].map(|_| text.full(0.0, &[], Type::DOUBLE));
        for (old, new) in carry.iter().zip(&next) {
            let difference = text.map("subtract", &[new, old]);
            for (all, x) in [(&mut change, &difference), (&mut size, new)] {
                let x = text.map("abs", &[x]);
                let axes: Vec<usize> = (0..x.rank()).collect();
                let largest = text.reduce(&x, &axes, "maximum", 0.0);
                let largest = text.convert(&largest, Type::DOUBLE);
                *all = text.map("maximum", &[all, &largest]);
            }
        }
        let size = text.with("add", &size, 1.0);
        let change = text.map("divide", &[&change, &size]);
        let tolerance = text.full(settings.tolerance, &[], Type::DOUBLE);
        let converged = text.compare("LE", &change, &tolerance);
        let count = text.with("add", &state[0], 1.0);
        Ok([&[count, converged], &next[..], fixed].concat())
    })?;
    let all = text.repeat(&condition, &step, &state);
    let solution = all[2..2 + carries].iter().map(|x| {
        let nan = text.full(f64::NAN, &x.shape, x.of);
        text.select(&all[1], x, &nan)
    });
    Ok(solution.collect())
}

/// Results of the branch that the index selects: the first for negative ones, the last for those that are too large.
///
/// # Errors
/// Those of the instructions of the branches.
fn switch<B: Backend>(
    text: &mut ModuleText,
    branches: &[LoopBody<B>],
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    let (index, operands) = (&operands[0], &operands[1..]);
    let index = text.reshape(index, &[]);
    let index = if index.of == Type::BOOL { text.convert(&index, Type::BRANCH) } else { index };
    let index = text.with("maximum", &index, 0.0);
    let index = text.with("minimum", &index, branches.len().saturating_sub(1) as f64);
    let index = text.convert(&index, Type::BRANCH);
    let (mut regions, mut at) = (Vec::new(), branches.first().map_or(0, |one| one.counts[0]));
    for branch in branches {
        regions.push(text.region_of(&[], |text, _| {
            let outputs = branch.write(text, (operands, at), &[])?;
            typed(text, &outputs, results)
        })?);
        at += branch.captured();
    }
    let one = |meta: &TensorType| Ok((meta.shape.clone(), Type::of(meta)?));
    let types = results.iter().map(one).collect::<Result<_, ExportError>>()?;
    Ok(text.ops("stablehlo.case", &[&index], &format!("({})", regions.join(", ")), types))
}

impl ModuleText {
    /// A loop over values, from the regions of its condition and of its step.
    fn repeat(&mut self, condition: &str, step: &str, state: &[Ssa]) -> Vec<Ssa> {
        let types = state.iter().map(|x| (x.shape.clone(), x.of)).collect();
        let operands: Vec<&Ssa> = state.iter().collect();
        self.ops("stablehlo.while", &operands, &format!("({condition}, {step})"), types)
    }

    /// Values in the types and shapes of others.
    fn in_types_of(&mut self, values: &[Ssa], like: &[Ssa]) -> Vec<Ssa> {
        let mut one = |(x, like): (&Ssa, &Ssa)| {
            let x = self.convert(x, like.of);
            self.reshape(&x, &like.shape)
        };
        values.iter().zip(like).map(&mut one).collect()
    }

    /// One element as a truth value.
    fn truth(&mut self, x: &Ssa) -> Ssa {
        let x = self.convert(x, Type::BOOL);
        self.reshape(&x, &[])
    }

    /// Coordinates of an element of the first axis: its index, and zeros.
    fn start(&mut self, at: &Ssa, rank: usize) -> Vec<Ssa> {
        let zero = self.full(0.0, &[], Type::INDEX);
        let mut all = vec![at.clone()];
        all.resize(rank, zero);
        all
    }

    /// Element of the first axis, which becomes an axis of size 1.
    fn element(&mut self, x: &Ssa, at: &Ssa) -> Ssa {
        let start = self.start(at, x.rank());
        let shape = [&[1], &x.shape[1..]].concat();
        let operands: Vec<&Ssa> = [x].into_iter().chain(&start).collect();
        let sizes = format!("{{slice_sizes = {}}}", array(&shape));
        self.op("stablehlo.dynamic_slice", &operands, &sizes, &shape, x.of)
    }

    /// The tensor with another element of the first axis.
    fn with_element(&mut self, x: &Ssa, y: &Ssa, at: &Ssa) -> Ssa {
        let start = self.start(at, x.rank());
        let y = self.reshape(y, &[&[1], &x.shape[1..]].concat());
        let operands: Vec<&Ssa> = [x, &y].into_iter().chain(&start).collect();
        self.op("stablehlo.dynamic_update_slice", &operands, "", &x.shape, x.of)
    }
}
