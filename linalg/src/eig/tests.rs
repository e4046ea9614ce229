use t4a_algebra::Real;

use super::*;
use crate::operation::{Outcome, Part};
use crate::scalar::epsilon;
use crate::table::MatrixOp;
use crate::testing::*;
use crate::vocabulary::Batched;

fn identities<T: LinalgScalar>() {
    for shape in [&[4, 4][..], &[1, 1], &[2, 3, 5, 5], &[40, 40]] {
        let n = shape[shape.len() - 1];
        let a = random::<T>(1, shape);
        let Eig { values, vectors } = eig(&a).unwrap();
        let (v, l) = (Batched::new(&vectors), Batched::rows_of(&values));
        let av = Batched::new(&a).to_complex().matmul(&v).into_tensor().unwrap();
        assert_close(&v.mul(&l).into_tensor().unwrap(), &av, tight::<T>(n));
        let norms = v.conj().mul(&v).sum_rows().into_tensor().unwrap();
        for x in norms.to_vec().unwrap() {
            assert!((Field::re(x).to_f64() - 1.0).abs() < tight::<T>(n));
        }
        // Symmetric functions of the spectrum are independent of its order.
        let square = |t: &Tensor<T::Complex>| {
            let row = Batched::rows_of(t);
            row.mul(&row).transpose().sum_rows().into_tensor().unwrap()
        };
        assert_close(&square(&eigvals(&a).unwrap()), &square(&values), 10.0 * tight::<T>(n));
    }
}

fn operand<T: LinalgScalar>(
    eig: &Eig<T>,
    degeneracy: &Degeneracy,
) -> (MatrixOp, Batched<T>, Outcome<Batched<T>>) {
    let vectors = Batched::new(&eig.vectors);
    let a = Batched::<T>::from_complex(&vectors);
    let parts = vec![Part::Complex(Batched::rows_of(&eig.values)), Part::Complex(vectors)];
    (EigOp { degeneracy: *degeneracy }.into(), a, Outcome::new(parts))
}

/// Applies the rule to given factors.
fn eig_vjp<T: LinalgScalar>(
    eig: &Eig<T>,
    values: Option<&Tensor<T::Complex>>,
    vectors: Option<&Tensor<T::Complex>>,
    degeneracy: &Degeneracy,
) -> Result<Tensor<T>> {
    let (op, a, out) = operand(eig, degeneracy);
    let values = values.map(|l| Part::Complex(Batched::rows_of(l)));
    let given = [values, vectors.map(|v| Part::Complex(Batched::new(v)))];
    op.pullback(&[a], &out, &given, &[])?.swap_remove(0).into_tensor()
}

fn eig_jvp<T: LinalgScalar>(
    eig: &Eig<T>,
    da: &Tensor<T>,
    degeneracy: &Degeneracy,
) -> Result<Eig<T>> {
    let (op, a, out) = operand(eig, degeneracy);
    let parts = op.pushforward(&[a], &out, &[Some(Batched::new(da))], false)?.0;
    let (values, vectors) = (parts[0].complex().clone(), parts[1].complex().clone());
    Ok(Eig { values: values.into_vectors()?, vectors: vectors.into_tensor()? })
}

