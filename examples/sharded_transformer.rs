//! A transformer on four devices: 2-way data parallelism times 2-way tensor parallelism over heads and features. The
//! code is that of one device; specs give the partition of parameters and data, and the plan lists the communication.
//!
//! ```text
//! cargo run --release --example sharded_transformer
//! cargo run --release --example sharded_transformer -- --processes 4
//! ```
//!
//! The first weight of a block is split by columns and the second by rows, so each block of a transformer needs one
//! all-reduce in the forward and one in the backward pass (Shoeybi et al. 2019). Gradients of replicated parameters are
//! sums over the batch. The devices are threads of this process, or of several processes that it starts. The task is to
//! reverse a sequence.

use std::net::TcpListener;
use std::process::{Child, Command};

use burn::backend::Autodiff;
use burn::tensor::activation::{gelu, log_softmax, softmax};
use burn::tensor::backend::Backend;
use burn::tensor::module::embedding;
use burn::tensor::{Int, Tensor, TensorData};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::Traced;
use burn_t4a_transforms::shard::{Mesh, PartitionSpec, Processes, Rendezvous, shard_map};
use indicatif::ProgressBar;

type B = BurnT4a;
type T = Traced<B>;
type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const WORDS: usize = 12;
const LENGTH: usize = 8;
const WIDTH: usize = 32;
const HEADS: usize = 4;
const BATCH: usize = 16;
const BLOCKS: usize = 2;
/// Word and position embeddings, then query, key, value, output projection and two layers for each block, then the
/// output embedding.
const PARAMETERS: usize = 2 + 6 * BLOCKS + 1;

type Parameters<A> = Vec<Tensor<A, 2>>;

/// Layer norm without gain and bias, for brevity.
fn norm<A: Backend>(x: Tensor<A, 3>) -> Tensor<A, 3> {
    let x = x.clone() - x.mean_dim(2);
    x.clone() / (x.powi_scalar(2).mean_dim(2) + 1e-5).sqrt()
}

fn times<A: Backend>(x: Tensor<A, 3>, w: Tensor<A, 2>) -> Tensor<A, 3> {
    burn::tensor::module::linear(x, w, None)
}

/// Scores of all words at all positions.
fn forward<A: Backend>(parameters: &Parameters<A>, words: Tensor<A, 2, Int>) -> Tensor<A, 3> {
    let [batch, length] = words.dims();
    let mut all = parameters.iter().cloned();
    let mut next = || all.next().expect("as many parameters");
    let mut x = embedding(next(), words) + next().unsqueeze();
    for _ in 0..BLOCKS {
        let y = norm(x.clone());
        let heads =
            |x: Tensor<A, 3>| x.reshape([batch, length, HEADS, WIDTH / HEADS]).swap_dims(1, 2);
        let [query, key, value] = [next(), next(), next()].map(|w| heads(times(y.clone(), w)));
        let scale = ((WIDTH / HEADS) as f32).sqrt();
        let weights = softmax(query.matmul(key.swap_dims(2, 3)) / scale, 3);
        let seen = weights.matmul(value).swap_dims(1, 2).reshape([batch, length, WIDTH]);
        x = x + times(seen, next());
        let hidden = gelu(times(norm(x.clone()), next()));
        x = x + times(hidden, next());
    }
    times(norm(x), next())
}

/// A step of gradient descent with momentum on the cross entropy.
fn step<A: Backend>(
    (parameters, velocity, words): (Parameters<A>, Parameters<A>, Tensor<A, 2, Int>),
) -> (Parameters<A>, Parameters<A>, Tensor<A, 1>) {
    let tracked: Parameters<Autodiff<A>> =
        parameters.iter().map(|w| Tensor::from_inner(w.clone()).require_grad()).collect();
    let scores = forward(&tracked, Tensor::from_inner(words.clone()));
    let backwards = Tensor::from_inner(words.flip([1]).unsqueeze_dim::<3>(2));
    let loss = -log_softmax(scores, 2).gather(2, backwards).mean();
    let gradients = loss.backward();
    let moved = |(w, v): (&Tensor<Autodiff<A>, 2>, Tensor<A, 2>)| {
        v * 0.9 - w.grad(&gradients).expect("every parameter has a gradient") * 0.02
    };
    let velocity: Parameters<A> = tracked.iter().zip(velocity).map(moved).collect();
    let parameters = parameters.into_iter().zip(&velocity).map(|(w, v)| w + v.clone()).collect();
    (parameters, velocity, loss.inner())
}

/// Pseudo-random numbers in [0, 1).
fn numbers(seed: u64) -> impl FnMut() -> f32 {
    let mut state = seed;
    move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32
    }
}

