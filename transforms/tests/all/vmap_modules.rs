//! Unmodified modules of burn-nn on a batch against a loop; gradients per example; ensembles.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use burn::module::{AutodiffModule, Module};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig, MaxPool2d, MaxPool2dConfig};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{
    BatchNorm, BatchNormConfig, Embedding, EmbeddingConfig, Gelu, LayerNorm, LayerNormConfig,
    Linear, LinearConfig, Lstm, LstmConfig, Relu,
};
use burn::tensor::backend::Backend;
use burn::tensor::{Distribution, Int, Tensor, activation};
use burn_autodiff::Autodiff;
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::module::{EnsembleError, ModuleError, lift, member, stack};
use burn_t4a_transforms::vmap::{Random, Vmap, VmapError, vmap};

type B = BurnT4a;
type V = Vmap<B>;

const BATCH: usize = 3;

fn draw<const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &T4aDevice)
}

fn close<const D: usize>(given: Tensor<B, D>, expected: Tensor<B, D>) {
    let tolerance = burn::tensor::Tolerance::<f32>::rel_abs(1e-3, 1e-4);
    given.into_data().assert_approx_eq::<f32>(&expected.into_data(), tolerance);
}

/// Example i.
fn at<const D: usize, const E: usize>(x: &Tensor<B, D>, i: usize) -> Tensor<B, E> {
    x.clone().slice_dim(0, i..i + 1).squeeze_dim(0)
}

/// The lifted module on all examples, and the module on each.
fn equals_a_loop<const D: usize, const E: usize, const O: usize, const P: usize>(
    x: Tensor<B, D>,
    mapped: impl Fn(Tensor<V, E>) -> Tensor<V, O>,
    one: impl Fn(Tensor<B, E>) -> Tensor<B, O>,
) {
    let y: Tensor<B, P> = vmap(mapped).call(x.clone()).unwrap();
    for i in 0..BATCH {
        close(at::<P, O>(&y, i), one(at::<D, E>(&x, i)));
    }
}

#[derive(Module, Debug)]
struct Mlp<B: Backend> {
    first: Linear<B>,
    norm: LayerNorm<B>,
    gelu: Gelu,
    last: Linear<B>,
}

impl<B: Backend> Mlp<B> {
    fn new(inputs: usize) -> Self {
        let device = Default::default();
        Self {
            first: LinearConfig::new(inputs, 6).init(&device),
            norm: LayerNormConfig::new(6).init(&device),
            gelu: Gelu::new(),
            last: LinearConfig::new(6, 2).init(&device),
        }
    }
    fn forward<const D: usize>(&self, x: Tensor<B, D>) -> Tensor<B, D> {
        let x = self.gelu.forward(self.norm.forward(self.first.forward(x)));
        activation::softmax(self.last.forward(x), D - 1)
    }
}

#[derive(Module, Debug)]
struct Cnn<B: Backend> {
    conv: Conv2d<B>,
    norm: BatchNorm<B>,
    pool: MaxPool2d,
    relu: Relu,
    average: AdaptiveAvgPool2d,
    last: Linear<B>,
}

impl<B: Backend> Cnn<B> {
    fn new() -> Self {
        let device = Default::default();
        Self {
            conv: Conv2dConfig::new([2, 4], [3, 3]).init(&device),
            norm: BatchNormConfig::new(4).init(&device),
            pool: MaxPool2dConfig::new([2, 2]).init(),
            relu: Relu::new(),
            average: AdaptiveAvgPool2dConfig::new([2, 2]).init(),
            last: LinearConfig::new(16, 3).init(&device),
        }
    }
    fn forward(&self, x: Tensor<B, 4>) -> Tensor<B, 2> {
        let x = self.pool.forward(self.relu.forward(self.norm.forward(self.conv.forward(x))));
        self.last.forward(self.average.forward(x).flatten(1, 3))
    }
}

