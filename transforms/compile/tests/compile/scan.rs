//! Scans with a recorded body against the same scans executed step by step.

use std::sync::{Arc, Mutex};

use burn::tensor::activation::{sigmoid, softmax};
use burn::tensor::{DType, Tensor, TensorData, Tolerance};
use burn_t4a::ext::linalg::solve;
use burn_t4a::ext::scan::{Options, ScanBackend, ScanError, ScanPath, ScanReport, scan};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{Traced, compile};

type B = BurnT4a;
type T = Traced<B>;
type One = Tensor<T, 1>;
type Matrix = Tensor<T, 2>;
type Cube = Tensor<T, 3>;

pub(crate) fn noise<A: ScanBackend, const D: usize>(
    shape: [usize; D],
    seed: usize,
    dtype: DType,
) -> Tensor<A, D> {
    let value = |i: usize| ((i * 7919 + seed * 104_729 + 13) % 10_007) as f64 / 5003.0 - 1.0;
    let values: Vec<f64> = (0..shape.iter().product()).map(value).collect();
    Tensor::from_data(TensorData::new(values, shape), (&A::Device::default(), dtype))
}

pub(crate) type Two<A> = (Tensor<A, 2>, Tensor<A, 2>);
type Carry = Two<T>;
type Body = fn((Matrix, Matrix), Carry, Matrix) -> (Carry, (Matrix, Matrix));
/// Result of a step: carry and y.
pub(crate) type Stepped<A> = (Two<A>, Two<A>);

pub(crate) fn recurrent<A: ScanBackend>(
    (w, u): Two<A>,
    (h, c): Two<A>,
    x: Tensor<A, 2>,
) -> Stepped<A> {
    let both = x.matmul(w) + h.clone().matmul(u);
    let c = c * sigmoid(both.clone()) + both.clone().tanh() * 0.5;
    let h = (c.clone() / (both.exp() + 1.0)).clamp(-0.9, 0.9);
    ((h.clone(), c), (h.clone() - h.clone().mean_dim(1), softmax(h.transpose(), 0)))
}

/// Carries that are swapped, passed through or constant; masks, slices, constants.
pub(crate) fn odd<A: ScanBackend>((w, u): Two<A>, (h, c): Two<A>, x: Tensor<A, 2>) -> Stepped<A> {
    let invariant = w.clone().matmul(u.transpose()).sum_dim(1).transpose().tanh();
    let part = Tensor::cat(vec![x.clone().narrow(1, 2, 2), c.clone().narrow(1, 0, 2)], 1);
    let mask = part.clone().greater(h.clone());
    let next = part.mask_where(mask.clone(), h.clone() * 0.25) + invariant.clone();
    let next = next.clone().mask_fill(mask, 0.125) + next.flip([1]).abs().sqrt() * 0.1;
    let ones = Tensor::<A, 2>::ones([1, 4], &A::Device::default()).cast(next.dtype());
    ((c.clone(), next - ones), (x, c))
}

/// Matrix products within a step and with all xs and ys; divisions and sums.
pub(crate) fn linear<A: ScanBackend>(
    (w, u): Two<A>,
    (h, c): Two<A>,
    x: Tensor<A, 2>,
) -> Stepped<A> {
    let both = x.clone().matmul(w.clone()) + h.clone().matmul(u.clone()) * 0.3;
    let square = c.clone().transpose().matmul(x.clone()).matmul(u.clone());
    let h = both.clone() / (c.clone() * c.clone() + 2.0) - square.sum_dim(0) * 0.1;
    let c = w.clone().matmul(c.transpose()).transpose() * 0.2 - x.mean_dim(1);
    ((h.clone(), c.clone()), (c.matmul(u), h))
}

pub(crate) fn routines<A: ScanBackend>(
    (w, u): Two<A>,
    (h, c): Two<A>,
    x: Tensor<A, 2>,
) -> Stepped<A> {
    let unit = Tensor::<A, 2>::eye(4, &A::Device::default()).cast(x.dtype());
    let y = solve(w.clone() * 0.1 + unit * 3.0, x.clone().transpose()).unwrap().transpose();
    ((h * 0.5 + y.clone(), c.clone().cumsum(1) * 0.1), (y.matmul(u), x + c))
}

