use super::*;
use crate::operation::Part;
use crate::scalar::epsilon;
use crate::testing::*;

fn functions() -> [Elementary; 5] {
    [
        Elementary::Exp,
        Elementary::Ln,
        Elementary::Pow(0.5),
        Elementary::Pow(-1.0),
        Elementary::Pow(2.0),
    ]
}

fn identities<T: LinalgScalar>() {
    let a = with_eigenvalues::<T>(1, &[2], &[0.3, 1.0, 1.0, 2.5]);
    let f = |f: Elementary| hermitian_function(&a, &f).unwrap();
    let limit = tight::<T>(20);
    assert_close(&mm(&f(Elementary::Pow(0.5)), &f(Elementary::Pow(0.5))), &a, limit);
    assert_close(&f(Elementary::Pow(2.0)), &mm(&a, &a), limit);
    assert_close(&f(Elementary::Pow(-1.0)), &crate::inverse::inv(&a).unwrap(), limit);
    assert_close(&f(Elementary::Exp), &crate::expm::expm(&a).unwrap(), limit);
    let log = hermitian_function(&f(Elementary::Exp), &Elementary::Ln).unwrap();
    assert_close(&log, &a, 10.0 * limit);
}

/// An exact tie, and gaps on both sides of the switch to the series.
fn derivatives<T: LinalgScalar>() {
    for gap in [0.0, 1e-6, 3e-4, 2e-3, 0.3] {
        let skew = Batched::new(&random::<T>(4, &[2, 4, 4])).skew().into_tensor().unwrap();
        let a = with_eigenvalues::<T>(1, &[2], &[0.5, 1.0, 1.0 + gap, 2.5]);
        let a = [axpy(&a, 1.0, &skew)];
        for f in functions() {
            check_operation(HermitianFunctionOp { function: f }, &a);
        }
    }
}

/// Cotangent of `A` from its factors, for any function.
fn pulled<T: LinalgScalar>(
    eigh: &Eigh<T>,
    f_cotangent: &Tensor<T>,
    f: &impl SpectralFunction<Batched<T::R>>,
) -> Result<Tensor<T>> {
    let (values, vectors) = (Batched::rows_of(&eigh.values), Batched::new(&eigh.vectors));
    vjp(&values, &vectors, &Batched::new(f_cotangent), f).into_tensor()
}

/// `A²` has the derivative `A dA + dA A`, also at ties and at the eigenvalue zero.
fn square<T: LinalgScalar>() {
    let a = with_eigenvalues::<T>(2, &[], &[-1.0, 0.0, 0.0, 1.0]);
    let c = Batched::new(&random::<T>(3, &[4, 4])).herm().into_tensor().unwrap();
    let eigh = crate::eigh::eigh(&a).unwrap();
    let exact = axpy(&mm(&a, &c), 1.0, &mm(&c, &a));
    let closure = ScalarFunction(|order: usize, x: f64| [x * x, 2.0 * x, 2.0, 0.0][order]);
    let got = pulled(&eigh, &c, &closure).unwrap();
    assert_close(&got, &exact, tight::<T>(20));
    let value = hermitian_function(&a, &closure).unwrap();
    assert_close(&value, &mm(&a, &a), tight::<T>(20));
}

/// `f(c A)` for a tiny `c`: third derivatives and squares of gaps over- or underflow.
fn tiny<T: LinalgScalar>() {
    let a = with_eigenvalues::<T>(6, &[], &[0.5, 1.0, 1.0, 2.5]);
    let cotangent = random::<T>(7, &[4, 4]);
    let small = if epsilon::<T>() < 1e-10 { 0.5f64.powi(400) } else { 0.5f64.powi(50) };
    let scaled = |x: &Tensor<T>, c: f64| Batched::new(x).scale(c).into_tensor().unwrap();
    for (f, power) in [(Elementary::Ln, -1.0), (Elementary::Pow(-0.5), -1.5)] {
        let gradient =
            |a: &Tensor<T>| pulled(&crate::eigh::eigh(a).unwrap(), &cotangent, &f).unwrap();
        let got = scaled(&gradient(&scaled(&a, small)), small.powf(-power));
        assert_close(&got, &gradient(&a), tight::<T>(20));
    }
}

