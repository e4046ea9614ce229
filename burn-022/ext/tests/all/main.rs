//! Operations on tensors of Burn 0.22, with `burn-flex` patched by `burn-t4a`.

// A source file is included for several tapes.
#![allow(clippy::duplicate_mod)]

#[macro_use]
mod line;
mod custom;
mod einsum;
mod linalg;
mod structured;
mod tape;
mod weights;

mod plain {
    pub(crate) use crate::line::plain::*;

    pub(crate) mod arrays;
    mod chains;
    mod complex;
    mod contractions;
    mod discrete;
    mod edges;
    mod models;
    #[cfg(feature = "networks")]
    mod networks;
    mod nn;
    mod passes;
    pub(crate) mod recurrences;
    mod scan;
    mod scan_paths;
    mod tree;
}

mod balanced {
    pub(crate) use crate::line::balanced::*;

    mod arrays;
    mod edges;
    mod nn;
    pub(crate) mod recurrences;
}

mod eager {
    pub(crate) use crate::line::eager::*;

    mod arrays;
    mod chains;
    mod scan_paths;
}

#[cfg(feature = "ndarray")]
mod ndarray {
    pub(crate) use crate::line::ndarray::*;

    mod arrays;
    mod chains;
    mod edges;
    mod nn;
    mod passes;
    pub(crate) mod recurrences;
    mod scan_paths;
}

#[cfg(feature = "ndarray")]
mod eager_ndarray {
    pub(crate) use crate::line::eager_ndarray::*;

    mod arrays;
    mod chains;
    mod scan_paths;
}

use burn_backend::DType;
use burn_dispatch::backends::Flex;
use burn_t4a_022::T4aTensor;
use burn_t4a_022::route::Path;
use burn_t4a_022_ext::einsum::{LogSumExp, MaxPlus, einsum, semiring_einsum};
use burn_t4a_022_ext::operation::{call, call_jvp, float};
use burn_t4a_022_ext::{ExtError, nn};
use burn_tensor::{Device, Int, Tensor, TensorData, Tolerance, activation};
use t4a_linalg::Linalg;
use t4a_linalg::inverse::InvOp;

fn devices() -> Vec<Device> {
    vec![
        Device::flex(),
        #[cfg(feature = "ndarray")]
        #[allow(deprecated)]
        Device::ndarray(),
    ]
}

fn matrix(device: &Device) -> Tensor<2> {
    Tensor::from_floats([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], device)
}

fn close(a: Tensor<2>, b: Tensor<2>) {
    a.into_data().assert_approx_eq::<f32>(&b.into_data(), Tolerance::rel_abs(1e-5, 1e-5));
}

/// The primitive of Flex is an engine tensor, so the patch is in use.
#[test]
fn flex_is_the_engine() {
    let x = matrix(&Device::flex());
    let y: T4aTensor = x.clone().matmul(x).try_into_primitive::<Flex>().unwrap();
    assert_eq!(y.dtype(), DType::F32);
    assert_eq!(y.route().path, Path::GemmSmall);
}

#[test]
fn einsums_of_semirings_with_gradients() {
    for device in devices() {
        let device = device.autodiff();
        let a = matrix(&device).require_grad();
        let b = matrix(&device).transpose();
        let y: Tensor<2> = einsum("ij,jk->ik", (&a, &b)).unwrap();
        close(y.clone().inner(), a.clone().matmul(b.clone()).inner());
        let grads = y.powf_scalar(2.0).sum().backward();
        let plain = a.clone().matmul(b).powf_scalar(2.0).sum().backward();
        close(a.grad(&grads).unwrap(), a.grad(&plain).unwrap());

        let best: Tensor<2> = semiring_einsum::<MaxPlus, _>("ij,jk->ik", [&a, &a]).unwrap();
        let grads = best.sum().backward();
        // Each of the nine maxima has two factors.
        assert_eq!(a.grad(&grads).unwrap().sum().into_scalar::<f32>(), 18.0);

        let soft: Tensor<1> = semiring_einsum::<LogSumExp, _>("ij->i", [&a]).unwrap();
        let share = a.grad(&soft.sum().backward()).unwrap();
        close(share, activation::softmax(a.clone().inner(), 1));
    }
}

