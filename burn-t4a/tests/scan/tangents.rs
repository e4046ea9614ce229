//! Forward mode.

use super::*;
use burn_t4a::ext::linalg;
use burn_t4a::ext::scan::{Pushed, ScanError, scan_jvp};

type A2 = Autodiff<AD>;
type Carry = Tensor<A2, 1>;

fn cumulative_sum(x: &[f64], dx: &[f64], reverse: bool) -> [Vec<f64>; 4] {
    let step = |(): (), c: Carry, x: Carry| {
        let c = c + x;
        (c.clone(), c)
    };
    let options = Options::default().reverse(reverse);
    let tangents = (None, None, Some(floats(dx)));
    let ((last, ys), (of_last, of_ys)): Pushed<Carry, Tensor<A2, 2>> =
        scan_jvp(step, ((), floats::<A2>(&[0.0]), floats(x)), tangents, &options).unwrap();
    [numbers(last), numbers(ys), numbers(of_last), numbers(of_ys)]
}

#[test]
fn jvp_of_cumulative_sum_respects_tangents_and_order() {
    let x = [1.0, 2.0, 3.0];
    let [last, ys, of_last, of_ys] = cumulative_sum(&x, &[1.0, 1.0, 1.0], false);
    assert_eq!((last, ys), (vec![6.0], vec![1.0, 3.0, 6.0]));
    assert_eq!((of_last, of_ys), (vec![3.0], vec![1.0, 2.0, 3.0]));
    assert_eq!(cumulative_sum(&x, &[1.0, 0.0, 10.0], false)[3], [1.0, 1.0, 11.0]);
    // In a reversed scan the first element is part of the last sum only.
    assert_eq!(cumulative_sum(&x, &[1.0, 0.0, 0.0], true)[3], [1.0, 0.0, 0.0]);
    assert_eq!(cumulative_sum(&x, &[0.0, 0.0, 1.0], true)[3], [1.0, 1.0, 1.0]);
}

#[test]
fn jvp_of_cumulative_product() {
    let step = |(): (), c: Carry, x: Carry| (c * x, ());
    let primals = ((), floats::<A2>(&[1.0]), floats(&[2.0, 3.0, 4.0]));
    let tangents = (None, None, Some(floats(&[1.0; 3])));
    let ((last, ()), (tangent, ())): Pushed<Carry, ()> =
        scan_jvp(step, primals, tangents, &Options::default()).unwrap();
    assert_eq!((numbers(last), numbers(tangent)), (vec![24.0], vec![26.0]));
}

/// A body with matrices and a factorisation, with all or some operands active.
fn body(
    w: Tensor<A2, 2>,
    (c, count): (Tensor<A2, 2>, Carry),
    x: Tensor<A2, 2>,
) -> ((Tensor<A2, 2>, Carry), (Tensor<A2, 2>, Carry)) {
    let unit = Tensor::<A2, 2>::eye(3, &Default::default()).cast(FloatDType::F64);
    let s = c.clone().transpose().matmul(c.clone()) + unit;
    let l = linalg::cholesky(s).unwrap();
    let next = (c.matmul(w).matmul(l.clone()) + x.clone()).tanh();
    ((next, count.clone() + 1.0), (l * x.sum().reshape([1, 1]), count))
}

type Everything = Pushed<(Tensor<A2, 2>, Carry), (Tensor<A2, 3>, Tensor<A2, 2>)>;

#[test]
fn tangents_are_differences() {
    let n = 6;
    let primals = |h: f64, active: [bool; 3]| {
        let moved = |x: Tensor<A2, 2>, seed, on: bool| {
            let v = random::<A2, 2>([3, 3], seed);
            if on { x + v * h } else { x }
        };
        let w = moved(random([3, 3], 1), 11, active[0]);
        let c = moved(random([3, 3], 2), 12, active[1]);
        let x = random::<A2, 3>([n, 3, 3], 3);
        let x = if active[2] { x + random::<A2, 3>([n, 3, 3], 13) * h } else { x };
        (w, (c, floats(&[0.0])), x)
    };
    for reverse in [false, true] {
        for active in [[true; 3], [true, false, false], [false, true, false], [false, false, true]]
        {
            let options = Options::default().reverse(reverse);
            let tangents = (
                active[0].then(|| random([3, 3], 11)),
                active[1].then(|| (random([3, 3], 12), floats(&[0.0]))),
                active[2].then(|| random([n, 3, 3], 13)),
            );
            let ((last, ys), (of_last, of_ys)): Everything =
                scan_jvp(body, primals(0.0, active), tangents, &options).unwrap();
            let at = |h: f64| {
                let (w, c, x) = primals(h, active);
                type Out = ((Tensor<A2, 2>, Carry), (Tensor<A2, 3>, Tensor<A2, 2>));
                let (last, ys): Out = scan(body, w, c, x, &options).unwrap();
                [numbers(last.0), numbers(ys.0)]
            };
            let h = 1e-5;
            let want = at(h).into_iter().zip(at(-h)).map(|(a, b)| -> Vec<f64> {
                a.iter().zip(&b).map(|(a, b)| (a - b) / (2.0 * h)).collect()
            });
            for (own, want) in [numbers(of_last.0), numbers(of_ys.0)].iter().zip(want) {
                close(own, &want, 1e-8);
            }
            let [value, values] = at(0.0);
            assert_eq!((numbers(last.0), numbers(ys.0)), (value, values));
            // Results that depend on no perturbed operand have tangent 0.
            assert_eq!((numbers(of_last.1), numbers(of_ys.1)), (vec![0.0], vec![0.0; n]));
        }
    }
}

