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
//! `--list` prints the names of the rows, `--serve` measures rows on request (`benches/peers/table.py`), `--alone` runs
//! BurnT4a only, for a profiler.

mod beyond;
mod layers;
mod rows;
mod serve;
mod structured;
mod tensors;
mod training;

use std::hint::black_box;
use std::time::{Duration, Instant};

use burn::backend::Autodiff;
use burn::tensor::TensorData;
use burn::tensor::backend::AutodiffBackend;

use rows::{M, Row, Run, floats};
use training::{Encoder, fused_encoder, plain_encoder, transformer};

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

fn all_rows() -> Vec<Row> {
    let mut rows = Vec::new();
    let groups: [fn(&mut Vec<Row>); 13] = [
        tensors::elementwise,
        tensors::reductions,
        tensors::movement,
        tensors::random,
        layers::products,
        layers::modules,
        layers::derivatives,
        training::training,
        beyond::factorisations,
        beyond::chains,
        beyond::networks,
        beyond::tropical,
        structured::graded,
    ];
    groups.into_iter().for_each(|group| group(&mut rows));
    rows
}

fn main() {
    let mut train_on = None;
    let (mut filter, mut alone, mut mode) = (None, false, None);
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
            "--list" | "--serve" => mode = Some(arg),
            "--bench" => {}
            _ => filter = Some(arg),
        }
    }
    if let Some(backend) = train_on {
        return train(&backend);
    }
    let rows = all_rows();
    match mode.as_deref() {
        Some("--list") => return rows.iter().for_each(|row| println!("{}", row.name)),
        Some(_) => return serve::serve(&rows),
        None => {}
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
            let Some(mut run) = row.make[0].as_ref().map(|make| make()) else { continue };
            let (begin, mut calls) = (Instant::now(), 0);
            while begin.elapsed() < Duration::from_secs(2) {
                run(false);
                calls += 1;
            }
            println!("{:<34} {:>10.2}", row.name, 2e6 / f64::from(calls));
            continue;
        }
        let makes = row.make.iter().map(Option::as_ref).chain([row.fused.as_ref()]);
        let mut runs: Vec<Option<Run>> = makes.map(|make| make.map(|make| make())).collect();
        let results: Vec<Option<TensorData>> =
            runs.iter_mut().map(|run| run.as_mut().and_then(|run| run(true))).collect();
        let ours = [&results[0], &results[3]].into_iter().flatten();
        let peer = results[1].as_ref();
        let off = ours.filter_map(|ours| peer.map(|peer| distance(ours, peer))).fold(0.0, f64::max);
        if off.is_nan() || off > row.tolerance {
            println!("{:<34} WRONG: {off:e} away from Flex", row.name);
            wrong += 1;
            continue;
        }
        let calls: Vec<usize> = runs.iter_mut().map(|run| run.as_mut().map_or(0, calls)).collect();
        let mut samples: [Vec<f64>; 5] = Default::default();
        for _ in 0..7 {
            for (i, run) in runs.iter_mut().enumerate() {
                let Some(run) = run else { continue };
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
        if flex.is_finite() && nd.is_finite() {
            logs[0] += (flex / t4a).ln();
            logs[1] += (nd / t4a).ln();
            count += 1;
        }
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