for_all_dtypes! {
    scales_out_of_the_range_of_squares => tiny;
    functions_agree_with_each_other => identities;
    rules_are_exact_at_and_near_ties => derivatives;
    functions_of_the_user_have_derivatives => square;
    second_derivatives_of_powers => second_derivatives;
}

#[test]
fn values_outside_of_the_domain_are_errors() {
    let good = with_eigenvalues::<f64>(1, &[1], &[1.0, 2.0]);
    let bad = with_eigenvalues::<f64>(1, &[1], &[-1.0, 2.0]);
    let data = [good.to_vec().unwrap(), bad.to_vec().unwrap()].concat();
    let a = Tensor::from_vec(data, &[2, 2, 2]).unwrap();
    let error = hermitian_function(&a, &Elementary::Ln).unwrap_err();
    assert_eq!(error, LinalgError::OutsideDomain { op: "hermitian_function", batch: 1 });
    assert!(hermitian_function(&a, &Elementary::Pow(0.5)).is_err());
    assert!(hermitian_function(&a, &Elementary::Pow(3.0)).is_ok());
    // √ is defined at 0, its derivative is not.
    let zero = Tensor::<f64>::zeros(&[2, 2]).unwrap();
    assert_eq!(norm(&hermitian_function(&zero, &Elementary::Pow(0.5)).unwrap()), 0.0);
    let given = [Some(Part::Full(Batched::new(&zero).identity(2)))];
    let op = HermitianFunctionOp { function: Elementary::Pow(0.5) };
    let error = gradient(op, &[&zero], &given).unwrap_err();
    assert!(matches!(error, LinalgError::OutsideDomain { batch: 0, .. }));
    let mut data = a.to_vec().unwrap();
    data[0] = f64::NAN;
    let a = Tensor::from_vec(data, &[2, 2, 2]).unwrap();
    let error = hermitian_function(&a, &Elementary::Exp).unwrap_err();
    assert!(matches!(error, LinalgError::NonFinite { batch: 0, .. }));
}

/// `D² f(A)[C, E]` of powers is a sum of products: with ties, gaps on both sides of the switch to the series, and
/// close triples.
fn second_derivatives<T: LinalgScalar>() {
    let herm = |seed| Batched::new(&random::<T>(seed, &[2, 5, 5])).herm();
    let (c, e) = (herm(11), herm(12));
    let sum = |products: &[[&Batched<T>; 3]]| {
        let product = |[x, y, z]: [&Batched<T>; 3]| x.matmul(y).matmul(z);
        let mut all = products.iter().copied().map(product);
        let first = all.next().unwrap();
        all.fold(first, |sum, x| sum.add(&x)).into_tensor().unwrap()
    };
    for gap in [0.0, 1e-9, 1e-6, 1e-4, 1e-3, 5e-3, 0.05, 0.3] {
        let values = [-1.0, 0.5, 1.0, 1.0 + gap, 1.0 + 2.0 * gap];
        let a = with_eigenvalues::<T>(5, &[2], &values);
        let eigh = crate::eigh::eigh(&a).unwrap();
        let (values, vectors) = (Batched::rows_of(&eigh.values), Batched::new(&eigh.vectors));
        let (x, one) = (Batched::new(&a), Batched::new(&a).identity(5));
        let inverse = Batched::new(&crate::inverse::inv(&a).unwrap());
        let ([ci, ei], i) = ([&c, &e].map(|x| inverse.matmul(x)), &inverse);
        let cases = [
            (2.0, sum(&[[&c, &e, &one], [&e, &c, &one]])),
            (
                3.0,
                sum(&[
                    [&x, &c, &e],
                    [&x, &e, &c],
                    [&c, &x, &e],
                    [&e, &x, &c],
                    [&c, &e, &x],
                    [&e, &c, &x],
                ]),
            ),
            (-1.0, sum(&[[&ci, &ei, i], [&ei, &ci, i]])),
        ];
        let limit = 20.0 * epsilon::<T>().powf(0.6);
        for (p, exact) in cases {
            let got = second::second(&values, &vectors, [&c, &e], Elementary::Pow(p));
            assert_close(&got.into_tensor().unwrap(), &exact, limit);
        }
    }
}

