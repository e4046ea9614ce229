use t4a_algebra::Numeric;

use super::*;
use crate::error::LinalgError;
use crate::operation::Part;
use crate::scalar::epsilon;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices, Region};

const SHAPES: [&[usize]; 8] =
    [&[4, 4], &[6, 3], &[3, 6], &[1, 1], &[5, 1], &[1, 4], &[2, 3, 4, 3], &[70, 66]];

/// Zero outside of the region, and a real diagonal ≥ 0.
fn assert_triangular<T: LinalgScalar>(r: &Tensor<T>, outside: Region) {
    let r = Batched::new(r);
    assert_eq!(r.mask(outside).norms().unwrap().iter().sum::<f64>(), 0.0);
    for d in r.diagonal().into_tensor().unwrap().to_vec().unwrap() {
        assert!(d.im() == T::R::ZERO && d.re() >= T::R::ZERO, "{d:?}");
    }
}

fn identities<T: LinalgScalar>() {
    for shape in SHAPES {
        let a = random::<T>(1, shape);
        let n = shape[shape.len() - 1].max(shape[shape.len() - 2]);
        for columns in [Columns::Thin, Columns::Complete] {
            let Qr { q, r } = qr(&a, columns).unwrap();
            assert_isometry(&q);
            assert_triangular(&r, Region::Lower(-1));
            assert_close(&mm(&q, &r), &a, tight::<T>(n));
            let (Qr { q, r }, perm) = qr_pivoted(&a, columns).unwrap();
            assert_isometry(&q);
            assert_triangular(&r, Region::Lower(-1));
            let permuted = Batched::new(&a).transpose().permute_rows(&perm).transpose();
            assert_close(&mm(&q, &r), &permuted.into_tensor().unwrap(), tight::<T>(n));
            let diagonal = Batched::new(&r).diagonal().re().into_tensor().unwrap();
            let k = diagonal.shape()[diagonal.rank() - 1];
            for d in diagonal.to_vec().unwrap().chunks(k) {
                let slack = <T::R as Numeric>::from_f64(1.0 + tight::<T>(n));
                assert!(d.windows(2).all(|w| w[0].mul(slack) >= w[1]), "{d:?}");
            }
        }
    }
}

fn relatives<T: LinalgScalar>() {
    for shape in SHAPES {
        let a = random::<T>(2, shape);
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let (off, limit) = (n as isize - m as isize, tight::<T>(m.max(n)));
        let rows_orthonormal = |q: &Tensor<T>| {
            assert_isometry(&Batched::new(q).adjoint().into_tensor().unwrap());
        };
        let Lq { l, q } = lq(&a).unwrap();
        rows_orthonormal(&q);
        assert_triangular(&l, Region::Upper(1));
        assert_close(&mm(&l, &q), &a, limit);
        let Ql { q, l } = ql(&a).unwrap();
        assert_isometry(&q);
        let zero = Batched::new(&l).mask(Region::Upper(off.max(0) + 1));
        assert_eq!(zero.norms().unwrap().iter().sum::<f64>(), 0.0);
        assert_close(&mm(&q, &l), &a, limit);
        let Rq { r, q } = rq(&a).unwrap();
        rows_orthonormal(&q);
        let zero = Batched::new(&r).mask(Region::Lower(off.min(0) - 1));
        assert_eq!(zero.norms().unwrap().iter().sum::<f64>(), 0.0);
        assert_close(&mm(&r, &q), &a, limit);
    }
}

const WELL: [&[usize]; 4] = [&[2, 4, 4], &[6, 3], &[3, 5], &[2, 1]];

fn matrix<T: LinalgScalar>(shape: &[usize]) -> Tensor<T> {
    // Dominant diagonals from both corners keep every leading and trailing block regular.
    let a = random::<T>(3, shape);
    let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    let from_top = Batched::new(&a).constant(m, n, 2.0).mask(Region::Diagonal);
    axpy(&a, 1.0, &from_top.into_tensor().unwrap())
}

fn derivatives<T: LinalgScalar>() {
    for shape in WELL {
        check_operation(QrOp { columns: Columns::Thin }, &[matrix::<T>(shape)]);
    }
}

fn pulled<T: LinalgScalar>(
    columns: Columns,
    a: &Tensor<T>,
    q: Option<&Tensor<T>>,
    r: Option<&Tensor<T>>,
) -> Result<Tensor<T>> {
    let given = [q, r].map(|x| x.map(|x| Part::Full(Batched::new(x))));
    Ok(gradient(QrOp { columns }, &[a], &given)?.swap_remove(0))
}

fn moved<T: LinalgScalar>(columns: Columns, a: &Tensor<T>, da: &Tensor<T>) -> Result<Qr<T>> {
    let [q, r] = tensors_of(tangents(QrOp { columns }, &[a], &[da])?).try_into().unwrap();
    Ok(Qr { q, r })
}