/// `f(A) = V diag(f(λ)) V⁻¹` and a symmetric function of the spectrum, here `λ²` and `Σ λ³`.
fn derivatives<T: LinalgScalar>() {
    let degeneracy = Degeneracy::default();
    let start = random::<T>(4, &[2, 4, 4]);
    let cube = |l: &Batched<T::Complex>| l.mul(l).mul(l);
    let total = |l: &Batched<T::Complex>| l.transpose().sum_rows();
    let part = |z: Batched<T::Complex>| Batched::<T>::from_complex(&z).into_tensor().unwrap();
    // |V|² weighted by λ is independent of phases and sensitive to non-normality.
    let weighted = |v: &Batched<T::Complex>, l: &Batched<T::Complex>| v.mul(l).matmul(&v.adjoint());
    check_rules(
        &[start],
        |x| {
            let e = eig(&x[0]).unwrap();
            let (l, v) = (Batched::rows_of(&e.values), Batched::new(&e.vectors));
            vec![part(weighted(&v, &l)), part(total(&cube(&l)))]
        },
        |x, t| {
            let e = eig(&x[0]).unwrap();
            let d = eig_jvp(&e, &t[0], &degeneracy).unwrap();
            let (l, v) = (Batched::rows_of(&e.values), Batched::new(&e.vectors));
            let (dl, dv) = (Batched::rows_of(&d.values), Batched::new(&d.vectors));
            let moved = weighted(&v, &dl)
                .add(&dv.mul(&l).matmul(&v.adjoint()))
                .add(&v.mul(&l).matmul(&dv.adjoint()));
            let slope = total(&l.mul(&l).mul(&dl).scale(3.0));
            vec![part(moved), part(slope)]
        },
        |x, w| {
            let e = eig(&x[0]).unwrap();
            let (l, v) = (Batched::rows_of(&e.values), Batched::new(&e.vectors));
            let cotangent = Batched::new(&w[0]).to_complex();
            // Y = V Λ Vᴴ: V̄ = Ȳ V Λ̄ + Ȳᴴ V Λ, λ̄ᵢ = vᵢᴴ Ȳ vᵢ.
            let v_cotangent =
                cotangent.matmul(&v).mul(&l.conj()).add(&cotangent.adjoint().matmul(&v).mul(&l));
            let l_cotangent = v.conj().mul(&cotangent.matmul(&v)).sum_rows();
            let cubes = Batched::new(&w[1]).to_complex();
            let l_cotangent = l_cotangent.add(&l.mul(&l).conj().scale(3.0).mul(&cubes));
            let l_cotangent = l_cotangent.into_vectors().unwrap();
            let v_cotangent = v_cotangent.into_tensor().unwrap();
            vec![eig_vjp(&e, Some(&l_cotangent), Some(&v_cotangent), &degeneracy).unwrap()]
        },
    );
}

/// Gradient of `Re tr(C V Λ Vᴴ)`, with eigenvectors multiplied by arbitrary phases if `phases`.
fn gradient<T: LinalgScalar>(e: &Eig<T>, c: &Batched<T::Complex>, phases: bool) -> Tensor<T> {
    let (l, mut v) = (Batched::rows_of(&e.values), Batched::new(&e.vectors));
    if phases {
        let phase = [(0.6, 0.8), (-1.0, 0.0), (0.0, 1.0), (0.8, -0.6)].map(|(re, im)| {
            T::Complex::from_parts(<T::R as Numeric>::from_f64(re), <T::R as Numeric>::from_f64(im))
        });
        v = v.mul(&Batched::new(&Tensor::from_vec(phase.to_vec(), &[1, 4]).unwrap()));
    }
    let v_cotangent = c.matmul(&v).mul(&l.conj()).add(&c.adjoint().matmul(&v).mul(&l));
    let l_cotangent = v.conj().mul(&c.matmul(&v)).sum_rows().into_vectors().unwrap();
    let e = Eig { values: e.values.clone(), vectors: v.into_tensor().unwrap() };
    eig_vjp(
        &e,
        Some(&l_cotangent),
        Some(&v_cotangent.into_tensor().unwrap()),
        &Degeneracy::default(),
    )
    .unwrap()
}

fn gauge<T: LinalgScalar>() {
    let e = eig(&random::<T>(5, &[4, 4])).unwrap();
    let c = Batched::new(&random::<T>(6, &[4, 4])).to_complex();
    assert_close(&gradient(&e, &c, true), &gradient(&e, &c, false), tight::<T>(100));
}

/// `tr C V Λ Vᴴ` is homogeneous in `A`: its gradient is independent of the scale, also where squares of gaps
/// underflow.
fn tiny<T: LinalgScalar>() {
    let a = random::<T>(5, &[4, 4]);
    let small = if epsilon::<T>() < 1e-10 { 0.5f64.powi(540) } else { 0.5f64.powi(80) };
    let e = eig(&a).unwrap();
    let scaled = Batched::rows_of(&e.values).scale(small).into_vectors().unwrap();
    let c = Batched::new(&random::<T>(6, &[4, 4])).to_complex();
    let far = Eig { values: scaled, vectors: e.vectors.clone() };
    assert_close(&gradient(&far, &c, false), &gradient(&e, &c, false), tight::<T>(100));
}

