//! Speedup by threads: `cargo bench -p burn-t4a --bench threads -- [filter]`.
//!
//! Each row runs alternately on one thread and on all threads. The speed of a second virtual core varies, so each
//! speedup is printed beside a reference measured in the same second: the same arithmetic on one thread and on all
//! threads (`cores`), and a copy split over them (`copy`). Each row is bound by one of the two; `ratio` is its
//! speedup divided by that of its reference.
//!
//! The last columns simulate sixteen threads on one thread: number of parallel loops, each of which ends with a
//! synchronisation; number of chunks of all loops; µs outside of the loops; and the speedup that these bound if
//! threads had no cost.

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::module::{Module, ModuleMapper, Param};
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::loss::{CrossEntropyLossConfig, MseLoss, Reduction};
use burn::nn::transformer::{TransformerEncoderConfig, TransformerEncoderInput};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::optim::{AdamConfig, GradientsParams, Optimizer};
use burn::prelude::*;
use burn::tensor::activation;
use burn::tensor::module::{attention, conv2d, max_pool2d};
use burn::tensor::ops::{AttentionModuleOptions, ConvOptions};
use burn_t4a::ext::operation::Operations;
use burn_t4a::models::LinearChain;
use burn_t4a::{BackendConfig, BurnT4a, T4aDevice};
use t4a_algebra::parallel::rehearse;

type B = BurnT4a;
type A = Autodiff<B>;

/// Resource that bounds a row.
#[derive(Clone, Copy, PartialEq)]
enum Waits {
    Arithmetic,
    Memory,
    /// Too small for threads: it must not become slower.
    Nothing,
}

struct Row {
    name: &'static str,
    waits: Waits,
    make: fn() -> Box<dyn FnMut()>,
}

/// `row!(rows, name, waits, { inputs; move || result })`
macro_rules! row {
    ($rows:ident, $name:expr, $waits:ident, $body:block) => {
        $rows.push(Row {
            name: $name,
            waits: Waits::$waits,
            make: || {
                #[allow(unused_mut)]
                let mut run = $body;
                Box::new(move || drop(black_box(run())))
            },
        })
    };
}

/// Fixed values in [−1, 1].
fn floats<B: Backend, const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    let numel: usize = shape.iter().product();
    let value = |i: usize| {
        let bits = (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        bits as f32 / (1u64 << 23) as f32 - 1.0
    };
    let data = TensorData::new((0..numel).map(value).collect::<Vec<f32>>(), shape);
    Tensor::from_data(data, &Default::default()) + 0.0
}

