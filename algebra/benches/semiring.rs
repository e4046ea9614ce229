//! Tropical matrix products next to `tropical-gemm`, with and without argmax, on one thread and on all, and the
//! fraction of the peak rate of the vector units: additions (as multiply-adds with a factor of 1) and maxima on
//! registers, measured in the same run.
//!
//! `cargo bench --bench semiring [filter] [largest n, 1024]`. Every row is checked against the peer, and the peer
//! against the triple loop at the smallest size, before it is timed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use t4a_algebra::gemm::{MatMut, MatRef, Parallelism, Product};
use t4a_algebra::simd::{Isa, Loop, dispatch};
use t4a_algebra::{
    LogSumExp, MaxPlus, MinPlus, Numeric, Real, Selective, Semiring, Standard, parallel,
};
use tropical_gemm::simd::KernelDispatch;
use tropical_gemm::{
    TropicalMaxPlus, TropicalMinPlus, TropicalWithArgmax, tropical_matmul,
    tropical_matmul_with_argmax,
};

/// Number of independent dependency chains in the measurement of the peak rate.
const CHAINS: usize = 12;

/// `x ← max(one·x + a, b)` on registers only.
struct Limit<T, const LANES: usize> {
    steps: usize,
    x: [[T; LANES]; CHAINS],
    one: T,
    a: [T; LANES],
    b: [T; LANES],
}

impl<T: Real, const LANES: usize> Loop for Limit<T, LANES> {
    type Output = [[T; LANES]; CHAINS];
    #[inline(always)]
    fn run(self) -> Self::Output {
        let Limit { steps, x, one, a, b } = self;
        // Chains as named variables: arrays in a loop are not kept in registers.
        let [
            mut x0,
            mut x1,
            mut x2,
            mut x3,
            mut x4,
            mut x5,
            mut x6,
            mut x7,
            mut x8,
            mut x9,
            mut x10,
            mut x11,
        ] = x;
        macro_rules! step {
            ($($x:ident)*) => {$(
                for l in 0..LANES {
                    let sum = Numeric::mul_add($x[l], one, a[l]);
                    $x[l] = if sum > b[l] { sum } else { b[l] };
                }
            )*};
        }
        for _ in 0..steps {
            step!(x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11);
        }
        [x0, x1, x2, x3, x4, x5, x6, x7, x8, x9, x10, x11]
    }
}

/// Peak rate of additions with maxima, per second and thread.
fn limit<T: Real>() -> f64 {
    fn of<T: Real, const LANES: usize>() -> f64 {
        let steps = 200_000;
        let (a, b) = (black_box([T::from_f64(-1.0); LANES]), black_box([T::ONE; LANES]));
        let one = black_box(T::ONE);
        let x = black_box([[T::from_f64(5.0); LANES]; CHAINS]);
        let seconds = time(|| {
            black_box(dispatch(Limit { steps, x, one, a, b }));
        });
        (steps * CHAINS * LANES) as f64 / seconds
    }
    match Isa::detect().vector_bytes() / size_of::<T>() {
        2 => of::<T, 2>(),
        4 => of::<T, 4>(),
        8 => of::<T, 8>(),
        _ => of::<T, 16>(),
    }
}

/// Best of several runs, in seconds; at least three runs and a quarter of a second in total.
fn time<R>(mut run: impl FnMut() -> R) -> f64 {
    let (mut best, mut spent, mut runs) = (f64::INFINITY, Duration::ZERO, 0);
    while runs < 3 || (spent < Duration::from_millis(250) && runs < 2000) {
        let start = Instant::now();
        black_box(run());
        let once = start.elapsed();
        spent += once;
        runs += 1;
        best = best.min(once.as_secs_f64());
    }
    best
}

/// Distinct numbers, so that the argmax is unique.
fn operand<T: Real>(len: usize, seed: u64) -> Vec<T> {
    let mut x = seed;
    let mut next = || {
        x = x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        T::from_f64((x >> 33) as f64 / (1u64 << 31) as f64 * 100.0)
    };
    (0..len).map(|_| next()).collect()
}

fn product<'a, T: Real>(a: &'a [T], b: &'a [T], c: &'a mut [T], n: usize) -> Product<'a, T> {
    let (a, b) = (MatRef::row_major(a, n, n), MatRef::row_major(b, n, n));
    Product::new(a.unwrap(), b.unwrap(), MatMut::row_major(c, n, n).unwrap()).unwrap()
}

