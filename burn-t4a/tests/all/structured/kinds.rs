//! Diagonal and block-sparse tensors.

use std::sync::Arc;

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::einsum as dense_einsum;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::primitive::Floats;
use burn_t4a::ext::structured::*;
use burn_tensor::Tensor;

use super::cases::{Rng, array, close, numbers};

type B = BurnT4a;
type AD = Autodiff<BurnT4a>;

fn diagonal<B: Operations>(x: &[f64], classes: &[usize]) -> DiagTensor<B> {
    let layout = Classes { payload: vec![x.len()], classes: classes.to_vec() };
    DiagTensor::from_flat(&layout, array::<B>(x)).unwrap()
}

#[test]
fn a_diagonal_is_a_union_of_labels() {
    let mut rng = Rng::new(1);
    let d = rng.numbers(4);
    let x: Tensor<B, 2> = array::<B>(&rng.numbers(12)).reshape([4, 3]);
    let diag = diagonal::<B>(&d, &[0, 0]);
    let dense = DiagTensor::<B>::dense(Floats::from(x.clone()));
    let y = diag_einsum(FloatSemiring::Standard, "ij,jk->ik", &[&diag, &dense]).unwrap();
    assert_eq!(y.classes(), [0, 1]);
    let full: Tensor<B, 2> = diag.to_tensor().unwrap();
    close("diag · dense", &numbers(y.to_tensor::<2>().unwrap()), &numbers(full.matmul(x)), 1e-14);
    // Without a common label the result stays structured.
    let outer = diag_einsum(FloatSemiring::Standard, "ij,kl->ijkl", &[&diag, &diag]).unwrap();
    assert_eq!((outer.classes(), outer.flat().dims()), (&[0, 0, 1, 1][..], [16]));
    // Elements off the diagonal are the zero of the semiring.
    let tropical = diag.to_dense(FloatSemiring::MaxPlus).unwrap().tensor::<2>().unwrap();
    assert_eq!(numbers(tropical)[1], f64::NEG_INFINITY);
}

#[test]
fn the_gradient_of_a_payload_is_the_diagonal_of_the_dense_one() {
    let mut rng = Rng::new(2);
    let (d, m) = (rng.numbers(3), rng.numbers(9));
    let payload = array::<AD>(&d).require_grad();
    let layout = Classes { payload: vec![3], classes: vec![0, 0] };
    let diag = DiagTensor::<AD>::from_flat(&layout, payload.clone()).unwrap();
    let m = array::<AD>(&m).reshape([3, 3]);
    let dense = DiagTensor::dense(Floats::from(m.clone()));
    let y = diag_einsum(FloatSemiring::Standard, "ij,jk,kl->il", &[&diag, &dense, &diag]).unwrap();
    let y = y.to_tensor::<2>().unwrap();
    let own = payload.grad(&(y.clone() * y).sum().backward()).unwrap();

    let full = Tensor::<AD, 2>::from_inner(diag.valid().to_tensor().unwrap()).require_grad();
    let y: Tensor<AD, 2> = dense_einsum("ij,jk,kl->il", [&full, &m, &full]).unwrap();
    let want = full.grad(&(y.clone() * y).sum().backward()).unwrap();
    let want: Tensor<B, 1> = dense_einsum("ii->i", [&want]).unwrap();
    close("payload", &numbers(own), &numbers(want), 1e-13);
}

/// Both axes of one class are summed together: each element counts once.
#[test]
fn a_payload_under_two_labels_counts_once() {
    let payload = array::<AD>(&[1.0, 2.0, 3.0]).require_grad();
    let layout = Classes { payload: vec![3], classes: vec![0, 0] };
    let diag = DiagTensor::<AD>::from_flat(&layout, payload.clone()).unwrap();
    let sum = diag_einsum(FloatSemiring::Standard, "ij,ij->", &[&diag, &diag]).unwrap();
    assert!(sum.classes().is_empty());
    let sum = sum.flat();
    assert_eq!(numbers(sum.clone()), [14.0]);
    assert_eq!(numbers(payload.grad(&sum.backward()).unwrap()), [2.0, 4.0, 6.0]);
}

/// A leaf with several classes of axes keeps its gradient, independent of its construction: its elements are stored
/// as given, and a reshaped tensor is not a leaf.
#[test]
fn a_diagonal_of_several_classes_is_a_leaf() {
    let numbers_of = [1.0, -2.0, 3.0, 4.0, 0.5, -1.0];
    let data = array::<AD>(&numbers_of);
    let classes = Classes { payload: vec![2, 3], classes: vec![0, 1, 0] };
    let payload: Tensor<AD, 2> = data.clone().reshape([2, 3]);
    let leaves = [
        DiagTensor::<AD>::from_flat(&classes, data.clone()).unwrap().require_grad(),
        DiagTensor::<AD>::from_flat(&classes, data.clone().require_grad()).unwrap(),
        DiagTensor::new(Floats::from(payload.clone()), vec![0, 1, 0]).unwrap().require_grad(),
        DiagTensor::new(Floats::from(payload.require_grad()), vec![0, 1, 0]).unwrap(),
    ];
    for d in leaves {
        let dense = d.to_tensor::<3>().unwrap();
        assert_eq!(dense.dims(), [2, 3, 2]);
        let gradient = d.grad(&dense.powi_scalar(2).sum().backward()).unwrap();
        assert_eq!((gradient.sizes(), gradient.classes()), (&[2, 3][..], &[0, 1, 0][..]));
        close("gradient", &numbers(gradient.flat()), &numbers_of.map(|x| 2.0 * x), 1e-15);
        let tangent = d.valid().with_tangent(Some(&gradient)).unwrap();
        let (_, moved) = DiagTensor::<B>::from_dual(&tangent.scale(3.0)).unwrap();
        close("tangent", &numbers(moved.flat()), &numbers_of.map(|x| 6.0 * x), 1e-15);
    }
}

