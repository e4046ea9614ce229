//! Every module of burn-nn, forward and backward, under `Autodiff<BurnT4a>` and
//! `Autodiff<Flex>` with the same weights.
//!
//! A row creates the module on Flex, transfers its weights through a record, passes the same inputs to both, and
//! compares the outputs and the gradients of every parameter and input.

use burn::backend::Autodiff;
use burn::module::{Module, ModuleVisitor, Param};
use burn::nn::activation::ActivationConfig;
use burn::nn::attention::{CrossAttentionConfig, MhaInput, MultiHeadAttentionConfig};
use burn::nn::conv::*;
use burn::nn::interpolate::{Interpolate1dConfig, Interpolate2dConfig, InterpolateMode};
use burn::nn::loss::*;
use burn::nn::pool::*;
use burn::nn::transformer::*;
use burn::nn::*;
use burn::record::{BinBytesRecorder, FullPrecisionSettings, Recorder};
use burn::tensor::backend::AutodiffBackend;
use burn::tensor::{Bool, Int, Tensor, TensorData, activation};
use burn_backend::DType;

use crate::material::{Operand, Ulps, Values, difference};

/// Tolerance for deep chains of sums in another order.
const DEEP: Ulps = Ulps(20_000.0);

type Ours = Autodiff<burn_t4a::BurnT4a>;
type Theirs = Autodiff<burn_flex::Flex>;

/// Gradients of all parameters, in the order of the module.
struct Gradients<'a, B: AutodiffBackend> {
    of: &'a B::Gradients,
    out: Vec<TensorData>,
}

impl<B: AutodiffBackend> ModuleVisitor<B> for Gradients<'_, B> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        if let Some(grad) = param.val().grad(self.of) {
            self.out.push(grad.into_data());
        }
    }
}

/// Initialises every lazy parameter once, so that clones share it.
struct Force;

impl<B: AutodiffBackend> ModuleVisitor<B> for Force {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<B, D>>) {
        let _ = param.val();
    }
}

fn recorder() -> BinBytesRecorder<FullPrecisionSettings> {
    BinBytesRecorder::new()
}

/// An input of the given shape; the values depend on the salt only.
fn input<B: AutodiffBackend, const D: usize>(shape: [usize; D], salt: usize) -> Tensor<B, D> {
    let data = Operand::row_major(&shape, DType::F32, Values::Plain, salt).data;
    Tensor::from_data(data, &Default::default()).require_grad()
}

/// Positive entries of at most 1.
fn probability<B: AutodiffBackend, const D: usize>(shape: [usize; D], salt: usize) -> Tensor<B, D> {
    activation::sigmoid(input::<B, D>(shape, salt)).detach()
}

fn whole<B: AutodiffBackend, const D: usize>(shape: [usize; D], n: usize) -> Tensor<B, D, Int> {
    let data = Operand::row_major(&shape, DType::I32, Values::Below(n), 3).data;
    Tensor::from_data(data, &Default::default())
}

/// Contracts a tensor with fixed weights and runs the reverse pass: output, gradients of the module and of the inputs.
fn backward<B: AutodiffBackend, M: Module<B>, const D: usize>(
    module: &M,
    output: Tensor<B, D>,
    inputs: Vec<TensorGrad<B>>,
) -> Vec<TensorData> {
    let weights = Operand::row_major(&output.dims(), DType::F32, Values::Plain, 77).data;
    let weights = Tensor::from_data(weights, &Default::default());
    let data = output.clone().detach().into_data();
    let grads = (output * weights).sum().backward();
    let mut visitor = Gradients { of: &grads, out: vec![data] };
    module.visit(&mut visitor);
    let mut out = visitor.out;
    out.extend(inputs.into_iter().filter_map(|input| input(&grads)));
    out
}

/// Reads the gradient of one input.
type TensorGrad<B> = Box<dyn Fn(&<B as AutodiffBackend>::Gradients) -> Option<TensorData>>;

