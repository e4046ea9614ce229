//! Scans and their derivatives: elements or steps per second, next to a plain loop over slices.
//!
//! `cargo bench -p t4a-scan [-- filter]`; `T4A_NUM_THREADS=1` for one thread. Each row is the best of many runs. `copy`
//! is a copy of the same shape.

use std::hint::black_box;
use std::time::Instant;

use t4a_algebra::parallel;
use t4a_diff::{Array, Eager, Kept, Operation, Reverse, Value, check};
use t4a_scan::{
    AssociativeScan, Cell, Cumulative, FloatMonoid, KalmanFilter, LinearRecurrence, LogPartition,
    MatrixRecurrence, Recurrent, Running,
};
use t4a_tensor::{AnyTensor, DType};

struct Bench {
    filter: Option<String>,
}

impl Bench {
    /// Best time of several runs, in seconds.
    fn time(mut f: impl FnMut()) -> f64 {
        let start = Instant::now();
        let (mut best, mut runs) = (f64::INFINITY, 0);
        while runs < 5 || (start.elapsed().as_secs_f64() < 0.3 && runs < 10_000) {
            let start = Instant::now();
            f();
            best = best.min(start.elapsed().as_secs_f64());
            runs += 1;
        }
        best
    }

    fn row(&self, name: &str, count: usize, f: impl FnMut()) {
        if self.filter.as_ref().is_some_and(|filter| !name.contains(filter)) {
            return;
        }
        let seconds = Self::time(f);
        println!("{name:<52} {:>10.1} µs {:>9.1} M/s", seconds * 1e6, count as f64 / seconds / 1e6);
    }

    /// An operation and its gradient on the engine.
    fn operation<O: Operation>(&self, name: &str, count: usize, op: &O, inputs: &[Eager]) {
        let tracked = vec![true; inputs.len()];
        let inputs: Vec<Value<Eager>> = inputs.iter().cloned().map(Value::Float).collect();
        let forward = || op.forward(&inputs, &tracked).expect("operands that fit");
        self.row(name, count, || drop(black_box(forward())));
        let out = forward();
        let ones: Vec<_> =
            out.results.iter().map(|y| Some(random(&y.shape(), y.dtype()))).collect();
        let kept = Kept::new(op.keep(&tracked), &inputs, &out);
        let reverse = Reverse {
            kept: &kept,
            cotangents: &ones,
            hidden: &out.hidden.iter().map(|_| None).collect::<Vec<_>>(),
            wanted: &tracked,
        };
        self.row(&format!("{name}: gradient"), count, || {
            drop(black_box(op.fused_vjp(&reverse).expect("a derivative")));
        });
    }
}

fn random(shape: &[usize], dtype: DType) -> Eager {
    let x = check::noise(&check::array(shape, |_| 0.0), 7);
    Eager::from(x.into_tensor().and_then(|x| x.cast(dtype)))
}

fn recurrences(bench: &Bench) {
    for dtype in [DType::F32, DType::F64] {
        for (shape, axis) in
            [(&[131_072, 1][..], 0), (&[1000, 256], 0), (&[256, 1000], 1), (&[10_000_000], 0)]
        {
            let count = shape.iter().product();
            let (a, b) = (random(shape, dtype), random(shape, dtype));
            let name = format!("{dtype} {shape:?}");
            bench.row(&format!("copy {name}"), count, || {
                drop(black_box(a.add(&b)));
            });
            if dtype == DType::F32 {
                plain(bench, &name, &a, &b, shape, axis);
            }
            let op = LinearRecurrence::new(axis);
            bench.operation(&format!("linear recurrence {name}"), count, &op, &[a.clone(), b]);
            for kind in [Running::Sum, Running::Product, Running::LogSumExp] {
                let op = Cumulative::new(kind, axis);
                // Factors near 1.
                let x = if kind == Running::Product { a.scale(1e-3).shift(1.0) } else { a.clone() };
                bench.operation(&format!("{} {name}", kind.name()), count, &op, &[x]);
            }
        }
    }
    for d in [2, 4, 8] {
        let (a, b) =
            (random(&[10_000, d, d], DType::F64).scale(0.3), random(&[10_000, d, 1], DType::F64));
        let name = format!("matrix recurrence f64 {d}×{d} 10⁴ steps");
        bench.operation(&name, 10_000, &MatrixRecurrence::default(), &[a.clone(), b]);
        let op = AssociativeScan::new(FloatMonoid::Matrix(t4a_einsum::FloatSemiring::LogSumExp), 0);
        bench.operation(&format!("log-semiring products f64 {d}×{d} 10⁴ steps"), 10_000, &op, &[a]);
    }
}

