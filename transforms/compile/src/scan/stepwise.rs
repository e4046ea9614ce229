//! A recorded body as steps whose body is its program: for values of any dtypes, on any backend.

use burn_t4a::ext::operation::{Operand, Operations};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::{Flat, Options, Result, ScanError, Steps};
use burn_t4a::ext::tree::Structure;
use t4a_tensor::TensorError;

use super::Body;
use crate::operation::{any, value};
use crate::program::Program;
use crate::tensor::Any;

/// Steps whose consts are those of the body and then what it captured.
pub(super) fn steps<B: Operations>(body: &Body<B>) -> Steps<Floats<B>> {
    let [consts, carries, xs] = body.counts;
    let program = Program::new(&body.source, true);
    let step = move |mut all: Flat<Floats<B>>, carry: Flat<Floats<B>>, x: Flat<Floats<B>>| {
        let captured = all.split_off(consts);
        let inputs = all.into_iter().chain(carry).chain(x).chain(captured).map(any).collect();
        let failed = |error| ScanError::from(TensorError::value("scan", format!("{error}")));
        let mut results = program.run(inputs, false).map_err(failed)?;
        let y = results.split_off(carries);
        let flat = |all: Vec<Any<B>>| all.into_iter().map(value).collect();
        Ok((flat(results), flat(y)))
    };
    let leaves = |n| Structure::Node(vec![Structure::Leaf; n]);
    let options = Options::default().length(body.length).reverse(body.reverse);
    let steps = Steps::new(step, (&[], &leaves(xs)), &leaves(carries), &options);
    steps.unwrap_or_else(|_| unreachable!("the length is given"))
}

/// A scan as the program of its body, once for each step.
pub(super) struct Stepwise<B: Operations> {
    steps: Steps<Floats<B>>,
    counts: [usize; 3],
}

impl<B: Operations> Stepwise<B> {
    pub(super) fn new(body: &Body<B>) -> Self {
        Self { steps: steps(body), counts: body.counts }
    }

    /// The last carry and all ys of consts, the first carry, xs and captured values.
    pub(super) fn run(&self, operands: Vec<Any<B>>) -> Result<Vec<Any<B>>> {
        let [consts, carries, xs] = self.counts;
        let mut all = operands.into_iter().map(value);
        let mut next = |n| all.by_ref().take(n).collect::<Vec<Operand<B>>>();
        let (consts, init, xs) = (next(consts), next(carries), next(xs));
        let consts: Vec<Operand<B>> = consts.into_iter().chain(all).collect();
        let results = self.steps.run(&consts, init, &xs)?;
        Ok(results.into_iter().flatten().map(any).collect())
    }
}
