//! Functions composed of others: losses for the derivative tests, and properties of their own: vectors, batches
//! that broadcast, tensors, factors from LAPACK.

use burn_autodiff::Autodiff;
use burn_flex::Flex;
use burn_t4a::BurnT4a;
use burn_t4a::ext::Complex;
use burn_t4a::ext::linalg::*;
use burn_t4a::ext::operation::Operations;
use burn_t4a::ext::primitive::Floats;
use burn_tensor::{Int, Tensor};

use super::cases::{
    Case, Inputs, Kind, complex, data, numbers, one, tensor, two, values, weigh, weigh_pair,
};

type AD = Autodiff<BurnT4a>;

#[rustfmt::skip]
pub(crate) fn cases<B: Operations>() -> Vec<Case<B>> {
    use Kind::{General, Positive, Regular};
    const SQUARE: [usize; 3] = [2, 4, 4];
    const TALL: [usize; 3] = [2, 5, 3];
    let mut cases: Vec<Case<B>> = Vec::new();
    let mut add = |name, shapes: &[[usize; 3]], kind, loss: fn(Inputs<B>) -> Tensor<B, 1>| {
        cases.push(Case { name, shapes: shapes.to_vec(), kind, loss });
    };
    add("matrix_power", &[SQUARE], Regular, |x| weigh(matrix_power(one(x), 5).unwrap(), 1));
    add("matrix_power inverse", &[SQUARE], Regular,
        |x| weigh(matrix_power(one(x), -3).unwrap(), 1));
    add("complex matrix_power", &[SQUARE, SQUARE], Regular,
        |x| weigh_pair(matrix_power(complex(x), -2).unwrap(), 1));
    fn norms<B: Operations, M: Matrix<Burn, Array = Floats<B>, RealNumber = Tensor<B, 1>>>(
        a: M,
    ) -> Tensor<B, 1> {
        use Norm::{Frobenius, Inf, MinusInf, MinusOne, MinusTwo, Nuclear, One, Two};
        let all = [Frobenius, Inf, MinusInf, MinusOne, MinusTwo, Nuclear, One, Two];
        let parts = all.into_iter().enumerate();
        let parts = parts.map(|(i, norm)| weigh(matrix_norm(a.clone(), norm).unwrap(), i));
        parts.reduce(|a, b| a + b).unwrap()
    }
    add("matrix_norm", &[TALL], General, |x| norms(one(x)));
    add("complex matrix_norm", &[TALL, TALL], General, |x| norms(complex(x)));
    add("norm", &[TALL], General, |x| norm::<_, _, Tensor<B, 1>>(one(x)).unwrap());
    add("complex norm", &[TALL, TALL], General,
        |x| norm::<_, _, Tensor<B, 1>>(complex(x)).unwrap());
    add("trace", &[SQUARE], General, |x| weigh(trace(one(x)).unwrap(), 1));
    add("complex trace", &[SQUARE, SQUARE], General,
        |x| weigh_pair(trace(complex(x)).unwrap(), 1));
    add("diag", &[TALL], General, |x| weigh(diag(one(x)).unwrap(), 1));
    add("complex diag", &[TALL, TALL], General, |x| weigh_pair(diag(complex(x)).unwrap(), 1));
    add("diag_embed", &[TALL], General, |x| {
        let diagonal = diag(one(x)).unwrap();
        weigh(diag_embed::<_, Tensor<B, 3>>(diagonal.clone() * diagonal).unwrap(), 1)
    });
    add("complex diag_embed", &[TALL, TALL], General, |x| {
        let diagonal = diag(complex(x)).unwrap();
        weigh_pair(diag_embed::<_, Complex<B, 3>>(diagonal).unwrap(), 1)
    });
    fn conditions<B: Operations, M: Matrix<Burn, Array = Floats<B>, RealNumber = Tensor<B, 1>>>(
        a: M,
    ) -> Tensor<B, 1> {
        let all = [Norm::Two, Norm::MinusTwo, Norm::One, Norm::Frobenius, Norm::Nuclear];
        let parts = all.into_iter().enumerate();
        let parts = parts.map(|(i, norm)| weigh(cond(a.clone(), norm).unwrap(), i));
        parts.reduce(|a, b| a + b).unwrap()
    }
    add("cond", &[SQUARE], Regular, |x| conditions(one(x)));
    add("rcond", &[SQUARE], Regular, |x| weigh(rcond(one(x)).unwrap(), 1));
    add("complex cond", &[[2, 3, 3], [2, 3, 3]], Regular, |x| conditions(complex(x)));
    add("complex rcond", &[[2, 3, 3], [2, 3, 3]], Regular,
        |x| weigh(rcond(complex(x)).unwrap(), 1));
    add("householder_product", &[TALL, [2, 1, 3]], General, |x| {
        let (v, tau) = two(x);
        weigh(householder_product(v, tau.reshape([2, 3])).unwrap(), 1)
    });
    add("complex householder_product", &[TALL, TALL], General, |x| {
        let v = complex(x);
        let tau = v.clone().map(|x| x.narrow(1, 0, 1).reshape([2, 3]));
        weigh_pair(householder_product(v, tau).unwrap(), 1)
    });
    add("solve_right", &[SQUARE, [2, 3, 4]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve_right(a, b).unwrap(), 1)
    });
    add("solve_right vector", &[SQUARE, [2, 1, 4]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve_right(a, b.reshape([2, 4])).unwrap(), 1)
    });
    add("solve vector", &[SQUARE, [2, 1, 4]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve(a, b.reshape([2, 4])).unwrap(), 1)
    });
    add("solve many", &[[1, 4, 4], [3, 4, 2]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve(a, b).unwrap(), 1)
    });
    add("solve one", &[[3, 4, 4], [1, 4, 2]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve(a, b).unwrap(), 1)
    });
    add("lstsq vector", &[TALL, [2, 1, 5]], General, |x| {
        let (a, b) = two(x);
        weigh(lstsq(a, b.reshape([2, 5])).unwrap(), 1)
    });
    add("solve_triangular many", &[[1, 4, 4], [3, 4, 2]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve_triangular(a, b, Triangle::UPPER).unwrap(), 1)
    });
    add("solve_triangular_right", &[SQUARE, [2, 3, 4]], Regular, |x| {
        let (a, b) = two(x);
        weigh(solve_triangular_right(a, b, Triangle::UPPER.transpose()).unwrap(), 1)
    });
    add("complex solve_triangular_right", &[SQUARE, SQUARE], Regular, |x| {
        let a = complex(x);
        let [plain, adjoint] = [Triangle::LOWER, Triangle::LOWER.adjoint()]
            .map(|t| solve_triangular_right(a.clone(), a.clone().matmul(a.clone()), t).unwrap());
        weigh_pair(plain, 1) + weigh_pair(adjoint, 2)
    });
    add("tensorsolve", &[[2, 3, 6], [1, 2, 3]], General, |x| {
        let (a, b) = two(x);
        let x: Tensor<B, 1> = tensorsolve(a, b.reshape([2, 3])).unwrap();
        weigh(x, 1)
    });
    add("tensorinv", &[[2, 3, 6]], General, |x| weigh(tensorinv(one(x), 2).unwrap(), 1));
    add("logm", &[SQUARE], Regular, |x| weigh(logm(one(x)).unwrap(), 1));
    add("complex logm", &[SQUARE, SQUARE], Regular, |x| weigh_pair(logm(complex(x)).unwrap(), 1));
    add("polar of the other shape", &[TALL, [2, 3, 5]], General, |x| {
        let (tall, wide) = two(x);
        let (left, right) = (polar(tall, Side::Left).unwrap(), polar(wide, Side::Right).unwrap());
        weigh(left.u, 1) + weigh(left.p, 2) + weigh(right.u, 3) + weigh(right.p, 4)
    });
    add("complex qr_pivoted", &[[2, 3, 4], [2, 3, 4]], General, |x| {
        let (Qr { q, r }, _) = qr_pivoted(complex(x)).unwrap();
        weigh_pair(q, 1) + weigh_pair(r, 2)
    });
    add("cholesky_upper", &[SQUARE], Positive, |x| weigh(cholesky_upper(one(x)).unwrap(), 1));
    add("lstsq_residuals", &[TALL, [2, 5, 2]], General, |x| {
        let (a, b) = two(x);
        let x = lstsq(a.clone(), b.clone()).unwrap();
        weigh(lstsq_residuals(a, b, x).unwrap(), 1)
    });
    cases
}

