//! BurnT4a, Flex and NdArray side by side: `cargo bench --bench backend -- [--threads N] [filter]`.
//!
//! Every row is one closure, compiled for each backend. Results are compared with Flex before
//! anything is timed. Times are the median of interleaved samples, so that drift of the machine
//! falls on all three alike; ratios are time of the peer / time of BurnT4a: above 1, ours is
//! faster. The last line is the geometric mean.
//!
//! The column `fused` is BurnT4a with the drop-in functions of `burn_t4a::ext::nn`. Rows that move
//! a known number of bytes show them per second, as a part of what a plain copy of 1024² floats
//! moves between their samples. Peak memory is that of a process which does nothing but train, one per backend.

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::module::Module;
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::nn::transformer::{
    TransformerEncoder, TransformerEncoderConfig, TransformerEncoderInput,
};
use burn::nn::{LayerNorm, Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::{AutodiffBackend, Backend};
use burn::tensor::module::{attention, avg_pool2d, conv2d, max_pool2d};
use burn::tensor::ops::{AttentionModuleOptions, ConvOptions};
use burn::tensor::{Int, Tensor, TensorData, activation, s};
use burn_t4a::ext::nn;
use burn_t4a::ext::operation::Operations;

/// One measured operation: called with `true` it returns its result.
type Run = Box<dyn FnMut(bool) -> Option<TensorData>>;

struct Row {
    name: String,
    /// Largest difference from Flex, relative to the largest element.
    tolerance: f64,
    /// BurnT4a, Flex, NdArray.
    make: [Box<dyn Fn() -> Run>; 3],
    /// BurnT4a with drop-in functions.
    fused: Option<Box<dyn Fn() -> Run>>,
    /// Bytes read and written.
    bytes: usize,
}

/// `row!(rows, name, tolerance, |device| { inputs; move || result });`
macro_rules! row {
    ($rows:ident, $name:expr, $tolerance:expr, |$device:ident| $body:block) => {
        $rows.push(Row {
            name: $name.to_string(),
            tolerance: $tolerance,
            make: [
                row!(@side burn_t4a::BurnT4a, $device, $body),
                row!(@side burn_flex::Flex, $device, $body),
                row!(@side burn_ndarray::NdArray<f32>, $device, $body),
            ],
            fused: None,
            bytes: 0,
        })
    };
    ($rows:ident, $name:expr, $tolerance:expr, $bytes:expr, |$device:ident| $body:block) => {
        row!($rows, $name, $tolerance, |$device| $body);
        $rows.last_mut().expect("just pushed").bytes = $bytes;
    };
    ($rows:ident, $name:expr, $tolerance:expr, |$device:ident| $body:block, fused $fused:block) => {
        row!($rows, $name, $tolerance, |$device| $body);
        $rows.last_mut().expect("just pushed").fused =
            Some(row!(@side burn_t4a::BurnT4a, $device, $fused));
    };
    (@side $B:ty, $device:ident, $body:block) => {
        Box::new(move || {
            type B = $B;
            let $device: <B as burn::tensor::backend::BackendTypes>::Device = Default::default();
            #[allow(unused_mut)]
            let mut run = $body;
            Box::new(move |read: bool| {
                let out = black_box(run());
                read.then(|| out.into_data())
            }) as Run
        })
    };
}

/// Fixed values in −1…1.
fn floats<B: Backend, const D: usize>(shape: [usize; D], device: &B::Device) -> Tensor<B, D> {
    let numel: usize = shape.iter().product();
    let value = |i: usize| {
        let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        bits as f32 / (1u64 << 23) as f32 - 1.0
    };
    let data = TensorData::new((0..numel).map(value).collect::<Vec<f32>>(), shape);
    // A computed tensor, as in the middle of a net, not memory lent by the caller.
    Tensor::from_data(data, device) + 0.0
}

fn whole<B: Backend, const D: usize>(
    shape: [usize; D],
    n: usize,
    device: &B::Device,
) -> Tensor<B, D, Int> {
    let numel: usize = shape.iter().product();
    let values: Vec<i32> = (0..numel).map(|i| ((i * 7919) % n) as i32).collect();
    Tensor::from_data(TensorData::new(values, shape), device)
}

/// Bytes of a million floats.
const M: usize = 4 << 20;

fn elementwise(rows: &mut Vec<Row>) {
    row!(rows, "add 4×4 by a row", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([4, 4], &d), floats::<B, 2>([1, 4], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "exp 4×4", 1e-5, |d| {
        let a = floats::<B, 2>([4, 4], &d);
        move || a.clone().exp()
    });
    row!(rows, "sum 4×4", 1e-5, |d| {
        let a = floats::<B, 2>([4, 4], &d);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "sin 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sin()
    });
    row!(rows, "log 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).abs() + 0.1;
        move || a.clone().log()
    });
    row!(rows, "powf 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).abs() + 0.1;
        let b = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().powf(b.clone())
    });
    row!(rows, "int add 1024²", 0.0, |d| {
        let a = whole::<B, 2>([1024, 1024], 1000, &d);
        move || a.clone() + a.clone()
    });
    row!(rows, "bool and 1024²", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).greater_elem(0.0);
        let b = a.clone().flip([0]);
        move || a.clone().bool_and(b.clone()).int()
    });
    row!(rows, "add 4×4", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([4, 4], &d), floats::<B, 2>([4, 4], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024²", 1e-6, 3 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² transposed", 1e-6, 3 * M, |d| {
        let (a, b) =
            (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d).transpose());
        move || a.clone() + b.clone()
    });
    row!(rows, "mul 1024² by a row", 1e-6, 2 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1, 1024], &d));
        move || a.clone() * b.clone()
    });
    row!(rows, "mul 1024² by a column", 1e-6, 2 * M, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1], &d));
        move || a.clone() * b.clone()
    });
    row!(rows, "mul scalar 1024²", 1e-6, 2 * M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone() * 1.5
    });
    row!(rows, "compare 1024²", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d).flip([0]));
        move || a.clone().greater(b.clone())
    });
    row!(rows, "exp 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().exp()
    });
    row!(rows, "tanh 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().tanh()
    });
    row!(rows, "gelu 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::gelu(a.clone())
    });
    row!(rows, "relu 1024²", 1e-6, 2 * M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::relu(a.clone())
    });
    row!(rows, "sigmoid 1024²", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::sigmoid(a.clone())
    });
    row!(rows, "mask fill 1024²", 1e-6, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let m = a.clone().flip([1]).greater_elem(0.0);
        move || a.clone().mask_fill(m.clone(), 0.5)
    });
}