/// A plain loop, over contiguous lanes or over adjacent lanes.
fn plain(bench: &Bench, name: &str, a: &Eager, b: &Eager, shape: &[usize], axis: usize) {
    let slice = |x: &Eager| -> Vec<f32> {
        let x: &AnyTensor = x.tensor().expect("a tensor");
        x.typed::<f32>().and_then(|x| x.to_vec()).expect("elements")
    };
    let (a, b) = (slice(a), slice(b));
    let mut h = vec![0f32; a.len()];
    let inner: usize = shape[axis + 1..].iter().product();
    let n = shape[axis];
    bench.row(&format!("plain loop {name}"), a.len(), || {
        for lane in 0..a.len() / n / inner {
            let at = lane * n * inner;
            let mut state = vec![0f32; inner];
            for t in 0..n {
                let row = at + t * inner..at + (t + 1) * inner;
                let steps = state.iter_mut().zip(&a[row.clone()]).zip(&b[row.clone()]);
                for (((s, a), b), h) in steps.zip(&mut h[row]) {
                    *s = a * *s + b;
                    *h = *s;
                }
            }
        }
        black_box(&mut h);
    });
}

fn layers(bench: &Bench) {
    for (n, batch, width) in [(128, 32, 128), (100, 8, 32)] {
        for cell in Cell::ALL {
            let op = Recurrent::new(cell);
            let gates = cell.gates() * width;
            let z = random(&[n, batch, gates], DType::F32);
            let weight = random(&[width, gates], DType::F32).scale(0.2);
            let name = format!("{} f32 {n}×{batch}×{width}", op.name());
            bench.operation(&name, n * batch, &op, &[z, weight]);
        }
    }
}

/// A filter for position and velocity with observed position.
fn filters(bench: &Bench) {
    for dtype in [DType::F32, DType::F64] {
        for batch in [1, 64] {
            let cast = |x: Eager| Eager::from(x.into_tensor().and_then(|x| x.cast(dtype)));
            let of = |shape: &[usize], x: &[f64]| cast(check::array(shape, |i| x[i]));
            let n = if batch == 1 { 10_000 } else { 1000 };
            let inputs = [
                of(&[2, 2], &[1.0, 0.1, 0.0, 1.0]),
                of(&[2, 2], &[1e-3, 0.0, 0.0, 1e-2]),
                of(&[1, 2], &[1.0, 0.0]),
                of(&[1, 1], &[0.1]),
                random(&[batch, n, 1], dtype),
                of(&[2], &[0.0, 0.0]),
                of(&[2, 2], &[1.0, 0.0, 0.0, 1.0]),
            ];
            let name = format!("kalman 2 states {dtype} {batch}×{n} steps");
            bench.operation(&name, batch * n, &KalmanFilter, &inputs);
        }
    }
}

/// ln Z of conditional random fields; `peers/torch_chain.py` measures the same in PyTorch.
fn chains(bench: &Bench) {
    for dtype in [DType::F32, DType::F64] {
        for [batch, length, tags] in [[32, 128, 64], [8, 100, 9]] {
            let op = LogPartition { lengths: vec![length; batch] };
            let inputs = [random(&[batch, length, tags], dtype), random(&[tags, tags], dtype)];
            let name = format!("ln Z {dtype} {batch}×{length}, {tags} tags");
            bench.operation(&name, batch * length, &op, &inputs);
            let inputs = inputs.map(Value::Float);
            let out = op.forward(&inputs, &[true; 2]).expect("operands that fit");
            let (cotangents, wanted) = ([Some(random(&[batch], dtype))], &[true; 2]);
            let kept = Kept::new(op.keep(wanted), &inputs, &out);
            let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted };
            bench.row(&format!("{name}: gradient by its definition"), batch * length, || {
                drop(black_box(op.vjp(&reverse).expect("a derivative")));
            });
        }
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("{} threads", parallel::threads());
    let bench = Bench { filter };
    recurrences(&bench);
    layers(&bench);
    filters(&bench);
    chains(&bench);
}
