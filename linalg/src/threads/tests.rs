use std::sync::Mutex;

use t4a_algebra::Real;
use t4a_algebra::parallel::{set_threads, threads};
use t4a_tensor::Tensor;

use super::{Work, lock, undivided};
use crate::cholesky::cholesky;
use crate::eig::eig;
use crate::eigh::{eigh, eigvalsh};
use crate::error::Result;
use crate::expm::expm;
use crate::inverse::inv;
use crate::logm::logm;
use crate::lu::lu_factor;
use crate::qr::{Columns, qr, qr_pivoted};
use crate::scalar::LinalgScalar;
use crate::schur::schur;
use crate::solve::solve;
use crate::sqrtm::sqrtm;
use crate::svd::{Vectors, svd, svdvals};
use crate::testing::*;
use crate::triangular::solve_triangular;
use crate::vocabulary::{Batched, Matrices, Triangle};

static COUNTS: Mutex<()> = Mutex::new(());

/// Bits of the real and imaginary parts, including the signs of zeros.
fn bits<T: LinalgScalar>(x: &Tensor<T>) -> Vec<u64> {
    let parts = |x: T| [x.re(), x.im()].map(|x| x.to_f64().to_bits());
    x.to_vec().unwrap().into_iter().flat_map(parts).collect()
}

fn factors<T: LinalgScalar>(a: &Tensor<T>) -> Result<Vec<(&'static str, Vec<u64>)>> {
    let mut out = Vec::new();
    let f = qr(a, Columns::Thin)?;
    out.push(("qr", [bits(&f.q), bits(&f.r)].concat()));
    let (f, columns) = qr_pivoted(a, Columns::Thin)?;
    let columns = columns.index().to_vec()?.into_iter().map(|x| x as u64).collect();
    out.push(("qr_pivoted", [bits(&f.q), bits(&f.r), columns].concat()));
    let f = svd(a, Vectors::Thin)?;
    out.push(("svd", [bits(&f.u), bits(&f.s), bits(&f.vh)].concat()));
    out.push(("svdvals", bits(&svdvals(a)?)));
    if a.shape()[a.rank() - 1] != a.shape()[a.rank() - 2] {
        return Ok(out);
    }
    let f = eigh(a)?;
    out.push(("eigh", [bits(&f.values), bits(&f.vectors)].concat()));
    out.push(("eigvalsh", bits(&eigvalsh(a)?)));
    out.push(("inv", bits(&inv(a)?)));
    let f = lu_factor(a)?;
    let rows = f.rows.index().to_vec()?.into_iter().map(|x| x as u64).collect();
    out.push(("lu", [bits(&f.packed), rows].concat()));
    out.push(("solve", bits(&solve(a, a)?)));
    Ok(out)
}

fn positive<T: LinalgScalar>(a: &Tensor<T>) -> Tensor<T> {
    // Strictly diagonally dominant, so that the Hermitian part is positive definite.
    let n = a.shape()[a.rank() - 1];
    let mut data = a.to_vec().unwrap();
    for (i, x) in data.iter_mut().enumerate() {
        let (row, column) = (i / n % n, i % n);
        if row == column {
            *x = crate::scalar::real::<T>(<T::R as t4a_algebra::Numeric>::from_f64(2.0 * n as f64));
        }
    }
    Tensor::from_vec(data, a.shape()).unwrap()
}

fn all<T: LinalgScalar>(a: &Tensor<T>) -> Vec<(&'static str, Vec<u64>)> {
    let mut out = factors(a).unwrap();
    if a.shape()[a.rank() - 1] == a.shape()[a.rank() - 2] {
        out.push(("cholesky", bits(&cholesky(&positive(a)).unwrap())));
        let f = eig(a).unwrap();
        out.push(("eig", [bits(&f.values), bits(&f.vectors)].concat()));
    }
    out
}

fn same_on_any_number<T: LinalgScalar>(sizes: &[(usize, usize)]) {
    let _guard = lock(&COUNTS);
    let before = threads();
    for &(m, n) in sizes {
        let a = random::<T>(7, &[m, n]);
        let mut first = None;
        for count in [1, 2, 7] {
            set_threads(count);
            let now = all(&a);
            let first = first.get_or_insert_with(|| now.clone());
            for (one, now) in first.iter().zip(&now) {
                assert!(one == now, "{}: {m} x {n} on {count} threads", one.0);
            }
        }
    }
    set_threads(before);
}

fn small<T: LinalgScalar>() {
    same_on_any_number::<T>(&[(65, 64), (81, 81)]);
}

for_all_dtypes! {
    factors_do_not_depend_on_the_number_of_threads => small;
}