fn operations(rows: &mut Vec<Row>) {
    row!(rows, "add 1024²", Memory, {
        let (a, b) = (floats::<B, 2>([1024, 1024]), floats::<B, 2>([1024, 1024]));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 512²", Memory, {
        let (a, b) = (floats::<B, 2>([512, 512]), floats::<B, 2>([512, 512]));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 256²", Nothing, {
        let (a, b) = (floats::<B, 2>([256, 256]), floats::<B, 2>([256, 256]));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 4×4", Nothing, {
        let (a, b) = (floats::<B, 2>([4, 4]), floats::<B, 2>([4, 4]));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 4096²", Memory, {
        let (a, b) = (floats::<B, 2>([4096, 4096]), floats::<B, 2>([4096, 4096]));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² by a row", Memory, {
        let (a, b) = (floats::<B, 2>([1024, 1024]), floats::<B, 2>([1, 1024]));
        move || a.clone() + b.clone()
    });
    row!(rows, "add 1024² transposed", Memory, {
        let (a, b) = (floats::<B, 2>([1024, 1024]), floats::<B, 2>([1024, 1024]));
        move || a.clone() + b.clone().transpose()
    });
    row!(rows, "sum 1024²", Memory, {
        let a = floats::<B, 2>([1024, 1024]);
        move || a.clone().sum()
    });
    row!(rows, "sum 1024² rows", Memory, {
        let a = floats::<B, 2>([1024, 1024]);
        move || a.clone().sum_dim(1)
    });
    row!(rows, "sum 1024² columns", Memory, {
        let a = floats::<B, 2>([1024, 1024]);
        move || a.clone().sum_dim(0)
    });
    row!(rows, "permute copy 64×128×128", Memory, {
        let a = floats::<B, 3>([64, 128, 128]);
        move || a.clone().permute([2, 0, 1]).mul_scalar(1.0)
    });
    row!(rows, "exp 1024²", Arithmetic, {
        let a = floats::<B, 2>([1024, 1024]);
        move || a.clone().exp()
    });
    row!(rows, "exp 256²", Arithmetic, {
        let a = floats::<B, 2>([256, 256]);
        move || a.clone().exp()
    });
    row!(rows, "gelu 1024²", Arithmetic, {
        let a = floats::<B, 2>([1024, 1024]);
        move || activation::gelu(a.clone())
    });
    row!(rows, "softmax 1024² rows", Arithmetic, {
        let a = floats::<B, 2>([1024, 1024]);
        move || activation::softmax(a.clone(), 1)
    });
    row!(rows, "softmax 256² rows", Arithmetic, {
        let a = floats::<B, 2>([256, 256]);
        move || activation::softmax(a.clone(), 1)
    });
    row!(rows, "matmul 64", Nothing, {
        let a = floats::<B, 2>([64, 64]);
        move || a.clone().matmul(a.clone())
    });
    row!(rows, "matmul 128", Arithmetic, {
        let a = floats::<B, 2>([128, 128]);
        move || a.clone().matmul(a.clone())
    });
    row!(rows, "matmul 256", Arithmetic, {
        let a = floats::<B, 2>([256, 256]);
        move || a.clone().matmul(a.clone())
    });
    row!(rows, "matmul 1024", Arithmetic, {
        let a = floats::<B, 2>([1024, 1024]);
        move || a.clone().matmul(a.clone())
    });
    row!(rows, "matmul 512×128×512", Arithmetic, {
        let (a, b) = (floats::<B, 2>([512, 128]), floats::<B, 2>([128, 512]));
        move || a.clone().matmul(b.clone())
    });
    row!(rows, "Q·Kᵀ 4×8×256×64", Arithmetic, {
        let q = floats::<B, 4>([4, 256, 8, 64]).swap_dims(1, 2);
        move || q.clone().matmul(q.clone().swap_dims(2, 3))
    });
    row!(rows, "attention 4×8×128×64", Arithmetic, {
        let q = floats::<B, 4>([4, 8, 128, 64]);
        let options = AttentionModuleOptions::default();
        move || attention(q.clone(), q.clone(), q.clone(), None, None, options)
    });
    row!(rows, "conv2d 8×32×56×56 64 3×3", Arithmetic, {
        let (x, w) = (floats::<B, 4>([8, 32, 56, 56]), floats::<B, 4>([64, 32, 3, 3]));
        move || {
            let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
            conv2d(x.clone(), w.clone(), None, options)
        }
    });
    row!(rows, "CRF ln Z 32×128, 64 tags", Arithmetic, {
        let (x, w) = (floats::<B, 3>([32, 128, 64]), floats::<B, 2>([64, 64]));
        move || log_partition(x.clone(), w.clone())
    });
    row!(rows, "max pool 2×2 8×32×56×56", Memory, {
        let x = floats::<B, 4>([8, 32, 56, 56]);
        move || max_pool2d(x.clone(), [2, 2], [2, 2], [0, 0], [1, 1], false)
    });
}

fn log_partition<B: Operations>(x: Tensor<B, 3>, w: Tensor<B, 2>) -> Tensor<B, 1> {
    let chain = LinearChain::new(x, w, None).expect("shapes of a chain");
    chain.log_partition().expect("contractions")
}

/// Initialises parameters without random numbers.
struct Fixed;

impl<B: Backend> ModuleMapper<B> for Fixed {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<B, D>>) -> Param<Tensor<B, D>> {
        param.map(|value| (floats(value.dims()) * 0.1).detach().require_grad())
    }
}

