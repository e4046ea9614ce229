//! Errors with their position in the batch, and the status tensors that report it.

#![allow(clippy::single_range_in_vec_init, clippy::type_complexity)]

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg::*;
use burn_t4a::ext::operation::Operations;
use burn_tensor::Tensor;

use super::cases::{tensor, values};

type AD = Autodiff<BurnT4a>;

/// Three matrices: regular, bad, regular.
fn batch<B: Operations>(bad: [f64; 4]) -> Tensor<B, 3> {
    let regular = [2.0, 0.5, 0.5, 1.0];
    tensor([regular, bad, [1.5, -0.2, -0.2, 3.0]].concat(), [3, 2, 2])
}

const NAN: [f64; 4] = [1.0, f64::NAN, 0.0, 1.0];
const SINGULAR: [f64; 4] = [1.0, 2.0, 2.0, 4.0];
const INDEFINITE: [f64; 4] = [1.0, 2.0, 2.0, 1.0];
const OPPOSITE: [f64; 4] = [0.0, 1.0, 1.0, 0.0];

/// Every function on a batch whose matrix 1 is bad.
fn elements_that_are_not_finite(bad: Tensor<BurnT4a, 3>) {
    type B = BurnT4a;
    let failures = [
        ("svd", svd(bad.clone()).err()),
        ("svdvals", svdvals(bad.clone()).err()),
        ("qr", qr(bad.clone()).err()),
        ("lu", lu(bad.clone()).err()),
        ("cholesky", cholesky(bad.clone()).err()),
        ("eigh", eigh(bad.clone()).err()),
        ("eigvalsh", eigvalsh(bad.clone()).err()),
        ("eig", eig(bad.clone()).err()),
        ("eigvals", eigvals(bad.clone()).err()),
        ("svd_function", svd_function(bad.clone(), Elementary::Exp).err()),
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
        ("lyapunov_positive", lyapunov_positive(bad.clone(), bad.clone()).err()),
        ("sylvester", sylvester(bad.clone(), bad.clone(), bad.clone()).err()),
        ("solve_triangular", solve_triangular(bad.clone(), bad.clone(), Triangle::UPPER).err()),
        ("svd", svd_full(bad.clone()).err()),
        ("svd", svd_truncated(bad.clone(), &Truncation::new()).err()),
        ("qr", qr_complete(bad.clone()).err()),
        ("qr_pivoted", qr_pivoted(bad.clone()).err()),
        ("lq", lq(bad.clone()).err()),
        ("ql", ql(bad.clone()).err()),
        ("rq", rq(bad.clone()).err()),
        ("lu_full", lu_full(bad.clone()).err()),
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
        ("lu_solve", lu_solve(&lu_factor(regular).unwrap(), bad.clone(), TriangleOp::None).err()),
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
    for negative in [[-1.0, 0.0, 0.0, -2.0], [-1.0, 0.0, 0.0, 1.0]] {
        let error = sqrtm(batch::<B>(negative)).unwrap_err();
        assert_eq!(error, LinalgError::NegativeEigenvalue { op: "sqrtm", batch: 1 });
    }
    let error = expm(batch::<B>([1e3, 0.0, 0.0, 1e3])).unwrap_err();
    assert!(matches!(error, LinalgError::Overflow { batch: 1, .. }), "{error}");
    let error = lyapunov_positive(batch::<B>(INDEFINITE), batch(SINGULAR)).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { batch: 1, rank: 1, .. }), "{error}");
    let error = lyapunov(batch::<B>(OPPOSITE), batch(SINGULAR)).unwrap_err();
    assert_eq!(error, LinalgError::CommonEigenvalue { op: "lyapunov", batch: 1 });
}

