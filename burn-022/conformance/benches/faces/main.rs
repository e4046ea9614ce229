//! The backend on Burn 0.22 against Burn's own Flex 0.22 and against the same engine on Burn 0.21:
//! `cargo bench -p burn-t4a-022-conformance --bench faces -- [--threads N] [filter]`.
//!
//! Every row is one function generic over `Backend`, compiled for each. Results are compared with Flex before
//! timing. Times are medians of interleaved samples, so that drift of the machine affects all equally. `flex/` is
//! the time of Flex divided by that of the engine on 0.22; `0.22/0.21` is the ratio of the engine on both versions.

use std::time::{Duration, Instant};

/// Burn 0.22.
#[path = "."]
mod later {
    pub(crate) use {burn_autodiff as autodiff, burn_backend as backend};

    #[path = "rows.rs"]
    pub(crate) mod rows;
}

/// Burn 0.21.
#[path = "."]
mod earlier {
    pub(crate) use {earlier_autodiff as autodiff, earlier_backend as backend};

    // The same rows over other traits.
    #[allow(clippy::duplicate_mod)]
    #[path = "rows.rs"]
    pub(crate) mod rows;
}

/// A measured operation; called with `true` it returns its result.
type Run = Box<dyn FnMut(bool) -> Option<Vec<f32>>>;

struct Row {
    name: String,
    /// Maximum difference from Flex, relative to the largest element.
    tolerance: f64,
    make: fn() -> Run,
}

/// Maximum difference relative to the largest element.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let pairs = a.iter().zip(b).map(|(&a, &b)| (f64::from(a), f64::from(b)));
    let (far, top) = pairs
        .fold((0.0f64, 0.0f64), |(far, top), (x, y)| (far.max((x - y).abs()), top.max(y.abs())));
    far / top.max(1e-30)
}

/// Number of calls per sample, so that a sample takes about 10 ms.
fn calls(run: &mut Run) -> usize {
    let begin = Instant::now();
    run(false);
    run(false);
    let once = begin.elapsed() / 2;
    (Duration::from_millis(10).as_nanos() / once.as_nanos().max(50)).clamp(1, 20_000) as usize
}

const SAMPLES: usize = 25;

fn main() {
    let mut filter = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--threads" => {
                let threads: usize = args.next().and_then(|n| n.parse().ok()).expect("--threads N");
                // SAFETY: no other thread has been started.
                unsafe { std::env::set_var("RAYON_NUM_THREADS", threads.to_string()) };
                t4a_tensor::loops::parallel::set_threads(threads);
            }
            "--bench" => {}
            _ => filter = Some(arg),
        }
    }
    println!("threads: {}; times in µs", t4a_tensor::loops::parallel::threads());
    println!(
        "{:<36} {:>10} {:>10} {:>10} {:>8} {:>10}",
        "", "t4a 0.22", "flex 0.22", "t4a 0.21", "flex/", "0.22/0.21"
    );
    let sides = [
        later::rows::rows::<burn_t4a::BurnT4a>(),
        later::rows::rows::<burn_flex::Flex>(),
        earlier::rows::rows::<earlier_t4a::BurnT4a>(),
    ];
    let (mut logs, mut count, mut wrong) = ([0.0f64; 2], 0, 0);
    for (i, row) in sides[0].iter().enumerate() {
        if filter.as_ref().is_some_and(|f| !row.name.contains(f)) {
            continue;
        }
        let mut runs: Vec<Run> = sides.iter().map(|side| (side[i].make)()).collect();
        let results: Vec<Vec<f32>> = runs.iter_mut().filter_map(|run| run(true)).collect();
        let off = distance(&results[0], &results[1]).max(distance(&results[2], &results[1]));
        if off.is_nan() || off > row.tolerance {
            println!("{:<36} WRONG: {off:e} away from Flex", row.name);
            wrong += 1;
            continue;
        }
        let calls: Vec<usize> = runs.iter_mut().map(calls).collect();
        let mut samples: [Vec<f64>; 3] = Default::default();
        for sample in 0..SAMPLES {
            for side in 0..3 {
                // Alternates the order, so that no backend always runs with the caches of the same predecessor.
                let side = (side + sample) % 3;
                let begin = Instant::now();
                for _ in 0..calls[side] {
                    runs[side](false);
                }
                samples[side].push(begin.elapsed().as_secs_f64() * 1e6 / calls[side] as f64);
            }
        }
        let [ours, flex, earlier] = samples.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        let ratios = [flex / ours, ours / earlier];
        for (log, ratio) in logs.iter_mut().zip(ratios) {
            *log += ratio.ln();
        }
        count += 1;
        let name = &row.name;
        let [to_flex, to_earlier] = ratios;
        println!(
            "{name:<36} {ours:>10.2} {flex:>10.2} {earlier:>10.2} {to_flex:>8.2} {to_earlier:>10.3}"
        );
    }
    let [flex, earlier] = logs.map(|log| (log / f64::from(count.max(1))).exp());
    println!(
        "{:<36} {:>10} {:>10} {:>10} {flex:>8.2} {earlier:>10.3}",
        "geometric mean", "", "", ""
    );
    if wrong > 0 {
        println!("{wrong} rows are wrong");
        std::process::exit(1);
    }
}
