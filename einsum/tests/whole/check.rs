//! What must hold of a whole einsum, for any case.

use t4a_algebra::{
    Boolean, Counted, Counting, KBest, LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Scalar,
    Semiring, Standard,
};
use t4a_einsum::{Differentiable, Einsum, EinsumError, Optimizer, Path, Plan};
use t4a_tensor::Tensor;

use super::case::{Case, Meaning, Random, naive};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

fn einsum(case: &Case) -> Result<Einsum, EinsumError> {
    let mut einsum = Einsum::new(&case.text())?;
    for &(letter, size) in &case.given {
        einsum = einsum.size((b'a' + letter as u8) as char, size);
    }
    if let Some(steps) = &case.path {
        einsum = einsum.path(Path::new(steps.clone()));
    }
    if let Some(bytes) = case.memory {
        einsum = einsum.memory(bytes);
    }
    Ok(if case.anneal { einsum.optimizer(Optimizer::TreeSa) } else { einsum })
}

/// Plans if and only if the case means something, and computes what it means.
pub(crate) fn check(case: &Case) {
    let views: Vec<&[usize]> = case.shapes.iter().map(Vec::as_slice).collect();
    let plan = einsum(case).and_then(|einsum| einsum.plan(&views, 8));
    match (case.meaning(), plan) {
        (None, Err(_)) => {}
        (None, Ok(_)) => panic!("a plan for {case:?}"),
        (Some(_), Err(EinsumError::BudgetTooSmall { .. }))
            if case.memory.is_some() || case.absurd => {}
        (Some(_), Err(EinsumError::IntermediateOverflow { .. })) if case.absurd => {}
        (Some(_), Err(error)) => panic!("{error}: {case:?}"),
        (Some(meaning), Ok(plan)) => {
            assert_eq!(plan.shape(), meaning.shape(), "{case:?}");
            let bytes = plan.cost().bytes(8);
            assert!(case.memory.is_none_or(|budget| bytes <= budget as f64), "{case:?}");
            if case.absurd {
                survives(case, &plan);
            } else {
                values(case, &meaning, &plan);
                derivatives(case, &plan);
            }
        }
    }
}

/// No panic, whatever the sizes; contracted if that is little work.
fn survives(case: &Case, plan: &Plan) {
    let _ = (plan.steps(), plan.path(), plan.labels(), plan.sliced());
    let little = |n: f64| n <= 1e4;
    let count = |shape: &[usize]| shape.iter().map(|&n| n as f64).product::<f64>();
    let cost = plan.cost();
    let work = cost.flops.max(cost.slices).max(cost.peak).max(count(&plan.shape()));
    if !little(work) {
        return;
    }
    let one = Tensor::<f64>::zeros(&[]).unwrap();
    let views = case.shapes.iter().map(|shape| one.expand(shape));
    let Ok(views) = views.collect::<Result<Vec<_>, _>>() else { return };
    let views: Vec<&Tensor<f64>> = views.iter().collect();
    let _ = plan.contract::<Standard, f64>(&views);
    let _ = plan.contract::<MaxPlus, f64>(&views);
    if case.shapes.iter().all(|shape| little(count(shape))) {
        let g = Tensor::<f64>::zeros(&[]).unwrap().expand(&plan.shape()).unwrap();
        let _ = plan.vjp::<MaxPlus, f64>(&views, &g);
        let _ = plan.vjp::<LogSumExp, f64>(&views, &g);
    }
}

