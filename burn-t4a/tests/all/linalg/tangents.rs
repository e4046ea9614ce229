//! The `_jvp` functions: `⟨w, J v⟩ = ⟨Jᵀ w, v⟩`.

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

/// Value and tangent of a function of two matrices, as vectors.
fn of_two(f: impl Fn(T3, T3, T3, T3) -> Result<(T3, T3)> + 'static) -> Rule {
    Box::new(move |a, da| {
        let [a, b] = a.try_into().unwrap();
        let [da, db] = da.try_into().unwrap();
        let (x, dx) = f(a, b, da, db).unwrap();
        (flat(x), flat(dx))
    })
}

fn svd_flat(out: Svd<T3>) -> Tensor<AD, 1> {
    both(out.s, both(out.u, out.vh))
}

/// Value and tangent of a function of one matrix, as vectors.
macro_rules! along {
    (|$x:ident, $dx:ident| $call:expr, $out:pat_param => $flat:expr) => {
        Box::new(|mut a, mut da| {
            let ($x, $dx): (T3, T3) = (a.swap_remove(0), da.swap_remove(0));
            let (value, tangent) = $call.unwrap();
            let $out = value;
            let value = $flat;
            let $out = tangent;
            (value, $flat)
        })
    };
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
    add("svd", &[TALL], General, along!(|x, v| svd_jvp(x, v), out => svd_flat(out)));
    add("svd_full", &[TALL], General, along!(|x, v| svd_full_jvp(x, v), out =>
        both(out.s, both(out.u.narrow(2, 0, 3), out.vh))));
    add("svd_truncated", &[TALL], General,
        along!(|x, v| svd_truncated_jvp(x, v, &Truncation::new().max_dim(2)), out => svd_flat(out)));
    add("low_rank", &[TALL], General, along!(|x, v| low_rank_jvp(x, v, 2), y => flat(y)));
    add("svdvals", &[TALL], General, along!(|x, v| svdvals_jvp(x, v), s => flat(s)));
    add("qr", &[TALL], General, along!(|x, v| qr_jvp(x, v), out => both(out.q, out.r)));
    add("qr_complete", &[TALL], General, along!(|x, v| qr_complete_jvp(x, v), out =>
        both(out.q.narrow(2, 0, 3), out.r)));
    add("qr_pivoted", &[TALL], General, along!(
        |x, v| qr_pivoted_jvp(x, v).map(|(out, moved, _)| (out, moved)), out => both(out.q, out.r)));
    add("lq", &[TALL], General, along!(|x, v| lq_jvp(x, v), (l, q) => both(l, q)));
    add("ql", &[TALL], General, along!(|x, v| ql_jvp(x, v), (q, l) => both(q, l)));
    add("rq", &[TALL], General, along!(|x, v| rq_jvp(x, v), (r, q) => both(r, q)));
    add("lu", &[TALL], General, along!(
        |x, v| lu_jvp(x, v).map(|(out, moved)| ((out.l, out.u), moved)), (l, u) => both(l, u)));
    add("lu_full", &[TALL], General, along!(
        |x, v| lu_full_jvp(x, v).map(|(out, moved, _)| ((out.l, out.u), moved)),
        (l, u) => both(l, u)));
    add("lu_factor", &[SQUARE], Regular, along!(
        |x, v| lu_factor_jvp(x, v).map(|(factors, moved)| (factors.packed, moved)), y => flat(y)));
    add("lu_solve", &[SQUARE, [2, 4, 2]], Regular, of_two(|a, b, da, db| {
        let (factors, moved) = lu_factor_jvp(a, da)?;
        lu_solve_jvp(&factors, b, moved, db, TriangleOp::Transpose)
    }));
    add("svd_left_dims", &[TALL], General, along!(
        |x, v| svd_left_dims_jvp::<_, T3, T3, T2>(x, v, &[2, 0], Some(&Truncation::new().max_dim(3))),
        (u, s, vh) => both(s, both(u, vh))));
    add("qr_left_dims", &[TALL], General, along!(
        |x, v| qr_left_dims_jvp::<_, T3, T3, T2>(x, v, &[2, 1]), (q, r) => both(q, r)));
    add("eigh_left_dims", &[[2, 2, 4]], General, along!(
        |x, v| eigh_left_dims_jvp::<_, T3, T3>(x, v, &[1, 0]), (e, v) => both(e, v)));
    add("polar_left_dims", &[[2, 2, 3]], General, along!(
        |x, v| polar_left_dims_jvp::<_, T3, T2>(x, v, &[0, 1], Side::Right), (u, p) => both(u, p)));
    add("eigh", &[SQUARE], Positive,
        along!(|x, v| eigh_jvp(x, v), out => both(out.values, out.vectors)));
    add("eigvalsh", &[SQUARE], Positive, along!(|x, v| eigvalsh_jvp(x, v), e => flat(e)));
    add("cholesky", &[SQUARE], Positive, along!(|x, v| cholesky_jvp(x, v), l => flat(l)));
    add("cholesky_upper", &[SQUARE], Positive,
        along!(|x, v| cholesky_upper_jvp(x, v), u => flat(u)));
    add("polar", &[TALL], General,
        along!(|x, v| polar_jvp(x, v, Side::Right), out => both(out.u, out.p)));
    add("expm", &[SQUARE], General, along!(|x, v| expm_jvp(x, v), y => flat(y)));
    add("logm", &[SQUARE], Regular, along!(|x, v| logm_jvp(x, v), y => flat(y)));
    add("sqrtm", &[SQUARE], Regular, along!(|x, v| sqrtm_jvp(x, v), y => flat(y)));
    add("hermitian_function", &[SQUARE], Positive,
        along!(|x, v| hermitian_function_jvp(x, v, Elementary::Exp), y => flat(y)));
    add("svd_function", &[TALL], General,
        along!(|x, v| svd_function_jvp(x, v, Elementary::Pow(0.5)), y => flat(y)));
    add("inv", &[SQUARE], Regular, along!(|x, v| inv_jvp(x, v), y => flat(y)));
    add("pinv", &[TALL], General, along!(|x, v| pinv_jvp(x, v, None), y => flat(y)));
    add("det", &[SQUARE], Regular, along!(|x, v| det_jvp(x, v), y => flat(y)));
    add("slogdet", &[SQUARE], Regular,
        along!(|x, v| slogdet_jvp(x, v), (sign, log) => both(sign, log)));
    add("eig", &[SQUARE], General,
        along!(|x, v| eig_jvp(x, v), out => both(out.values.re(), out.values.im())));
    add("eigvals", &[SQUARE], General,
        along!(|x, v| eigvals_jvp(x, v), out => both(out.re(), out.im())));
    add("solve", &[SQUARE, [2, 4, 2]], Regular, of_two(solve_jvp));
    add("solve_triangular", &[SQUARE, [2, 4, 2]], Regular,
        of_two(|a, b, da, db| solve_triangular_jvp(a, b, da, db, Triangle::LOWER)));
    add("lyapunov", &[SQUARE, SQUARE], Regular, of_two(lyapunov_jvp));
    add("lyapunov_positive", &[SQUARE, SQUARE], Positive, of_two(lyapunov_positive_jvp));
    add("sylvester", &[SQUARE, SQUARE, SQUARE], Regular, Box::new(|x, v| {
        let out = sylvester_jvp(x.try_into().unwrap(), v.try_into().unwrap());
        let (y, dy) = out.unwrap();
        (flat(y), flat(dy))
    }));
    add("lstsq", &[TALL, [2, 5, 2]], General, of_two(lstsq_jvp));
    add("lstsq_min_norm", &[TALL, [2, 5, 2]], General,
        of_two(|a, b, da, db| lstsq_min_norm_jvp(a, b, da, db, None)));
    add("lstsq_residuals", &[TALL, [2, 5, 2], [2, 3, 2]], General, Box::new(|x, v| {
        let out = lstsq_residuals_jvp(x.try_into().unwrap(), v.try_into().unwrap());
        let (y, dy) = out.unwrap();
        (flat(y), flat(dy))
    }));
    add("solve_right", &[SQUARE, [2, 2, 4]], Regular, of_two(solve_right_jvp));
    add("matrix_power", &[SQUARE], Regular, along!(|x, v| matrix_power_jvp(x, v, -3), y => flat(y)));
    add("matrix_norm", &[TALL], General,
        along!(|x, v| matrix_norm_jvp(x, v, Norm::Inf), y => flat(y)));
    add("norm", &[TALL], General, along!(|x, v| norm_jvp(x, v), y => {
        let y: Tensor<AD, 1> = y;
        flat(y)
    }));
    add("cond", &[SQUARE], Regular, along!(|x, v| cond_jvp(x, v, Norm::One), y => flat(y)));
    add("cond", &[TALL], General, along!(|x, v| cond_jvp(x, v, Norm::Two), y => flat(y)));
    add("solve_triangular_right", &[SQUARE, [2, 2, 4]], Regular, of_two(|a, b, da, db| {
        solve_triangular_right_jvp(a, b, da, db, Triangle::UPPER.adjoint())
    }));
    add("tensorsolve", &[[1, 4, 4], [1, 1, 4]], Regular, of_two(|a, b, da, db| {
        let four = |x: T3| x.reshape([2, 2, 2, 2]);
        let two = |x: T3| x.reshape([2, 2]);
        let out: (T2, T2) = tensorsolve_jvp(four(a), two(b), four(da), two(db))?;
        Ok((out.0.unsqueeze(), out.1.unsqueeze()))
    }));
    add("tensorinv", &[[1, 4, 4]], Regular, along!(
        |x, v| {
            let four = |x: T3| x.reshape([2, 2, 2, 2]);
            tensorinv_jvp(four(x), four(v), 2)
        }, y => flat(y)));
    add("householder_product", &[TALL, [2, 1, 2]], General, Box::new(|x, v| {
        let row = |x: &T3| x.clone().reshape([2, 2]);
        let (v, x) = (v, x);
        let out = householder_product_jvp(x[0].clone(), row(&x[1]), v[0].clone(), row(&v[1]));
        let (y, dy) = out.unwrap();
        (flat(y), flat(dy))
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
    let error = svd_jvp(a.clone(), a.narrow(0, 0, 1)).unwrap_err();
    assert!(matches!(error, LinalgError::Tensor(_)), "{error}");
}

#[test]
fn a_tangent_of_another_dtype_is_an_error() {
    use burn_backend::DType::F32;
    let a = tensor::<AD, 3>(data(1, 0, [2, 2, 2], Kind::Regular), [2, 2, 2]);
    let v = a.clone() * 0.5;
    let of = |a: &T3, b: &T3, da: &T3, db: &T3| {
        solve_jvp(a.clone(), b.clone(), da.clone(), db.clone()).err()
    };
    let single = |x: &T3| x.clone().cast(F32);
    for error in [
        of(&a, &a, &single(&v), &v),
        of(&a, &a, &v, &single(&v)),
        of(&a, &single(&a), &v, &v),
        of(&single(&a), &single(&a), &v, &v),
        svd_jvp(a.clone(), single(&v)).err(),
    ] {
        assert!(matches!(error, Some(LinalgError::Tensor(_))), "{error:?}");
    }
}
