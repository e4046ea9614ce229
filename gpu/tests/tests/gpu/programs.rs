//! Models, structured tensors, scans with bodies and function transformations on the GPU backend, against the engine.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Int, Tensor, TensorData};
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{LogSumExp, semiring_einsum};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::{Options, ScanBackend, scan};
use burn_t4a::ext::structured::{Direction, GradedTensor, Leg, Spec, Structured, U1, einsum};
use burn_t4a::models::LinearChain;
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::value_and_grad;
use burn_t4a_transforms::jvp::{Jvp, jvp};
use burn_t4a_transforms::vmap::{Vmap, vmap};

use super::{Card, Engine, Gpu, Tested, assert_close, noise, numbers, tensor, times};

#[allow(dead_code, reason = "the example trains it")]
#[path = "../../../../examples/ssm/layer.rs"]
mod layer;

/// Asserts that the parts of two runs are equal up to `tolerance` times their largest elements.
pub(super) fn assert_parts(given: &[Vec<f32>], expected: &[Vec<f32>], tolerance: f32) {
    assert_eq!(given.len(), expected.len());
    for (i, (given, expected)) in given.iter().zip(expected).enumerate() {
        assert!(expected.iter().any(|x| *x != 0.0), "part {i} is zero");
        assert_close(given, expected, tolerance, &format!("part {i}"));
    }
}

/// A conditional random field on sequences of different lengths: likelihoods with their gradients, marginals, best paths.
fn field<B: Tested + AutodiffBackend<InnerBackend: Operations>>() -> Vec<Vec<f32>> {
    const SHAPE: [usize; 3] = [3, 6, 4];
    let scores = tensor::<B, 3>(&noise(72, 1), SHAPE).require_grad();
    let transitions = tensor::<B, 2>(&noise(16, 2), [4, 4]).require_grad();
    let tags = [vec![0, 3, 1, 2, 0, 1], vec![2, 2, 3, 0], vec![1]];
    let chain = |scores, transitions| LinearChain::new(scores, transitions, Some(&[6, 4, 1]));

    let chain_on_tape = chain(scores.clone(), transitions.clone()).unwrap();
    let likelihoods = chain_on_tape.log_likelihood(&tags).unwrap();
    let gradients = likelihoods.clone().sum().backward();
    let of_scores = numbers(scores.grad(&gradients).unwrap());
    let of_transitions = numbers(transitions.grad(&gradients).unwrap());

    let chain = LinearChain::new(scores.inner(), transitions.inner(), Some(&[6, 4, 1])).unwrap();
    let (paths, best): (Tensor<B::InnerBackend, 2, Int>, _) = chain.viterbi().unwrap();
    let marginals = numbers(chain.marginals().unwrap());
    let paths = paths.into_data().iter::<f32>().collect();
    vec![numbers(likelihoods.inner()), of_scores, of_transitions, marginals, numbers(best), paths]
}

#[test]
fn conditional_random_fields() {
    assert_parts(&field::<Gpu>(), &field::<Engine>(), 1e-5);
}

/// Sets the parameters of a module in order.
struct Values<'a>(std::slice::Iter<'a, TensorData>);

impl<B: Backend> ModuleMapper<B> for Values<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let data = self.0.next().expect("a value of each parameter").clone();
        param.map(|old| Tensor::from_data(data, &old.device()).require_grad())
    }
}

/// The layer of the example `ssm`, with its gradient.
fn states<B: Tested + AutodiffBackend>(record: &[TensorData]) -> Vec<Vec<f32>> {
    let layer = layer::StateSpace::<B>::new(6, 5, &B::place()).map(&mut Values(record.iter()));
    let x = tensor::<B, 3>(&noise(20 * 2 * 6, 5), [20, 2, 6]).require_grad();
    let y = layer.forward(x.clone());
    let gradients = y.clone().powi_scalar(2).sum().backward();
    vec![numbers(y.inner()), numbers(x.grad(&gradients).unwrap())]
}

#[test]
fn state_space_layers() {
    // Norm, decays, angles, and two linear layers.
    let shapes: [&[usize]; 8] = [&[6], &[6], &[5], &[5], &[6, 10], &[10], &[10, 6], &[6]];
    let record = shapes.iter().enumerate().map(|(i, shape)| {
        let n = shape.iter().product();
        let at = if i == 2 { -2.0 } else { 0.3 };
        TensorData::new(noise(n, i).iter().map(|x| at + 0.3 * x).collect(), shape.to_vec())
    });
    let record: Vec<TensorData> = record.collect();
    let [given, expected] = [states::<Gpu>(&record), states::<Engine>(&record)];
    // The linear layers are Burn's, whose products on CUDA are rounded.
    assert_parts(&given[..1], &expected[..1], if cfg!(feature = "cuda") { 1e-3 } else { 1e-5 });
    // The derivative of `gelu` is Burn's, which is that of an approximation by tanh.
    assert_parts(&given[1..], &expected[1..], 1e-2);
}

