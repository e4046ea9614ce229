use t4a_diff::{Dual, Eager, Operation, Reverse, Value};

use super::*;
use crate::error::LinalgError;
use crate::hermitian::HermitianFunctionOp;
use crate::operation::Over;
use crate::scalar::{LinalgScalar, epsilon};
use crate::spectrum::{MatrixFunction, Spectral, SpectralOperation};
use crate::svd::{LowRankOp, SvdFunctionOp, Vectors, svd};
use crate::table::{Linalg, MatrixOp};
use crate::testing::*;
use crate::vocabulary::{Batched, Factors};
use t4a_tensor::Tensor;

const SHAPES: [[usize; 2]; 3] = [[4, 4], [6, 4], [4, 5]];

impl MatrixFunction {
    fn op(self) -> MatrixOp {
        match self {
            MatrixFunction::Hermitian(function) => HermitianFunctionOp { function }.into(),
            MatrixFunction::Singular(function) => SvdFunctionOp { function }.into(),
            MatrixFunction::LowRank(rank) => LowRankOp { rank }.into(),
        }
    }
}

fn factors<T: LinalgScalar>(a: &Tensor<T>) -> Factors<Batched<T>> {
    let out = svd(a, Vectors::Thin).unwrap();
    let s = Batched::rows_of(&out.s);
    Factors::singular(&Batched::new(&out.u), &s, &Batched::new(&out.vh))
}

/// `D² F(A)[C, E]` from the factors.
fn second_of<T: LinalgScalar>(
    f: MatrixFunction,
    a: &Tensor<T>,
    [c, e]: [&Tensor<T>; 2],
) -> Result<Tensor<T>> {
    f.second(&factors(a), [&Batched::new(c), &Batched::new(e)])?.into_tensor()
}

/// Gradient for the cotangent `C`, differentiated along `E`: forward over reverse.
fn forward_over_reverse<T: Scalar>(
    f: MatrixFunction,
    a: &Tensor<T>,
    [c, e]: [&Tensor<T>; 2],
) -> Result<Tensor<T>> {
    let inputs = duals(std::slice::from_ref(a), std::slice::from_ref(e));
    let recorded = Recorded::new(f.op(), T::IS_COMPLEX, inputs)?;
    let given: Vec<_> = eager(c).into_iter().map(|x| Some(Dual::constant(x))).collect();
    let gradient = recorded.vjp(&given, &[])?;
    from_eager(gradient.into_iter().map(Dual::into_tangent).collect())
}

/// Tangent along `C`, differentiated along `E`.
fn forward_over_forward<T: Scalar>(
    f: MatrixFunction,
    a: &Tensor<T>,
    [c, e]: [&Tensor<T>; 2],
) -> Result<Tensor<T>> {
    let still = Tensor::zeros(c.shape()).unwrap();
    let [a, c] = [(a, e), (c, &still)]
        .map(|(x, dx)| duals(std::slice::from_ref(x), std::slice::from_ref(dx)));
    let twice: Vec<Value<Dual<Duals>>> =
        a.into_iter().zip(c).map(|(a, c)| Value::Float(Dual::new(a, c))).collect();
    let op = Linalg { op: f.op(), complex: T::IS_COMPLEX };
    let out = t4a_diff::Array::apply(&op, &twice, &vec![true; twice.len()])?;
    let out: t4a_diff::Outcome<Dual<Duals>> = out;
    let moved = out.results.into_iter().map(|x| x.into_tangent().into_tangent());
    from_eager(moved.collect())
}

/// Cotangent of `A` of the operation that a tape records for the gradient: reverse over reverse.
fn reverse_over_reverse<T: Scalar>(
    f: MatrixFunction,
    a: &Tensor<T>,
    [c, e]: [&Tensor<T>; 2],
) -> Result<Tensor<T>> {
    let factors = factors(a);
    let mut inputs: Vec<Eager> = [a, c].into_iter().flat_map(eager).collect();
    for part in factors.detached() {
        Batched::write(part, &mut inputs)?;
    }
    let inputs: Vec<_> = inputs.into_iter().map(Value::Float).collect();
    let op = SpectralOperation { op: Spectral::Function(f), complex: T::IS_COMPLEX };
    let wanted = vec![true; inputs.len()];
    let out = op.forward(&inputs, &wanted)?;
    let kept = t4a_diff::Kept::new(op.keep(&wanted), &inputs, &out);
    let cotangents: Vec<_> = eager(e).into_iter().map(Some).collect();
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &[], wanted: &wanted };
    let own = op.vjp(&reverse)?.into_iter().flatten().take(1 + usize::from(T::IS_COMPLEX));
    from_eager(own.collect())
}

