//! Scans: the plain loop, one node under every policy, bad input, and the recurrences in one kernel.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use burn_autodiff::Autodiff;
use burn_autodiff::checkpoint::strategy::BalancedCheckpointing;
use burn_backend::{AutodiffBackend, FloatDType};
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::scan::fused::{self, Cell, Running, System};
use burn_t4a::ext::scan::{Memory, Options, Policy, ScanBackend, ScanError, ScanPath, scan};
use burn_tensor::backend::Backend;
use burn_tensor::{Tensor, TensorData};

type AD = Autodiff<BurnT4a>;

/// Fixed pseudo-random numbers between −1 and 1, in f64.
fn random<B: Backend, const D: usize>(shape: [usize; D], seed: u64) -> Tensor<B, D> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    let data: Vec<f64> = (0..shape.iter().product()).map(|_| next()).collect();
    let data = TensorData::new(data, shape);
    Tensor::from_data(data, (&Default::default(), burn_backend::DType::F64))
}

fn numbers<B: Backend, const D: usize>(x: Tensor<B, D>) -> Vec<f64> {
    x.into_data().iter::<f64>().collect()
}

fn floats<B: Backend>(x: &[f64]) -> Tensor<B, 1> {
    let data = TensorData::new(x.to_vec(), [x.len()]);
    Tensor::from_data(data, (&Default::default(), burn_backend::DType::F64))
}

#[track_caller]
fn close(x: &[f64], y: &[f64], tolerance: f64) {
    assert_eq!(x.len(), y.len());
    let size = y.iter().fold(1.0f64, |size, y| size.max(y.abs()));
    for (x, y) in x.iter().zip(y) {
        assert!((x - y).abs() <= tolerance * size, "{x} {y}");
    }
}

const POLICIES: [Memory; 7] = [
    Memory::StoreAll,
    Memory::Bounded(Policy::Sqrt),
    Memory::Bounded(Policy::Carries),
    Memory::Bounded(Policy::Segment(1)),
    Memory::Bounded(Policy::Segment(4)),
    Memory::Bounded(Policy::Revolve(1)),
    Memory::Bounded(Policy::Revolve(3)),
];

type Sum<B> = (Tensor<B, 1>, Tensor<B, 2>);

/// Running sums.
fn sums<B: ScanBackend>(xs: Tensor<B, 2>, options: &Options) -> Sum<B> {
    let init = Tensor::<B, 1>::zeros([xs.dims()[1]], &xs.device()).cast(FloatDType::F64);
    let step = |(): (), c: Tensor<B, 1>, x: Tensor<B, 1>| {
        let c = c + x;
        (c.clone(), c)
    };
    scan(step, (), init, xs, options).unwrap()
}

#[test]
fn computes_cumulative_sum() {
    fn on<B: ScanBackend>() {
        let xs = floats::<B>(&[1.0, 2.0, 3.0, 4.0]).reshape([4, 1]);
        let (last, ys) = sums(xs.clone(), &Options::default());
        assert_eq!((numbers(last), numbers(ys)), (vec![10.0], vec![1.0, 3.0, 6.0, 10.0]));
        let (last, ys) = sums(xs, &Options::default().reverse(true));
        assert_eq!((numbers(last), numbers(ys)), (vec![10.0], vec![10.0, 9.0, 7.0, 4.0]));
    }
    on::<BurnT4a>();
    on::<Flex>();
    on::<AD>();
    on::<Autodiff<Flex, BalancedCheckpointing>>();
}

#[test]
fn views_as_xs() {
    let xs = random::<AD, 2>([6, 4], 1);
    for xs in [
        xs.clone().narrow(0, 1, 4),
        xs.clone().transpose(),
        xs.clone().reshape([8, 3]),
        xs.flip([0]),
    ] {
        let want = numbers(fused::cumulative(Running::Sum, xs.clone(), 0, false).unwrap());
        close(&numbers(sums(xs, &Options::default()).1), &want, 1e-15);
    }
}

