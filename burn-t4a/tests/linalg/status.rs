//! Errors with their place in the batch, and the status tensors that keep them there.

#![allow(clippy::single_range_in_vec_init, clippy::type_complexity)]

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg::*;
use burn_tensor::Tensor;

use crate::cases::{tensor, values};

type AD = Autodiff<BurnT4a>;

/// Three matrices: regular, bad, regular.
fn batch<B: LinalgOps>(bad: [f64; 4]) -> Tensor<B, 3> {
    let regular = [2.0, 0.5, 0.5, 1.0];
    tensor([regular, bad, [1.5, -0.2, -0.2, 3.0]].concat(), [3, 2, 2])
}

const NAN: [f64; 4] = [1.0, f64::NAN, 0.0, 1.0];
const SINGULAR: [f64; 4] = [1.0, 2.0, 2.0, 4.0];
const INDEFINITE: [f64; 4] = [1.0, 2.0, 2.0, 1.0];

#[test]
fn errors_name_the_matrix() {
    type B = BurnT4a;
    let nan = batch::<B>(NAN);
    let failures = [
        ("svd", svd(nan.clone()).err()),
        ("svdvals", svdvals(nan.clone()).err()),
        ("qr", qr(nan.clone()).err()),
        ("lu_factor", lu(nan.clone()).err()),
        ("cholesky", cholesky(nan.clone()).err()),
        ("eigh", eigh(nan.clone()).err()),
        ("eigvalsh", eigvalsh(nan.clone()).err()),
        ("eig", eig(nan.clone()).err()),
        ("polar", polar(nan.clone(), Side::Right).err()),
        ("expm", expm(nan.clone()).err()),
        ("sqrtm", sqrtm(nan.clone()).err()),
        ("hermitian_function", hermitian_function(nan.clone(), Elementary::Exp).err()),
        ("inv", inv(nan.clone()).err()),
        ("pinv", pinv(nan.clone(), None).err()),
        ("det", det(nan.clone()).err()),
        ("slogdet", slogdet(nan.clone()).err()),
        ("solve", solve(nan.clone(), nan.clone()).err()),
        ("lyapunov", lyapunov(nan.clone(), nan.clone()).err()),
        ("solve_triangular", solve_triangular(nan.clone(), nan, Triangle::UPPER).err()),
    ];
    for (op, error) in failures {
        assert_eq!(error, Some(LinalgError::NonFinite { op, batch: 1 }), "{op}");
    }
    let error = cholesky(batch::<B>(INDEFINITE)).unwrap_err();
    assert_eq!(error, LinalgError::NonPositivePivot { op: "cholesky", batch: 1, index: 1 });
    let error = inv(batch::<B>(SINGULAR)).unwrap_err();
    assert!(matches!(error, LinalgError::Singular { batch: 1, index: 1, .. }), "{error}");
    let error = hermitian_function(batch::<B>(INDEFINITE), Elementary::Ln).unwrap_err();
    assert_eq!(error, LinalgError::OutsideDomain { op: "hermitian_function", batch: 1 });
    // No real root: the iteration meets a singular iterate, or does not settle.
    let error = sqrtm(batch::<B>([-1.0, 0.0, 0.0, -2.0])).unwrap_err();
    use LinalgError::{NoConvergence, Singular};
    assert!(matches!(error, NoConvergence { batch: 1, .. } | Singular { batch: 1, .. }), "{error}");
    let error = expm(batch::<B>([1e3, 0.0, 0.0, 1e3])).unwrap_err();
    assert!(matches!(error, LinalgError::Overflow { batch: 1, .. }), "{error}");
    let error = lyapunov(batch::<B>(INDEFINITE), batch(SINGULAR)).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { batch: 1, rank: 1, .. }), "{error}");
}