#[test]
fn perceptrons() {
    let module = Mlp::<B>::new(4);
    let lifted: Mlp<V> = lift(&module, Mlp::new(4)).unwrap();
    let forward = |x: Tensor<V, 2>| lifted.forward(x);
    equals_a_loop::<3, 2, 2, 3>(draw([BATCH, 5, 4]), forward, |x| module.forward(x));
    // An example without an axis of samples.
    let forward = |x: Tensor<V, 1>| lifted.forward(x);
    equals_a_loop::<2, 1, 1, 2>(draw([BATCH, 4]), forward, |x| module.forward(x));
}

#[test]
fn convolutional_networks() {
    let module = Cnn::<B>::new();
    let lifted: Cnn<V> = lift(&module, Cnn::new()).unwrap();
    let forward = |x: Tensor<V, 4>| lifted.forward(x);
    equals_a_loop::<5, 4, 2, 3>(draw([BATCH, 2, 2, 8, 8]), forward, |x| module.forward(x));
}

#[test]
fn transformers() {
    let config = TransformerEncoderConfig::new(8, 12, 2, 2);
    let module: TransformerEncoder<B> = config.init(&T4aDevice);
    let lifted: TransformerEncoder<V> = lift(&module, config.init(&T4aDevice)).unwrap();
    let forward = |x: Tensor<V, 3>| lifted.forward(TransformerEncoderInput::new(x));
    let one = |x: Tensor<B, 3>| module.forward(TransformerEncoderInput::new(x));
    equals_a_loop::<4, 3, 3, 4>(draw([BATCH, 2, 5, 8]), forward, one);
}

#[test]
fn recurrent_networks() {
    let config = LstmConfig::new(3, 4, true);
    let module: Lstm<B> = config.init(&T4aDevice);
    let lifted: Lstm<V> = lift(&module, config.init(&T4aDevice)).unwrap();
    let forward = |x: Tensor<V, 3>| lifted.forward(x, None).0;
    equals_a_loop::<4, 3, 3, 4>(draw([BATCH, 2, 5, 3]), forward, |x| module.forward(x, None).0);
}

#[test]
fn embeddings_of_integers() {
    let config = EmbeddingConfig::new(7, 4);
    let module: Embedding<B> = config.init(&T4aDevice);
    let lifted: Embedding<V> = lift(&module, config.init(&T4aDevice)).unwrap();
    let i = Tensor::<B, 3, Int>::random([BATCH, 2, 5], Distribution::Uniform(0.0, 7.0), &T4aDevice);
    let y: Tensor<B, 4> = vmap(|i: Tensor<V, 2, Int>| lifted.forward(i)).call(i.clone()).unwrap();
    let all = module.forward(i.reshape([BATCH * 2, 5])).reshape([BATCH, 2, 5, 4]);
    close(y, all);
}

