use t4a_diff::Dual;
use t4a_tensor::Tensor;

use crate::degeneracy::Degeneracy;
use crate::det::SlogdetOp;
use crate::eig::EigOp;
use crate::error::LinalgError;
use crate::hermitian::Elementary;
use crate::hermitian::HermitianFunctionOp;
use crate::lu::LuFactorOp;
use crate::lu::Pivoting;
use crate::operation::Part;
use crate::polar::PolarOp;
use crate::polar::Side;
use crate::qr::Columns;
use crate::qr::{LqOp, QrOp, QrPivotedOp};
use crate::scalar::LinalgScalar;
use crate::svd::SvdFunctionOp;
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices};

/// A regular matrix, and one without derivative: singular, or defective for eigenvectors.
fn batch<T: LinalgScalar>() -> Tensor<T> {
    let numbers = [2.0, 0.5, 0.5, 1.0, 0.0, 1.0, 0.0, 0.0];
    let numbers = numbers.map(<T as t4a_algebra::Numeric>::from_f64);
    Tensor::from_vec(numbers.to_vec(), &[2, 2, 2]).unwrap()
}

/// Cotangent that is zero except for the first matrix.
fn first<T: LinalgScalar>(shape: &[usize], seed: u64) -> Tensor<T> {
    let mut data = random::<T>(seed, shape).to_vec().unwrap();
    let half = data.len() / 2;
    data[half..].fill(T::ZERO);
    Tensor::from_vec(data, shape).unwrap()
}

fn head<T: LinalgScalar>(x: &Tensor<T>) -> Tensor<T> {
    x.slice_axis(0, 0, 1, 1).unwrap()
}

const OPS: [MatrixOp; 11] = [
    MatrixOp::Qr(QrOp { columns: Columns::Thin }),
    MatrixOp::QrPivoted(QrPivotedOp { columns: Columns::Complete }),
    MatrixOp::Lq(LqOp),
    MatrixOp::LuFactor(LuFactorOp { pivoting: Pivoting::Partial }),
    MatrixOp::LuFactor(LuFactorOp { pivoting: Pivoting::Full }),
    MatrixOp::Slogdet(SlogdetOp),
    MatrixOp::Polar(PolarOp { side: Side::Right }),
    MatrixOp::Polar(PolarOp { side: Side::Left }),
    MatrixOp::Eig(EigOp { degeneracy: Degeneracy::DEFAULT }),
    MatrixOp::HermitianFunction(HermitianFunctionOp { function: Elementary::Pow(0.0) }),
    MatrixOp::SvdFunction(SvdFunctionOp { function: Elementary::Pow(0.5) }),
];

/// Gauge-invariant cotangents: of the values alone for eigenvectors.
fn cotangents<T: LinalgScalar>(
    op: MatrixOp,
    parts: &[Part<Batched<T>>],
) -> Vec<Option<Part<Batched<T>>>> {
    let weight = |x: &[usize], i: usize| first::<T>(x, 20 + i as u64);
    let own = |(i, part): (usize, &Part<Batched<T>>)| match part {
        Part::Complex(_) if i > 0 => None,
        Part::Full(x) => {
            let shape = x.clone().into_tensor().unwrap().shape().to_vec();
            Some(Part::Full(Batched::new(&weight(&shape, i))))
        }
        Part::Real(x) => {
            let shape = x.clone().into_tensor().unwrap().shape().to_vec();
            Some(Part::Real(Batched::new(&weight(&shape, i)).re()))
        }
        Part::Complex(x) => {
            let shape = x.clone().into_tensor().unwrap().shape().to_vec();
            Some(Part::Complex(Batched::new(&weight(&shape, i)).to_complex()))
        }
    };
    assert!(!parts.is_empty(), "{op:?}");
    parts.iter().enumerate().map(own).collect()
}

fn operations<T: LinalgScalar>() {
    let a = batch::<T>();
    for op in OPS {
        let of = |a: &Tensor<T>, one: bool| {
            let out = op.forward(&[a], true).unwrap();
            let whole = op.forward(&[&batch::<T>()], true).unwrap();
            let cut = |cotangent: Part<Batched<T>>| match cotangent {
                Part::Full(x) => Part::Full(Batched::new(&head(&x.into_tensor().unwrap()))),
                Part::Real(x) => Part::Real(Batched::new(&head(&x.into_tensor().unwrap()))),
                Part::Complex(x) => Part::Complex(Batched::new(&head(&x.into_tensor().unwrap()))),
            };
            let cotangents = cotangents(op, &whole.results).into_iter();
            let cotangents: Vec<_> = cotangents
                .map(|cotangent| {
                    cotangent.map(|cotangent| if one { cut(cotangent) } else { cotangent })
                })
                .collect();
            let cotangents = op.pullback(&[Batched::new(a)], &out, &cotangents, &[]);
            cotangents.unwrap_or_else(|e| panic!("{op:?}: {e}"))[0].clone().into_tensor().unwrap()
        };
        let both = of(&a, false);
        assert!(both.to_vec().unwrap()[4..].iter().all(|x| *x == T::ZERO), "{op:?}");
        assert_close(&head(&both), &of(&head(&a), true), tight::<T>(4));
    }
}

/// A matrix with a nonzero cotangent still fails.
fn read<T: LinalgScalar>() {
    let a = batch::<T>();
    let given = [Some(Part::Full(Batched::new(&random::<T>(4, &[2, 2, 2]))))];
    let error = gradient(QrOp { columns: Columns::Thin }, &[&a], &given).unwrap_err();
    assert!(matches!(error, LinalgError::RankDeficient { op: "qr_vjp", batch: 1, .. }));
    let error = gradient(PolarOp { side: Side::Right }, &[&a], &given).unwrap_err();
    let rank = LinalgError::RankDeficient { op: "polar_vjp", batch: 1, rank: 1, required: 2 };
    assert_eq!(error, rank);
}

/// A zero cotangent with a tangent counts as a cotangent.
fn moving<T: Scalar>() {
    let a = batch::<T>();
    let still = |x: &Tensor<T>| eager(x).into_iter().map(Dual::constant).collect::<Vec<Duals>>();
    let op = LuFactorOp { pivoting: Pivoting::Partial };
    let recorded = Recorded::new(op, T::IS_COMPLEX, still(&a)).unwrap();
    let zero = Tensor::<T>::zeros(&[2, 2, 2]).unwrap();
    let vjp = |tangent: Tensor<T>| {
        let given = duals(std::slice::from_ref(&zero), &[tangent]);
        recorded.vjp(&given.into_iter().map(Some).collect::<Vec<_>>(), &[])
    };
    assert!(vjp(first::<T>(&[2, 2, 2], 5)).is_ok());
    let error = vjp(random::<T>(5, &[2, 2, 2])).unwrap_err();
    assert!(matches!(error, LinalgError::Singular { batch: 1, .. }), "{error}");
}

for_all_dtypes! {
    a_matrix_without_a_cotangent_cannot_fail => operations;
    one_with_a_cotangent_fails_as_alone => read;
    a_cotangent_that_moves_counts => moving;
}
