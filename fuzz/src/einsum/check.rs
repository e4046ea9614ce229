//! Comparison of einsum results with the definition.

use t4a_algebra::{
    Boolean, Counted, Counting, KBest, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Scalar,
    Semiring, Standard,
};
use t4a_einsum::{EinsumError, Plan};
use t4a_tensor::Tensor;

use super::case::Case;
use super::derivatives::derivatives;
use super::meaning::{Meaning, naive};
use crate::input::Random;

pub(super) const INF: f64 = f64::INFINITY;
pub(super) const NAN: f64 = f64::NAN;

/// Checks that a plan exists if and only if the case is valid, and that the results are those of the definition.
pub(super) fn check(case: &Case) {
    match (case.meaning(), case.plan()) {
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
            // Under Miri only the execution is checked: the reference would take hours.
            if case.absurd || cfg!(miri) {
                survives(case, &plan);
            } else {
                values(case, &meaning, &plan);
                derivatives(case, &plan);
            }
        }
    }
}

/// Checks that no size causes a panic; contracts if that is cheap.
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

pub(super) fn draw<T: Copy>(case: &Case, salt: u64, pick: &[T]) -> Vec<Vec<T>> {
    let mut random = Random::new(case.seed ^ salt << 40);
    let mut list = |shape: &Vec<usize>| -> Vec<T> {
        (0..shape.iter().product()).map(|_| random.pick(pick)).collect()
    };
    case.shapes.iter().map(&mut list).collect()
}

pub(super) fn tensors<T: Scalar>(shapes: &[Vec<usize>], data: Vec<Vec<T>>) -> Vec<Tensor<T>> {
    let tensor = |(data, shape): (Vec<T>, &Vec<usize>)| Tensor::from_vec(data, shape).unwrap();
    data.into_iter().zip(shapes).map(tensor).collect()
}

/// Values of the operands and of every step.
pub(super) fn slots<S: Semiring<T>, T: Scalar>(
    plan: &Plan,
    operands: &[Tensor<T>],
) -> Vec<Tensor<T>> {
    let mut slots = operands.to_vec();
    for step in plan.steps().unwrap() {
        let taken: Vec<&Tensor<T>> = step.slots.iter().map(|&slot| &slots[slot]).collect();
        let next = step.plan.contract::<S, T>(&taken).unwrap();
        slots.push(next);
    }
    slots
}

/// Compares with the definition in every semiring: in one pass, in slices, and step by step.
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
    same::<MinMul, f64>(of, &[INF, INF, 0.0, 1.0, 2.0, 0.5, NAN], equal);
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
    // NaN has the highest rank, as over (max, +).
    let best: fn(&[f64; 2], &[f64; 2]) -> bool =
        |a, b| a[0] == b[0] || (a[0].is_nan() && b[0].is_nan());
    same::<KBest<2, MaxPlus>, [f64; 2]>(of, &[[NAN, 1.0], [0.0, -INF], [-INF; 2]], best);
}
