//! Chains on a tape: gradients against differences and against tangents on the engine, and conversions.

use burn_tensor::DType;
use t4a_tensor::{AnyTensor, Tensor as Dense};

use super::arrays::{close, f64s, floats, random};
use super::ext::networks::sector::{Trivial, U1};
use super::ext::networks::sites::{Sites, spin_half};
use super::ext::networks::train::{Compression, TensorTrain};
use super::ext::networks::{
    BurnChain, BurnCores, DmrgOptions, Generator, GroundState, Mpo, Mps, NetworksError,
    ResponseOptions, Sum, contract_features, from_engine, to_engine, train_from_tensors,
    train_to_tensors, weighted,
};
use super::ext::operation::{Array, Dual, Eager};
use super::ext::structured::Structured;
use super::{BurnMpo, BurnMps, Elements, Tensor, device, numbers};

/// `Σ ½(S⁺S⁻ + S⁻S⁺) + Δ SᶻSᶻ`, and a field that grows along the chain.
fn parts(n: usize) -> (Sites<U1>, [Mpo<U1>; 3]) {
    let sites = Sites::uniform(spin_half(), n);
    let sum = |add: &dyn Fn(&mut Sum<U1>, usize)| {
        let mut sum = Sum::new(&sites);
        (0..n - 1).for_each(|i| add(&mut sum, i));
        sum.mpo().unwrap()
    };
    let hop = sum(&|h, i| {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
    });
    let ising = sum(&|h, i| {
        h.add(1.0, [("Sz", i), ("Sz", i + 1)]);
    });
    let field = sum(&|h, i| {
        h.add(0.3 * (i + 1) as f64, [("Sz", i)]);
    });
    (sites, [hop, ising, field])
}

/// The gradient of `f` along pseudo-random directions, and its differences.
fn along(leaves: &[Tensor<1>], f: impl Fn(&[Tensor<1>]) -> Tensor<1>) -> (f64, f64) {
    let leaves: Vec<_> = leaves.iter().map(|x| x.clone().require_grad()).collect();
    let gradients = f(&leaves).backward();
    let direction = |k: usize| random([leaves[k].dims()[0]], 100 + k as u64);
    let own = leaves.iter().enumerate().map(|(k, x)| {
        let gradient = numbers(x.grad(&gradients).unwrap());
        gradient.iter().zip(numbers(direction(k))).map(|(a, b)| a * b).sum::<f64>()
    });
    let step = f64::EPSILON.cbrt();
    let at = |c: f64| {
        let moved = |(k, x): (usize, &Tensor<1>)| x.clone() + direction(k) * c;
        numbers(f(&leaves.iter().enumerate().map(moved).collect::<Vec<_>>()))[0]
    };
    (own.sum(), (at(step) - at(-step)) / (2.0 * step))
}

#[track_caller]
fn agree((own, want): (f64, f64)) {
    assert!((own - want).abs() < 1e-7 * want.abs().max(1.0), "{own}, {want}");
}

/// The state with these elements in its tensors.
fn with(like: &Mps<U1>, data: &[Tensor<1>]) -> BurnMps<U1> {
    let tensor = |(x, data): (&t4a_structured::GradedTensor<U1>, &Tensor<1>)| {
        let data: Elements = data.clone().into();
        t4a_structured::GradedTensor::new(x.spec().clone(), data, None).unwrap()
    };
    Mps::new(like.tensors().iter().zip(data).map(tensor).collect()).unwrap()
}

#[test]
fn graded_states_have_gradients() {
    let (sites, operators) = parts(6);
    let state = Mps::random(&sites, U1(0), 4, false, &Generator::new(7)).unwrap();
    let other = Mps::random(&sites, U1(0), 3, false, &Generator::new(8)).unwrap();
    let samples = state.sample(5, &Generator::new(9)).unwrap();
    let on = BurnMps::from_engine(&state, &device()).unwrap();
    let flat: Vec<Tensor<1>> = on.tensors().iter().map(|x| x.flat()).collect();
    let like = on.tensors()[0].re().clone();
    for (x, engine) in on.tensors().iter().zip(state.tensors()) {
        let back = x.to_engine().unwrap();
        assert_eq!(back.spec(), engine.spec());
        let read = |x: &Eager| x.elements().unwrap().typed::<f64>().unwrap().to_vec().unwrap();
        close(&read(back.re()), &read(engine.re()), 0.0);
    }
    let h = operators[0].over(&like).unwrap();
    agree(along(&flat, |x| with(&state, x).energy(&h).unwrap().tensor().unwrap()));
    let other = other.over(&like).unwrap();
    agree(along(&flat, |x| with(&state, x).ln_fidelity(&other).unwrap().tensor().unwrap()));
    let likelihood = |x: &[Tensor<1>]| -> Tensor<1> {
        with(&state, x).log_likelihood(&samples).unwrap().tensor().unwrap()
    };
    agree(along(&flat, |x| likelihood(x).sum()));
    // Beside the engine.
    let engine = state.log_likelihood(&samples).unwrap();
    let engine = engine.elements().unwrap().typed::<f64>().unwrap().to_vec().unwrap();
    close(&numbers(likelihood(&flat)), &engine, 1e-12);
    // Leaves and gradients as chains.
    let leaf = on.require_grad();
    let energy: Tensor<1> = leaf.energy(&h).unwrap().tensor().unwrap();
    let gradient = leaf.grad(&energy.backward()).unwrap();
    let gradient = gradient.to_engine().unwrap();
    assert_eq!(gradient.bond_dims(), state.bond_dims());
    // The energy does not depend on the norm: the gradient is orthogonal to each tensor.
    for (x, g) in state.tensors().iter().zip(gradient.tensors()) {
        let along = x.inner(g).unwrap().0.elements().unwrap();
        assert!(along.typed::<f64>().unwrap().to_vec().unwrap()[0].abs() < 1e-12);
    }
    assert!(leaf.detach().grad(&leaf_loss(&leaf).backward()).is_none());
}

