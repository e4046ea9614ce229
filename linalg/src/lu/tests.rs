use t4a_algebra::Real;

use super::*;
use crate::error::LinalgError;
use crate::operation::Part;
use crate::scalar::epsilon;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices, Region};

const SHAPES: [&[usize]; 7] =
    [&[4, 4], &[6, 3], &[3, 6], &[1, 1], &[5, 1], &[2, 3, 4, 3], &[70, 66]];

fn pivoted<T: LinalgScalar>(a: &Tensor<T>, lu: &Lu<T>) -> Tensor<T> {
    let rows = Batched::new(a).permute_rows(&lu.rows);
    match &lu.cols {
        Some(cols) => rows.permute_cols(cols),
        None => rows,
    }
    .into_tensor()
    .unwrap()
}

fn identities<T: LinalgScalar>() {
    for shape in SHAPES {
        let a = random::<T>(1, shape);
        let n = shape[shape.len() - 1].max(shape[shape.len() - 2]);
        for pivoting in [Pivoting::Partial, Pivoting::Full] {
            let out = lu(&a, pivoting).unwrap();
            assert_close(&mm(&out.l, &out.u), &pivoted(&a, &out), tight::<T>(n));
            let (l, u) = (Batched::new(&out.l), Batched::new(&out.u));
            assert_eq!(l.mask(Region::Upper(1)).norms().unwrap().iter().sum::<f64>(), 0.0);
            assert_eq!(u.mask(Region::Lower(-1)).norms().unwrap().iter().sum::<f64>(), 0.0);
            assert!(
                l.diagonal().into_tensor().unwrap().to_vec().unwrap().iter().all(|&d| d == T::ONE)
            );
            let bound = if T::IS_COMPLEX { 1.5 } else { 1.0 };
            assert!(out.l.to_vec().unwrap().iter().all(|x| x.modulus().to_f64() <= bound));
        }
        let factors = lu_factor(&a).unwrap();
        let (l, u) = rule::unpack(&Batched::new(&factors.packed));
        let rows = Batched::new(&a).permute_rows(&factors.rows).into_tensor().unwrap();
        assert_close(&l.matmul(&u).into_tensor().unwrap(), &rows, tight::<T>(n));
    }
}

fn derivatives<T: LinalgScalar>() {
    for shape in [&[2, 4, 4][..], &[5, 3], &[3, 5]] {
        for pivoting in [Pivoting::Partial, Pivoting::Full] {
            check_operation(LuFactorOp { pivoting }, &[random::<T>(2, shape)]);
        }
    }
}

/// `|L| ≤ 1`, where faer's search on AVX-512 gave up to 2·10⁴ for nearly every matrix.
fn full_pivots<T: LinalgScalar>() {
    let bound = if T::IS_COMPLEX { 1.4143 } else { 1.0 };
    for seed in 0..2 {
        for n in 2..=64 {
            let out = lu(&random::<T>(seed, &[n, n]), Pivoting::Full).unwrap();
            let l = out.l.to_vec().unwrap();
            let largest = l.iter().map(|x| x.modulus().to_f64()).fold(0.0, f64::max);
            assert!(largest <= bound, "{n}: |L| = {largest}");
            let first = Batched::new(&out.u).diagonal().into_tensor().unwrap().to_vec().unwrap();
            let a = random::<T>(seed, &[n, n]).to_vec().unwrap();
            let a = a.into_iter().map(eliminate::size).fold(T::R::ZERO, Real::max);
            assert!(eliminate::size(first[0]) == a, "{n}: the first pivot is the largest element");
        }
    }
}

/// Pivots with an infinite reciprocal.
fn tiny_pivots<T: LinalgScalar>() {
    let tiny: f64 = if epsilon::<T>() < 1e-10 { 5e-324 } else { 1e-45 };
    let tiny = <T as Numeric>::from_f64(tiny);
    let [zero, one] = [T::ZERO, T::ONE];
    let a = Tensor::from_vec(vec![one, zero, zero, tiny, zero, tiny], &[3, 2]).unwrap();
    for pivoting in [Pivoting::Partial, Pivoting::Full] {
        let out = lu(&a, pivoting).unwrap();
        assert_eq!(out.l.to_vec().unwrap(), [one, zero, zero, one, zero, one]);
        assert_eq!(out.u.to_vec().unwrap(), [one, zero, zero, tiny]);
    }
}

