//! Compiled scans: time of a call in µs. `peers/jax_loops.py` measures the same rows in JAX.
//!
//! ```text
//! T4A_NUM_THREADS=1 cargo bench -p burn-t4a-transforms --bench loops [-- part]
//! ```
//!
//! Parts: columns, rows, kalman, batch, numbers, recurrent. The result of each row is compared with steps run one
//! by one.

use std::hint::black_box;
use std::time::Instant;

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::scan::{Memory, Options, ScanBackend, ScanPath, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::grad;
use burn_t4a_transforms::vmap::{Vmap, vmap};

type B = BurnT4a;
type T = Traced<B>;

const FLOATS: [DType; 2] = [DType::F32, DType::F64];

/// Minimum time of a call in µs, over half a second of calls.
fn time(mut f: impl FnMut()) -> f64 {
    f();
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed().as_secs_f64() < 0.5 {
        let one = Instant::now();
        f();
        best = best.min(one.elapsed().as_secs_f64());
    }
    best * 1e6
}

fn noise<const D: usize>(shape: [usize; D], dtype: DType) -> Tensor<B, D> {
    let value = |i: usize| ((i * 7919 + 13) % 10_007) as f64 / 5003.0 - 1.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&T4aDevice, dtype))
}

fn row(name: &str, dtype: DType, steps: usize, us: f64) {
    let name = format!("{name} {}", dtype.name());
    println!("{name:<36} {us:>10.1} {:>10.1}", us * 1e3 / steps as f64);
}

fn close<const D: usize>(x: Tensor<B, D>, y: Tensor<B, D>) {
    let tolerance = if x.dtype() == DType::F32 { 1e-3 } else { 1e-9 };
    for (x, y) in x.into_data().iter::<f64>().zip(y.into_data().iter::<f64>()) {
        assert!((x - y).abs() <= tolerance * (1.0 + y.abs()), "{x} and {y}");
    }
}

/// Options for a scan that runs as one program under `Traced`, otherwise step by step.
fn options(fused: bool) -> Options {
    Options::default().accept(&[if fused { ScanPath::Fused } else { ScanPath::Fallback }])
}

/// A matrix product in every step.
fn products<A: ScanBackend>(
    w: Tensor<A, 2>,
    c: Tensor<A, 2>,
    xs: Tensor<A, 3>,
    fused: bool,
) -> Tensor<A, 3> {
    let column = c.dims()[1] == 1;
    let step = move |w: Tensor<A, 2>, c: Tensor<A, 2>, x: Tensor<A, 2>| {
        let c = (if column { w.matmul(c) } else { c.matmul(w) } + x) * 0.5;
        (c.clone(), c)
    };
    let (_, ys): (Tensor<A, 2>, Tensor<A, 3>) = scan(step, w, c, xs, &options(fused)).unwrap();
    ys
}

fn vectors(column: bool) {
    const STEPS: usize = 1000;
    for n in [8, 16, 32, 64] {
        let [a, b] = if column { [n, 1] } else { [1, n] };
        let (w, c) = (noise([n, n], DType::F32) * 0.1, noise([a, b], DType::F32));
        let xs = noise([STEPS, a, b], DType::F32);
        let f = |(w, c, xs): (Tensor<T, 2>, Tensor<T, 2>, Tensor<T, 3>)| products(w, c, xs, true);
        let f = compile(f).fullgraph();
        f.call((w.clone(), c.clone(), xs.clone())).unwrap();
        let got = f.call((w.clone(), c.clone(), xs.clone())).unwrap();
        close(got, products::<B>(w.clone(), c.clone(), xs.clone(), false));
        let us = time(|| drop(black_box(f.call((w.clone(), c.clone(), xs.clone())).unwrap())));
        let name = if column { "column" } else { "row" };
        row(&format!("{name} {n}"), DType::F32, STEPS, us);
    }
}

/// Four matrices of a linear system with two states, its initial state, observations.
type System<A> = ([Tensor<A, 2>; 4], [Tensor<A, 2>; 2], Tensor<A, 3>);

fn system(steps: usize, dtype: DType) -> System<B> {
    let of = |x: &[f64], shape: [usize; 2]| {
        Tensor::<B, 2>::from_data(TensorData::new(x.to_vec(), shape), (&T4aDevice, dtype))
    };
    let model = [
        of(&[1.0, 0.1, 0.0, 1.0], [2, 2]),
        of(&[3e-4, 5e-3, 5e-3, 0.1], [2, 2]),
        of(&[1.0, 0.0], [1, 2]),
        of(&[0.25], [1, 1]),
    ];
    let state = [of(&[0.0; 2], [2, 1]), of(&[10.0, 0.0, 0.0, 10.0], [2, 2])];
    (model, state, noise([steps, 1, 1], dtype))
}

fn filter<A: ScanBackend>(([f, q, h, r], [x, p], zs): System<A>, fused: bool) -> Tensor<A, 3> {
    type Two<A> = (Tensor<A, 2>, Tensor<A, 2>);
    let step = |((f, q), (h, r)): (Two<A>, Two<A>), (x, p): Two<A>, z: Tensor<A, 2>| {
        let x = f.clone().matmul(x);
        let p = f.clone().matmul(p).matmul(f.transpose()) + q;
        let hp = h.clone().matmul(p.clone());
        let s = hp.clone().matmul(h.clone().transpose()) + r;
        let gain = hp.clone().transpose() / s;
        let x = x.clone() + gain.clone() * (z - h.matmul(x));
        let p = p - gain.matmul(hp);
        ((x.clone(), p), x)
    };
    let consts = ((f, q), (h, r));
    let (_, means): (Two<A>, Tensor<A, 3>) =
        scan(step, consts, (x, p), zs, &options(fused)).unwrap();
    means
}