/// Gradients of all parameters of a network with convolutions, in one call, against a tape per example.
#[test]
fn gradients_per_example() {
    type A = Autodiff<V>;
    type One = Autodiff<B>;
    let module = Cnn::<B>::new();
    let x = draw([BATCH, 1, 2, 8, 8]);
    let targets = draw([BATCH, 1, 3]);
    let lifted: Cnn<V> = lift(&module, Cnn::new()).unwrap();
    // Each example has running statistics of its own, which nothing reads. Parameters are drawn outside
    // of the mapped function, where the template may draw none.
    let tracked: Cnn<A> = lift(&lifted, Cnn::new()).unwrap();
    let f = |(x, t): (Tensor<V, 4>, Tensor<V, 2>)| {
        let module = &tracked;
        let error = module.forward(Tensor::from_inner(x)) - Tensor::from_inner(t);
        let gradients = error.powi_scalar(2).sum().backward();
        (
            module.conv.weight.val().grad(&gradients).unwrap(),
            module.conv.bias.as_ref().unwrap().val().grad(&gradients).unwrap(),
            module.norm.gamma.val().grad(&gradients).unwrap(),
            module.last.weight.val().grad(&gradients).unwrap(),
        )
    };
    type All = (Tensor<B, 5>, Tensor<B, 2>, Tensor<B, 2>, Tensor<B, 3>);
    let (kernels, biases, gammas, weights): All =
        vmap(f).keeping().call((x.clone(), targets.clone())).unwrap();
    let module: Cnn<One> = lift(&module, Cnn::new()).unwrap();
    for i in 0..BATCH {
        let input = Tensor::<One, 4>::from_inner(at::<5, 4>(&x, i));
        let error = module.forward(input) - Tensor::from_inner(at::<3, 2>(&targets, i));
        let gradients = error.powi_scalar(2).sum().backward();
        close(at::<5, 4>(&kernels, i), module.conv.weight.val().grad(&gradients).unwrap());
        let bias = module.conv.bias.as_ref().unwrap().val();
        close(at::<2, 1>(&biases, i), bias.grad(&gradients).unwrap());
        close(at::<2, 1>(&gammas, i), module.norm.gamma.val().grad(&gradients).unwrap());
        close(at::<3, 2>(&weights, i), module.last.weight.val().grad(&gradients).unwrap());
    }
}

#[test]
fn parameters_are_not_copied() {
    let module = Mlp::<B>::new(4);
    let lifted: Mlp<V> = lift(&module, Mlp::new(4)).unwrap();
    assert_eq!(lifted.first.weight.id, module.first.weight.id);
    let (inner, batched) = lifted.first.weight.val().into_primitive().tensor().into_inner();
    assert!(!batched);
    let at = |x: burn_t4a::T4aTensor| {
        let x = x.into_any();
        x.typed::<f32>().unwrap().as_slice().map(<[f32]>::as_ptr)
    };
    let own = module.first.weight.val().into_primitive().tensor();
    assert_eq!(at(inner), at(own));
}

#[test]
fn ensembles() {
    let members: Vec<Cnn<B>> = (0..3).map(|_| Cnn::new()).collect();
    let ensemble: Cnn<V> = stack(&members, Cnn::new()).unwrap();
    // All members see the same images, and each its own.
    let x = draw([2, 2, 8, 8]);
    let forward = |x: Tensor<V, 4>| ensemble.forward(x);
    let y: Tensor<B, 3> = vmap(forward).in_axes(None).size(3).call(x.clone()).unwrap();
    let own = draw([3, 2, 2, 8, 8]);
    let z: Tensor<B, 3> = vmap(forward).call(own.clone()).unwrap();
    for (i, one) in members.iter().enumerate() {
        close(at::<3, 2>(&y, i), one.forward(x.clone()));
        close(at::<3, 2>(&z, i), one.forward(at::<5, 4>(&own, i)));
        let taken: Cnn<B> = member(&ensemble, i, Cnn::new()).unwrap();
        close(taken.forward(x.clone()), one.forward(x.clone()));
    }
    let error = member::<B, _, Cnn<B>>(&ensemble, 3, Cnn::new()).unwrap_err();
    assert_eq!(error, EnsembleError::Member { index: 3, count: 3 });
}

