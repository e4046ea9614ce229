//! Krylov methods on real and complex graded tensors, compared with factorisations of the map.

use t4a_algebra::c64;
use t4a_diff::{Dual, check};
use t4a_linalg::LinalgError;
use t4a_linalg::krylov::{
    Diagonal, KrylovError, KrylovOptions, Vector, conjugate_gradients, davidson_diagonal,
    exponential, gmres, lanczos,
};
use t4a_structured::{
    Direction, FermionNumber, GradedTensor, Leg, Result, Sector, StructuredError, U1,
};

use crate::oracle::*;

/// Random Hermitian map on two legs.
fn hamiltonian<S: Sector>(rng: &mut Rng, legs: &[Leg<S>; 2], complex: bool) -> GradedTensor<S> {
    let all = legs.iter().cloned().chain(legs.iter().map(Leg::dual)).collect();
    let x = rng.tensor(all, S::TRIVIAL, complex).repartition(2).unwrap();
    // Products of fermionic maps include signs: the Hermitian part is taken on the matrices.
    let eigh = x.eigh().unwrap();
    let inverse = eigh.v.inverse(2).unwrap();
    let left = eigh.v.scale_columns(&eigh.w).unwrap();
    left.contract(&inverse, &[2], &[0]).unwrap().repartition(2).unwrap()
}

fn of_symmetry<S: Sector>(sectors: [S; 3], flux: S) {
    let mut rng = Rng::new(8);
    for complex in [false, true] {
        let leg =
            |dims: [usize; 3]| Leg::new(sectors.into_iter().zip(dims), Direction::Out).unwrap();
        let legs = [leg([2, 3, 2]), leg([3, 2, 1])];
        let h = hamiltonian(&mut rng, &legs, complex);
        let psi = rng.tensor(legs.to_vec(), flux, complex).repartition(1).unwrap();
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            h.contract(x, &[2, 3], &[0, 1])?.repartition(1)
        };
        let values = h.eigh().unwrap().w.numbers().unwrap();
        let own = &values.iter().find(|(sector, _)| *sector == flux).unwrap().1;
        let options = KrylovOptions::new().count(2).subspace(8);
        let found = lanczos(map, &psi, &options).unwrap();
        assert!(found.report.converged);
        close_to(&found.values, &own[..2], 1e-8);
        assert!(found.vectors.iter().all(|x| x.is_complex() == complex));
        let start = std::slice::from_ref(&psi);
        let ones = psi.divided(&psi, 0.0, 1e-300).unwrap().real_part();
        let by_davidson = davidson_diagonal(map, &ones, start, &options.count(1)).unwrap();
        close_to(&by_davidson.values, &own[..1], 1e-8);
        // exp(−i t H) of a real or complex state.
        let t = c64::new(0.0, -0.7);
        let options = KrylovOptions::new().hermitian(true).tolerance(1e-12);
        let evolved = exponential(map, t, &psi, &options).unwrap();
        let exp = h.scale_complex(t).exp().unwrap();
        let want = exp.contract(&psi, &[2, 3], &[0, 1]).unwrap().repartition(1).unwrap();
        assert!(evolved.vector.is_complex());
        let size = Vector::norm(&psi).unwrap();
        assert!(Vector::norm(&evolved.vector.sub(&want).unwrap()).unwrap() < 1e-10 * size);
        close(&[Vector::norm(&evolved.vector).unwrap()], &[size]);
        // Solves (H + 20) x = ψ.
        let shifted = |x: &GradedTensor<S>| -> Result<_> { map(x)?.axpy(c64::new(20.0, 0.0), x) };
        let one = gmres(shifted, &psi, None, &options).unwrap().vector;
        let two = conjugate_gradients(shifted, &psi, None, &options).unwrap().vector;
        assert!(Vector::norm(&one.sub(&two).unwrap()).unwrap() < 1e-9 * size);
        assert!(Vector::norm(&shifted(&one).unwrap().sub(&psi).unwrap()).unwrap() < 1e-9 * size);
    }
}

#[test]
fn graded_tensors_are_vectors() {
    of_symmetry([-1, 0, 1].map(U1), U1(0));
    of_symmetry([0, 1, 2].map(FermionNumber), FermionNumber(2));
}

/// Krylov coefficients are plain numbers: tensors over dual numbers give the same values, and structures are
/// compared.
#[test]
fn vectors_over_other_arrays_and_of_other_structures() {
    let mut rng = Rng::new(2);
    let leg = |n| Leg::new([(U1(0), n), (U1(1), 2)], Direction::Out).unwrap();
    let a = rng.tensor(vec![leg(3)], U1(0), false);
    let dual = GradedTensor::new(a.spec().clone(), Dual::new(a.re().clone(), a.re().clone()), None)
        .unwrap();
    let want = check::elements(&a.norm().unwrap());
    close(&[Vector::norm(&dual).unwrap()], &want);
    let b = rng.tensor(vec![leg(2)], U1(0), false);
    let error = a.clone().axpy(c64::new(1.0, 0.0), &b).unwrap_err();
    assert!(matches!(error, StructuredError::SpecMismatch { .. }));
    let zero = a.scale(0.0);
    let map = |x: &GradedTensor<U1>| Ok::<_, StructuredError>(x.clone());
    let error = lanczos(map, &zero, &KrylovOptions::new()).unwrap_err();
    let want = LinalgError::Krylov(KrylovError::ZeroStart { op: "lanczos" });
    assert_eq!(error, StructuredError::Linalg(want));
}

#[test]
fn complex_numbers_times_tensors() {
    let mut rng = Rng::new(5);
    let leg = |d| Leg::new([(U1(0), 2), (U1(1), 2)], d).unwrap();
    let legs = vec![leg(Direction::Out), leg(Direction::In)];
    let c = c64::new(0.3, -2.0);
    for complex in [false, true] {
        let a = rng.tensor(legs.clone(), U1(0), complex);
        let (re, im) = (a.real_part(), a.imaginary_part());
        assert!(!re.is_complex() && !im.is_complex() && a.complexified().is_complex());
        same(&GradedTensor::from_real_imaginary(&re, &im).unwrap(), &a.complexified());
        same(&a.times_i().times_i(), &a.complexified().scale(-1.0));
        let sum = a.scale(c.re).complexified().add(&a.times_i().scale(c.im)).unwrap();
        same(&a.scale_complex(c), &sum);
        same(&Vector::scale(&a, c).unwrap(), &sum);
        assert_eq!(a.scale_complex(2.0).is_complex(), complex);
        // ⟨c a, a⟩ = c* ⟨a, a⟩
        let left = Vector::inner(&a.scale_complex(c), &a).unwrap();
        let right = c.conj() * Vector::inner(&a, &a).unwrap();
        close(&[left.re, left.im], &[right.re, right.im]);
    }
    let z = rng.tensor(legs, U1(0), true);
    let error = GradedTensor::from_real_imaginary(&z, &z).unwrap_err();
    assert!(matches!(error, StructuredError::Invalid { .. }));
}
