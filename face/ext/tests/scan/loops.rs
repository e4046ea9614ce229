//! `while_loop`, `fori_loop`, `cond` and `switch` against plain Rust.

use burn_backend::DType;
use burn_tensor::{Bool, Int};

use super::ext::scan::{Branch, ScanError, cond, fori_loop, switch, while_loop};
use super::*;

fn int(value: i64) -> Tensor<1, Int> {
    Tensor::from_data([value], (&device(), DType::I64))
}

fn value(x: Tensor<1, Int>) -> i64 {
    x.into_data().iter::<i64>().next().unwrap()
}

/// x ← x − (x³ − a) / (3 x²) while |x³ − a| is large, with the number of steps.
type Newton = (Tensor<1>, Tensor<1, Int>);

fn newton(a: Tensor<1>, x: Tensor<1>, options: &Options) -> ext::scan::Result<Newton> {
    let far = |a: Tensor<1>, (x, _): Newton| (x.powi_scalar(3) - a).abs().greater_elem(1e-4);
    let step = |a: Tensor<1>, (x, n): Newton| {
        let slope = x.clone().powi_scalar(2) * 3.0;
        (x.clone() - (x.powi_scalar(3) - a) / slope, n + 1)
    };
    while_loop(far, step, a, (x, int(0)), options)
}

/// The same in Rust: x, the derivatives of these steps with respect to a and x₀, and the number of steps.
fn by_hand(a: f64, start: f64) -> (f64, [f64; 2], i64) {
    let (mut x, mut of, mut steps) = (start, [0.0, 1.0], 0);
    while (x.powi(3) - a).abs() > 1e-4 {
        let of_x = 2.0 / 3.0 - 2.0 * a / (3.0 * x.powi(3));
        of = [of_x * of[0] + 1.0 / (3.0 * x * x), of_x * of[1]];
        x -= (x.powi(3) - a) / (3.0 * x * x);
        steps += 1;
    }
    (x, of, steps)
}

#[test]
fn a_loop_takes_as_many_steps_as_its_test_says() {
    for (a, start) in [(2.0, 1.0), (27.0, 100.0), (8.0, 2.0), (0.001, 5.0)] {
        let (want, _, steps) = by_hand(a, start);
        let (x, n) = newton(floats(&[a]), floats(&[start]), &Options::default()).unwrap();
        close(&numbers(x), &[want], 1e-14);
        assert_eq!(value(n), steps);
    }
}

#[test]
fn gradients_of_a_loop_are_those_of_its_steps() {
    for (a, start) in [(2.0, 1.0), (27.0, 100.0), (8.0, 2.0)] {
        let (_, want, _) = by_hand(a, start);
        for memory in POLICIES {
            let options = Options::default().memory(memory);
            let (a, start) = (floats(&[a]).require_grad(), floats(&[start]).require_grad());
            let (x, _) = newton(a.clone(), start.clone(), &options).unwrap();
            let found = x.backward();
            let of = |x: &Tensor<1>| x.grad(&found).map_or(0.0, |g| numbers(g)[0]);
            close(&[of(&a), of(&start)], &want, 1e-12);
        }
    }
}

#[test]
fn a_loop_that_does_not_end_is_an_error() {
    let always = |(): (), x: Tensor<1>| x.clone().equal(x);
    let step = |(): (), x: Tensor<1>| x + 1.0;
    for tracked in [false, true] {
        let x = floats(&[0.0]);
        let x = if tracked { x.require_grad() } else { x };
        let options = Options::default().limit(700);
        let error = while_loop(always, step, (), x, &options).err();
        assert_eq!(error, Some(ScanError::Endless { limit: 700 }));
    }
    // As many steps as the limit allows is no error.
    let below = |(): (), x: Tensor<1>| x.lower_elem(700.0);
    let options = Options::default().limit(700);
    let x = while_loop(below, step, (), floats(&[0.0]).require_grad(), &options).unwrap();
    assert_eq!(numbers(x), [700.0]);
}

#[test]
fn a_test_is_one_truth_value() {
    let two = |(): (), x: Tensor<1>| x.lower_elem(0.0);
    let step = |(): (), x: Tensor<1>| x;
    let error = while_loop(two, step, (), floats(&[1.0, 2.0]), &Options::default()).err();
    let what = "the test of a loop";
    assert_eq!(error, Some(ScanError::NotOne { what, shapes: vec![vec![2]] }));
}