fn grad_of<B: AutodiffBackend, const D: usize>(x: &Tensor<B, D>) -> TensorGrad<B> {
    let x = x.clone();
    Box::new(move |grads| x.grad(grads).map(|grad| grad.into_data()))
}

/// `name: module created by | device | …, inputs x: shape…, output by |module, x…| …;`
macro_rules! modules {
    ($($name:ident: |$device:ident| $init:expr, [$($x:ident: $shape:expr),* $(,)?], |$m:ident| $forward:expr;)*) => {$(
        #[test]
        #[allow(unused_assignments, unused_mut, unused_variables)]
        fn $name() {
            let record = {
                type B = Theirs;
                <B as burn::tensor::backend::Backend>::seed(&Default::default(), 7);
                let $device: &<B as burn::tensor::backend::BackendTypes>::Device = &Default::default();
                let module = $init;
                Module::<B>::visit(&module, &mut Force);
                recorder().record(Module::<B>::into_record(module), ()).unwrap()
            };
            macro_rules! run {
                ($side:ty) => {{
                    type B = $side;
                    let $device: &<B as burn::tensor::backend::BackendTypes>::Device = &Default::default();
                    let module = $init;
                    let weights = recorder().load(record.clone(), $device).unwrap();
                    let $m = Module::<B>::load_record(module, weights);
                    let mut salt = 0;
                    $(salt += 1; let $x = input::<B, _>($shape, salt);)*
                    let inputs: Vec<TensorGrad<B>> = vec![$(grad_of::<B, _>(&$x)),*];
                    let output = $forward;
                    backward::<B, _, _>(&$m, output, inputs)
                }};
            }
            let (ours, theirs) = (run!(Ours), run!(Theirs));
            assert!(theirs.len() > 1, "no gradient");
            if let Some(text) = difference(&ours, &theirs, DEEP) {
                panic!("{}: {text}", stringify!($name));
            }
        }
    )*};
}

