//! Scans and loops against JAX: values and gradients stored in `jax_numbers.rs`, which `jax_numbers.py` generates. The
//! programs are those of the script, line by line.

use burn_backend::DType;
use burn_tensor::activation::sigmoid;
use burn_tensor::{Bool, Int};

use super::ext::scan::fused::{AssociativeScan, FloatMonoid, associative_scan};
use super::ext::scan::{
    Branch, FixedPoint, Method, associative_scan_with, checkpoint, cond, fixed_point, fori_loop,
    switch, while_loop,
};
use super::jax_numbers as jax;
use super::kinds::ints;
use super::*;

/// `sin(seed)`, `sin(seed + 1)`, …
fn wave<const D: usize>(seed: usize, shape: [usize; D]) -> Tensor<D> {
    let count = shape.iter().product();
    let all: Vec<f64> = (0..count).map(|k| ((seed + k) as f64).sin()).collect();
    floats(&all).reshape(shape)
}

/// The loss and its gradients, one after another, against the stored numbers.
macro_rules! check {
    ($name:ident, $loss:expr, $($x:expr),*) => {{
        let loss = $loss;
        let found = loss.clone().backward();
        let all = [numbers(loss), $(numbers($x.grad(&found).unwrap())),*].concat();
        close(&all, jax::$name, 1e-12);
    }};
}

type Weights = (Tensor<2>, Tensor<2>, Tensor<2>, Tensor<2>);

fn gru((wz, uz, wn, un): Weights, h: Tensor<2>, x: Tensor<2>) -> (Tensor<2>, Tensor<2>) {
    let z = sigmoid(x.clone().matmul(wz) + h.clone().matmul(uz));
    let n = (x.matmul(wn) + (z.clone() * h.clone()).matmul(un)).tanh();
    let h = (z.clone() * -1.0 + 1.0) * h + z * n;
    (h.clone(), h)
}

#[test]
fn recurrent_nets_have_the_gradients_of_jax() {
    for memory in POLICIES {
        for reverse in [false, true] {
            let wz = wave(1, [4, 3]).require_grad();
            let uz = wave(2, [3, 3]).require_grad();
            let wn = wave(3, [4, 3]).require_grad();
            let un = wave(4, [3, 3]).require_grad();
            let init = wave(5, [2, 3]).require_grad();
            let xs = wave(6, [5, 2, 4]).require_grad();
            let options = Options::default().memory(memory).reverse(reverse);
            let weights = (wz.clone(), uz.clone(), wn.clone(), un.clone());
            let (last, ys): (Tensor<2>, Tensor<3>) =
                scan(gru, weights, init.clone(), xs.clone(), &options).unwrap();
            let loss = (ys * wave(9, [5, 2, 3])).sum() + (last.clone() * last).sum();
            if reverse {
                check!(GRU_REVERSE, loss, wz, uz, wn, un, init, xs);
            } else {
                check!(GRU, loss, wz, uz, wn, un, init, xs);
            }
        }
    }
}

#[test]
fn tokens_and_masks_have_the_gradients_of_jax() {
    type Carry = (Tensor<2>, Tensor<1, Int>);
    let step =
        |table: Tensor<2>, (h, count): Carry, (token, kept): (Tensor<1, Int>, Tensor<1, Bool>)| {
            let next = (h.clone() * 0.5 + table.select(0, token)).tanh();
            let h = h.mask_where(kept.clone().expand([1, 3]), next);
            let count = count + kept.int().cast(burn_tensor::IntDType::I64);
            let of_count = count.clone().float().cast(DType::F64);
            ((h.clone(), count), h * of_count.unsqueeze::<2>())
        };
    let kept = burn_tensor::TensorData::from([true, true, false, true, false, true]);
    let kept = Tensor::<1, Bool>::from_bool(kept, &device());
    let xs = (ints(&[3, 0, 2, 2, 1, 3]), kept);
    let table = wave(1, [4, 3]).require_grad();
    let init = wave(2, [1, 3]).require_grad();
    let (last, ys): (Carry, Tensor<3>) =
        scan(step, table.clone(), (init.clone(), ints(&[0])), xs, &Options::default()).unwrap();
    let count = last.1.float().cast(DType::F64);
    check!(TOKENS, (ys.clone() * ys).sum() + last.0.sum() * count, table, init);
}

#[test]
fn loops_over_a_range_have_the_gradients_of_jax() {
    let step = |x: Tensor<1>, (sum, power): (Tensor<1>, Tensor<1>), i: Tensor<1, Int>| {
        let i = i.float().cast(DType::F64);
        (sum + power.clone() * i, (power * x).sin())
    };
    let x = wave(1, [3]).require_grad();
    let init = (floats(&[0.0; 3]), floats(&[1.0; 3]));
    let (sum, _) = fori_loop(2..7, step, x.clone(), init, &Options::default()).unwrap();
    check!(FORI, sum.sum(), x);
}

