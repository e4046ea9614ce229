//! Structured tensors as fields of modules: counted, optimised, clipped, recorded and printed like any other parameter,
//! on BurnT4a and on Flex.

use std::sync::Arc;

use burn::backend::Autodiff;
use burn::grad_clipping::GradientClippingConfig;
use burn::module::{AutodiffModule, Module};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer, SgdConfig};
use burn::record::{BinBytesRecorder, FullPrecisionSettings, Recorder};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::{Distribution, Tensor, TensorData, Tolerance};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::structured::*;

/// A charge-conserving map, followed by a layer.
#[derive(Module, Debug)]
struct Model<B: Backend> {
    map: Weights<B, Spec<U1>>,
    layer: Linear<B>,
}

fn spec() -> Spec<U1> {
    let leg = Leg::new([(U1(-1), 2), (U1(0), 3), (U1(1), 1)], Direction::Out).unwrap();
    Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap()
}

/// 4 + 9 + 1 entries.
fn start() -> TensorData {
    let x: Vec<f32> = (0..14).map(|i| ((7 * i % 11) as f32 - 5.0) / 8.0).collect();
    TensorData::new(x, [14])
}

impl<B: Operations> Model<B> {
    fn new(device: &B::Device) -> Self {
        let data = Tensor::from_data(start(), device);
        let tensor = GradedTensor::from_flat(&spec(), data).unwrap();
        Self { map: Weights::new(&tensor), layer: LinearConfig::new(6, 2).init(device) }
    }

    fn forward(&self, x: Tensor<B, 2>) -> Tensor<B, 2> {
        let map: Tensor<B, 2> = self.map.tensor().unwrap().to_tensor().unwrap();
        self.layer.forward(x.matmul(map))
    }
}

fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f32> {
    x.into_data().iter::<f32>().collect()
}

/// `Σ (‖map‖² − 1)²`, of the map alone.
fn loss<B: Operations>(map: &Weights<B, Spec<U1>>) -> Tensor<B, 1> {
    let x = map.tensor().unwrap().flat();
    ((x.clone() * x).sum() - 1.0).powi_scalar(2)
}

fn trained<B: AutodiffBackend + Operations>(steps: usize) -> Vec<f32> {
    let device = B::Device::default();
    let mut model = Model::<B>::new(&device);
    let mut optimizer = AdamConfig::new().init();
    for _ in 0..steps {
        let grads = GradientsParams::from_grads(loss(&model.map).backward(), &model);
        model = optimizer.step(0.05, model, grads);
    }
    numbers(model.map.tensor().unwrap().flat())
}

#[test]
fn parameters_are_counted_and_optimised() {
    let device = Default::default();
    let model = Model::<Autodiff<BurnT4a>>::new(&device);
    assert_eq!(model.map.num_params(), 14);
    assert_eq!(model.num_params(), 14 + 6 * 2 + 2);
    let own = trained::<Autodiff<BurnT4a>>(200);
    let norm: f32 = own.iter().map(|x| x * x).sum();
    assert!((norm - 1.0).abs() < 1e-2, "{norm}");
    let data = TensorData::new(own, [14]);
    let flex = TensorData::new(trained::<Autodiff<Flex>>(200), [14]);
    data.assert_approx_eq::<f32>(&flex, Tolerance::absolute(1e-4));
}

#[test]
fn gradients_are_clipped() {
    let device = Default::default();
    let step = |clip: Option<f32>| {
        let model = Model::<Autodiff<BurnT4a>>::new(&device);
        let mut config = SgdConfig::new();
        if let Some(norm) = clip {
            config = config.with_gradient_clipping(Some(GradientClippingConfig::Norm(norm)));
        }
        let grads = GradientsParams::from_grads(loss(&model.map).backward(), &model);
        let before = numbers(model.map.tensor().unwrap().flat());
        let model = config.init().step(1.0, model, grads);
        let after = numbers(model.map.tensor().unwrap().flat());
        let moved: Vec<f32> = before.iter().zip(after).map(|(a, b)| a - b).collect();
        (moved.iter().map(|x| x * x).sum::<f32>().sqrt(), moved)
    };
    let ((free, along), (clipped, same)) = (step(None), step(Some(0.01)));
    assert!(free > 0.1 && (clipped - 0.01).abs() < 1e-4, "{free} {clipped}");
    for (a, b) in along.iter().zip(same) {
        assert!((a / free - b / clipped).abs() < 1e-3);
    }
}

