//! Optimisers, second derivatives and whole training steps, under both checkpointing strategies.

use burn::backend::Autodiff;
use burn::backend::autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn::module::Module;
use burn::nn::loss::{MseLoss, Reduction};
use burn::nn::{Linear, LinearConfig, Relu};
use burn::optim::*;
use burn::record::{BinBytesRecorder, FullPrecisionSettings, Recorder};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Tensor, TensorData};
use burn_backend::DType;
use burn_flex::Flex;
use burn_t4a::BurnT4a;

use crate::material::{Operand, Ulps, Values, difference};

#[derive(Module, Debug)]
pub struct Mlp<B: Backend> {
    first: Linear<B>,
    second: Linear<B>,
    relu: Relu,
}

impl<B: Backend> Mlp<B> {
    pub fn new(device: &B::Device) -> Self {
        Self {
            first: LinearConfig::new(4, 16).init(device),
            second: LinearConfig::new(16, 2).init(device),
            relu: Relu::new(),
        }
    }

    pub fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        self.second.forward(self.relu.forward(self.first.forward(x)))
    }

    pub fn weights(&self) -> Vec<TensorData> {
        [&self.first, &self.second]
            .into_iter()
            .flat_map(|l| {
                [Some(l.weight.val().into_data()), l.bias.as_ref().map(|b| b.val().into_data())]
            })
            .flatten()
            .collect()
    }
}

/// Initial weights of every run.
pub fn start() -> Vec<u8> {
    Flex::seed(&Default::default(), 11);
    let model = Mlp::<Flex>::new(&Default::default());
    let _ = model.weights();
    BinBytesRecorder::<FullPrecisionSettings>::new().record(model.into_record(), ()).unwrap()
}

pub fn load<B: Backend>(start: &[u8]) -> Mlp<B> {
    let device = Default::default();
    let record = BinBytesRecorder::<FullPrecisionSettings>::new().load(start.to_vec(), &device);
    Mlp::new(&device).load_record(record.unwrap())
}

pub fn batch<B: Backend>(salt: usize) -> (Tensor<B, 2>, Tensor<B, 2>) {
    let data =
        |shape: &[usize], salt| Operand::row_major(shape, DType::F32, Values::Plain, salt).data;
    let device = Default::default();
    (
        Tensor::from_data(data(&[8, 4], salt), &device),
        Tensor::from_data(data(&[8, 2], salt + 50), &device),
    )
}

/// Ten steps from the same initial weights; returns the final weights.
fn train<B: AutodiffBackend, O: Optimizer<Mlp<B>, B>>(
    start: &[u8],
    mut optimizer: O,
) -> Vec<TensorData> {
    let mut model = load::<B>(start);
    for step in 0..10 {
        let (x, y) = batch::<B>(step);
        let loss = MseLoss::new().forward(model.forward(x), y, Reduction::Mean);
        let grads = GradientsParams::from_grads(loss.backward(), &model);
        model = optimizer.step(0.01, model, grads);
    }
    model.weights()
}

macro_rules! optimizers {
    ($($name:ident: $config:expr;)*) => {$(
        #[test]
        fn $name() {
            let start = start();
            let ours = train::<Autodiff<BurnT4a>, _>(&start, $config.init());
            let theirs = train::<Autodiff<Flex>, _>(&start, $config.init());
            let moved = difference(&load::<Flex>(&start).weights(), &ours, Ulps(1e4));
            assert!(moved.is_some(), "the optimiser changed nothing");
            assert_eq!(difference(&ours, &theirs, Ulps(20_000.0)), None);
            let balanced = train::<Autodiff<BurnT4a, BalancedCheckpointing>, _>(&start, $config.init());
            assert_eq!(difference(&balanced, &theirs, Ulps(20_000.0)), None);
        }
    )*};
}

optimizers! {
    sgd: SgdConfig::new().with_momentum(Some(momentum::MomentumConfig::new().with_momentum(0.9)));
    adam: AdamConfig::new();
    adam_w: AdamWConfig::new().with_weight_decay(0.05);
    ada_grad: AdaGradConfig::new();
    rms_prop: RmsPropConfig::new().with_momentum(0.9);
}

/// d²/dx² of Σ tanh(x)³ by two reverse passes, against the formula
/// `6t(1−t²)² − 6t³(1−t²)` with `t = tanh x`.
#[test]
fn second_derivatives() {
    type B1 = Autodiff<BurnT4a>;
    type B2 = Autodiff<B1>;
    let values = [-1.3f64, -0.2, 0.0, 0.4, 1.1];
    let device = Default::default();
    let leaf =
        Tensor::<B1, 1>::from_data(TensorData::from(values), (&device, DType::F64)).require_grad();
    let x = Tensor::<B2, 1>::from_inner(leaf.clone()).require_grad();
    let y = x.clone().tanh().powi_scalar(3).sum();
    let first = x.grad(&y.backward()).unwrap();
    let second = leaf.grad(&first.sum().backward()).unwrap().into_data();
    for (x, got) in values.iter().zip(second.iter::<f64>()) {
        let t = x.tanh();
        let s = 1.0 - t * t;
        let want = 6.0 * t * s * s - 6.0 * t.powi(3) * s;
        assert!((got - want).abs() < 1e-12, "{x}: {got} against {want}");
    }
}

/// `f64` training agrees with `f64` training on Flex to the precision of `f64`.
#[test]
fn double_precision_runs_through_the_whole_step() {
    fn run<B: AutodiffBackend>() -> Vec<TensorData> {
        let device = Default::default();
        let x =
            |shape: &[usize], salt| Operand::row_major(shape, DType::F64, Values::Plain, salt).data;
        let w = Tensor::<B, 2>::from_data(x(&[4, 3], 1), (&device, DType::F64)).require_grad();
        let a = Tensor::<B, 2>::from_data(x(&[5, 4], 2), (&device, DType::F64));
        let y = burn::tensor::activation::softmax(a.matmul(w.clone()).transpose(), 1);
        let grads = (y.clone() * y).sum().backward();
        vec![w.grad(&grads).unwrap().into_data()]
    }
    let ours = run::<Autodiff<BurnT4a>>();
    assert_eq!(ours[0].dtype, DType::F64);
    assert_eq!(difference(&ours, &run::<Autodiff<Flex>>(), Ulps(1000.0)), None);
}