/// Against finite differences of the first derivative.
#[test]
fn second_derivatives_are_differences_of_first_ones() {
    let [c, e] = [11, 12]
        .map(|seed| Batched::new(&random::<f64>(seed, &[4, 4])).herm().into_tensor().unwrap());
    for gap in [0.0, 1e-7, 1e-3, 0.02, 0.3] {
        let a = with_eigenvalues::<f64>(5, &[], &[0.5, 1.0, 1.0 + gap, 1.0 + 2.0 * gap]);
        let eigh = crate::eigh::eigh(&a).unwrap();
        let (values, vectors) = (Batched::rows_of(&eigh.values), Batched::new(&eigh.vectors));
        for f in [Elementary::Exp, Elementary::Ln, Elementary::Pow(0.5), Elementary::Pow(-1.5)] {
            let step = 1e-4;
            let at =
                |h: f64| pulled(&crate::eigh::eigh(&axpy(&a, h, &e)).unwrap(), &c, &f).unwrap();
            let difference = axpy(&at(step), -1.0, &at(-step));
            let wanted = Batched::new(&difference).scale(0.5 / step).into_tensor().unwrap();
            let [x, y] = [&c, &e].map(Batched::new);
            let got = second::second(&values, &vectors, [&x, &y], f).into_tensor().unwrap();
            assert_close(&got, &wanted, 2e-5);
        }
    }
}

/// The mean of two eigenvalues may be outside of the domain of the function.
#[test]
fn powers_of_indefinite_matrices_have_derivatives() {
    let a = with_eigenvalues::<f64>(5, &[], &[-1.0, 1.0, 2.0]);
    let c = Batched::new(&random::<f64>(3, &[3, 3])).herm();
    let inverse = Batched::new(&crate::inverse::inv(&a).unwrap());
    let wanted = inverse.matmul(&c).matmul(&inverse).scale(-1.0).into_tensor().unwrap();
    let op = HermitianFunctionOp { function: Elementary::Pow(-1.0) };
    let got = gradient(op, &[&a], &[Some(Part::Full(c))]).unwrap();
    assert_close(&got[0], &wanted, 1e-12);
}

/// An eigenvalue whose squared reciprocal overflows.
#[test]
fn second_derivatives_beside_a_tiny_eigenvalue_are_finite() {
    let a = Tensor::from_vec(vec![-0.5f32, 0.0, 0.0, 5e-20], &[2, 2]).unwrap();
    let c = Batched::new(&random::<f32>(3, &[2, 2])).herm().into_tensor().unwrap();
    let inputs = duals(std::slice::from_ref(&a), std::slice::from_ref(&c));
    let op = HermitianFunctionOp { function: Elementary::Pow(3.0) };
    let recorded = Recorded::new(op, false, inputs).unwrap();
    let given = eager(&c).into_iter().map(|x| Some(t4a_diff::Dual::constant(x)));
    let gradient = recorded.vjp(&given.collect::<Vec<_>>(), &[]).unwrap();
    let got = from_eager(gradient.into_iter().map(t4a_diff::Dual::into_tangent).collect());
    // 2 (A C² + C A C + C² A).
    let square = mm(&c, &c);
    let sum = axpy(&axpy(&mm(&a, &square), 1.0, &mm(&mm(&c, &a), &c)), 1.0, &mm(&square, &a));
    assert_close(&got.unwrap(), &axpy(&sum, 1.0, &sum), 1e-5);
}