fn close(got: &[f64], want: &[f64]) {
    let near = got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-11);
    assert!(got.len() == want.len() && near, "{got:?} {want:?}");
}

fn matrices<B: Operations, const D: usize>(shape: [usize; D]) -> Tensor<B, D> {
    let [m, n] = [shape[D - 2], shape[D - 1]];
    let count = shape[..D - 2].iter().product();
    tensor(data(3, 0, [count, m, n], Kind::Regular), shape)
}

fn shapes_of_systems<B: Operations>() {
    let a = matrices::<B, 4>([3, 1, 4, 4]);
    let b = tensor::<B, 4>(numbers(5, 40), [1, 5, 4, 2]);
    let x = solve(a.clone(), b.clone()).unwrap();
    assert_eq!(x.dims(), [3, 5, 4, 2]);
    let (whole_a, whole_b) = (a.clone().expand([3, 5, 4, 4]), b.clone().expand([3, 5, 4, 2]));
    close(&values(whole_a.clone().matmul(x.clone())), &values(whole_b.clone()));
    let (apart, info) = status(op::SolveOp, (a.clone(), b.clone())).unwrap();
    assert_eq!(info.dims(), [3, 5]);
    close(&values(apart), &values(x.clone()));
    let (value, moved) =
        jvp(op::SolveOp, (a.clone(), b.clone()), (a.clone() * 0.0, b.clone() * 2.0)).unwrap();
    close(&values(value), &values(x.clone()));
    close(&values(moved), &values(x * 2.0));

    // One vector per matrix, real and complex.
    let a = matrices::<B, 3>([2, 4, 4]);
    let v = tensor::<B, 2>(numbers(6, 8), [2, 4]);
    let x: Tensor<B, 2> = solve(a.clone(), v.clone()).unwrap();
    close(&values(a.clone().matmul(x.unsqueeze_dim(2))), &values(v.clone()));
    let x: Tensor<B, 2> = solve_right(a.clone(), v.clone()).unwrap();
    close(&values(x.unsqueeze_dim::<3>(1).matmul(a.clone())), &values(v.clone()));
    let z = Complex::new(a.clone(), a.clone().transpose() * 0.3).unwrap();
    let w = Complex::new(v.clone(), v.clone() * 2.0).unwrap();
    let x: Complex<B, 2> = solve(z.clone(), w.clone()).unwrap();
    let back = z.matmul(x.map(|x| x.unsqueeze_dim(2)));
    close(&values(back.re()), &values(w.re()));
    close(&values(back.im()), &values(w.im()));

    let error = solve(a.clone(), tensor::<B, 3>(numbers(1, 12), [3, 4, 1])).unwrap_err();
    assert!(matches!(error, LinalgError::BatchMismatch { .. }), "{error}");
    let zero = a.clone() * 0.0;
    let error = solve_right(zero.clone(), a.clone()).unwrap_err();
    assert_eq!(error, LinalgError::Singular { op: "solve_right", batch: 0, index: 0 });
    let error = matrix_power(zero.clone(), -1).unwrap_err();
    assert_eq!(error, LinalgError::Singular { op: "matrix_power", batch: 0, index: 0 });
    let infinite = values(cond(zero.clone(), Norm::One).unwrap());
    assert_eq!(infinite, [f64::INFINITY; 2]);
    let nan = zero * f64::NAN;
    for norm in [Norm::One, Norm::Two, Norm::Frobenius] {
        let error = cond(nan.clone(), norm).unwrap_err();
        assert_eq!(error, LinalgError::NonFinite { op: "cond", batch: 0 });
    }
    let result: Result<Tensor<B, 2>> = tensorsolve(a, v);
    assert!(matches!(result, Err(LinalgError::Tensor(_))));
}