fn inputs(dtype: DType, n: usize) -> ((Matrix, Matrix), Carry, Cube) {
    let m = |seed| noise([4, 4], seed, dtype);
    let row = |seed| noise([1, 4], seed, dtype);
    ((m(1), m(2)), (row(3), row(4)), noise([n, 1, 4], 5, dtype))
}

fn flat(((h, c), (y, z)): (Carry, (Cube, Cube))) -> Vec<TensorData> {
    vec![h.into_data(), c.into_data(), y.into_data(), z.into_data()]
}

#[test]
fn recorded_bodies_are_their_steps() {
    let bodies: [(&str, Body); 4] =
        [("recurrent", recurrent), ("odd", odd), ("linear", linear), ("routines", routines)];
    for (name, body) in bodies {
        for dtype in [DType::F32, DType::F64] {
            for reverse in [false, true] {
                let options = Options::default().reverse(reverse);
                let run = |options: &Options, n: usize| {
                    let (consts, init, xs) = inputs(dtype, n);
                    scan(body, consts, init, xs, options)
                };
                // Long scans use machine code if no operation is a library routine.
                for n in [1, 2, 7, 500] {
                    let coded = n == 500 && matches!(name, "odd" | "linear");
                    let reason = if coded { "machine_code" } else { "body_traced" };
                    let told = move |report: &ScanReport| assert_eq!(report.reason, reason);
                    let fused = options.clone().accept(&[ScanPath::Fused]).report(told);
                    let got = run(&fused, n).unwrap_or_else(|error| panic!("{name}: {error}"));
                    // The same body step by step, on the inner backend.
                    let wanted = steps(body, dtype, n, reverse);
                    for (got, want) in flat(got).into_iter().zip(wanted) {
                        let tolerance = if dtype == DType::F32 { 1e-5 } else { 1e-12 };
                        got.assert_approx_eq(
                            &want,
                            Tolerance::<f64>::rel_abs(tolerance, tolerance),
                        );
                    }
                }
            }
        }
    }
}

/// The scan as an explicit loop.
fn steps(body: Body, dtype: DType, n: usize, reverse: bool) -> Vec<TensorData> {
    let (consts, mut carry, xs) = inputs(dtype, n);
    let mut ys = vec![None; n];
    for k in 0..n {
        let t = if reverse { n - 1 - k } else { k };
        let x = xs.clone().narrow(0, t, 1).reshape([1, 4]);
        let y;
        (carry, y) = body(consts.clone(), carry, x);
        ys[t] = Some(y);
    }
    let stack = |pick: fn(&(Matrix, Matrix)) -> Matrix| {
        let all = ys.iter().flatten().map(|y| pick(y).unsqueeze::<3>()).collect();
        Tensor::cat(all, 0)
    };
    flat((carry, (stack(|y| y.0.clone()), stack(|y| y.1.clone()))))
}

/// In a compiled function the scan is one instruction; values captured by its body are operands.
#[test]
fn scans_in_compiled_functions() {
    let f = |(a, init, xs): (One, One, Matrix)| {
        let gain = a.clone().exp();
        let step = move |(): (), c: One, x: One| {
            let c = gain.clone() * c + x * gain.clone();
            (c.clone(), c * 2.0)
        };
        let options = Options::default().accept(&[ScanPath::Fused]);
        let (last, ys): (One, Matrix) = scan(step, (), init, xs, &options).unwrap();
        (last + a, ys)
    };
    let call = |seed: usize| {
        let of = |shape, seed| noise::<B, 1>(shape, seed, DType::F64);
        (of([3], seed) * 0.1 - 1.0, of([3], seed + 1), noise::<B, 2>([20, 3], seed, DType::F64))
    };
    let compiled = compile(f).fullgraph();
    compiled.call(call(0)).unwrap();
    assert!(compiled.explain().contains("= scan"), "{}", compiled.explain());
    for seed in [3, 9] {
        let (last, ys) = compiled.call(call(seed)).unwrap();
        let (a, mut c, xs) = call(seed);
        let gain = a.clone().exp();
        let mut wanted = Vec::new();
        for t in 0..20 {
            c = gain.clone() * c + xs.clone().narrow(0, t, 1).reshape([3]) * gain.clone();
            wanted.push(c.clone() * 2.0);
        }
        let tolerance = Tolerance::<f64>::rel_abs(1e-12, 1e-12);
        last.into_data().assert_approx_eq(&(c + a).into_data(), tolerance);
        let wanted = Tensor::<B, 1>::stack::<2>(wanted, 0);
        ys.into_data().assert_approx_eq(&wanted.into_data(), tolerance);
    }
    assert_eq!((compiled.counters().traces, compiled.counters().hits), (1, 2));
}