#[test]
fn a_loop_over_a_range() {
    // Σ i xⁱ for i = 1 … 9, and its derivative.
    let sum = |x: Tensor<1>| {
        let step = |x: Tensor<1>, (sum, power): (Tensor<1>, Tensor<1>), i: Tensor<1, Int>| {
            let power = power * x;
            (sum + power.clone() * i.float().cast(DType::F64), power)
        };
        let zero = x.zeros_like();
        let one = x.ones_like();
        fori_loop(1..10, step, x, (zero, one), &Options::default()).unwrap().0
    };
    let x = floats(&[0.7]).require_grad();
    let y = sum(x.clone());
    let want: f64 = (1..10).map(|i| i as f64 * 0.7f64.powi(i)).sum();
    let slope: f64 = (1..10).map(|i| (i * i) as f64 * 0.7f64.powi(i - 1)).sum();
    close(&numbers(y.clone()), &[want], 1e-14);
    close(&numbers(x.grad(&y.backward()).unwrap()), &[slope], 1e-13);
    // An empty range, including one whose end is before its start, leaves the carry unchanged.
    for end in [3, -1] {
        let step = |(): (), c: Tensor<1>, i: Tensor<1, Int>| c * i.float().cast(DType::F64);
        let c = fori_loop(3..end, step, (), floats(&[5.0]), &Options::default()).unwrap();
        assert_eq!(numbers(c), [5.0]);
    }
    let nowhere =
        fori_loop(0..3, |(): (), (): (), _: Tensor<1, Int>| (), (), (), &Options::default());
    assert_eq!(nowhere, Err(ScanError::LengthRequired));
}

#[test]
fn a_condition_takes_one_branch_and_its_gradient() {
    let f = |x: Tensor<1>| -> Tensor<1> {
        let positive = x.clone().greater_elem(0.0);
        cond(positive, |x: Tensor<1>| x.sqrt(), |x: Tensor<1>| x.exp() * 2.0, x).unwrap()
    };
    for (x, want, slope) in [(4.0, 2.0, 0.25), (-1.0, 2.0 * (-1f64).exp(), 2.0 * (-1f64).exp())] {
        let x = floats(&[x]).require_grad();
        let y = f(x.clone());
        close(&numbers(y.clone()), &[want], 1e-15);
        // The square root of a negative number would be NaN.
        close(&numbers(x.grad(&y.backward()).unwrap()), &[slope], 1e-15);
    }
}

#[test]
fn an_index_beyond_the_branches_takes_the_nearest() {
    type Out = (Tensor<1>, Tensor<1, Int>);
    let branches = || -> Vec<Branch<Tensor<1>, Out>> {
        vec![
            Box::new(|x: Tensor<1>| (x * 1.0, int(10))),
            Box::new(|x: Tensor<1>| (x * 2.0, int(20))),
            Box::new(|x: Tensor<1>| (x * 3.0, int(30))),
        ]
    };
    for (index, want) in [(-7, 1), (0, 1), (1, 2), (2, 3), (3, 3), (i64::MAX, 3)] {
        let (y, n): Out = switch(int(index), branches(), floats(&[5.0])).unwrap();
        assert_eq!((numbers(y), value(n)), (vec![5.0 * f64::from(want)], 10 * i64::from(want)));
    }
    let none: ext::scan::Result<Out> = switch(int(0), Vec::new(), floats(&[5.0]));
    assert_eq!(none.err(), Some(ScanError::NoBranch));
    let two = Tensor::<1, Int>::from_ints([0, 1], &device());
    let error = switch(two, branches(), floats(&[5.0])).err();
    let what = "the index of a branch";
    assert_eq!(error, Some(ScanError::NotOne { what, shapes: vec![vec![2]] }));
}

#[test]
fn branches_in_a_loop() {
    // Collatz: steps until 1.
    let more = |(): (), (n, _): (Tensor<1, Int>, Tensor<1, Int>)| n.greater_elem(1);
    let step = |(): (), (n, steps): (Tensor<1, Int>, Tensor<1, Int>)| {
        let odd: Tensor<1, Bool> = n.clone().remainder_scalar(2).equal_elem(1);
        let triple = |n: Tensor<1, Int>| n * 3 + 1;
        let half = |n: Tensor<1, Int>| n / 2;
        (cond(odd, triple, half, n).unwrap(), steps + 1)
    };
    let (n, steps) = while_loop(more, step, (), (int(27), int(0)), &Options::default()).unwrap();
    assert_eq!((value(n), value(steps)), (1, 111));
}