#[test]
fn shapes_and_dtypes_are_checked() {
    let wide = tensor::<BurnT4a, 3>(vec![1.0; 12], [2, 2, 3]);
    for error in [det(wide.clone()).err(), cholesky(wide.clone()).err(), eigh(wide.clone()).err()] {
        assert!(matches!(error, Some(LinalgError::NotSquare { .. })), "{error:?}");
    }
    let regular = batch::<BurnT4a>(INDEFINITE);
    for error in [
        solve(regular.clone(), wide.clone()).err(),
        lstsq(regular.clone(), wide.clone()).err(),
        svd(regular.clone().cast(burn_backend::DType::F16)).err(),
        solve(regular.clone(), regular.clone().cast(burn_backend::DType::F32)).err(),
        pinv(regular, Some(-1.0)).err(),
    ] {
        assert!(matches!(error, Some(LinalgError::Tensor(_))), "{error:?}");
    }
    let empty = tensor::<BurnT4a, 3>(vec![], [0, 3, 3]);
    assert_eq!(svd(empty.clone()).unwrap().u.dims(), [0, 3, 3]);
    assert_eq!(det(empty).unwrap().dims(), [0]);
}

/// Values, status and gradients of the two good matrices are what they are alone.
fn isolated<B: burn_backend::AutodiffBackend + LinalgOps>(
    name: &str,
    bad: [f64; 4],
    code: i64,
    f: fn(Tensor<B, 3>) -> (Tensor<B, 3>, Tensor<B, 1, burn_tensor::Int>),
) {
    let x = batch::<B>(bad).require_grad();
    let (y, info) = f(x.clone());
    let codes: Vec<i64> = info.into_data().iter::<i64>().collect();
    assert_eq!(codes, [0, code, 0], "{name}");
    let gradients =
        (y.clone() * y.clone()).slice([0..1]).sum() + (y.clone() * y.clone()).slice([2..3]).sum();
    let gradients = gradients.backward();
    let (y, bar) = (values(y), values(x.grad(&gradients).unwrap()));
    assert!(y[4..8].iter().all(|y| y.is_nan()), "{name}: {y:?}");
    assert_eq!(bar[4..8], [0.0; 4], "{name}");
    for at in [0, 2] {
        let alone = batch::<B>(bad).slice([at..at + 1]).require_grad();
        let (z, info) = f(alone.clone());
        assert_eq!(info.into_data().iter::<i64>().collect::<Vec<_>>(), [0], "{name}");
        let gradients = (z.clone() * z.clone()).sum().backward();
        let (z, alone) = (values(z), values(alone.grad(&gradients).unwrap()));
        for i in 0..4 {
            assert!((y[4 * at + i] - z[i]).abs() < 1e-13, "{name}: {y:?} {z:?}");
            assert!((bar[4 * at + i] - alone[i]).abs() < 1e-12, "{name}: {bar:?} {alone:?}");
        }
    }
}

fn all<B: burn_backend::AutodiffBackend + LinalgOps>() {
    isolated::<B>("svd", NAN, -2, |x| {
        let (out, info) = svd_ex(x).unwrap();
        (out.u.matmul(out.vh), info)
    });
    isolated::<B>("svdvals", NAN, -2, |x| {
        let (s, info) = svdvals_ex(x).unwrap();
        (s.unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
    });
    isolated::<B>("qr", NAN, -2, |x| {
        let (out, info) = qr_ex(x).unwrap();
        (out.q + out.r, info)
    });
    isolated::<B>("cholesky", INDEFINITE, 2, |x| cholesky_ex(x).unwrap());
    isolated::<B>("eigh", NAN, -2, |x| {
        let (out, info) = eigh_ex(x).unwrap();
        (out.vectors * out.values.unsqueeze_dim(1), info)
    });
    isolated::<B>("eigvalsh", NAN, -2, |x| {
        let (e, info) = eigvalsh_ex(x).unwrap();
        (e.unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
    });
    isolated::<B>("eig", NAN, -2, |x| {
        let (out, info) = eig_ex(x).unwrap();
        (out.values.abs_squared().unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
    });
    isolated::<B>("inv", SINGULAR, 2, |x| inv_ex(x).unwrap());
    isolated::<B>("solve", SINGULAR, 2, |x| solve_ex(x.clone(), x * 2.0 + 1.0).unwrap());
    isolated::<B>("solve_triangular", [1.0, 0.0, 2.0, 0.0], 2, |x| {
        solve_triangular_ex(x.clone(), x + 1.0, Triangle::LOWER).unwrap()
    });
    isolated::<B>("hermitian_function", INDEFINITE, -4, |x| {
        hermitian_function_ex(x, Elementary::Ln).unwrap()
    });
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    all::<AD>();
}

#[test]
fn nor_on_another_backend() {
    all::<Autodiff<Flex>>();
}