/// One combination of modes that gives `D² F(A)[C, E]`.
type Route<T> = fn(MatrixFunction, &Tensor<T>, [&Tensor<T>; 2]) -> Result<Tensor<T>>;

/// Checks all combinations of modes.
#[track_caller]
fn check<T: Scalar>(
    f: MatrixFunction,
    a: &Tensor<T>,
    directions: [&Tensor<T>; 2],
    exact: &Tensor<T>,
    limit: f64,
) {
    assert_close(&second_of(f, a, directions).unwrap(), exact, limit);
    assert_close(&reverse_over_reverse(f, a, directions).unwrap(), exact, limit);
    // At gaps beyond the close ones the derivatives are those of products of the factors.
    let limit = limit.max(100.0 * epsilon::<T>().sqrt());
    assert_close(&forward_over_reverse(f, a, directions).unwrap(), exact, limit);
    assert_close(&forward_over_forward(f, a, directions).unwrap(), exact, limit);
}

fn directions<T: LinalgScalar>(m: usize, n: usize) -> [Tensor<T>; 2] {
    [11, 12].map(|seed| random::<T>(seed, &[2, m, n]))
}

fn sum<T: LinalgScalar>(products: &[[&Batched<T>; 3]]) -> Tensor<T> {
    let product = |[x, y, z]: [&Batched<T>; 3]| x.matmul(&y.adjoint()).matmul(z);
    let mut all = products.iter().copied().map(product);
    let first = all.next().unwrap();
    all.fold(first, |sum, x| sum.add(&x)).into_tensor().unwrap()
}

const GAPS: [f64; 10] = [0.0, 1e-14, 1e-12, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2, 0.2];

/// `A Aᴴ A` is smooth everywhere: ties, gaps on both sides of each switch, also to zero, and a zero matrix.
fn cubes<T: Scalar>() {
    for [m, n] in SHAPES {
        let [c, e] = directions::<T>(m, n);
        let spectra = GAPS.into_iter().flat_map(|gap| {
            [
                [2.0, 1.0 + 2.0 * gap, 1.0 + gap, 1.0],
                [1.0 + gap, 1.0, gap, 0.0],
                [1.0, 2.0 * gap, gap, gap],
                [2.0 * gap, gap, gap, 0.0],
            ]
        });
        for (seed, values) in spectra.enumerate() {
            let a = with_singular_values::<T>(seed as u64, &[2], m, n, &values);
            let [x, y, z] = [&a, &c, &e].map(Batched::new);
            let exact = sum(&[
                [&x, &y, &z],
                [&x, &z, &y],
                [&y, &x, &z],
                [&z, &x, &y],
                [&y, &z, &x],
                [&z, &y, &x],
            ]);
            let limit = 20.0 * epsilon::<T>().powf(0.6);
            let f = MatrixFunction::Singular(Elementary::Pow(3.0));
            check(f, &a, [&c, &e], &exact, limit);
            let none = Tensor::zeros(c.shape()).unwrap();
            let f = MatrixFunction::Singular(Elementary::Pow(1.0));
            check(f, &a, [&c, &e], &none, limit);
        }
    }
}

/// Adjoint of the inverse, and of the product of inverses.
fn inverses<T: Scalar>() {
    let [c, e] = directions::<T>(4, 4);
    for (seed, gap) in GAPS.into_iter().enumerate() {
        let values = [1.5, 1.0 + gap, 1.0, 0.6];
        let a = with_singular_values::<T>(seed as u64, &[2], 4, 4, &values);
        let inverse = Batched::new(&crate::inverse::inv(&a).unwrap());
        let [ci, ei] = [&c, &e].map(|x| inverse.matmul(&Batched::new(x)));
        let product = ci.matmul(&ei).add(&ei.matmul(&ci)).matmul(&inverse);
        let exact = product.adjoint().into_tensor().unwrap();
        let f = MatrixFunction::Singular(Elementary::Pow(-1.0));
        check(f, &a, [&c, &e], &exact, 60.0 * epsilon::<T>().powf(0.6));
    }
}

