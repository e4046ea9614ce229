//! Gradients of scans with a recorded body: each pass is one instruction. Compared with the tape of every step, and
//! with finite differences.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::scan::{
    Memory, Options, Policy, ScanBackend, ScanError, ScanPath, ScanReport, scan,
};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_compile::{Traced, compile};

use crate::scan::{Stepped, Two, linear, noise, odd, recurrent, routines};

type B = BurnT4a;
type T = Traced<B>;
type Step<A> = fn(Two<A>, Two<A>, Tensor<A, 2>) -> (Two<A>, Two<A>);

/// Constants and carry, and xs.
type Inputs<A> = ([Tensor<A, 2>; 4], Tensor<A, 3>);

fn inputs(n: usize, seed: usize) -> Inputs<B> {
    let of = |shape: [usize; 2], seed| noise::<B, 2>(shape, seed, DType::F64);
    let [a, b] = [1, 2].map(|i| of([4, 4], seed + i));
    let [c, d] = [3, 4].map(|i| of([1, 4], seed + i));
    ([a, b, c, d], noise([n, 1, 4], seed + 5, DType::F64))
}

/// A loss that depends on all outputs of a scan.
fn loss<A: ScanBackend>(
    body: impl Fn(Two<A>, Two<A>, Tensor<A, 2>) -> (Two<A>, Two<A>) + Send + Sync + 'static,
    ([w, u, h, c], xs): Inputs<A>,
    options: &Options,
) -> Result<Tensor<A, 1>, ScanError> {
    let ((h, c), (y, z)) = scan(body, (w, u), (h, c), xs, options)?;
    let (y, z): (Tensor<A, 3>, Tensor<A, 3>) = (y, z);
    let [n, ..] = y.dims();
    let weights = noise::<A, 3>([n, 1, 4], 9, DType::F64);
    let z = z.reshape([n, 1, 4]);
    Ok((h * 0.5 + c.powi_scalar(2)).sum() + (y * weights.clone()).sum() + (z * weights).sin().sum())
}

fn gradients<A: ScanBackend>(
    body: impl Fn(
        Two<Autodiff<A>>,
        Two<Autodiff<A>>,
        Tensor<Autodiff<A>, 2>,
    ) -> (Two<Autodiff<A>>, Two<Autodiff<A>>)
    + Send
    + Sync
    + 'static,
    (all, xs): Inputs<A>,
    options: &Options,
) -> (Tensor<A, 1>, [Tensor<A, 2>; 4], Tensor<A, 3>) {
    let all = all.map(|x| Tensor::<Autodiff<A>, 2>::from_inner(x).require_grad());
    let xs = Tensor::<Autodiff<A>, 3>::from_inner(xs).require_grad();
    let value = loss(body, (all.clone(), xs.clone()), options).unwrap();
    let found = value.backward();
    let of = |x: Tensor<Autodiff<A>, 2>| x.grad(&found).unwrap_or_else(|| x.inner().zeros_like());
    (value.inner(), all.map(of), xs.grad(&found).unwrap_or_else(|| xs.inner().zeros_like()))
}

fn flat((value, all, xs): (Tensor<B, 1>, [Tensor<B, 2>; 4], Tensor<B, 3>)) -> Vec<TensorData> {
    let all = all.into_iter().map(Tensor::into_data);
    [value.into_data()].into_iter().chain(all).chain([xs.into_data()]).collect()
}

#[track_caller]
fn near(name: &str, got: &[TensorData], want: &[TensorData], tolerance: f64) {
    assert_eq!(got.len(), want.len());
    for (k, (got, want)) in got.iter().zip(want).enumerate() {
        for (a, b) in got.iter::<f64>().zip(want.iter::<f64>()) {
            assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{name}, {k}: {a} and {b}");
        }
    }
}

macro_rules! bodies {
    ($($body:ident)*) => {
        [$((stringify!($body), $body::<Autodiff<T>> as Step<Autodiff<T>>,
            $body::<Autodiff<B>> as Step<Autodiff<B>>, $body::<B> as Step<B>)),*]
    };
}

