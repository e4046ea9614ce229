//! Stepwise execution of a recorded body by its program, for any dtypes and backends.

use burn_t4a::ext::operation::{Operand, Operations};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{Flat, Options, Result, ScanError, Steps};
use burn_t4a::ext::tree::Structure;
use t4a_tensor::TensorError;

use crate::engine;
use crate::operation::{any, value};
use crate::recording::LoopBody;
use crate::tensor::AnyPrimitive;

/// Steps that run the program of the body. Their consts are those of the body, then its captured values.
pub(super) fn steps<B: Operations>(body: &LoopBody<B>) -> Steps<Floats<B>> {
    let [consts, carries, xs] = body.counts;
    let program = engine::program(&body.source, true);
    let step = move |mut all: Flat<Floats<B>>, carry: Flat<Floats<B>>, x: Flat<Floats<B>>| {
        let captured = all.split_off(consts);
        let inputs = all.into_iter().chain(carry).chain(x).chain(captured).map(any).collect();
        let failed = |error| ScanError::from(TensorError::value("scan", format!("{error}")));
        let mut results = engine::run(&program, inputs, false).map_err(failed)?;
        let y = results.split_off(carries);
        let flat = |all: Vec<AnyPrimitive<B>>| all.into_iter().map(value).collect();
        Ok((flat(results), flat(y)))
    };
    let leaves = |n| Structure::Node(vec![Structure::Leaf; n]);
    let options = Options::default().length(body.length).reverse(body.reverse);
    let steps = Steps::new(step, (&[], &leaves(xs)), &leaves(carries), &options);
    steps.unwrap_or_else(|_| unreachable!("the length is given"))
}

/// Scan that runs the program of its body once per step.
pub(super) struct Stepwise<B: Operations> {
    steps: Steps<Floats<B>>,
    counts: [usize; 3],
}

impl<B: Operations> Stepwise<B> {
    pub(super) fn new(body: &LoopBody<B>) -> Self {
        Self { steps: steps(body), counts: body.counts }
    }

    /// Returns the final carry and the ys. The operands are consts, the initial carry, xs and the captured values.
    pub(super) fn run(&self, operands: Vec<AnyPrimitive<B>>) -> Result<Vec<AnyPrimitive<B>>> {
        let [consts, carries, xs] = self.counts;
        let mut all = operands.into_iter().map(value);
        let mut next = |n| all.by_ref().take(n).collect::<Vec<Operand<B>>>();
        let (consts, init, xs) = (next(consts), next(carries), next(xs));
        let consts: Vec<Operand<B>> = consts.into_iter().chain(all).collect();
        let results = self.steps.run(&consts, init, &xs)?;
        Ok(results.into_iter().flatten().map(any).collect())
    }
}
