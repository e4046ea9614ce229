//! Structured tensors against dense ones, with gradients and tangents.

use burn_t4a_022_ext::structured::*;
use burn_tensor::{DType, Device, Distribution, Tensor};

use crate::devices;

/// An operator on two spins that conserves their sum.
fn spec() -> Spec<U1> {
    let spin = Leg::new([(U1(-1), 2), (U1(1), 1)], Direction::Out).unwrap();
    Spec::new(vec![spin.clone(), spin.clone(), spin.dual(), spin.dual()], U1(0), 2).unwrap()
}

fn random(device: &Device) -> GradedTensor<U1> {
    device.seed(3);
    GradedTensor::random(&spec(), Distribution::Normal(0.0, 1.0), (device, DType::F64)).unwrap()
}

#[track_caller]
fn close<const D: usize>(a: Tensor<D>, b: Tensor<D>) {
    let [a, b] = [a, b].map(|x| x.into_data().try_to_vec::<f64>().unwrap());
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-10 * (1.0 + b.abs())), "{a:?} {b:?}");
}

#[test]
fn contractions_and_their_gradients_are_dense_ones() {
    for device in devices() {
        let x = random(&device.clone().autodiff()).require_grad();
        let square = x.contract(&x, &[2, 3], &[0, 1]).unwrap();
        let y = square.to_tensor::<4>().unwrap();
        let dense = x.to_tensor::<4>().unwrap().inner().require_grad_on_tape();
        let matrix = dense.clone().reshape([9, 9]);
        let want = matrix.clone().matmul(matrix).reshape([3, 3, 3, 3]);
        close(y.clone().inner(), want.clone().inner());
        let own = x.grad(&y.powi_scalar(3).sum().backward()).unwrap();
        let want = dense.grad(&want.powi_scalar(3).sum().backward()).unwrap();
        // Entries that are not stored have no gradient.
        let stored = GradedTensor::from_flat(&spec(), own.flat().ones_like()).unwrap();
        close(own.to_tensor::<4>().unwrap(), want * stored.to_tensor::<4>().unwrap());
    }
}

/// A tensor without a tape as a leaf of a tape.
trait Leaf {
    fn require_grad_on_tape(self) -> Self;
}

impl<const D: usize> Leaf for Tensor<D> {
    fn require_grad_on_tape(self) -> Self {
        Tensor::from_inner(self).require_grad()
    }
}

#[test]
fn factors_multiply_to_the_tensor() {
    for device in devices() {
        let x = random(&device.clone().autodiff()).require_grad();
        let Svd { u, s, vh } = x.svd(2, FluxOn::Left).unwrap();
        let product = u.scale_bond(2, &s).and_then(|us| us.contract(&vh, &[2], &[0])).unwrap();
        close(product.to_tensor::<4>().unwrap().inner(), x.to_tensor::<4>().unwrap().inner());
        // Σ s² has the gradient 2 x.
        let norm = s.values().tensor::<1>().unwrap().powi_scalar(2).sum().backward();
        close(x.grad(&norm).unwrap().flat(), x.valid().flat() * 2.0);
        // The same along a tangent.
        let t = random(&device);
        let dual = x.valid().with_tangent(Some(&t)).unwrap();
        let inner = dual.inner(&dual).unwrap();
        let [re, moved] =
            [inner.0.value.clone(), inner.0.into_tangent()].map(|x| x.tensor::<1>().unwrap());
        close(re, x.valid().flat().powi_scalar(2).sum());
        close(moved, (x.valid().flat() * t.flat()).sum() * 2.0);
    }
}

#[test]
fn blocks_and_diagonals_are_dense_ones() {
    for device in devices() {
        let device = device.autodiff();
        let of = |data: &[f64]| Tensor::<1>::from_data(data, (&device, DType::F64));
        let pattern = Pattern::new(vec![vec![2, 1]; 2], vec![vec![0, 0], vec![0, 1]]).unwrap();
        let pattern = std::sync::Arc::new(pattern);
        let x = BlockSparseTensor::from_flat(&pattern, of(&[1., 2., 3., 4., 5., 6.])).unwrap();
        let x = x.require_grad();
        let y =
            x.contract(&x, &[1], &[0], FloatSemiring::Standard).unwrap().to_tensor::<2>().unwrap();
        let dense = x.to_tensor::<2>().unwrap().inner();
        close(y.clone().inner(), dense.clone().matmul(dense.clone()));
        // d Σ (x x) = 1 xᵀ + xᵀ 1.
        let one = dense.ones_like();
        let slope = one.clone().matmul(dense.clone().transpose()) + dense.transpose().matmul(one);
        let stored = BlockSparseTensor::from_flat(&pattern, of(&[1.0; 6]).inner()).unwrap();
        let gradient = x.grad(&y.sum().backward()).unwrap();
        close(gradient.to_tensor::<2>().unwrap(), slope * stored.to_tensor::<2>().unwrap());

        let classes = Classes { payload: vec![3], classes: vec![0, 0] };
        let d = DiagTensor::from_flat(&classes, of(&[1.0, -2.0, 3.0])).unwrap().require_grad();
        let cube = diag_einsum(FloatSemiring::Standard, "ij,jk,kl->il", &[&d, &d, &d]).unwrap();
        assert_eq!(cube.to_tensor::<2>().unwrap().dims(), [3, 3]);
        let gradient = d.grad(&cube.flat().sum().backward()).unwrap();
        close(gradient.flat(), of(&[3.0, 12.0, 27.0]).inner());
    }
}

/// A leaf with several classes of axes keeps its gradient, independent of its construction: its elements are stored
/// as given, and a reshaped tensor is not a leaf.
#[test]
fn a_diagonal_of_several_classes_is_a_leaf() {
    for device in devices() {
        let device = device.autodiff();
        let of = |data: &[f64]| Tensor::<1>::from_data(data, (&device, DType::F64));
        let data = of(&[1.0, -2.0, 3.0, 4.0, 0.5, -1.0]);
        let classes = Classes { payload: vec![2, 3], classes: vec![0, 1, 0] };
        let payload = data.clone().reshape([2, 3]);
        let leaves = [
            DiagTensor::from_flat(&classes, data.clone()).unwrap().require_grad(),
            DiagTensor::from_flat(&classes, data.clone().require_grad()).unwrap(),
            DiagTensor::new(payload.clone().into(), vec![0, 1, 0]).unwrap().require_grad(),
            DiagTensor::new(payload.detach().require_grad().into(), vec![0, 1, 0]).unwrap(),
        ];
        for d in leaves {
            let dense = d.to_tensor::<3>().unwrap();
            assert_eq!(dense.dims(), [2, 3, 2]);
            let gradient = d.grad(&dense.powi_scalar(2).sum().backward()).unwrap();
            assert_eq!((gradient.sizes(), gradient.classes()), (&[2, 3][..], &[0, 1, 0][..]));
            close(gradient.flat(), data.clone().inner() * 2.0);
            let tangent = d.valid().with_tangent(Some(&gradient)).unwrap();
            let (_, moved) = DiagTensor::from_dual(&tangent.scale(3.0)).unwrap();
            close(moved.flat(), data.clone().inner() * 6.0);
        }
    }
}

#[test]
fn mistakes_are_typed_errors() {
    let device = Device::flex();
    let data = Tensor::<1>::zeros([3], &device);
    let error = GradedTensor::from_flat(&spec(), data).unwrap_err();
    assert!(matches!(error, StructuredError::LengthMismatch { .. }), "{error}");
    let error = random(&device).to_tensor::<2>().unwrap_err();
    assert!(error.to_string().contains("rank 2 is asked for"), "{error}");
}