#[test]
fn recorded_scans_have_the_gradients_of_their_steps() {
    for (name, traced, eager, plain) in bodies!(recurrent odd linear routines) {
        for (n, reverse) in [(1, false), (2, true), (9, false), (9, true), (500, true)] {
            let fused = Options::default().reverse(reverse).accept(&[ScanPath::Fused]);
            let f = |x: Inputs<T>| gradients(traced, x, &fused);
            let compiled = compile(f).fullgraph();
            for seed in [1, 20] {
                let got = flat(compiled.call(inputs(n, seed)).unwrap());
                let tape = Options::default().reverse(reverse).memory(Memory::StoreAll);
                let want = flat(gradients(eager, inputs(n, seed), &tape));
                near(name, &got, &want, 1e-11);
                differences(name, plain, inputs(n, seed), reverse, &got);
            }
            // The second call replays two scans: the program size is independent of the number of steps.
            let text = compiled.explain();
            assert_eq!((compiled.counters().traces, compiled.counters().hits), (1, 1), "{text}");
            assert_eq!(text.matches("= scan of").count(), 2, "{text}");
            assert!(text.lines().count() < 80, "{text}");
        }
    }
}

/// Central difference along a random direction.
fn differences(name: &str, body: Step<B>, at: Inputs<B>, reverse: bool, got: &[TensorData]) {
    let (along, step) = (inputs(at.1.dims()[0], 77), 1e-6);
    let value = |step: f64| {
        let all = std::array::from_fn(|k| at.0[k].clone() + along.0[k].clone() * step);
        let xs = at.1.clone() + along.1.clone() * step;
        let options = Options::default().reverse(reverse);
        loss(body, (all, xs), &options).unwrap().into_data().iter::<f64>().next().unwrap()
    };
    let want = (value(step) - value(-step)) / (2.0 * step);
    let along = along.0.into_iter().map(Tensor::into_data).chain([along.1.into_data()]);
    let product = |(g, x): (&TensorData, TensorData)| -> f64 {
        g.iter::<f64>().zip(x.iter::<f64>()).map(|(g, x)| g * x).sum()
    };
    let found: f64 = got[1..].iter().zip(along).map(product).sum();
    assert!((found - want).abs() < 1e-6 * (1.0 + want.abs()), "{name}: {found} and {want}");
}

/// A scan in the body of a scan; the inner one is unrolled in the program of the outer step.
#[test]
fn scans_in_scans() {
    fn nested<A: ScanBackend>((w, u): Two<A>, carry: Two<A>, x: Tensor<A, 2>) -> Stepped<A> {
        let body = |(u,): (Tensor<A, 2>,), h: Tensor<A, 2>, x: Tensor<A, 2>| {
            let h = h.matmul(u).tanh() + x;
            (h.clone(), h * 0.5)
        };
        let (h, c) = carry;
        let xs = Tensor::stack::<3>(vec![x.clone(), c.clone(), x * 0.5], 0);
        let (last, ys) = scan(body, (u,), h.matmul(w), xs, &Options::default()).unwrap();
        let ys: Tensor<A, 3> = ys;
        ((last.clone(), c * 0.5 + last.clone()), (last, ys.sum_dim(0).squeeze_dim::<2>(0)))
    }
    let fused = Options::default().accept(&[ScanPath::Fused]);
    let f = compile(|x: Inputs<T>| gradients(nested::<Autodiff<T>>, x, &fused)).fullgraph();
    for seed in [1, 20] {
        let got = flat(f.call(inputs(5, seed)).unwrap());
        let tape = Options::default().memory(Memory::StoreAll);
        let want = flat(gradients(nested::<Autodiff<B>>, inputs(5, seed), &tape));
        near("nested", &got, &want, 1e-11);
    }
    assert_eq!(f.explain().matches("= scan of").count(), 2, "{}", f.explain());
}

/// Gradients of a subset of the operands, and of a parameter that is passed to the body as a constant.
#[test]
fn operands_without_a_gradient_get_none() {
    let f = |(w, xs): (Tensor<T, 1>, Tensor<T, 2>)| {
        let w = Tensor::<Autodiff<T>, 1>::from_inner(w).require_grad();
        type One = Tensor<Autodiff<T>, 1>;
        let step = |(w, fixed): (One, One), c: One, x: One| {
            let c = c * w.clone().tanh() + x * fixed;
            (c.clone(), c * w)
        };
        let fixed = noise([3], 4, DType::F64);
        let options = Options::default().accept(&[ScanPath::Fused]);
        let init = fixed.clone() * 0.5;
        let xs: Tensor<Autodiff<T>, 2> = Tensor::from_inner(xs);
        let (last, ys) = scan(step, (w.clone(), fixed), init, xs, &options).unwrap();
        let ys: Tensor<Autodiff<T>, 2> = ys;
        let gradients = (last.sum() + ys.powi_scalar(2).sum()).backward();
        w.grad(&gradients).unwrap()
    };
    let call = |w: Tensor<B, 1>| {
        let (fixed, xs) = (noise::<B, 1>([3], 4, DType::F64), noise::<B, 2>([6, 3], 5, DType::F64));
        let mut c = fixed.clone() * 0.5;
        let mut all = Vec::new();
        for t in 0..6 {
            c = c * w.clone().tanh() + xs.clone().narrow(0, t, 1).reshape([3]) * fixed.clone();
            all.push(c.clone() * w.clone());
        }
        let all = Tensor::<B, 1>::stack::<2>(all, 0).powi_scalar(2).sum();
        (c.sum() + all).into_data().iter::<f64>().next().unwrap()
    };
    let w = noise::<B, 1>([3], 1, DType::F64);
    let got = compile(f).fullgraph().call((w.clone(), noise([6, 3], 5, DType::F64))).unwrap();
    for (k, got) in got.into_data().iter::<f64>().enumerate() {
        let mut one = vec![0.0; 3];
        one[k] = 1e-6;
        let one = Tensor::<B, 1>::from_data(TensorData::new(one, [3]), (&w.device(), DType::F64));
        let want = (call(w.clone() + one.clone()) - call(w.clone() - one)) / 2e-6;
        assert!((got - want).abs() < 1e-7 * (1.0 + want.abs()), "{k}: {got} and {want}");
    }
}