/// Complete factor through `Q⊥ Q⊥ᴴ C`, which is independent of the basis of the complement.
fn complete<T: LinalgScalar>() {
    let columns = Columns::Complete;
    let split = |q: &Tensor<T>| Batched::new(q).slice(0..6, 3..6);
    check_rules(
        &[matrix::<T>(&[6, 3])],
        |x| {
            let Qr { q, r } = qr(&x[0], columns).unwrap();
            let rest = split(&q);
            vec![r, rest.matmul(&rest.adjoint()).into_tensor().unwrap()]
        },
        |x, v| {
            let out = qr(&x[0], columns).unwrap();
            let moved = moved(columns, &x[0], &v[0]).unwrap();
            let half = split(&moved.q).matmul(&split(&out.q).adjoint());
            vec![moved.r, half.add(&half.adjoint()).into_tensor().unwrap()]
        },
        |x, w| {
            let out = qr(&x[0], columns).unwrap();
            let cotangent = Batched::new(&w[1]);
            let rest_cotangent = cotangent.add(&cotangent.adjoint()).matmul(&split(&out.q));
            let q_cotangent =
                cotangent.constant(6, 3, 0.0).append(&rest_cotangent).into_tensor().unwrap();
            vec![pulled(columns, &x[0], Some(&q_cotangent), Some(&w[0])).unwrap()]
        },
    );
}

fn relative_derivatives<T: LinalgScalar>() {
    for shape in WELL {
        check_operation(LqOp, &[matrix::<T>(shape)]);
    }
}

/// Nearly dependent columns, whose remainder faer treats as rounding: up to 16 m ε. The last columns would be lost.
fn nearly_dependent<T: LinalgScalar>() {
    for (m, n) in [(300, 4), (70, 70), (9, 14), (40, 20)] {
        let k = m.min(n);
        let part = 4.0 * m as f64 * epsilon::<T>();
        let mut values = vec![1.0; k];
        values[k - 2..].fill(part);
        let a = with_singular_values::<T>(5, &[2], m, n, &values);
        for columns in [Columns::Thin, Columns::Complete] {
            let Qr { q, r } = qr(&a, columns).unwrap();
            assert_isometry(&q);
            let off = norm(&axpy(&mm(&q, &r), -1.0, &a));
            let limit = 2.0 * (n as f64).sqrt() * epsilon::<T>() * norm(&a);
            assert!(off <= limit, "{m} × {n}: off by {off:e}, allowed {limit:e}");
        }
    }
}

for_all_dtypes! {
    nothing_is_dropped => nearly_dependent;
    factors_reproduce_the_matrix => identities;
    relatives_reproduce_the_matrix => relatives;
    rules_agree_with_differences => derivatives;
    rules_of_the_complete_form => complete;
    rules_of_the_relatives => relative_derivatives;
}

#[test]
fn errors_name_the_matrix() {
    let mut data = random::<f64>(1, &[2, 3, 2]).to_vec().unwrap();
    data[8] = f64::NAN;
    let a = Tensor::from_vec(data, &[2, 3, 2]).unwrap();
    assert_eq!(qr(&a, Columns::Thin).unwrap_err(), LinalgError::NonFinite { op: "qr", batch: 1 });
    let (out, info) = qr_ex(&a, Columns::Thin).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, -2]);
    assert!(Batched::new(&out.q).norms().unwrap()[0].is_finite());
    assert!(qr_pivoted(&a, Columns::Thin).is_err());
    // Rank 1: the factors exist, their derivative does not.
    let column = [1.0, -2.0, 0.5, 4.0, 0.0, 1.0, 2.0, -1.0];
    let flat = column.iter().flat_map(|x| [*x, 0.0, 2.0 * x]).collect();
    let flat = Tensor::<f64>::from_vec(flat, &[2, 4, 3]).unwrap();
    let out = qr(&flat, Columns::Thin).unwrap();
    assert_close(&mm(&out.q, &out.r), &flat, 1e-14);
    let error = pulled(Columns::Thin, &flat, Some(&out.q), None).unwrap_err();
    assert!(
        matches!(error, LinalgError::RankDeficient { batch: 0, rank: 1, required: 3, .. }),
        "{error}"
    );
    assert!(moved(Columns::Thin, &flat, &flat).is_err());
    // A loss of a complete Q that depends on the basis of the complement.
    let a = random::<f64>(1, &[4, 2]);
    let error = pulled(Columns::Complete, &a, Some(&random(2, &[4, 4])), None).unwrap_err();
    assert!(matches!(error, LinalgError::GaugeIllDefined { op: "qr_vjp", .. }));
}