fn draw<T: Copy>(case: &Case, salt: u64, pick: &[T]) -> Vec<Vec<T>> {
    let mut random = Random(case.seed ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut list = |shape: &Vec<usize>| -> Vec<T> {
        (0..shape.iter().product()).map(|_| random.of(pick)).collect()
    };
    case.shapes.iter().map(&mut list).collect()
}

fn tensors<T: Scalar>(shapes: &[Vec<usize>], data: Vec<Vec<T>>) -> Vec<Tensor<T>> {
    let tensor = |(data, shape): (Vec<T>, &Vec<usize>)| Tensor::from_vec(data, shape).unwrap();
    data.into_iter().zip(shapes).map(tensor).collect()
}

/// Results of the operands and of every step.
fn slots<S: Semiring<T>, T: Scalar>(plan: &Plan, operands: &[Tensor<T>]) -> Vec<Tensor<T>> {
    let mut slots = operands.to_vec();
    for step in plan.steps().unwrap() {
        let taken: Vec<&Tensor<T>> = step.slots.iter().map(|&slot| &slots[slot]).collect();
        let next = step.plan.contract::<S, T>(&taken).unwrap();
        slots.push(next);
    }
    slots
}

/// The definition, in every semiring; whole, in slices and step by step.
fn values(case: &Case, meaning: &Meaning, plan: &Plan) {
    fn same<S: Semiring<T>, T: Scalar>(
        (case, meaning, plan): (&Case, &Meaning, &Plan),
        pick: &[T],
        same: impl Fn(&T, &T) -> bool,
    ) {
        let data = draw(case, 1, pick);
        let want = naive::<S, T>(meaning, &case.shapes, &data);
        let operands = tensors(&case.shapes, data);
        let whole = plan.contract::<S, T>(&operands.iter().collect::<Vec<_>>()).unwrap();
        let steps = slots::<S, T>(plan, &operands);
        for got in [&whole, &steps[steps.len() - 1]] {
            assert_eq!(got.shape(), meaning.shape(), "{case:?}");
            let got = got.to_vec().unwrap();
            let all = got.iter().zip(&want).all(|(a, b)| same(a, b));
            let name = std::any::type_name::<S>();
            assert!(all && got.len() == want.len(), "{name} {case:?}: {got:?}, not {want:?}");
        }
    }
    let of = (case, meaning, plan);
    let equal = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan());
    same::<Standard, i64>(of, &[0, 1, -1, 2, 3, i64::MAX, 1 << 62], PartialEq::eq);
    same::<Standard, f64>(of, &[0.0, 1.0, -1.0, 2.0, 3.0], PartialEq::eq);
    same::<MaxPlus, f64>(of, &[-INF, -INF, 0.0, 1.0, 2.0, -3.5, INF], equal);
    same::<MaxPlus, f64>(of, &[-INF, 0.0, 1.0, NAN], equal);
    same::<MaxPlus, i32>(of, &[i32::MIN, 0, 1, 2, -7], PartialEq::eq);
    same::<MinPlus, f64>(of, &[INF, INF, 0.0, 1.0, 2.0, -INF, NAN], equal);
    same::<MinPlus, u8>(of, &[255, 0, 1, 2, 3], PartialEq::eq);
    same::<MaxMul, f64>(of, &[0.0, 0.0, 1.0, 2.0, 0.5, INF], equal);
    same::<MaxMul, f64>(of, &[0.0, 1.0, 2.0, NAN], equal);
    same::<MaxMin, f64>(of, &[-INF, 0.0, 1.0, 2.0, INF], equal);
    same::<MaxMin, f64>(of, &[-INF, 1.0, NAN, INF], equal);
    same::<Boolean, bool>(of, &[false, false, true], PartialEq::eq);
    let close = |a: &f64, b: &f64| equal(a, b) || (a - b).abs() <= 1e-12 * (1.0 + b.abs());
    same::<LogSumExp, f64>(of, &[-INF, -INF, 0.0, 1.0, -2.0, 700.0], close);
    same::<LogSumExp, f64>(of, &[-INF, 0.0, 1.0, INF, NAN], close);
    let counted = |values: &[f64]| values.iter().map(|&x| Counting::<MaxPlus>::of(x, 1)).collect();
    let attained: Vec<Counted<f64>> = counted(&[-INF, 0.0, 0.0, 1.0, 1.0]);
    same::<Counting, _>(of, &attained, PartialEq::eq);
    let hidden: Vec<Counted<f64>> = counted(&[-INF, 0.0, 1.0, INF]);
    same::<Counting, _>(of, &hidden, PartialEq::eq);
    let of_product = |x: f64| Counting::<MaxMul>::of(x, 2);
    same::<Counting<MaxMul>, _>(of, &[0.0, 1e-200, 1.0, 2.0].map(of_product), PartialEq::eq);
    let lists = [[3.0, 1.0], [0.0, -INF], [-INF, -INF], [2.0, 2.0]];
    same::<KBest<2, MaxPlus>, [f64; 2]>(of, &lists, PartialEq::eq);
    same::<KBest<2, MaxMin>, [f64; 2]>(of, &lists, PartialEq::eq);
    // NaN comes first, as it does over (max, +).
    let best: fn(&[f64; 2], &[f64; 2]) -> bool =
        |a, b| a[0] == b[0] || (a[0].is_nan() && b[0].is_nan());
    same::<KBest<2, MaxPlus>, [f64; 2]>(of, &[[NAN, 1.0], [0.0, -INF], [-INF; 2]], best);
}

