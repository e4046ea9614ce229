//! Properties of the derivatives of an einsum, by semiring.

use t4a_algebra::{LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Standard};
use t4a_einsum::{Differentiable, Plan};
use t4a_tensor::Tensor;

use super::case::Case;
use super::check::{INF, NAN, draw, slots, tensors};
use crate::input::Random;

fn dot(a: &[Tensor<f64>], b: &[Tensor<f64>]) -> f64 {
    let products = a.iter().zip(b).flat_map(|(a, b)| {
        a.to_vec().unwrap().into_iter().zip(b.to_vec().unwrap()).map(|(a, b)| a * b)
    });
    products.sum()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs() + b.abs())
}

/// Properties of derivatives over a semiring.
struct Owed {
    /// `∂(a ⊗ b)` is (1, 1): every operand receives the full cotangent of the sum.
    to_each: bool,
    /// `∂(a ⊗ b)` is (1, 0) or (0, 1): exactly one operand receives it.
    to_one: bool,
    /// True if jvp and vjp are transposes of each other, for finite values.
    transposed: bool,
}

pub(super) fn derivatives(case: &Case, plan: &Plan) {
    let none = || Owed { to_each: false, to_one: false, transposed: true };
    let each = || Owed { to_each: true, ..none() };
    let one = || Owed { to_one: true, ..none() };
    derivative::<Standard>(case, plan, &[0.0, 1.0, -2.0, 0.5], none());
    derivative::<MaxPlus>(case, plan, &[-INF, -INF, 0.0, 1.0, 2.0], each());
    derivative::<MaxPlus>(case, plan, &[-INF, 0.0, 1.0, INF], each());
    // Without the zero of the semiring: NaN combined with it is the extremum, with no cotangent.
    derivative::<MaxPlus>(case, plan, &[0.0, 1.0, INF, NAN], each());
    derivative::<MinPlus>(case, plan, &[INF, 0.0, 1.0, 2.0, -INF], each());
    derivative::<MaxMul>(case, plan, &[0.0, 0.0, 1.0, 2.0, 0.5], none());
    derivative::<MinMul>(case, plan, &[INF, INF, 1.0, 2.0, 0.5], none());
    derivative::<MaxMin>(case, plan, &[-INF, 0.0, 1.0, INF], one());
    derivative::<MaxMin>(case, plan, &[-INF, 0.0, 1.0, NAN], one());
    derivative::<LogSumExp>(case, plan, &[-INF, -INF, 0.0, 1.0, -2.0, 700.0], each());
    derivative::<LogSumExp>(case, plan, &[-INF, 0.0, INF], each());
    // Infinite partial derivatives, but no NaN.
    let infinite = Owed { transposed: false, ..none() };
    derivative::<MaxMul>(case, plan, &[0.0, 1.0, 2.0, INF], infinite);
}

fn derivative<S: Differentiable<f64>>(case: &Case, plan: &Plan, pick: &[f64], owed: Owed) {
    let name = std::any::type_name::<S>();
    let operands = tensors(&case.shapes, draw(case, 2, pick));
    let moves = tensors(&case.shapes, draw(case, 3, &[1.0, -1.0, 0.5, 0.0, 3.0]));
    let x: Vec<&Tensor<f64>> = operands.iter().collect();
    let mut random = Random::new(case.seed);
    let g = Tensor::from_fn(&plan.shape(), |_| random.pick(&[1.0, 0.0, 2.0, 0.25])).unwrap();
    let y = plan.contract::<S, f64>(&x).unwrap();
    let grads = plan.vjp::<S, f64>(&x, &g).unwrap();
    for (grad, x) in grads.iter().zip(&x) {
        assert_eq!(grad.shape(), x.shape(), "{name} {case:?}");
        assert!(grad.to_vec().unwrap().iter().all(|g| !g.is_nan()), "{name} {case:?}: {grads:?}");
    }
    // The cotangents of elements with a nonzero term are propagated, the others are not.
    let alive = y.to_vec().unwrap().into_iter().zip(g.to_vec().unwrap());
    let alive: f64 = alive.filter(|(y, _)| *y != S::ZERO).map(|(_, g)| g).sum();
    let arrived: Vec<f64> = grads.iter().map(|g| g.to_vec().unwrap().iter().sum()).collect();
    if owed.to_each {
        assert!(arrived.iter().all(|&g| near(g, alive)), "{name} {case:?}: {grads:?}, not {alive}");
    }
    if owed.to_one {
        assert!(near(arrived.iter().sum(), alive), "{name} {case:?}: {grads:?}, not {alive}");
    }
    // The same step by step: ties are resolved in the same way.
    if plan.sliced().is_empty() {
        let steps = by_steps::<S>(plan, &operands, &g);
        for (whole, steps) in grads.iter().zip(&steps) {
            let (whole, steps) = (whole.to_vec().unwrap(), steps.to_vec().unwrap());
            let same = whole.iter().zip(&steps).all(|(a, b)| a == b || near(*a, *b));
            assert!(same, "{name} {case:?}: {whole:?}, step by step {steps:?}");
        }
    }
    let (again, tangent) = plan.jvp::<S, f64>(&x, &moves.iter().collect::<Vec<_>>()).unwrap();
    let bits = |x: &Tensor<f64>| -> Vec<f64> { x.to_vec().unwrap() };
    let same = |(a, b): (&f64, &f64)| a == b || (a.is_nan() && b.is_nan()) || near(*a, *b);
    assert!(bits(&again).iter().zip(&bits(&y)).all(same), "{name} {case:?}");
    if owed.transposed {
        let (forward, backward) = (dot(&[tangent], &[g]), dot(&grads, &moves));
        assert!(near(forward, backward), "{name} {case:?}: jvp {forward}, vjp {backward}");
    }
}

/// Cotangents of the operands, propagated through every step.
fn by_steps<S: Differentiable<f64>>(
    plan: &Plan,
    operands: &[Tensor<f64>],
    g: &Tensor<f64>,
) -> Vec<Tensor<f64>> {
    let slots = slots::<S, f64>(plan, operands);
    let mut grads: Vec<Option<Tensor<f64>>> = vec![None; slots.len()];
    let steps = plan.steps().unwrap();
    grads[slots.len() - 1] = Some(g.clone());
    for (s, step) in steps.iter().enumerate().rev() {
        let taken: Vec<&Tensor<f64>> = step.slots.iter().map(|&slot| &slots[slot]).collect();
        let g = grads[operands.len() + s].take().unwrap();
        let parts = step.plan.vjp::<S, f64>(&taken, &g).unwrap();
        for (&slot, part) in step.slots.iter().zip(parts) {
            grads[slot] = Some(part);
        }
    }
    grads.into_iter().take(operands.len()).flatten().collect()
}
