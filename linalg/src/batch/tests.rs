use t4a_algebra::Field;

use super::*;
use crate::scalar::real;
use crate::testing::*;

const SIZES: [(usize, usize); 8] =
    [(1, 1), (7, 3), (8, 8), (9, 17), (16, 8), (1, 20), (20, 1), (33, 40)];

/// One matrix in row-major, column-major, strided and reversed layouts.
fn layouts<T: LinalgScalar>(m: usize, n: usize) -> Vec<Tensor<T>> {
    let last = |t: Tensor<T>| t.swap_axes(0, 1).unwrap();
    vec![
        random::<T>(1, &[m, n]),
        last(random::<T>(1, &[n, m])),
        random::<T>(1, &[m, 2 * n]).slice_axis(1, 0, n, 2).unwrap(),
        random::<T>(1, &[2 * m, n]).slice_axis(0, 0, m, 2).unwrap(),
        random::<T>(1, &[m, n]).flip(&[1]).unwrap(),
        last(random::<T>(1, &[n, m]).flip(&[0]).unwrap()),
        random::<T>(1, &[1, n]).expand(&[m, n]).unwrap(),
    ]
}

fn with<T: LinalgScalar>(t: &Tensor<T>, i: usize, j: usize, x: T) -> Tensor<T> {
    let mut data = t.to_vec().unwrap();
    data[i * t.shape()[1] + j] = x;
    Tensor::from_vec(data, t.shape()).unwrap()
}

fn copies<T: LinalgScalar>() {
    for (m, n) in SIZES {
        for a in layouts::<T>(m, n) {
            let views = Views::of("test", &a).unwrap();
            let view = views.get(0);
            let mut dst = vec![nan::<T>(); m * n];
            assert!(load(view, &mut dst) && is_finite(view));
            let same = |dst: &[T], order: &dyn Fn(usize) -> usize| {
                (0..m).all(|i| (0..n).all(|j| dst[j * m + i] == view[(order(i), j)]))
            };
            assert!(same(&dst, &|i| i));
            let backwards: Vec<usize> = (0..m).rev().collect();
            assert!(load_rows(view, Some(&backwards), &mut dst) && same(&dst, &|i| backwards[i]));
        }
    }
}

fn hermitian_copies<T: LinalgScalar>() {
    let half = real::<T>(<T::R as Numeric>::from_f64(0.5));
    for n in [1, 7, 8, 9, 24, 33] {
        for a in layouts::<T>(n, n) {
            let views = Views::of("test", &a).unwrap();
            let view = views.get(0);
            let mut dst = vec![T::ZERO; n * n];
            assert!(load_hermitian(view, &mut dst));
            for j in 0..n {
                for i in j..n {
                    let (x, y) = (view[(i, j)], Field::conj(view[(j, i)]));
                    let want = Numeric::add(Numeric::mul(x, half), Numeric::mul(y, half));
                    assert!(dst[j * n + i] == want, "{n}: {i} {j}");
                }
            }
        }
    }
}

/// Every non-finite element is detected, in every layout.
fn bad_elements<T: LinalgScalar>() {
    let n = 11;
    for x in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let x = real::<T>(<T::R as Numeric>::from_f64(x));
        for at in 0..n * n {
            let bad = with(&random::<T>(2, &[n, n]), at / n, at % n, x);
            for a in [bad.clone(), bad.swap_axes(0, 1).unwrap(), bad.flip(&[1]).unwrap()] {
                let views = Views::of("test", &a).unwrap();
                let mut dst = vec![T::ZERO; n * n];
                assert!(!load(views.get(0), &mut dst), "{at}");
                assert!(!load_hermitian(views.get(0), &mut dst), "{at}");
                assert!(!is_finite(views.get(0)), "{at}");
            }
        }
    }
}

/// The route of the results records the schedule that computed them.
#[test]
fn routes_name_the_schedule() {
    let path = |shape: &[usize]| {
        crate::lu::lu_factor(&random::<f64>(1, shape)).unwrap().packed.route().path
    };
    assert_eq!(path(&[5, 5]), Path::LinalgSequential);
    assert_eq!(path(&[40, 20, 20]), Path::LinalgSequential);
    assert_eq!(path(&[0, 5, 5]), Path::Empty);
    let large = if parallel::threads() > 1 { Path::LinalgParallel } else { Path::LinalgSequential };
    assert_eq!(path(&[300, 300]), large);
}

for_all_dtypes! {
    copies_are_the_matrix_in_any_layout => copies;
    hermitian_copies_are_the_mean_in_any_layout => hermitian_copies;
    no_bad_element_is_missed => bad_elements;
}
