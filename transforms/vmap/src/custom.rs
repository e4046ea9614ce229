//! Functions with user-defined derivative rules.
//!
//! Over backends without derivatives the function runs on the batch. Over others the rule is theirs, with methods that run
//! on a batch: results have a batch axis, and the cotangent of a shared argument is the sum over examples.

use std::sync::{Arc, Mutex, PoisonError};

use burn_backend::{Shape, TensorMetadata};
use burn_t4a::ext::custom::{CustomBackend, JvpRule, OperandList, Paired, Pulled, Result, VjpRule};
use burn_t4a::ext::operation::{Operand, Value};
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::scan::Level;

use crate::backend::Vmap;
use crate::operations::size_of;
use crate::tensor::common;

/// A rule whose methods run on a batch.
#[derive(Clone)]
struct BatchedRule<R> {
    rule: R,
    /// None if no argument is batched: then nothing is.
    size: Option<usize>,
    /// Batch sizes of the arguments; none for shared ones.
    arguments: Vec<Option<usize>>,
    /// Those of the residuals, once they have been computed.
    residuals: Arc<Mutex<Vec<Option<usize>>>>,
}

fn raised<B: CustomBackend>(
    all: OperandList<B>,
    sizes: impl IntoIterator<Item = Option<usize>>,
) -> OperandList<Vmap<B>> {
    let one = |(x, size)| Vmap::<B>::raise(vec![x], size, false);
    all.into_iter().zip(sizes).map(one).collect()
}

fn lowered<B: CustomBackend>(x: Operand<Vmap<B>>, size: Option<usize>) -> Operand<B> {
    let only = Vmap::<B>::lower(x, size, false).pop();
    only.unwrap_or_else(|| unreachable!("every form has one part"))
}

fn sizes<B: CustomBackend>(all: &[Operand<Vmap<B>>]) -> Vec<Option<usize>> {
    all.iter().map(size_of).collect()
}

impl<R> BatchedRule<R> {
    fn batched<B: CustomBackend>(&self, all: OperandList<Vmap<B>>) -> OperandList<B> {
        all.into_iter().map(|x| lowered(x, self.size)).collect()
    }

    fn examples<B: CustomBackend>(&self, all: OperandList<B>) -> OperandList<Vmap<B>> {
        raised(all, std::iter::repeat(self.size))
    }

    fn arguments<B: CustomBackend>(&self, x: OperandList<B>) -> OperandList<Vmap<B>> {
        raised(x, self.arguments.iter().copied())
    }

    /// The cotangent of an argument: that of a shared one is the sum over examples.
    fn cotangent<B: CustomBackend>(&self, g: Operand<Vmap<B>>, size: Option<usize>) -> Operand<B> {
        let own = size_of(&g);
        match (lowered(g, size.or(own)), size, own) {
            (Value::Float(Floats(g)), None, Some(_)) => {
                let shape = Shape::from(g.shape()[1..].to_vec());
                Value::Float(Floats(B::float_reshape(B::float_sum_dim(g, 0), shape)))
            }
            (Value::Float(Floats(g)), None, None) => {
                let examples = self.size.unwrap_or(1) as f64;
                Value::Float(Floats(B::float_mul_scalar(g, examples.into())))
            }
            (g, ..) => g,
        }
    }
}

impl<R: VjpRule> VjpRule for BatchedRule<R> {
    fn name(&self) -> &'static str {
        self.rule.name()
    }

    fn forward<B: CustomBackend>(&self, x: OperandList<B>) -> Result<Pulled<B>> {
        let [results, residuals] = self.rule.forward(self.arguments(x))?;
        let of_residuals = sizes::<B>(&residuals);
        let residuals = residuals.into_iter().zip(&of_residuals).map(|(x, &size)| lowered(x, size));
        let residuals = residuals.collect();
        *self.residuals.lock().unwrap_or_else(PoisonError::into_inner) = of_residuals;
        Ok([self.batched(results), residuals])
    }

    fn backward<B: CustomBackend>(
        &self,
        [residuals, cotangents]: [OperandList<B>; 2],
    ) -> Result<OperandList<B>> {
        let sizes = self.residuals.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let cotangents = self.examples(cotangents);
        let all = self.rule.backward([raised(residuals, sizes), cotangents])?;
        let all = all.into_iter().zip(&self.arguments);
        Ok(all.map(|(g, &size)| self.cotangent(g, size)).collect())
    }
}

impl<R: JvpRule> JvpRule for BatchedRule<R> {
    fn jvp<B: CustomBackend>(&self, given: [OperandList<B>; 2]) -> Result<Paired<B>> {
        let all = self.rule.jvp(given.map(|x| self.arguments(x)))?;
        Ok(all.map(|x| self.batched(x)))
    }
}

/// The results of a function, of which `run` runs a rule on the backend below.
fn call<B: CustomBackend, R: Clone>(
    rule: R,
    x: OperandList<Vmap<B>>,
    run: impl FnOnce(BatchedRule<R>, OperandList<B>) -> Result<OperandList<B>>,
) -> Result<OperandList<Vmap<B>>> {
    let arguments = sizes::<B>(&x);
    let size = common("custom", arguments.iter().copied());
    let below = x.into_iter().zip(&arguments).map(|(x, &size)| lowered(x, size)).collect();
    let rule = BatchedRule { rule, size, arguments, residuals: Arc::default() };
    Ok(raised(run(rule, below)?, std::iter::repeat(size)))
}

impl<B: CustomBackend> CustomBackend for Vmap<B> {
    fn differentiates() -> bool {
        B::differentiates()
    }

    fn custom_vjp<R: VjpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        if B::differentiates() {
            return call::<B, R>(rule, x, B::custom_vjp);
        }
        rule.value(x)
    }

    fn custom_jvp<R: JvpRule>(rule: R, x: OperandList<Self>) -> Result<OperandList<Self>> {
        if B::differentiates() {
            return call::<B, R>(rule, x, B::custom_jvp);
        }
        rule.value(x)
    }
}