#[test]
fn systems_take_vectors_and_batches_that_broadcast() {
    shapes_of_systems::<BurnT4a>();
    shapes_of_systems::<AD>();
}

#[test]
fn also_on_another_backend() {
    shapes_of_systems::<Flex>();
}

#[test]
fn diagonals_and_norms() {
    type B = BurnT4a;
    let a = tensor::<B, 3>((1..=12).map(f64::from).collect(), [2, 2, 3]);
    let diagonal = diag(a.clone()).unwrap();
    assert_eq!((diagonal.dims(), values(diagonal.clone())), ([2, 2], vec![1.0, 5.0, 7.0, 11.0]));
    let embedded: Tensor<B, 3> = diag_embed(diagonal).unwrap();
    assert_eq!(values(embedded.clone()), [1.0, 0.0, 0.0, 5.0, 7.0, 0.0, 0.0, 11.0]);
    assert_eq!(values(trace(embedded.clone()).unwrap()), [6.0, 18.0]);
    let [single] = [embedded.narrow(0, 1, 1).squeeze_dim::<2>(0)];
    assert_eq!(values(trace(single.clone()).unwrap()), [18.0]);
    assert!(matches!(trace(a.clone()), Err(LinalgError::NotSquare { op: "trace", .. })));
    // Infinity and NaN next to the diagonal do not affect it.
    let odd = tensor::<B, 2>(vec![1.0, f64::NAN, f64::INFINITY, 2.0], [2, 2]);
    assert_eq!(values(diag(odd).unwrap()), [1.0, 2.0]);

    let whole: Tensor<B, 1> = norm(a.clone()).unwrap();
    assert!((values(whole)[0] - 650f64.sqrt()).abs() < 1e-13);
    let large: Tensor<B, 1> = norm(tensor::<B, 1>(vec![3e200, -4e200], [2])).unwrap();
    assert!((values(large)[0] / 5e200 - 1.0).abs() < 1e-15);
    let pair = Complex::new(single.clone() * 0.0, single * 2.0).unwrap();
    let pair: Tensor<B, 1> = norm(pair).unwrap();
    assert!((values(pair)[0] - 2.0 * 170f64.sqrt()).abs() < 1e-13);
    let nothing: Tensor<B, 1> = norm(tensor::<B, 2>(vec![], [0, 3])).unwrap();
    assert_eq!(values(nothing), [0.0]);
    let x = tensor::<AD, 1>(vec![0.0; 3], [3]).require_grad();
    let zero: Tensor<AD, 1> = norm(x.clone()).unwrap();
    assert_eq!(values(x.grad(&zero.backward()).unwrap()), [0.0; 3]);
}