#[test]
fn without_xs() {
    // Fibonacci numbers: two carries, one y.
    let fibonacci =
        |(): (), (a, b): (Tensor<AD, 1>, Tensor<AD, 1>), (): ()| ((b.clone(), a.clone() + b), a);
    let init = || (floats::<AD>(&[0.0]), floats::<AD>(&[1.0]));
    let options = Options::default().length(6);
    type Out = ((Tensor<AD, 1>, Tensor<AD, 1>), Tensor<AD, 2>);
    let (_, ys): Out = scan(fibonacci, (), init(), (), &options).unwrap();
    assert_eq!(numbers(ys), [0.0, 1.0, 1.0, 2.0, 3.0, 5.0]);
    let (_, ys): Out = scan(fibonacci, (), init(), (), &options.reverse(true)).unwrap();
    assert_eq!(numbers(ys), [5.0, 3.0, 2.0, 1.0, 1.0, 0.0]);
    let error =
        scan::<AD, _, _, _, _, _, _, Tensor<AD, 2>>(fibonacci, (), init(), (), &Options::default());
    assert_eq!(error.err(), Some(ScanError::LengthRequired));
}

#[test]
fn without_ys() {
    let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c + x, ());
    let (last, ()): (Tensor<AD, 1>, ()) =
        scan(step, (), floats(&[1.0]), floats(&[2.0, 3.0]), &Options::default()).unwrap();
    assert_eq!(numbers(last), [6.0]);
}

#[test]
fn length_0() {
    for memory in POLICIES {
        let options = Options::default().memory(memory);
        let init = floats::<AD>(&[3.0, 4.0]).require_grad();
        let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| {
            (c.clone(), (c.clone(), vec![x.clone().reshape([1, 2]), x.reshape([1, 2])]))
        };
        let xs = random::<AD, 2>([0, 2], 1);
        type Out = (Tensor<AD, 1>, (Tensor<AD, 2>, Vec<Tensor<AD, 3>>));
        let (last, (y, z)): Out = scan(step, (), init.clone(), xs, &options).unwrap();
        assert_eq!((y.dims(), z[0].dims(), z.len()), ([0, 2], [0, 1, 2], 2));
        let grads = last.sum().backward();
        assert_eq!(numbers(init.grad(&grads).unwrap()), [1.0, 1.0]);
    }
}

#[test]
fn trees_of_all_kinds() {
    type X = [Vec<Tensor<AD, 1>>; 2];
    type XS = [Vec<Tensor<AD, 2>>; 2];
    let step = |w: Vec<Tensor<AD, 1>>, (c,): (Tensor<AD, 1>,), [a, b]: X| {
        let c = c * w[0].clone() + a[0].clone() * b[0].clone();
        ((c.clone(),), (c, a[0].clone()))
    };
    let x = |seed| vec![random::<AD, 2>([5, 2], seed)];
    let xs: XS = [x(1), x(2)];
    type Out = ((Tensor<AD, 1>,), (Tensor<AD, 2>, Tensor<AD, 2>));
    let ((last,), (ys, passed)): Out = scan(
        step,
        vec![floats(&[0.5, 0.25])],
        (floats(&[0.0, 0.0]),),
        xs.clone(),
        &Options::default(),
    )
    .unwrap();
    assert_eq!(numbers(passed), numbers(xs[0][0].clone()));
    assert_eq!(numbers(last), numbers(ys.narrow(0, 4, 1)));
}

/// `c ← tanh(W c + x)`, y = c x: every operand matters.
type Rnn = (Tensor<AD, 2>, Tensor<AD, 2>, Tensor<AD, 3>);

fn rnn(w: Tensor<AD, 2>, c: Tensor<AD, 2>, x: Tensor<AD, 2>) -> (Tensor<AD, 2>, Tensor<AD, 2>) {
    let next = (c.matmul(w) + x.clone()).tanh();
    (next.clone(), next * x)
}

fn rnn_gradients(n: usize, options: &Options) -> [Vec<f64>; 4] {
    let (w, c, xs): Rnn = (
        random([3, 3], 1).require_grad(),
        random([2, 3], 2).require_grad(),
        random([n, 2, 3], 3).require_grad(),
    );
    let (last, ys): (Tensor<AD, 2>, Tensor<AD, 3>) =
        scan(rnn, w.clone(), c.clone(), xs.clone(), options).unwrap();
    let loss = last.powi_scalar(2).sum() + (ys * random([n, 2, 3], 4)).sum();
    let grads = loss.clone().backward();
    let xs = xs.grad(&grads).map(numbers).unwrap_or_default();
    [numbers(loss), numbers(w.grad(&grads).unwrap()), numbers(c.grad(&grads).unwrap()), xs]
}