fn start() -> Parameters<B> {
    let mut shapes = vec![[WORDS, WIDTH], [LENGTH, WIDTH]];
    for _ in 0..BLOCKS {
        shapes.extend([[WIDTH, WIDTH]; 4]);
        shapes.extend([[WIDTH, 4 * WIDTH], [4 * WIDTH, WIDTH]]);
    }
    shapes.push([WIDTH, WORDS]);
    let mut next = numbers(5);
    let one = |[n, m]: [usize; 2]| {
        let scale = 2.0 / (n as f32).sqrt();
        let w: Vec<f32> = (0..n * m).map(|_| scale * (next() - 0.5)).collect();
        Tensor::from_data(TensorData::new(w, [n, m]), &T4aDevice)
    };
    shapes.into_iter().map(one).collect()
}

/// Column splits for the input weights of a block, row splits for its output weights.
fn specs() -> Vec<PartitionSpec> {
    let (columns, rows) =
        (PartitionSpec::split(["", "model"]), PartitionSpec::split(["model", ""]));
    let mut all = vec![PartitionSpec::replicated(); 2];
    for _ in 0..BLOCKS {
        all.extend([columns.clone(), columns.clone(), columns.clone(), rows.clone()]);
        all.extend([columns.clone(), rows.clone()]);
    }
    all.push(PartitionSpec::replicated());
    all
}

fn batch(next: &mut impl FnMut() -> f32) -> Tensor<B, 2, Int> {
    let words: Vec<i64> = (0..BATCH * LENGTH).map(|_| (next() * WORDS as f32) as i64).collect();
    Tensor::from_data(TensorData::new(words, [BATCH, LENGTH]), &T4aDevice)
}

/// Trains on the devices of all processes; each process checks all steps, and the first one prints them.
fn train(processes: Option<&Processes>) -> Result<()> {
    let tells = processes.is_none_or(|all| all.rank() == 0);
    let mesh = Mesh::new([("data", 2), ("model", 2)])?;
    let twice = || specs().into_iter().chain(specs());
    let mut sharded = shard_map(
        step::<T>,
        &mesh,
        twice().chain([PartitionSpec::split(["data", ""])]),
        twice().chain([PartitionSpec::replicated()]),
    );
    if let Some(processes) = processes {
        sharded = sharded.across(processes)?;
    }

    let zeros = |all: &Parameters<B>| all.iter().map(Tensor::zeros_like).collect::<Vec<_>>();
    let mut own = start();
    assert_eq!(own.len(), PARAMETERS);
    let mut velocity = zeros(&own);
    let mut next = numbers(8);
    let plan = sharded.plan((own.clone(), velocity.clone(), batch(&mut next)))?;
    let text = plan.to_string();
    let sums = text.matches("all-reduce (sum)").count();
    if tells {
        println!("the first lines of the plan, and its last one:");
        text.lines().skip(2 * PARAMETERS + 2).take(12).for_each(|line| println!("  {line}"));
        println!("  … {sums} sums over devices …\n  {}", text.lines().last().unwrap_or_default());
        println!("\n step   loss on four devices    on one");
    }
    assert!(!text.contains("no rule"), "every operation runs on parts");

    let mut losses = Vec::new();
    let bar = if tells { ProgressBar::new(300) } else { ProgressBar::hidden() };
    for round in 0..300 {
        let words = batch(&mut next);
        // The same step on one device.
        let (whole, _, other) = step::<B>((own.clone(), velocity.clone(), words.clone()));
        let loss;
        (own, velocity, loss) = sharded.call((own, velocity, words))?;
        let [loss, other] = [loss, other].map(Tensor::into_scalar);
        if tells && (round % 50 == 0 || round == 299) {
            bar.suspend(|| println!("{round:>5} {loss:>22.5} {other:>8.5}"));
        }
        let apart =
            own.iter().zip(&whole).map(|(a, b)| (a.clone() - b.clone()).abs().max().into_scalar());
        let apart = apart.fold((loss - other).abs(), f32::max);
        assert!(apart < 1e-4, "step {round}: {apart}");
        losses.push(loss);
        bar.inc(1);
    }
    bar.finish_and_clear();
    assert!(losses[0] > 2.0 && losses[299] < 0.3, "{} to {}", losses[0], losses[299]);
    if let Some(processes) = processes {
        // The number of bytes sent is that of the plan.
        assert_eq!(processes.sent(), 300 * plan.sent_by(processes.rank()) as u64);
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        [] => train(None),
        ["--processes", count] => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?.to_string();
            let start = |rank: usize| {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--join", &address, &rank.to_string(), count]).spawn()
            };
            let others = (1..count.parse()?).map(start).collect::<Result<Vec<Child>, _>>()?;
            train(Some(&Rendezvous::of(count.parse()?).host(listener)?))?;
            for mut other in others {
                assert!(other.wait()?.success(), "all processes come to the same end");
            }
            println!("{count} processes came to the same end");
            Ok(())
        }
        ["--join", address, rank, count] => {
            train(Some(&Rendezvous::of(count.parse()?).join(address, rank.parse()?)?))
        }
        _ => Err("usage: sharded_transformer [--processes 2|4]".into()),
    }
}