/// A singular matrix in the batch of a condition number does not affect the others.
#[test]
fn conditions_of_singular_matrices() {
    let a = [vec![2.0, 0.0, 0.0, 1.0], vec![1.0, 2.0, 2.0, 4.0]].concat();
    for norm in [Norm::One, Norm::Frobenius, Norm::Nuclear] {
        let x = tensor::<AD, 3>(a.clone(), [2, 2, 2]).require_grad();
        let kappa = cond(x.clone(), norm).unwrap();
        assert_eq!(values(kappa.clone())[1], f64::INFINITY);
        let gradients = kappa.narrow(0, 0, 1).sum().backward();
        let bar = values(x.grad(&gradients).unwrap());
        assert!(bar.iter().all(|x| x.is_finite()) && bar[0] != 0.0, "{norm:?} {bar:?}");
        assert_eq!(bar[4..], [0.0; 4]);
    }
}

/// Condition numbers of matrices that are regular, singular to rounding, exactly singular, not finite.
#[test]
fn reciprocal_condition_numbers() {
    let a = [
        vec![2.0, 0.0, 0.0, 0.5],
        vec![0.1, 0.3, 0.2, 0.6],
        vec![1.0, 2.0, 2.0, 4.0],
        vec![f64::NAN, 0.0, 0.0, 1.0],
        vec![1e-310, 0.0, 0.0, 1e-310],
    ];
    let x = tensor::<AD, 3>(a.concat(), [5, 2, 2]).require_grad();
    let found: Tensor<AD, 1> = rcond(x.clone()).unwrap();
    let r = values(found.clone());
    assert_eq!((r[0], r[2], r[3]), (0.25, 0.0, 0.0));
    assert!(r[1] < 1e-15, "{r:?}");
    assert!((r[4] - 1.0).abs() < 1e-15, "{r:?}");
    // σ₂/σ₁ of a diagonal matrix.
    let bar = values(x.grad(&found.narrow(0, 0, 1).sum().backward()).unwrap());
    close(&bar[..4], &[-0.125, 0.0, 0.0, 0.5]);
    assert_eq!(bar[8..12], [0.0; 4]);
}