for_all_dtypes! {
    gradients_do_not_depend_on_phases => gauge;
    scales_out_of_the_range_of_squares => tiny;
    vectors_are_eigenvectors_of_norm_one => identities;
    rules_agree_with_differences => derivatives;
}

#[test]
fn known_spectra_and_errors() {
    // Rotation by 90°: eigenvalues ±i.
    let r = Tensor::from_vec(vec![0.0, -1.0, 1.0, 0.0], &[2, 2]).unwrap();
    let mut values: Vec<t4a_algebra::c64> = eigvals::<f64>(&r).unwrap().to_vec().unwrap();
    values.sort_by(|a, b| f64::total_cmp(&a.im, &b.im));
    assert!((values[0].im + 1.0).abs() < 1e-15 && (values[1].im - 1.0).abs() < 1e-15);
    let e = eig(&random::<f64>(2, &[3, 3])).unwrap();
    let cotangent = random::<t4a_algebra::c64>(3, &[3, 3]);
    let error = eig_vjp(&e, None, Some(&cotangent), &Degeneracy::default()).unwrap_err();
    assert!(matches!(error, LinalgError::GaugeIllDefined { op: "eig_vjp", .. }));
    // A Jordan block has only one eigenvector.
    let jordan = Tensor::from_vec(vec![1.0, 1.0, 0.0, 1.0], &[2, 2]).unwrap();
    let e = eig::<f64>(&jordan).unwrap();
    let error = eig_vjp(&e, Some(&e.values), None, &Degeneracy::default()).unwrap_err();
    assert_eq!(error, LinalgError::Defective { op: "eig_vjp", batch: 0 });
    let error = eig_jvp(&e, &jordan, &Degeneracy::default()).unwrap_err();
    assert_eq!(error, LinalgError::Defective { op: "eig_jvp", batch: 0 });
    let mut data = vec![1.0; 8];
    data[7] = f64::NAN;
    let bad = Tensor::from_vec(data, &[2, 2, 2]).unwrap();
    assert_eq!(eig(&bad).unwrap_err(), LinalgError::NonFinite { op: "eig", batch: 1 });
    assert_eq!(eigvals_ex(&bad).unwrap().1.to_vec().unwrap(), [0, -2]);
    assert_eq!(eig(&Tensor::<f64>::zeros(&[2, 0, 0]).unwrap()).unwrap().values.shape(), [2, 0]);
    assert!(matches!(eig(&random::<f64>(1, &[2, 3])), Err(LinalgError::NotSquare { .. })));
}

