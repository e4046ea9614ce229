//! Unmodified modules of burn-nn under `Jvp`: against finite differences in all parameters, against the reverse pass by
//! ⟨Jᵀu, v⟩ = ⟨u, J v⟩, and Hessian–vector products by both nestings.

use std::vec::IntoIter;

use burn::backend::Autodiff;
use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::pool::{AdaptiveAvgPool2dConfig, MaxPool2dConfig};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{
    Gelu, LayerNorm, LayerNormConfig, Linear, LinearConfig, Lstm, LstmConfig, PaddingConfig2d,
};
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Tensor, TensorData, TensorPrimitive, activation};
use burn_backend::ops::FloatTensorOps;
use burn_backend::tensor::FloatTensor;
use burn_backend::{AutodiffBackend, set_default_dtypes};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_jvp::{Jvp, JvpTensor};

type B = BurnT4a;

trait Network {
    type On<B: Backend>: Module<B>;
    fn init<B: Backend>(device: &B::Device) -> Self::On<B>;
    fn forward<B: Backend>(net: &Self::On<B>, x: Tensor<B, 3>) -> Tensor<B, 1>;
}

#[derive(Module, Debug)]
struct MlpNet<B: Backend> {
    first: Linear<B>,
    norm: LayerNorm<B>,
    gelu: Gelu,
    second: Linear<B>,
}

#[derive(Module, Debug)]
struct CnnNet<B: Backend> {
    conv: Conv2d<B>,
    head: Linear<B>,
}

#[derive(Module, Debug)]
struct EncoderNet<B: Backend> {
    encoder: TransformerEncoder<B>,
}

#[derive(Module, Debug)]
struct LstmNet<B: Backend> {
    lstm: Lstm<B>,
}

struct Mlp;
struct Cnn;
struct Encoder;
struct Recurrent;

fn flat<B: Backend, const D: usize>(x: Tensor<B, D>) -> Tensor<B, 1> {
    let n = x.shape().num_elements();
    x.reshape([n])
}

impl Network for Mlp {
    type On<B: Backend> = MlpNet<B>;
    fn init<B: Backend>(device: &B::Device) -> MlpNet<B> {
        MlpNet {
            first: LinearConfig::new(4, 6).init(device),
            norm: LayerNormConfig::new(6).init(device),
            gelu: Gelu::new(),
            second: LinearConfig::new(6, 2).init(device),
        }
    }
    fn forward<B: Backend>(net: &MlpNet<B>, x: Tensor<B, 3>) -> Tensor<B, 1> {
        let x = net.gelu.forward(net.norm.forward(net.first.forward(x)));
        flat(activation::log_softmax(net.second.forward(x), 2))
    }
}

impl Network for Cnn {
    type On<B: Backend> = CnnNet<B>;
    fn init<B: Backend>(device: &B::Device) -> CnnNet<B> {
        let conv = Conv2dConfig::new([2, 3], [2, 2]).with_padding(PaddingConfig2d::Same);
        CnnNet { conv: conv.init(device), head: LinearConfig::new(6, 2).init(device) }
    }
    fn forward<B: Backend>(net: &CnnNet<B>, x: Tensor<B, 3>) -> Tensor<B, 1> {
        let x = activation::relu(net.conv.forward(x.reshape([1, 2, 4, 4])));
        let x = MaxPool2dConfig::new([2, 2]).with_strides([1, 1]).init().forward(x);
        let x = AdaptiveAvgPool2dConfig::new([2, 1]).init().forward(x);
        flat(net.head.forward(x.reshape([1, 6])))
    }
}

impl Network for Encoder {
    type On<B: Backend> = EncoderNet<B>;
    fn init<B: Backend>(device: &B::Device) -> EncoderNet<B> {
        let config = TransformerEncoderConfig::new(4, 8, 2, 1).with_dropout(0.0);
        EncoderNet { encoder: config.init(device) }
    }
    fn forward<B: Backend>(net: &EncoderNet<B>, x: Tensor<B, 3>) -> Tensor<B, 1> {
        flat(net.encoder.forward(TransformerEncoderInput::new(x)))
    }
}