#[test]
fn values_of_330_do_not_depend_on_the_number_of_threads() {
    let _guard = lock(&COUNTS);
    let before = threads();
    let a = random::<f64>(7, &[330, 330]);
    let of = |count| {
        set_threads(count);
        (svdvals(&a).unwrap().to_vec(), bits(&qr(&a, Columns::Thin).unwrap().q))
    };
    let first = of(1);
    for count in [2, 7] {
        assert!(of(count) == first, "{count} threads");
    }
    set_threads(before);
}

/// One part is the same on any number of threads, also for batches, and the state ends with the call.
#[test]
fn undivided_factors_do_not_depend_on_the_number_of_threads() {
    let _guard = lock(&COUNTS);
    let before = threads();
    let a = random::<f64>(7, &[3, 330, 330]);
    let qr_of = || bits(&qr(&a, Columns::Thin).unwrap().q);
    let work = Work::sums(usize::MAX);
    let of = |count| {
        set_threads(count);
        undivided(|| {
            assert_eq!((work.parts(1), work.parts(count)), (1, 1));
            qr_of()
        })
    };
    let first = of(1);
    for count in [2, 7] {
        assert!(of(count) == first, "{count} threads");
    }
    assert!(work.parts(2) > 1);
    assert!(qr_of() != first, "four parts round in another way");
    let failed = std::panic::catch_unwind(|| undivided(|| panic!("test")));
    assert!(failed.is_err() && work.parts(2) > 1);
    set_threads(before);
}

/// Shapes for which faer divides products, and shapes where a product has one column and its sums are divided.
#[test]
fn systems_of_300_and_more_do_not_depend_on_the_number_of_threads() {
    let _guard = lock(&COUNTS);
    let before = threads();
    let a = random::<f64>(7, &[530, 530]);
    let wide = random::<f64>(8, &[530, 531]);
    let lower = cholesky(&positive(&a)).unwrap();
    let rhs = [1, 2, 300].map(|r| random::<f64>(9, &[530, r]));
    let of = |count| {
        set_threads(count);
        let mut out = vec![
            bits(&lu_factor(&a).unwrap().packed),
            bits(&lu_factor(&wide).unwrap().packed),
            bits(&cholesky(&positive(&a)).unwrap()),
        ];
        for b in &rhs {
            out.push(bits(&solve(&a, b).unwrap()));
            out.push(bits(&solve_triangular(&lower, b, Triangle::LOWER).unwrap()));
        }
        out
    };
    let first = of(1);
    for count in [2, 7] {
        assert!(of(count) == first, "{count} threads");
    }
    set_threads(before);
}

fn batches<T: LinalgScalar>() {
    let _guard = lock(&COUNTS);
    let before = threads();
    for n in [40, 100] {
        let a = random::<T>(3, &[5, n, n]);
        for count in [1, 2, 7] {
            set_threads(count);
            let q = qr(&a, Columns::Thin).unwrap().q;
            let s = svdvals(&a).unwrap();
            for i in 0..5 {
                let alone = a.slice_axis(0, i, 1, 1).unwrap();
                let want = qr(&alone, Columns::Thin).unwrap().q;
                assert_eq!(
                    bits(&q.slice_axis(0, i, 1, 1).unwrap()),
                    bits(&want),
                    "{n} {i} {count}"
                );
                let want = svdvals(&alone).unwrap().to_vec();
                assert_eq!(s.slice_axis(0, i, 1, 1).unwrap().to_vec(), want, "{n} {i} {count}");
            }
        }
    }
    set_threads(before);
}

for_all_dtypes! {
    a_batch_equals_its_matrices => batches;
}

/// Multishift iterations, used for more than 120 rows: for one and for several matrices.
fn schur_and_functions<T: LinalgScalar>() {
    let _guard = lock(&COUNTS);
    let before = threads();
    let n = 124;
    for (matrices, counts) in [(1, &[2, 7][..]), (2, &[7])] {
        let a = positive(&random::<T>(7, &[matrices, n, n]));
        let small = Batched::new(&a).scale(1.0 / n as f64).into_tensor().unwrap();
        let of = |count| {
            set_threads(count);
            let form = schur(&a).unwrap();
            let functions = [sqrtm(&a), logm(&a), expm(&small)];
            let functions = functions.into_iter().map(|x| bits(&x.unwrap()));
            [bits(&form.q), bits(&form.t)].into_iter().chain(functions).collect::<Vec<_>>()
        };
        let first = of(1);
        for &count in counts {
            for (i, (one, now)) in first.iter().zip(of(count)).enumerate() {
                assert!(*one == now, "{i} of {matrices} matrices on {count} threads");
            }
        }
    }
    set_threads(before);
}

// The types of single precision share this code, and take as long again.
#[test]
fn schur_factors_and_functions_do_not_depend_on_the_number_of_threads() {
    schur_and_functions::<f64>();
    schur_and_functions::<t4a_algebra::c64>();
}