/// ⟨v, J u⟩ = ⟨Jᵀ v, u⟩, the right side by the reverse pass in bounded memory.
#[test]
fn tangents_and_cotangents_are_adjoint() {
    let n = 20;
    let step = |w: Tensor<A2, 2>, c: Tensor<A2, 2>, x: Tensor<A2, 2>| {
        let next = (c.matmul(w) + x.clone()).tanh();
        (next.clone(), next * x)
    };
    let tangents =
        (Some(random([3, 3], 11)), Some(random([2, 3], 12)), Some(random([n, 2, 3], 13)));
    let primals = (random::<A2, 2>([3, 3], 1), random([2, 3], 2), random([n, 2, 3], 3));
    let (_, (of_last, of_ys)): Pushed<Tensor<A2, 2>, Tensor<A2, 3>> =
        scan_jvp(step, primals, tangents, &Options::default()).unwrap();
    let forward = (of_last * random([2, 3], 21)).sum() + (of_ys * random([n, 2, 3], 22)).sum();
    let (w, c, xs): Rnn = (
        random([3, 3], 1).require_grad(),
        random([2, 3], 2).require_grad(),
        random([n, 2, 3], 3).require_grad(),
    );
    let (last, ys): (Tensor<AD, 2>, Tensor<AD, 3>) =
        scan(rnn, w.clone(), c.clone(), xs.clone(), &Options::default()).unwrap();
    let loss = (last * random([2, 3], 21)).sum() + (ys * random([n, 2, 3], 22)).sum();
    let grads = loss.backward();
    let back = (w.grad(&grads).unwrap() * random([3, 3], 11)).sum()
        + (c.grad(&grads).unwrap() * random([2, 3], 12)).sum()
        + (xs.grad(&grads).unwrap() * random([n, 2, 3], 13)).sum();
    close(&numbers(forward), &numbers(back), 1e-12);
}

#[test]
fn jvp_of_a_scan_in_a_scan() {
    // The sum of sums of sums: inner scans are nodes of the tape under every policy.
    for memory in [Memory::StoreAll, Memory::default()] {
        let inner = Options::default().memory(memory);
        let step = move |(): (), c: Carry, x: Carry| {
            let (last, ys) = sums(x.reshape([3, 1]), &inner);
            (c + last * ys.sum(), ())
        };
        let x = floats::<A2>(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([2, 3]);
        let tangent = floats::<A2>(&[1.0, 0.0, 0.0, 0.0, 0.0, 1.0]).reshape([2, 3]);
        let ((last, ()), (of_last, ())): Pushed<Carry, ()> = scan_jvp(
            step,
            ((), floats::<A2>(&[0.0]), x),
            (None, None, Some(tangent)),
            &Options::default(),
        )
        .unwrap();
        // Rows (a, b, c): (a + b + c)(3a + 2b + c).
        assert_eq!(numbers(last), [6.0 * 10.0 + 15.0 * 28.0]);
        assert_eq!(numbers(of_last), [10.0 + 3.0 * 6.0 + 28.0 + 15.0]);
    }
}

#[test]
fn jvp_without_steps() {
    let step = |(): (), c: Carry, x: Carry| (c.clone() * x.clone(), x);
    let primals = ((), floats::<A2>(&[2.0]), floats(&[]));
    let tangents = (None, Some(floats(&[3.0])), None);
    let ((last, ys), (of_last, of_ys)): Pushed<Carry, Tensor<A2, 2>> =
        scan_jvp(step, primals, tangents, &Options::default()).unwrap();
    assert_eq!((numbers(last), numbers(of_last)), (vec![2.0], vec![3.0]));
    assert_eq!((ys.dims(), of_ys.dims()), ([0, 1], [0, 1]));
}

#[test]
fn tangents_that_do_not_fit_are_an_error() {
    let step = |(): (), c: Carry, x: Carry| (c + x, ());
    let run = |init: Carry, tangent: Carry| {
        let primals = ((), init, floats::<A2>(&[1.0, 2.0]));
        let out: Result<Pushed<Carry, ()>, _> =
            scan_jvp(step, primals, (None, Some(tangent), None), &Options::default());
        out.err()
    };
    let one = || floats::<A2>(&[1.0]);
    assert_eq!(run(one(), one()), None);
    for wrong in [floats(&[1.0, 1.0]), one().cast(FloatDType::F32)] {
        let error = run(one(), wrong);
        assert!(matches!(error, Some(ScanError::Tangent { what: "init", .. })), "{error:?}");
    }
    let lower = Tensor::from_inner(floats::<AD>(&[1.0]).require_grad());
    for tracked in [one().require_grad(), lower] {
        assert_eq!(run(tracked, one()), Some(ScanError::Tracked { what: "init" }));
    }
}
