//! Factorisations and functions of matrices under compiled derivatives, against JAX: `factorisation_numbers.rs`, which
//! `factorisation_numbers.py` generates. Each function is recorded once and called with two matrices, so that a value of the
//! first call in a later one would be seen.

use burn::backend::Autodiff;
use burn::tensor::{DType, Tensor, TensorData};
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::tree::Tree;
use burn_t4a::ext::{Complex, linalg};
use burn_t4a_transforms::compile::{Traced, compile};
use burn_t4a_transforms::derivatives::{grad, hvp};
use burn_t4a_transforms::jvp::{Jvp, constant, jvp};
use burn_t4a_transforms::vmap::{Vmap, vmap};

use super::factorisation_numbers::CASES;
use super::{B, T, numbers, wave};

type Row<C> = Tensor<C, 1>;
type Square<C> = Tensor<C, 2>;
type Stack<C> = Tensor<C, 3>;

fn flat<C: Operations, const D: usize>(x: Tensor<C, D>) -> Row<C> {
    let size = x.shape().num_elements();
    x.reshape([size])
}

fn numbers_of<C: Operations, const D: usize>(x: Complex<C, D>) -> Row<C> {
    let (re, im) = x.into_parts();
    Tensor::cat(vec![flat(re), flat(im)], 0)
}

fn results<C: Operations>(case: &str, x: Square<C>) -> Row<C> {
    let diagonal = TensorData::from([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.5]]);
    let diagonal = Square::<C>::from_data(diagonal, (&C::Device::default(), DType::F64));
    let a = x.clone() + diagonal;
    let twice = || a.clone() + a.clone().transpose();
    let complex = || Complex::new(a.clone(), x.clone().transpose() * 0.5).unwrap();
    let all = |parts: Vec<Row<C>>| Tensor::cat(parts, 0);
    match case {
        "solve" => flat(linalg::solve(a, x.narrow(1, 0, 2)).unwrap()),
        "det" => linalg::det(a).unwrap(),
        "slogdet" => {
            let (sign, logarithm) = linalg::slogdet(a).unwrap();
            all(vec![sign, logarithm])
        }
        "qr" => {
            let linalg::Qr { q, r } = linalg::qr(a).unwrap();
            all(vec![flat(q.powi_scalar(2)), flat(r.powi_scalar(2))])
        }
        "svd" => {
            let linalg::Svd { u, s, vh } = linalg::svd(a).unwrap();
            all(vec![flat(u.powi_scalar(2)), s, flat(vh.powi_scalar(2))])
        }
        "eigvalsh" => linalg::eigvalsh(twice()).unwrap(),
        "eigh" => {
            let linalg::Eigh { values, vectors } = linalg::eigh(twice()).unwrap();
            all(vec![values, flat(vectors.powi_scalar(2))])
        }
        "expm" => flat(linalg::expm(x).unwrap()),
        "cholesky" => flat(linalg::cholesky(a.clone().matmul(a.transpose())).unwrap()),
        "inv" => flat(linalg::inv(a).unwrap()),
        "pinv" => flat(linalg::pinv(a.narrow(1, 0, 2), None).unwrap()),
        "complex_solve" => {
            let b = x.clone().narrow(1, 0, 1);
            let b = Complex::new(b.clone(), b.zeros_like()).unwrap();
            numbers_of::<C, 2>(linalg::solve(complex(), b).unwrap())
        }
        "complex_det" => numbers_of::<C, 1>(linalg::det(complex()).unwrap()),
        "complex_svdvals" => linalg::svdvals(complex()).unwrap(),
        "complex_eigvalsh" => {
            let h = Complex::new(twice(), (x.clone().transpose() - x) * 0.5).unwrap();
            linalg::eigvalsh(h).unwrap()
        }
        _ => unreachable!("no such case"),
    }
}

/// The weighted sum of the results.
fn loss<C: Operations>(case: &str, x: Square<C>) -> Row<C> {
    let y = results(case, x);
    let weights = (0..y.dims()[0]).map(|k| 1.0 + 0.3 * k as f64).collect::<Vec<_>>();
    let weights = TensorData::new(weights, y.shape());
    (y * Tensor::from_data(weights, (&C::Device::default(), DType::F64))).sum()
}