/// Runs steps of Adam.
fn trained<M: burn::module::AutodiffModule<A> + 'static>(
    model: M,
    loss: impl Fn(&M) -> Tensor<A, 1> + 'static,
) -> impl FnMut() -> Tensor<B, 1> {
    let (mut model, mut adam) = (Some(model.map(&mut Fixed)), AdamConfig::new().init());
    move || {
        let net = model.take().expect("put back below");
        let loss = loss(&net);
        let value = loss.clone().inner();
        let gradients = GradientsParams::from_grads(loss.backward(), &net);
        model = Some(adam.step(1e-5, net, gradients));
        value
    }
}

fn classes(batch: usize) -> Tensor<A, 1, Int> {
    let classes: Vec<i32> = (0..batch).map(|i| (i * 7919 % 10) as i32).collect();
    Tensor::from_data(TensorData::new(classes, [batch]), &T4aDevice)
}

fn perceptron(batch: usize, hidden: usize) -> impl FnMut() -> Tensor<B, 1> {
    let linear = |i, o| LinearConfig::new(i, o).init::<A>(&T4aDevice);
    let net: Vec<Linear<A>> = vec![linear(64, hidden), linear(hidden, hidden), linear(hidden, 10)];
    let (x, y) = (floats::<A, 2>([batch, 64]), classes(batch));
    let loss = CrossEntropyLossConfig::new().init(&T4aDevice);
    trained(net, move |net| {
        let h = activation::relu(net[0].forward(x.clone()));
        let h = activation::relu(net[1].forward(h));
        loss.forward(net[2].forward(h), y.clone())
    })
}

/// Two convolutions with batch norms and a residual connection, as in ResNet.
#[derive(Module, Debug)]
struct Residual<B: Backend> {
    convs: Vec<Conv2d<B>>,
    norms: Vec<BatchNorm<B>>,
    head: Linear<B>,
}

fn residual() -> impl FnMut() -> Tensor<B, 1> {
    let conv = || {
        let config = Conv2dConfig::new([32, 32], [3, 3]);
        config.with_padding(PaddingConfig2d::Explicit(1, 1, 1, 1)).init::<A>(&T4aDevice)
    };
    let norm = || BatchNormConfig::new(32).init(&T4aDevice);
    let net = Residual {
        convs: vec![conv(), conv()],
        norms: vec![norm(), norm()],
        head: LinearConfig::new(32, 10).init(&T4aDevice),
    };
    let (x, y) = (floats::<A, 4>([8, 32, 28, 28]), classes(8));
    let loss = CrossEntropyLossConfig::new().init(&T4aDevice);
    trained(net, move |net: &Residual<A>| {
        let h = activation::relu(net.norms[0].forward(net.convs[0].forward(x.clone())));
        let h = net.norms[1].forward(net.convs[1].forward(h)) + x.clone();
        let h: Tensor<A, 2> = activation::relu(h).mean_dim(3).mean_dim(2).reshape([8, 32]);
        loss.forward(net.head.forward(h), y.clone())
    })
}

fn transformer() -> impl FnMut() -> Tensor<B, 1> {
    let config = TransformerEncoderConfig::new(128, 512, 4, 2).with_dropout(0.0);
    let (x, y) = (floats::<A, 3>([8, 64, 128]), floats::<A, 3>([8, 64, 128]));
    trained(config.init::<A>(&T4aDevice), move |net| {
        let out = net.forward(TransformerEncoderInput::new(x.clone()));
        MseLoss::new().forward(out, y.clone(), Reduction::Mean)
    })
}

fn training(rows: &mut Vec<Row>) {
    row!(rows, "MLP train step b64 h512", Arithmetic, { perceptron(64, 512) });
    row!(rows, "softmax fwd+bwd 1024²", Memory, {
        let x = floats::<A, 2>([1024, 1024]).require_grad();
        move || {
            let y = activation::softmax(x.clone(), 1);
            x.grad(&(y.clone() * y).sum().backward()).expect("the loss depends on it")
        }
    });
    row!(rows, "MLP train step b8 h32", Nothing, { perceptron(8, 32) });
    row!(rows, "CRF ln Z and gradient", Arithmetic, {
        let x = floats::<A, 3>([32, 128, 64]).require_grad();
        let w = floats::<A, 2>([64, 64]).require_grad();
        move || {
            let gradients = log_partition(x.clone(), w.clone()).sum().backward();
            w.grad(&gradients).expect("the loss depends on it")
        }
    });
    row!(rows, "residual block train step b8", Arithmetic, { residual() });
    row!(rows, "transformer train step b8 s64", Arithmetic, { transformer() });
}