for_all_dtypes! {
    full_pivoting_takes_the_largest_element => full_pivots;
    pivots_may_be_subnormal => tiny_pivots;
    factors_reproduce_the_matrix => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn singular_matrices_have_factors_and_an_info_code() {
    let a = with_singular_values::<f64>(4, &[], 3, 3, &[1.0, 0.5, 0.2]).to_vec().unwrap();
    let mut data = a.clone();
    data.extend([1.0, 2.0, 0.0, 2.0, 4.0, 0.0, 0.0, 0.0, 1.0]);
    data.extend([f64::NAN; 9]);
    let all = Tensor::from_vec(data, &[3, 3, 3]).unwrap();
    let (_, info) = lu_ex(&all, Pivoting::Partial).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, 2, -2]);
    assert_eq!(
        lu(&all, Pivoting::Partial).unwrap_err(),
        LinalgError::NonFinite { op: "lu", batch: 2 }
    );
    assert!(lu_factor(&all).is_err());
    let singular = all.slice_axis(0, 1, 1, 1).unwrap();
    for pivoting in [Pivoting::Partial, Pivoting::Full] {
        let out = lu(&singular, pivoting).unwrap();
        assert_close(&mm(&out.l, &out.u), &pivoted(&singular, &out), 1e-15);
        let zero = Tensor::<f64>::zeros(&[3, 2]).unwrap();
        let out = lu(&zero, pivoting).unwrap();
        assert_eq!(norm(&out.u), 0.0);
    }
    let op = LuFactorOp { pivoting: Pivoting::Partial };
    let given = [Some(Part::Full(Batched::new(&singular)))];
    let error = gradient(op, &[&singular], &given).unwrap_err();
    assert!(matches!(error, LinalgError::Singular { op: "solve_triangular", .. }), "{error}");
    for shape in [[0, 3, 2], [2, 0, 3], [2, 3, 0]] {
        let empty = Tensor::<f64>::zeros(&shape).unwrap();
        let op = LuFactorOp { pivoting: Pivoting::Full };
        let given = [Some(Part::Full(Batched::new(&empty)))];
        assert_eq!(gradient(op, &[&empty], &given).unwrap()[0].shape(), shape);
    }
}

/// Packed factors and pivots as LAPACK's `dgetrf` returns them for a 3 × 3 matrix.
#[test]
fn factors_from_elsewhere_solve() {
    let a = Tensor::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0], &[3, 3]).unwrap();
    let (s, t) = (1.0 / 7.0, 4.0 / 7.0);
    let packed = vec![7.0, 8.0, 10.0, s, 6.0 / 7.0, 11.0 / 7.0, t, 0.5, -0.5];
    let packed = Tensor::from_vec(packed, &[3, 3]).unwrap();
    let pivots = Tensor::from_vec(vec![2, 2, 2], &[3]).unwrap();
    let rows = Permutation::from_pivots(&pivots, 3).unwrap();
    assert_eq!(rows.index().to_vec().unwrap(), [2, 0, 1]);
    let b = random::<f64>(1, &[3, 2]);
    let factors = PackedLu::new(packed.clone(), rows).unwrap();
    let x = crate::solve::lu_solve(&factors, &b, crate::triangular::TriangleOp::None).unwrap();
    assert_close(&mm(&a, &x), &b, 1e-13);
    // Factors of this crate, split and reassembled.
    let ours = lu_factor(&a).unwrap();
    let rows = Permutation::from_index(ours.rows.index()).unwrap();
    assert!(PackedLu::new(ours.packed, rows).is_ok());

    let index = |values: Vec<i64>| {
        let n = values.len();
        Permutation::from_index(&Tensor::from_vec(values, &[n]).unwrap())
    };
    // LAPACK counts pivots from 1, and those of a regular matrix end with n.
    for bad in [vec![0, 0, 1], vec![0, 1, 3], vec![-1, 0, 1], vec![3, 3, 3]] {
        assert!(index(bad.clone()).is_err(), "{bad:?}");
        let pivots = Tensor::from_vec(bad, &[3]).unwrap();
        assert!(Permutation::from_pivots(&pivots, 3).is_err());
    }
    assert!(PackedLu::new(packed, index(vec![1, 0]).unwrap()).is_err());
    assert!(index(vec![]).unwrap().is_empty());
}

#[test]
fn an_axis_without_elements_costs_nothing() {
    let out = lu(&Tensor::<f64>::zeros(&[0, 1 << 36]).unwrap(), Pivoting::Partial).unwrap();
    assert_eq!((out.l.shape(), out.u.shape()), (&[0, 0][..], &[0, 1 << 36][..]));
    let out = lu(&Tensor::<f64>::zeros(&[2, 0]).unwrap(), Pivoting::Full).unwrap();
    assert_eq!(out.rows.index().to_vec().unwrap(), [0, 1]);
    assert_eq!(out.cols.unwrap().index().shape(), [0]);
}

/// `diag(A, 1)` with nine rows is not in the range of the loop for small matrices, and has the same pivots.
fn small<T: LinalgScalar>() {
    for n in [1, 3, 8] {
        let a = random::<T>(9, &[n, n]);
        let values = a.to_vec().unwrap();
        let entry = |i: usize| match (i / 9, i % 9) {
            (row, col) if row < n && col < n => values[row * n + col],
            (row, col) if row == col => T::ONE,
            _ => T::ZERO,
        };
        let (small, large) =
            (lu_factor(&a).unwrap(), lu_factor(&Tensor::from_fn(&[9, 9], entry).unwrap()).unwrap());
        let corner = Batched::new(&large.packed).slice(0..n, 0..n).into_tensor().unwrap();
        assert_close(&small.packed, &corner, tight::<T>(n));
        let rows = large.rows.index().to_vec().unwrap();
        assert_eq!(small.rows.index().to_vec().unwrap(), rows[..n]);
    }
}

for_all_dtypes! {
    small_matrices_have_the_pivots_of_large_ones => small;
}
