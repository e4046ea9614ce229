use super::*;
use crate::eigh::eigh;
use crate::error::LinalgError;
use crate::testing::*;
use crate::vocabulary::RealMatrices;

/// Against the spectral form, for all degrees and several squarings, within one batch.
fn spectral<T: LinalgScalar>() {
    for norm in [0.0, 1e-3, 0.1, 0.6, 1.5, 4.0, 20.0] {
        let values = [-1.0, -0.4, 0.1, 0.8].map(|v| v * norm);
        let a = with_eigenvalues::<T>(1, &[2], &values);
        let e = eigh(&a).unwrap();
        let v = Batched::new(&e.vectors);
        let exact = v.mul_real(&Batched::rows_of(&e.values).exp()).matmul(&v.adjoint());
        let got = expm(&a).unwrap();
        assert_close(&got, &exact.into_tensor().unwrap(), tight::<T>(20));
        let pair = Batched::new(&got).slice(0..4, 0..4);
        let inverse = Batched::new(&expm(&Batched::new(&a).neg().into_tensor().unwrap()).unwrap());
        let unit = pair.matmul(&inverse).into_tensor().unwrap();
        let scale = norm * norm.exp().powi(2).max(1.0);
        assert_close(
            &unit,
            &pair.identity(4).into_tensor().unwrap(),
            tight::<T>(20) * (1.0 + scale),
        );
    }
    // Nilpotent matrix: e^N = I + N + N²/2, exactly.
    let n = Batched::new(&random::<T>(2, &[3, 3])).mask(crate::vocabulary::Region::Upper(1));
    let exact = n.identity(3).add(&n).add(&n.matmul(&n).scale(0.5));
    assert_close(
        &expm(&n.into_tensor().unwrap()).unwrap(),
        &exact.into_tensor().unwrap(),
        tight::<T>(3),
    );
}

fn derivatives<T: LinalgScalar>() {
    // One batch with matrices of different plans.
    let scale =
        Tensor::from_vec([0.01, 0.3, 1.0, 6.0].map(T::from_f64).to_vec(), &[4, 1, 1]).unwrap();
    let a = Batched::new(&random::<T>(3, &[4, 3, 3])).mul(&Batched::new(&scale));
    check_operation(ExpmOp, &[a.into_tensor().unwrap()]);
}

/// The generic implementation agrees with the engine's, and with the exponential of a block matrix (Mathias).
fn generic<T: LinalgScalar>() {
    let (a, e) = (random::<T>(4, &[2, 3, 3]), random::<T>(5, &[2, 3, 3]));
    let (a_m, e_m) = (Batched::new(&a), Batched::new(&e));
    let got = exp(&a_m).unwrap().into_tensor().unwrap();
    assert_close(&got, &expm(&a).unwrap(), tight::<T>(10));
    let frechet = jvp(&a_m, &e_m).unwrap().into_tensor().unwrap();
    let block = a_m.append(&e_m).stack(&a_m.constant(3, 3, 0.0).append(&a_m));
    let block = Batched::new(&expm(&block.into_tensor().unwrap()).unwrap());
    assert_close(&frechet, &block.slice(0..3, 3..6).into_tensor().unwrap(), tight::<T>(20));
}

/// Derivatives of a batch equal those of its matrices; the same holds for the generic implementation.
fn companions<T: LinalgScalar>() {
    let (a, e) = (random::<T>(6, &[4, 3, 3]), random::<T>(7, &[4, 3, 3]));
    // The last matrix needs 60 squarings; its exponential underflows.
    let unit = Batched::new(&a).identity(3).into_tensor().unwrap();
    let sizes = [1.0, 0.1, 9.0].map(|size| (size, 0.0)).into_iter().chain([(0.0, -1e18)]);
    let one = |t: &Tensor<T>, i: usize| t.slice_axis(0, i, 1, 1).unwrap();
    let parts: Vec<Tensor<T>> = sizes
        .enumerate()
        .map(|(i, (c, d))| {
            let near = Batched::new(&one(&a, i)).scale(c);
            near.add(&Batched::new(&one(&unit, i)).scale(d)).into_tensor().unwrap()
        })
        .collect();
    let data = parts.iter().flat_map(|part| part.to_vec().unwrap()).collect();
    let all = Batched::new(&Tensor::from_vec(data, &[4, 3, 3]).unwrap());
    let value = exp(&all).unwrap().into_tensor().unwrap();
    let forward = jvp(&all, &Batched::new(&e)).unwrap().into_tensor().unwrap();
    let reverse = vjp(&all, &Batched::new(&e)).unwrap().into_tensor().unwrap();
    for (i, part) in parts.iter().enumerate() {
        let (alone, e) = (Batched::new(part), Batched::new(&one(&e, i)));
        let limit = tight::<T>(30);
        assert_close(&one(&value, i), &exp(&alone).unwrap().into_tensor().unwrap(), limit);
        assert_close(&one(&forward, i), &jvp(&alone, &e).unwrap().into_tensor().unwrap(), limit);
        assert_close(&one(&reverse, i), &vjp(&alone, &e).unwrap().into_tensor().unwrap(), limit);
    }
}