#[test]
fn shapes_and_dtypes_are_checked() {
    let wide = tensor::<BurnT4a, 3>(vec![1.0; 12], [2, 2, 3]);
    for error in [det(wide.clone()).err(), cholesky(wide.clone()).err(), eigh(wide.clone()).err()] {
        assert!(matches!(error, Some(LinalgError::NotSquare { .. })), "{error:?}");
    }
    let regular = batch::<BurnT4a>(INDEFINITE);
    for error in
        [solve(regular.clone(), wide.clone()).err(), lstsq(regular.clone(), wide.clone()).err()]
    {
        assert!(matches!(error, Some(LinalgError::BatchMismatch { axis: -3, .. })), "{error:?}");
    }
    for error in [
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

type Function<B> = fn(Tensor<B, 3>) -> (Tensor<B, 3>, Tensor<B, 1, burn_tensor::Int>);

/// A function with a status: its name, a matrix on which it fails, and the status code.
pub(crate) struct Row<B: Operations> {
    pub(crate) name: &'static str,
    bad: [f64; 4],
    code: i64,
    f: Function<B>,
}

fn row<B: Operations>(name: &'static str, bad: [f64; 4], code: i64, f: Function<B>) -> Row<B> {
    Row { name, bad, code, f }
}

/// Values and gradients of the two good matrices are the same as alone; the gradient of the bad matrix, which the
/// loss does not use, is zero.
fn isolated<B>(name: &str, bad: [f64; 4], f: Function<B>) -> (Vec<f64>, Vec<i64>)
where
    B: burn_backend::AutodiffBackend + Operations,
{
    let x = batch::<B>(bad).require_grad();
    let (y, info) = f(x.clone());
    let codes: Vec<i64> = info.into_data().iter::<i64>().collect();
    // Sliced first: the square of an infinite result has a cotangent of NaN.
    let [one, other] = [0..1, 2..3].map(|range| y.clone().slice([range]).powi_scalar(2).sum());
    let run = std::panic::AssertUnwindSafe(|| (one + other).backward());
    let gradients = std::panic::catch_unwind(run);
    let gradients = gradients.unwrap_or_else(|_| panic!("{name} of {bad:?} has no gradient"));
    let (y, bar) = (values(y), values(x.grad(&gradients).unwrap()));
    assert_eq!(bar[4..8], [0.0; 4], "{name} of {bad:?}");
    for at in [0, 2] {
        let alone = batch::<B>(bad).slice([at..at + 1]).require_grad();
        let (z, info) = f(alone.clone());
        assert_eq!(info.into_data().iter::<i64>().collect::<Vec<_>>(), [0], "{name}");
        let gradients = (z.clone() * z.clone()).sum().backward();
        let (z, alone) = (values(z), values(alone.grad(&gradients).unwrap()));
        for i in 0..4 {
            assert!((y[4 * at + i] - z[i]).abs() < 1e-13, "{name}: {y:?} {z:?}");
            let off = (bar[4 * at + i] - alone[i]).abs();
            assert!(off < 1e-12 * (1.0 + alone[i].abs()), "{name}: {bar:?} {alone:?}");
        }
    }
    (y, codes)
}

/// Table of all functions with a status.
pub(crate) fn all<B: Operations>() -> Vec<Row<B>> {
    fn numbers<B: Operations>(x: Tensor<B, 1>) -> Tensor<B, 3> {
        x.reshape([-1, 1, 1]).expand([-1, 2, 2])
    }
    vec![
        row::<B>("svd", NAN, -2, |x| {
            let (out, info) = status(op::SvdOp::THIN, x).unwrap();
            (out.u.matmul(out.vh), info)
        }),
        row::<B>("svdvals", NAN, -2, |x| {
            let (s, info) = status(op::SvdvalsOp, x).unwrap();
            (s.unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        row::<B>("qr", NAN, -2, |x| {
            let (out, info) = status(op::QrOp::THIN, x).unwrap();
            (out.q + out.r, info)
        }),
        row::<B>("cholesky", INDEFINITE, 2, |x| status(op::CholeskyOp, x).unwrap()),
        row::<B>("cholesky_upper", INDEFINITE, 2, |x| status(op::CholeskyUpperOp, x).unwrap()),
        row::<B>("eigh", NAN, -2, |x| {
            let (out, info) = status(op::EighOp::DEFAULT, x).unwrap();
            (out.vectors * out.values.unsqueeze_dim(1), info)
        }),
        row::<B>("eigvalsh", NAN, -2, |x| {
            let (e, info) = status(op::EigvalshOp, x).unwrap();
            (e.unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        row::<B>("eig", NAN, -2, |x| {
            let (out, info) = status(op::EigOp::DEFAULT, x).unwrap();
            (out.values.abs_squared().unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        row::<B>("eigvals", NAN, -2, |x| {
            let (values, info) = status(op::EigvalsOp, x).unwrap();
            (values.abs_squared().unsqueeze_dim::<3>(1).expand([-1, 2, 2]), info)
        }),
        row::<B>("inv", SINGULAR, 2, |x| status(op::InvOp, x).unwrap()),
        row::<B>("solve", SINGULAR, 2, |x| {
            status(op::SolveOp, (x.clone(), x * 2.0 + 1.0)).unwrap()
        }),
        row::<B>("solve_right", SINGULAR, 2, |x| {
            status(op::SolveRightOp, (x.clone(), x * 2.0 + 1.0)).unwrap()
        }),
        row::<B>("solve_triangular", [1.0, 0.0, 2.0, 0.0], 2, |x| {
            status(op::SolveTriangularOp { triangle: Triangle::LOWER }, (x.clone(), x + 1.0))
                .unwrap()
        }),
        row::<B>("solve_triangular_right", [1.0, 0.0, 2.0, 0.0], 2, |x| {
            status(op::SolveTriangularRightOp { triangle: Triangle::LOWER }, (x.clone(), x + 1.0))
                .unwrap()
        }),
        row::<B>("hermitian_function", INDEFINITE, -4, |x| {
            status(op::HermitianFunctionOp { function: Elementary::Ln }, x).unwrap()
        }),
        row::<B>("svd_function", NAN, -2, |x| {
            status(op::SvdFunctionOp { function: Elementary::Pow(0.5) }, x).unwrap()
        }),
        row::<B>("low_rank", NAN, -2, |x| status(op::LowRankOp { rank: 1 }, x).unwrap()),
        row::<B>("svd_full", NAN, -2, |x| {
            let (out, info) = status(op::SvdOp::FULL, x).unwrap();
            (out.u.matmul(out.vh), info)
        }),
        row::<B>("svd_truncated", NAN, -2, |x| {
            let (out, info) = status(
                op::SvdTruncatedOp {
                    truncation: Truncation::new().max_dim(1),
                    degeneracy: Degeneracy::DEFAULT,
                },
                x,
            )
            .unwrap();
            (out.kept.u.matmul(out.kept.vh), info)
        }),
        row::<B>("qr_complete", NAN, -2, |x| {
            let (out, info) = status(op::QrOp::COMPLETE, x).unwrap();
            (out.q + out.r, info)
        }),
        row::<B>("qr_pivoted", NAN, -2, |x| {
            let ((out, _), info) = status(op::QrPivotedOp::THIN, x).unwrap();
            (out.q + out.r, info)
        }),
        row::<B>("lq", NAN, -2, |x| {
            let ((l, q), info) = status(op::LqOp, x).unwrap();
            (l + q, info)
        }),
        row::<B>("ql", NAN, -2, |x| {
            let ((q, l), info) = status(op::QlOp, x).unwrap();
            (q + l, info)
        }),
        row::<B>("rq", NAN, -2, |x| {
            let ((r, q), info) = status(op::RqOp, x).unwrap();
            (r + q, info)
        }),
        row::<B>("lu", NAN, -2, |x| {
            let (out, info) = status(op::LuOp, x).unwrap();
            (out.l + out.u, info)
        }),
        row::<B>("lu_factor", NAN, -2, |x| {
            let (factors, info) = status(op::LuFactorOp::PARTIAL, x).unwrap();
            (factors.packed, info)
        }),
        row::<B>("lu_full", NAN, -2, |x| {
            let ((out, _), info) = status(op::LuFullOp, x).unwrap();
            (out.l + out.u, info)
        }),
        row::<B>("lu_solve", SINGULAR, 2, |x| {
            let factors = lu_factor(x.clone()).unwrap();
            let op = op::LuSolveOp::new(&factors, TriangleOp::None);
            status(op, (factors.packed.clone(), x)).unwrap()
        }),
        row::<B>("polar", NAN, -2, |x| {
            let (out, info) = status(op::PolarOp { side: Side::Right }, x).unwrap();
            (out.u + out.p, info)
        }),
        row::<B>("expm", [1e3, 0.0, 0.0, 1e3], -3, |x| status(op::ExpmOp, x).unwrap()),
        row::<B>("logm", NAN, -2, |x| status(op::LogmOp, x).unwrap()),
        row::<B>("sqrtm", NAN, -2, |x| status(op::SqrtmOp, x).unwrap()),
        row::<B>("pinv", NAN, -2, |x| status(op::PinvOp { rtol: None }, x).unwrap()),
        row::<B>("det", NAN, -2, |x| {
            let (d, info) = status(op::DetOp, x).unwrap();
            (numbers(d), info)
        }),
        row::<B>("slogdet", NAN, -2, |x| {
            let ((_, log), info) = status(op::SlogdetOp, x).unwrap();
            (numbers(log), info)
        }),
        row::<B>("lyapunov", OPPOSITE, -6, |x| {
            status(op::LyapunovOp, (x.clone(), x + 1.0)).unwrap()
        }),
        row::<B>("lyapunov_positive", INDEFINITE, 2, |x| {
            status(op::LyapunovPositiveOp, (x.clone(), x + 1.0)).unwrap()
        }),
        row::<B>("sylvester", OPPOSITE, -6, |x| {
            status(op::SylvesterOp, (x.clone(), x.clone(), x + 1.0)).unwrap()
        }),
        row::<B>("lstsq", SINGULAR, 2, |x| status(op::LstsqOp, (x.clone(), x + 1.0)).unwrap()),
        row::<B>("lstsq_min_norm", NAN, -2, |x| {
            status(op::LstsqMinNormOp { rtol: None }, (x.clone(), x + 1.0)).unwrap()
        }),
        row::<B>("matrix_power", SINGULAR, 2, |x| status(op::MatrixPowerOp { k: -2 }, x).unwrap()),
        row::<B>("matrix_norm", NAN, -2, |x| {
            let (y, info) = status(op::MatrixNormOp { norm: Norm::Two }, x).unwrap();
            (numbers(y), info)
        }),
        row::<B>("cond", NAN, -2, |x| {
            let (y, info) = status(op::CondOp { norm: Norm::One }, x).unwrap();
            (numbers(y), info)
        }),
    ]
}

/// Functions of one matrix: results of a bad one are NaN, its gradient is zero.
pub(crate) fn single<B: burn_backend::AutodiffBackend + Operations>() -> Vec<&'static str> {
    type Of<B> = fn(Tensor<B, 3>) -> (Tensor<B, 1>, Tensor<B, 1, burn_tensor::Int>);
    let rows: [(&'static str, Of<B>); 6] = [
        ("svd_left_dims", |x| {
            let keep = Truncation::new().max_dim(1);
            let op = op::SvdLeftDimsOp { left: &[0, 1], truncation: Some(&keep) };
            let ((u, s, _), info): ((Tensor<B, 3>, _, Tensor<B, 2>), _) = status(op, x).unwrap();
            (s + u.abs().sum(), info)
        }),
        ("qr_left_dims", |x| {
            let ((q, r), info): ((Tensor<B, 2>, Tensor<B, 3>), _) =
                status(op::QrLeftDimsOp { left: &[1] }, x).unwrap();
            (q.sum() + r.sum(), info)
        }),
        ("eigh_left_dims", |x| {
            let x = x.reshape([1, 2, 2]);
            let ((e, _), info): ((_, Tensor<B, 3>), _) =
                status(op::EighLeftDimsOp { left: &[0, 1] }, x).unwrap();
            (e, info)
        }),
        ("polar_left_dims", |x| {
            let op = op::PolarLeftDimsOp { left: &[0, 1], side: Side::Right };
            let ((u, p), info): ((_, Tensor<B, 2>), _) = status(op, x).unwrap();
            (u.sum() + p.sum(), info)
        }),
        ("tensorsolve", |x| {
            let b = x.clone().slice([0..2, 0..1, 0..1]).detach().ones_like();
            status(op::TensorsolveOp, (x.reshape([2, 2]), b.reshape([2]))).unwrap()
        }),
        ("tensorinv", |x| {
            let (y, info) = status(op::TensorinvOp { left: 1 }, x.reshape([2, 2])).unwrap();
            (y.sum(), info)
        }),
    ];
    let names = rows.map(|(name, f)| {
        for (entries, code) in [([1.0, f64::NAN, 0.5, 2.0], -2), ([1.0, 0.3, 0.5, 2.0], 0)] {
            let x = tensor::<B, 3>(entries.to_vec(), [2, 1, 2]).require_grad();
            let (y, info) = f(x.clone());
            assert_eq!(info.into_data().iter::<i64>().collect::<Vec<_>>(), [code], "{name}");
            let gradients = y.clone().sum().backward();
            let bar = values(x.grad(&gradients).unwrap());
            let failed = values(y).iter().all(|y| y.is_nan());
            assert_eq!(failed, code != 0, "{name}");
            assert_eq!(bar == [0.0; 4], code != 0, "{name}: {bar:?}");
        }
        name
    });
    names.to_vec()
}

#[test]
fn a_bad_tensor_has_a_status() {
    assert_eq!(single::<AD>().len(), 6);
    assert_eq!(single::<Autodiff<Flex>>().len(), 6);
}

fn one_bad_matrix<B: burn_backend::AutodiffBackend + Operations>() {
    for Row { name, bad, code, f } in all::<B>() {
        let (y, codes) = isolated(name, bad, f);
        assert_eq!(codes, [0, code, 0], "{name}");
        assert!(y[4..8].iter().all(|y| y.is_nan()), "{name}: {y:?}");
    }
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    one_bad_matrix::<AD>();
}

#[test]
fn nor_on_another_backend() {
    one_bad_matrix::<Autodiff<Flex>>();
}

/// Most functions accept a singular matrix but have no derivative there, which does not affect a loss that does not
/// use it.
fn unread<B: burn_backend::AutodiffBackend + Operations>() {
    const DEFECTIVE: [f64; 4] = [1.0, 1.0, 0.0, 1.0];
    for bad in [SINGULAR, [0.0; 4], [1.0, 0.0, 0.0, 0.0], DEFECTIVE] {
        for Row { name, f, .. } in all::<B>() {
            isolated(name, bad, f);
        }
    }
}

#[test]
fn a_matrix_that_the_loss_does_not_read_cannot_fail() {
    unread::<AD>();
}

#[test]
fn nor_can_it_on_another_backend() {
    unread::<Autodiff<Flex>>();
}

/// The rule fails where the derivative does not exist: an error, not NaN.
#[test]
fn roots_of_singular_matrices_have_no_gradient() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let places = ["an eigenvalue", "a singular value"];
    for (f, place) in [hermitian_function, svd_function].into_iter().zip(places) {
        let x = batch::<AD>([1.0, 0.0, 0.0, 0.0]).require_grad();
        let loss = f(x, Elementary::Pow(0.5)).unwrap().sum();
        let payload = catch_unwind(AssertUnwindSafe(|| loss.backward())).err().expect("a panic");
        let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(text.contains(&format!("not finite at {place} of matrix 1")), "{text}");
    }
    let error = jvp(
        op::HermitianFunctionOp { function: Elementary::Pow(0.5) },
        batch::<AD>([0.0; 4]),
        batch([1.0; 4]),
    );
    assert!(matches!(error, Err(LinalgError::OutsideDomain { batch: 1, .. })), "{error:?}");
}

/// Polar factor of a singular matrix: the text contains the operation.
#[test]
fn errors_of_derivatives_name_the_operation() {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    for side in [Side::Left, Side::Right] {
        let x = batch::<AD>(SINGULAR).require_grad();
        let loss = polar(x, side).unwrap().u.sum();
        let payload = catch_unwind(AssertUnwindSafe(|| loss.backward())).err().expect("a panic");
        let text = payload.downcast_ref::<String>().cloned().unwrap_or_default();
        assert!(text.contains("polar_vjp: matrix 1 has rank 1"), "{text}");
    }
}

/// Functions that fail for no single matrix.
#[test]
fn functions_without_failures_have_a_status_of_zero() {
    let x = batch::<BurnT4a>(NAN);
    let zeros = |info: Tensor<BurnT4a, 1, burn_tensor::Int>, count: usize| {
        assert_eq!(info.into_data().iter::<i64>().collect::<Vec<_>>(), vec![0; count]);
    };
    let (value, info): (Tensor<BurnT4a, 1>, _) = status(op::NormOp, x.clone()).unwrap();
    assert!(values(value)[0].is_nan());
    zeros(info, 1);
    let (value, info) = status(op::RcondOp, x.clone()).unwrap();
    assert_eq!(values(value)[1], 0.0);
    zeros(info, 3);
    zeros(status(op::LstsqResidualsOp, (x.clone(), x.clone(), x.clone())).unwrap().1, 3);
    let tau = x.clone().slice([0..3, 0..2, 0..1]).reshape([3, 2]);
    zeros(status(op::HouseholderProductOp, (x, tau)).unwrap().1, 3);
}