#[test]
fn empty_matrices_and_batches_are_fine() {
    for shape in [[0, 3, 2], [2, 0, 3], [2, 3, 0], [2, 0, 0]] {
        let a = Tensor::<f64>::zeros(&shape).unwrap();
        for columns in [Columns::Thin, Columns::Complete] {
            let out = qr(&a, columns).unwrap();
            assert_eq!(mm(&out.q, &out.r).shape(), shape);
            let gradient = pulled(columns, &a, Some(&out.q), Some(&out.r)).unwrap();
            assert_eq!(gradient.shape(), shape);
            qr_pivoted(&a, columns).unwrap();
        }
    }
}

/// Zero columns and zero matrices: `Q` is an isometry.
fn zeros<T: LinalgScalar>() {
    for (m, n) in [(1, 1), (2, 2), (5, 3), (3, 5), (40, 30)] {
        for rank in 0..3.min(m).min(n) {
            let data: Vec<T> = (0..m * n)
                .map(|at| if at / n == at % n && at % n < rank { T::ONE } else { T::ZERO })
                .collect();
            let a = Tensor::from_vec(data, &[m, n]).unwrap();
            for columns in [Columns::Thin, Columns::Complete] {
                let (out, cols) = qr_pivoted(&a, columns).unwrap();
                assert_isometry(&out.q);
                let permuted = Batched::new(&a).permute_cols(&cols).into_tensor().unwrap();
                assert_close(&mm(&out.q, &out.r), &permuted, tight::<T>(2));
                let out = qr(&a, columns).unwrap();
                assert_isometry(&out.q);
                assert_close(&mm(&out.q, &out.r), &a, tight::<T>(2));
            }
        }
    }
}

for_all_dtypes! {
    matrices_of_zeros_have_factors => zeros;
}

#[test]
fn an_axis_without_elements_costs_nothing() {
    for columns in [Columns::Thin, Columns::Complete] {
        let Qr { q, r } = qr(&Tensor::<f64>::zeros(&[0, 1 << 36]).unwrap(), columns).unwrap();
        assert_eq!((q.shape(), r.shape()), (&[0, 0][..], &[0, 1 << 36][..]));
    }
    let Qr { q, r } = qr(&Tensor::<f64>::zeros(&[2, 3, 0]).unwrap(), Columns::Complete).unwrap();
    let unit = Batched::new(&q).identity(3).into_tensor().unwrap();
    assert_eq!(q.to_vec().unwrap(), unit.to_vec().unwrap());
    assert_eq!(r.shape(), [2, 3, 0]);
    let (_, perm) = qr_pivoted(&Tensor::<f64>::zeros(&[0, 3]).unwrap(), Columns::Thin).unwrap();
    assert_eq!(perm.index().to_vec().unwrap(), [0, 1, 2]);
}

/// `[[A], [0]]` with nine rows, which is not in the range of the loops for small matrices.
fn with_zero_rows<T: LinalgScalar>(a: &Tensor<T>, n: usize) -> Tensor<T> {
    let mut values = a.to_vec().unwrap();
    values.resize(9 * n, T::ZERO);
    Tensor::from_vec(values, &[9, n]).unwrap()
}

fn small<T: LinalgScalar>() {
    for (m, n) in [(8, 8), (8, 2), (5, 5), (4, 3), (1, 1)] {
        let a = random::<T>(7, &[m, n]);
        let (small, large) =
            (qr(&a, Columns::Thin).unwrap(), qr(&with_zero_rows(&a, n), Columns::Thin).unwrap());
        assert_close(&small.r, &large.r, tight::<T>(n));
        assert_close(&with_zero_rows(&small.q, n), &large.q, 64.0 * tight::<T>(n));
    }
}

/// Columns whose squares underflow: `R` of `A D` is `R D` for positive diagonal `D`.
fn tiny_columns<T: LinalgScalar>() {
    let exponent = if epsilon::<T>() < 1e-10 { -900 } else { -100 };
    let scale = [1.0, 2f64.powi(exponent), 1.0, 2f64.powi(exponent)];
    let a = random::<T>(8, &[4, 4]);
    let times = |x: &Tensor<T>, scale: [f64; 4]| {
        let factors = scale.map(<T::R as Numeric>::from_f64);
        let values = x.to_vec().unwrap().into_iter().enumerate();
        let values = values.map(|(i, x)| Numeric::mul(x, real(factors[i % 4]))).collect();
        Tensor::from_vec(values, &[4, 4]).unwrap()
    };
    let (plain, scaled) =
        (qr(&a, Columns::Thin).unwrap(), qr(&times(&a, scale), Columns::Thin).unwrap());
    assert_close(&scaled.q, &plain.q, 64.0 * tight::<T>(4));
    assert_close(&times(&scaled.r, scale.map(f64::recip)), &plain.r, 64.0 * tight::<T>(4));
}

for_all_dtypes! {
    small_matrices_have_the_factors_of_large_ones => small;
    columns_whose_squares_underflow => tiny_columns;
}
