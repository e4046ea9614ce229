use super::*;
use crate::error::LinalgError;
use crate::hermitian::{Elementary, ScalarFunction};
use crate::operation::Part;
use crate::svd::{SvdFunctionOp, svd};
use crate::testing::*;

const FUNCTIONS: [Elementary; 5] = [
    Elementary::Exp,
    Elementary::Ln,
    Elementary::Pow(0.0),
    Elementary::Pow(0.5),
    Elementary::Pow(3.0),
];

fn thin<T: LinalgScalar>(a: &Tensor<T>) -> Svd<T> {
    svd(a, Vectors::Thin).unwrap()
}

fn cube<T: LinalgScalar>(a: &Tensor<T>) -> Tensor<T> {
    mm(&mm(a, &Batched::new(a).adjoint().into_tensor().unwrap()), a)
}

fn identities<T: LinalgScalar>() {
    for (m, n) in [(4, 4), (5, 3), (3, 5)] {
        let values = &[2.0, 1.2, 1.2, 0.5][..m.min(n)];
        let a = with_singular_values::<T>(1, &[2], m, n, values);
        let limit = tight::<T>(20);
        let f = |p: f64| svd_function(&a, &Elementary::Pow(p)).unwrap();
        assert_close(&f(1.0), &a, limit);
        assert_close(&f(3.0), &cube(&a), limit);
        let isometry = crate::polar::polar(&a, crate::polar::Side::Right).unwrap().u;
        assert_close(&f(0.0), &isometry, limit);
        let inverse = crate::pinv::pinv(&a, None).unwrap();
        let inverse = Batched::new(&inverse).adjoint().into_tensor().unwrap();
        assert_close(&f(-1.0), &inverse, limit);
    }
}

/// An exact tie, gaps on both sides of the switch to the series, and rectangular matrices.
fn derivatives<T: LinalgScalar>() {
    for (m, n) in [(4, 4), (6, 4), (4, 5)] {
        for gap in [0.0, 1e-6, 3e-4, 2e-3, 0.3] {
            let a = [with_singular_values::<T>(1, &[2], m, n, &[2.5, 1.0 + gap, 1.0, 0.5])];
            for f in FUNCTIONS {
                check_operation(SvdFunctionOp { function: f }, &a);
            }
        }
    }
}

/// `A Aᴴ A` has a derivative at every rank; so has the same function given by the user.
fn cubes<T: LinalgScalar>() {
    for values in [&[0.0, 0.0, 0.0][..], &[2.0, 0.0, 0.0], &[1.0, 1.0, 0.0]] {
        let a = with_singular_values::<T>(2, &[], 4, 3, values);
        let da = random::<T>(3, &[4, 3]);
        let (x, dx) = (Batched::new(&a), Batched::new(&da));
        let exact = dx.matmul(&x.adjoint()).matmul(&x);
        let exact = exact.add(&x.matmul(&dx.adjoint()).matmul(&x));
        let exact = exact.add(&x.matmul(&x.adjoint()).matmul(&dx)).into_tensor().unwrap();
        let user = ScalarFunction(|order, x: f64| [x * x * x, 3.0 * x * x, 6.0 * x, 6.0][order]);
        let op = SvdFunctionOp { function: Elementary::Pow(3.0) };
        let got = tangents(op, &[&a], &[&da]).unwrap();
        assert_close(&tensors_of(got)[0], &exact, tight::<T>(40));
        let factors = thin(&a);
        let [u, vh] = [&factors.u, &factors.vh].map(Batched::new);
        let got = vjp_function(&u, &Batched::rows_of(&factors.s), &vh, &dx, &user);
        assert_close(&got.into_tensor().unwrap(), &exact, tight::<T>(40));
    }
}

/// A singular matrix has no derivative if `f(0) ≠ 0` or the slope at 0 is infinite.
fn singular<T: LinalgScalar>() {
    let a = with_singular_values::<T>(4, &[], 4, 3, &[2.0, 1.0, 0.0]);
    let zero = Tensor::<T>::zeros(&[4, 3]).unwrap();
    let cotangent = random::<T>(5, &[4, 3]);
    fn outside<R>(result: Result<R>) -> bool {
        matches!(result, Err(LinalgError::OutsideDomain { batch: 0, .. }))
    }
    let pulled = |a: &Tensor<T>, function: Elementary| {
        gradient(SvdFunctionOp { function }, &[a], &[Some(Part::Full(Batched::new(&cotangent)))])
    };
    for a in [&a, &zero] {
        for f in [Elementary::Exp, Elementary::Pow(0.0)] {
            assert!(svd_function(a, &f).is_ok());
            assert!(outside(pulled(a, f)), "{f:?}");
        }
    }
    assert!(outside(svd_function(&zero, &Elementary::Ln)));
    assert!(svd_function(&zero, &Elementary::Pow(0.5)).is_ok());
    assert!(outside(pulled(&zero, Elementary::Pow(0.5))));
}

for_all_dtypes! {
    powers_are_what_they_are_elsewhere => identities;
    rules_are_exact_at_and_near_ties => derivatives;
    odd_powers_are_smooth_at_zero => cubes;
    no_derivative_at_a_jump => singular;
}