/// Steps of Adam of all members at once are those of each.
#[test]
fn ensembles_are_trained() {
    use burn::optim::{AdamConfig, GradientsParams, Optimizer};
    type A = Autodiff<V>;
    let members: Vec<Mlp<B>> = (0..3).map(|_| Mlp::new(4)).collect();
    let (x, t) = (draw([8, 4]), draw([8, 2]));
    let stacked: Mlp<V> = stack(&members, Mlp::new(4)).unwrap();
    let mut ensemble: Mlp<A> = lift(&stacked, Mlp::new(4)).unwrap();
    let mut optimizer = AdamConfig::new().init::<A, Mlp<A>>();
    let shared = |x: &Tensor<B, 2>| -> Tensor<A, 2> {
        let below =
            burn_t4a_transforms::vmap::VmapTensor::shared(x.clone().into_primitive().tensor());
        Tensor::from_inner(Tensor::from_primitive(burn::tensor::TensorPrimitive::Float(below)))
    };
    for _ in 0..3 {
        let loss = (ensemble.forward(shared(&x)) - shared(&t)).powi_scalar(2).sum();
        let gradients = GradientsParams::from_grads(loss.backward(), &ensemble);
        ensemble = optimizer.step(0.01, ensemble, gradients);
    }
    for (i, one) in members.into_iter().enumerate() {
        let mut one: Mlp<Autodiff<B>> = lift(&one, Mlp::new(4)).unwrap();
        let mut optimizer = AdamConfig::new().init::<Autodiff<B>, Mlp<Autodiff<B>>>();
        for _ in 0..3 {
            let (x, t) = (Tensor::from_inner(x.clone()), Tensor::from_inner(t.clone()));
            let loss = (one.forward(x) - t).powi_scalar(2).sum();
            let gradients = GradientsParams::from_grads(loss.backward(), &one);
            one = optimizer.step(0.01, one, gradients);
        }
        let trained: Mlp<V> = ensemble.clone().valid();
        let taken: Mlp<B> = member(&trained, i, Mlp::new(4)).unwrap();
        close(taken.first.weight.val(), one.first.weight.val().inner());
        close(taken.last.bias.unwrap().val(), one.last.bias.unwrap().val().inner());
    }
}

#[test]
fn modules_that_differ_are_errors() {
    let error = lift::<B, V, _, Mlp<V>>(&Mlp::<B>::new(4), Mlp::new(5)).unwrap_err();
    assert!(matches!(error, ModuleError::Parameter { index: 0, .. }), "{error}");
    assert_eq!(error.to_string(), "parameter 0: required floats [5, 6], given floats [4, 6]");
    let error = stack::<B, _, Mlp<V>>(&[Mlp::<B>::new(4), Mlp::new(5)], Mlp::new(4)).unwrap_err();
    let differs = |error: &ModuleError| matches!(error, ModuleError::Parameter { index: 0, .. });
    assert!(matches!(error, EnsembleError::Module(error) if differs(&error)));
    let linear: Linear<B> = LinearConfig::new(4, 6).init(&T4aDevice);
    let error = lift::<B, V, _, Mlp<V>>(&linear, Mlp::new(4)).unwrap_err();
    assert_eq!(error, ModuleError::Count { required: 6, given: 2 });
    let error = stack::<B, Mlp<B>, Mlp<V>>(&[], Mlp::new(4)).unwrap_err();
    assert_eq!(error, EnsembleError::Empty);
}

/// Burn draws parameters at their first use, which is inside of the mapped function here.
#[test]
fn parameters_are_those_of_one_net() {
    let x: Tensor<B, 2> = draw::<2>([1, 4]).expand([BATCH, 4]);
    let linear = LinearConfig::new(4, 3).init::<V>(&T4aDevice);
    let f = vmap(|x: Tensor<V, 1>| linear.forward(x)).random(Random::Same);
    let all: Vec<Tensor<B, 2>> = (0..2).map(|_| f.call(x.clone()).unwrap()).collect();
    for y in &all {
        for i in 0..BATCH {
            close(at::<2, 1>(y, i), at::<2, 1>(&all[0], 0));
        }
    }
    let linear = LinearConfig::new(4, 3).init::<V>(&T4aDevice);
    let own = vmap(|x: Tensor<V, 1>| linear.forward(x)).random(Random::Different);
    let nets: Result<Tensor<B, 2>, _> = own.call(x.clone());
    assert_eq!(nets.unwrap_err(), VmapError::Keeps);
    // Nothing says what examples share.
    let linear = LinearConfig::new(4, 3).init::<V>(&T4aDevice);
    let payload = catch_unwind(AssertUnwindSafe(|| {
        let _: Result<Tensor<B, 2>, _> = vmap(|x: Tensor<V, 1>| linear.forward(x)).call(x.clone());
    }));
    let text = payload.unwrap_err().downcast_ref::<String>().cloned().unwrap();
    assert!(text.contains("parameters"), "{text}");
}