fn reductions(rows: &mut Vec<Row>) {
    row!(rows, "softmax 1024² rows", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::softmax(a.clone(), 1)
    });
    row!(rows, "softmax 1024² columns", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::softmax(a.clone(), 0)
    });
    row!(rows, "layer norm 1024²", 1e-4, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let norm = burn::nn::LayerNormConfig::new(1024).init::<B>(&d);
        move || norm.forward(a.clone())
    });
    row!(rows, "sum 1024²", 1e-3, |d| {
        let a = floats::<B, 2>([1024, 1024], &d).abs();
        move || a.clone().sum()
    });
    row!(rows, "sum 1024² rows", 1e-4, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "sum 1024² columns", 1e-4, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sum_dim(0)
    });
    row!(rows, "sum 262144×4 rows", 1e-5, |d| {
        let a = floats::<B, 2>([262_144, 4], &d);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "log softmax 1024² rows", 1e-5, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || activation::log_softmax(a.clone(), 1)
    });
    row!(rows, "mean 64×128×128 middle", 1e-4, |d| {
        let a = floats::<B, 3>([64, 128, 128], &d);
        move || a.clone().mean_dim(1)
    });
    row!(rows, "max 1024² rows", 1e-6, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().max_dim(1)
    });
    row!(rows, "argmax 1024² rows", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().argmax(1)
    });
    row!(rows, "argmax 1024² columns", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().argmax(0)
    });
    row!(rows, "cumsum 1024² rows", 1e-3, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().cumsum(1)
    });
    row!(rows, "cumsum 1024² columns", 1e-3, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().cumsum(0)
    });
}