#[test]
fn delta_has_the_sum_as_gradient() {
    let scale = array::<AD>(&[2.0]).require_grad();
    let layout = Classes { payload: vec![4], classes: vec![0, 0, 0] };
    let delta = DiagTensor::<AD>::from_flat(&layout, scale.clone().expand([4])).unwrap();
    let sum = delta.to_tensor::<3>().unwrap().sum();
    assert_eq!(numbers(sum.clone()), [8.0]);
    assert_eq!(numbers(scale.grad(&sum.backward()).unwrap()), [4.0]);
}

fn blocks<B: Operations>(
    legs: [&[usize]; 2],
    blocks: &[[u32; 2]],
    seed: u64,
) -> BlockSparseTensor<B> {
    let legs = legs.map(<[usize]>::to_vec).to_vec();
    let pattern = Pattern::new(legs, blocks.iter().map(|b| b.to_vec()).collect()).unwrap();
    let x = array::<B>(&Rng::new(seed).numbers(pattern.len()));
    BlockSparseTensor::from_flat(&Arc::new(pattern), x).unwrap()
}

fn product<B: Operations>(semiring: FloatSemiring) -> (Vec<f64>, BlockSparseTensor<B>) {
    let x = blocks::<B>([&[2, 1, 3], &[2, 3]], &[[0, 0], [0, 1], [2, 1]], 3);
    let y = blocks::<B>([&[2, 3], &[1, 4]], &[[0, 1], [1, 0], [1, 1]], 4);
    let z = x.contract(&y, &[1], &[0], semiring).unwrap();
    (numbers(z.flat()), z)
}

#[test]
fn block_products_are_dense_products() {
    let x = blocks::<B>([&[2, 1, 3], &[2, 3]], &[[0, 0], [0, 1], [2, 1]], 3);
    let y = blocks::<B>([&[2, 3], &[1, 4]], &[[0, 1], [1, 0], [1, 1]], 4);
    let (own, z) = product::<B>(FloatSemiring::Standard);
    let want = x.to_tensor::<2>().unwrap().matmul(y.to_tensor::<2>().unwrap());
    close("product", &numbers(z.to_tensor::<2>().unwrap()), &numbers(want), 1e-13);
    close("Flex", &product::<Flex>(FloatSemiring::Standard).0, &own, 1e-13);
    // (max, +), whose zero is −∞, on both backends.
    let (own, z) = product::<B>(FloatSemiring::MaxPlus);
    close("Flex", &product::<Flex>(FloatSemiring::MaxPlus).0, &own, 1e-13);
    let [a, b] = [&x, &y].map(|t| numbers(t.to_tensor::<2>().unwrap()));
    let first = (0..5).map(|k| (a[k], b[5 * k])).filter(|&(x, y)| x != 0.0 && y != 0.0);
    let first = first.map(|(x, y)| x + y).fold(f64::NEG_INFINITY, f64::max);
    close("first element", &own[..1], &[first], 1e-13);
    assert_eq!(z.pattern().blocks().len(), 4);
}

#[test]
fn block_products_have_gradients() {
    let x = blocks::<AD>([&[2, 1, 3], &[2, 3]], &[[0, 0], [0, 1], [2, 1]], 3).require_grad();
    let y = blocks::<AD>([&[2, 3], &[1, 4]], &[[0, 1], [1, 0], [1, 1]], 4);
    let z = x.contract(&y, &[1], &[0], FloatSemiring::Standard).unwrap().flat();
    let own = x.grad(&(z.clone() * z).sum().backward()).unwrap();
    let (dense, y) = (x.valid().to_tensor::<2>().unwrap(), y.valid().to_tensor::<2>().unwrap());
    let want = (dense.matmul(y.clone()) * 2.0).matmul(y.transpose());
    // On the blocks that exist.
    let mask = own.map_flat(|x| x.ones_like()).to_tensor::<2>().unwrap();
    close("gradient", &numbers(own.to_tensor::<2>().unwrap()), &numbers(want * mask), 1e-13);
}

#[test]
fn tangents_go_through_all_kinds() {
    let x = blocks::<B>([&[2, 1], &[2, 1]], &[[0, 0], [1, 1]], 3);
    let dual = x.with_tangent(Some(&x.map_flat(|x| x.ones_like()))).unwrap();
    let square = dual.contract(&dual, &[1], &[0], FloatSemiring::Standard).unwrap();
    let (y, dy) = BlockSparseTensor::<B>::from_dual(&square).unwrap();
    let step = |h: f64| {
        let x = x.map_flat(|x| x + h);
        numbers(x.contract(&x, &[1], &[0], FloatSemiring::Standard).unwrap().flat())
    };
    let want: Vec<f64> = step(1e-5).iter().zip(step(-1e-5)).map(|(a, b)| (a - b) / 2e-5).collect();
    close("value", &numbers(y.flat()), &step(0.0), 1e-15);
    close("tangent", &numbers(dy.flat()), &want, 1e-9);
    let diag = diagonal::<B>(&[1.0, 2.0], &[0, 0]);
    let (value, tangent) = DiagTensor::<B>::from_dual(&diag.with_tangent(None).unwrap()).unwrap();
    assert_eq!(numbers(value.flat()), [1.0, 2.0]);
    assert_eq!(numbers(tangent.flat()), [0.0, 0.0]);
}
