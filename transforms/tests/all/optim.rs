//! Optimisers on trees against Burn's, step by step, eager and compiled.

use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::decay::WeightDecayConfig;
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, GradientsParams, Optimizer, SgdConfig};
use burn_autodiff::Autodiff;
use burn_t4a::ext::tree::Tree;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::grad;
use burn_t4a_transforms::module::{Parameters, lift};
use burn_t4a_transforms::optim::{
    Adam, AdamState, OptimError, Rate, Sgd, SgdState, clip_by_global_norm,
};
use burn_t4a_transforms::vmap::{Vmap, vmap};
use burn_tensor::activation::gelu;
use burn_tensor::backend::Backend;
use burn_tensor::{DType, Tensor, TensorData};

type B = BurnT4a;
type T = Traced<B>;
type A = Autodiff<B>;

const STEPS: usize = 100;

#[derive(Module, Debug)]
struct Mlp<B: Backend> {
    layers: [Linear<B>; 2],
}

impl<B: Backend<Device = T4aDevice>> Mlp<B> {
    fn new() -> Self {
        Self { layers: [(3, 8), (8, 2)].map(|(i, o)| LinearConfig::new(i, o).init(&T4aDevice)) }
    }
    fn loss(&self, x: Tensor<B, 2>) -> Tensor<B, 1> {
        let y = self.layers[1].forward(gelu(self.layers[0].forward(x.clone())));
        (y - x.clone().narrow(1, 0, 2) * x.narrow(1, 1, 2)).powi_scalar(2).mean()
    }
}

fn batch(i: usize) -> Tensor<B, 2> {
    let value = |k: usize| ((k * 7919 + 13 * i) % 1007) as f32 / 503.0 - 1.0;
    Tensor::from_data(TensorData::new((0..48).map(value).collect(), [16, 3]), &T4aDevice)
}

fn rate(i: usize) -> f64 {
    0.02 / (1.0 + 0.05 * i as f64)
}

fn numbers<const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

/// Largest difference between parameters, in units of their tolerance.
fn compare(own: &Mlp<B>, peer: &Mlp<A>) {
    for (x, y) in own.layers.iter().zip(&peer.layers) {
        let pairs = [
            (numbers(x.weight.val()), numbers(y.weight.val().inner())),
            (
                numbers(x.bias.as_ref().unwrap().val()),
                numbers(y.bias.as_ref().unwrap().val().inner()),
            ),
        ];
        for (x, y) in pairs.iter().flat_map(|(x, y)| x.iter().zip(y)) {
            assert!((x - y).abs() < 2e-5, "{x} and {y}");
        }
    }
}

/// Trains by Burn's optimiser, and by a compiled function whose state goes through its arguments; compares every tenth
/// step. The rate changes in each step.
fn train<S: Tree<T, On<B> = R> + 'static, R: Tree<B, On<T> = S> + Clone>(
    mut peer: impl Optimizer<Mlp<A>, A>,
    mut state: R,
    start: &Mlp<B>,
    step: impl Fn(Tensor<T, 1>, Parameters<T>, Parameters<T>, S) -> (Parameters<T>, S) + 'static,
) {
    let mut net: Mlp<A> = lift(start, Mlp::new()).unwrap();
    let mut own = Parameters::of(start);
    let template = Mlp::<Autodiff<T>>::new();
    let all = move |(own, state, x, rate): (Parameters<T>, S, Tensor<T, 2>, Tensor<T, 1>)| {
        let x = Tensor::<Autodiff<T>, 2>::from_inner(x);
        let loss = |p: Parameters<_>| p.onto(template.clone()).unwrap().loss(x.clone());
        let gradients = grad(loss, own.clone()).unwrap();
        step(rate, own, gradients, state)
    };
    let f = compile(all).fullgraph();
    for i in 0..STEPS {
        let gradients = net.loss(Tensor::from_inner(batch(i))).backward();
        let gradients = GradientsParams::from_grads(gradients, &net);
        net = peer.step(rate(i), net, gradients);
        let rate = Tensor::<B, 1>::from_floats([rate(i) as f32], &T4aDevice);
        (own, state) = f.call((own, state, batch(i), rate)).unwrap();
        if i == 0 || i % 10 == 9 {
            compare(&own.clone().onto(Mlp::new()).unwrap(), &net);
        }
    }
}

#[test]
fn a_hundred_compiled_steps_of_adam_are_burns() {
    let start = Mlp::<B>::new();
    let parameters = Parameters::of(&start);
    let plain = Adam::default();
    let penalised = Adam { decay: 0.05, betas: [0.8, 0.95], epsilon: 1e-3, decoupled: false };
    let decoupled = Adam { decoupled: true, ..penalised };
    let config = || AdamConfig::new().with_beta_1(0.8).with_beta_2(0.95).with_epsilon(1e-3);
    let decay = Some(WeightDecayConfig::new(0.05));
    let decoupled_peer = AdamWConfig::new().with_beta_1(0.8).with_beta_2(0.95);
    let decoupled_peer = decoupled_peer.with_epsilon(1e-3).with_weight_decay(0.05);
    let step = |adam: Adam| {
        move |rate: Tensor<T, 1>, x, g, state: AdamState<T, Parameters<T>>| {
            adam.step(rate, x, g, state).unwrap()
        }
    };
    let state = |adam: Adam| adam.init::<B, _>(&parameters).unwrap();
    train(AdamConfig::new().init(), state(plain), &start, step(plain));
    train(config().with_weight_decay(decay).init(), state(penalised), &start, step(penalised));
    train(decoupled_peer.init(), state(decoupled), &start, step(decoupled));
}