#[test]
fn every_policy_gives_the_gradient_of_the_loop() {
    for n in [1, 2, 9, 20] {
        for reverse in [false, true] {
            let options = Options::default().reverse(reverse);
            let want = rnn_gradients(n, &options.clone().memory(Memory::StoreAll));
            // A Rust loop, unrolled on the tape.
            let (w, c, xs) = (
                random::<AD, 2>([3, 3], 1).require_grad(),
                random::<AD, 2>([2, 3], 2),
                random::<AD, 3>([n, 2, 3], 3),
            );
            let (mut carry, weights) = (c, random::<AD, 3>([n, 2, 3], 4));
            let mut loss = Tensor::<AD, 1>::zeros([1], &w.device()).cast(FloatDType::F64);
            for k in 0..n {
                let t = if reverse { n - 1 - k } else { k };
                let at = |x: &Tensor<AD, 3>| x.clone().narrow(0, t, 1).reshape([2, 3]);
                let (next, y) = rnn(w.clone(), carry, at(&xs));
                loss = loss + (y * at(&weights)).sum();
                carry = next;
            }
            let grads = (loss + carry.powi_scalar(2).sum()).backward();
            close(&want[1], &numbers(w.grad(&grads).unwrap()), 1e-13);
            for memory in POLICIES {
                let own = rnn_gradients(n, &options.clone().memory(memory));
                for (own, want) in own.iter().zip(&want) {
                    close(own, want, 1e-13);
                }
            }
            // Among policies with bounded memory the sums are the same to the last bit.
            let bits = |policy| rnn_gradients(n, &options.clone().memory(Memory::Bounded(policy)));
            let one = bits(Policy::Sqrt);
            for policy in [Policy::Carries, Policy::Segment(3), Policy::Revolve(2)] {
                assert_eq!(one, bits(policy), "{policy:?} {n}");
            }
        }
    }
}

#[test]
fn numbers_of_the_field() {
    // Sum of all running sums, the product 2·3·4 and its gradient.
    for memory in POLICIES {
        let options = Options::default().memory(memory);
        let xs = floats::<AD>(&[1.0, 2.0, 3.0]).reshape([3, 1]).require_grad();
        let grads = sums(xs.clone(), &options).1.sum().backward();
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [3.0, 2.0, 1.0]);
        let xs = floats::<AD>(&[2.0, 3.0, 4.0]).require_grad();
        let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c * x, ());
        let (last, ()): (Tensor<AD, 1>, ()) =
            scan(step, (), floats(&[1.0]), xs.clone(), &options).unwrap();
        let grads = last.clone().backward();
        assert_eq!(numbers(last), [24.0]);
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [12.0, 8.0, 6.0]);
    }
}

#[test]
fn a_body_may_ignore_inputs() {
    for memory in POLICIES {
        let options = Options::default().memory(memory);
        let a = floats::<AD>(&[2.0]).require_grad();
        let b = floats::<AD>(&[5.0]).require_grad();
        let xs = floats::<AD>(&[1.0, 2.0, 3.0]).require_grad();
        // x never, b never, a only.
        let step = |(a, _b): (Tensor<AD, 1>, Tensor<AD, 1>), c: Tensor<AD, 1>, _: Tensor<AD, 1>| {
            let c = c * a;
            (c.clone(), c)
        };
        let (last, _): (Tensor<AD, 1>, Tensor<AD, 2>) =
            scan(step, (a.clone(), b.clone()), floats(&[1.0]), xs.clone(), &options).unwrap();
        let loss = last.sum() + (b.clone() + xs.clone().sum()) * 0.0;
        let grads = loss.backward();
        assert_eq!(numbers(a.grad(&grads).unwrap()), [12.0]);
        assert_eq!(numbers(b.grad(&grads).unwrap()), [0.0]);
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [0.0; 3]);
        // The carry is thrown away: nothing depends on anything.
        let step = |(): (), c: Tensor<AD, 1>, _: Tensor<AD, 1>| (c.zeros_like(), ());
        let init = floats::<AD>(&[1.0]).require_grad();
        let (last, ()): (Tensor<AD, 1>, ()) =
            scan(step, (), init.clone(), xs.clone(), &options).unwrap();
        let grads = (last + init.clone() * 0.0).backward();
        assert_eq!(numbers(init.grad(&grads).unwrap()), [0.0]);
    }
}

