//! Steps of training: perceptrons and a transformer.

use std::hint::black_box;

use burn::backend::Autodiff;
use burn::module::Module;
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{LayerNorm, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::ops::AttentionModuleOptions;
use burn::tensor::{Tensor, activation};
use burn_t4a::ext::nn;
use burn_t4a::ext::operation::Operations;

use crate::rows::{Row, floats, row, whole};

pub(crate) fn fused_norm<B: Operations, const D: usize>(
    norm: &LayerNorm<B>,
    x: Tensor<B, D>,
) -> Tensor<B, D> {
    let beta = norm.beta.as_ref().map(|beta| beta.val());
    nn::layer_norm(x, norm.gamma.val(), beta, 1e-5)
}

/// The forward pass of Burn's encoder (no masks, no dropout, norms last) with drop-in functions.
pub(crate) fn fused_encoder<B: Operations>(
    net: &TransformerEncoder<B>,
    mut x: Tensor<B, 3>,
) -> Tensor<B, 3> {
    let [batch, len, width] = x.dims();
    for layer in &net.layers {
        let mha = &layer.mha;
        let heads = |linear: &Linear<B>| {
            linear.forward(x.clone()).reshape([batch, len, mha.n_heads, mha.d_k]).swap_dims(1, 2)
        };
        let (q, k, v) = (heads(&mha.query), heads(&mha.key), heads(&mha.value));
        let y = nn::attention(q, k, v, None, None, AttentionModuleOptions::default());
        let y = mha.output.forward(y.swap_dims(1, 2).reshape([batch, len, width]));
        x = fused_norm(&layer.norm_1, x + y);
        let y = layer.pwff.forward(x.clone());
        x = fused_norm(&layer.norm_2, x + y);
    }
    x
}

/// Parameters set to fixed values, so that all backends train the same net.
struct Fixed<'a, B: Backend>(&'a B::Device, usize);

impl<B: Backend> burn::module::ModuleMapper<B> for Fixed<'_, B> {
    fn map_float<const D: usize>(
        &mut self,
        param: burn::module::Param<Tensor<B, D>>,
    ) -> burn::module::Param<Tensor<B, D>> {
        self.1 += 1;
        let scale = 0.1 / self.1 as f32;
        param.map(|x| {
            let value = floats::<B, D>(x.dims(), self.0).mul_scalar(scale);
            value.detach().require_grad()
        })
    }
}

#[derive(Module, Debug)]
struct Mlp<B: Backend> {
    layers: Vec<Linear<B>>,
}

impl<B: Backend> Mlp<B> {
    fn new(sizes: &[usize], device: &B::Device) -> Self {
        let layers = sizes.windows(2).map(|w| LinearConfig::new(w[0], w[1]).init(device)).collect();
        Self { layers }
    }

    fn forward(&self, mut x: Tensor<B, 2>) -> Tensor<B, 2> {
        let last = self.layers.len() - 1;
        for (i, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x);
            if i < last {
                x = activation::relu(x);
            }
        }
        x
    }
}

pub(crate) fn training(rows: &mut Vec<Row>) {
    for (batch, hidden) in [(64, 512), (8, 32)] {
        row!(rows, format!("MLP train step b{batch} h{hidden}"), 1e-3, |d| {
            type A = Autodiff<B>;
            let mut net = Some(Mlp::<A>::new(&[64, hidden, hidden, 10], &d).map(&mut Fixed(&d, 0)));
            let mut adam = AdamConfig::new().init();
            let (x, y) = (floats::<A, 2>([batch, 64], &d), whole::<A, 1>([batch], 10, &d));
            let loss = CrossEntropyLossConfig::new().init(&d);
            move || {
                let model = net.take().expect("put back below");
                let error = loss.forward(model.forward(x.clone()), y.clone());
                let out = error.clone().inner();
                let grads = GradientsParams::from_grads(error.backward(), &model);
                net = Some(adam.step(1e-4, model, grads));
                out
            }
        });
    }
    row!(rows, "transformer fwd+bwd 2×d128 b8 s64", 1e-3, |d| {
        let mut step = transformer::<Autodiff<B>>(&d, plain_encoder, false);
        move || step()
    }, fused {
        let mut step = transformer::<Autodiff<B>>(&d, fused_encoder, false);
        move || step()
    });
    row!(rows, "transformer step with Adam", 1e-3, |d| {
        let mut step = transformer::<Autodiff<B>>(&d, plain_encoder, true);
        move || step()
    }, fused {
        let mut step = transformer::<Autodiff<B>>(&d, fused_encoder, true);
        move || step()
    });
}

pub(crate) fn plain_encoder<B: Backend>(
    net: &TransformerEncoder<B>,
    x: Tensor<B, 3>,
) -> Tensor<B, 3> {
    net.forward(TransformerEncoderInput::new(x))
}

pub(crate) type Encoder<B> = fn(&TransformerEncoder<B>, Tensor<B, 3>) -> Tensor<B, 3>;

/// A step of training, or only its derivatives; returns the loss before it.
pub(crate) fn transformer<A: AutodiffBackend>(
    d: &A::Device,
    encode: Encoder<A>,
    update: bool,
) -> impl FnMut() -> Tensor<A::InnerBackend, 1> + use<A> {
    let config = TransformerEncoderConfig::new(128, 512, 4, 2).with_dropout(0.0);
    let mut net = Some(config.init::<A>(d).map(&mut Fixed(d, 0)));
    let mut adam = AdamConfig::new().init();
    let (x, y) = (floats::<A, 3>([8, 64, 128], d), floats::<A, 3>([8, 64, 128], d));
    move || {
        let model = net.take().expect("put back below");
        let error = MseLoss::new().forward(encode(&model, x.clone()), y.clone(), Reduction::Mean);
        let value = error.clone().inner();
        let grads = error.backward();
        net = Some(if update {
            let grads = GradientsParams::from_grads(grads, &model);
            adam.step(1e-5, model, grads)
        } else {
            black_box(grads);
            model
        });
        value
    }
}