fn movement(rows: &mut Vec<Row>) {
    row!(rows, "permute copy 64×128×128", 0.0, 2 * M, |d| {
        let a = floats::<B, 3>([64, 128, 128], &d);
        move || a.clone().permute([2, 0, 1]).reshape([128 * 64 * 128])
    });
    row!(rows, "reverse 6 axes of 10", 0.0, 2 * M, |d| {
        let a = floats::<B, 6>([10, 10, 10, 10, 10, 10], &d);
        move || a.clone().permute([5, 4, 3, 2, 1, 0]).reshape([1_000_000])
    });
    row!(rows, "transpose copy 1024²", 0.0, 2 * M, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().transpose().reshape([1024 * 1024])
    });
    row!(rows, "cat 4 × 512×256", 0.0, |d| {
        let a = floats::<B, 2>([512, 256], &d);
        move || Tensor::cat(vec![a.clone(), a.clone(), a.clone(), a.clone()], 1)
    });
    row!(rows, "repeat 256×256 8 times", 0.0, |d| {
        let a = floats::<B, 2>([256, 256], &d);
        move || a.clone().repeat_dim(0, 8)
    });
    row!(rows, "slice assign 1024²", 0.0, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([512, 512], &d));
        move || a.clone().slice_assign(s![0..512, 512..1024], b.clone())
    });
    row!(rows, "select 4096 rows of 256", 0.0, |d| {
        let a = floats::<B, 2>([4096, 256], &d);
        let i = whole::<B, 1>([4096], 4096, &d);
        move || a.clone().select(0, i.clone())
    });
    row!(rows, "gather 1024²", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        let i = whole::<B, 2>([1024, 1024], 1024, &d);
        move || a.clone().gather(1, i.clone())
    });
    row!(rows, "embedding 1000×256 8×512", 0.0, |d| {
        let w = floats::<B, 2>([1000, 256], &d);
        let i = whole::<B, 2>([8, 512], 1000, &d);
        move || burn::tensor::module::embedding(w.clone(), i.clone())
    });
    row!(rows, "sort 1024² rows", 0.0, |d| {
        let a = floats::<B, 2>([1024, 1024], &d);
        move || a.clone().sort(1)
    });
    row!(rows, "argsort 256×1024", 0.0, |d| {
        let a = floats::<B, 2>([256, 1024], &d);
        move || a.clone().argsort(1)
    });
}

fn products(rows: &mut Vec<Row>) {
    for n in [4, 16, 64, 256, 512, 1024] {
        row!(rows, format!("matmul {n}"), 1e-4, |d| {
            let (a, b) = (floats::<B, 2>([n, n], &d), floats::<B, 2>([n, n], &d));
            move || a.clone().matmul(b.clone())
        });
    }
    row!(rows, "matmul 512 transposed", 1e-4, |d| {
        let (a, b) = (floats::<B, 2>([512, 512], &d), floats::<B, 2>([512, 512], &d).transpose());
        move || a.clone().matmul(b.clone())
    });
    row!(rows, "matmul 64×256×64 batch 32", 1e-4, |d| {
        let (a, b) = (floats::<B, 3>([32, 64, 256], &d), floats::<B, 3>([32, 256, 64], &d));
        move || a.clone().matmul(b.clone())
    });
    row!(rows, "Q·Kᵀ 4×8×256×64 strided", 1e-4, |d| {
        let heads = |x: Tensor<B, 3>| x.reshape([4, 256, 8, 64]).swap_dims(1, 2);
        let (q, k) =
            (heads(floats::<B, 3>([4, 256, 512], &d)), heads(floats::<B, 3>([4, 256, 512], &d)));
        move || q.clone().matmul(k.clone().swap_dims(2, 3))
    });
    row!(rows, "matrix × vector 1024", 1e-4, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1], &d));
        move || a.clone().matmul(b.clone())
    });
}

