//! Factorisations of tensors of Burn 0.22, on the engine and on other backends through host data.

use burn_t4a_022_ext::{Complex, linalg};
use burn_tensor::{Device, Tensor, TensorData, Tolerance};

use crate::{devices, matrix};

fn close<const D: usize>(a: Tensor<D>, b: impl Into<TensorData>) {
    a.into_data().assert_approx_eq::<f32>(&b.into(), Tolerance::rel_abs(1e-4, 1e-4));
}

#[test]
fn factors_multiply_to_the_matrix() {
    for device in devices() {
        let a = matrix(&device);
        let data = a.clone().into_data();
        let linalg::Svd { u, s, vh } = linalg::svd(a.clone()).unwrap();
        close((u * s.unsqueeze::<2>()).matmul(vh), data.clone());
        let linalg::Qr { q, r } = linalg::qr(a.clone()).unwrap();
        close(q.matmul(r), data.clone());
        let linalg::Eigh { values, vectors } = linalg::eigh(a.clone()).unwrap();
        let scaled = vectors.clone() * values.unsqueeze::<2>();
        close(scaled.matmul(vectors.transpose()), data.clone());
        let linalg::Lu { l, u, rows } = linalg::lu(a.clone()).unwrap();
        close(l.matmul(u), a.clone().select(0, rows).into_data());
        let l = linalg::cholesky(a.clone()).unwrap();
        close(l.clone().matmul(l.transpose()), data);
        let b = Tensor::<1>::from_floats([1.0, 2.0, 3.0], &device);
        let x = linalg::solve(a.clone(), b.clone()).unwrap();
        close(a.matmul(x.unsqueeze_dim::<2>(1)).squeeze_dim::<1>(1), b.into_data());
    }
}

#[test]
fn gradients_are_those_of_the_identities() {
    for device in devices() {
        let device = device.autodiff();
        // d ln|det A| = A⁻ᵀ.
        let a = matrix(&device).require_grad();
        let (_, log) = linalg::slogdet(a.clone()).unwrap();
        let gradient = a.grad(&log.backward()).unwrap();
        close(gradient, linalg::inv(a.clone().inner()).unwrap().transpose().into_data());
        // d Σ λ² = 2 A.
        let values = linalg::eigvalsh(a.clone()).unwrap();
        let gradient = a.grad(&values.powf_scalar(2.0).sum().backward()).unwrap();
        close(gradient, (a.inner() * 2.0).into_data());
    }
}

/// Of matrices that are regular, singular to rounding, singular, not finite; its gradient at diag(2, ½) is that of
/// `a₂₂/a₁₁`.
#[test]
fn reciprocal_condition_numbers() {
    for device in devices() {
        let a = [
            [[2.0, 0.0], [0.0, 0.5]],
            [[0.1, 0.3], [0.2, 0.6]],
            [[1.0, 2.0], [2.0, 4.0]],
            [[f32::NAN, 0.0], [0.0, 1.0]],
        ];
        let x = Tensor::<3>::from_floats(a, &device.autodiff()).require_grad();
        let found: Tensor<1> = linalg::rcond(x.clone()).unwrap();
        let r = found.clone().into_data().try_to_vec::<f32>().unwrap();
        assert_eq!((r[0], r[2], r[3]), (0.25, 0.0, 0.0));
        assert!(r[1] < 1e-6, "{r:?}");
        let gradients = found.narrow(0, 0, 1).sum().backward();
        let own = x.grad(&gradients).unwrap().narrow(0, 0, 1).reshape([2, 2]);
        close(own, TensorData::from([[-0.125f32, 0.0], [0.0, 0.5]]));
    }
}

#[test]
fn complex_matrices_are_pairs() {
    for device in devices() {
        let z = Complex::new(matrix(&device), matrix(&device).triu(0) * 0.5).unwrap();
        let inverse = linalg::inv(z.clone()).unwrap();
        let one = z.matmul(inverse);
        close(one.re(), Tensor::<2>::eye(3, &device).into_data());
        close(one.im(), Tensor::<2>::zeros([3, 3], &device).into_data());
    }
}

#[test]
fn one_bad_matrix_is_named_or_marked() {
    let good = matrix(&Device::flex());
    let batch = Tensor::stack::<3>(vec![good.clone(), good.zeros_like()], 0);
    let error = linalg::cholesky(batch.clone()).unwrap_err().to_string();
    assert!(error.contains('1'), "{error}");
    let (l, info) = linalg::status(linalg::op::CholeskyOp, batch).unwrap();
    assert_eq!(info.into_data().iter::<i64>().map(|x| x != 0).collect::<Vec<_>>(), [false, true]);
    let first = l.narrow(0, 0, 1).squeeze_dim::<2>(0);
    close(first.clone().matmul(first.transpose()), good.into_data());
}