/// Against finite differences of the first derivative, for functions and truncations.
fn differences_of_first_ones<T: Scalar>() {
    let singular = [
        Elementary::Exp,
        Elementary::Ln,
        Elementary::Pow(0.0),
        Elementary::Pow(0.5),
        Elementary::Pow(2.0),
    ]
    .map(MatrixFunction::Singular);
    let cut = [1, 2, 3].map(MatrixFunction::LowRank);
    for [m, n] in SHAPES {
        let [c, e] = directions::<T>(m, n);
        for gap in [0.0, 1e-14, 1e-10, 1e-6, 1e-3, 2e-2] {
            // Ties next to each of the truncations, also with zero.
            let spectra = [
                ([2.0, 1.0 + gap, 1.0, 0.5], 0),
                ([2.5, 1.0 + 2.0 * gap, 1.0 + gap, 1.0], 1),
                ([2.0 + gap, 2.0, 1.0 + gap, 1.0], 2),
                ([2.0 + 2.0 * gap, 2.0 + gap, 2.0, 1.0], 3),
                ([2.0 + gap, 2.0, gap, 0.0], 2),
            ];
            for (seed, (values, rank)) in spectra.into_iter().enumerate() {
                let a = with_singular_values::<T>(seed as u64, &[2], m, n, &values);
                let functions: &[_] = match rank {
                    0 => &singular,
                    rank => &cut[rank - 1..rank],
                };
                for &f in functions {
                    let at = |h: f64| -> Tensor<T> {
                        let moved = axpy(&a, h, &e);
                        f.slope(&factors(&moved), &Batched::new(&c)).unwrap().into_tensor().unwrap()
                    };
                    let h = 1e-3;
                    let near = axpy(&at(h), -1.0, &at(-h));
                    let far = axpy(&at(2.0 * h), -1.0, &at(-2.0 * h));
                    let scaled = |x: &Tensor<T>, c: f64| {
                        Batched::new(x).scale(c / (12.0 * h)).into_tensor().unwrap()
                    };
                    let wanted = axpy(&scaled(&near, 8.0), 1.0, &scaled(&far, -1.0));
                    check(f, &a, [&c, &e], &wanted, 1e-6);
                }
            }
        }
    }
}

/// diag(a, b) truncated to one value, along symmetric and skew directions, by perturbation theory.
fn numbers<T: Scalar>() {
    let (a, b) = (2.0, 0.5);
    let square = |entries: [f64; 4]| {
        let entries = entries.map(<T as t4a_algebra::Numeric>::from_f64);
        Tensor::from_vec(entries.to_vec(), &[2, 2]).unwrap()
    };
    let at = square([a, 0.0, 0.0, b]);
    let even = square([0.0, 1.0, 1.0, 0.0]);
    let odd = square([0.0, 1.0, -1.0, 0.0]);
    let second = |x: &Tensor<T>| second_of(MatrixFunction::LowRank(1), &at, [x, x]).unwrap();
    for (x, sign) in [(&even, 1.0), (&odd, -1.0)] {
        let g = a - sign * b;
        // (a + t²/g) u vᴴ with u = (1, sign t/g)/|u| and v = (1, t/g)/|v|.
        let first = 2.0 / g - 2.0 * a / (g * g);
        let last = 2.0 * sign * a / (g * g);
        assert_close(&second(x), &square([first, 0.0, 0.0, last]), tight::<T>(10));
    }
}

