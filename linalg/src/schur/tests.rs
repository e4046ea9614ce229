use t4a_algebra::{Field, Numeric};

use super::*;
use crate::scalar::epsilon;
use crate::testing::*;
use crate::vocabulary::{Batched, Matrices, Region};

fn complex<T: LinalgScalar>(a: &Tensor<T>) -> Batched<T::Complex> {
    Batched::new(a).to_complex()
}

/// Checks `A = Q T Qᴴ` up to rounding, `Q` unitary, `T` triangular.
#[track_caller]
fn check_schur<T: LinalgScalar>(name: &str, a: &Tensor<T>) {
    let Schur { q, t } = schur(a).unwrap_or_else(|error| panic!("{name}: {error}"));
    let n = a.shape()[a.rank() - 1];
    assert_isometry(&q);
    let (q, t) = (Batched::new(&q), Batched::new(&t));
    assert_eq!(t.mask(Region::Lower(-1)).norms().unwrap().iter().sum::<f64>(), 0.0, "{name}");
    let rest = q.matmul(&t).sub(&complex(a).matmul(&q)).norms().unwrap();
    let sizes = Batched::new(a).norms().unwrap();
    let limit = 10.0 * n as f64 * epsilon::<T>();
    for (rest, size) in rest.iter().zip(sizes) {
        assert!(*rest <= limit * size, "{name}: {rest:e} of {size:e}");
    }
}

fn matrices<T: LinalgScalar>(sizes: &[usize]) -> Vec<(String, Tensor<T>)> {
    let mut all: Vec<(String, Tensor<T>)> = Vec::new();
    let entries = |n: usize, f: &dyn Fn(usize, usize) -> f64| {
        Tensor::from_fn(&[n, n], |at| <T as Numeric>::from_f64(f(at / n, at % n))).unwrap()
    };
    for &n in sizes {
        all.push((format!("random {n}"), random::<T>(n as u64, &[2, n, n])));
        let u = Batched::new(&isometry::<T>(n as u64, &[], n, n));
        let turned = |a: &Batched<T>| u.matmul(a).matmul(&u.adjoint()).into_tensor().unwrap();
        let random = Batched::new(&random::<T>(70, &[n, n]));
        all.push((format!("nilpotent {n}"), turned(&random.mask(Region::Upper(1)))));
        let jordan = entries(n, &|i, j| f64::from(u8::from(i == j || i + 1 == j)));
        all.push((format!("defective {n}"), turned(&Batched::new(&jordan))));
        let grades = entries(n, &|i, j| if i == j { 0.1f64.powi(i as i32) } else { 0.0 });
        let grades = Batched::new(&grades);
        all.push((format!("rows graded {n}"), grades.matmul(&random).into_tensor().unwrap()));
        all.push((format!("columns graded {n}"), random.matmul(&grades).into_tensor().unwrap()));
        // The unshifted QR iteration leaves this permutation matrix unchanged.
        let cycle = entries(n, &|i, j| f64::from(u8::from(i == (j + 1) % n)));
        all.push((format!("cycle {n}"), cycle));
        all.push((format!("ones {n}"), entries(n, &|_, _| 1.0)));
        all.push((format!("zero {n}"), entries(n, &|_, _| 0.0)));
        all.push((format!("lower {n}"), random.mask(Region::Lower(0)).into_tensor().unwrap()));
        all.push((format!("twice {n}"), {
            let zero = random.constant(n, n, 0.0);
            let block = random.append(&grades).stack(&zero.append(&random));
            block.into_tensor().unwrap()
        }));
        all.push((format!("Hermitian {n}"), random.herm().into_tensor().unwrap()));
        // Frank matrix: eigenvalues of growing condition numbers.
        let frank = |i: usize, j: usize| if j + 1 < i { 0 } else { n - i.max(j) };
        all.push((format!("Frank {n}"), entries(n, &|i, j| frank(i, j) as f64)));
    }
    all
}

const SMALL: [usize; 7] = [1, 2, 3, 5, 8, 13, 33];

fn factors<T: LinalgScalar>() {
    for (name, a) in matrices::<T>(&SMALL) {
        check_schur(&name, &a);
    }
}

/// Matrices large enough for multishift sweeps.
fn large<T: LinalgScalar>() {
    let others = ["zero", "lower", "twice", "Hermitian", "columns"];
    for (name, a) in matrices::<T>(&[multishift::LARGE + 24]) {
        if !others.iter().any(|other| name.starts_with(other)) {
            check_schur(&name, &a);
        }
    }
}

/// The factors of `2ᵉ A` are those of `A`, with T scaled.
fn scaled<T: LinalgScalar>() {
    let far = if epsilon::<T>() < 1e-10 { 1000 } else { 110 };
    for (name, a) in matrices::<T>(&SMALL) {
        for e in [-far, far] {
            let times = |a: &Batched<T>, e: i32| {
                let half = 2f64.powi(e / 2);
                a.scale(half).scale(half).into_tensor().unwrap()
            };
            let Schur { q, t } = schur(&times(&Batched::new(&a), e)).unwrap();
            let t = Batched::new(&t).scale(2f64.powi(-e / 2)).scale(2f64.powi(-e / 2));
            let t = t.into_tensor().unwrap();
            let (own, other) = (Batched::new(&q), Batched::new(&t));
            let rest = own.matmul(&other).sub(&complex(&a).matmul(&own)).norms().unwrap();
            let limit = 10.0 * epsilon::<T>() * a.shape()[a.rank() - 1] as f64;
            for (rest, size) in rest.iter().zip(Batched::new(&a).norms().unwrap()) {
                assert!(*rest <= limit * size, "{name} {e}: {rest:e} of {size:e}");
            }
            assert_isometry(&q);
        }
    }
}

for_all_dtypes! {
    the_factors_give_the_matrix => factors;
    far_from_one_as_well => scaled;
}

for_doubles! {
    the_factors_of_large_matrices_give_the_matrix => large;
}

#[test]
fn triangular_matrices_keep_their_elements() {
    let upper = Batched::new(&random::<f64>(1, &[5, 5])).mask(Region::Upper(0));
    let upper = upper.into_tensor().unwrap();
    let t = schur(&upper).unwrap().t.to_vec().unwrap();
    assert_eq!(t.iter().map(|z| Field::re(*z)).collect::<Vec<_>>(), upper.to_vec().unwrap());
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    use crate::error::NON_FINITE;
    let data = vec![1.0, 2.0, 3.0, 4.0, f64::NAN, 0.0, 0.0, 1.0];
    let (out, info) = schur_ex(&Tensor::from_vec(data, &[2, 2, 2]).unwrap()).unwrap();
    assert_eq!(info.to_vec().unwrap(), [0, NON_FINITE]);
    assert!(out.t.to_vec().unwrap()[4].re.is_nan());
    for shape in [[0, 2, 2], [2, 0, 0]] {
        assert_eq!(schur(&Tensor::<f64>::zeros(&shape).unwrap()).unwrap().t.shape(), shape);
    }
}
