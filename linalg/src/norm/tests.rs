use t4a_algebra::Real;

use super::*;
use crate::error::LinalgError;
use crate::testing::*;
use crate::vocabulary::DualMatrix;

const ALL: [Norm; 8] = [
    Norm::Frobenius,
    Norm::Nuclear,
    Norm::One,
    Norm::MinusOne,
    Norm::Two,
    Norm::MinusTwo,
    Norm::Inf,
    Norm::MinusInf,
];

/// Norm by its definition, with loops; singular values from the eigenvalues of `Aᴴ A`.
fn naive<T: LinalgScalar>(a: &Tensor<T>, norm: Norm) -> Vec<f64> {
    let (m, n) = (a.shape()[1], a.shape()[2]);
    let data: Vec<f64> =
        a.to_vec().unwrap().iter().map(|x| t4a_algebra::Field::modulus(*x).to_f64()).collect();
    let gram = match m >= n {
        true => mm(&Batched::new(a).adjoint().into_tensor().unwrap(), a),
        false => mm(a, &Batched::new(a).adjoint().into_tensor().unwrap()),
    };
    let k = m.min(n);
    let squares = crate::eigh::eigvalsh(&gram).unwrap().to_vec().unwrap();
    let one = |b: usize| {
        let at = |i: usize, j: usize| data[(b * m + i) * n + j];
        let columns = (0..n).map(|j| (0..m).map(|i| at(i, j)).sum::<f64>());
        let rows = (0..m).map(|i| (0..n).map(|j| at(i, j)).sum::<f64>());
        let s = squares[b * k..(b + 1) * k].iter().map(|x| x.to_f64().sqrt());
        match norm {
            Norm::Frobenius => {
                data[b * m * n..(b + 1) * m * n].iter().map(|x| x * x).sum::<f64>().sqrt()
            }
            Norm::One => columns.fold(0.0, f64::max),
            Norm::MinusOne => columns.fold(f64::MAX, f64::min),
            Norm::Inf => rows.fold(0.0, f64::max),
            Norm::MinusInf => rows.fold(f64::MAX, f64::min),
            Norm::Two => s.fold(0.0, f64::max),
            Norm::MinusTwo => s.fold(f64::MAX, f64::min),
            Norm::Nuclear => s.sum(),
        }
    };
    (0..a.shape()[0]).map(one).collect()
}

fn definitions<T: LinalgScalar>() {
    for (m, n) in [(4, 3), (3, 4), (3, 3)] {
        let a = with_singular_values::<T>(1, &[2], m, n, &[3.0, 2.0, 0.5]);
        for norm in ALL {
            let got = matrix_norm(&a, norm).unwrap();
            assert_eq!(got.shape(), [2]);
            for (x, want) in got.to_vec().unwrap().iter().zip(naive(&a, norm)) {
                assert!(
                    (x.to_f64() - want).abs() <= tight::<T>(50) * want,
                    "{norm:?} {x:?} {want}"
                );
            }
        }
    }
}

fn condition<T: LinalgScalar>() {
    let a = with_singular_values::<T>(3, &[2], 3, 3, &[4.0, 2.0, 0.5]);
    let inverse = crate::inverse::inv(&a).unwrap();
    for norm in ALL {
        let (x, y) = (naive(&a, norm), naive(&inverse, norm));
        let got = cond(&a, norm).unwrap().to_vec().unwrap();
        for (got, want) in got.iter().zip(x.iter().zip(&y).map(|(x, y)| x * y)) {
            assert!((got.to_f64() - want).abs() <= tight::<T>(200) * want, "{norm:?}");
        }
    }
}

