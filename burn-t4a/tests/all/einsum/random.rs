//! Random einsums on every backend: values against the definition, gradients against the engine, second derivatives
//! without NaN.

use std::any::TypeId;
use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_backend::ops::FloatTensorOps;
use burn_backend::{AutodiffBackend, Backend};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{
    ArraySemiring, LogSumExp, MaxMin, MaxMul, MaxPlus, MinMul, MinPlus, Plan, Standard,
};
use burn_t4a::ext::operation::Operations;
use t4a_fuzz::einsum::{Case, naive};
use t4a_fuzz::input::{Input, Random};
use t4a_tensor::Tensor as EngineTensor;

use super::cases::{contract, tensor, values};

const INF: f64 = f64::INFINITY;
const NAN: f64 = f64::NAN;

type Twice<B> = Autodiff<Autodiff<B>>;

/// Scalars have shape `[1]`.
fn shape(of: &[usize]) -> Vec<usize> {
    if of.is_empty() { vec![1] } else { of.to_vec() }
}

fn leaf<B: Backend>(x: &[f64], of: &[usize]) -> B::FloatTensorPrimitive {
    B::float_set_require_grad(tensor::<B>(x, &shape(of)), true)
}

fn weighted<B: Operations>(y: B::FloatTensorPrimitive, g: &[f64]) -> B::FloatTensorPrimitive {
    // Zero and infinite elements are excluded from a sum that is differentiated again.
    let y = B::float_reshape(y, [g.len()].into());
    B::float_sum(B::float_mul(y, tensor::<B>(g, &[g.len()])))
}

fn gradients<S: ArraySemiring, B: AutodiffBackend + Operations>(
    plan: &Arc<Plan>,
    data: &[Vec<f64>],
    g: &[f64],
) -> Vec<Vec<f64>> {
    let shapes = |i: usize| plan.operand_shape(i).unwrap();
    let leaves: Vec<_> = (0..data.len()).map(|i| leaf::<B>(&data[i], shapes(i))).collect();
    let y = contract::<S, B>(plan, leaves.clone());
    let grads = B::backward(weighted::<B>(y, g));
    leaves.iter().map(|x| values::<B::InnerBackend>(B::grad(x, &grads).unwrap())).collect()
}

/// Gradients of the outer tape, and the Hessian along a direction.
fn twice<S: ArraySemiring, B: Operations>(
    plan: &Arc<Plan>,
    data: &[Vec<f64>],
    g: &[f64],
) -> [Vec<Vec<f64>>; 2]
where
    Autodiff<B>: Operations + AutodiffBackend<InnerBackend = B>,
{
    let shapes = |i: usize| plan.operand_shape(i).unwrap();
    let inner: Vec<_> = (0..data.len()).map(|i| leaf::<Autodiff<B>>(&data[i], shapes(i))).collect();
    let outer = inner
        .iter()
        .map(|x| Twice::<B>::float_set_require_grad(Twice::<B>::from_inner(x.clone()), true));
    let outer: Vec<_> = outer.collect();
    let y = contract::<S, Twice<B>>(plan, outer.clone());
    let grads = Twice::<B>::backward(weighted::<Twice<B>>(y, g));
    let firsts: Vec<_> = outer.iter().map(|x| Twice::<B>::grad(x, &grads).unwrap()).collect();
    let slope = firsts.iter().zip(data).map(|(x, data)| {
        let v: Vec<f64> = (0..data.len()).map(|i| ((i * 7 + 3) % 5) as f64 - 1.5).collect();
        weighted::<Autodiff<B>>(x.clone(), &v)
    });
    let grads = Autodiff::<B>::backward(slope.reduce(Autodiff::<B>::float_add).unwrap());
    let first = firsts.iter().map(|x| values::<B>(Autodiff::<B>::inner(x.clone())));
    let second = inner.iter().zip(data).map(|(x, data)| match Autodiff::<B>::grad(x, &grads) {
        Some(second) => values::<B>(second),
        // The gradient does not depend on the operand.
        None => vec![0.0; data.len()],
    });
    [first.collect(), second.collect()]
}

fn near(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-11 * (1.0 + a.abs().max(b.abs()))
}

fn same(case: &Case, what: &str, got: &[f64], want: &[f64]) {
    let all = got.len() == want.len() && got.iter().zip(want).all(|(a, b)| near(*a, *b));
    assert!(all, "{what} of {}: {got:?}, expected {want:?}: {case:?}", case.text());
}