#[test]
fn loops_with_a_test_have_the_derivatives_of_jax() {
    type Carry = (Tensor<1>, Tensor<1, Int>);
    let far = |a: Tensor<1>, (x, _): Carry| (x.powi_scalar(3) - a).abs().greater_elem(1e-4);
    let step = |a: Tensor<1>, (x, n): Carry| {
        let slope = x.clone().powi_scalar(2) * 3.0;
        (x.clone() - (x.powi_scalar(3) - a) / slope, n + 1)
    };
    let (a, x) = (floats(&[27.0]).require_grad(), floats(&[100.0]).require_grad());
    let (root, steps) =
        while_loop(far, step, a.clone(), (x.clone(), ints(&[0])), &Options::default()).unwrap();
    let found = root.clone().backward();
    let steps = numbers(steps.float());
    let all = [numbers(root), numbers(a.grad(&found).unwrap()), numbers(x.grad(&found).unwrap())];
    close(&[all.concat(), steps].concat(), jax::WHILE, 1e-12);
}

#[test]
fn branches_have_the_gradients_of_jax() {
    type Pair = (Tensor<1>, Tensor<1>);
    let f = |(x, y): Pair| (x.exp() * y).sum();
    let g = |(x, y): Pair| (x * y.cos()).sum();
    let h = |(x, _): Pair| x.sum();
    let (x, y) = (wave(1, [3]).require_grad(), wave(2, [3]).require_grad());
    let both = || (x.clone(), y.clone());
    let positive = x.clone().sum().greater_elem(0.0);
    let first: Tensor<1> = cond(positive.clone(), f, g, both()).unwrap();
    let second: Tensor<1> = cond(positive.bool_not(), f, g, both()).unwrap();
    let mut loss = first * second;
    for (k, index) in [-3, 0, 1, 2, 9].into_iter().enumerate() {
        let all: Vec<Branch<Pair, Tensor<1>>> = vec![Box::new(f), Box::new(g), Box::new(h)];
        loss = loss + switch(ints(&[index]), all, both()).unwrap() * (k + 1) as f64;
    }
    check!(BRANCHES, loss, x, y);
}

#[test]
fn associative_scans_have_the_gradients_of_jax() {
    for reverse in [false, true] {
        let x = wave(1, [6, 2, 2]).require_grad();
        let product = |a: Tensor<3>, b: Tensor<3>| a.matmul(b);
        let y = associative_scan_with(product, x.clone(), 0, reverse).unwrap();
        let loss = (y * wave(3, [6, 2, 2])).sum();
        if reverse {
            check!(PRODUCTS_REVERSE, loss, x);
        } else {
            check!(PRODUCTS, loss, x);
        }
    }
    let cumulative = |monoid, x: &Tensor<2>, reverse| {
        let op = AssociativeScan { reverse, ..AssociativeScan::new(monoid, 1) };
        (associative_scan(&op, vec![x.clone()]).unwrap().swap_remove(0) * wave(3, [3, 7])).sum()
    };
    let x = wave(1, [3, 7]).require_grad();
    check!(CUMSUM, cumulative(FloatMonoid::Sum, &x, false), x);
    check!(CUMPROD_REVERSE, cumulative(FloatMonoid::Product, &x, true), x);
    check!(CUMMAX, cumulative(FloatMonoid::Max, &x, false), x);
    check!(CUMLOGSUMEXP, cumulative(FloatMonoid::LogAddExp, &x, false), x);
}

#[test]
fn checkpoints_have_the_gradients_of_jax() {
    let layer = |(w, b, x): (Tensor<2>, Tensor<1>, Tensor<2>)| (x.matmul(w) + b.unsqueeze()).tanh();
    let w = wave(1, [3, 3]).require_grad();
    let b = wave(2, [3]).require_grad();
    let x = wave(3, [4, 3]).require_grad();
    let y: Tensor<2> = checkpoint(layer, (w.clone(), b.clone(), x.clone())).unwrap();
    let y: Tensor<2> = checkpoint(layer, (w.clone(), b.clone(), y)).unwrap();
    check!(CHECKPOINT, (y.clone() * y).sum(), w, b, x);
}

#[test]
fn fixed_points_have_the_gradients_of_jax() {
    let f = |(w, b): (Tensor<2>, Tensor<1>), x: Tensor<1>| {
        (w.matmul(x.reshape([3, 1])).reshape([3]) * 0.2 + b).tanh()
    };
    for method in [Method::Iterate, Method::Broyden(20)] {
        let settings = FixedPoint { tolerance: 1e-14, steps: 400, method };
        let (w, b) = (wave(1, [3, 3]).require_grad(), wave(2, [3]).require_grad());
        let x = fixed_point(f, (w.clone(), b.clone()), floats(&[0.0; 3]), &settings).unwrap();
        check!(FIXED_POINT, x.powi_scalar(3).sum(), w, b);
    }
}