/// Programs on dual numbers against finite differences; norms of singular values are tested with `svdvals`.
fn tangents<T: LinalgScalar>() {
    let a = random::<T>(5, &[2, 3, 4]);
    for norm in ALL.into_iter().filter(|norm| !norm.is_spectral()) {
        let f = |x: &Tensor<T>| of_elements(&Batched::new(x), norm).into_tensor().unwrap();
        let v = random::<T>(6, a.shape());
        let dual = DualMatrix::new(Batched::new(&a), Batched::new(&v));
        let moved = of_elements(&dual, norm).into_tangent().into_tensor().unwrap();
        let h = 1e-4;
        let at = |h: f64| f(&axpy(&a, h, &v));
        let slope = axpy(&at(h), -1.0, &at(-h)).to_vec().unwrap();
        for (slope, moved) in slope.iter().zip(moved.to_vec().unwrap()) {
            let (slope, moved) = (slope.to_f64() / (2.0 * h), moved.to_f64());
            assert!((slope - moved).abs() < 1e-6, "{norm:?}: {slope} {moved}");
        }
    }
}

/// Elements at both ends of the range.
fn extremes<T: LinalgScalar>() {
    let double = crate::scalar::epsilon::<T>() < 1e-10;
    let [tiny, small, large] =
        if double { [5e-324, 1e-310, 3e307] } else { [1.401298464324817e-45, 2e-39, 3e37] };
    let number = |x: f64| <T as t4a_algebra::Numeric>::from_f64(x);
    for size in [tiny, small, large] {
        let a = Tensor::from_vec([3.0, 0.0, -4.0, 0.0].map(|x| number(x * size)).to_vec(), &[2, 2]);
        let got = matrix_norm(&a.unwrap(), Norm::Frobenius).unwrap().to_vec().unwrap()[0].to_f64();
        assert!((got / (5.0 * size) - 1.0).abs() < 1e-6, "{got:e} {size:e}");
    }
    let a = Tensor::from_vec(vec![number(1.0), number(f64::NEG_INFINITY)], &[1, 2]).unwrap();
    for norm in [Norm::Frobenius, Norm::Inf, Norm::MinusInf] {
        let got = matrix_norm(&a, norm).unwrap().to_vec().unwrap()[0].to_f64();
        assert_eq!(got, f64::INFINITY, "{norm:?}");
    }
}

/// The derivative is the mean of those of the columns that attain the extremum.
#[test]
fn equal_sums_share_the_derivative() {
    let a = Tensor::from_vec(vec![2.0, -3.0, 1.0, 1.0, 0.0, 0.0], &[2, 3]).unwrap();
    let v = Tensor::from_vec(vec![1.0, 10.0, 0.0, 0.0, 0.0, 100.0], &[2, 3]).unwrap();
    let dual = DualMatrix::new(Batched::new(&a), Batched::new(&v));
    for (norm, value, slope) in [(Norm::One, 3.0, -4.5), (Norm::MinusOne, 1.0, 0.0)] {
        let out = of_elements(&dual, norm);
        assert_eq!(out.value.clone().into_numbers().unwrap().to_vec().unwrap(), [value]);
        assert_eq!(out.into_tangent().into_numbers().unwrap().to_vec().unwrap(), [slope]);
    }
}

/// A table of all pairs of columns would have 2⁴⁰ entries.
#[test]
fn extrema_of_many_sums_need_little_memory() {
    let a = Tensor::full(&[1, 1 << 20], -2.0).unwrap();
    for norm in [Norm::One, Norm::MinusOne] {
        assert_eq!(matrix_norm(&a, norm).unwrap().to_vec().unwrap(), [2.0]);
    }
}

/// An axis without elements has no cost.
#[test]
fn empty_matrices_of_any_length() {
    for shape in [[1 << 36, 0], [0, 1 << 36]] {
        let a = Tensor::<f64>::zeros(&shape).unwrap();
        assert_eq!(matrix_norm(&a, Norm::Frobenius).unwrap().to_vec().unwrap(), [0.0]);
    }
}

for_all_dtypes! {
    norms_at_both_ends_of_the_range => extremes;
    norms_are_what_they_say => definitions;
    conditions_are_products => condition;
}