fn tangent<C: Operations>(case: &str, x: Square<C>, v: Square<C>) -> Row<C> {
    jvp(|x: Square<Jvp<C>>| results(case, x), x, v).unwrap().1
}

fn gradient<C: Operations>(case: &str, x: Square<C>) -> Square<C> {
    grad(|x: Square<Autodiff<C>>| loss(case, x), x).unwrap()
}

/// The derivative of the gradient: a tape on tangents.
fn product<C: Operations>(case: &str, x: Square<C>, v: Square<C>) -> Square<C> {
    hvp(|x: Square<Autodiff<Jvp<C>>>| loss(case, x), x, v).unwrap().1
}

/// The same: tangents on a tape.
fn reverse_product<C: Operations>(case: &str, x: Square<C>, v: Square<C>) -> Square<C> {
    let along = |x: Square<Autodiff<C>>| -> Row<Autodiff<C>> {
        let v = Tensor::from_inner(v);
        jvp(|x: Square<Jvp<Autodiff<C>>>| loss(case, x), x, v).unwrap().1
    };
    grad(along, x).unwrap()
}

/// The same: two tapes.
fn tape_product<C: Operations>(case: &str, x: Square<C>, v: Square<C>) -> Square<C> {
    let along = |x: Square<Autodiff<C>>| {
        let g = grad(|x: Square<Autodiff<Autodiff<C>>>| loss(case, x), x).unwrap();
        (g * Tensor::from_inner(v)).sum()
    };
    grad(along, x).unwrap()
}

/// The derivative of [`product`].
fn third<C: Operations>(case: &str, x: Square<C>, v: Square<C>) -> Square<C> {
    let along = |x: Square<Jvp<C>>| product(case, x, constant(v.clone()).unwrap());
    jvp(along, x, v.clone()).unwrap().1
}

fn mapped<C: Operations, const D: usize, const E: usize>(
    f: impl Fn(Square<Vmap<C>>, Square<Vmap<C>>) -> Tensor<Vmap<C>, D>,
    x: Stack<C>,
    v: Square<C>,
) -> Tensor<C, E> {
    vmap(|(x, v): (Square<Vmap<C>>, Square<Vmap<C>>)| f(x, v))
        .in_axes((0, None))
        .call((x, v))
        .unwrap()
}

#[track_caller]
fn near(name: &str, got: Vec<f64>, want: &[f64]) {
    assert_eq!(got.len(), want.len(), "{name}");
    let size = want.iter().fold(1.0f64, |size, x| size.max(x.abs()));
    let error = got.iter().zip(want).map(|(a, b)| (a - b).abs() / size).fold(0.0, f64::max);
    assert!(error < 1e-9, "{name}: {error:e}\n{got:?}\n{want:?}");
}

/// Records a function at the first matrix and calls it with the second, the first and the second.
fn one<const D: usize>(
    name: &str,
    f: impl Fn((Square<T>, Square<T>)) -> Tensor<T, D>,
    want: [&[f64]; 2],
) where
    Tensor<T, D>: Tree<T, On<B> = Tensor<B, D>>,
{
    let f = compile(f).fullgraph();
    for k in [0, 1, 0, 1] {
        let got = f.call((wave([1, 4][k], [3, 3]), wave(7, [3, 3])));
        near(name, numbers(got.unwrap_or_else(|error| panic!("{name}: {error}"))), want[k]);
    }
    assert_eq!(f.counters().traces, 1, "{name}");
}

/// The same for a batch of both matrices, in both orders.
fn both<const D: usize>(
    name: &str,
    f: impl Fn((Stack<T>, Square<T>)) -> Tensor<T, D>,
    want: [&[f64]; 2],
) where
    Tensor<T, D>: Tree<T, On<B> = Tensor<B, D>>,
{
    let f = compile(f).fullgraph();
    for order in [[0, 1], [1, 0], [1, 1]] {
        let x: Vec<Square<B>> = order.map(|k| wave([1, 4][k], [3, 3])).to_vec();
        let got = f.call((Tensor::stack(x, 0), wave(7, [3, 3])));
        let got = numbers(got.unwrap_or_else(|error| panic!("{name}: {error}")));
        near(name, got, &order.map(|k| want[k]).concat());
    }
    assert_eq!(f.counters().traces, 1, "{name}");
}