modules! {
    linear: |d| LinearConfig::new(5, 7).init::<B>(d), [x: [4, 5]], |m| m.forward(x);
    linear_of_sequences: |d| LinearConfig::new(5, 7).with_bias(false).init::<B>(d), [x: [2, 3, 5]], |m| m.forward(x);
    conv1d: |d| Conv1dConfig::new(4, 6, 3).with_stride(2).with_groups(2).init::<B>(d), [x: [2, 4, 11]], |m| m.forward(x);
    conv2d: |d| Conv2dConfig::new([3, 4], [3, 2]).with_padding(PaddingConfig2d::Same).init::<B>(d), [x: [2, 3, 6, 7]], |m| m.forward(x);
    conv2d_dilated: |d| Conv2dConfig::new([4, 4], [3, 3]).with_dilation([2, 1]).with_groups(4).init::<B>(d), [x: [2, 4, 8, 7]], |m| m.forward(x);
    conv3d: |d| Conv3dConfig::new([2, 3], [2, 3, 2]).init::<B>(d), [x: [1, 2, 4, 5, 4]], |m| m.forward(x);
    conv_transpose1d: |d| ConvTranspose1dConfig::new([4, 3], 3).with_stride(2).init::<B>(d), [x: [2, 4, 6]], |m| m.forward(x);
    conv_transpose2d: |d| ConvTranspose2dConfig::new([4, 3], [3, 2]).with_stride([2, 1]).with_padding([1, 0]).init::<B>(d), [x: [2, 4, 5, 4]], |m| m.forward(x);
    conv_transpose3d: |d| ConvTranspose3dConfig::new([2, 3], [2, 2, 2]).init::<B>(d), [x: [1, 2, 3, 4, 3]], |m| m.forward(x);
    deform_conv2d: |d| DeformConv2dConfig::new([2, 3], [3, 3]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init::<B>(d), [x: [1, 2, 5, 5], o: [1, 18, 5, 5]], |m| m.forward(x, o.mul_scalar(0.2), None);

    batch_norm: |d| BatchNormConfig::new(3).init::<B>(d), [x: [4, 3, 5, 2]], |m| m.forward(x);
    layer_norm: |d| LayerNormConfig::new(6).init::<B>(d), [x: [2, 3, 6]], |m| m.forward(x);
    group_norm: |d| GroupNormConfig::new(2, 4).init::<B>(d), [x: [3, 4, 5]], |m| m.forward(x);
    instance_norm: |d| InstanceNormConfig::new(4).init::<B>(d), [x: [3, 4, 5]], |m| m.forward(x);
    rms_norm: |d| RmsNormConfig::new(6).init::<B>(d), [x: [2, 3, 6]], |m| m.forward(x);
    local_response_norm: |d| (LinearConfig::new(1, 1).init::<B>(d), LocalResponseNormConfig::new(3).init()), [x: [2, 5, 4]], |m| m.1.forward(x);

    multi_head_attention: |d| MultiHeadAttentionConfig::new(8, 2).with_dropout(0.0).init::<B>(d), [x: [2, 5, 8]], |m| m.forward(MhaInput::self_attn(x)).context;
    masked_attention: |d| MultiHeadAttentionConfig::new(8, 2).with_dropout(0.0).init::<B>(d), [x: [2, 5, 8]],
        |m| m.forward(MhaInput::self_attn(x).mask_attn(attention::generate_autoregressive_mask::<B>(2, 5, d))).context;
    cross_attention: |d| CrossAttentionConfig::new(8, 6, 2, 1, 4).with_dropout(0.0).init::<B>(d), [x: [2, 3, 8], c: [2, 5, 6]], |m| m.forward(x, c, None);
    transformer_encoder: |d| TransformerEncoderConfig::new(8, 16, 2, 2).with_dropout(0.0).init::<B>(d), [x: [2, 5, 8]], |m| m.forward(TransformerEncoderInput::new(x));
    transformer_encoder_norm_first: |d| TransformerEncoderConfig::new(8, 16, 2, 1).with_dropout(0.0).with_norm_first(true).with_quiet_softmax(true).init::<B>(d), [x: [2, 4, 8]],
        |m| m.forward(TransformerEncoderInput::new(x).mask_pad(padding::<B>(2, 4)));
    transformer_decoder: |d| TransformerDecoderConfig::new(8, 16, 2, 2).with_dropout(0.0).init::<B>(d), [x: [2, 4, 8], y: [2, 5, 8]],
        |m| m.forward(TransformerDecoderInput::new(x, y).target_mask_attn(attention::generate_autoregressive_mask::<B>(2, 4, d)));
    position_wise: |d| PositionWiseFeedForwardConfig::new(6, 12).with_dropout(0.0).init::<B>(d), [x: [2, 3, 6]], |m| m.forward(x);
    positional_encoding: |d| (LinearConfig::new(6, 6).init::<B>(d), PositionalEncodingConfig::new(6).init::<B>(d)), [x: [2, 3, 6]], |m| m.1.forward(m.0.forward(x));
    rotary_encoding: |d| (LinearConfig::new(6, 6).init::<B>(d), RotaryEncodingConfig::new(8, 6).init::<B>(d)), [x: [2, 3, 6]], |m| m.1.forward(m.0.forward(x));

    rnn: |d| RnnConfig::new(4, 5, true).init::<B>(d), [x: [2, 6, 4]], |m| m.forward(x, None).0;
    birnn: |d| BiRnnConfig::new(4, 5, true).init::<B>(d), [x: [2, 6, 4]], |m| m.forward(x, None).0;
    gru: |d| GruConfig::new(4, 5, true).init::<B>(d), [x: [2, 6, 4]], |m| m.forward(x, None);
    bigru: |d| BiGruConfig::new(4, 5, true).init::<B>(d), [x: [2, 4, 4]], |m| m.forward(x, None).0;
    lstm: |d| LstmConfig::new(4, 5, true).init::<B>(d), [x: [2, 6, 4]], |m| m.forward(x, None).0;
    bilstm: |d| BiLstmConfig::new(4, 5, true).init::<B>(d), [x: [2, 4, 4]], |m| m.forward(x, None).0;

    embedding: |d| EmbeddingConfig::new(9, 4).init::<B>(d), [], |m| m.forward(whole::<B, 2>([3, 5], 9));

    avg_pool1d: |d| (Conv1dConfig::new(3, 3, 1).init::<B>(d), AvgPool1dConfig::new(3).with_stride(2).init()), [x: [2, 3, 9]], |m| m.1.forward(m.0.forward(x));
    avg_pool2d: |d| (Conv2dConfig::new([3, 3], [1, 1]).init::<B>(d), AvgPool2dConfig::new([2, 3]).with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init()), [x: [2, 3, 6, 7]], |m| m.1.forward(m.0.forward(x));
    max_pool1d: |d| (Conv1dConfig::new(3, 3, 1).init::<B>(d), MaxPool1dConfig::new(3).with_stride(2).init()), [x: [2, 3, 9]], |m| m.1.forward(m.0.forward(x));
    max_pool2d: |d| (Conv2dConfig::new([3, 3], [1, 1]).init::<B>(d), MaxPool2dConfig::new([2, 2]).with_strides([2, 1]).init()), [x: [2, 3, 6, 7]], |m| m.1.forward(m.0.forward(x));
    adaptive_avg_pool1d: |d| (Conv1dConfig::new(3, 3, 1).init::<B>(d), AdaptiveAvgPool1dConfig::new(4).init()), [x: [2, 3, 9]], |m| m.1.forward(m.0.forward(x));
    adaptive_avg_pool2d: |d| (Conv2dConfig::new([3, 3], [1, 1]).init::<B>(d), AdaptiveAvgPool2dConfig::new([3, 2]).init()), [x: [2, 3, 6, 7]], |m| m.1.forward(m.0.forward(x));
    interpolate1d: |d| (Conv1dConfig::new(3, 3, 1).init::<B>(d), Interpolate1dConfig::new().with_output_size(Some(7)).init()), [x: [2, 3, 5]], |m| m.1.forward(m.0.forward(x));
    interpolate2d: |d| (Conv2dConfig::new([3, 3], [1, 1]).init::<B>(d), Interpolate2dConfig::new().with_output_size(Some([7, 4])).with_mode(InterpolateMode::Nearest).init()), [x: [2, 3, 5, 6]], |m| m.1.forward(m.0.forward(x));
    unfold4d: |d| (Conv2dConfig::new([3, 3], [1, 1]).init::<B>(d), Unfold4dConfig::new([2, 3]).with_padding([1, 1]).init()), [x: [2, 3, 5, 6]], |m| m.1.forward(m.0.forward(x));
    dropout_of_nothing: |d| (LinearConfig::new(4, 4).init::<B>(d), DropoutConfig::new(0.0).init()), [x: [3, 4]], |m| m.1.forward(m.0.forward(x));

    prelu: |d| PReluConfig::new().with_num_parameters(3).init::<B>(d), [x: [4, 3]], |m| m.forward(x);
    swiglu: |d| SwiGluConfig::new(4, 6).init::<B>(d), [x: [3, 4]], |m| m.forward(x);

    cross_entropy: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5]], |m| CrossEntropyLossConfig::new().init(d).forward(m.forward(x), whole::<B, 1>([6], 4));
    cross_entropy_smoothed: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5]],
        |m| CrossEntropyLossConfig::new().with_smoothing(Some(0.1)).with_weights(Some(vec![0.5, 1.0, 2.0, 1.0])).init(d).forward(m.forward(x), whole::<B, 1>([6], 4));
    binary_cross_entropy: |d| LinearConfig::new(5, 1).init::<B>(d), [x: [6, 5]],
        |m| BinaryCrossEntropyLossConfig::new().with_logits(true).init(d).forward(m.forward(x).reshape([6]), whole::<B, 1>([6], 2));
    mse: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5], y: [6, 4]], |m| MseLoss::new().forward(m.forward(x), y, Reduction::Mean);
    huber: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5], y: [6, 4]], |m| HuberLossConfig::new(0.5).init().forward(m.forward(x), y, Reduction::Sum);
    smooth_l1: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5], y: [6, 4]], |m| SmoothL1LossConfig::new().init().forward_with_reduction(m.forward(x), y, Reduction::Mean);
    lp_loss: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5], y: [6, 4]], |m| LpLossConfig::new(1.0).init().forward(m.forward(x), y, Reduction::Mean);
    poisson: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5]], |m| PoissonNllLossConfig::new().init().forward(m.forward(x), probability::<B, 2>([6, 4], 5), Reduction::Mean);
    kl_divergence: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5]],
        |m| KLDivLossConfig::new().init().forward(activation::log_softmax(m.forward(x), 1), probability::<B, 2>([6, 4], 5), Reduction::BatchMean);
    cosine_embedding: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 5], y: [6, 4]],
        |m| CosineEmbeddingLossConfig::new().init().forward(m.forward(x), y, whole::<B, 1>([6], 2).mul_scalar(2).sub_scalar(1));
    ctc: |d| LinearConfig::new(5, 4).init::<B>(d), [x: [6, 2, 5]], |m| {
        let int = |values: [i32; 2]| Tensor::<B, 1, Int>::from_data(values, d);
        let targets = Tensor::<B, 2, Int>::from_data([[1, 2], [3, 1]], d);
        CTCLossConfig::new().init().forward(activation::log_softmax(m.forward(x), 2), targets, int([6, 5]), int([2, 1])) };
}

