//! Tangents of the functions of `op`: `⟨w, J v⟩ = ⟨Jᵀ w, v⟩`.

use burn_autodiff::Autodiff;
use burn_t4a::BurnT4a;
use burn_t4a::ext::linalg::*;
use burn_tensor::Tensor;

use super::cases::{Kind, data, numbers, tensor, values};

type AD = Autodiff<BurnT4a>;
type T2 = Tensor<AD, 2>;
type T3 = Tensor<AD, 3>;

/// Concatenates results to one vector.
fn flat<const D: usize>(x: Tensor<AD, D>) -> Tensor<AD, 1> {
    x.flatten(0, D - 1)
}

fn both<const D: usize, const E: usize>(x: Tensor<AD, D>, y: Tensor<AD, E>) -> Tensor<AD, 1> {
    Tensor::cat(vec![flat(x), flat(y)], 0)
}

type Rule = Box<dyn Fn(Vec<T3>, Vec<T3>) -> (Tensor<AD, 1>, Tensor<AD, 1>)>;

fn svd_flat(out: Svd<T3>) -> Tensor<AD, 1> {
    both(out.s, both(out.u, out.vh))
}

/// Value and tangent of a function, as vectors: function, operands from the list of tensors, and the vector of its
/// results. The default operands are the tensors, the default result is one tensor.
macro_rules! along {
    ($op:expr, |$x:ident| $operands:expr, $out:pat_param => $flat:expr) => {
        Box::new(move |a, da| {
            let of = |$x: Vec<T3>| $operands;
            let (value, tangent) = jvp($op, of(a), of(da)).unwrap();
            let $out = value;
            let value = $flat;
            let $out = tangent;
            (value, $flat)
        })
    };
    ($op:expr, $out:pat_param => $flat:expr) => {
        along!($op, |x| one(x), $out => $flat)
    };
    ($op:expr, |$x:ident| $operands:expr) => {
        along!($op, |$x| $operands, y => flat(y))
    };
    ($op:expr) => {
        along!($op, |x| one(x), y => flat(y))
    };
}

fn one(x: Vec<T3>) -> T3 {
    let [x] = x.try_into().unwrap();
    x
}

fn two(x: Vec<T3>) -> (T3, T3) {
    let [a, b] = x.try_into().unwrap();
    (a, b)
}

fn three(x: Vec<T3>) -> (T3, T3, T3) {
    let [a, b, c] = x.try_into().unwrap();
    (a, b, c)
}

pub(crate) struct Row {
    pub(crate) name: &'static str,
    shapes: Vec<[usize; 3]>,
    kind: Kind,
    rule: Rule,
}