fn kalman() {
    const STEPS: usize = 10_000;
    for dtype in FLOATS {
        let all = || system(STEPS, dtype);
        let f = compile(|x: System<T>| filter(x, true)).fullgraph();
        f.call(all()).unwrap();
        close(f.call(all()).unwrap(), filter::<B>(all(), false));
        let x = all();
        row("kalman", dtype, STEPS, time(|| drop(black_box(f.call(x.clone()).unwrap()))));
    }
    for dtype in FLOATS {
        const STEPS: usize = 1000;
        let f = compile(|x: System<T>| filter_gradient(x, true)).fullgraph();
        let x = system(STEPS, dtype);
        f.call(x.clone()).unwrap();
        let (got, want) = (f.call(x.clone()).unwrap(), filter_gradient(x.clone(), false));
        close(got.2, want.2);
        close(got.0[0].clone(), want.0[0].clone());
        row("kalman gradient", dtype, STEPS, time(|| drop(black_box(f.call(x.clone()).unwrap()))));
    }
}

fn filter_gradient<A: ScanBackend>(x: System<A>, fused: bool) -> System<A> {
    let loss = |x: System<Autodiff<A>>| filter(x, fused).powi_scalar(2).sum();
    grad(loss, x).unwrap()
}

fn batch() {
    const STEPS: usize = 1000;
    for dtype in FLOATS {
        let (model, state, _) = system(STEPS, dtype);
        let zs: Tensor<B, 4> = noise([16, STEPS, 1, 1], dtype);
        type All<A> = ([Tensor<A, 2>; 4], [Tensor<A, 2>; 2], Tensor<A, 4>);
        fn of<A: ScanBackend>((model, state, zs): All<A>, fused: bool) -> Tensor<A, 4> {
            let one = |x: System<Vmap<A>>| filter(x, fused);
            vmap(one).in_axes((None, None, Some(0))).call((model, state, zs)).unwrap()
        }
        let f = compile(|x: All<T>| of(x, true)).fullgraph();
        let x = (model, state, zs);
        f.call(x.clone()).unwrap();
        close(f.call(x.clone()).unwrap(), of::<B>(x.clone(), false));
        row(
            "kalman, 16 series",
            dtype,
            STEPS,
            time(|| drop(black_box(f.call(x.clone()).unwrap()))),
        );
    }
}

fn sums<A: ScanBackend>(xs: Tensor<A, 2>, fused: bool) -> Tensor<A, 2> {
    let step = |(): (), c: Tensor<A, 1>, x: Tensor<A, 1>| {
        let c = c * 0.9 + x;
        (c.clone(), c)
    };
    let zero = Tensor::<A, 1>::zeros([1], (&A::Device::default(), xs.dtype()));
    let (_, ys): (Tensor<A, 1>, Tensor<A, 2>) = scan(step, (), zero, xs, &options(fused)).unwrap();
    ys
}

fn numbers() {
    const STEPS: usize = 131_072;
    for dtype in FLOATS {
        let xs = noise([STEPS, 1], dtype);
        let f = compile(|xs: Tensor<T, 2>| sums(xs, true)).fullgraph();
        f.call(xs.clone()).unwrap();
        close(f.call(xs.clone()).unwrap(), sums::<B>(xs.clone(), false));
        row("numbers", dtype, STEPS, time(|| drop(black_box(f.call(xs.clone()).unwrap()))));
    }
}

type Network<A> = ([Tensor<A, 2>; 3], Tensor<A, 3>);

fn network<A: ScanBackend>(x: Network<A>, fused: bool) -> Network<A> {
    let loss = |([w, u, c], xs): Network<Autodiff<A>>| {
        type M<A> = Tensor<Autodiff<A>, 2>;
        let step = |(w, u): (M<A>, M<A>), c: M<A>, x: M<A>| {
            let c = (c.matmul(w) + x.matmul(u)).tanh();
            (c.clone(), c)
        };
        let memory = if fused { Memory::default() } else { Memory::StoreAll };
        let options = options(fused).memory(memory);
        let (_, ys): (M<A>, Tensor<Autodiff<A>, 3>) = scan(step, (w, u), c, xs, &options).unwrap();
        ys.powi_scalar(2).sum()
    };
    grad(loss, x).unwrap()
}

fn recurrent() {
    const STEPS: usize = 200;
    for dtype in FLOATS {
        let weight = || noise([64, 64], dtype) * 0.1;
        let x = ([weight(), weight(), noise([1, 64], dtype)], noise([STEPS, 1, 64], dtype));
        let f = compile(|x: Network<T>| network(x, true)).fullgraph();
        f.call(x.clone()).unwrap();
        let (got, want) = (f.call(x.clone()).unwrap(), network::<B>(x.clone(), false));
        close(got.1, want.1);
        close(got.0[0].clone(), want.0[0].clone());
        row("tanh 64 gradient", dtype, STEPS, time(|| drop(black_box(f.call(x.clone()).unwrap()))));
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|arg| !arg.starts_with("--"));
    println!("{:<36} {:>10} {:>10}", "", "µs", "ns/step");
    let parts: [(&str, fn()); 6] = [
        ("columns", || vectors(true)),
        ("rows", || vectors(false)),
        ("kalman", kalman),
        ("batch", batch),
        ("numbers", numbers),
        ("recurrent", recurrent),
    ];
    for (name, part) in parts {
        if filter.as_ref().is_none_or(|filter| filter == name) {
            part();
        }
    }
}
