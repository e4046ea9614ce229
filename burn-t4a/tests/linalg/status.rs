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

/// Every function on a batch whose matrix 1 is bad.
fn elements_that_are_not_finite(bad: Tensor<BurnT4a, 3>) {
    type B = BurnT4a;
    let failures = [
        ("svd", svd(bad.clone()).err()),
        ("svdvals", svdvals(bad.clone()).err()),
        ("qr", qr(bad.clone()).err()),
        ("lu_factor", lu(bad.clone()).err()),
        ("cholesky", cholesky(bad.clone()).err()),
        ("eigh", eigh(bad.clone()).err()),
        ("eigvalsh", eigvalsh(bad.clone()).err()),
        ("eig", eig(bad.clone()).err()),
        ("polar", polar(bad.clone(), Side::Right).err()),
        ("expm", expm(bad.clone()).err()),
        ("sqrtm", sqrtm(bad.clone()).err()),
        ("hermitian_function", hermitian_function(bad.clone(), Elementary::Exp).err()),
        ("inv", inv(bad.clone()).err()),
        ("pinv", pinv(bad.clone(), None).err()),
        ("det", det(bad.clone()).err()),
        ("slogdet", slogdet(bad.clone()).err()),
        ("solve", solve(bad.clone(), bad.clone()).err()),
        ("lyapunov", lyapunov(bad.clone(), bad.clone()).err()),
        ("solve_triangular", solve_triangular(bad.clone(), bad.clone(), Triangle::UPPER).err()),
        ("svd", svd_full(bad.clone()).err()),
        ("svd", svd_truncated(bad.clone(), &Truncation::new()).err()),
        ("qr", qr_complete(bad.clone()).err()),
        ("qr_pivoted", qr_pivoted(bad.clone()).err()),
        ("lq", lq(bad.clone()).err()),
        ("qr", ql(bad.clone()).err()),
        ("lq", rq(bad.clone()).err()),
        ("lu_factor", lu_full(bad.clone()).err()),
        ("lstsq", lstsq(bad.clone(), bad.clone()).err()),
        ("lstsq_min_norm", lstsq_min_norm(bad.clone(), bad.clone(), None).err()),
    ];
    for (op, error) in failures {
        assert_eq!(error, Some(LinalgError::NonFinite { op, batch: 1 }), "{op}");
    }
    // NaN on the right-hand side.
    let regular = batch::<B>(INDEFINITE);
    let failures = [
        ("solve", solve(regular.clone(), bad.clone()).err()),
        ("lstsq", lstsq(regular.clone(), bad.clone()).err()),
        ("lstsq_min_norm", lstsq_min_norm(regular.clone(), bad.clone(), None).err()),
        ("solve_triangular", solve_triangular(regular.clone(), bad.clone(), Triangle::LOWER).err()),
        (
            "solve_triangular",
            lu_solve(&lu_factor(regular).unwrap(), bad.clone(), TriangleOp::None).err(),
        ),
        ("lyapunov", lyapunov(batch::<B>([1.0, 0.0, 0.0, 1.0]), bad).err()),
    ];
    for (op, error) in failures {
        assert_eq!(error, Some(LinalgError::NonFinite { op, batch: 1 }), "{op}");
    }
}

#[test]
fn errors_name_the_matrix() {
    type B = BurnT4a;
    for bad in [f64::NAN, f64::INFINITY] {
        elements_that_are_not_finite(batch([1.0, bad, 0.0, 1.0]));
    }
    let error = lstsq(batch::<B>(SINGULAR), batch(SINGULAR)).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { batch: 1, rank: 1, .. }), "{error}");
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
    name: &'static str,
    bad: [f64; 4],
    code: i64,
    f: fn(Tensor<B, 3>) -> (Tensor<B, 3>, Tensor<B, 1, burn_tensor::Int>),
) -> &'static str {
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
    name
}