#[rustfmt::skip]
pub(crate) fn rules() -> Vec<Row> {
    use Kind::{General, Positive, Regular};
    const SQUARE: [usize; 3] = [2, 4, 4];
    const TALL: [usize; 3] = [2, 5, 3];
    let mut rules = Vec::new();
    let mut add = |name, shapes: &[[usize; 3]], kind, rule: Rule| {
        rules.push(Row { name, shapes: shapes.to_vec(), kind, rule });
    };
    add("svd", &[TALL], General, along!(op::SvdOp::THIN, out => svd_flat(out)));
    add("svd_full", &[TALL], General, along!(op::SvdOp::FULL, out =>
        both(out.s, both(out.u.narrow(2, 0, 3), out.vh))));
    let truncated = op::SvdTruncatedOp {
        truncation: Truncation::new().max_dim(2),
        degeneracy: Degeneracy::DEFAULT,
    };
    add("svd_truncated", &[TALL], General, along!(truncated, out => svd_flat(out.kept)));
    add("low_rank", &[TALL], General, along!(op::LowRankOp { rank: 2 }));
    add("svdvals", &[TALL], General, along!(op::SvdvalsOp));
    add("qr", &[TALL], General, along!(op::QrOp::THIN, out => both(out.q, out.r)));
    add("qr_complete", &[TALL], General, along!(op::QrOp::COMPLETE, out =>
        both(out.q.narrow(2, 0, 3), out.r)));
    add("qr_pivoted", &[TALL], General,
        along!(op::QrPivotedOp::THIN, (out, _) => both(out.q, out.r)));
    add("lq", &[TALL], General, along!(op::LqOp, (l, q) => both(l, q)));
    add("ql", &[TALL], General, along!(op::QlOp, (q, l) => both(q, l)));
    add("rq", &[TALL], General, along!(op::RqOp, (r, q) => both(r, q)));
    add("lu", &[TALL], General, along!(op::LuOp, out => both(out.l, out.u)));
    add("lu_full", &[TALL], General, along!(op::LuFullOp, (out, _) => both(out.l, out.u)));
    add("lu_factor", &[SQUARE], Regular, along!(op::LuFactorOp::PARTIAL, out => flat(out.packed)));
    add("lu_solve", &[SQUARE, [2, 4, 2]], Regular, Box::new(|x, v| {
        let ((a, b), (da, db)) = (two(x), two(v));
        let (factors, moved) = jvp(op::LuFactorOp::PARTIAL, a, da).unwrap();
        let solve = op::LuSolveOp::new(&factors, TriangleOp::Transpose);
        let (x, dx) = jvp(solve, (factors.packed.clone(), b), (moved.packed, db)).unwrap();
        (flat(x), flat(dx))
    }));
    let keep = Truncation::new().max_dim(3);
    add("svd_left_dims", &[TALL], General, Box::new(move |x, v| {
        let op = op::SvdLeftDimsOp { left: &[2, 0], truncation: Some(&keep) };
        let flat = |(u, s, vh): (T3, Tensor<AD, 1>, T2)| both(s, both(u, vh));
        let (out, moved) = jvp(op, one(x), one(v)).unwrap();
        (flat(out), flat(moved))
    }));
    add("qr_left_dims", &[TALL], General,
        along!(op::QrLeftDimsOp { left: &[2, 1] }, (q, r) => both::<3, 2>(q, r)));
    add("eigh_left_dims", &[[2, 2, 4]], General,
        along!(op::EighLeftDimsOp { left: &[1, 0] }, (e, v) => both::<1, 3>(e, v)));
    add("polar_left_dims", &[[2, 2, 3]], General, along!(
        op::PolarLeftDimsOp { left: &[0, 1], side: Side::Right }, (u, p) => both::<3, 2>(u, p)));
    add("eigh", &[SQUARE], Positive,
        along!(op::EighOp::DEFAULT, out => both(out.values, out.vectors)));
    add("eigvalsh", &[SQUARE], Positive, along!(op::EigvalshOp));
    add("cholesky", &[SQUARE], Positive, along!(op::CholeskyOp));
    add("cholesky_upper", &[SQUARE], Positive, along!(op::CholeskyUpperOp));
    add("polar", &[TALL], General,
        along!(op::PolarOp { side: Side::Right }, out => both(out.u, out.p)));
    add("expm", &[SQUARE], General, along!(op::ExpmOp));
    add("logm", &[SQUARE], Regular, along!(op::LogmOp));
    add("sqrtm", &[SQUARE], Regular, along!(op::SqrtmOp));
    add("hermitian_function", &[SQUARE], Positive,
        along!(op::HermitianFunctionOp { function: Elementary::Exp }));
    add("svd_function", &[TALL], General,
        along!(op::SvdFunctionOp { function: Elementary::Pow(0.5) }));
    add("inv", &[SQUARE], Regular, along!(op::InvOp));
    add("pinv", &[TALL], General, along!(op::PinvOp { rtol: None }));
    add("det", &[SQUARE], Regular, along!(op::DetOp));
    add("slogdet", &[SQUARE], Regular, along!(op::SlogdetOp, (sign, log) => both(sign, log)));
    add("eig", &[SQUARE], General,
        along!(op::EigOp::DEFAULT, out => both(out.values.re(), out.values.im())));
    add("eigvals", &[SQUARE], General, along!(op::EigvalsOp, out => both(out.re(), out.im())));
    add("solve", &[SQUARE, [2, 4, 2]], Regular, along!(op::SolveOp, |x| two(x)));
    add("solve_triangular", &[SQUARE, [2, 4, 2]], Regular,
        along!(op::SolveTriangularOp { triangle: Triangle::LOWER }, |x| two(x)));
    add("lyapunov", &[SQUARE, SQUARE], Regular, along!(op::LyapunovOp, |x| two(x)));
    add("lyapunov_positive", &[SQUARE, SQUARE], Positive,
        along!(op::LyapunovPositiveOp, |x| two(x)));
    add("sylvester", &[SQUARE, SQUARE, SQUARE], Regular, along!(op::SylvesterOp, |x| three(x)));
    add("lstsq", &[TALL, [2, 5, 2]], General, along!(op::LstsqOp, |x| two(x)));
    add("lstsq_min_norm", &[TALL, [2, 5, 2]], General,
        along!(op::LstsqMinNormOp { rtol: None }, |x| two(x)));
    add("lstsq_residuals", &[TALL, [2, 5, 2], [2, 3, 2]], General,
        along!(op::LstsqResidualsOp, |x| three(x)));
    add("solve_right", &[SQUARE, [2, 2, 4]], Regular, along!(op::SolveRightOp, |x| two(x)));
    add("solve_triangular_right", &[SQUARE, [2, 2, 4]], Regular,
        along!(op::SolveTriangularRightOp { triangle: Triangle::UPPER.adjoint() }, |x| two(x)));
    add("matrix_power", &[SQUARE], Regular, along!(op::MatrixPowerOp { k: -3 }));
    add("matrix_norm", &[TALL], General, along!(op::MatrixNormOp { norm: Norm::Inf }));
    add("norm", &[TALL], General, along!(op::NormOp, y => flat::<1>(y)));
    add("cond", &[SQUARE], Regular, along!(op::CondOp { norm: Norm::One }));
    add("cond", &[TALL], General, along!(op::CondOp { norm: Norm::Two }));
    add("rcond", &[SQUARE], Regular, along!(op::RcondOp));
    add("tensorsolve", &[[1, 4, 4], [1, 1, 4]], Regular, along!(op::TensorsolveOp, |x| {
        let (a, b) = two(x);
        (a.reshape([2, 2, 2, 2]), b.reshape([2, 2]))
    }, x => flat::<2>(x)));
    add("tensorinv", &[[1, 4, 4]], Regular,
        along!(op::TensorinvOp { left: 2 }, |x| one(x).reshape([2, 2, 2, 2])));
    add("householder_product", &[TALL, [2, 1, 2]], General,
        along!(op::HouseholderProductOp, |x| {
            let (v, tau) = two(x);
            (v, tau.reshape([2, 2]))
        }));
    rules
}

