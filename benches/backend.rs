//! BurnT4a, Flex and NdArray side by side: `cargo bench --bench backend -- [--threads N] [filter]`.
//!
//! Every row is one closure, compiled for each backend. Results are compared with Flex before
//! anything is timed. Times are the median of interleaved samples, so that drift of the machine
//! falls on all three alike; ratios are time of the peer / time of BurnT4a: above 1, ours is
//! faster. The last line is the geometric mean.

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::module::Module;
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput};
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::tensor::backend::Backend;
use burn::tensor::module::{attention, avg_pool2d, conv2d, max_pool2d};
use burn::tensor::ops::{AttentionModuleOptions, ConvOptions};
use burn::tensor::{Int, Tensor, TensorData, activation, s};

/// One measured operation: called with `true` it returns its result.
type Run = Box<dyn FnMut(bool) -> Option<TensorData>>;

struct Row {
    name: String,
    /// Largest difference from Flex, relative to the largest element.
    tolerance: f64,
    /// BurnT4a, Flex, NdArray.
    make: [Box<dyn Fn() -> Run>; 3],
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
        })
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

fn elementwise(rows: &mut Vec<Row>) {
    row!(rows, "add 4×4", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([4, 4], &d), floats::<B, 2>([4, 4], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024²", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² transposed", 1e-6, |d| {
        let (a, b) =
            (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1024], &d).transpose());
        move || a.clone() + b.clone()
    });
    row!(rows, "mul 1024² by a row", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1, 1024], &d));
        move || a.clone() * b.clone()
    });
    row!(rows, "mul 1024² by a column", 1e-6, |d| {
        let (a, b) = (floats::<B, 2>([1024, 1024], &d), floats::<B, 2>([1024, 1], &d));
        move || a.clone() * b.clone()
    });
    row!(rows, "mul scalar 1024²", 1e-6, |d| {
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
    row!(rows, "relu 1024²", 1e-6, |d| {
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
        let a = floats::<B, 2>([1024, 1024], &d);
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
    row!(rows, "permute copy 64×128×128", 0.0, |d| {
        let a = floats::<B, 3>([64, 128, 128], &d);
        move || a.clone().permute([2, 0, 1]).reshape([128 * 64 * 128])
    });
    row!(rows, "transpose copy 1024²", 0.0, |d| {
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
        type A = Autodiff<B>;
        let net = TransformerEncoderConfig::new(128, 512, 4, 2)
            .with_dropout(0.0)
            .init::<A>(&d)
            .map(&mut Fixed(&d, 0));
        let (x, y) = (floats::<A, 3>([8, 64, 128], &d), floats::<A, 3>([8, 64, 128], &d));
        move || {
            let out = net.forward(TransformerEncoderInput::new(x.clone()));
            let error = MseLoss::new().forward(out, y.clone(), Reduction::Mean);
            let value = error.clone().inner();
            black_box(error.backward());
            value
        }
    });
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

fn main() {
    let mut filter = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--threads" => {
                let threads: usize = args.next().and_then(|n| n.parse().ok()).expect("--threads N");
                // SAFETY: no other thread runs yet.
                unsafe { std::env::set_var("RAYON_NUM_THREADS", threads.to_string()) };
                t4a_tensor::loops::parallel::set_threads(threads);
            }
            "--bench" => {}
            _ => filter = Some(arg),
        }
    }
    let mut rows = Vec::new();
    for group in [elementwise, reductions, movement, products, modules, training] {
        group(&mut rows);
    }
    let peers = std::env::var("RAYON_NUM_THREADS").unwrap_or_else(|_| "all".into());
    println!("threads: {} (peers: {peers}); times in µs", t4a_tensor::loops::parallel::threads());
    println!(
        "{:<34} {:>10} {:>10} {:>10} {:>8} {:>8}",
        "", "t4a", "flex", "ndarray", "flex/", "ndarray/"
    );
    let mut logs = [0.0f64; 2];
    let mut count = 0;
    for row in rows.iter().filter(|row| filter.as_ref().is_none_or(|f| row.name.contains(f))) {
        let mut runs: Vec<Run> = row.make.iter().map(|make| make()).collect();
        let results: Vec<TensorData> = runs.iter_mut().filter_map(|run| run(true)).collect();
        let off = distance(&results[0], &results[1]);
        assert!(off <= row.tolerance, "{}: {off:e} away from Flex", row.name);
        let calls: Vec<usize> = runs.iter_mut().map(calls).collect();
        let mut samples: [Vec<f64>; 3] = Default::default();
        for _ in 0..7 {
            for (i, run) in runs.iter_mut().enumerate() {
                let begin = Instant::now();
                for _ in 0..calls[i] {
                    run(false);
                }
                samples[i].push(begin.elapsed().as_secs_f64() * 1e6 / calls[i] as f64);
            }
        }
        let [t4a, flex, nd] = samples.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        logs[0] += (flex / t4a).ln();
        logs[1] += (nd / t4a).ln();
        count += 1;
        println!(
            "{:<34} {t4a:>10.2} {flex:>10.2} {nd:>10.2} {:>8.2} {:>8.2}",
            row.name,
            flex / t4a,
            nd / t4a
        );
    }
    let [flex, nd] = logs.map(|log| (log / f64::from(count.max(1))).exp());
    println!("{:<34} {:>10} {:>10} {:>10} {flex:>8.2} {nd:>8.2}", "geometric mean", "", "", "");
}