fn padding<B: AutodiffBackend>(batch: usize, seq: usize) -> Tensor<B, 2, Bool> {
    let values: Vec<bool> = (0..batch * seq).map(|i| i % seq == seq - 1 && i < seq).collect();
    Tensor::from_data(TensorData::new(values, [batch, seq]), &Default::default())
}

/// One row per activation without parameters.
macro_rules! activations {
    ($($name:ident: $config:expr;)*) => {
        modules! {$(
            $name: |d| (LinearConfig::new(4, 4).init::<B>(d), $config.init::<B>(d)), [x: [3, 4]], |m| m.1.forward(m.0.forward(x));
        )*}
    };
}

activations! {
    relu: ActivationConfig::Relu;
    leaky_relu: ActivationConfig::LeakyRelu(LeakyReluConfig::new());
    gelu: ActivationConfig::Gelu;
    glu_and_tanh: ActivationConfig::Tanh;
    sigmoid: ActivationConfig::Sigmoid;
    hard_sigmoid: ActivationConfig::HardSigmoid(HardSigmoidConfig::new());
    hard_swish: ActivationConfig::HardSwish;
    softplus: ActivationConfig::Softplus(SoftplusConfig::new());
    elu: ActivationConfig::Elu(EluConfig::new());
    celu: ActivationConfig::Celu(CeluConfig::new());
    selu: ActivationConfig::Selu;
    softsign: ActivationConfig::Softsign;
}

/// Kept elements are scaled, dropped ones are zero, and equal seeds give equal masks.
#[test]
fn dropout_scales_what_it_keeps() {
    use burn::tensor::backend::Backend;
    let dropout = DropoutConfig::new(0.25).init();
    let run = || {
        Ours::seed(&Default::default(), 3);
        dropout.forward(Tensor::<Ours, 1>::ones([10_000], &Default::default())).into_data()
    };
    let once = run();
    let kept = once.iter::<f32>().filter(|&x| x != 0.0).count();
    assert!(once.iter::<f32>().all(|x| x == 0.0 || (x - 4.0 / 3.0).abs() < 1e-6));
    // Six standard deviations of a binomial count.
    assert!((kept as f64 - 7500.0).abs() < 6.0 * (10_000.0f64 * 0.25 * 0.75).sqrt(), "{kept}");
    // Tests on other threads may draw between the seed and the draw.
    assert!((0..100).any(|_| run() == run()), "a seed does not repeat its numbers");
}