/// Statistics of a batch, a tensor in a cell, and a tape that waits for a pass.
#[test]
fn what_a_function_keeps_of_examples_is_an_error() {
    type Tape = Autodiff<V>;
    let x = draw::<3>([BATCH, 8, 2]);
    let norm = BatchNormConfig::new(2).init::<Tape>(&T4aDevice);
    let train = |x: Tensor<V, 2>| norm.forward(Tensor::<Tape, 2>::from_inner(x)).inner();
    let kept: Result<Tensor<B, 3>, _> = vmap(train).call(x.clone());
    assert_eq!(kept.unwrap_err(), VmapError::Keeps);

    let last = RefCell::new(None);
    let kept: Result<Tensor<B, 3>, _> = vmap(|x: Tensor<V, 2>| {
        last.replace(Some(x.clone() * 2.0));
        x
    })
    .chunk(2)
    .call(x.clone());
    assert_eq!(kept.unwrap_err(), VmapError::Keeps);
    // Of shared tensors any may be kept.
    let _: Tensor<B, 3> = vmap(|x: Tensor<V, 2>| {
        last.replace(Some(Tensor::ones([2, 2], &T4aDevice)));
        x
    })
    .call(x.clone())
    .unwrap();

    let y: Tensor<B, 3> = vmap(|x: Tensor<V, 2>| {
        let x = Tensor::<Tape, 2>::from_inner(x).require_grad();
        (x.clone() * x).tanh().inner()
    })
    .call(x.clone())
    .unwrap();
    close(y, (x.clone() * x).tanh());
}

/// A clone of a module shares its running statistics.
#[test]
fn running_statistics_are_read_through_another_handle() {
    type Tape = Autodiff<V>;
    let x = draw::<3>([BATCH, 8, 2]);
    let net = || {
        let norm = BatchNormConfig::new(2).init::<Tape>(&T4aDevice);
        (norm.clone(), norm)
    };
    let mean = |of: &BatchNorm<Tape>| of.running_mean.value_sync().inner();
    let (norm, other) = net();
    let train = |x: Tensor<V, 2>| norm.forward(Tensor::<Tape, 2>::from_inner(x)).inner();
    let kept: Result<Tensor<B, 3>, _> = vmap(train).call(x.clone());
    assert_eq!(kept.unwrap_err(), VmapError::Keeps);
    let text = |payload: Box<dyn std::any::Any + Send>| {
        payload.downcast_ref::<String>().cloned().expect("a message")
    };
    let outside = catch_unwind(AssertUnwindSafe(|| mean(&other).into_data()));
    assert!(text(outside.unwrap_err()).contains("elements of a batch"));

    let (norm, other) = net();
    let read = |x: Tensor<V, 2>| {
        norm.forward(Tensor::<Tape, 2>::from_inner(x));
        mean(&other)
    };
    let wanted = x.clone().mean_dim(1).squeeze_dim::<2>(1) * 0.1;
    let means: Tensor<B, 2> = vmap(read).keeping().call(x.clone()).unwrap();
    close(means, wanted.clone());
    // The next call of as many examples reads and updates the statistics of each.
    let means: Tensor<B, 2> = vmap(read).keeping().call(x.clone()).unwrap();
    close(means, wanted * 1.9);
    let fewer = x.narrow(0, 0, 2);
    let smaller = catch_unwind(AssertUnwindSafe(|| {
        let _: Result<Tensor<B, 2>, _> = vmap(read).keeping().call(fewer);
    }));
    assert!(text(smaller.unwrap_err()).contains("kept from another call"));
}
