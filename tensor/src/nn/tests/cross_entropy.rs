use super::{assert_vjp, random};
use crate::nn::cross_entropy::*;
use crate::testing::assert_close;
use crate::{AnyTensor, DType, Tensor, TensorError};

fn targets(n: usize, c: usize) -> Tensor<i64> {
    Tensor::from_fn(&[n], |i| (i * 7 % c) as i64).unwrap()
}

#[test]
fn losses_agree_with_their_definition_and_do_not_overflow() {
    for (n, c) in [(1, 1), (3, 5), (70, 33), (5, 20_000)] {
        let (x, t) = (random(&[c, n], 1).permute(&[1, 0]).unwrap(), targets(n, c));
        let want: Vec<f64> = (0..n)
            .map(|i| {
                let sum: f64 = (0..c).map(|j| x.get(&[i, j]).unwrap().exp()).sum();
                sum.ln() - x.get(&[i, t.get(&[i]).unwrap() as usize]).unwrap()
            })
            .collect();
        let y = cross_entropy(&x, &t).unwrap();
        assert_close(&y.to_vec().unwrap(), &want, 1e-13, "f64");
        let narrow = AnyTensor::from(x).cast(DType::F32).unwrap();
        let at = AnyTensor::from(t).cast(DType::I32).unwrap();
        let y = narrow.cross_entropy(&at).unwrap().cast(DType::F64).unwrap();
        assert_close(&y.typed::<f64>().unwrap().to_vec().unwrap(), &want, 1e-5, "f32");
    }
    let x = Tensor::from_vec(vec![1e4, -1e4, 1e4], &[1, 3]).unwrap();
    let y = cross_entropy(&x, &Tensor::from_vec(vec![1], &[1]).unwrap()).unwrap();
    assert_close(&y.to_vec().unwrap(), &[2e4 + 2f64.ln()], 1e-14, "far apart");
}

#[test]
fn cotangents_agree_with_differences() {
    for (n, c) in [(3, 5), (40, 17)] {
        let (x, t, dy) = (random(&[n, c], 1), targets(n, c), random(&[n], 2));
        let f = |x: &Tensor<f64>| cross_entropy(x, &t).unwrap();
        let dx = cross_entropy_vjp(&x, &t, &f(&x), &dy).unwrap();
        assert_vjp(&x, &dx, &dy, f);
    }
}

#[test]
fn targets_that_are_no_classes_are_errors() {
    let x = random(&[2, 3], 1);
    for bad in [-1, 3] {
        let t = Tensor::from_vec(vec![0, bad], &[2]).unwrap();
        let error = cross_entropy(&x, &t).unwrap_err();
        assert!(matches!(error, TensorError::Index { index, size: 3, .. } if index == bad));
    }
    let t = Tensor::from_vec(vec![0i64], &[1]).unwrap();
    assert!(matches!(cross_entropy(&x, &t), Err(TensorError::ShapeMismatch { .. })));
    let t = AnyTensor::from(random(&[2], 1));
    assert!(AnyTensor::from(x).cross_entropy(&t).is_err());
}