/// Derivatives of every case: value, tangent, gradient, product with the Hessian, derivative of that.
fn each(check: impl Fn(&str, [[&'static [f64]; 2]; 5])) {
    for (case, [first, second]) in CASES {
        check(case, [0, 1, 2, 3, 4].map(|k| [first[k], second[k]]));
    }
}

#[test]
fn without_a_recording() {
    each(|case, [values, _, _, products, thirds]| {
        for (k, seed) in [1, 4].into_iter().enumerate() {
            let (x, v) = (|| wave::<B, 2>(seed, [3, 3]), || wave(7, [3, 3]));
            near(case, numbers(results(case, x())), values[k]);
            near(case, numbers(product(case, x(), v())), products[k]);
            near(case, numbers(third(case, x(), v())), thirds[k]);
            let along = |x: Square<Autodiff<B>>| {
                let v = Tensor::from_inner(v());
                (product(case, x, v.clone()) * v).sum()
            };
            near(case, numbers(grad(along, x()).unwrap()), thirds[k]);
        }
    });
}

#[test]
fn first_derivatives() {
    each(|case, [values, tangents, gradients, ..]| {
        one(&format!("{case}: value"), |(x, _)| results(case, x), values);
        one(&format!("{case}: jvp"), |(x, v)| tangent(case, x, v), tangents);
        one(&format!("{case}: grad"), |(x, _)| gradient(case, x), gradients);
    });
}

#[test]
fn second_derivatives() {
    each(|case, [.., products, _]| {
        one(&format!("{case}: hvp"), |(x, v)| product(case, x, v), products);
        one(&format!("{case}: grad of jvp"), |(x, v)| reverse_product(case, x, v), products);
        one(&format!("{case}: grad of grad"), |(x, v)| tape_product(case, x, v), products);
    });
}

#[test]
fn third_derivatives() {
    each(|case, [.., thirds]| {
        one(&format!("{case}: jvp of hvp"), |(x, v)| third(case, x, v), thirds);
    });
}

#[test]
fn batches() {
    each(|case, [_, tangents, _, products, _]| {
        let name = |of: &str| format!("{case}: {of}");
        let of_tangents = |(x, v)| mapped::<T, 1, 2>(|x, v| tangent(case, x, v), x, v);
        both(&name("vmap of jvp"), of_tangents, tangents);
        let of_products = |(x, v)| mapped::<T, 2, 3>(|x, v| product(case, x, v), x, v);
        both(&name("vmap of hvp"), of_products, products);
        let reversed = |(x, v)| mapped::<T, 2, 3>(|x, v| reverse_product(case, x, v), x, v);
        both(&name("vmap of grad of jvp"), reversed, products);
        let of_map = |(x, v): (Stack<T>, Square<T>)| -> Tensor<T, 2> {
            let map = |x: Stack<Jvp<T>>| -> Tensor<Jvp<T>, 2> {
                vmap(|x: Square<Vmap<Jvp<T>>>| results(case, x)).call(x).unwrap()
            };
            jvp(map, x, v.unsqueeze::<3>().repeat_dim(0, 2)).unwrap().1
        };
        both(&name("jvp of vmap"), of_map, tangents);
    });
}

/// A compiled derivative is differentiated again by a tape outside of it.
#[test]
fn gradients_of_compiled_derivatives() {
    type A = Autodiff<B>;
    each(|case, [_, _, _, products, thirds]| {
        let along = |(x, v): (Square<Traced<A>>, Square<Traced<A>>)| -> Row<Traced<A>> {
            jvp(|x: Square<Jvp<Traced<A>>>| loss(case, x), x, v).unwrap().1
        };
        let along = compile(along).fullgraph();
        let twice = |(x, v): (Square<Traced<A>>, Square<Traced<A>>)| {
            (product(case, x, v.clone()) * v).sum()
        };
        let twice = compile(twice).fullgraph();
        for k in [0, 1, 0] {
            let x = || wave::<B, 2>([1, 4][k], [3, 3]);
            let v = || Tensor::from_inner(wave::<B, 2>(7, [3, 3]));
            let g = grad(|x: Square<A>| along.call((x, v())).unwrap(), x()).unwrap();
            near(&format!("{case}: grad of compiled jvp"), numbers(g), products[k]);
            let g = grad(|x: Square<A>| twice.call((x, v())).unwrap(), x()).unwrap();
            near(&format!("{case}: grad of compiled hvp"), numbers(g), thirds[k]);
        }
    });
}