#[test]
fn records_restore_the_numbers() {
    let device = Default::default();
    let recorder = BinBytesRecorder::<FullPrecisionSettings>::new();
    let model = Model::<BurnT4a>::new(&device);
    // Burn initialises the parameters of a layer at first use, separately for each copy.
    model.forward(Tensor::zeros([1, 6], &device));
    let bytes = recorder.record(model.clone().into_record(), ()).unwrap();
    let blank = |spec: &Spec<U1>| {
        let zeros = GradedTensor::zeros(spec, &device).unwrap();
        Model::<BurnT4a> { map: Weights::new(&zeros), ..Model::new(&device) }
    };
    let read = |bytes| recorder.load(bytes, &device);
    let loaded = blank(&spec()).load_record(read(bytes.clone()).unwrap());
    let both = [&model, &loaded].map(|model| numbers(model.map.tensor().unwrap().flat()));
    assert_eq!(both[0], both[1]);
    let x = Tensor::random([3, 6], Distribution::Default, &device);
    assert_eq!(numbers(model.forward(x.clone())), numbers(loaded.forward(x)));
    // Flex reads records written by BurnT4a.
    let flex = Model::<Flex>::new(&Default::default());
    let flex = flex.load_record(recorder.load(bytes.clone(), &Default::default()).unwrap());
    assert_eq!(numbers(flex.map.tensor().unwrap().flat()), both[0]);
    // A record with another structure is an error when it is used.
    let other = Spec::new(spec().legs().to_vec(), U1(1), 1).unwrap();
    let wrong = blank(&other).load_record(read(bytes.clone()).unwrap());
    let error = wrong.map.tensor().err();
    assert!(matches!(error, Some(StructuredError::LengthMismatch { .. })), "{error:?}");
}

#[test]
fn modules_cross_the_tape() {
    type AD = Autodiff<BurnT4a>;
    let device = Default::default();
    let model = Model::<AD>::new(&device);
    let below: Model<BurnT4a> = model.valid();
    assert_eq!(
        numbers(below.map.tensor().unwrap().flat()),
        numbers(model.map.tensor().unwrap().flat())
    );
    let again: Model<AD> = below.train::<AD>();
    assert!(again.map.params()[0].val().is_require_grad());
    assert!(!model.clone().no_grad().map.params()[0].val().is_require_grad());
    assert_eq!(model.devices(), vec![device]);
    let moved = model.clone().fork(&device).to_device(&device);
    assert_eq!(
        numbers(moved.map.tensor().unwrap().flat()),
        numbers(model.map.tensor().unwrap().flat())
    );
    let text = format!("{model}");
    assert!(text.contains("charge 0: out {-1: 2, 0: 3, 1: 1} | in {-1: 2, 0: 3, 1: 1}"), "{text}");
    assert!(text.contains("params: 28"), "{text}");
}

#[test]
fn all_kinds_are_parameters() {
    let device = Default::default();
    let pattern = Arc::new(Pattern::new(vec![vec![2, 1], vec![3]], vec![vec![0, 0]]).unwrap());
    let blocks = Weights::new(&BlockSparseTensor::<BurnT4a>::zeros(&pattern, &device).unwrap());
    assert_eq!((Module::num_params(&blocks), blocks.tensor().unwrap().flat().dims()), (6, [6]));
    let classes = Classes { payload: vec![3], classes: vec![0, 0] };
    let diag = Weights::new(&DiagTensor::<BurnT4a>::zeros(&classes, &device).unwrap());
    assert_eq!((Module::num_params(&diag), diag.tensor().unwrap().shape()), (3, vec![3, 3]));
    // A complex tensor is two parameters.
    let data = Tensor::<BurnT4a, 1>::from_data(start(), &device);
    let complex = burn_t4a::ext::Complex::new(data.clone(), data * 2.0).unwrap();
    let complex = Weights::new(&GradedTensor::from_complex(&spec(), complex).unwrap());
    assert_eq!(Module::num_params(&complex), 28);
    assert!(complex.tensor().unwrap().im().is_some());
}

/// Each matrix is initialised with a scale given by its own size.
#[test]
fn initial_numbers_have_the_scale_of_their_matrix() {
    let leg = Leg::new([(U1(0), 100), (U1(1), 4)], Direction::Out).unwrap();
    let spec = Spec::new(vec![leg.clone(), leg.dual()], U1(0), 1).unwrap();
    let device = Default::default();
    BurnT4a::seed(&device, 3);
    let x = Weights::<BurnT4a, _>::normal(&spec, &device).unwrap().tensor().unwrap();
    let x = numbers(x.flat());
    let variance = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32;
    assert!((variance(&x[..10_000]) - 0.01).abs() < 1e-3);
    assert!((variance(&x[10_000..]) - 0.25).abs() < 0.2);
}