#[test]
fn passthroughs() {
    for memory in POLICIES {
        let options = Options::default().memory(memory).reverse(true);
        let init = floats::<AD>(&[7.0]).require_grad();
        let xs = floats::<AD>(&[1.0, 2.0, 3.0]).require_grad();
        let step = |(): (), c: Tensor<AD, 1>, x: Tensor<AD, 1>| (c.clone(), (c.clone(), x, c));
        type Out = (Tensor<AD, 1>, (Tensor<AD, 2>, Tensor<AD, 2>, Tensor<AD, 2>));
        let (last, (old, x, _)): Out = scan(step, (), init.clone(), xs.clone(), &options).unwrap();
        assert_eq!(numbers(x.clone()), [1.0, 2.0, 3.0]);
        let weights = floats::<AD>(&[1.0, 10.0, 100.0]).reshape([3, 1]);
        let grads = (last.sum() + ((old + x) * weights).sum()).backward();
        assert_eq!(numbers(init.grad(&grads).unwrap()), [112.0]);
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [1.0, 10.0, 100.0]);
    }
}

/// Σ over i of (product of the x so far)², with the inner scan in every step.
#[test]
fn scan_in_scan() {
    let outer = |memory: Memory| {
        let xs = random::<AD, 3>([5, 4, 2], 8).require_grad();
        let a = floats::<AD>(&[0.9, 1.1]).require_grad();
        let options = Options::default().memory(memory);
        let inner = options.clone();
        let step = move |a: Tensor<AD, 1>, c: Tensor<AD, 1>, x: Tensor<AD, 2>| {
            let inner_step = |a: Tensor<AD, 1>, c: Tensor<AD, 1>, x: Tensor<AD, 1>| {
                let c = (c * a + x).sin();
                (c.clone(), c)
            };
            let (c, ys): (Tensor<AD, 1>, Tensor<AD, 2>) =
                scan(inner_step, a, c, x, &inner).unwrap();
            (c, ys)
        };
        let (last, ys): (Tensor<AD, 1>, Tensor<AD, 3>) =
            scan(step, a.clone(), floats(&[0.1, 0.2]), xs.clone(), &options).unwrap();
        let grads = (last.sum() + ys.powi_scalar(2).sum()).backward();
        [numbers(a.grad(&grads).unwrap()), numbers(xs.grad(&grads).unwrap())]
    };
    let want = outer(Memory::StoreAll);
    for memory in POLICIES {
        for (own, want) in outer(memory).iter().zip(&want) {
            close(own, want, 1e-13);
        }
    }
}

#[test]
fn several_threads_train_at_once() {
    let want = rnn_gradients(16, &Options::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(rnn_gradients(16, &Options::default()), want);
                }
            });
        }
    });
}

#[test]
fn second_order() {
    type A2 = Autodiff<AD>;
    // y = Σ c_t² with c ← sin(a c + x): the gradient by a, and its derivative by a.
    let first_and_second = |memory: Memory| {
        let a: Tensor<AD, 1> = floats::<AD>(&[0.7]).require_grad();
        let top: Tensor<A2, 1> = Tensor::from_inner(a.clone()).require_grad();
        let xs: Tensor<A2, 1> = floats(&[0.3, -0.2, 0.5, 0.1]);
        let step = |a: Tensor<A2, 1>, c: Tensor<A2, 1>, x: Tensor<A2, 1>| {
            let c = (a * c + x).sin();
            (c.clone(), c)
        };
        let (_, ys): (Tensor<A2, 1>, Tensor<A2, 2>) =
            scan(step, top.clone(), floats(&[0.4]), xs, &Options::default().memory(memory))
                .unwrap();
        let grads = ys.powi_scalar(2).sum().backward();
        let slope: Tensor<AD, 1> = top.grad(&grads).unwrap();
        let second = slope.clone().backward();
        (numbers(slope)[0], numbers(a.grad(&second).unwrap())[0])
    };
    let value = |a: f64| {
        let (mut c, mut sum) = (0.4f64, 0.0);
        for x in [0.3, -0.2, 0.5, 0.1] {
            c = (a * c + x).sin();
            sum += c * c;
        }
        sum
    };
    let h = 1e-4;
    let slope = (value(0.7 + h) - value(0.7 - h)) / (2.0 * h);
    let curvature = (value(0.7 + h) - 2.0 * value(0.7) + value(0.7 - h)) / (h * h);
    for memory in [Memory::StoreAll, Memory::Bounded(Policy::Sqrt)] {
        let (first, second) = first_and_second(memory);
        assert!(
            (first - slope).abs() < 1e-7 && (second - curvature).abs() < 1e-6,
            "{first} {second}"
        );
    }
}