fn modules(rows: &mut Vec<Row>) {
    row!(rows, "conv2d 8×32×56×56 64 3×3", 1e-4, |d| {
        let (x, w) = (floats::<B, 4>([8, 32, 56, 56], &d), floats::<B, 4>([64, 32, 3, 3], &d));
        move || {
            conv2d(
                x.clone(),
                w.clone(),
                None::<Tensor<B, 1>>,
                ConvOptions::new([1, 1], [1, 1], [1, 1], 1),
            )
        }
    });
    row!(rows, "max pool 2×2 8×32×56×56", 0.0, |d| {
        let x = floats::<B, 4>([8, 32, 56, 56], &d);
        move || max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false)
    });
    row!(rows, "avg pool 2×2 8×32×56×56", 1e-5, |d| {
        let x = floats::<B, 4>([8, 32, 56, 56], &d);
        move || avg_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], true, false)
    });
    let depthwise = || ConvOptions::new([1, 1], [1, 1], [1, 1], 64);
    row!(rows, "depthwise conv 8×64×56×56 3×3", 1e-4, |d| {
        let (x, w) = (floats::<B, 4>([8, 64, 56, 56], &d), floats::<B, 4>([64, 1, 3, 3], &d));
        move || conv2d(x.clone(), w.clone(), None::<Tensor<B, 1>>, depthwise())
    });
    row!(rows, "conv2d 1×1 8×64×28×28", 1e-4, |d| {
        let (x, w) = (floats::<B, 4>([8, 64, 28, 28], &d), floats::<B, 4>([64, 64, 1, 1], &d));
        let options = || ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
        move || conv2d(x.clone(), w.clone(), None::<Tensor<B, 1>>, options())
    });
    row!(rows, "max pool 3×3 stride 2", 0.0, |d| {
        let x = floats::<B, 4>([8, 32, 56, 56], &d);
        move || max_pool2d(x.clone(), [3, 3], [2, 2], [1, 1], [1, 1], false)
    });
    row!(rows, "attention 4×8×128×64", 1e-4, |d| {
        let (q, k, v) = (
            floats::<B, 4>([4, 8, 128, 64], &d),
            floats::<B, 4>([4, 8, 128, 64], &d),
            floats::<B, 4>([4, 8, 128, 64], &d),
        );
        move || {
            attention(
                q.clone(),
                k.clone(),
                v.clone(),
                None,
                None,
                AttentionModuleOptions::default(),
            )
        }
    });
}

/// The gradient of `Σ y·g` by the leaves, the first of them read back.
fn pull<B: AutodiffBackend, const D: usize, const E: usize>(
    leaf: Tensor<B, D>,
    y: Tensor<B, E>,
    g: Tensor<B, E>,
) -> Tensor<B::InnerBackend, D> {
    let grads = (y * g).sum().backward();
    leaf.grad(&grads).expect("a leaf")
}

