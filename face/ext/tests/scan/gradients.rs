//! Reverse mode: memory policies, threads, nesting, second order.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use super::*;

fn rnn_gradients(n: usize, options: &Options) -> [Vec<f64>; 4] {
    let (w, c, xs): Rnn = (
        random([3, 3], 1).require_grad(),
        random([2, 3], 2).require_grad(),
        random([n, 2, 3], 3).require_grad(),
    );
    let (last, ys): (Tensor<2>, Tensor<3>) =
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
            // A loop in Rust, unrolled on the tape.
            let (w, c, xs) = (
                random::<2>([3, 3], 1).require_grad(),
                random::<2>([2, 3], 2),
                random::<3>([n, 2, 3], 3),
            );
            let (mut carry, weights) = (c, random::<3>([n, 2, 3], 4));
            let mut loss = Tensor::<1>::zeros([1], &w.device()).cast(FloatDType::F64);
            for k in 0..n {
                let t = if reverse { n - 1 - k } else { k };
                let at = |x: &Tensor<3>| x.clone().narrow(0, t, 1).reshape([2, 3]);
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
            // Policies with bounded memory agree to the last bit.
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
        let xs = floats(&[1.0, 2.0, 3.0]).reshape([3, 1]).require_grad();
        let grads = sums(xs.clone(), &options).1.sum().backward();
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [3.0, 2.0, 1.0]);
        let xs = floats(&[2.0, 3.0, 4.0]).require_grad();
        let step = |(): (), c: Tensor<1>, x: Tensor<1>| (c * x, ());
        let (last, ()): (Tensor<1>, ()) =
            scan(step, (), floats(&[1.0]), xs.clone(), &options).unwrap();
        let grads = last.clone().backward();
        assert_eq!(numbers(last), [24.0]);
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [12.0, 8.0, 6.0]);
    }
}

#[test]
fn gradient_through_ys_unlike_the_carry() {
    // y = 2 c + x with c the sum: [1 + 2·1, 1 + 2·2, 1 + 2·3] from the end.
    for memory in POLICIES {
        for (reverse, want) in [(false, [7.0, 5.0, 3.0]), (true, [3.0, 5.0, 7.0])] {
            let xs = floats(&[1.0, 2.0, 3.0]).require_grad();
            let step = |(): (), c: Tensor<1>, x: Tensor<1>| {
                let c = c + x.clone();
                (c.clone(), (c * 2.0 + x).reshape([1, 1]))
            };
            let options = Options::default().memory(memory).reverse(reverse);
            let (_, ys): (Tensor<1>, Tensor<3>) =
                scan(step, (), floats(&[0.0]), xs.clone(), &options).unwrap();
            assert_eq!(numbers(xs.grad(&ys.sum().backward()).unwrap()), want);
        }
    }
}

#[test]
fn views_have_gradients() {
    let x = random::<2>([6, 4], 1).require_grad();
    type View = fn(Tensor<2>) -> Tensor<2>;
    let views: [View; 4] = [
        |x| x.narrow(0, 1, 4),
        |x| x.transpose(),
        |x| x.reshape([8, 3]),
        |x| x.narrow(1, 1, 2).flip([0]),
    ];
    for view in views {
        let gradient = |memory| {
            let ys = sums(view(x.clone()), &Options::default().memory(memory)).1;
            numbers(x.grad(&ys.powi_scalar(2).sum().backward()).unwrap())
        };
        close(&gradient(Memory::default()), &gradient(Memory::StoreAll), 1e-12);
    }
}

#[test]
fn a_body_may_ignore_inputs() {
    for memory in POLICIES {
        let options = Options::default().memory(memory);
        let a = floats(&[2.0]).require_grad();
        let b = floats(&[5.0]).require_grad();
        let xs = floats(&[1.0, 2.0, 3.0]).require_grad();
        // The carry is independent of x and b and depends on a only.
        let step = |(a, _b): (Tensor<1>, Tensor<1>), c: Tensor<1>, _: Tensor<1>| {
            let c = c * a;
            (c.clone(), c)
        };
        let (last, _): (Tensor<1>, Tensor<2>) =
            scan(step, (a.clone(), b.clone()), floats(&[1.0]), xs.clone(), &options).unwrap();
        let loss = last.sum() + (b.clone() + xs.clone().sum()) * 0.0;
        let grads = loss.backward();
        assert_eq!(numbers(a.grad(&grads).unwrap()), [12.0]);
        assert_eq!(numbers(b.grad(&grads).unwrap()), [0.0]);
        assert_eq!(numbers(xs.grad(&grads).unwrap()), [0.0; 3]);
        // The body discards the carry, so nothing depends on the inputs.
        let step = |(): (), c: Tensor<1>, _: Tensor<1>| (c.zeros_like(), ());
        let init = floats(&[1.0]).require_grad();
        let (last, ()): (Tensor<1>, ()) =
            scan(step, (), init.clone(), xs.clone(), &options).unwrap();
        let grads = (last + init.clone() * 0.0).backward();
        assert_eq!(numbers(init.grad(&grads).unwrap()), [0.0]);
    }
}