for_all_dtypes! {
    a_matrix_does_not_depend_on_its_batch => companions;
    agrees_with_the_spectral_form => spectral;
    rules_agree_with_differences => derivatives;
    the_generic_form_agrees => generic;
}

#[test]
fn one_bad_matrix_does_not_spoil_the_others() {
    let a = Tensor::from_vec(vec![1e4, f64::NAN, 1.0], &[3, 1, 1]).unwrap();
    assert_eq!(expm(&a).unwrap_err(), LinalgError::Overflow { op: "expm", batch: 0 });
    let (out, info) = expm_ex(&a).unwrap();
    assert_eq!(info.to_vec().unwrap(), [OVERFLOW, NON_FINITE, 0]);
    let out = out.to_vec().unwrap();
    assert!(out[0].is_nan() && out[1].is_nan() && (out[2] - 1f64.exp()).abs() < 1e-14);
    assert!(matches!(expm(&random::<f64>(1, &[2, 3])), Err(LinalgError::NotSquare { .. })));
    for shape in [[0, 2, 2], [2, 0, 0]] {
        assert_eq!(expm(&Tensor::<f64>::zeros(&shape).unwrap()).unwrap().shape(), shape);
    }
}

/// Overscaling costs digits for these matrices: `‖A‖` requires 20 squarings, norms of powers few.
#[test]
fn matrices_far_from_normal_lose_no_digit() {
    let m = 1e6;
    let (x, y) = ((-1f64).exp(), (-3f64).exp());
    let want = [x, m * (x - y) / 2.0, 0.0, y];
    let a = Tensor::from_vec(vec![-1.0, m, 0.0, -3.0], &[2, 2]).unwrap();
    let close = |got: &[f64], want: &[f64], limit: f64| {
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() <= limit * want.abs(), "{got:e} {want:e}");
        }
    };
    close(&expm(&a).unwrap().to_vec().unwrap(), &want, 4.0 * f64::EPSILON);
    // Also for lower triangular matrices.
    let transposed = expm(&a.permute(&[1, 0]).unwrap()).unwrap();
    close(&transposed.permute(&[1, 0]).unwrap().to_vec().unwrap(), &want, 4.0 * f64::EPSILON);
    // Block-diagonal with a rotation, so that the matrix is not triangular.
    let mut whole = vec![0.0; 16];
    (whole[0], whole[1], whole[5]) = (-1.0, m, -3.0);
    (whole[11], whole[14]) = (1.0, -1.0);
    let whole = Tensor::from_vec(whole, &[4, 4]).unwrap();
    let got = Batched::new(&expm(&whole).unwrap()).slice(0..2, 0..2).into_tensor().unwrap();
    close(&got.to_vec().unwrap(), &want, 1e-14);
    // L(A, A) = A e^A.
    let moved = tensors_of(tangents(ExpmOp, &[&whole], &[&whole]).unwrap()).swap_remove(0);
    let exact = mm(&whole, &expm(&whole).unwrap());
    let top = |t: &Tensor<f64>| Batched::new(t).slice(0..2, 0..2).into_tensor().unwrap();
    close(&top(&moved).to_vec().unwrap(), &top(&exact).to_vec().unwrap(), 1e-13);
    // 40 squarings of elements whose exponentials underflow.
    let decay = Tensor::from_vec(vec![-1e12, 1e12, 0.0, -1.0], &[2, 2]).unwrap();
    let got = expm(&decay).unwrap().to_vec().unwrap();
    let slope = 1e12 / (1e12 - 1.0);
    close(&got, &[0.0, x * slope, 0.0, x], 4.0 * f64::EPSILON);
}