fn derivatives(rows: &mut Vec<Row>) {
    macro_rules! convolution {
        ($name:expr, $x:expr, $w:expr, $y:expr, $groups:expr) => {
            row!(rows, $name, 1e-4, |d| {
                type A = Autodiff<B>;
                let x = floats::<A, 4>($x, &d).require_grad();
                let w = floats::<A, 4>($w, &d).require_grad();
                let g = floats::<A, 4>($y, &d);
                let options = || ConvOptions::new([1, 1], [1, 1], [1, 1], $groups);
                move || {
                    let y = conv2d(x.clone(), w.clone(), None::<Tensor<A, 1>>, options());
                    pull(w.clone(), y, g.clone())
                }
            });
        };
    }
    let (x, y) = ([8, 32, 28, 28], [8, 64, 28, 28]);
    convolution!("conv2d fwd+bwd 8×32×28×28 64 3×3", x, [64, 32, 3, 3], y, 1);
    convolution!("depthwise fwd+bwd 8×64×28×28 3×3", y, [64, 1, 3, 3], y, 64);
    row!(rows, "max pool 2×2 fwd+bwd", 1e-5, |d| {
        type A = Autodiff<B>;
        let x = floats::<A, 4>([8, 32, 56, 56], &d).require_grad();
        let g = floats::<A, 4>([8, 32, 28, 28], &d);
        move || {
            let y = max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false);
            pull(x.clone(), y, g.clone())
        }
    });
    macro_rules! unary {
        ($name:expr, |$x:ident| $plain:expr, $fused:expr) => {
            row!(rows, $name, 1e-4, |d| {
                type A = Autodiff<B>;
                let x = floats::<A, 2>([1024, 1024], &d).require_grad();
                let g = floats::<A, 2>([1024, 1024], &d);
                move || {
                    let $x = x.clone();
                    pull(x.clone(), $plain, g.clone())
                }
            }, fused {
                type A = Autodiff<B>;
                let x = floats::<A, 2>([1024, 1024], &d).require_grad();
                let g = floats::<A, 2>([1024, 1024], &d);
                move || {
                    let $x = x.clone();
                    pull(x.clone(), $fused, g.clone())
                }
            });
        };
    }
    unary!("gelu fwd+bwd 1024²", |x| activation::gelu(x), activation::gelu(x));
    unary!("softmax fwd+bwd 1024²", |x| activation::softmax(x, 1), nn::softmax(x, 1));
    unary!("log softmax fwd+bwd 1024²", |x| activation::log_softmax(x, 1), nn::log_softmax(x, 1));
    row!(rows, "layer norm fwd+bwd 1024²", 1e-3, |d| {
        type A = Autodiff<B>;
        let norm = burn::nn::LayerNormConfig::new(1024).init::<A>(&d);
        let x = floats::<A, 2>([1024, 1024], &d).require_grad();
        // Not x itself: the derivative of ‖norm(x)‖² is 0.
        let g = floats::<A, 2>([1024, 1024], &d).exp();
        move || pull(x.clone(), norm.forward(x.clone()), g.clone())
    }, fused {
        type A = Autodiff<B>;
        let norm = burn::nn::LayerNormConfig::new(1024).init::<A>(&d);
        let x = floats::<A, 2>([1024, 1024], &d).require_grad();
        // Not x itself: the derivative of ‖norm(x)‖² is 0.
        let g = floats::<A, 2>([1024, 1024], &d).exp();
        move || pull(x.clone(), fused_norm(&norm, x.clone()), g.clone())
    });
    row!(rows, "attention fwd+bwd 4×8×128×64", 1e-4, |d| {
        type A = Autodiff<B>;
        let x = || floats::<A, 4>([4, 8, 128, 64], &d);
        let (q, g) = (x().require_grad(), x());
        move || {
            let options = AttentionModuleOptions::default();
            let (k, v) = (q.clone(), q.clone());
            pull(q.clone(), attention(q.clone(), k, v, None, None, options), g.clone())
        }
    }, fused {
        type A = Autodiff<B>;
        let x = || floats::<A, 4>([4, 8, 128, 64], &d);
        let (q, g) = (x().require_grad(), x());
        move || {
            let options = AttentionModuleOptions::default();
            let (k, v) = (q.clone(), q.clone());
            pull(q.clone(), nn::attention(q.clone(), k, v, None, None, options), g.clone())
        }
    });
    row!(rows, "cross-entropy fwd+bwd 1024×1000", 1e-4, |d| {
        type A = Autodiff<B>;
        let x = floats::<A, 2>([1024, 1000], &d).require_grad();
        let t = whole::<A, 1>([1024], 1000, &d);
        let loss = CrossEntropyLossConfig::new().init(&d);
        move || {
            let grads = loss.forward(x.clone(), t.clone()).backward();
            x.grad(&grads).expect("a leaf")
        }
    }, fused {
        type A = Autodiff<B>;
        let x = floats::<A, 2>([1024, 1000], &d).require_grad();
        let t = whole::<A, 1>([1024], 1000, &d);
        move || {
            let grads = nn::cross_entropy(x.clone(), t.clone()).backward();
            x.grad(&grads).expect("a leaf")
        }
    });
}

fn fused_norm<B: Operations, const D: usize>(norm: &LayerNorm<B>, x: Tensor<B, D>) -> Tensor<B, D> {
    let beta = norm.beta.as_ref().map(|beta| beta.val());
    nn::layer_norm(x, norm.gamma.val(), beta, 1e-5)
}

