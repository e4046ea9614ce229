//! Routes of results on the engine, and errors of the policy on another backend.

// `crate::routes` calls different functions on each backend.
#![allow(dead_code)]

use burn_tensor::{Bool, Int};
use t4a_tensor::route::{Path, Reason, Route};

use super::ext::einsum::{MaxPlus, bool_einsum, einsum};
use super::ext::operation::{float, route};
use super::ext::scan::fused::{System, kalman_filter};
use super::ext::{self, linalg};
use super::{Tensor, counting, device, flags, integers, ints, k_best};

pub(crate) fn matrix() -> Tensor<2> {
    Tensor::from_floats([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], &device())
}

/// Routes of results of linear algebra and of contractions without a derivative.
pub(crate) fn routes(a: Tensor<2>) -> Vec<(&'static str, Option<Route>)> {
    let linalg::Svd { u, s, vh } = linalg::svd(a.clone()).unwrap();
    let linalg::Eig { values, .. } = linalg::eig(a.clone()).unwrap();
    let linalg::Lu { rows, .. } = linalg::lu(a.clone()).unwrap();
    let positive = a.clone().greater_elem(0.0);
    let any: Tensor<2, Bool> = bool_einsum("ij,jk->ik", [&positive, &positive]).unwrap();
    let whole = a.clone().int();
    let most: Tensor<2, Int> =
        ints::<MaxPlus, 2, _>("ij,jk->ik", vec![whole.clone(), whole]).unwrap();
    let pair = || vec![a.clone(), a.clone()];
    let (_, ways) = counting::<MaxPlus, 2, _>("ij,jk->ik", pair()).unwrap();
    let best: Tensor<3> = k_best::<MaxPlus, 2, 3, _>("ij,jk->ik", pair()).unwrap();
    [
        ("cholesky", route(&float(linalg::cholesky(a.clone()).unwrap()))),
        ("u", route(&float(u))),
        ("s", route(&float(s))),
        ("vh", route(&float(vh))),
        ("values", route(&float(values.im()))),
        ("det", route(&float(linalg::det(a).unwrap()))),
        ("rows", route(&integers(rows))),
        ("bool", route(&flags(any))),
        ("int", route(&integers(most))),
        ("ways", route(&integers(ways))),
        ("best", route(&float(best))),
    ]
    .to_vec()
}

pub(crate) fn are_native(all: Vec<(&'static str, Option<Route>)>) {
    for (name, route) in all {
        let route = route.unwrap_or_else(|| panic!("{name} has no route"));
        assert_eq!(route.reason, Reason::Native, "{name}");
        let label = route.path.label();
        match name {
            "bool" | "int" | "ways" | "best" => {
                assert!(label.starts_with("gemm_"), "{name}: {label}")
            }
            _ => assert_eq!(route.path, Path::LinalgSequential, "{name}"),
        }
    }
}

/// A Kalman filter with more states than specialised kernels support.
pub(crate) fn filter() -> Result<Option<Route>, String> {
    let unit = |n: usize| Tensor::<2>::eye(n, &device());
    let system = System {
        transition: unit(9),
        process_noise: unit(9),
        observation: unit(9).narrow(0, 0, 1),
        observation_noise: unit(1),
    };
    let (y, mean) = (Tensor::<3>::ones([1, 2, 1], &device()), Tensor::<1>::zeros([9], &device()));
    let found = kalman_filter(system, y, mean, unit(9)).map_err(|error| error.to_string())?;
    Ok(route(&float(found.0)))
}

/// On a backend other than the engine, operations run by definition or through host data.
pub(crate) fn is_rejected() {
    let error = |name: &str, route: &str| {
        format!("{name}: route {route} (op_unsupported) is rejected by the route policy")
    };
    let a = matrix();
    let given = linalg::cholesky(a.clone()).unwrap_err().to_string();
    assert_eq!(given, error("cholesky", "host_data"));
    let product: ext::Result<Tensor<2>> = einsum("ij,jk->ik", [&a, &a]);
    assert_eq!(product.unwrap_err().to_string(), error("einsum", "portable"));
    let positive = a.clone().greater_elem(0.0);
    let any: ext::Result<Tensor<2, Bool>> = bool_einsum("ij,jk->ik", [&positive, &positive]);
    let given = any.unwrap_err();
    assert!(matches!(given, ext::ExtError::Tensor(_)));
    assert_eq!(given.to_string(), error("bool_einsum", "host_data"));
    let whole = a.clone().int();
    let given = ints::<MaxPlus, 2, _>("ij,jk->ik", vec![whole.clone(), whole]).unwrap_err();
    assert_eq!(given.to_string(), error("int_einsum", "host_data"));
    let pair = || vec![a.clone(), a.clone()];
    let given = counting::<MaxPlus, 2, _>("ij,jk->ik", pair()).unwrap_err();
    assert_eq!(given.to_string(), error("counting_einsum", "host_data"));
    let given = k_best::<MaxPlus, 2, 3, _>("ij,jk->ik", pair()).unwrap_err();
    assert_eq!(given.to_string(), error("k_best_einsum", "host_data"));
}
