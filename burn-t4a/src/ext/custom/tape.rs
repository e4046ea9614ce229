//! Rules on Burn's tape.
//!
//! ```text
//! custom_vjp   one node: forward on B, and backward on B in the reverse pass
//! custom_jvp   x ─ node: ẋ = 0, x̄ = ẋ̄ ─→ ẋ ─ jvp, recorded ─→ ẏ ─ node: y on B, ẏ̄ = ȳ ─→ y
//! ```
//!
//! The value of ẋ is zero and that of y does not depend on ẏ, so that tangents that are not finite at ẋ = 0 do no harm.

use std::convert::Infallible;

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::CheckpointStrategy;
use burn_backend::AutodiffBackend;
use burn_backend::tensor::FloatTensor;
use t4a_diff::Value;

use super::Result;
use super::backend::{CustomBackend, forward, zeros};
use super::list::{JvpRule, OperandList, VjpRule};
use crate::boundary::accept;
use crate::ext::operation::Operand;
use crate::ext::primitive::{Bools, Floats, Indices};
use crate::ext::scan::records::inside;
use crate::ext::tape::operation::{Residuals, record_list};
use crate::ext::tape::{InputMeta, is_tracked, record};

/// A value below the tape.
fn below<B: CustomBackend, C: CheckpointStrategy>(x: &Operand<Autodiff<B, C>>) -> Operand<B> {
    let float = |x: Floats<Autodiff<B, C>>| Floats(Autodiff::<B, C>::inner(x.0));
    x.clone().map(float, |x| Indices(x.0), |x| Bools(x.0))
}

/// A constant on the tape.
fn above<B: CustomBackend, C: CheckpointStrategy>(x: Operand<B>) -> Operand<Autodiff<B, C>> {
    x.map(|x| Floats(Autodiff::<B, C>::from_inner(x.0)), |x| Indices(x.0), |x| Bools(x.0))
}

fn moves<B: CustomBackend, C: CheckpointStrategy>(x: &Operand<Autodiff<B, C>>) -> bool {
    matches!(x, Value::Float(x) if is_tracked::<B, C>(&x.0))
}

/// The zero cotangent of a result.
enum Like<B: CustomBackend> {
    Float(InputMeta<B>),
    Other(Operand<B>),
}

impl<B: CustomBackend> Like<B> {
    fn of(y: &Operand<B>) -> Self {
        match y {
            Value::Float(y) => Self::Float(InputMeta::<B>::of(&y.0)),
            other => Self::Other(zeros(other)),
        }
    }
}

/// Rule and residuals of a node.
struct RuleNode<B: CustomBackend, R> {
    rule: R,
    residuals: OperandList<B>,
    results: Vec<Like<B>>,
    /// True for arguments that are tracked floats.
    tracked: Vec<bool>,
}

impl<B: CustomBackend, R: VjpRule> Residuals<B> for RuleNode<B, R> {
    fn vjp(self, cotangents: Vec<Option<FloatTensor<B>>>) -> Vec<Option<FloatTensor<B>>> {
        let mut given = cotangents.into_iter();
        let cotangent = |y: Like<B>| match y {
            Like::Float(y) => {
                Value::Float(Floats(given.next().flatten().unwrap_or_else(|| y.zeros())))
            }
            Like::Other(y) => y,
        };
        let cotangents = self.results.into_iter().map(cotangent).collect();
        let all = accept(inside(|| self.rule.backward([self.residuals, cotangents])));
        let tracked = all.into_iter().zip(self.tracked).filter(|(_, tracked)| *tracked);
        tracked.map(|(g, _)| g.into_float().map(|g| g.0)).collect()
    }
}

/// # Errors
/// Those of the rule.
pub(super) fn custom_vjp<R: VjpRule, B: CustomBackend, C: CheckpointStrategy>(
    rule: R,
    x: OperandList<Autodiff<B, C>>,
) -> Result<OperandList<Autodiff<B, C>>> {
    let inner: OperandList<B> = x.iter().map(below::<B, C>).collect();
    let tracked: Vec<bool> = x.iter().map(moves::<B, C>).collect();
    let inputs: Vec<_> =
        x.into_iter().filter(moves::<B, C>).filter_map(Value::into_float).collect();
    if inputs.is_empty() {
        let results = B::custom_vjp(rule, inner)?;
        return Ok(results.into_iter().map(above::<B, C>).collect());
    }
    let [results, residuals] = forward(&rule, inner)?;
    let floats = |all: &OperandList<B>| -> Vec<_> {
        all.iter().cloned().filter_map(Value::into_float).map(|y| y.0).collect()
    };
    let values = floats(&results);
    if values.is_empty() {
        return Ok(results.into_iter().map(above::<B, C>).collect());
    }
    let like = results.iter().map(Like::of).collect();
    let recorded = RuleNode { rule, residuals, results: like, tracked };
    let inputs = inputs.into_iter().map(|x| x.0).collect();
    let Ok(nodes) = record_list::<_, B, C, Infallible>(inputs, || Ok((values, recorded)));
    let mut nodes = nodes.into_iter();
    let result = |y: Operand<B>| match y {
        Value::Float(_) => Value::Float(Floats(
            nodes.next().unwrap_or_else(|| unreachable!("one node per result")),
        )),
        other => above::<B, C>(other),
    };
    Ok(results.into_iter().map(result).collect())
}

/// # Errors
/// Those of the rule.
pub(super) fn custom_jvp<R: JvpRule, B: CustomBackend, C: CheckpointStrategy>(
    rule: R,
    x: OperandList<Autodiff<B, C>>,
) -> Result<OperandList<Autodiff<B, C>>> {
    let inner: OperandList<B> = x.iter().map(below::<B, C>).collect();
    let results = B::custom_jvp(rule.clone(), inner.clone())?;
    if !x.iter().any(moves::<B, C>) {
        return Ok(results.into_iter().map(above::<B, C>).collect());
    }
    let tangent = |x: &Operand<Autodiff<B, C>>| match x {
        Value::Float(y) if moves::<B, C>(x) => {
            let Ok(zero) = record::<B, C, _, Infallible, 1>(
                [y.0.clone()],
                |[x], _| Ok((InputMeta::<B>::of(&x).zeros(), ())),
                |(), cotangent, _| [Some(cotangent)],
            );
            Value::Float(Floats(zero))
        }
        _ => zeros(x),
    };
    let tangents = x.iter().map(tangent).collect();
    let constants = inner.into_iter().map(above::<B, C>).collect();
    let [_, tangents] = rule.jvp::<Autodiff<B, C>>([constants, tangents])?;
    let result = |(y, t): (Operand<B>, Operand<Autodiff<B, C>>)| match (y, t) {
        (Value::Float(y), Value::Float(t)) if is_tracked::<B, C>(&t.0) => {
            let Ok(y) = record::<B, C, _, Infallible, 1>(
                [t.0],
                |_, _| Ok((y.0, ())),
                |(), cotangent, _| [Some(cotangent)],
            );
            Value::Float(Floats(y))
        }
        (y, _) => above::<B, C>(y),
    };
    Ok(results.into_iter().zip(tangents).map(result).collect())
}