/// 10⁵ steps: the body runs twice per step and never with more than a span of its carries.
#[test]
fn long_scans_train() {
    let made = Arc::new(AtomicUsize::new(0));
    let n = if cfg!(debug_assertions) { 5_000 } else { 100_000 };
    let count = made.clone();
    let step = move |a: Tensor<AD, 1>, c: Tensor<AD, 1>, (): ()| {
        count.fetch_add(1, SeqCst);
        (c * a, ())
    };
    let a = floats::<AD>(&[0.9999]).require_grad();
    let options = Options::default().length(n);
    let (last, ()): (Tensor<AD, 1>, ()) =
        scan(step, a.clone(), floats(&[1.0]), (), &options).unwrap();
    let grads = last.backward();
    let want = n as f64 * 0.9999f64.powi(n as i32 - 1);
    let own = numbers(a.grad(&grads).unwrap())[0];
    assert!((own / want - 1.0).abs() < 1e-9, "{own} {want}");
    assert_eq!(made.load(SeqCst), 2 * n);
}

#[test]
fn a_carry_that_changes_is_an_error() {
    for memory in [Memory::StoreAll, Memory::Bounded(Policy::Sqrt)] {
        let options = Options::default().memory(memory).length(3);
        let step = |(): (), (a, (b, c)): Pair, (): ()| {
            (
                (
                    a.reshape([2, 1]).squeeze::<1>(),
                    (b.clone().repeat_dim(0, 2), c.cast(FloatDType::F32)),
                ),
                (),
            )
        };
        type Pair = (Tensor<AD, 1>, (Tensor<AD, 1>, Tensor<AD, 1>));
        let one = || floats::<AD>(&[1.0]);
        let init = (floats::<AD>(&[1.0, 2.0]), (one().require_grad(), one()));
        let error = scan::<AD, _, _, Pair, _, _, _, ()>(step, (), init, (), &options).err();
        let Some(ScanError::Carry { leaves }) = &error else { panic!("{error:?}") };
        let paths: Vec<&str> = leaves.iter().map(|leaf| leaf.path.as_str()).collect();
        assert_eq!(paths, [".1.0", ".1.1"]);
        let text = error.unwrap().to_string();
        assert!(text.contains("[1] became") && text.contains("F64 became F32"), "{text}");
    }
}

#[test]
fn what_disagrees_is_an_error() {
    let step = |(): (), c: Tensor<AD, 1>, _: (Tensor<AD, 1>, Tensor<AD, 1>)| (c, ());
    let xs = || (floats::<AD>(&[1.0, 2.0]), floats::<AD>(&[1.0, 2.0, 3.0]));
    let error =
        scan::<AD, _, _, _, _, _, _, ()>(step, (), floats(&[0.0]), xs(), &Options::default());
    assert_eq!(error.err(), Some(ScanError::LengthMismatch { given: None, leading: vec![2, 3] }));
    let same = (xs().0, xs().0);
    let options = Options::default().length(5);
    let error = scan::<AD, _, _, _, _, _, _, ()>(step, (), floats(&[0.0]), same, &options).err();
    assert_eq!(error, Some(ScanError::LengthMismatch { given: Some(5), leading: vec![2, 2] }));
    // A matrix asked for where elements are vectors.
    let step = |(): (), c: Tensor<AD, 1>, _: Tensor<AD, 2>| (c, ());
    let xs = random::<AD, 2>([3, 2], 1);
    let error = scan::<AD, _, _, _, _, _, _, ()>(step, (), floats(&[0.0]), xs, &Options::default());
    assert!(matches!(error.err(), Some(ScanError::Rank { rank: 2, .. })));
}

#[test]
fn captured_tracked_tensors_are_an_error() {
    let a = floats::<AD>(&[2.0]).require_grad();
    let init = floats::<AD>(&[1.0]).require_grad();
    let captured = a.clone();
    let step = move |(): (), c: Tensor<AD, 1>, (): ()| (c * captured.clone(), ());
    let options = Options::default().length(3);
    let error =
        scan::<AD, _, _, _, _, _, _, ()>(step.clone(), (), init.clone(), (), &options).err();
    assert!(matches!(error, Some(ScanError::Captured { .. })), "{error:?}");
    // Everything is on the tape anyway.
    let options = options.memory(Memory::StoreAll);
    let (last, ()): (Tensor<AD, 1>, ()) = scan(step, (), init, (), &options).unwrap();
    assert_eq!(numbers(a.grad(&last.backward()).unwrap()), [12.0]);
}