/// The forward pass of Burn's encoder (no masks, no dropout, norms last) with drop-in functions.
fn fused_encoder<B: Operations>(net: &TransformerEncoder<B>, mut x: Tensor<B, 3>) -> Tensor<B, 3> {
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

fn training(rows: &mut Vec<Row>) {
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

fn plain_encoder<B: Backend>(net: &TransformerEncoder<B>, x: Tensor<B, 3>) -> Tensor<B, 3> {
    net.forward(TransformerEncoderInput::new(x))
}

type Encoder<B> = fn(&TransformerEncoder<B>, Tensor<B, 3>) -> Tensor<B, 3>;

/// A step of training, or only its derivatives; returns the loss before it.
fn transformer<A: AutodiffBackend>(
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

/// Largest difference relative to the largest element.
fn distance(a: &TensorData, b: &TensorData) -> f64 {
    assert_eq!(a.shape, b.shape);
    let pairs = a.iter::<f64>().zip(b.iter::<f64>());
    let (far, top) = pairs
        .fold((0.0f64, 0.0f64), |(far, top), (x, y)| (far.max((x - y).abs()), top.max(y.abs())));
    far / top.max(1e-30)
}

/// Calls per sample so that one takes about 20 ms.
fn calls(run: &mut Run) -> usize {
    let begin = Instant::now();
    run(false);
    run(false);
    let once = begin.elapsed() / 2;
    (Duration::from_millis(20).as_nanos() / once.as_nanos().max(50)).clamp(1, 20_000) as usize
}

/// A figure of this process in KiB.
fn status(name: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Trains on one backend and prints by how much the peak of the process grew, and how much of that
/// is not the program's own file, which stays in memory once touched.
fn train(backend: &str) {
    fn steps<A: AutodiffBackend>(encode: Encoder<A>) {
        let before = ["VmHWM", "RssFile"].map(status);
        let mut step = transformer::<A>(&Default::default(), encode, true);
        for _ in 0..20 {
            black_box(step().into_data());
        }
        let all = status("VmHWM").saturating_sub(before[0]);
        println!("{all} {}", all.saturating_sub(status("RssFile").saturating_sub(before[1])));
    }
    match backend {
        "t4a" => steps::<Autodiff<burn_t4a::BurnT4a>>(plain_encoder),
        "fused" => steps::<Autodiff<burn_t4a::BurnT4a>>(fused_encoder),
        "flex" => steps::<Autodiff<burn_flex::Flex>>(plain_encoder),
        _ => steps::<Autodiff<burn_ndarray::NdArray<f32>>>(plain_encoder),
    }
}

/// Best time of a call in seconds.
fn best(mut f: impl FnMut()) -> f64 {
    (0..20).fold(f64::INFINITY, |best, _| {
        let begin = Instant::now();
        f();
        best.min(begin.elapsed().as_secs_f64())
    })
}

/// Bytes per second, read and written, of a copy of `n` floats on this thread.
fn copy_rate(n: usize) -> f64 {
    let (from, mut to) = (vec![1.0f32; n], vec![0.0f32; n]);
    let seconds = best(|| to.copy_from_slice(black_box(&from)));
    black_box(&to);
    8.0 * n as f64 / seconds
}

fn machine() {
    let n = 1024;
    let a = floats::<burn_t4a::BurnT4a, 2>([n, n], &Default::default());
    let seconds = best(|| drop(black_box(a.clone().matmul(a.clone()))));
    println!(
        "copy {:.1} GB/s of 1024² floats, {:.1} GB/s of 16·1024²; matmul 1024 {:.1} GFLOP/s",
        copy_rate(n * n) / 1e9,
        copy_rate(16 * n * n) / 1e9,
        2e-9 * (n * n * n) as f64 / seconds
    );
}

fn memory(threads: &str) {
    let Ok(program) = std::env::current_exe() else { return };
    print!("peak memory of the transformer step in MiB, and without code:");
    for backend in ["t4a", "fused", "flex", "ndarray"] {
        let args = ["--threads", threads, "--train", backend];
        let Ok(out) = std::process::Command::new(&program).args(args).output() else { continue };
        print!("  {backend}");
        for grown in String::from_utf8_lossy(&out.stdout).split_whitespace() {
            print!(" {:.1}", grown.parse().unwrap_or(f64::NAN) / 1024.0);
        }
    }
    println!();
}

fn main() {
    let mut train_on = None;
    let (mut filter, mut alone) = (None, false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--threads" => {
                let threads: usize = args.next().and_then(|n| n.parse().ok()).expect("--threads N");
                // SAFETY: no other thread runs yet.
                unsafe { std::env::set_var("RAYON_NUM_THREADS", threads.to_string()) };
                t4a_tensor::loops::parallel::set_threads(threads);
            }
            "--train" => train_on = args.next(),
            "--alone" => alone = true,
            "--bench" => {}
            _ => filter = Some(arg),
        }
    }
    if let Some(backend) = train_on {
        return train(&backend);
    }
    let mut rows = Vec::new();
    for group in [elementwise, reductions, movement, products, modules, derivatives, training] {
        group(&mut rows);
    }
    let peers = std::env::var("RAYON_NUM_THREADS").unwrap_or_else(|_| "all".into());
    println!("threads: {} (peers: {peers}); times in µs", t4a_tensor::loops::parallel::threads());
    if filter.is_none() {
        machine();
    }
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>8} {:>8} {:>10} {:>6}",
        "", "t4a", "flex", "ndarray", "flex/", "ndarray/", "fused", "copy %"
    );
    let (copy, mut copied) = (vec![1.0f32; 1 << 20], vec![0.0f32; 1 << 20]);
    let mut logs = [0.0f64; 2];
    let (mut count, mut wrong) = (0, 0);
    for row in rows.iter().filter(|row| filter.as_ref().is_none_or(|f| row.name.contains(f))) {
        if alone {
            // BurnT4a only, for a profiler.
            let mut run = row.make[0]();
            let (begin, mut calls) = (Instant::now(), 0);
            while begin.elapsed() < Duration::from_secs(2) {
                run(false);
                calls += 1;
            }
            println!("{:<34} {:>10.2}", row.name, 2e6 / f64::from(calls));
            continue;
        }
        let mut runs: Vec<Run> = row.make.iter().chain(&row.fused).map(|make| make()).collect();
        let results: Vec<TensorData> = runs.iter_mut().filter_map(|run| run(true)).collect();
        let off = [Some(&results[0]), results.get(3)].into_iter().flatten();
        let off = off.map(|ours| distance(ours, &results[1])).fold(0.0, f64::max);
        if off.is_nan() || off > row.tolerance {
            println!("{:<34} WRONG: {off:e} away from Flex", row.name);
            wrong += 1;
            continue;
        }
        let calls: Vec<usize> = runs.iter_mut().map(calls).collect();
        let mut samples: [Vec<f64>; 5] = Default::default();
        for _ in 0..7 {
            for (i, run) in runs.iter_mut().enumerate() {
                let begin = Instant::now();
                for _ in 0..calls[i] {
                    run(false);
                }
                samples[i].push(begin.elapsed().as_secs_f64() * 1e6 / calls[i] as f64);
            }
            let begin = Instant::now();
            for _ in 0..20 {
                copied.copy_from_slice(black_box(&copy));
                black_box(&mut copied);
            }
            samples[4].push(begin.elapsed().as_secs_f64() * 1e6 / 20.0);
        }
        let [t4a, flex, nd, fused, plain] = samples.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
        });
        logs[0] += (flex / t4a).ln();
        logs[1] += (nd / t4a).ln();
        count += 1;
        let shown = |value: f64, digits: usize| match value.is_finite() && value > 0.0 {
            true => format!("{value:.digits$}"),
            false => String::new(),
        };
        let rate = 100.0 * (row.bytes as f64 / t4a) / (2.0 * M as f64 / plain);
        println!(
            "{:<34} {t4a:>10.2} {flex:>10.2} {nd:>10.2} {:>8.2} {:>8.2} {:>10} {:>6}",
            row.name,
            flex / t4a,
            nd / t4a,
            shown(fused, 2),
            shown(rate, 0)
        );
    }
    let [flex, nd] = logs.map(|log| (log / f64::from(count.max(1))).exp());
    println!("{:<34} {:>10} {:>10} {:>10} {flex:>8.2} {nd:>8.2}", "geometric mean", "", "", "");
    if filter.is_none() {
        memory(&t4a_tensor::loops::parallel::threads().to_string());
    }
    if wrong > 0 {
        println!("{wrong} rows are wrong");
        std::process::exit(1);
    }
}