/// The gradient of a condition number is homogeneous of degree −1, at both ends of the range.
#[test]
fn gradients_of_conditions_far_from_one() {
    let gradient = |c: f64, norm| {
        let a = vec![2.0 * c, 0.3 * c, -0.7 * c, 0.9 * c];
        let x = tensor::<AD, 2>(a, [2, 2]).require_grad();
        let bar = cond(x.clone(), norm).unwrap().sum().backward();
        values(x.grad(&bar).unwrap()).into_iter().map(|x| x * c).collect::<Vec<f64>>()
    };
    for norm in [Norm::Two, Norm::MinusTwo, Norm::One, Norm::Inf, Norm::Frobenius, Norm::Nuclear] {
        for e in [-900, 900] {
            close(&gradient(2f64.powi(e), norm), &gradient(1.0, norm));
        }
    }
}

/// Packed factors and pivots as returned by LAPACK's `dgetrf`.
#[test]
fn factors_from_elsewhere() {
    type B = BurnT4a;
    let a = tensor::<B, 2>(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0], [3, 3]);
    let (s, t) = (1.0 / 7.0, 4.0 / 7.0);
    let packed = vec![7.0, 8.0, 10.0, s, 6.0 / 7.0, 11.0 / 7.0, t, 0.5, -0.5];
    let packed = tensor::<B, 2>(packed, [3, 3]);
    let index = |values: [i32; 3]| Tensor::<B, 1, Int>::from_ints(values, &Default::default());
    let b = tensor::<B, 2>(numbers(1, 6), [3, 2]);
    for factors in [
        LuFactors::from_pivots(packed.clone(), index([2, 2, 2])).unwrap(),
        LuFactors::new(packed.clone(), index([2, 0, 1])).unwrap(),
    ] {
        let x = lu_solve(&factors, b.clone(), TriangleOp::None).unwrap();
        close(&values(a.clone().matmul(x)), &values(b.clone()));
    }
    assert!(LuFactors::new(packed.clone(), index([0, 0, 1])).is_err());
    assert!(LuFactors::from_pivots(packed.clone(), index([2, 0, 2])).is_err());
    assert!(LuFactors::new(packed.narrow(0, 0, 2), index([0, 1, 2])).is_err());
}

/// The factors with the axes 2 and 0 as rows multiply to the matrix of the tensor.
#[test]
fn factors_of_tensors_multiply_to_the_tensor() {
    let a = tensor::<BurnT4a, 3>(numbers(11, 24), [2, 4, 3]);
    let matrix = a.clone().permute([2, 0, 1]).reshape([6, 4]);
    let near = |x: Tensor<BurnT4a, 2>, want: &Tensor<BurnT4a, 2>| {
        for (x, want) in values(x).into_iter().zip(values(want.clone())) {
            assert!((x - want).abs() < 1e-13, "{x} {want}");
        }
    };
    type T<const D: usize> = Tensor<BurnT4a, D>;
    let (u, s, vh): (T<3>, T<1>, T<2>) = svd_left_dims(a.clone(), &[2, 0], None).unwrap();
    assert_eq!((u.dims(), vh.dims()), ([3, 2, 4], [4, 4]));
    near((u.reshape([6, 4]) * s.unsqueeze()).matmul(vh), &matrix);
    let (q, r): (T<3>, T<2>) = qr_left_dims(a.clone(), &[2, 0]).unwrap();
    near(q.reshape([6, 4]).matmul(r), &matrix);
    let (u, p): (T<3>, T<2>) = polar_left_dims(a, &[2, 0], Side::Right).unwrap();
    assert_eq!(u.dims(), [2, 4, 3]);
    near(u.permute([2, 0, 1]).reshape([6, 4]).matmul(p), &matrix);
    let product = matrix.clone().transpose().matmul(matrix);
    let (e, v): (T<1>, T<3>) = eigh_left_dims(product.clone().reshape([2, 2, 4]), &[0, 1]).unwrap();
    let v = v.reshape([4, 4]);
    near((v.clone() * e.unsqueeze()).matmul(v.transpose()), &product);
}
