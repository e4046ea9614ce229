use super::*;
use crate::error::LinalgError;
use crate::testing::*;
use crate::vocabulary::Batched;

fn matrix<T: LinalgScalar>(batch: &[usize], n: usize) -> Tensor<T> {
    // 2 I + a perturbation of norm below 2: no eigenvalue near the negative real axis.
    let shape: Vec<usize> = batch.iter().copied().chain([n, n]).collect();
    let a = Batched::new(&random::<T>(1, &shape)).scale(1.2 / n as f64);
    a.add(&a.identity(n).scale(2.0)).into_tensor().unwrap()
}

fn identities<T: LinalgScalar>() {
    for (batch, n) in [(&[3][..], 4), (&[][..], 1), (&[2, 2][..], 7)] {
        let a = matrix::<T>(batch, n);
        let r = sqrtm(&a).unwrap();
        assert_close(&mm(&r, &r), &a, tight::<T>(n));
    }
    // Badly scaled: eigenvalues from 1e-4 to 1e4.
    let a = with_eigenvalues::<T>(2, &[], &[1e-4, 1e-2, 1.0, 1e2, 1e4]);
    let r = sqrtm(&a).unwrap();
    assert_close(&mm(&r, &r), &a, 1e3 * tight::<T>(5));
}

fn derivatives<T: LinalgScalar>() {
    check_operation(SqrtmOp, &[matrix::<T>(&[2], 4)]);
    // dR solves R dR + dR R = dA.
    let (a, da) = (matrix::<T>(&[2], 4), random::<T>(5, &[2, 4, 4]));
    let r = sqrtm(&a).unwrap();
    let dr = tensors_of(tangents(SqrtmOp, &[&a], &[&da]).unwrap()).swap_remove(0);
    assert_close(&axpy(&mm(&r, &dr), 1.0, &mm(&dr, &r)), &da, tight::<T>(20));
}

