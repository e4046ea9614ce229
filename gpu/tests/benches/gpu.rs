//! Times of operations on a GPU backend without fusion: `Wgpu`, or `Cuda` with the feature `cuda`.
//!
//! `cargo bench -p burn-t4a-gpu-tests --bench gpu [TEXT]` runs the rows whose names contain the text; those with `tile`
//! only if it does. With `T4A_BENCH_SMALL=1` sizes are divided by 16, to try the program on software Vulkan. Each row
//! has the time of its first call, which compiles kernels, the median of later calls, and its rate. Calls of less than
//! 5 ms are repeated without waiting for the device in between. `peers.py` times the same work in PyTorch and JAX.

use std::time::Instant;

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Distribution, Tensor};
use burn_t4a::ext::Complex;
use burn_t4a::ext::einsum::{LogSumExp, MaxPlus, complex_einsum, einsum, semiring_einsum};
use burn_t4a::ext::linalg::{cholesky, eigh, lu, qr, solve, svd};
use burn_t4a::ext::operation::{BlockCopy, BlockProducts, BlockSum, BlockTerm, FlatMatrix};
use burn_t4a::ext::scan::fused::{Running, cumulative, linear_recurrence};
use burn_t4a::ext::structured::{self, Direction, GradedTensor, Leg, Spec, Structured, U1};
use burn_t4a_gpu_tests::{Card, Runtime};
use cubecl::prelude::ComputeClient;
use t4a_cube::{
    CopyTable, Operand, ProductTable, Semiring, Tile, block_copies, block_products,
    complex_product, product,
};

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
        let second = seconds(&mut f);
        let repeats = (5e-3 / second).clamp(1.0, 100.0) as usize;
        let mut run = || seconds(|| (0..repeats).for_each(|_| f())) / repeats as f64;
        let mut runs: Vec<f64> = (0..7).map(|_| run()).collect();
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
    einsum::<Card, 3>("bij,bkj->bik", [&x, &x]).expect("a product") + eye
}

fn operand<const D: usize>(x: &Tensor<Card, D>) -> Operand {
    let x = x.clone().into_primitive().tensor();
    let (shape, strides) = (x.meta.shape().to_vec(), x.meta.strides().to_vec());
    Operand { handle: x.handle, shape, strides, dtype: x.dtype.into() }
}

fn client() -> ComputeClient<Runtime> {
    random([1]).into_primitive().tensor().client
}

/// Products by each tile.
fn tiles(bench: &Bench, scale: usize) {
    if !bench.pick.contains("tile") {
        return;
    }
    let client = client();
    for n in [1024, 4096].map(|n| n / scale) {
        let [a, b] = [random([1, n, n]), random([1, n, n])];
        let others = [([64, 128, 16], [4, 8]), ([128, 64, 16], [8, 4])];
        let others = others.map(|(sizes, unit)| Tile { sizes, unit });
        for tile in [Tile::HUGE, Tile::WIDE, Tile::LARGE].into_iter().chain(others) {
            for (semiring, name) in
                [(Semiring::MaxPlus, "max-plus"), (Semiring::Standard, "sum-product")]
            {
                for places in [false, true] {
                    if places && semiring == Semiring::Standard {
                        continue;
                    }
                    let ([bm, bn, bk], [tm, tn]) = (tile.sizes, tile.unit);
                    let kind = if places { " indices" } else { "" };
                    let name = format!("tile {bm}×{bn}×{bk} {tm}×{tn} {name} {n}{kind}");
                    bench.row(&name, Work::Pairs((n as f64).powi(3)), || {
                        let operands = [operand(&a), operand(&b)];
                        product(&client, semiring, operands, places, Some(tile))
                            .expect("a product");
                    });
                }
            }
        }
        let wide = Tile { sizes: [64, 128, 32], unit: [4, 8] };
        for tile in [Tile::COMPLEX_WIDE, wide, Tile::LARGE, Tile::COMPLEX_LARGE] {
            let ([bm, bn, bk], [tm, tn]) = (tile.sizes, tile.unit);
            let name = format!("tile {bm}×{bn}×{bk} {tm}×{tn} complex {n}");
            bench.row(&name, Work::Pairs(4.0 * (n as f64).powi(3)), || {
                let operands = [&a, &b].map(|x| [Some(operand(x)), Some(operand(&a))]);
                complex_product(&client, operands, [false; 2], Some(tile)).expect("a product");
            });
        }
    }
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
        let [tape_a, tape_b] =
            [&a, &b].map(|x| Tensor::<Tape, 2>::from_inner(x.clone()).require_grad());
        bench.row(&format!("log-sum-exp {n} f32 and gradient"), Work::Pairs(pairs), || {
            let y: Tensor<Tape, 2> =
                semiring_einsum::<LogSumExp, _, _>("ij,jk->ik", [&tape_a, &tape_b])
                    .expect("a product");
            y.sum().backward();
        });
        let client = client();
        bench.row(&format!("max-plus {n} f32, indices"), Work::Pairs(pairs), || {
            let operands = [&a, &b].map(|x| operand(&x.clone().unsqueeze::<3>()));
            product(&client, Semiring::MaxPlus, operands, true, None).expect("a product");
        });
        bench.row(&format!("einsum {n} f32"), Work::Pairs(pairs), || {
            einsum::<Card, 2>("ij,jk->ik", [&a, &b]).expect("a product");
        });
        let [z, w] = [[&a, &b], [&b, &a]]
            .map(|[re, im]| Complex::new(re.clone(), im.clone()).expect("parts of one shape"));
        // A complex product is four real ones.
        bench.row(&format!("complex einsum {n} f32"), Work::Pairs(4.0 * pairs), || {
            complex_einsum::<Card, 2>("ij,jk->ik", [&z, &w]).expect("a product");
        });
    }
    let x = random([4, 4]);
    bench.row("max-plus 4", Work::Call, || {
        semiring_einsum::<MaxPlus, Card, 2>("ij,jk->ik", [&x, &x]).expect("a product");
    });
}