/// Outside of a compiled function, too; a body that cannot be recorded reports the reason and has gradients.
#[test]
fn paths_of_scans_on_a_tape() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = told.clone();
    let report =
        Options::default().report(move |report: &ScanReport| into.lock().unwrap().push(*report));
    let lift = |(all, xs): Inputs<B>| -> Inputs<T> {
        let of = |x: Tensor<B, 2>| Tensor::from_data(x.into_data(), (&T4aDevice, DType::F64));
        (all.map(of), Tensor::from_data(xs.into_data(), (&T4aDevice, DType::F64)))
    };
    let lower = |(value, all, xs): (Tensor<T, 1>, [Tensor<T, 2>; 4], Tensor<T, 3>)| {
        let all = all.into_iter().map(Tensor::into_data);
        [value.into_data()].into_iter().chain(all).chain([xs.into_data()]).collect::<Vec<_>>()
    };
    let want = flat(gradients(recurrent::<Autodiff<B>>, inputs(7, 1), &Options::default()));
    for (memory, path, reason) in [
        (Memory::default(), ScanPath::Fused, "body_traced"),
        (Memory::Bounded(Policy::Carries), ScanPath::Fused, "body_traced"),
        (Memory::Bounded(Policy::Segment(2)), ScanPath::Fallback, "memory"),
        (Memory::StoreAll, ScanPath::Fallback, "memory"),
    ] {
        let options = report.clone().memory(memory);
        let got = lower(gradients(recurrent::<Autodiff<T>>, lift(inputs(7, 1)), &options));
        near("paths", &got, &want, 1e-11);
        let all = std::mem::take(&mut *told.lock().unwrap());
        assert_eq!(all, [ScanReport { path, reason, length: 7 }]);
    }
    let reads: Step<Autodiff<T>> = |(w, u), (h, c), x| {
        let largest = x.clone().abs().max().into_scalar();
        recurrent((w, u), (h, c), x / largest)
    };
    let eager: Step<Autodiff<B>> = |(w, u), (h, c), x| {
        let largest = x.clone().abs().max().into_scalar();
        recurrent((w, u), (h, c), x / largest)
    };
    let got = lower(gradients(reads, lift(inputs(7, 1)), &report));
    near("reads", &got, &flat(gradients(eager, inputs(7, 1), &Options::default())), 1e-11);
    let last = told.lock().unwrap().pop().unwrap();
    assert_eq!((last.path, last.reason), (ScanPath::Fallback, "host_read_in_body"));
    // The reverse step cannot be recorded: the steps are run again, on the tape.
    let calls = AtomicUsize::new(0);
    let second = move |consts, carry, x: Tensor<Autodiff<T>, 2>| {
        if calls.fetch_add(1, Ordering::SeqCst) == 1 {
            x.clone().sum().into_scalar();
        }
        recurrent(consts, carry, x)
    };
    let got = lower(gradients(second, lift(inputs(7, 1)), &report));
    near("second", &got, &want, 1e-11);
    let all = std::mem::take(&mut *told.lock().unwrap());
    let all: Vec<_> = all.iter().map(|x| (x.path, x.reason)).collect();
    let reason = "host_read_in_body";
    assert_eq!(all, [(ScanPath::Fused, "body_traced"), (ScanPath::Fallback, reason)]);
    let (all, xs) = lift(inputs(7, 1));
    let all = all.map(|x| Tensor::<Autodiff<T>, 2>::from_inner(x).require_grad());
    let rejected = |accept: &[ScanPath], body| {
        let options = Options::default().accept(accept);
        let body: Step<Autodiff<T>> = body;
        loss(body, (all.clone(), Tensor::from_inner(xs.clone())), &options).unwrap_err()
    };
    let error = rejected(&[ScanPath::Fused], reads);
    assert!(matches!(error, ScanError::PathRejected { chosen: ScanPath::Fallback, .. }), "{error}");
    let error = rejected(&[ScanPath::Fallback], recurrent::<Autodiff<T>>);
    let ScanError::PathRejected { chosen, accepted, .. } = &error else { panic!("{error}") };
    assert_eq!((*chosen, &accepted[..]), (ScanPath::Fused, &[ScanPath::Fallback][..]));
}

