//! Which kernel computed the results of operations beyond Burn's, and what a strict policy does where there is
//! none. One test: the policy is that of the process.

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::einsum::{
    MaxPlus, bool_einsum, counting_einsum, einsum, int_einsum, k_best_einsum,
};
use burn_t4a::ext::operation::{Operand, Operations, Value, float, route};
use burn_t4a::ext::primitive::{Bools, Indices};
use burn_t4a::ext::scan::fused::{System, kalman_filter};
use burn_t4a::ext::{ExtError, linalg};
use burn_t4a::route::{Path, Policy, Reason, Route, set_policy};
use burn_tensor::{Bool, Int, Tensor};

fn matrix<B: Operations>() -> Tensor<B, 2> {
    let x = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]];
    Tensor::from_floats(x, &Default::default())
}

fn integers<B: Operations, const D: usize>(x: Tensor<B, D, Int>) -> Operand<B> {
    Value::Integers(Indices(x.into_primitive()))
}

/// The routes of what linear algebra and contractions without a derivative return.
fn routes<B: Operations>(a: Tensor<B, 2>) -> Result<Vec<(&'static str, Option<Route>)>, ExtError> {
    let accept = |error: linalg::LinalgError| match error {
        linalg::LinalgError::Tensor(error) => ExtError::from(error),
        other => panic!("{other}"),
    };
    let mut all = Vec::new();
    let l = linalg::cholesky(a.clone()).map_err(accept)?;
    let linalg::Svd { u, s, vh } = linalg::svd(a.clone()).map_err(accept)?;
    let linalg::Eig { values, .. } = linalg::eig(a.clone()).map_err(accept)?;
    let det = linalg::det(a.clone()).map_err(accept)?;
    let linalg::Lu { rows, .. } = linalg::lu(a.clone()).map_err(accept)?;
    for (name, x) in [
        ("cholesky", float(l)),
        ("u", float(u)),
        ("s", float(s)),
        ("vh", float(vh)),
        ("values", float(values.im())),
        ("det", float(det)),
        ("rows", integers(rows)),
    ] {
        all.push((name, route(&x)));
    }
    let positive = a.clone().greater_elem(0.0);
    let flags: Tensor<B, 2, Bool> = bool_einsum("ij,jk->ik", [&positive, &positive])?;
    all.push(("bool", route::<B>(&Value::Flags(Bools(flags.into_primitive())))));
    let whole = a.clone().int();
    let ints: Tensor<B, 2, Int> = int_einsum::<MaxPlus, _, 2>("ij,jk->ik", [&whole, &whole])?;
    all.push(("int", route(&integers(ints))));
    let (_, ways) = counting_einsum::<MaxPlus, _, 2>("ij,jk->ik", [&a, &a])?;
    all.push(("ways", route(&integers(ways))));
    let best: Tensor<B, 3> = k_best_einsum::<MaxPlus, 2, _, 3>("ij,jk->ik", [&a, &a])?;
    all.push(("best", route(&float(best))));
    Ok(all)
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
fn filter<B: Operations>() -> Result<Option<Route>, String> {
    let unit = |n: usize| Tensor::<B, 2>::eye(n, &Default::default());
    let system = System {
        transition: unit(9),
        process_noise: unit(9),
        observation: unit(9).narrow(0, 0, 1),
        observation_noise: unit(1),
    };
    let y = Tensor::<B, 3>::ones([1, 2, 1], &Default::default());
    let mean = Tensor::<B, 1>::zeros([9], &Default::default());
    let found = kalman_filter(system, y, mean, unit(9)).map_err(|error| error.to_string())?;
    Ok(route(&float(found.0)))
}

#[test]
fn routes_are_said_by_the_kernel_and_fallbacks_ask_the_policy() {
    are_native(routes::<BurnT4a>(matrix()).unwrap());
    // On a tape several results are one node, and keep the route of the operation.
    are_native(routes::<Autodiff<BurnT4a>>(matrix()).unwrap());
    are_native(routes::<Autodiff<BurnT4a>>(matrix().require_grad()).unwrap());
    assert!(routes::<Flex>(matrix()).unwrap().iter().all(|(_, route)| route.is_none()));
    assert_eq!(filter::<BurnT4a>().unwrap().unwrap().reason, Reason::OpUnsupported);

    set_policy(Policy::RejectFallback);
    are_native(routes::<Autodiff<BurnT4a>>(matrix().require_grad()).unwrap());
    let rejected = "is rejected by the route policy";
    let wanted = format!("kalman_filter: route loop_contiguous (op_unsupported) {rejected}");
    assert_eq!(filter::<BurnT4a>().unwrap_err(), wanted);
    // Another backend runs definitions, or lends its elements to the engine.
    fn flex<B: Operations>() {
        let rejected = "is rejected by the route policy";
        let a = matrix::<B>;
        let error =
            |name: &str, route: &str| format!("{name}: route {route} (op_unsupported) {rejected}");
        let given = linalg::cholesky(a()).unwrap_err().to_string();
        assert_eq!(given, error("cholesky", "portable"));
        let given = einsum::<B, 2>("ij,jk->ik", [&a(), &a()]).unwrap_err().to_string();
        assert_eq!(given, error("einsum", "portable"));
        let flags = a().greater_elem(0.0);
        let given = bool_einsum::<B, 2>("ij,jk->ik", [&flags, &flags]).unwrap_err();
        assert!(matches!(given, ExtError::Tensor(_)));
        assert_eq!(given.to_string(), error("bool_einsum", "host_data"));
        let ints = a().int();
        let given = int_einsum::<MaxPlus, B, 2>("ij,jk->ik", [&ints, &ints]).unwrap_err();
        assert_eq!(given.to_string(), error("int_einsum", "host_data"));
        let given = counting_einsum::<MaxPlus, B, 2>("ij,jk->ik", [&a(), &a()]).unwrap_err();
        assert_eq!(given.to_string(), error("counting_einsum", "host_data"));
        let given = k_best_einsum::<MaxPlus, 2, B, 3>("ij,jk->ik", [&a(), &a()]).unwrap_err();
        assert_eq!(given.to_string(), error("k_best_einsum", "host_data"));
    }
    flex::<Flex>();
    flex::<Autodiff<Flex>>();
    set_policy(Policy::Allow);
}