for_all_dtypes! {
    the_root_squares_to_the_matrix => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn matrices_without_a_principal_root_are_named() {
    let data = vec![4.0, 0.0, 0.0, 9.0, -1.0, 0.0, 0.0, 1.0, f64::NAN, 0.0, 0.0, 1.0];
    let a = Tensor::from_vec(data, &[3, 2, 2]).unwrap();
    let (r, info) = sqrtm_ex(&a).unwrap();
    let codes = info.to_vec().unwrap();
    use crate::error::{NEGATIVE_EIGENVALUE, NON_FINITE};
    assert_eq!(codes, [0, NEGATIVE_EIGENVALUE, NON_FINITE]);
    assert!((r.to_vec().unwrap()[3] - 3.0).abs() < 1e-14);
    let text = sqrtm(&a).unwrap_err().to_string();
    assert!(
        text.starts_with("sqrtm: matrix 1 has an eigenvalue on the negative real axis"),
        "{text}"
    );
    for seed in 0..20 {
        // A real matrix with a negative eigenvalue at any position.
        let a = with_eigenvalues::<f64>(seed, &[], &[-0.7, 0.5, 1.0]);
        let error = sqrtm(&a).unwrap_err();
        assert_eq!(error, LinalgError::NegativeEigenvalue { op: "sqrtm", batch: 0 });
    }
}

fn square(data: [f64; 4]) -> Tensor<f64> {
    Tensor::from_vec(data.to_vec(), &[2, 2]).unwrap()
}

/// Zero eigenvalues have roots unless they are defective.
#[test]
fn singular_matrices_have_roots() {
    let zero = Tensor::<f64>::zeros(&[3, 3]).unwrap();
    assert_eq!(sqrtm(&zero).unwrap().to_vec().unwrap(), [0.0; 9]);
    let limit = 1e-15;
    let rank_one = square([1.0, 2.0, 2.0, 4.0]);
    let want = Batched::new(&rank_one).scale(0.2f64.sqrt()).into_tensor().unwrap();
    assert_close(&sqrtm(&rank_one).unwrap(), &want, limit);
    let diagonal = square([4.0, 0.0, 0.0, 0.0]);
    assert_close(&sqrtm(&diagonal).unwrap(), &square([2.0, 0.0, 0.0, 0.0]), limit);
    let projector = square([1.0, 1.0, 0.0, 0.0]);
    assert_close(&sqrtm(&projector).unwrap(), &projector, limit);
    for seed in 0..20 {
        let values = [0.0, 0.0, 0.0, 1.0, 2.0, 9.0];
        let a = with_eigenvalues::<t4a_algebra::c64>(seed, &[], &values);
        let want = with_eigenvalues::<t4a_algebra::c64>(seed, &[], &values.map(f64::sqrt));
        // The root of an eigenvalue that is zero up to rounding is of order √ε.
        let root = sqrtm(&a).unwrap();
        assert_close(&root, &want, 1e-7);
        assert_close(&mm(&root, &root), &a, tight::<f64>(6));
    }
    for nilpotent in [square([0.0, 1.0, 0.0, 0.0]), square([1.0, -1.0, 1.0, -1.0])] {
        let error = sqrtm(&nilpotent).unwrap_err();
        assert!(matches!(error, LinalgError::Singular { op: "sqrtm", .. }), "{error}");
    }
    // The derivative does not exist.
    let along = random::<f64>(1, &[2, 2]);
    let error = tangents(SqrtmOp, &[&Tensor::zeros(&[2, 2]).unwrap()], &[&along]).unwrap_err();
    assert!(matches!(error, LinalgError::Singular { op: "sqrtm", .. }), "{error}");
}

/// Eigenvalues `e^(±i(π − δ))`.
#[test]
fn rotations_near_half_a_turn_have_roots() {
    for delta in [1e-3f64, 1e-7, 1e-8, 1e-12] {
        let turn = |phi: f64| {
            let (sin, cos) = phi.sin_cos();
            square([cos, -sin, sin, cos])
        };
        let pi = std::f64::consts::PI;
        // cos(φ/2) = sin(δ/2): π − δ itself is rounded.
        let a = square([-delta.cos(), -delta.sin(), delta.sin(), -delta.cos()]);
        let (sin, cos) = (delta / 2.0).sin_cos();
        let want = square([sin, -cos, cos, sin]);
        let root = sqrtm(&a).unwrap();
        assert_close(&root, &want, 4e-16);
        assert_close(&root, &turn((pi - delta) / 2.0), 1e-15);
        let da = random::<f64>(3, &[2, 2]);
        let dr = tensors_of(tangents(SqrtmOp, &[&a], &[&da]).unwrap()).swap_remove(0);
        let back = axpy(&mm(&root, &dr), 1.0, &mm(&dr, &root));
        assert_close(&back, &da, 1e-15 / delta);
    }
}

/// Triangular matrices of any grading, element by element.
#[test]
fn triangular_matrices_lose_no_digit() {
    for m in [1e-12f64, 1.0, 1e6, 1e12, 1e150] {
        for (a, b) in [(1.0f64, 2.0f64), (1e-20, 1.0), (4.0, 0.0), (1e-9, 1e9)] {
            let root = sqrtm(&square([a, m, 0.0, b])).unwrap().to_vec().unwrap();
            let want = [a.sqrt(), m / (a.sqrt() + b.sqrt()), 0.0, b.sqrt()];
            for (got, want) in root.iter().zip(want) {
                assert!((got - want).abs() <= 4.0 * f64::EPSILON * want, "{m:e} {a:e} {b:e}");
            }
            let lower = sqrtm(&square([a, 0.0, m, b])).unwrap().to_vec().unwrap();
            assert_eq!([lower[0], lower[2], lower[1], lower[3]], root[..]);
        }
    }
}

/// Elements with an infinite reciprocal.
#[test]
fn subnormal_matrices_have_roots() {
    let a = Tensor::from_vec(vec![2e-39f32, 0.0, 0.0, 2e-39], &[2, 2]).unwrap();
    let root = sqrtm(&a).unwrap();
    let want = Batched::new(&a).identity(2).scale(2e-39f64.sqrt()).into_tensor().unwrap();
    assert_close(&root, &want, 1e-6);
}

/// `R d²R + d²R R + 2 dR dR = 0` along a line, also near the negative real axis and far from norm 1.
#[test]
fn second_derivatives_satisfy_their_equation() {
    use crate::vocabulary::DualMatrix;
    let turn = |delta: f64| {
        let (sin, cos) = delta.sin_cos();
        Batched::new(&square([-cos, -sin, sin, -cos]))
    };
    let general = Batched::new(&matrix::<f64>(&[], 2));
    let cases = [
        (general.clone(), 1e-14),
        (general.scale(1e200), 1e-14),
        (general.scale(1e-200), 1e-14),
        (Batched::new(&square([1.0, 1e6, 0.0, 2.0])), 1e-9),
        (turn(1e-3), 1e-9),
    ];
    for (a, limit) in cases {
        let size = a.norms().unwrap()[0];
        let da = Batched::new(&random::<f64>(7, &[2, 2])).scale(size);
        let root = Batched::new(&sqrtm(&a.clone().into_tensor().unwrap()).unwrap());
        let along = jvp(&DualMatrix::new(a, da.clone()), &DualMatrix::constant_of(da));
        let (dr, ddr) = (along.value.clone(), along.into_tangent());
        let square = dr.matmul(&dr).scale(2.0);
        let rest = root.matmul(&ddr).add(&ddr.matmul(&root)).add(&square);
        let (rest, size) = (rest.norms().unwrap()[0], square.norms().unwrap()[0]);
        assert!(rest <= limit * size, "{rest:e} of {size:e}");
    }
}