for_doubles! {
    programs_have_tangents => tangents;
}

/// The default implementation of the trait, which Burn's backends use, against the kernel of the engine.
#[test]
fn moduli_agree_at_all_sizes() {
    use t4a_algebra::{Numeric, c32, c64};
    fn check<T: LinalgScalar>(values: &[(f64, f64)]) {
        let real = |x: f64| <T::R as Numeric>::from_f64(x);
        let data: Vec<T> = values.iter().map(|&(x, y)| T::from_parts(real(x), real(y))).collect();
        let a = Batched::new(&Tensor::from_vec(data, &[1, values.len()]).unwrap());
        let kernel = a.modulus().into_tensor().unwrap();
        let program = DualMatrix::constant_of(a).modulus().value.into_tensor().unwrap();
        for (x, y) in kernel.to_vec().unwrap().iter().zip(program.to_vec().unwrap()) {
            let (x, y) = (x.to_f64(), y.to_f64());
            assert!((x - y).abs() <= 4.0 * crate::scalar::epsilon::<T>() * x, "{x:e} {y:e}");
        }
    }
    let pairs = [(3.0, -4.0), (0.0, 0.0), (-0.0, 2.0), (-7.0, 0.0)];
    let scaled = |c: f64| pairs.map(|(x, y)| (c * x, c * y));
    for c in [1.0, 1e-30, 1e30] {
        check::<c32>(&scaled(c));
        check::<f32>(&scaled(c));
    }
    for c in [1.0, 1e-300, 1e300] {
        check::<c64>(&scaled(c));
        check::<f64>(&scaled(c));
    }
}

#[test]
fn edges() {
    let zero = Tensor::<f64>::zeros(&[1, 2, 2]).unwrap();
    for norm in ALL {
        assert_eq!(matrix_norm(&zero, norm).unwrap().to_vec().unwrap(), [0.0], "{norm:?}");
        assert_eq!(cond(&zero, norm).unwrap().to_vec().unwrap(), [f64::INFINITY], "{norm:?}");
    }
    // Sums with a difference far above rounding relative to the largest; equal sums.
    let a = Tensor::from_vec(vec![1e20, 1.0, 2.0, 0.0, 0.0, 0.0], &[2, 3]).unwrap();
    assert_eq!(matrix_norm(&a, Norm::MinusOne).unwrap().to_vec().unwrap(), [1.0]);
    let ones = Tensor::<f64>::ones(&[3, 3]).unwrap();
    assert_eq!(matrix_norm(&ones, Norm::One).unwrap().to_vec().unwrap(), [3.0]);
    // A batch with one singular matrix.
    let a = Tensor::from_vec(vec![1.0, 2.0, 2.0, 4.0, 2.0, 0.0, 0.0, 1.0], &[2, 2, 2]).unwrap();
    let got = cond(&a, Norm::One).unwrap().to_vec().unwrap();
    assert_eq!(got, [f64::INFINITY, 2.0]);
    // Elements whose squares overflow.
    let large = Tensor::from_vec(vec![3e200, 0.0, 4e200, 0.0], &[2, 2]).unwrap();
    let norm: f64 = matrix_norm(&large, Norm::Frobenius).unwrap().to_vec().unwrap()[0];
    assert!((norm / 5e200 - 1.0).abs() < 1e-15);

    let empty = Tensor::<f64>::zeros(&[2, 0]).unwrap();
    assert_eq!(matrix_norm(&empty, Norm::Frobenius).unwrap().to_vec().unwrap(), [0.0]);
    assert_eq!(matrix_norm(&empty, Norm::Nuclear).unwrap().to_vec().unwrap(), [0.0]);
    assert!(matches!(matrix_norm(&empty, Norm::One), Err(LinalgError::Tensor(_))));
    assert!(matches!(cond(&empty, Norm::Two), Err(LinalgError::Tensor(_))));
    assert!(matches!(cond(&empty, Norm::Inf), Err(LinalgError::NotSquare { .. })));
    let nan = Tensor::from_vec(vec![f64::NAN, 1.0, 1.0, 1.0], &[2, 2]).unwrap();
    for norm in ALL {
        let error = cond(&nan, norm).unwrap_err();
        assert_eq!(error, LinalgError::NonFinite { op: "cond", batch: 0 });
    }
    assert!(matrix_norm(&nan, Norm::One).unwrap().to_vec().unwrap()[0].is_nan());
}

