//! Contraction and vjp in operations that every backend has.
//!
//! Over (+, ×) a step is one batched matrix product. Over other semirings its terms are laid out
//! in full:
//!
//! ```text
//! t[β, m, k, n] = a[β, m, k] ⊗ b[β, k, n]          c = ⊕ₖ t
//! ā = Σₙ c̄ · ∂c/∂t · ∂t/∂a                         b̄ = Σₘ c̄ · ∂c/∂t · ∂t/∂b
//! ```
//!
//! so a step takes memory for all its multiply-adds. Operations of `B` only: what they compute is
//! differentiable wherever `B` is.

use std::any::TypeId;
use std::sync::Arc;

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, TensorMetadata};
use t4a_algebra::Standard;
use t4a_einsum::Plan;

use super::axes::{Step, burn_shape};
use super::backend::EinsumOps;
use super::semiring::{TensorSemiring, scaled, zero};
use crate::ext::error::{ExtError, Result};

/// Whether a plan may run without its slices: not if these serve a budget that was given.
///
/// # Errors
/// [`ExtError::NotSliced`].
pub(super) fn check_unsliced(plan: &Plan) -> Result<()> {
    let sliced = plan.sliced();
    if sliced.is_empty() || plan.budget().is_none() {
        return Ok(());
    }
    let labels = sliced.iter().map(|label| label.to_string()).collect::<Vec<_>>().join(", ");
    Err(ExtError::NotSliced { labels })
}

/// All steps of a plan, one by one.
pub(super) fn by_steps<S: TensorSemiring, B: EinsumOps>(
    plan: &Arc<Plan>,
    operands: Vec<FloatTensor<B>>,
) -> Result<FloatTensor<B>> {
    let mut slots: Vec<Option<FloatTensor<B>>> = operands.into_iter().map(Some).collect();
    for step in plan.steps()? {
        // Every slot is taken once.
        let operands = step.slots.iter().filter_map(|&slot| slots[slot].take()).collect();
        slots.push(Some(B::einsum::<S>(&step.plan, operands)?));
    }
    match slots.pop().flatten() {
        Some(result) => Ok(result),
        None => unreachable!("a plan has a last step"),
    }
}

fn is_standard<S: 'static>() -> bool {
    TypeId::of::<S>() == TypeId::of::<Standard>()
}

/// One step over one or two operands.
pub(super) fn contract<S: TensorSemiring, B: Backend>(
    plan: &Plan,
    operands: Vec<FloatTensor<B>>,
) -> FloatTensor<B> {
    let (device, dtype) = (B::float_device(&operands[0]), operands[0].dtype());
    let zero = zero::<S>();
    if plan.is_empty() {
        return B::float_full(burn_shape(&plan.shape()), zero, &device, dtype.into());
    }
    let step = Step::new(plan);
    let enter = |(i, x)| matrix::<S, B>(step.enter::<B>(i, x));
    let matrices: Vec<FloatTensor<B>> = operands.into_iter().enumerate().map(enter).collect();
    let c = match <[FloatTensor<B>; 2]>::try_from(matrices) {
        Ok([a, b]) => multiply::<S, B>(a, b),
        Err(mut one) => one.remove(0),
    };
    step.leave::<B>(c, zero)
}

/// `[β, m, n, lone]` summed over lone labels.
fn matrix<S: TensorSemiring, B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let [b, m, n, lone] = x.shape().dims();
    let x = if lone > 1 { S::sum::<B>(x, 3) } else { x };
    B::float_reshape(x, [b, m, n].into())
}

/// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]`, k > 0.
fn multiply<S: TensorSemiring, B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> FloatTensor<B> {
    let ([batch, m, k], [_, _, n]) = (a.shape().dims(), b.shape().dims());
    if is_standard::<S>() {
        return B::float_matmul(a, b);
    }
    let [a, b] = outer::<B>(a, b);
    let terms = S::product::<B>(a, b);
    let c = if k > 1 { S::sum::<B>(terms, 2) } else { terms };
    B::float_reshape(c, [batch, m, n].into())
}

/// Both as `[β, m, k, n]` with axes of size 1.
fn outer<B: Backend>(a: FloatTensor<B>, b: FloatTensor<B>) -> [FloatTensor<B>; 2] {
    let ([batch, m, k], [_, _, n]) = (a.shape().dims(), b.shape().dims());
    [B::float_reshape(a, [batch, m, k, 1].into()), B::float_reshape(b, [batch, 1, k, n].into())]
}

/// Cotangents of the operands of one step over a semiring other than (+, ×).
pub(super) fn vjp<S: TensorSemiring, B: Backend>(
    plan: &Plan,
    operands: Vec<FloatTensor<B>>,
    g: FloatTensor<B>,
) -> Vec<FloatTensor<B>> {
    let step = Step::new(plan);
    let g = step.enter_cotangent::<B>(g);
    let entered: Vec<FloatTensor<B>> =
        operands.into_iter().enumerate().map(|(i, x)| step.enter::<B>(i, x)).collect();
    let cotangents = match &entered[..] {
        [x, y] => pullback::<S, B>(matrix::<S, B>(x.clone()), matrix::<S, B>(y.clone()), g),
        _ => vec![g],
    };
    // An operand alone passes nothing on where it is 0, also if nothing is summed.
    let alone = entered.len() == 1;
    let leave = |(i, (x, g)): (usize, (FloatTensor<B>, FloatTensor<B>))| {
        let [b, m, n, lone] = x.shape().dims();
        let mut g = B::float_reshape(g, [b, m, n, 1].into());
        if lone > 1 || alone {
            g = scaled::<B>(S::weights::<B>(x, 3), g);
        }
        step.leave_operand::<B>(i, g)
    };
    entered.into_iter().zip(cotangents).enumerate().map(leave).collect()
}

/// Cotangents of the matrices of [`multiply`].
fn pullback<S: TensorSemiring, B: Backend>(
    a: FloatTensor<B>,
    b: FloatTensor<B>,
    g: FloatTensor<B>,
) -> Vec<FloatTensor<B>> {
    let ([batch, m, k], [_, _, n]) = (a.shape().dims(), b.shape().dims());
    let [a, b] = outer::<B>(a, b);
    let weights = S::weights::<B>(S::product::<B>(a.clone(), b.clone()), 2);
    let g = scaled::<B>(weights, B::float_reshape(g, [batch, m, 1, n].into()));
    let [ga, gb] = S::factors::<B>(a, b, g);
    vec![
        B::float_reshape(B::float_sum_dim(ga, 3), [batch, m, k].into()),
        B::float_reshape(B::float_sum_dim(gb, 1), [batch, k, n].into()),
    ]
}