/// `x|x|` has no second derivative at 0; matrices with a zero direction need none.
fn kinks<T: Scalar>() {
    let pair = [[2.0, 1.0, 1.0], [2.0, 1.0, 0.0]]
        .map(|values| with_singular_values::<T>(4, &[1], 4, 3, &values).to_vec().unwrap());
    let a = Tensor::from_vec(pair.concat(), &[2, 4, 3]).unwrap();
    let [c, e] = directions::<T>(4, 3);
    let f = MatrixFunction::Singular(Elementary::Pow(2.0));
    let error = LinalgError::OutsideDomain { op: "svd_function", batch: 1 };
    assert_eq!(second_of(f, &a, [&c, &e]).unwrap_err(), error);
    let regular = MatrixFunction::Singular(Elementary::Pow(2.5));
    assert!(second_of(regular, &a, [&c, &e]).is_ok());
    let first_alone = |x: &Tensor<T>| {
        let data = x.to_vec().unwrap();
        let zeros = Tensor::<T>::zeros(&[12]).unwrap().to_vec().unwrap();
        Tensor::from_vec([&data[..12], &zeros].concat(), &[2, 4, 3]).unwrap()
    };
    let (c0, e0) = (first_alone(&c), first_alone(&e));
    for directions in [[&c0, &e], [&c, &e0]] {
        for route in [forward_over_reverse::<T> as Route<T>, reverse_over_reverse::<T>] {
            let got = route(f, &a, directions).unwrap().to_vec().unwrap();
            assert!(got[12..].iter().all(|x| x.abs_sq() == num_zero::<T>()));
            assert!(norm(&route(f, &a, directions).unwrap()) > 0.1);
            assert!(matches!(
                route(f, &a, [&c, &e]),
                Err(LinalgError::OutsideDomain { op: "svd_function", batch: 1 })
            ));
        }
    }
}

fn num_zero<T: LinalgScalar>() -> T::R {
    <T::R as t4a_algebra::Numeric>::from_f64(0.0)
}

/// The error of a third derivative at ties contains the index of the matrix with the tie.
fn third<T: Scalar>() {
    let values = [[2.0, 1.5, 1.0], [2.0, 1.0, 1.0]];
    let a = values.map(|x| with_singular_values::<T>(4, &[1], 3, 3, &x).to_vec().unwrap());
    let a = Tensor::from_vec(a.concat(), &[2, 3, 3]).unwrap();
    let herm = values.map(|x| with_eigenvalues::<T>(4, &[1], &x).to_vec().unwrap());
    let herm = Tensor::from_vec(herm.concat(), &[2, 3, 3]).unwrap();
    let [c, e] = directions::<T>(3, 3);
    let f = Elementary::Exp;
    for (f, a) in [
        (MatrixFunction::Hermitian(f), &herm),
        (MatrixFunction::Singular(f), &a),
        (MatrixFunction::LowRank(1), &a),
    ] {
        let one = duals(std::slice::from_ref(a), std::slice::from_ref(&e));
        let two = duals(std::slice::from_ref(&e), std::slice::from_ref(&c));
        let twice: Vec<Dual<Duals>> =
            one.into_iter().zip(two).map(|(x, dx)| Dual::new(x, dx)).collect();
        let error = Recorded::new(f.op(), T::IS_COMPLEX, twice).and_then(|recorded| {
            let given = recorded.out.results.iter().cloned().map(Some).collect::<Vec<_>>();
            recorded.vjp(&given, &[])
        });
        let error = error.map(drop).unwrap_err();
        assert_eq!(error, LinalgError::SecondOrderAtTie { op: f.name(), batch: 1 });
    }
}

/// The gradient for the cotangent `W`, differentiated along both directions.
fn third_order<T: Scalar>(
    f: MatrixFunction,
    a: &Tensor<T>,
    w: &Tensor<T>,
    [c, e]: [&Tensor<T>; 2],
) -> Result<Tensor<T>> {
    let still = Tensor::zeros(a.shape()).unwrap();
    let [one, two] = [(a, c), (e, &still)]
        .map(|(x, dx)| duals(std::slice::from_ref(x), std::slice::from_ref(dx)));
    let twice = one.into_iter().zip(two).map(|(x, dx)| Dual::new(x, dx)).collect();
    let recorded = Recorded::<Dual<Duals>>::new(f.op(), T::IS_COMPLEX, twice)?;
    let given = eager(w).into_iter().map(|x| Some(Dual::constant(Dual::constant(x))));
    let gradient = recorded.vjp(&given.collect::<Vec<_>>(), &[])?;
    from_eager(gradient.into_iter().map(|x| x.into_tangent().into_tangent()).collect())
}