fn leaf_loss(x: &BurnMps<U1>) -> Tensor<1> {
    x.ln_norm_squared().unwrap().tensor().unwrap()
}

#[test]
fn dense_cores_have_gradients() {
    let shapes = [[1, 2, 3], [3, 3, 2], [2, 2, 1]];
    let flat: Vec<Tensor<1>> =
        (0..3).map(|k| random([shapes[k].iter().product()], 1 + k as u64)).collect();
    let state = |x: &[Tensor<1>]| {
        BurnMps::<Trivial>::from_tensors((0..3).map(|k| x[k].clone().reshape(shapes[k]))).unwrap()
    };
    let samples = [vec![0, 2, 1], vec![1, 0, 0], vec![1, 1, 1]];
    agree(along(&flat, |x| {
        state(x).log_likelihood(&samples).unwrap().tensor::<1>().unwrap().sum()
    }));
    let features: Vec<Tensor<2>> =
        (0..3).map(|k| random([4, shapes[k][1]], 20 + k as u64)).collect();
    agree(along(&flat, |x| {
        let cores: Vec<_> = (0..3).map(|k| x[k].clone().reshape(shapes[k])).collect();
        let (rows, ln) = contract_features(&cores, &features).unwrap();
        (rows * ln.exp()).sum()
    }));
    let back: Vec<Tensor<3>> = state(&flat).to_tensors().unwrap();
    for (k, x) in back.into_iter().enumerate() {
        assert_eq!(x.dims(), shapes[k]);
        close(&numbers(x), &numbers(flat[k].clone()), 0.0);
    }
    let wrong = [f64s(&[1.0; 4], [1, 2, 2]), f64s(&[1.0; 6], [3, 2, 1])];
    let error = BurnMps::<Trivial>::from_tensors(wrong).unwrap_err();
    assert!(matches!(error, NetworksError::Chain { site: 1, .. }), "{error}");
}

/// Number computed from a ground state and an operator.
type Property<'a> = &'a dyn Fn(&GroundState<'_, U1, Elements>, &BurnMpo<U1>) -> Elements;

#[test]
fn ground_states_have_gradients_in_the_parameters() {
    let (sites, operators) = parts(6);
    let start = || Mps::random(&sites, U1(0), 8, false, &Generator::new(3)).unwrap();
    let options = || DmrgOptions::new().tolerance(1e-13).cutoff(1e-16);
    let (theta, direction) = ([1.0, 0.8, 1.1], [0.3, -1.0, 0.6]);
    // A backward pass consumes its graph, so that each result has its own.
    let on_tape = |of: Property<'_>| {
        let leaf = floats(&theta).require_grad();
        let h = weighted(&operators, leaf.clone()).unwrap();
        let ground = GroundState::find(&h, start(), options()).unwrap();
        let observable = operators[1].over(h.tensors()[0].re()).unwrap();
        let y: Tensor<1> = of(&ground, &observable).tensor().unwrap();
        let gradient = numbers(leaf.grad(&y.clone().backward()).unwrap());
        (numbers(y)[0], gradient.iter().zip(direction).map(|(a, b)| a * b).sum::<f64>())
    };
    let response = ResponseOptions::new();
    let own = [
        on_tape(&|ground, _| ground.energy().unwrap()),
        on_tape(&|ground, observable| ground.expectation(observable, &response).unwrap()),
    ];

    let number = |x: f64| Eager::from(AnyTensor::from(Dense::from_slice(&[x], &[1]).unwrap()));
    let duals: Vec<Dual<Eager>> =
        (0..3).map(|k| Dual::new(number(theta[k]), number(direction[k]))).collect();
    let h = Mpo::weighted(&operators, &duals).unwrap();
    let ground = GroundState::find(&h, start(), options()).unwrap();
    let observable = operators[1].over(&duals[0]).unwrap();
    let want = [ground.energy().unwrap(), ground.expectation(&observable, &response).unwrap()];
    let read = |x: &Eager| x.elements().unwrap().typed::<f64>().unwrap().to_vec().unwrap()[0];
    for ((value, along), want) in own.into_iter().zip(want) {
        close(&[value], &[read(&want.value)], 1e-9);
        agree((along, read(&want.into_tangent())));
    }
}

#[test]
fn trains_and_dense_arrays_are_burn_tensors() {
    let x: Tensor<3> = random([3, 4, 2], 5);
    let dense: Dense<f64> = to_engine(x.clone()).unwrap();
    let (train, error) = TensorTrain::from_dense(&dense, &Compression::new()).unwrap();
    assert!(error < 1e-14);
    let cores: Vec<Tensor<3>> = train_to_tensors(&train, &device()).unwrap();
    assert_eq!(cores[0].dtype(), DType::F64);
    let back: TensorTrain<f64> = train_from_tensors(cores).unwrap();
    let dense: Tensor<3> = from_engine(&back.to_dense().unwrap(), &device()).unwrap();
    close(&numbers(dense), &numbers(x), 1e-13);
    let matrix: Result<Tensor<2>, _> = from_engine(&back.to_dense().unwrap(), &device());
    let error = matrix.unwrap_err();
    assert!(matches!(error, NetworksError::Length { required: 2, given: 3, .. }), "{error}");
}
