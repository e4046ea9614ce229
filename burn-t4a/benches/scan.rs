//! Scans whose body is made of Burn operations: steps per second on BurnT4a and on Flex, gradients under several
//! memory policies, the same filter in one kernel, and memory of a gradient against the number of steps.
//!
//! `cargo bench -p burn-t4a --bench scan [-- filter]`; `T4A_NUM_THREADS=1` for one thread.

use std::alloc::{GlobalAlloc, Layout, System as Heap};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use burn_autodiff::Autodiff;
use burn_backend::{AutodiffBackend, DType};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::fused::{System, kalman_filter};
use burn_t4a::ext::scan::{Memory, Options, Policy, ScanBackend, scan};
use burn_tensor::{Tensor, TensorData};

/// Allocator that counts bytes in use and their maximum.
struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls are forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(LIVE.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller guarantees the layout.
        unsafe { Heap.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: `at` was returned by `alloc` with this layout.
        unsafe { Heap.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn of<B: ScanBackend, const D: usize>(data: Vec<f64>, shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(data, shape), (&Default::default(), DType::F64))
}

/// Observations of a point with position and velocity.
fn observations(n: usize) -> Vec<f64> {
    (0..n).map(|t| (t as f64 * 0.1).sin() + 0.1 * (t as f64 * 1.7).cos()).collect()
}

type State<B> = (Tensor<B, 2>, Tensor<B, 2>);
type Constants<B> = (Tensor<B, 2>, Tensor<B, 2>, Tensor<B, 2>, Tensor<B, 2>);

fn constants<B: ScanBackend>() -> Constants<B> {
    (
        of(vec![1.0, 0.1, 0.0, 1.0], [2, 2]),
        of(vec![1e-3, 0.0, 0.0, 1e-2], [2, 2]),
        of(vec![1.0, 0.0], [1, 2]),
        of(vec![0.1], [1, 1]),
    )
}

/// Kalman filter with two states as a scan body: 17 operations of Burn.
fn body<B: ScanBackend>(
    (f, q, h, r): Constants<B>,
    (x, p): State<B>,
    y: Tensor<B, 1>,
) -> (State<B>, Tensor<B, 2>) {
    let x = f.clone().matmul(x);
    let p = f.clone().matmul(p).matmul(f.transpose()) + q;
    let g = p.clone().matmul(h.clone().transpose());
    let gain = g.clone() / (h.clone().matmul(g.clone()) + r);
    let v = y.reshape([1, 1]) - h.matmul(x.clone());
    let x = x + gain.clone().matmul(v);
    ((x.clone(), p - gain.matmul(g.transpose())), x)
}

fn filter<B: ScanBackend>(q: Tensor<B, 2>, ys: Tensor<B, 1>, memory: Memory) -> Tensor<B, 3> {
    let (f, _, h, r) = constants();
    let init = (of(vec![0.0; 2], [2, 1]), of(vec![1.0, 0.0, 0.0, 1.0], [2, 2]));
    let options = Options::default().memory(memory);
    let result = scan(body::<B>, (f, q, h, r), init, ys, &options);
    let (_, means): (State<B>, Tensor<B, 3>) = result.expect("operands that fit");
    means
}

/// The same filter in one kernel.
fn fused<B: Operations + ScanBackend>(q: Tensor<B, 2>, ys: Tensor<B, 1>) -> Tensor<B, 3> {
    let (transition, _, observation, observation_noise) = constants();
    let n = ys.dims()[0];
    let system = System { transition, process_noise: q, observation, observation_noise };
    let unit = of(vec![1.0, 0.0, 0.0, 1.0], [2, 2]);
    let result = kalman_filter(system, ys.reshape([1, n, 1]), of(vec![0.0; 2], [2]), unit);
    result.expect("operands that fit").0
}

struct Bench(Option<String>);

impl Bench {
    /// Prints the minimum time of several runs.
    fn row(&self, name: &str, steps: usize, mut f: impl FnMut()) {
        if self.0.as_ref().is_some_and(|filter| !name.contains(filter)) {
            return;
        }
        let (begin, mut best) = (Instant::now(), f64::INFINITY);
        while begin.elapsed().as_secs_f64() < 1.5 || best == f64::INFINITY {
            let start = Instant::now();
            f();
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{name:<44} {:>10.1} µs {:>12.0} steps/s", best * 1e6, steps as f64 / best);
    }

    fn forward<B: Operations + ScanBackend>(&self, backend: &str, n: usize) {
        let (_, q, ..) = constants::<B>();
        let ys = of::<B, 1>(observations(n), [n]);
        self.row(&format!("{backend} body"), n, || {
            drop(black_box(filter(q.clone(), ys.clone(), Memory::default())));
        });
        self.row(&format!("{backend} one kernel"), n, || {
            drop(black_box(fused(q.clone(), ys.clone())));
        });
    }

    /// Gradient of the sum of squares of all means with respect to Q and the observations.
    fn gradient<B: AutodiffBackend + Operations + ScanBackend>(&self, backend: &str, n: usize) {
        let (_, q, ..) = constants::<B>();
        let q = q.require_grad();
        let ys = of::<B, 1>(observations(n), [n]).require_grad();
        let policies = [
            ("everything kept", Memory::StoreAll),
            ("Sqrt", Memory::default()),
            ("Revolve(10)", Memory::Bounded(Policy::Revolve(10))),
        ];
        for (name, memory) in policies {
            self.row(&format!("{backend} body, gradient, {name}"), n, || {
                let loss = filter(q.clone(), ys.clone(), memory).powi_scalar(2).sum();
                drop(black_box(loss.backward()));
            });
        }
        self.row(&format!("{backend} one kernel, gradient"), n, || {
            let loss = fused(q.clone(), ys.clone()).powi_scalar(2).sum();
            drop(black_box(loss.backward()));
        });
    }
}

/// Maximum number of bytes in use during the gradient of `c ← a c + x`, with 128 elements per carry and one x per
/// step.
fn memory(n: usize, memory: Memory) -> usize {
    type AD = Autodiff<BurnT4a>;
    // Cached free blocks would be counted.
    t4a_tensor::pool::set_cache_limit(0);
    let a = of::<AD, 1>(vec![0.999; 128], [128]).require_grad();
    let xs = of::<AD, 1>(observations(n), [n]);
    let before = LIVE.load(Relaxed);
    MOST.store(before, Relaxed);
    let step = |a: Tensor<AD, 1>, c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c * a + x, ());
    let options = Options::default().memory(memory);
    let result = scan(step, a.clone(), of::<AD, 1>(vec![0.0; 128], [128]), xs, &options);
    let (last, ()): (Tensor<AD, 1>, ()) = result.expect("operands that fit");
    drop(last.sum().backward());
    MOST.load(Relaxed) - before
}

const POLICIES: [(&str, Memory); 3] = [
    ("everything", Memory::StoreAll),
    ("Sqrt", Memory::Bounded(Policy::Sqrt)),
    ("Revolve(20)", Memory::Bounded(Policy::Revolve(20))),
];

/// [`memory`] in KiB, measured in a separate process: Burn's tables never shrink, and every span holds a copy of
/// them.
fn memory_apart(n: usize, policy: &str) -> String {
    let program = std::env::current_exe().expect("a path");
    let output =
        std::process::Command::new(program).args(["measure", &n.to_string(), policy]).output();
    String::from_utf8(output.expect("it runs").stdout).expect("a number").trim().to_owned()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [measure, n, policy] = &args[..]
        && measure == "measure"
    {
        let known = POLICIES.iter().find(|(name, _)| name == policy).expect("a policy");
        println!("{}", memory(n.parse().expect("a number"), known.1) / 1024);
        return;
    }
    let filter = args.into_iter().find(|arg| !arg.starts_with("--"));
    println!("{} threads; Kalman filter of 2 states, f64", t4a_algebra::parallel::threads());
    let bench = Bench(filter.clone());
    bench.forward::<BurnT4a>("BurnT4a", 10_000);
    bench.forward::<Flex>("Flex", 10_000);
    bench.gradient::<Autodiff<BurnT4a>>("BurnT4a", 2000);
    bench.gradient::<Autodiff<Flex>>("Flex", 2000);
    if filter.is_some_and(|filter| !"memory".contains(&filter)) {
        return;
    }
    // Burn's records of the steps that Revolve repeats are freed only when the surrounding pass ends.
    println!("\nmemory of a gradient in KiB, Burn's records included; a carry has 1");
    println!("{:>8} {:>12} {:>12} {:>12}", "steps", POLICIES[0].0, POLICIES[1].0, POLICIES[2].0);
    for n in [100, 1000, 10_000, 100_000] {
        let [all, sqrt, revolve] = POLICIES.map(|(name, memory)| {
            let large = n > 10_000 && matches!(memory, Memory::StoreAll);
            if large { "–".into() } else { memory_apart(n, name) }
        });
        println!("{n:>8} {all:>12} {sqrt:>12} {revolve:>12}");
    }
}
