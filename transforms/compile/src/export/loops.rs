//! Recorded scans as `stablehlo.while`.
//!
//! ```text
//! %k: number of the step, carry, ys, consts, xs, captured = while(0, init, zeros, consts, xs, captured)
//!     k < n
//!     body(consts, carry, xs[t], captured), with t = k or n − 1 − k; ys[t] = y; k + 1
//! ```

use burn_backend::Backend;

use super::text::{ModuleText, Ssa, Type, array};
use super::{ExportError, program};
use crate::recording::LoopBody;
use crate::tensor::TensorType;

/// Final carry and ys of a scan over `operands`: consts, init, xs and captured values.
///
/// # Errors
/// Those of the instructions of the body.
pub(super) fn write<B: Backend>(
    text: &mut ModuleText,
    body: &LoopBody<B>,
    operands: &[Ssa],
    results: &[TensorType],
) -> Result<Vec<Ssa>, ExportError> {
    let [consts, carries, xs] = body.counts;
    let (fixed, rest) = operands.split_at(consts);
    let (init, rest) = rest.split_at(carries);
    let mut state = vec![text.full(0.0, &[], Type::INDEX)];
    for (x, meta) in init.iter().zip(results) {
        state.push(text.convert(x, Type::of(meta)?));
    }
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
        for (x, before) in stepped[..carries].iter().zip(&loop_state[1..]) {
            let x = text.convert(x, before.of);
            next.push(text.reshape(&x, &before.shape));
        }
        for (y, all) in stepped[carries..].iter().zip(&loop_state[1 + carries..]) {
            let y = text.convert(y, all.of);
            next.push(text.with_element(all, &y, &at));
        }
        next.extend_from_slice(&state[1 + results.len()..]);
        Ok(next)
    })?;
    let types = state.iter().map(|x| (x.shape.clone(), x.of)).collect();
    let operands: Vec<&Ssa> = state.iter().collect();
    let mut all = text.ops("stablehlo.while", &operands, &format!("({condition}, {step})"), types);
    Ok(all.drain(1..=results.len()).collect())
}

impl ModuleText {
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