impl Network for Recurrent {
    type On<B: Backend> = LstmNet<B>;
    fn init<B: Backend>(device: &B::Device) -> LstmNet<B> {
        LstmNet { lstm: LstmConfig::new(4, 3, true).init(device) }
    }
    fn forward<B: Backend>(net: &LstmNet<B>, x: Tensor<B, 3>) -> Tensor<B, 1> {
        flat(net.lstm.forward(x, None).0)
    }
}

/// Collects the parameters in order.
#[derive(Default)]
struct Parameters(Vec<Vec<f64>>);

impl<B: Backend> ModuleVisitor<B> for Parameters {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        self.0.push(param.val().into_data().convert::<f64>().to_vec().unwrap());
    }
}

/// Assigns parameters of a module from lists of numbers.
struct Assign<B: Backend, F> {
    make: F,
    /// Assigned parameters.
    leaves: Vec<FloatTensor<B>>,
    next: IntoIter<usize>,
}

impl<B: Backend, F: FnMut(usize, Vec<usize>) -> FloatTensor<B>> ModuleMapper<B> for Assign<B, F> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        let (id, tensor, mapper) = param.consume();
        let leaf = (self.make)(self.next.next().unwrap(), tensor.dims().to_vec());
        self.leaves.push(leaf.clone());
        let tensor = Tensor::from_primitive(TensorPrimitive::Float(leaf));
        Param::from_mapped_value(id, tensor, mapper)
    }
}

fn assigned<N: Network, B: Backend<Device = T4aDevice>>(
    make: impl FnMut(usize, Vec<usize>) -> FloatTensor<B>,
) -> (N::On<B>, Vec<FloatTensor<B>>) {
    let next = (0..1000).collect::<Vec<_>>().into_iter();
    let mut assign = Assign { make, leaves: Vec::new(), next };
    let net = N::init::<B>(&T4aDevice).map(&mut assign);
    (net, assign.leaves)
}

fn primitive<B: Backend<Device = T4aDevice>>(x: &[f64], shape: Vec<usize>) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(x.to_vec(), shape), &T4aDevice)
}

fn input<B: Backend<Device = T4aDevice>>() -> Tensor<B, 3> {
    let x: Vec<f64> = (0..32).map(|i| (1.7 * i as f64).sin()).collect();
    Tensor::from_primitive(TensorPrimitive::Float(primitive::<B>(&x, vec![2, 4, 4])))
}

fn read<B: Backend>(x: FloatTensor<B>) -> Vec<f64> {
    let data = burn::tensor::try_read_sync(B::float_into_data(x)).unwrap().unwrap();
    data.convert::<f64>().to_vec().unwrap()
}