#[test]
fn a_hundred_compiled_steps_of_sgd_are_burns() {
    let start = Mlp::<B>::new();
    let parameters = Parameters::of(&start);
    for nesterov in [false, true] {
        let sgd = Sgd { momentum: 0.8, dampening: 0.3, nesterov, penalty: 0.01 };
        let momentum = MomentumConfig::new().with_momentum(0.8).with_dampening(0.3);
        let momentum = Some(momentum.with_nesterov(nesterov));
        let decay = Some(WeightDecayConfig::new(0.01));
        let peer = SgdConfig::new().with_momentum(momentum).with_weight_decay(decay);
        let step = move |rate: Tensor<T, 1>, x, g, state: SgdState<T, Parameters<T>>| {
            sgd.step(rate, x, g, state).unwrap()
        };
        train(peer.init::<A, Mlp<A>>(), sgd.init::<B, _>(&parameters).unwrap(), &start, step);
    }
}

/// One step of a vmapped optimiser is the step of each member.
#[test]
fn an_ensemble_has_one_state_for_each_member() {
    let adam = Adam::default();
    let x = Tensor::<B, 2>::from_floats([[1.0, 2.0], [3.0, -4.0], [0.5, 0.0]], &T4aDevice);
    let steps = |x: Tensor<Vmap<B>, 1>| {
        let mut state = adam.init(&x).unwrap();
        let mut x = x;
        for _ in 0..3 {
            let g = x.clone().powi_scalar(3);
            (x, state) = adam.step(0.1, x, g, state).unwrap();
        }
        (x, state.first)
    };
    let (all, means): (Tensor<B, 2>, Tensor<B, 2>) = vmap(steps).call(x.clone()).unwrap();
    for i in 0..3 {
        let mut one = x.clone().slice(i..i + 1).squeeze_dim::<1>(0);
        let mut state = adam.init(&one).unwrap();
        for _ in 0..3 {
            let g = one.clone().powi_scalar(3);
            (one, state) = adam.step(0.1, one, g, state).unwrap();
        }
        assert_eq!(numbers(all.clone().slice(i..i + 1)), numbers(one));
        assert_eq!(numbers(means.clone().slice(i..i + 1)), numbers(state.first));
    }
}

#[test]
fn mixed_precision_keeps_every_dtype() {
    let x = Tensor::<B, 1>::from_data([1.0f32, 2.0], (&T4aDevice, DType::F32));
    let y = Tensor::<B, 2>::from_data([[1.0f64], [2.0]], (&T4aDevice, DType::F64));
    let adam = Adam { decay: 0.1, decoupled: true, ..Adam::default() };
    let state = adam.init(&(x.clone(), y.clone())).unwrap();
    assert_eq!(state.powers[0].dtype(), DType::F64);
    let rate = Tensor::<B, 1>::from_data([0.1f32], (&T4aDevice, DType::F32));
    let ((x, y), state) = adam.step(rate, (x.clone(), y.clone()), (x, y), state).unwrap();
    assert_eq!((x.dtype(), y.dtype()), (DType::F32, DType::F64));
    assert_eq!((state.first.0.dtype(), state.second.1.dtype()), (DType::F32, DType::F64));
    // The first step has the length of the rate: x (1 − 0.01) − 0.1 / (1 + ε / |g|).
    let want = |x: f64| x * 0.99 - 0.1 / (1.0 + 1e-5 / x);
    for (found, x) in numbers(y).into_iter().zip([1.0, 2.0]) {
        assert!((found - want(x)).abs() < 1e-8, "{found}");
    }
    for (found, x) in numbers(x).into_iter().zip([1.0, 2.0]) {
        assert!((found - want(x)).abs() < 1e-6, "{found}");
    }
}

#[test]
fn gradients_are_clipped_by_the_norm_of_all() {
    let x = Tensor::<B, 1>::from_floats([3.0, 0.0], &T4aDevice);
    let y = Tensor::<B, 2>::from_floats([[4.0]], &T4aDevice);
    let (cx, cy) = clip_by_global_norm((x.clone(), y.clone()), 1.0).unwrap();
    for (found, want) in [(numbers(cx)[0], 0.6), (numbers(cy)[0], 0.8)] {
        assert!((found - want).abs() < 1e-6);
    }
    let (same, _) = clip_by_global_norm((x.clone(), y), 10.0).unwrap();
    assert_eq!(numbers(same), [3.0, 0.0]);
    assert!(matches!(clip_by_global_norm(x, 0.0), Err(OptimError::Norm { .. })));
}

#[test]
fn trees_that_do_not_fit_are_errors() {
    let of = |n: usize| Tensor::<B, 1>::zeros([n], &T4aDevice);
    let adam = Adam::default();
    let state = adam.init(&vec![of(2), of(3)]).unwrap();
    let found = adam.step(0.1, vec![of(2), of(3)], vec![of(2), of(4)], state.clone());
    let message = found.unwrap_err().to_string();
    let want = "optimiser: gradients do not fit the parameters: leaf .1 is ";
    assert!(message.starts_with(want) && !message.contains(".0"), "{message}");
    let found = adam.step(0.1, vec![of(2), of(3)], vec![of(2)], state.clone());
    assert!(matches!(found, Err(OptimError::Structure { tree: "gradients", .. })));
    let found = adam.step(of(2), vec![of(2), of(3)], vec![of(2), of(3)], state);
    assert!(matches!(found, Err(OptimError::Rate { count: 2 })));
    let rate: Rate<B> = 0.5.into();
    assert!(matches!(rate, Rate::Number(0.5)));
}
