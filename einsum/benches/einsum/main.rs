//! Einsum instances: time with the given path and with the path of this crate, on one and on all threads, next to the
//! peer with the same path.
//!
//! `cargo bench -p t4a-einsum --bench einsum -- DIR` (or `T4A_EINSUM_DIR=DIR`) runs every JSON
//! file of a directory with the fields `format_string`, `shapes` and `paths.opt_flops.path`.
//! Without one, instances of the same families are generated. A second argument filters instances by a substring of
//! their name. Before timing, the results of both paths are compared; a peer whose result differs is marked as wrong,
//! with its relative error. `T4A_EINSUM_STEPS=1` prints the time of each step instead. The peer's threads follow
//! `RAYON_NUM_THREADS`.

mod instances;
mod peer;

use std::sync::Arc;
use std::time::Instant;

use instances::{Instance, instances};
use peer::{Expression, values};
use t4a_algebra::Standard;
use t4a_einsum::Plan;
use t4a_tensor::{Tensor, loops::parallel};

/// Median of the runs that fit into about a third of a second, in milliseconds.
fn time<R>(mut run: impl FnMut() -> R) -> f64 {
    let start = Instant::now();
    let mut runs = Vec::new();
    while runs.is_empty() || (start.elapsed().as_secs_f64() < 0.35 && runs.len() < 1000) {
        let begin = Instant::now();
        std::hint::black_box(run());
        runs.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    runs.sort_by(f64::total_cmp);
    runs[runs.len() / 2]
}

fn contract(plan: &Plan, operands: &[&Tensor<f64>]) -> Tensor<f64> {
    plan.contract::<Standard, f64>(operands).expect("a contraction")
}

/// Relative difference above which a result is wrong; rounding stays below it.
const WRONG: f64 = 1e-9;

/// Maximum difference relative to the largest element; infinite for NaN or different lengths.
fn distance(want: &[f64], got: &[f64]) -> f64 {
    let most = want.iter().fold(f64::MIN_POSITIVE, |m, x| m.max(x.abs()));
    let off = want.iter().zip(got).map(|(a, b)| (a - b).abs());
    if want.len() != got.len() || off.clone().any(f64::is_nan) {
        return f64::INFINITY;
    }
    off.fold(0.0, f64::max) / most
}

struct Row {
    name: String,
    data: Vec<Tensor<f64>>,
    given: Option<Arc<Plan>>,
    own: Arc<Plan>,
    planning: f64,
    peer: Expression,
    /// Milliseconds with all threads, then with one: given path, own path.
    times: Vec<[f64; 2]>,
    peer_time: f64,
    /// Relative error of the peer's result.
    peer_off: f64,
}

impl Row {
    fn new(Instance { name, einsum, shapes, path }: Instance) -> Self {
        let data: Vec<Tensor<f64>> = shapes
            .iter()
            .enumerate()
            .map(|(s, shape)| {
                // Scales the data so that sums over whole networks stay near 1.
                let scale = 2.0 / (shape.iter().product::<usize>() as f64).sqrt();
                let value = |i| (0.5 + ((i * 7919 + s * 31) % 101) as f64 / 101.0) * scale;
                Tensor::from_fn(shape, value).expect("memory")
            })
            .collect();
        let views: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let begin = Instant::now();
        let own = einsum.plan(&views, 8).expect("a plan");
        let planning = begin.elapsed().as_secs_f64() * 1e3;
        let given = path.map(|path| einsum.clone().path(path).plan(&views, 8).expect("a plan"));
        let peer = Expression::new(given.as_ref().unwrap_or(&own));
        let (times, peer_time, peer_off) = (Vec::new(), f64::NAN, 0.0);
        Self { name, data, given, own, planning, peer, times, peer_time, peer_off }
    }

    fn operands(&self) -> Vec<&Tensor<f64>> {
        self.data.iter().collect()
    }

    fn check(&mut self) {
        let operands = self.operands();
        let want = contract(&self.own, &operands).to_vec().expect("memory");
        if let Some(given) = &self.given {
            let got = contract(given, &operands).to_vec().expect("memory");
            let off = distance(&want, &got);
            assert!(off <= WRONG, "{}: the two paths differ by {off:e}", self.name);
        }
        self.peer_off = distance(&want, &values(&self.peer.run(&operands)));
    }

    fn time(&mut self) {
        let operands = self.operands();
        let of = |plan: &Arc<Plan>| time(|| contract(plan, &operands));
        let times = [self.given.as_ref().map_or(f64::NAN, of), of(&self.own)];
        self.times.push(times);
    }

    fn print(&self) {
        let [all, one] = [self.times[0], self.times[1]];
        let flops = |plan: &Arc<Plan>| plan.cost().flops.log10();
        let given_flops = self.given.as_ref().map_or(f64::NAN, flops);
        let best = if all[0].is_nan() { all[1] } else { all[0] };
        println!(
            "{:<50} {:>6.2} {:>9.3} {:>9.3} {:>6.2} {:>9.3} {:>9.3} {:>9.3} {:>6.2} {:>8.2}",
            self.name,
            given_flops,
            one[0],
            all[0],
            flops(&self.own),
            one[1],
            all[1],
            self.peer_time,
            self.peer_time / best,
            self.planning,
        );
        if self.peer_off > WRONG {
            println!("    the peer is wrong by {:.2e}", self.peer_off);
        }
    }

    /// Prints the most expensive steps with their times.
    fn print_steps(&self) {
        for (which, plan) in [("given", self.given.as_ref()), ("own", Some(&self.own))] {
            let Some(plan) = plan else { continue };
            println!("{} {which} {:?} sliced {:?}", self.name, plan.cost(), plan.sliced());
            let mut slots = self.data.clone();
            let mut rows = Vec::new();
            for (s, step) in plan.steps().expect("steps").iter().enumerate() {
                let operands: Vec<_> = step.slots.iter().map(|&slot| &slots[slot]).collect();
                let begin = Instant::now();
                let next = contract(&step.plan, &operands);
                let ms = begin.elapsed().as_secs_f64() * 1e3;
                rows.push((ms, s, step.plan.to_string(), step.plan.cost().flops));
                slots.push(next);
            }
            rows.sort_by(|a, b| b.0.total_cmp(&a.0));
            let total: f64 = rows.iter().map(|row| row.0).sum();
            println!("  {total:.3} ms in {} steps", rows.len());
            for (ms, s, text, flops) in rows.iter().take(12) {
                println!("  {ms:>9.3} ms {:>7.2} GFLOP/s  step {s:>3} {text}", 2e-6 * flops / ms);
            }
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let dir = args.first().cloned().or(std::env::var("T4A_EINSUM_DIR").ok());
    let named = |row: &Instance| args.get(1).is_none_or(|part| row.name.contains(part));
    let instances = instances(dir.as_deref().map(std::path::Path::new));
    let mut rows: Vec<Row> = instances.into_iter().filter(named).map(Row::new).collect();
    if std::env::var_os("T4A_EINSUM_STEPS").is_some() {
        return rows.iter().for_each(Row::print_steps);
    }
    let all = parallel::threads();
    println!("f64, milliseconds; one thread, then {all}; flops as log10 of multiply-adds");
    println!(
        "{:<50} {:>6} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9} {:>6} {:>8}",
        "instance", "flops", "given 1", "given", "flops", "own 1", "own", "peer", "ratio", "plan"
    );
    for row in &mut rows {
        parallel::set_threads(all);
        row.check();
        row.time();
        let operands = row.operands();
        row.peer_time = time(|| row.peer.run(&operands));
        parallel::set_threads(1);
        row.time();
        row.print();
    }
}