/// Third derivatives of a batch with a tie are those of its matrices; one at a tie that the loss does not read is zero.
fn thirds_beside_a_tie<T: Scalar>() {
    let herm = |x: &Tensor<T>| Batched::new(x).herm().into_tensor().unwrap();
    let head = |x: &Tensor<T>| x.slice_axis(0, 0, 1, 1).unwrap();
    let values = [[2.0, 1.5, 1.0], [2.0, 1.0, 1.0]];
    let pair = |at: &dyn Fn(&[f64]) -> Tensor<T>| {
        let both = values.map(|x| at(&x).to_vec().unwrap());
        Tensor::from_vec(both.concat(), &[2, 3, 3]).unwrap()
    };
    let a = pair(&|x| with_singular_values::<T>(4, &[1], 3, 3, x));
    let b = pair(&|x| with_eigenvalues::<T>(4, &[1], x));
    let [c, e] = directions::<T>(3, 3);
    let w = random::<T>(13, &[2, 3, 3]);
    let zero = Tensor::<T>::zeros(&[1, 3, 3]).unwrap().to_vec().unwrap();
    let alone = Tensor::from_vec([head(&w).to_vec().unwrap(), zero.clone()].concat(), &[2, 3, 3]);
    let alone = alone.unwrap();
    for (f, a, c, e) in [
        (MatrixFunction::Hermitian(Elementary::Exp), &b, herm(&c), herm(&e)),
        (MatrixFunction::Singular(Elementary::Exp), &a, c.clone(), e.clone()),
        (MatrixFunction::LowRank(1), &a, c, e),
    ] {
        let error = third_order(f, a, &w, [&c, &e]).unwrap_err();
        assert_eq!(error, LinalgError::SecondOrderAtTie { op: f.name(), batch: 1 });
        let both = third_order(f, a, &alone, [&c, &e]).unwrap();
        assert_eq!(both.to_vec().unwrap()[9..], zero[..]);
        let [a, w, c, e] = [a, &w, &c, &e].map(head);
        assert_close(&head(&both), &third_order(f, &a, &w, [&c, &e]).unwrap(), tight::<T>(100));
        if epsilon::<T>() < 1e-10 {
            let at = |h: f64| forward_over_reverse(f, &axpy(&a, h, &e), [&w, &c]).unwrap();
            let slope = Batched::new(&axpy(&at(1e-4), -1.0, &at(-1e-4))).scale(0.5e4);
            assert_close(&head(&both), &slope.into_tensor().unwrap(), 1e-5);
        }
    }
}

/// Second derivatives of a batch with a tie are those of its matrices.
fn seconds_beside_a_tie<T: Scalar>() {
    let a = [[2.0, 1.5, 1.0], [2.0, 1.0, 1.0]];
    let a = a.map(|x| with_singular_values::<T>(4, &[1], 3, 3, &x).to_vec().unwrap());
    let a = Tensor::from_vec(a.concat(), &[2, 3, 3]).unwrap();
    let [c, e] = directions::<T>(3, 3);
    for f in [MatrixFunction::Singular(Elementary::Exp), MatrixFunction::LowRank(1)] {
        for route in [forward_over_reverse::<T> as Route<T>, forward_over_forward::<T>] {
            let both = route(f, &a, [&c, &e]).unwrap();
            for i in 0..2 {
                let [a, c, e, own] = [&a, &c, &e, &both].map(|x| x.slice_axis(0, i, 1, 1).unwrap());
                assert_close(&own, &route(f, &a, [&c, &e]).unwrap(), tight::<T>(100));
            }
        }
    }
}

for_all_dtypes! {
    cubes_have_second_derivatives_everywhere => cubes;
    inverses_have_second_derivatives => inverses;
    truncations_of_two_values => numbers;
    no_second_derivative_at_a_kink => kinks;
    third_derivatives_name_the_tie => third;
    third_derivatives_beside_a_tie => thirds_beside_a_tie;
    second_derivatives_beside_a_tie => seconds_beside_a_tie;
}

for_doubles! {
    second_derivatives_are_differences_of_first_ones => differences_of_first_ones;
}