/// Every function with a status, by name.
pub(crate) fn all<B: burn_backend::AutodiffBackend + LinalgOps>() -> Vec<&'static str> {
    fn numbers<B: LinalgOps>(x: Tensor<B, 1>) -> Tensor<B, 3> {
        x.reshape([-1, 1, 1]).expand([-1, 2, 2])
    }
    vec![
        isolated::<B>("svd", NAN, -2, |x| {
            let (out, info) = svd_ex(x).unwrap();
            (out.u.matmul(out.vh), info)
        }),
        isolated::<B>("svdvals", NAN, -2, |x| {
            let (s, info) = svdvals_ex(x).unwrap();
            (s.unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        isolated::<B>("qr", NAN, -2, |x| {
            let (out, info) = qr_ex(x).unwrap();
            (out.q + out.r, info)
        }),
        isolated::<B>("cholesky", INDEFINITE, 2, |x| cholesky_ex(x).unwrap()),
        isolated::<B>("eigh", NAN, -2, |x| {
            let (out, info) = eigh_ex(x).unwrap();
            (out.vectors * out.values.unsqueeze_dim(1), info)
        }),
        isolated::<B>("eigvalsh", NAN, -2, |x| {
            let (e, info) = eigvalsh_ex(x).unwrap();
            (e.unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        isolated::<B>("eig", NAN, -2, |x| {
            let (out, info) = eig_ex(x).unwrap();
            (out.values.abs_squared().unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        isolated::<B>("inv", SINGULAR, 2, |x| inv_ex(x).unwrap()),
        isolated::<B>("solve", SINGULAR, 2, |x| solve_ex(x.clone(), x * 2.0 + 1.0).unwrap()),
        isolated::<B>("solve_triangular", [1.0, 0.0, 2.0, 0.0], 2, |x| {
            solve_triangular_ex(x.clone(), x + 1.0, Triangle::LOWER).unwrap()
        }),
        isolated::<B>("hermitian_function", INDEFINITE, -4, |x| {
            hermitian_function_ex(x, Elementary::Ln).unwrap()
        }),
        isolated::<B>("svd_function", NAN, -2, |x| {
            svd_function_ex(x, Elementary::Pow(0.5)).unwrap()
        }),
        isolated::<B>("svd_full", NAN, -2, |x| {
            let (out, info) = svd_full_ex(x).unwrap();
            (out.u.matmul(out.vh), info)
        }),
        isolated::<B>("svd_truncated", NAN, -2, |x| {
            let (out, info) = svd_truncated_ex(x, &Truncation::new().max_dim(1)).unwrap();
            (out.kept.u.matmul(out.kept.vh), info)
        }),
        isolated::<B>("qr_complete", NAN, -2, |x| {
            let (out, info) = qr_complete_ex(x).unwrap();
            (out.q + out.r, info)
        }),
        isolated::<B>("qr_pivoted", NAN, -2, |x| {
            let ((out, _), info) = qr_pivoted_ex(x).unwrap();
            (out.q + out.r, info)
        }),
        isolated::<B>("lq", NAN, -2, |x| {
            let ((l, q), info) = lq_ex(x).unwrap();
            (l + q, info)
        }),
        isolated::<B>("ql", NAN, -2, |x| {
            let ((q, l), info) = ql_ex(x).unwrap();
            (q + l, info)
        }),
        isolated::<B>("rq", NAN, -2, |x| {
            let ((r, q), info) = rq_ex(x).unwrap();
            (r + q, info)
        }),
        isolated::<B>("lu", NAN, -2, |x| {
            let (out, info) = lu_ex(x).unwrap();
            (out.l + out.u, info)
        }),
        isolated::<B>("lu_full", NAN, -2, |x| {
            let ((out, _), info) = lu_full_ex(x).unwrap();
            (out.l + out.u, info)
        }),
        isolated::<B>("polar", NAN, -2, |x| {
            let (out, info) = polar_ex(x, Side::Right).unwrap();
            (out.u + out.p, info)
        }),
        isolated::<B>("expm", [1e3, 0.0, 0.0, 1e3], -3, |x| expm_ex(x).unwrap()),
        isolated::<B>("sqrtm", NAN, -2, |x| sqrtm_ex(x).unwrap()),
        isolated::<B>("pinv", NAN, -2, |x| pinv_ex(x, None).unwrap()),
        isolated::<B>("det", NAN, -2, |x| {
            let (d, info) = det_ex(x).unwrap();
            (numbers(d), info)
        }),
        isolated::<B>("slogdet", NAN, -2, |x| {
            let ((_, log), info) = slogdet_ex(x).unwrap();
            (numbers(log), info)
        }),
        isolated::<B>("lyapunov", INDEFINITE, 2, |x| lyapunov_ex(x.clone(), x + 1.0).unwrap()),
        isolated::<B>("lstsq", SINGULAR, 2, |x| lstsq_ex(x.clone(), x + 1.0).unwrap()),
        isolated::<B>("lstsq_min_norm", NAN, -2, |x| {
            lstsq_min_norm_ex(x.clone(), x + 1.0, None).unwrap()
        }),
    ]
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    assert!(!all::<AD>().is_empty());
}

#[test]
fn nor_on_another_backend() {
    assert!(!all::<Autodiff<Flex>>().is_empty());
}