#[test]
fn what_cannot_be_one_program_says_why() {
    let run = |options: &Options, body: fn((), One, One) -> (One, One)| {
        let xs = noise::<T, 2>([5, 3], 1, DType::F32);
        scan::<T, _, _, _, _, _, _, Matrix>(body, (), noise([3], 2, DType::F32), xs, options)
    };
    let reads = |(): (), c: One, x: One| {
        let largest = x.clone().max().into_scalar();
        (c * 0.5 + x.clone() / largest, x)
    };
    let random = |(): (), c: One, x: One| {
        let noise = One::random([3], burn::tensor::Distribution::Default, &T4aDevice);
        (c + noise, x)
    };
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = told.clone();
    let report = Options::default().report(move |report| into.lock().unwrap().push(*report));
    for (body, why) in
        [(reads as fn((), One, One) -> (One, One), "host_read_in_body"), (random, "random_in_body")]
    {
        run(&report, body).unwrap();
        let last = told.lock().unwrap().pop().unwrap();
        assert_eq!((last.path, last.reason, last.length), (ScanPath::Fallback, why, 5));
        let error = run(&Options::default().accept(&[ScanPath::Fused]), body).unwrap_err();
        assert!(
            matches!(error, ScanError::PathRejected { reason, .. } if reason == why),
            "{error}"
        );
    }
    let fine = |(): (), c: One, x: One| (c + x.clone(), x);
    run(&report, fine).unwrap();
    assert_eq!(told.lock().unwrap().pop().unwrap().path, ScanPath::Fused);
    // A carry whose shape changes is an error, as without recording.
    let wrong = |(): (), c: One, x: One| (Tensor::cat(vec![c, x.clone()], 0), x);
    assert!(matches!(run(&report, wrong), Err(ScanError::Carry { .. })));
}

/// c ← c + hᵀ y, where y = h u is also an output of the loop, and is used within the step.
#[test]
fn sums_of_products_of_results() {
    fn run<A: ScanBackend>(n: usize, options: &Options) -> Vec<TensorData> {
        type M<A> = Tensor<A, 2>;
        let step = |u: M<A>, (h, c): (M<A>, M<A>), x: M<A>| {
            let y = h.clone().matmul(u);
            let c = h.clone().transpose().matmul(y.clone()) + c;
            ((h * 0.5 + x, c), y)
        };
        let of = |shape, seed| noise::<A, 2>(shape, seed, DType::F64);
        let (u, init) = (of([8, 8], 1), (of([1, 8], 2), of([8, 8], 3)));
        let xs = noise([n, 1, 8], 4, DType::F64);
        let ((h, c), y): (_, Tensor<A, 3>) = scan(step, u, init, xs, options).unwrap();
        let (h, c): (M<A>, M<A>) = (h, c);
        vec![h.into_data(), c.into_data(), y.into_data()]
    }
    for n in [3, 600] {
        let got = run::<T>(n, &Options::default().accept(&[ScanPath::Fused]));
        let want = run::<B>(n, &Options::default());
        for (got, want) in got.iter().zip(&want) {
            got.assert_approx_eq(want, Tolerance::<f64>::rel_abs(1e-12, 1e-12));
        }
    }
}