#[test]
fn fused_layers_are_those_of_burn() {
    for device in devices() {
        let device = device.autodiff();
        let x = matrix(&device).require_grad();
        let weight = matrix(&device);
        let ours = (nn::softmax(x.clone(), 1) * weight.clone()).sum().backward();
        let burns = (activation::softmax(x.clone(), 1) * weight.clone()).sum().backward();
        close(x.grad(&ours).unwrap(), x.grad(&burns).unwrap());
        let targets = Tensor::<1, Int>::from_ints([2, 0, 1], &device);
        let loss = nn::cross_entropy(x.clone(), targets);
        let chosen =
            activation::log_softmax(x.clone().inner(), 1).into_data().try_to_vec::<f32>().unwrap();
        let want = -(chosen[2] + chosen[3] + chosen[7]) / 3.0;
        assert!((loss.clone().into_scalar::<f32>() - want).abs() < 1e-5);
        assert_eq!(x.grad(&loss.backward()).unwrap().dims(), [3, 3]);
    }
}

#[test]
fn a_decomposition_with_gradient_and_tangent() {
    for device in devices() {
        let plain = matrix(&device);
        let device = device.autodiff();
        let a = matrix(&device).require_grad();
        // d ln det A = A⁻ᵀ.
        let op = Linalg { op: InvOp.into(), complex: false };
        let inverse: Tensor<2> = call(&op, &[float(a.clone())]).unwrap();
        close(inverse.clone().matmul(a.clone()).inner(), Tensor::eye(3, &plain.device()));
        let trace: Tensor<1> = einsum("ii->", (&inverse,)).unwrap();
        let gradient = a.grad(&trace.backward()).unwrap();
        let inverse = inverse.inner();
        close(gradient, -inverse.clone().matmul(inverse.clone()).transpose());
        let (_, moved): (_, Tensor<2>) =
            call_jvp(&op, &[float(plain.clone())], &[Some(float(plain.clone()))]).unwrap();
        close(moved, -inverse);
    }
}

/// A tensor that is not on the tape is a constant.
#[test]
fn constants_mix_with_tracked_tensors() {
    let a = matrix(&Device::flex().autodiff()).require_grad();
    let b = matrix(&Device::flex());
    let y: Tensor<2> = einsum("ij,jk->ik", (&a, &b)).unwrap();
    let gradient = a.grad(&y.sum().backward()).unwrap();
    close(gradient, Tensor::<2>::ones([3, 3], &Device::flex()).matmul(b.transpose()));
}

#[test]
fn mistakes_are_errors_before_any_work() {
    let a = matrix(&Device::flex());
    let error = einsum::<2>("ij,kl->il", (&a,)).unwrap_err();
    assert!(matches!(error, ExtError::Einsum(_)), "{error}");
    let error = einsum::<1>("ij,jk->ik", (&a, &a)).unwrap_err();
    let wanted = "einsum: the result has rank 2, asked for was a tensor of rank 1";
    assert_eq!(error.to_string(), wanted);
    let wide = a.clone().cast(DType::F64);
    let error = einsum::<2>("ij,jk->ik", (&a, &wide)).unwrap_err();
    assert_eq!(error.to_string(), "einsum: operand 0 is f32, operand 1 is f64; `cast` one of them");
}

#[test]
fn sixty_four_bits_stay_exact() {
    let data = TensorData::from([1.0f64 + 1e-12, 2.0]);
    let x = Tensor::<1>::from_data(data, (&Device::flex(), DType::F64));
    let y: Tensor<1> = einsum("i,i->", (&x, &x)).unwrap();
    let want = (1.0f64 + 1e-12).powi(2) + 4.0;
    assert_eq!(y.into_data().try_to_vec::<f64>().unwrap(), [want]);
}

#[test]
fn layers_and_filters_agree_between_backends() {
    let own = plain::recurrences::layers_and_filters();
    for other in [
        balanced::recurrences::layers_and_filters(),
        #[cfg(feature = "ndarray")]
        ndarray::recurrences::layers_and_filters(),
    ] {
        for (own, other) in own.iter().zip(&other) {
            plain::arrays::close(own, other, 1e-12);
        }
    }
}