fn scans(bench: &Bench, scale: usize) {
    for [n, width] in [[1000, 256], [1000, 8192], [131_072, 16], [131_072, 1], [100_000, 64]]
        .map(|[n, w]| [n / scale, w])
    {
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
        for (of, name) in
            [(Running::Sum, "sum"), (Running::Max, "max"), (Running::LogSumExp, "log-sum-exp")]
        {
            let name = format!("cumulative {name} {n}×{width}");
            bench.row(&name, Work::Bytes(2.0 * bytes), || {
                cumulative(of, a.clone(), 0, false).expect("numbers");
            });
        }
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

/// Factorisations of single matrices, by cuSOLVER on CUDA; elsewhere the engine, here not optimised, takes minutes.
fn large(bench: &Bench, scale: usize) {
    for n in [256, 1024].map(|n| n / scale) {
        let (spd, general) = (positive(1, n), random([1, n, n]));
        let work = || Work::Matrices(1.0);
        bench.row(&format!("cholesky {n}×{n}"), work(), || {
            cholesky(spd.clone()).expect("factors");
        });
        bench.row(&format!("qr {n}×{n}"), work(), || drop(qr(general.clone()).expect("factors")));
        bench.row(&format!("lu {n}×{n}"), work(), || drop(lu(general.clone()).expect("factors")));
        bench.row(&format!("solve {n}×{n}"), work(), || {
            solve(spd.clone(), general.clone()).expect("a solution");
        });
        bench.row(&format!("eigh {n}×{n}"), work(), || drop(eigh(spd.clone()).expect("factors")));
        bench
            .row(&format!("svd {n}×{n}"), work(), || drop(svd(general.clone()).expect("factors")));
    }
}

/// Products of blocks of random sizes, and a transposed copy.
fn blocks(bench: &Bench, scale: usize) {
    let client = client();
    let mut state = 1u64;
    let mut size = |least: usize, most: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        least + (state >> 33) as usize % (most - least + 1)
    };
    for (count, least, most) in [(500, 8, 96), (2000, 4, 32), (64, 128, 512)] {
        let (mut lens, mut sums, mut pairs) = ([0; 3], Vec::new(), 0.0);
        for _ in 0..count / scale {
            let [m, k, n] = [size(least, most), size(least, most), size(least, most)];
            let [a, b, c] = [[0, k], [1, n], [2, n]]
                .map(|[i, columns]| FlatMatrix { offset: lens[i], strides: [columns, 1] });
            sums.push(BlockSum {
                to: c,
                sizes: [m, n],
                terms: vec![BlockTerm { factors: [a, b], steps: k }],
            });
            lens = [lens[0] + m * k, lens[1] + k * n, lens[2] + m * n];
            pairs += (m * k * n) as f64;
        }
        let [a, b, c] = lens.map(|len| random([len]));
        let of = BlockProducts { len: lens[2], sums, tables: Default::default() };
        let table = ProductTable::new(&client, &of).expect("a table");
        let name = format!("{} blocks of {least} to {most}", count / scale);
        bench.row(&name, Work::Pairs(pairs), || {
            block_products(&client, [operand(&a), operand(&b)], &table, operand(&c))
                .expect("products");
        });
    }
    let n = 8192 / scale;
    let copy = BlockCopy { offsets: [0, 0], negative: false, axes: vec![[n, 1, n], [n, n, 1]] };
    let table = CopyTable::new(&client, &[copy]).expect("a table");
    let [x, y] = [random([n * n]), random([n * n])];
    bench.row(&format!("transposed copy {n}×{n}"), Work::Bytes(8.0 * (n * n) as f64), || {
        block_copies(&client, operand(&x), &table, operand(&y)).expect("copies");
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
    let [environment, state] = [&environment, &state].map(GradedTensor::times_i);
    bench.row(&format!("complex graded contraction, {states} states"), Work::Call, || {
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
    tiles(&bench, scale);
    products(&bench, scale);
    scans(&bench, scale);
    factorisations(&bench, scale);
    blocks(&bench, scale);
    graded(&bench, scale);
    large(&bench, scale);
}
