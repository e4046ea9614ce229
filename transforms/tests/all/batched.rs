//! Matrices of derivatives by one evaluation for all unit vectors, against those by a loop.

use burn::backend::Autodiff;
use burn::tensor::backend::Backend;
use burn::tensor::{DType, Int, Tensor, TensorData, activation};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::scan::fused::{Cell, recurrent};
use burn_t4a::{BurnT4a, T4aDevice};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{
    DerivativeError, Jacobian, batched, hessian_tree, jacfwd_tree, jacrev_tree,
};
use burn_t4a_transforms::vmap::VmapError;

type B = BurnT4a;

fn of<const N: usize, const D: usize>(x: [f64; N], shape: [usize; D]) -> Tensor<B, D> {
    Tensor::from_data(TensorData::new(x.to_vec(), shape), (&T4aDevice, DType::F64))
}

#[track_caller]
fn equal(a: &Jacobian<B>, b: &Jacobian<B>) {
    assert_eq!(a.paths(), b.paths());
    let [a, b] = [a, b].map(Jacobian::matrix);
    assert_eq!((a.dims(), a.dtype()), (b.dims(), b.dtype()));
    let [a, b] = [a, b].map(|x| x.into_data().iter::<f64>().collect::<Vec<_>>());
    assert!(a.iter().any(|&x| x != 0.0));
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{a} and {b}");
    }
}

type Arguments<A> = (Tensor<A, 2>, [Tensor<A, 1>; 1]);

/// Results of ranks 2 and 1, which depend on both arguments, with products, a softmax, an index and a sum.
fn f<A: Backend>((w, [b]): Arguments<A>) -> (Tensor<A, 2>, Tensor<A, 1>) {
    let y = activation::softmax(w.clone(), 1).matmul(w.clone().transpose());
    let y = (y + b.clone().narrow(0, 1, 2).unsqueeze()).tanh();
    (y, b.sin().narrow(0, 0, 1) * w.sum())
}

fn arguments() -> Arguments<B> {
    (of([0.3, -0.4, 0.5, 1.0, 0.2, -0.1], [2, 3]), [of([0.7, -1.1, 0.4], [3])])
}

#[test]
fn jacobians_of_all_unit_vectors_equal_those_one_by_one() {
    let forward = jacfwd_tree(f, arguments()).unwrap();
    let reverse = jacrev_tree(f, arguments()).unwrap();
    assert_eq!(forward.matrix().dims(), [5, 9]);
    for chunk in [None, Some(1), Some(2), Some(4), Some(100)] {
        equal(&batched::jacfwd(f, arguments(), chunk).unwrap(), &forward);
        equal(&batched::jacrev(f, arguments(), chunk).unwrap(), &reverse);
    }
    let j = batched::jacrev(f, arguments(), None).unwrap();
    assert_eq!(j.block::<4>(".0", ".0").unwrap().dims(), [2, 2, 2, 3]);
    assert_eq!(j.block::<2>(".1", ".1.0").unwrap().dims(), [1, 3]);
}

/// `Σ (bᵀ xᵢ)² exp(x₀)`: every second derivative is nonzero.
fn loss<A: Backend>((x, b): (Tensor<A, 2>, Tensor<A, 1>)) -> Tensor<A, 1> {
    let scale = x.clone().slice([0..1, 0..1]).exp().reshape([1]);
    (x * b.unsqueeze()).sum_dim(1).powi_scalar(2).sum() * scale
}

#[test]
fn hessians_of_all_unit_vectors_equal_those_one_by_one() {
    let x = || (of([0.3, -0.4, 0.5, 1.0], [2, 2]), of([0.7, -1.1], [2]));
    let want = hessian_tree(loss, x()).unwrap();
    for chunk in [None, Some(1), Some(4)] {
        equal(&batched::hessian(loss, x(), chunk).unwrap(), &want);
    }
}