fn dot(a: &[Tensor<f64>], b: &[Tensor<f64>]) -> f64 {
    let products = a.iter().zip(b).flat_map(|(a, b)| {
        a.to_vec().unwrap().into_iter().zip(b.to_vec().unwrap()).map(|(a, b)| a * b)
    });
    products.sum()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs() + b.abs())
}

/// What derivatives owe to a semiring.
struct Owed {
    /// `∂(a ⊗ b)` is (1, 1): all that a sum passes on reaches every operand.
    to_each: bool,
    /// `∂(a ⊗ b)` is (1, 0) or (0, 1): it reaches one of the operands.
    to_one: bool,
    /// Whether tangents and cotangents are transposed to each other, where nothing is infinite.
    transposed: bool,
}

fn derivatives(case: &Case, plan: &Plan) {
    let none = || Owed { to_each: false, to_one: false, transposed: true };
    let each = || Owed { to_each: true, ..none() };
    let one = || Owed { to_one: true, ..none() };
    derivative::<Standard>(case, plan, &[0.0, 1.0, -2.0, 0.5], none());
    derivative::<MaxPlus>(case, plan, &[-INF, -INF, 0.0, 1.0, 2.0], each());
    derivative::<MaxPlus>(case, plan, &[-INF, 0.0, 1.0, INF], each());
    // Without 0 of the semiring: a NaN that meets it wins, and it passes nothing on.
    derivative::<MaxPlus>(case, plan, &[0.0, 1.0, INF, NAN], each());
    derivative::<MinPlus>(case, plan, &[INF, 0.0, 1.0, 2.0, -INF], each());
    derivative::<MaxMul>(case, plan, &[0.0, 0.0, 1.0, 2.0, 0.5], none());
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
    let mut random = Random(case.seed);
    let g = Tensor::from_fn(&plan.shape(), |_| random.of(&[1.0, 0.0, 2.0, 0.25])).unwrap();
    let y = plan.contract::<S, f64>(&x).unwrap();
    let grads = plan.vjp::<S, f64>(&x, &g).unwrap();
    for (grad, x) in grads.iter().zip(&x) {
        assert_eq!(grad.shape(), x.shape(), "{name} {case:?}");
        assert!(grad.to_vec().unwrap().iter().all(|g| !g.is_nan()), "{name} {case:?}: {grads:?}");
    }
    // Cotangents of elements with a candidate arrive, others do not.
    let alive = y.to_vec().unwrap().into_iter().zip(g.to_vec().unwrap());
    let alive: f64 = alive.filter(|(y, _)| *y != S::ZERO).map(|(_, g)| g).sum();
    let arrived: Vec<f64> = grads.iter().map(|g| g.to_vec().unwrap().iter().sum()).collect();
    if owed.to_each {
        assert!(arrived.iter().all(|&g| near(g, alive)), "{name} {case:?}: {grads:?}, not {alive}");
    }
    if owed.to_one {
        assert!(near(arrived.iter().sum(), alive), "{name} {case:?}: {grads:?}, not {alive}");
    }
    // The same, step by step: ties break in the same way.
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

/// Cotangents of the operands from those of every step.
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
