//! Which kernel computed the results of operations beyond Burn's, and what a strict policy does where there is
//! none. One test: the policy is that of the process.

use burn_t4a_022_ext::einsum::{MaxPlus, bool_einsum, counting_einsum, int_einsum, k_best_einsum};
use burn_t4a_022_ext::linalg;
use burn_t4a_022_ext::operation::{flags, float, integers, route};
use burn_t4a_022_ext::route::{Path, Policy, Reason, Route, set_policy};
use burn_t4a_022_ext::scan::fused::{System, kalman_filter};
use burn_tensor::{Bool, Device, Int, Tensor};

fn matrix(device: &Device) -> Tensor<2> {
    Tensor::from_floats([[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]], device)
}

/// The routes of what linear algebra and contractions without a derivative return.
fn routes(a: Tensor<2>) -> Vec<(&'static str, Option<Route>)> {
    let linalg::Svd { u, s, vh } = linalg::svd(a.clone()).unwrap();
    let linalg::Eig { values, .. } = linalg::eig(a.clone()).unwrap();
    let linalg::Lu { rows, .. } = linalg::lu(a.clone()).unwrap();
    let positive = a.clone().greater_elem(0.0);
    let any: Tensor<2, Bool> = bool_einsum("ij,jk->ik", [&positive, &positive]).unwrap();
    let whole = a.clone().int();
    let ints: Tensor<2, Int> = int_einsum::<MaxPlus, 2>("ij,jk->ik", [&whole, &whole]).unwrap();
    let (_, ways) = counting_einsum::<MaxPlus, 2>("ij,jk->ik", [&a, &a]).unwrap();
    let best: Tensor<3> = k_best_einsum::<MaxPlus, 2, 3>("ij,jk->ik", [&a, &a]).unwrap();
    let all = [
        ("cholesky", float(linalg::cholesky(a.clone()).unwrap())),
        ("u", float(u)),
        ("s", float(s)),
        ("vh", float(vh)),
        ("values", float(values.im())),
        ("det", float(linalg::det(a).unwrap())),
        ("rows", integers(rows)),
        ("bool", flags(any)),
        ("int", integers(ints)),
        ("ways", integers(ways)),
        ("best", float(best)),
    ];
    all.map(|(name, x)| (name, route(&x))).to_vec()
}

fn are_native(all: Vec<(&'static str, Option<Route>)>) {
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

/// A Kalman filter of more states than there are kernels for.
fn filter(device: &Device) -> Result<Option<Route>, String> {
    let unit = |n: usize| Tensor::<2>::eye(n, device);
    let system = System {
        transition: unit(9),
        process_noise: unit(9),
        observation: unit(9).narrow(0, 0, 1),
        observation_noise: unit(1),
    };
    let (y, mean) = (Tensor::<3>::ones([1, 2, 1], device), Tensor::<1>::zeros([9], device));
    let found = kalman_filter(system, y, mean, unit(9)).map_err(|error| error.to_string())?;
    Ok(route(&float(found.0)))
}

/// A backend that is not the engine runs definitions, or lends its elements to the engine.
#[cfg(feature = "ndarray")]
fn elsewhere(device: &Device) {
    let error = |name: &str, route: &str| {
        format!("{name}: route {route} (op_unsupported) is rejected by the route policy")
    };
    let a = || matrix(device);
    let given = linalg::cholesky(a()).unwrap_err().to_string();
    assert_eq!(given, error("cholesky", "portable"));
    let given = burn_t4a_022_ext::einsum::einsum::<2>("ij,jk->ik", [&a(), &a()]).unwrap_err();
    assert_eq!(given.to_string(), error("einsum", "portable"));
    let positive = a().greater_elem(0.0);
    let given = bool_einsum::<2>("ij,jk->ik", [&positive, &positive]).unwrap_err();
    assert!(matches!(given, burn_t4a_022_ext::ExtError::Tensor(_)));
    assert_eq!(given.to_string(), error("bool_einsum", "host_data"));
    let whole = a().int();
    let given = int_einsum::<MaxPlus, 2>("ij,jk->ik", [&whole, &whole]).unwrap_err();
    assert_eq!(given.to_string(), error("int_einsum", "host_data"));
    let given = counting_einsum::<MaxPlus, 2>("ij,jk->ik", [&a(), &a()]).unwrap_err();
    assert_eq!(given.to_string(), error("counting_einsum", "host_data"));
    let given = k_best_einsum::<MaxPlus, 2, 3>("ij,jk->ik", [&a(), &a()]).unwrap_err();
    assert_eq!(given.to_string(), error("k_best_einsum", "host_data"));
}

#[test]
fn routes_are_said_by_the_kernel_and_fallbacks_ask_the_policy() {
    let (plain, tape) = (Device::flex(), Device::flex().autodiff());
    are_native(routes(matrix(&plain)));
    // On a tape several results are one node, and keep the route of the operation.
    are_native(routes(matrix(&tape)));
    are_native(routes(matrix(&tape).require_grad()));
    assert_eq!(filter(&plain).unwrap().unwrap().reason, Reason::OpUnsupported);

    set_policy(Policy::RejectFallback);
    are_native(routes(matrix(&tape).require_grad()));
    let wanted =
        "kalman_filter: route loop_contiguous (op_unsupported) is rejected by the route policy";
    assert_eq!(filter(&plain).unwrap_err(), wanted);
    #[cfg(feature = "ndarray")]
    #[allow(deprecated)]
    for device in [Device::ndarray(), Device::ndarray().autodiff()] {
        elsewhere(&device);
    }
    set_policy(Policy::Allow);
}