/// The expectation value of an effective Hamiltonian of two sites, as in DMRG with conserved charge, and its gradient.
pub(super) fn effective<B: Tested + AutodiffBackend<InnerBackend: Operations>>() -> Vec<Vec<f32>> {
    type Of<B> = GradedTensor<B, U1>;
    let leg = |dims: [usize; 3]| {
        let sectors = [-1, 0, 1].map(U1).into_iter().zip(dims);
        Leg::new(sectors, Direction::Out).unwrap()
    };
    let (bond, site) = (leg([4, 7, 3]), leg([1, 2, 1]));
    let of = |legs: [&Leg<U1>; 4], count: usize, rows, seed| -> Of<B> {
        let legs = legs[..count].iter().map(|&leg| leg.clone()).collect();
        let spec = Spec::new(legs, U1(0), rows).unwrap();
        Of::from_flat(&spec, tensor(&noise(spec.len(), seed), [spec.len()])).unwrap()
    };
    let (back, under) = (bond.dual(), site.dual());
    let left = of([&bond, &back, &bond, &back], 2, 1, 1);
    let sites = of([&site, &site, &under, &under], 4, 2, 2);
    let state = of([&bond, &site, &site, &back], 4, 2, 3).require_grad();

    let moved: Of<B> = einsum("ca,astb,uvst->cuvb", &[&left, &state, &sites]).unwrap();
    let energy: Tensor<B, 1> = state.inner(&moved).unwrap().0.tensor().unwrap();
    let gradients = energy.clone().backward();
    let gradient = state.grad(&gradients).unwrap();
    vec![numbers(energy.inner()), numbers(moved.flat().inner()), numbers(gradient.flat())]
}

#[test]
fn graded_contractions() {
    assert_parts(&effective::<Gpu>(), &effective::<Engine>(), 1e-5);
}

/// A scan with a body of the user, and its gradient.
pub(super) fn filtered<B: Tested + AutodiffBackend + ScanBackend>() -> Vec<Vec<f32>> {
    let xs = tensor::<B, 2>(&noise(36, 7), [12, 3]).require_grad();
    let w = tensor::<B, 2>(&noise(9, 8), [3, 3]).require_grad();
    let step = |w: Tensor<B, 2>, c: Tensor<B, 2>, x: Tensor<B, 1>| {
        let c = (times(c, w) + x.unsqueeze()).tanh();
        (c.clone(), c)
    };
    let zero = Tensor::zeros([1, 3], &B::place());
    let (_, all): (Tensor<B, 2>, Tensor<B, 3>) =
        scan(step, w.clone(), zero, xs.clone(), &Options::default()).unwrap();
    let gradients = all.clone().powi_scalar(2).sum().backward();
    let leaf = |x: &Tensor<B, 2>| numbers(x.grad(&gradients).unwrap());
    vec![numbers(all.inner()), leaf(&xs), leaf(&w)]
}

#[test]
fn scans_with_bodies() {
    assert_parts(&filtered::<Gpu>(), &filtered::<Engine>(), 1e-5);
}

/// ln Σ exp over paths of three steps, plus a matrix product.
fn function<B: Operations>(x: Tensor<B, 2>) -> Tensor<B, 1> {
    let paths: Tensor<B, 1> = semiring_einsum::<LogSumExp, _, _>("ij,jk->", [&x, &x]).unwrap();
    paths + times(x.clone(), x.transpose()).tanh().sum()
}

/// jvp, vmap, the gradient of a mapped function, and compiled gradients, called twice.
fn transformed<B: Tested>() -> Vec<Vec<f32>> {
    let [x, dx] = [1, 2].map(|seed| tensor::<B, 2>(&noise(16, seed), [4, 4]));
    let batch = tensor::<B, 3>(&noise(48, 3), [3, 4, 4]);

    let (value, slope): (Tensor<B, 1>, Tensor<B, 1>) =
        jvp(function::<Jvp<B>>, x.clone(), dx).unwrap();
    let each: Tensor<B, 2> = vmap(function::<Vmap<B>>).call(batch.clone()).unwrap();
    let gradient = |x: Tensor<Vmap<B>, 2>| value_and_grad(function, x).unwrap().1;
    let gradients: Tensor<B, 3> = vmap(gradient).call(batch).unwrap();
    let step = compile(|x: Tensor<Traced<B>, 2>| value_and_grad(function, x).unwrap());
    let mut results = vec![numbers(value), numbers(slope), numbers(each), numbers(gradients)];
    for _ in 0..2 {
        let (value, gradient): (Tensor<B, 1>, Tensor<B, 2>) = step.call(x.clone()).unwrap();
        results.extend([numbers(value), numbers(gradient)]);
    }
    results
}

#[test]
fn transformations() {
    assert_parts(&transformed::<Card>(), &transformed::<BurnT4a>(), 1e-5);
}