fn check<S: ArraySemiring>(case: &Case, pick: &[f64]) {
    let meaning = case.meaning().unwrap();
    let name = std::any::type_name::<S>();
    let plan = case.plan().unwrap();
    let mut random = Random::new(case.seed);
    let data: Vec<Vec<f64>> = case
        .shapes
        .iter()
        .map(|shape| (0..shape.iter().product()).map(|_| random.pick(pick)).collect())
        .collect();
    let want = naive::<S, f64>(&meaning, &case.shapes, &data);
    fn on<S: ArraySemiring, B: Operations>(
        plan: &Arc<Plan>,
        case: &Case,
        data: &[Vec<f64>],
    ) -> Vec<f64> {
        let operands = data.iter().zip(&case.shapes);
        let operands = operands.map(|(x, of)| tensor::<B>(x, &shape(of))).collect();
        values::<B>(contract::<S, B>(plan, operands))
    }
    same(case, &format!("{name} on the engine"), &on::<S, BurnT4a>(&plan, case, &data), &want);
    same(case, &format!("{name} on Flex"), &on::<S, Flex>(&plan, case, &data), &want);
    if want.is_empty() {
        return;
    }
    // Cotangents of the engine, which other tests check for conservation and step by step.
    let g: Vec<f64> = want.iter().map(|_| random.pick(&[1.0, 2.0, 0.5])).collect();
    let tensors = data.iter().zip(&case.shapes);
    let tensors = tensors.map(|(x, of)| EngineTensor::from_vec(x.clone(), of).unwrap());
    let tensors: Vec<EngineTensor<f64>> = tensors.collect();
    let cotangent = EngineTensor::from_vec(g.clone(), &plan.shape()).unwrap();
    let engine = plan.vjp::<S, f64>(&tensors.iter().collect::<Vec<_>>(), &cotangent).unwrap();
    let ours = gradients::<S, Autodiff<BurnT4a>>(&plan, &data, &g);
    let theirs = gradients::<S, Autodiff<Flex>>(&plan, &data, &g);
    for (i, engine) in engine.iter().enumerate() {
        let engine = engine.to_vec().unwrap();
        same(case, &format!("{name} gradient on the tape"), &ours[i], &engine);
        same(case, &format!("{name} gradient on Flex"), &theirs[i], &engine);
    }
    // Infinite factors have infinite derivatives, which cancel in the second order.
    let factors = TypeId::of::<S>() == TypeId::of::<MaxMul>();
    let odd = data.iter().flatten().any(|x| x.is_nan() || (factors && x.is_infinite()));
    let [first, second] = twice::<S, BurnT4a>(&plan, &data, &g);
    for i in 0..data.len() {
        same(case, &format!("{name} gradient on a tape over a tape"), &first[i], &ours[i]);
        let number = second[i].iter().all(|x| !x.is_nan());
        assert!(number || odd, "{name} second order of {}: {second:?}: {case:?}", case.text());
    }
}

#[test]
fn every_backend_computes_the_same() {
    let number = |name, default| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (first, cases): (u64, u64) = (number("T4A_FIRST", 0), number("T4A_CASES", 150));
    for seed in first..first + cases {
        let mut case = Case::read(&mut Input::new(&Random::new(seed).bytes(160)));
        case.memory = None;
        let rank = case.shapes.iter().map(Vec::len).max().unwrap_or(0);
        // Cases whose operands and result have a rank that Burn supports.
        if case.absurd || rank > 6 || case.meaning().is_none_or(|m| m.output.len() > 6) {
            continue;
        }
        let checked = std::panic::catch_unwind(|| {
            check::<Standard>(&case, &[0.0, 1.0, -2.0, 3.0]);
            check::<MaxPlus>(&case, &[-INF, -INF, 0.0, 1.0, 2.0, INF]);
            check::<MaxPlus>(&case, &[0.0, 1.0, NAN]);
            check::<MinPlus>(&case, &[INF, 0.0, 1.0, 2.0]);
            check::<MaxMul>(&case, &[0.0, 0.0, 1.0, 2.0, INF]);
            check::<MinMul>(&case, &[INF, 0.0, 1.0, 2.0]);
            check::<MinMul>(&case, &[1.0, 2.0, INF, NAN]);
            check::<MaxMin>(&case, &[-INF, 0.0, 1.0, INF]);
            check::<MaxMin>(&case, &[0.0, 1.0, NAN]);
            check::<LogSumExp>(&case, &[-INF, -INF, 0.0, 1.0, -2.0]);
            check::<LogSumExp>(&case, &[-INF, 0.0, INF]);
        });
        assert!(checked.is_ok(), "seed {seed}");
    }
}