struct Bench {
    filters: Vec<String>,
    pools: [rayon::ThreadPool; 2],
    largest: usize,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|f| name.contains(f.as_str()))
    }

    /// One table: sizes by threads; this crate against the peer's values and argmax.
    fn table<S, T, P>(&self, name: &str)
    where
        S: Selective<T>,
        T: Real,
        P: TropicalWithArgmax<Scalar = T, Index = u32> + KernelDispatch,
    {
        if !self.wants(name) {
            return;
        }
        let limit = limit::<T>();
        println!("\n{name}: limit {:.1} G add+max/s per thread", limit / 1e9);
        println!(
            "{:>6} {:>7} {:>10} {:>10} {:>6} {:>8} {:>12} {:>10} {:>6} {:>8}",
            "n",
            "threads",
            "ours ms",
            "peer ms",
            "ratio",
            "of limit",
            "winners ms",
            "peer ms",
            "ratio",
            "of limit"
        );
        for n in [64, 128, 256, 512, 1024, 2048].into_iter().filter(|&n| n <= self.largest) {
            let (a, b) = (operand::<T>(n * n, 1), operand::<T>(n * n, 2));
            let (mut c, mut arg) = (vec![T::ZERO; n * n], vec![0u32; n * n]);
            for pool in &self.pools {
                let threads = pool.current_num_threads();
                // The thread pool is the peer's.
                parallel::set_threads(threads);
                let parallelism =
                    if threads == 1 { Parallelism::Seq } else { Parallelism::Threads(0) };
                let row = || {
                    let mut values =
                        || product(&a, &b, &mut c, n).parallelism(parallelism).run::<S>();
                    values();
                    let ours = time(values);
                    let want = tropical_matmul::<P>(&a, n, n, &b, n);
                    let equal = want.iter().zip(&c).all(|(want, c)| want.value() == *c);
                    assert!(equal, "{name} {n}: values differ from the peer's");
                    let theirs = time(|| {
                        black_box(tropical_matmul::<P>(&a, n, n, &b, n));
                    });
                    let mut winners = || {
                        product(&a, &b, &mut c, n)
                            .parallelism(parallelism)
                            .argmax(MatMut::row_major(&mut arg, n, n).unwrap(), 0)
                            .unwrap()
                            .run_argmax::<S>()
                    };
                    let ours_winners = time(&mut winners);
                    let want = tropical_matmul_with_argmax::<P>(&a, n, n, &b, n);
                    let equal = want.values.iter().zip(&c).all(|(want, c)| want.value() == *c);
                    assert!(equal && arg == want.argmax, "{name} {n}: winners differ");
                    let theirs_winners = time(|| {
                        black_box(tropical_matmul_with_argmax::<P>(&a, n, n, &b, n));
                    });
                    if n == 64 {
                        for (at, &got) in c.iter().enumerate() {
                            let term = |k| S::mul(a[at / n * n + k], b[k * n + at % n]);
                            let sum = (0..n).fold(S::ZERO, |sum, k| S::add(sum, term(k)));
                            assert!(got == sum && term(arg[at] as usize) == sum);
                        }
                    }
                    let part = |s: f64| 100.0 * (n * n * n) as f64 / s / (limit * threads as f64);
                    println!(
                        "{n:>6} {threads:>7} {:>10.3} {:>10.3} {:>6.2} {:>7.0}% {:>12.3} {:>10.3} {:>6.2} {:>7.0}%",
                        ours * 1e3,
                        theirs * 1e3,
                        theirs / ours,
                        part(ours),
                        ours_winners * 1e3,
                        theirs_winners * 1e3,
                        theirs_winners / ours_winners,
                        part(ours_winners),
                    );
                };
                pool.install(row);
            }
        }
    }

    /// Semirings without a peer: time against (max, +) or (+, ×) of the same size.
    fn others(&self) {
        if !self.wants("others") {
            return;
        }
        println!("\nothers, one thread, ms");
        println!(
            "{:>6} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
            "n", "max f32", "max i32", "max i8", "lse f32", "lse f64", "(+,×) f64"
        );
        for n in [16, 64, 256, 1024].into_iter().filter(|&n| n <= self.largest) {
            fn of<S: Semiring<T>, T: Real>(n: usize) -> f64 {
                let (a, b) = (operand::<T>(n * n, 1), operand::<T>(n * n, 2));
                let small = |x: Vec<T>| -> Vec<T> {
                    x.into_iter().map(|x| T::from_f64(x.to_f64() / 10.0)).collect()
                };
                let (a, b, mut c) = (small(a), small(b), vec![T::ZERO; n * n]);
                1e3 * time(|| product(&a, &b, &mut c, n).run::<S>())
            }
            println!(
                "{n:>6} {:>10.4} {:>10.4} {:>10.4} {:>10.4} {:>10.4} {:>10.4}",
                of::<MaxPlus, f32>(n),
                of::<MaxPlus, i32>(n),
                of::<MaxPlus, i8>(n),
                of::<LogSumExp, f32>(n),
                of::<LogSumExp, f64>(n),
                of::<Standard, f64>(n),
            );
        }
    }
}

fn main() {
    let pool = |n| rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
    let arguments = || std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let bench = Bench {
        filters: arguments().filter(|a| a.parse::<usize>().is_err()).collect(),
        pools: [pool(1), pool(0)],
        largest: arguments().find_map(|a| a.parse().ok()).unwrap_or(1024),
    };
    println!("{:?}, {} threads", Isa::detect(), bench.pools[1].current_num_threads());
    bench.table::<MaxPlus, f32, TropicalMaxPlus<f32>>("max-plus f32");
    bench.table::<MaxPlus, f64, TropicalMaxPlus<f64>>("max-plus f64");
    bench.table::<MinPlus, f32, TropicalMinPlus<f32>>("min-plus f32");
    bench.table::<MinPlus, f64, TropicalMinPlus<f64>>("min-plus f64");
    bench.others();
}
