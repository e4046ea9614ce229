//! Times of operations on a GPU backend without fusion: `Wgpu`, or `Cuda` with the feature `cuda`.
//!
//! `cargo bench -p burn-t4a-gpu-tests --bench gpu [TEXT]` runs the rows whose names contain the text. With
//! `T4A_BENCH_SMALL=1` sizes are divided by 16, to try the program on software Vulkan. Each row has the time of its first
//! call, which compiles kernels, the median of later calls, and its rate.

use std::time::Instant;

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Distribution, Tensor};
use burn_t4a::ext::einsum::{LogSumExp, MaxPlus, einsum, semiring_einsum};
use burn_t4a::ext::linalg::{cholesky, eigh, qr, svd};
use burn_t4a::ext::scan::fused::{Running, cumulative, linear_recurrence};
use burn_t4a::ext::structured::{self, Direction, GradedTensor, Leg, Spec, Structured, U1};
use burn_t4a_gpu_tests::Card;

type Tape = Autodiff<Card>;
type Matrix = Tensor<Card, 2>;

fn sync() {
    Card::sync(&Default::default()).expect("the device computes");
}

fn seconds(mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    f();
    sync();
    start.elapsed().as_secs_f64()
}

/// Work of one call.
enum Work {
    /// Pairs of one ⊗ and one ⊕, or multiply-adds.
    Pairs(f64),
    /// Bytes read and written at least.
    Bytes(f64),
    /// Matrices of a batch.
    Matrices(f64),
    /// A single call, whose overhead is measured.
    Call,
}

struct Bench {
    pick: String,
}

impl Bench {
    fn row(&self, name: &str, work: Work, mut f: impl FnMut()) {
        if !name.contains(&self.pick) {
            return;
        }
        let first = seconds(&mut f);
        seconds(&mut f);
        let mut runs: Vec<f64> = (0..9).map(|_| seconds(&mut f)).collect();
        runs.sort_by(f64::total_cmp);
        let time = runs[runs.len() / 2];
        let (rate, unit) = match work {
            Work::Pairs(n) => (n / time / 1e12, "10¹² pairs/s"),
            Work::Bytes(n) => (n / time / 1e9, "GB/s"),
            Work::Matrices(n) => (n / time, "matrices/s"),
            Work::Call => (1.0 / time, "calls/s"),
        };
        println!("{name:<44} {:>9.1} {:>10.4} {rate:>12.3} {unit}", first * 1e3, time * 1e3);
    }
}

fn random<const D: usize>(shape: [usize; D]) -> Tensor<Card, D> {
    Tensor::random(shape, Distribution::Uniform(-1.0, 1.0), &Default::default())
}

/// Symmetric positive definite matrices.
fn positive(batch: usize, n: usize) -> Tensor<Card, 3> {
    let x = random([batch, n, n]);
    let eye = Matrix::eye(n, &Default::default()).unsqueeze_dim(0) * n as f32;
    x.clone().matmul(x.swap_dims(1, 2)) + eye
}

fn products(bench: &Bench, scale: usize) {
    for n in [1024, 4096].map(|n| n / scale) {
        let pairs = (n as f64).powi(3);
        let [a, b] = [random([n, n]), random([n, n])];
        let run = |a: &Matrix, b: &Matrix| {
            semiring_einsum::<MaxPlus, Card, 2>("ij,jk->ik", [a, b]).expect("a product");
        };
        bench.row(&format!("max-plus {n} f32"), Work::Pairs(pairs), || run(&a, &b));
        let [half_a, half_b] = [&a, &b].map(|x| x.clone().cast(DType::F16));
        bench.row(&format!("max-plus {n} f16"), Work::Pairs(pairs), || run(&half_a, &half_b));
        let [tape_a, tape_b] =
            [&a, &b].map(|x| Tensor::<Tape, 2>::from_inner(x.clone()).require_grad());
        bench.row(&format!("max-plus {n} f32 and gradient"), Work::Pairs(pairs), || {
            let y: Tensor<Tape, 2> =
                semiring_einsum::<MaxPlus, _, _>("ij,jk->ik", [&tape_a, &tape_b])
                    .expect("a product");
            y.sum().backward();
        });
        bench.row(&format!("log-sum-exp {n} f32"), Work::Pairs(pairs), || {
            semiring_einsum::<LogSumExp, Card, 2>("ij,jk->ik", [&a, &b]).expect("a product");
        });
        bench.row(&format!("einsum {n} f32"), Work::Pairs(pairs), || {
            einsum::<Card, 2>("ij,jk->ik", [&a, &b]).expect("a product");
        });
    }
    let x = random([4, 4]);
    bench.row("max-plus 4", Work::Call, || {
        semiring_einsum::<MaxPlus, Card, 2>("ij,jk->ik", [&x, &x]).expect("a product");
    });
}