#[test]
fn the_function_runs_once_per_chunk() {
    let runs = std::cell::Cell::new(0);
    let x = || of([1.0, 2.0, 3.0, 4.0, 5.0], [5]);
    macro_rules! counted {
        ($of:path, $chunk:expr) => {{
            runs.set(0);
            let f = |x: Tensor<_, 1>| {
                runs.set(runs.get() + 1);
                x.clone() * x
            };
            $of(f, x(), $chunk).unwrap();
            runs.get()
        }};
    }
    assert_eq!(counted!(batched::jacfwd, None), 1);
    assert_eq!(counted!(batched::jacfwd, Some(2)), 3);
    // Once more for the shapes of the results.
    assert_eq!(counted!(batched::jacrev, None), 2);
    assert_eq!(counted!(batched::jacrev, Some(2)), 4);
}

/// Cotangents differ between unit vectors, but the forward pass and the residuals that it saves do not.
#[test]
fn jacobians_of_recurrent_layers() {
    for cell in Cell::ALL {
        let gates = cell.gates() * 2;
        let x = || {
            let value = |i: usize| (i as f64 * 1.7).sin();
            let of = |shape: [usize; 2]| -> Tensor<B, 2> {
                let count = shape[0] * shape[1];
                let data = TensorData::new((0..count).map(value).collect::<Vec<_>>(), shape);
                Tensor::from_data(data, (&T4aDevice, DType::F64))
            };
            (of([3, gates]), of([2, gates]))
        };
        fn last<A: Operations>(cell: Cell, z: Tensor<A, 2>, u: Tensor<A, 2>) -> Tensor<A, 3> {
            recurrent(cell, z.unsqueeze_dim(1), u, None, vec![], false).unwrap().swap_remove(0)
        }
        let want = jacrev_tree(|(z, u)| last::<Autodiff<B>>(cell, z, u), x()).unwrap();
        for chunk in [None, Some(4)] {
            let own = batched::jacrev(|(z, u)| last(cell, z, u), x(), chunk).unwrap();
            equal(&own, &want);
        }
    }
}

#[test]
fn results_that_do_not_depend_on_the_arguments_have_zero_derivatives() {
    let x = || of([1.0, 2.0], [2]);
    for j in [
        batched::jacfwd(|x: Tensor<_, 1>| x.ones_like(), x(), None).unwrap(),
        batched::jacrev(|x: Tensor<_, 1>| x.ones_like(), x(), None).unwrap(),
    ] {
        j.matrix().into_data().assert_eq(&TensorData::zeros::<f64, _>([2, 2]), true);
    }
}

#[test]
fn jacobians_are_recorded() {
    let f = |x: Tensor<Traced<B>, 1>| {
        let j = batched::jacfwd(|x: Tensor<_, 1>| x.clone() * x.sin().sum(), x, None);
        j.unwrap().matrix()
    };
    let x = || of([1.0, 2.0, -0.5], [3]);
    let compiled = compile(f).fullgraph();
    compiled.call(x()).unwrap();
    let want = jacfwd_tree(|x: Tensor<_, 1>| x.clone() * x.sin().sum(), x()).unwrap();
    let got = compiled.call(x()).unwrap();
    assert_eq!(compiled.counters().hits, 1);
    got.into_data().assert_approx_eq::<f64>(&want.matrix().into_data(), Default::default());
}

#[test]
fn errors_precede_the_function() {
    let mixed = [of([1.0], [1]), of([1.0], [1]).cast(DType::F32)];
    let never = |_: [Tensor<_, 1>; 2]| -> Tensor<_, 1> { unreachable!("it is not called") };
    let error = batched::jacfwd(never, mixed, None).unwrap_err();
    assert!(matches!(error, DerivativeError::DTypes { function: "jacfwd", .. }), "{error}");
    let at = Tensor::<B, 1, Int>::from_ints([1], &T4aDevice);
    let never = |_: Tensor<_, 1, Int>| -> Tensor<_, 1> { unreachable!("it is not called") };
    let error = batched::jacfwd(never, at, None).unwrap_err();
    assert!(matches!(error, DerivativeError::Tree(_)), "{error}");
    let error = batched::jacfwd(|x: Tensor<_, 1>| x, of([1.0], [1]), Some(0)).unwrap_err();
    assert!(matches!(error, DerivativeError::Vmap(VmapError::Chunk)), "{error}");
    let two = |x: Tensor<Autodiff<_>, 1>| x;
    let error = batched::hessian(two, of([1.0, 2.0], [2]), None).unwrap_err();
    assert!(matches!(error, DerivativeError::Loss { .. }), "{error}");
}