#[test]
fn paths_can_be_required() {
    let step = |(): (), c: Tensor<AD, 1>, (): ()| (c, ());
    let run = |paths: &[ScanPath]| {
        let options = Options::default().length(2).accept(paths);
        scan::<AD, _, _, _, _, _, _, ()>(step, (), floats(&[0.0]), (), &options).map(|_| ())
    };
    assert!(run(&[ScanPath::Fallback]).is_ok());
    assert!(run(&[ScanPath::Fused, ScanPath::Fallback]).is_ok());
    for paths in [&[][..], &[ScanPath::Fused]] {
        let error = run(paths).unwrap_err();
        assert!(error.to_string().contains("Fallback (body_not_traced)"), "{error}");
    }
}

#[test]
fn recurrences_in_one_kernel_are_the_scan() {
    fn on<B: AutodiffBackend + ScanBackend + burn_t4a::ext::operation::Operations>() {
        let [a, b] = [1, 2].map(|seed| random::<B, 2>([9, 3], seed).require_grad());
        let h0 = random::<B, 2>([1, 3], 3).require_grad();
        let h = fused::linear_recurrence(a.clone(), b.clone(), Some(h0.clone()), 0, false).unwrap();
        let step = |(): (), h: Tensor<B, 1>, (a, b): (Tensor<B, 1>, Tensor<B, 1>)| {
            let h = a * h + b;
            (h.clone(), h)
        };
        let memory = Options::default().memory(Memory::StoreAll);
        let (_, want): (Tensor<B, 1>, Tensor<B, 2>) =
            scan(step, (), h0.clone().reshape([3]), (a.clone(), b.clone()), &memory).unwrap();
        close(&numbers(h.clone()), &numbers(want.clone()), 1e-14);
        let (own, want) = (h.powi_scalar(2).sum().backward(), want.powi_scalar(2).sum().backward());
        for x in [a, b, h0] {
            close(&numbers(x.grad(&own).unwrap()), &numbers(x.grad(&want).unwrap()), 1e-13);
        }
        // The gradient of the sum of running products through a zero.
        let x = floats::<B>(&[2.0, 0.0, 3.0]).require_grad();
        let y = fused::cumulative(Running::Product, x.clone(), 0, false).unwrap();
        assert_eq!(numbers(x.grad(&y.sum().backward()).unwrap()), [1.0, 8.0, 0.0]);
    }
    on::<AD>();
    on::<Autodiff<Flex>>();
    on::<Autodiff<BurnT4a, BalancedCheckpointing>>();
}

#[test]
fn layers_and_filters_agree_between_backends() {
    fn layer<B: AutodiffBackend + burn_t4a::ext::operation::Operations>() -> Vec<Vec<f64>> {
        let z = random::<B, 3>([4, 2, 12], 1).require_grad();
        let w = random::<B, 2>([3, 12], 2).require_grad();
        let first = vec![random::<B, 2>([2, 3], 3), random::<B, 2>([2, 3], 4)];
        let out = fused::recurrent(Cell::Lstm, z.clone(), w.clone(), None, first, false).unwrap();
        let h = out[0].clone();
        let grads = out[1].clone().powi_scalar(2).sum().backward();
        vec![numbers(h), numbers(z.grad(&grads).unwrap()), numbers(w.grad(&grads).unwrap())]
    }
    fn filter<B: AutodiffBackend + burn_t4a::ext::operation::Operations>() -> Vec<Vec<f64>> {
        let unit = |n: usize| Tensor::<B, 2>::eye(n, &Default::default()).cast(FloatDType::F64);
        let noise = unit(2).require_grad();
        let system = System {
            transition: random::<B, 2>([2, 2], 1),
            process_noise: noise.clone(),
            observation: random::<B, 2>([1, 2], 2),
            observation_noise: unit(1),
        };
        let y = random::<B, 3>([2, 5, 1], 3);
        let (mean, _, likelihood) =
            fused::kalman_filter(system, y, floats::<B>(&[0.1, 0.2]), unit(2)).unwrap();
        let grads = likelihood.clone().sum().backward();
        vec![numbers(mean), numbers(likelihood), numbers(noise.grad(&grads).unwrap())]
    }
    let pairs =
        [(layer::<AD>(), layer::<Autodiff<Flex>>()), (filter::<AD>(), filter::<Autodiff<Flex>>())];
    for (own, want) in pairs {
        for (own, want) in own.into_iter().zip(want) {
            close(&own, &want, 1e-12);
        }
    }
}