/// Seconds that `f` takes.
fn time(f: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    f();
    begin.elapsed().as_secs_f64()
}

/// A chain of dependent additions, about 0.1 ms, bound by the core alone.
fn arithmetic() {
    let mut x = black_box([1.0f64; 8]);
    for _ in 0..30_000 {
        for x in &mut x {
            *x = *x * 0.999 + 0.5;
        }
    }
    black_box(x);
}

/// Speedup of `threads` threads over one for `threads` pieces of work.
fn gain_of_cores(threads: usize) -> f64 {
    let rounds = 20;
    let work = || (0..rounds).for_each(|_| arithmetic());
    let one = time(work);
    let all = time(|| {
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        })
    });
    threads as f64 * one / all
}

/// Speedup of `threads` threads over one for a copy.
fn gain_of_copies(threads: usize, from: &[f32], to: &mut [f32]) -> f64 {
    let rounds = 40;
    let copy = |to: &mut [f32], from: &[f32]| {
        for _ in 0..rounds {
            black_box(&mut *to).copy_from_slice(black_box(from));
        }
    };
    let one = time(|| copy(to, from));
    let part = from.len().div_ceil(threads);
    let all = time(|| {
        std::thread::scope(|scope| {
            for (to, from) in to.chunks_mut(part).zip(from.chunks(part)) {
                scope.spawn(move || copy(to, from));
            }
        })
    });
    one / all
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    let threads = BackendConfig::current().get_threads().expect("it is known");
    let set = |threads| BackendConfig::new().threads(threads).set().expect("at least one");
    println!("{threads} threads; µs");
    println!(
        "{:32} {:>10} {:>10} {:>6}  of {:<11} {:>6} {:>9} {:>6} {:>8} {:>6}",
        "", "one", "all", "gain", "", "ratio", "16: loops", "chunks", "serial", "gain"
    );
    let mut rows = Vec::new();
    operations(&mut rows);
    training(&mut rows);
    let (from, mut to) = (vec![1.0f32; 1 << 20], vec![0.0f32; 1 << 20]);
    for row in &rows {
        if filter.as_ref().is_some_and(|filter| !row.name.contains(filter.as_str())) {
            continue;
        }
        let mut run = (row.make)();
        (0..3).for_each(|_| run());
        let calls = (Duration::from_millis(15).as_secs_f64() / time(&mut run)).ceil() as usize;
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..15 {
            let reference = match row.waits {
                Waits::Arithmetic => gain_of_cores(threads),
                Waits::Memory => gain_of_copies(threads, &from, &mut to),
                Waits::Nothing => 1.0,
            };
            samples[2].push(reference);
            for (i, threads) in [1, threads].into_iter().enumerate() {
                set(threads);
                run();
                samples[i].push(time(|| (0..calls).for_each(|_| run())) * 1e6 / calls as f64);
            }
        }
        let [one, all, reference] = samples.map(median);
        let sixteen = rehearse(16, &mut run);
        let chunks: usize = sixteen.loops.iter().map(|shared| shared.chunks).sum();
        let (serial, bound) = (sixteen.serial().as_secs_f64() * 1e6, sixteen.shared());
        let of = match row.waits {
            Waits::Arithmetic => "cores",
            Waits::Memory => "copies",
            Waits::Nothing => "one",
        };
        let gain = one / all;
        println!(
            "{:32} {one:>10.2} {all:>10.2} {gain:>6.2}  {of:>9} {reference:.2} {:>6.2} {:>9} {chunks:>6} {serial:>8.1} {:>6.1}",
            row.name,
            gain / reference,
            sixteen.loops.len(),
            sixteen.time.div_duration_f64(bound)
        );
    }
}
