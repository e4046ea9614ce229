//! Complex tensors as pairs of real tensors against `num_complex`, and their gradients.

use burn_tensor::{DType, TensorData, s};
use num_complex::Complex64;

use super::ext::{ExtError, MismatchError};
use super::{Complex, Tensor, device};

fn real(values: &[f64]) -> Tensor<1> {
    let data = TensorData::new(values.to_vec(), [values.len()]);
    Tensor::from_data(data, (&device(), DType::F64))
}

fn complex(values: &[Complex64]) -> Complex<1> {
    let part = |f: fn(&Complex64) -> f64| real(&values.iter().map(f).collect::<Vec<_>>());
    Complex::new(part(|z| z.re), part(|z| z.im)).unwrap()
}

fn numbers<const D: usize>(z: Complex<D>) -> Vec<Complex64> {
    let (re, im) = z.into_parts();
    let (re, im) = (re.into_data(), im.into_data());
    re.iter::<f64>().zip(im.iter::<f64>()).map(|(re, im)| Complex64::new(re, im)).collect()
}

const Z: [Complex64; 4] = [
    Complex64::new(1.0, 2.0),
    Complex64::new(-0.5, 0.25),
    Complex64::new(0.0, -3.0),
    Complex64::new(1e-200, 3e200),
];
const W: [Complex64; 4] = [
    Complex64::new(0.5, -1.0),
    Complex64::new(2.0, 0.0),
    Complex64::new(-1.5, 2.5),
    Complex64::new(2e200, 1e200),
];

fn close(a: &[Complex64], b: &[Complex64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).norm() <= 1e-14 * b.norm(), "{a} {b}");
    }
}

#[test]
fn arithmetic() {
    let (z, w) = (|| complex(&Z), || complex(&W));
    let each = |f: fn(Complex64, Complex64) -> Complex64| {
        Z.iter().zip(&W).map(|(&z, &w)| f(z, w)).collect::<Vec<_>>()
    };
    close(&numbers(z() + w()), &each(|z, w| z + w));
    close(&numbers(z() - w()), &each(|z, w| z - w));
    close(&numbers(-z().conj()), &each(|z, _| -z.conj()));
    close(&numbers(z().scale(3.0)), &each(|z, _| 3.0 * z));
    // 3e200 / (2e200 + 1e200 i) = 3 / (2 + i)
    let mut ratio = each(|z, w| z / w);
    ratio[3] = Complex64::new(1e-200, 3.0) / Complex64::new(2.0, 1.0);
    close(&numbers(z() / w()), &ratio);
    let finite = |z: &Complex<1>| z.clone().map(|part| part.slice(s![0..3]));
    close(&numbers(finite(&z()) * finite(&w())), &each(|z, w| z * w)[..3]);
    let r: Vec<f64> = z().abs().into_data().iter().collect();
    Z.iter().zip(r).for_each(|(z, r)| assert!((z.norm() - r).abs() <= 1e-15 * r));
}

#[test]
fn matrices() {
    let square = |z: Complex<1>| z.map(|part| part.slice(s![0..3]).repeat(&[3]).reshape([3, 3]));
    let (a, b) = (square(complex(&Z)), square(complex(&W)));
    let (x, y) = (numbers(a.clone()), numbers(b.clone()));
    let product: Vec<_> = (0..9)
        .map(|e| (0..3).map(|k| x[3 * (e / 3) + k] * y[3 * k + e % 3]).sum::<Complex64>())
        .collect();
    close(&numbers(a.clone().matmul(b.clone())), &product);
    // (AB)ᴴ = Bᴴ Aᴴ
    let left = numbers(a.clone().matmul(b.clone()).adjoint());
    close(&left, &numbers(b.adjoint().matmul(a.adjoint())));
}

#[test]
fn polar_form() {
    let z = Complex::from_polar(real(&[2.0, 0.5]), real(&[1.0, -2.0])).unwrap();
    close(&numbers(z), &[Complex64::from_polar(2.0, 1.0), Complex64::from_polar(0.5, -2.0)]);
}

#[test]
fn gradients_are_those_of_the_parts() {
    let leaf = |values: [f64; 3]| real(&values).require_grad();
    let (re, im) = (leaf([3.0, 0.0, 1e-200]), leaf([4.0, 0.0, 0.0]));
    let gradient = |loss: Tensor<1>| -> (Vec<f64>, Vec<f64>) {
        let grads = loss.sum().backward();
        let of = |x: &Tensor<1>| x.grad(&grads).unwrap().into_data().iter().collect();
        (of(&re), of(&im))
    };
    let z = Complex::new(re.clone(), im.clone()).unwrap();
    let two_z = gradient(z.clone().abs_squared());
    assert_eq!(two_z, (vec![6.0, 0.0, 2e-200], vec![8.0, 0.0, 0.0]));
    let (x, y) = gradient(z.abs());
    let close = |a: Vec<f64>, b: [f64; 3]| {
        a.iter().zip(b).for_each(|(a, b)| assert!((a - b).abs() < 1e-15, "{a} {b}"));
    };
    close(x, [0.6, 0.0, 1.0]);
    close(y, [0.8, 0.0, 0.0]);
}

#[test]
fn parts_must_fit() {
    let short = Complex::new(real(&[1.0, 2.0]), real(&[1.0]));
    assert!(matches!(short, Err(ExtError::ComplexShape { .. })));
    let mixed = Complex::new(real(&[1.0]), real(&[1.0]).cast(DType::F32));
    let (first, dtype) = (DType::F64, DType::F32);
    let expected = MismatchError::DType { op: "complex", first, argument: 1, dtype };
    assert_eq!(mixed.unwrap_err(), ExtError::Mismatch(expected));
}