/// Σᵢ (product of the x up to i)², with the inner scan in every step.
#[test]
fn scan_in_scan() {
    let outer = |memory: Memory| {
        let xs = random::<3>([5, 4, 2], 8).require_grad();
        let a = floats(&[0.9, 1.1]).require_grad();
        let options = Options::default().memory(memory);
        let inner = options.clone();
        let step = move |a: Tensor<1>, c: Tensor<1>, x: Tensor<2>| {
            let inner_step = |a: Tensor<1>, c: Tensor<1>, x: Tensor<1>| {
                let c = (c * a + x).sin();
                (c.clone(), c)
            };
            let (c, ys): (Tensor<1>, Tensor<2>) = scan(inner_step, a, c, x, &inner).unwrap();
            (c, ys)
        };
        let (last, ys): (Tensor<1>, Tensor<3>) =
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

/// 10⁵ steps: the body runs twice per step with at most one span of carries in memory. A step runs once more if
/// passes of other tests hide whether it ran one.
#[test]
fn long_scans_train() {
    let made = Arc::new(AtomicUsize::new(0));
    let n = if cfg!(debug_assertions) { 5_000 } else { 100_000 };
    let count = made.clone();
    let step = move |a: Tensor<1>, c: Tensor<1>, (): ()| {
        count.fetch_add(1, SeqCst);
        (c * a, ())
    };
    let a = floats(&[0.9999]).require_grad();
    let options = Options::default().length(n);
    let (last, ()): (Tensor<1>, ()) = scan(step, a.clone(), floats(&[1.0]), (), &options).unwrap();
    let grads = last.backward();
    let want = n as f64 * 0.9999f64.powi(n as i32 - 1);
    let own = numbers(a.grad(&grads).unwrap())[0];
    assert!((own / want - 1.0).abs() < 1e-9, "{own} {want}");
    let made = made.load(SeqCst);
    assert!((2 * n..2 * n + n / 10).contains(&made), "{made} of {n}");
}

/// Gradients of a scan whose body scans, and the number of calls of the body.
#[test]
fn scans_nest_and_run_their_steps_twice() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let outer = move |(a,): (Tensor<1>,), c: Tensor<1>, x: Tensor<1>| {
        counted.fetch_add(1, SeqCst);
        let inner = |(a,): (Tensor<1>,), c: Tensor<1>, x: Tensor<1>| (a * c + x, ());
        let (c, ()): (Tensor<1>, ()) =
            scan(inner, (a,), c, x.repeat_dim(0, 3), &Options::default()).unwrap();
        (c, ())
    };
    let a = floats(&[0.5]).require_grad();
    let one = floats(&[1.0]);
    let xs = one.clone().repeat_dim(0, 4);
    let options = Options::default().memory(Memory::Bounded(Policy::Segment(2)));
    let (last, ()): (Tensor<1>, ()) = scan(outer, (a.clone(),), one, xs, &options).unwrap();
    // Twelve steps of c ← a c + 1 from 1.
    let sum = |slope: bool| -> f64 {
        let power = |k: i32| if slope { k as f64 * 0.5f64.powi(k - 1) } else { 0.5f64.powi(k) };
        (0..=12).map(power).sum()
    };
    close(&numbers(last.clone()), &[sum(false)], 1e-13);
    assert_eq!(calls.load(SeqCst), 4);
    let gradient = a.grad(&last.backward()).unwrap();
    close(&numbers(gradient), &[sum(true)], 1e-13);
    // Spans of two steps are recomputed once.
    assert_eq!(calls.load(SeqCst), 8);
}

#[test]
fn length_0() {
    for memory in POLICIES {
        let options = Options::default().memory(memory);
        let init = floats(&[3.0, 4.0]).require_grad();
        let step = |(): (), c: Tensor<1>, x: Tensor<1>| {
            (c.clone(), (c.clone(), vec![x.clone().reshape([1, 2]), x.reshape([1, 2])]))
        };
        let xs = random::<2>([0, 2], 1);
        type Out = (Tensor<1>, (Tensor<2>, Vec<Tensor<3>>));
        let (last, (y, z)): Out = scan(step, (), init.clone(), xs, &options).unwrap();
        assert_eq!((y.dims(), z[0].dims(), z.len()), ([0, 2], [0, 1, 2], 2));
        let grads = last.sum().backward();
        assert_eq!(numbers(init.grad(&grads).unwrap()), [1.0, 1.0]);
    }
}

/// A separate reverse pass per scan would take time quadratic in the number of scans.
#[test]
fn short_scans_are_recorded_as_they_are() {
    let calls = Arc::new(AtomicUsize::new(0));
    let gradient = |n: usize, count: usize, options: &Options| {
        let a = floats(&[0.5]).require_grad();
        let mut c = floats(&[1.0]);
        let before = calls.load(SeqCst);
        for _ in 0..count {
            let calls = calls.clone();
            let step = move |a: Tensor<1>, c: Tensor<1>, x: Tensor<1>| {
                calls.fetch_add(1, SeqCst);
                (c * a + x, ())
            };
            let xs = Tensor::cat(vec![floats(&[1.5]); n], 0);
            (c, ()) = scan(step, a.clone(), c, xs, options).unwrap();
        }
        let gradient = numbers(a.grad(&c.backward()).unwrap())[0];
        (gradient, calls.load(SeqCst) - before)
    };
    for count in [1, 50] {
        for n in [1, 3, 4, 5] {
            let (mut c, mut dc) = (1.0, 0.0);
            for _ in 0..n * count {
                (c, dc) = (0.5 * c + 1.5, 0.5 * dc + c);
            }
            let (found, calls) = gradient(n, count, &Options::default());
            close(&[found], &[dc], 1e-13);
            // One extra step inspects the body; longer scans repeat their steps in the reverse pass.
            assert!(if n <= 4 { calls == count * (n + 1) } else { calls >= 2 * count * n });
            let (found, _) = gradient(n, count, &Options::default().memory(Memory::default()));
            close(&[found], &[dc], 1e-13);
        }
    }
}