/// c ← tanh(x u + c w), y = c v: products with all xs and of all ys, and sums of products over all steps, in several
/// chunks.
fn wide<A: ScanBackend>(
    (u, (w, v)): (Tensor<A, 2>, Two<A>),
    c: Tensor<A, 2>,
    x: Tensor<A, 2>,
) -> (Tensor<A, 2>, Two<A>) {
    let c = (x.clone().matmul(u) + c.matmul(w)).tanh();
    (c.clone(), (c.clone().matmul(v), c * 0.5))
}

/// The transposed form, with column states.
fn tall<A: ScanBackend>(
    (u, (w, v)): (Tensor<A, 2>, Two<A>),
    c: Tensor<A, 2>,
    x: Tensor<A, 2>,
) -> (Tensor<A, 2>, Two<A>) {
    let c = (u.transpose().matmul(x) + w.transpose().matmul(c)).tanh();
    (c.clone(), (v.transpose().matmul(c.clone()), c * 0.5))
}

type Wide<A> = (([Tensor<A, 2>; 3], Tensor<A, 2>), Tensor<A, 3>);

fn wide_gradients<A: ScanBackend>(
    (([u, w, v], c), xs): Wide<A>,
    [tall_ones, reverse]: [bool; 2],
    options: Options,
) -> Wide<A> {
    let above = |x: Tensor<A, 2>| Tensor::<Autodiff<A>, 2>::from_inner(x).require_grad();
    let [u, w, v, c] = [u, w, v, c].map(above);
    let xs = Tensor::<Autodiff<A>, 3>::from_inner(xs).require_grad();
    let (consts, options) = ((u.clone(), (w.clone(), v.clone())), options.reverse(reverse));
    type Out<A> = (Tensor<A, 2>, (Tensor<A, 3>, Tensor<A, 3>));
    let body = if tall_ones { tall::<Autodiff<A>> } else { wide::<Autodiff<A>> };
    let (last, (y, z)): Out<Autodiff<A>> =
        scan(body, consts, c.clone(), xs.clone(), &options).unwrap();
    let found = (y.powi_scalar(2).sum() + z.sin().sum() + last.sum()).backward();
    let of = |x: Tensor<Autodiff<A>, 2>| x.grad(&found).unwrap();
    (([of(u), of(w), of(v)], of(c)), xs.grad(&found).unwrap())
}

#[test]
fn products_of_many_steps_at_once() {
    const STEPS: usize = 300;
    for tall_ones in [false, true] {
        for (reverse, rows, dtype) in
            [(false, 1, DType::F64), (true, 1, DType::F32), (true, 2, DType::F64)]
        {
            let turned = |[a, b]: [usize; 2]| if tall_ones { [b, a] } else { [a, b] };
            let [c, x] = [turned([rows, 12]), turned([rows, 256])];
            let matrix = |shape, seed| noise::<B, 2>(shape, seed, dtype) * 0.1;
            let all = [matrix([256, 12], 1), matrix([12, 12], 2), matrix([12, 20], 3)];
            let xs = noise([STEPS, x[0], x[1]], 5, dtype);
            let input: Wide<B> = ((all, noise(c, 4, dtype)), xs);
            let how = [tall_ones, reverse];
            let fused = Options::default().accept(&[ScanPath::Fused]);
            let f = |x: Wide<T>| wide_gradients(x, how, fused.clone());
            let f = compile(f).fullgraph();
            f.call(input.clone()).unwrap();
            let got = f.call(input.clone()).unwrap();
            let want = wide_gradients(input, how, Options::default().memory(Memory::StoreAll));
            let flat = |((all, c), xs): Wide<B>| -> Vec<TensorData> {
                let all = all.into_iter().chain([c]).map(Tensor::into_data);
                all.chain([xs.into_data()]).collect()
            };
            let tolerance = if dtype == DType::F64 { 1e-11 } else { 1e-3 };
            near(&format!("{how:?} {rows}"), &flat(got), &flat(want), tolerance);
        }
    }
}