fn raw<B: Backend, const D: usize>(x: Tensor<B, D>) -> FloatTensor<B> {
    x.into_primitive().tensor()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn check<N: Network>() {
    set_default_dtypes::<B>(&T4aDevice, DType::F64, DType::I64).ok();
    let mut parameters = Parameters::default();
    N::init::<B>(&T4aDevice).visit(&mut parameters);
    let p = parameters.0;
    let v: Vec<Vec<f64>> = p
        .iter()
        .enumerate()
        .map(|(i, p)| (0..p.len()).map(|j| (3.1 * i as f64 + 0.7 * j as f64).cos()).collect())
        .collect();

    // Values at p + h v, and the tangent.
    let value = |h: f64| {
        let make = |i: usize, shape| {
            let moved: Vec<f64> = p[i].iter().zip(&v[i]).map(|(p, v)| p + h * v).collect();
            primitive::<B>(&moved, shape)
        };
        read::<B>(raw(N::forward(&assigned::<N, B>(make).0, input())))
    };
    let dual = |i: usize, shape: Vec<usize>| {
        JvpTensor::new(primitive::<B>(&p[i], shape.clone()), primitive::<B>(&v[i], shape))
    };
    let (net, _) = assigned::<N, Jvp<B>>(dual);
    let (y, t) = raw(N::forward(&net, input())).into_parts();
    let (y, t) = (read::<B>(y), read::<B>(t.unwrap()));
    let h = 1e-5;
    let (base, plus, minus) = (value(0.0), value(h), value(-h));
    for i in 0..y.len() {
        let difference = (plus[i] - minus[i]) / (2.0 * h);
        assert!((y[i] - base[i]).abs() < 1e-9, "value {i}: {} and {}", y[i], base[i]);
        assert!((t[i] - difference).abs() < 1e-6, "tangent {i}: {} and {difference}", t[i]);
    }

    // Reverse mode, alone and with tangents.
    let u: Vec<f64> = (0..y.len()).map(|i| (0.9 * i as f64).sin()).collect();
    let weigh = |n: usize| primitive::<B>(&u, vec![n]);
    type Plain = Autodiff<B>;
    type Outer = Autodiff<Jvp<B>>;
    let (net, leaves) = assigned::<N, Plain>(|i, shape| {
        Plain::float_set_require_grad(primitive::<Plain>(&p[i], shape), true)
    });
    let loss = (N::forward(&net, input()) * Tensor::from_inner(wrap(weigh(u.len())))).sum();
    let gradients = loss.backward();
    let pulled: f64 = leaves
        .iter()
        .zip(&v)
        .map(|(x, v)| Plain::grad(x, &gradients).map_or(0.0, |g| dot(&read::<B>(g), v)))
        .sum();
    assert!((pulled - dot(&u, &t)).abs() < 1e-8, "⟨Jᵀu, v⟩ {pulled} and ⟨u, J v⟩ {}", dot(&u, &t));

    // The Hessian of ⟨u, y⟩ along v: the tangent of the gradient, and the gradient of the tangent.
    let (net, leaves) = assigned::<N, Outer>(|i, shape| {
        let x = <Outer as AutodiffBackend>::from_inner(dual(i, shape));
        Outer::float_set_require_grad(x, true)
    });
    let weight = <Outer as AutodiffBackend>::from_inner(JvpTensor::constant(weigh(u.len())));
    let gradients = (N::forward(&net, input()) * wrap(weight)).sum().backward();
    // A parameter that enters the loss linearly has a gradient with zero tangent.
    let tangent = |(x, p): (&FloatTensor<Outer>, &Vec<f64>)| {
        let (_, t) = Outer::grad(x, &gradients).unwrap().into_parts();
        t.map_or(vec![0.0; p.len()], read::<B>)
    };
    let first: Vec<Vec<f64>> = leaves.iter().zip(&p).map(tangent).collect();
    assert!(first.iter().flatten().any(|x| *x != 0.0));
    let mut tracked = Vec::new();
    let (net, _) = assigned::<N, Jvp<Plain>>(|i, shape: Vec<usize>| {
        let x = Plain::float_set_require_grad(primitive::<Plain>(&p[i], shape.clone()), true);
        tracked.push(x.clone());
        JvpTensor::new(x, primitive::<Plain>(&v[i], shape))
    });
    let moved = raw(N::forward(&net, input())).into_parts().1.unwrap();
    let weight = <Plain as AutodiffBackend>::from_inner(weigh(u.len()));
    let gradients = (wrap::<Plain>(moved) * wrap(weight)).sum().backward();
    for (i, (x, first)) in tracked.iter().zip(&first).enumerate() {
        let second = Plain::grad(x, &gradients).map_or(vec![0.0; first.len()], read::<B>);
        for (a, b) in first.iter().zip(&second) {
            assert!((a - b).abs() < 1e-7, "parameter {i}: H v is {a} and {b}");
        }
    }
}

fn wrap<B: Backend>(x: FloatTensor<B>) -> Tensor<B, 1> {
    Tensor::from_primitive(TensorPrimitive::Float(x))
}

#[test]
fn mlp_with_layer_norm_and_gelu() {
    check::<Mlp>();
}

#[test]
fn cnn_with_pools() {
    check::<Cnn>();
}

#[test]
fn transformer_encoder() {
    check::<Encoder>();
}

#[test]
fn lstm() {
    check::<Recurrent>();
}