#[test]
fn tangents_are_the_transpose_of_cotangents() {
    for (index, Row { name, shapes, kind, rule }) in rules().into_iter().enumerate() {
        let x = shapes.iter().enumerate().map(|(i, &shape)| {
            tensor::<AD, 3>(data(40 + index, i, shape, kind), shape).require_grad()
        });
        let x: Vec<T3> = x.collect();
        let v = shapes.iter().enumerate().map(|(i, &shape)| {
            tensor::<AD, 3>(numbers(7 * index + i, shape.iter().product()), shape)
        });
        let v: Vec<T3> = v.collect();
        let (value, tangent) = rule(x.clone(), v.clone());
        let count = value.dims()[0];
        let w = tensor::<AD, 1>(numbers(600 + index, count), [count]);
        let forward = values((tangent * w.clone()).sum())[0];
        let gradients = (value * w).sum().backward();
        let mut reverse = 0.0;
        let mut size = 0.0;
        for (x, v) in x.iter().zip(v) {
            let (bar, v) = (values(x.grad(&gradients).unwrap()), values(v));
            reverse += bar.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>();
            size += bar.iter().zip(&v).map(|(a, b)| (a * b).abs()).sum::<f64>();
        }
        assert!((forward - reverse).abs() <= 1e-11 * size, "{name}: {forward} {reverse}");
    }
}

#[test]
fn a_tangent_of_another_shape_is_an_error() {
    let a = tensor::<BurnT4a, 3>(numbers(1, 8), [2, 2, 2]);
    let error = jvp(op::SvdOp::THIN, a.clone(), a.narrow(0, 0, 1)).unwrap_err();
    assert!(matches!(error, LinalgError::Tensor(_)), "{error}");
}

#[test]
fn a_tangent_of_another_dtype_is_an_error() {
    use burn_backend::DType::F32;
    let a = tensor::<AD, 3>(data(1, 0, [2, 2, 2], Kind::Regular), [2, 2, 2]);
    let v = a.clone() * 0.5;
    let of = |a: &T3, b: &T3, da: &T3, db: &T3| {
        jvp(op::SolveOp, (a.clone(), b.clone()), (da.clone(), db.clone())).err()
    };
    let single = |x: &T3| x.clone().cast(F32);
    for error in [
        of(&a, &a, &single(&v), &v),
        of(&a, &a, &v, &single(&v)),
        of(&a, &single(&a), &v, &v),
        of(&single(&a), &single(&a), &v, &v),
        jvp(op::SvdOp::THIN, a.clone(), single(&v)).err(),
    ] {
        assert!(matches!(error, Some(LinalgError::Tensor(_))), "{error:?}");
    }
}