/// The message names functions of the matrix, which have derivatives, and not the operation that failed.
#[test]
fn eigenvalues_of_a_jordan_block_have_no_derivative() {
    let jordan = Tensor::from_vec(vec![1.0, 1.0, 0.0, 1.0], &[2, 2]).unwrap();
    let values = Part::Complex(Batched::rows_of(&eigvals::<f64>(&jordan).unwrap()));
    let error = crate::testing::gradient(EigvalsOp, &[&jordan], &[Some(values)]).unwrap_err();
    assert!(matches!(error, LinalgError::Defective { batch: 0, .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("`expm`") && !text.contains("`eigvals`"), "{text}");
}

/// `max |A V − V Λ|` over the largest entry of `A`, both in double precision.
fn residual<T: LinalgScalar>(a: &Tensor<T>) -> f64 {
    let Eig { values, vectors } = eig(a).unwrap();
    let n = a.shape()[0];
    let parts = |x: T::Complex| (Field::re(x).to_f64(), Field::im(x).to_f64());
    let size = a.to_vec().unwrap().iter().map(|&x| Field::modulus(x).to_f64()).fold(0.0, f64::max);
    let (v, l) = (vectors.to_vec().unwrap(), values.to_vec().unwrap());
    let a: Vec<(f64, f64)> =
        a.to_vec().unwrap().iter().map(|x| (x.re().to_f64(), x.im().to_f64())).collect();
    let mut worst = 0.0f64;
    for i in 0..n {
        for j in 0..n {
            let (lr, li) = parts(l[j]);
            let (vr, vi) = parts(v[i * n + j]);
            let (mut re, mut im) =
                (-(lr / size * vr - li / size * vi), -(lr / size * vi + li / size * vr));
            for k in 0..n {
                let ((ar, ai), (vr, vi)) = (a[i * n + k], parts(v[k * n + j]));
                re += ar / size * vr - ai / size * vi;
                im += ar / size * vi + ai / size * vr;
            }
            worst = worst.max(re.abs()).max(im.abs());
        }
    }
    worst
}

#[test]
fn vectors_of_conjugate_pairs_are_right_at_every_size() {
    let pairs = [0., -1., -1., 2., 2., -1., -2., 0., 2., 1., 1., -2., -2., 0., -2., 0.];
    for e in [-1060, -1040, -900, -500, -67, -30, 0, 40, 500, 1000, 1021] {
        let a = Tensor::from_fn(&[4, 4], |i| pairs[i] * 2f64.powi(e / 2) * 2f64.powi(e - e / 2));
        // Eigenvalues round to multiples of the smallest number.
        let limit = 2f64.powi(-1074 - e).max(1e-14);
        let found = residual(&a.unwrap());
        assert!(found < limit, "2^{e}: {found:e}");
    }
    for e in [-130, -100, -40, -22, 0, 30, 100, 125] {
        let a =
            Tensor::from_fn(&[4, 4], |i| pairs[i] as f32 * 2f32.powi(e / 2) * 2f32.powi(e - e / 2));
        assert!(residual(&a.unwrap()) < if e < -126 { 1e-3 } else { 5e-6 }, "2^{e}");
    }
    let random = random::<f64>(5, &[64, 64]).to_vec().unwrap();
    for e in [-60, -12, 0, 60] {
        let a = Tensor::from_fn(&[64, 64], |i| (random[i] * 2f64.powi(e)) as f32);
        assert!(residual(&a.unwrap()) < 1e-4, "64 at 2^{e}");
    }
    // A batch: each matrix is scaled by its own size.
    let sizes = [2f64.powi(-66), 1.0, 2f64.powi(-700), 2f64.powi(700)];
    let batch = Tensor::from_fn(&[4, 4, 4], |i| sizes[i / 16] * pairs[i % 16]).unwrap();
    let all = eig(&batch).unwrap();
    for i in 0..4 {
        let one = eig(&batch.slice_axis(0, i, 1, 1).unwrap()).unwrap();
        let same = all.vectors.slice_axis(0, i, 1, 1).unwrap();
        assert_eq!(same.to_vec().unwrap(), one.vectors.to_vec().unwrap());
        assert_eq!(
            same.to_vec().unwrap(),
            eig(&batch.slice_axis(0, 1, 1, 1).unwrap()).unwrap().vectors.to_vec().unwrap()
        );
    }
}

#[test]
fn small_conjugate_pairs_beside_a_large_eigenvalue_have_their_vectors() {
    // For two pairs of size s next to 1 the determinants are s², which is less than ε.
    for s in [1e-6, 1e-8, 1e-10, 1e-12] {
        let mut numbers = random::<f64>(9, &[5, 5]).to_vec().unwrap();
        let small = [0., -1., -1., 2., 2., -1., -2., 0., 2., 1., 1., -2., -2., 0., -2., 0.];
        for i in 0..4 {
            for j in 0..4 {
                numbers[i * 5 + j] = s * small[i * 4 + j];
            }
            numbers[20 + i] = 0.0;
        }
        numbers[24] = 1.0;
        let a = Tensor::from_vec(numbers, &[5, 5]).unwrap();
        assert!(residual(&a) < 1e-14, "{s:e}: {:e}", residual(&a));
    }
    // Coupled multiple pairs, until the growth overflows.
    for k in 1..40 {
        let a = Tensor::from_fn(&[2 * k, 2 * k], |at| match (at / (2 * k) % 2, at % 2) {
            _ if at % (2 * k) == at / (2 * k) + 2 => 1.0f32,
            _ if at / (4 * k) != at % (2 * k) / 2 => 0.0,
            (0, 1) => -1.0,
            (1, 0) => 1.0,
            _ => 0.0,
        });
        match eig(&a.unwrap()) {
            Ok(eig) => assert!(
                eig.vectors.to_vec().unwrap().iter().all(|x| x.re.is_finite() && x.im.is_finite())
            ),
            Err(error) => assert!(matches!(error, LinalgError::NoConvergence { .. }), "{error}"),
        }
    }
}