/// Derivatives of a quotient are quotients by squares, which overflow long before the values do.
fn slopes_of_the_condition<T: LinalgScalar>() {
    let far = if crate::scalar::epsilon::<T>() < 1e-10 { 900 } else { 100 };
    for e in [-far, 0, far] {
        let c = 2f64.powi(e);
        let row = |x: [f64; 2]| {
            let numbers = x.map(<T::R as t4a_algebra::Numeric>::from_f64).to_vec();
            Batched::new(&Tensor::from_vec(numbers, &[1, 2]).unwrap())
        };
        let s = DualMatrix::new(row([3.0 * c, 2.0 * c]), row([c, 0.5 * c]));
        for (norm, want) in [(Norm::Two, 0.125), (Norm::MinusTwo, -1.0 / 18.0)] {
            let got = condition_of_values(&s, norm).into_tangent().into_tensor().unwrap();
            let got = got.to_vec().unwrap()[0].to_f64();
            assert!((got - want).abs() <= tight::<T>(1), "2^{e} {norm:?}: {got}");
        }
        let a = Batched::new(&random::<T>(3, &[4, 4])).scale(c);
        let near = a.near_one().into_tensor().unwrap();
        let ratio = crate::scale::largest(&near.to_vec().unwrap());
        assert!((0.5..2.0).contains(&ratio), "2^{e}: {ratio}");
    }
}

for_all_dtypes! {
    slopes_of_conditions_at_the_ends_of_the_range => slopes_of_the_condition;
}

#[test]
fn powers_of_two_are_exact() {
    for x in [1.0, 1.5, 0.99, 3e-308, 1.7e308, 7e100, 2f64.powi(-1022), 2f64.powi(1023)] {
        let row = Batched::new(&Tensor::from_vec(vec![x], &[1, 1]).unwrap());
        let got = row.power_of_two().into_tensor().unwrap().to_vec().unwrap()[0];
        assert!(got <= x && x < 2.0 * got && got.to_bits() << 12 == 0, "{x:e} {got:e}");
    }
    for x in [1.0f32, 1.2e-38, 3.4e38, 5.0] {
        let row = Batched::new(&Tensor::from_vec(vec![x], &[1, 1]).unwrap());
        let got = row.power_of_two().into_tensor().unwrap().to_vec().unwrap()[0];
        assert!(got <= x && x < 2.0 * got && got.to_bits() << 9 == 0, "{x:e} {got:e}");
    }
}

/// Sequential summation of ones in `f32` would stop at 2²⁴.
#[test]
fn errors_of_long_norms_do_not_grow() {
    let n = (1 << 24) + (1 << 20);
    let ones = Tensor::full(&[n, 1], 1f32).unwrap();
    let row = ones.reshape(&[1, n]).unwrap();
    let of = |a: &Tensor<f32>, norm| matrix_norm(a, norm).unwrap().to_vec().unwrap()[0];
    assert_eq!(of(&ones, Norm::One), n as f32);
    assert_eq!(of(&row, Norm::Inf), n as f32);
    for a in [&ones, &row] {
        assert_eq!(of(a, Norm::Frobenius), (n as f32).sqrt());
        let norms = Batched::new(a).norms().unwrap()[0];
        assert!((norms - (n as f64).sqrt()).abs() <= 1e-12 * norms);
    }
}