fn scans(bench: &Bench, scale: usize) {
    for [n, width] in [[1000, 8192], [131_072, 16], [131_072, 1]].map(|[n, w]| [n / scale, w]) {
        let [a, b] = [random([n, width]), random([n, width])];
        let bytes = 4.0 * (n * width) as f64;
        bench.row(&format!("recurrence {n}×{width}"), Work::Bytes(3.0 * bytes), || {
            linear_recurrence(a.clone(), b.clone(), None, 0, false).expect("states");
        });
        let [tape_a, tape_b] =
            [&a, &b].map(|x| Tensor::<Tape, 2>::from_inner(x.clone()).require_grad());
        bench.row(
            &format!("recurrence {n}×{width} and gradient"),
            Work::Bytes(9.0 * bytes),
            || {
                let h = linear_recurrence(tape_a.clone(), tape_b.clone(), None, 0, false);
                h.expect("states").sum().backward();
            },
        );
        bench.row(&format!("cumulative sum {n}×{width}"), Work::Bytes(2.0 * bytes), || {
            cumulative(Running::Sum, a.clone(), 0, false).expect("sums");
        });
    }
}

fn factorisations(bench: &Bench, scale: usize) {
    let batch = 1000 / scale;
    let (spd, general) = (positive(batch, 32), random([batch, 32, 32]));
    let work = || Work::Matrices(batch as f64);
    bench.row(&format!("cholesky {batch}×32×32"), work(), || {
        cholesky(spd.clone()).expect("factors");
    });
    bench.row(&format!("qr {batch}×32×32"), work(), || {
        drop(qr(general.clone()).expect("factors"))
    });
    bench.row(&format!("eigh {batch}×32×32"), work(), || {
        drop(eigh(spd.clone()).expect("factors"))
    });
    bench.row(&format!("svd {batch}×32×32"), work(), || {
        drop(svd(general.clone()).expect("factors"));
    });
}

/// The contraction of a two-site state with an environment, as in DMRG of a spin chain.
fn graded(bench: &Bench, scale: usize) {
    let size = 1024 / scale;
    let bell = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map(|q: i32| {
        (U1(2 * q), (size as f64 * 0.3 * (-f64::from(q * q) / 4.0).exp()).ceil() as usize)
    });
    let bond = Leg::new(bell, Direction::Out).expect("sectors");
    let site = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out).expect("sectors");
    let of = |legs: &[&Leg<U1>], rows| {
        let legs = legs.iter().map(|&leg| leg.clone()).collect();
        let spec = Spec::new(legs, U1(0), rows).expect("a structure");
        let law = Distribution::Uniform(-1.0, 1.0);
        GradedTensor::<Card, U1>::random(&spec, law, &Default::default()).expect("a tensor")
    };
    let environment = of(&[&bond, &bond.dual()], 1);
    let state = of(&[&bond, &site, &site, &bond.dual()], 2);
    let states = bond.dim();
    bench.row(&format!("graded contraction, {states} states"), Work::Call, || {
        let y: GradedTensor<Card, U1> =
            structured::einsum("ca,astb->cstb", &[&environment, &state]).expect("a tensor");
        drop(y);
    });
}

fn main() {
    let pick = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let scale = if std::env::var_os("T4A_BENCH_SMALL").is_some() { 16 } else { 1 };
    let bench = Bench { pick };
    println!(
        "{:<44} {:>9} {:>10} {:>12}",
        Card::name(&Default::default()),
        "first ms",
        "ms",
        "rate"
    );
    products(&bench, scale);
    scans(&bench, scale);
    factorisations(&bench, scale);
    graded(&bench, scale);
}
