//! Krylov methods against dense factorisations of random matrices.

use t4a_algebra::{c32, c64};
use t4a_diff::{Eager, check};
use t4a_tensor::Tensor;

use super::*;
use crate::scalar::LinalgScalar;
use crate::{LinalgError, Result};

/// Dense square matrix of `c64`, applied to vectors of any type.
struct DenseOperator {
    n: usize,
    entries: Vec<c64>,
}

fn random(n: usize, seed: u64, complex: bool) -> DenseOperator {
    let like = Tensor::<c64>::zeros(&[n, n]).unwrap();
    let mut entries = like.random(seed).unwrap().to_vec().unwrap();
    if !complex {
        entries.iter_mut().for_each(|x| x.im = 0.0);
    }
    DenseOperator { n, entries }
}

impl DenseOperator {
    fn hermitian(n: usize, seed: u64, complex: bool) -> Self {
        let a = random(n, seed, complex);
        let entry = |k: usize| (a.entries[k] + a.entries[k % n * n + k / n].conj()) * 0.5;
        Self { n, entries: (0..n * n).map(entry).collect() }
    }

    /// `A Aᴴ / n + 1`.
    fn positive(n: usize, seed: u64, complex: bool) -> Self {
        let a = random(n, seed, complex);
        let row = |i: usize| &a.entries[i * n..(i + 1) * n];
        let product = |i: usize, j: usize| -> c64 {
            row(i).iter().zip(row(j)).map(|(x, y)| x * y.conj()).sum::<c64>() / n as f64
        };
        let entry = |k: usize| product(k / n, k % n) + if k / n == k % n { 1.0 } else { 0.0 };
        Self { n, entries: (0..n * n).map(entry).collect() }
    }

    fn shifted(mut self, shift: f64) -> Self {
        (0..self.n).for_each(|i| self.entries[i * (self.n + 1)] += shift);
        self
    }

    fn tensor(&self) -> Tensor<c64> {
        Tensor::from_vec(self.entries.clone(), &[self.n, self.n]).unwrap()
    }

    fn times(&self, x: &[c64]) -> Vec<c64> {
        self.entries.chunks(self.n).map(|row| row.iter().zip(x).map(|(a, x)| a * x).sum()).collect()
    }

    fn apply<T: LinalgScalar>(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let y = self.times(&wide(x));
        Ok(narrow(&y))
    }

    fn diagonal<T: LinalgScalar>(&self) -> Tensor<T> {
        let d: Vec<c64> = (0..self.n).map(|i| self.entries[i * (self.n + 1)]).collect();
        narrow(&d)
    }

    fn eigenvalues(&self) -> Vec<f64> {
        crate::eigh::eigvalsh(&self.tensor()).unwrap().to_vec().unwrap()
    }
}

fn wide<T: LinalgScalar>(x: &Tensor<T>) -> Vec<c64> {
    use t4a_algebra::{Field, Real};
    let one = |x: T| c64::new(Field::re(x).to_f64(), Field::im(x).to_f64());
    x.to_vec().unwrap().into_iter().map(one).collect()
}

fn narrow<T: LinalgScalar>(x: &[c64]) -> Tensor<T> {
    use t4a_algebra::{Field, Numeric};
    let real = |x: f64| <T::R as Numeric>::from_f64(x);
    let one = |x: &c64| <T as Field>::from_parts(real(x.re), real(x.im));
    Tensor::from_vec(x.iter().map(one).collect(), &[x.len()]).unwrap()
}

fn start<T: LinalgScalar>(n: usize, seed: u64) -> Tensor<T> {
    Tensor::zeros(&[n]).unwrap().random(seed).unwrap()
}

fn distance(x: &[c64], y: &[c64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| (x - y).norm_sqr()).sum::<f64>().sqrt()
}

#[track_caller]
fn near(x: f64, want: f64, tolerance: f64) {
    assert!((x - want).abs() <= tolerance * want.abs().max(1.0), "{x}, wanted {want}");
}

/// Checks that the pairs satisfy `A x = λ x` within the reported residuals, and that the wanted values are found.
#[track_caller]
fn eigenpairs<T: LinalgScalar>(
    a: &DenseOperator,
    found: &Eigenpairs<Tensor<T>>,
    want: &[f64],
    eps: f64,
) {
    assert!(found.report.converged, "{:?}", found.report);
    assert_eq!(found.values.len(), want.len());
    for (i, (value, x)) in found.values.iter().zip(&found.vectors).enumerate() {
        near(*value, want[i], eps);
        let x = wide(x);
        near(distance(&x, &vec![c64::ZERO; x.len()]), 1.0, eps);
        let scaled: Vec<c64> = x.iter().map(|x| x * *value).collect();
        near(distance(&a.times(&x), &scaled), found.residuals[i], eps);
    }
}

fn lanczos_of<T: LinalgScalar>(complex: bool, eps: f64) {
    let a = DenseOperator::hermitian(30, 3, complex);
    let all = a.eigenvalues();
    // A subspace of 12 requires several restarts.
    let options = KrylovOptions::new().count(3).subspace(12).tolerance(eps * 1e-2);
    let x = start::<T>(30, 1);
    let found = lanczos(|x: &Tensor<T>| a.apply(x), &x, &options).unwrap();
    assert!(found.report.applications > 12);
    eigenpairs(&a, &found, &all[..3], eps);
    let highest = options.target(Target::Highest);
    let found = lanczos(|x: &Tensor<T>| a.apply(x), &x, &highest).unwrap();
    eigenpairs(&a, &found, &[all[29], all[28], all[27]], eps);
    // Excited states in the complement of lower ones, and one after another.
    let lower = lanczos(|x: &Tensor<T>| a.apply(x), &x, &options.count(2)).unwrap();
    let beyond = lanczos_beyond(|x: &Tensor<T>| a.apply(x), &x, &lower.vectors, &options.count(1));
    eigenpairs(&a, &beyond.unwrap(), &all[2..3], eps);
    let each = lanczos(|x: &Tensor<T>| a.apply(x), &x, &options.separately(true)).unwrap();
    eigenpairs(&a, &each, &all[..3], eps);
}

#[test]
fn lanczos_finds_the_ends_of_the_spectrum() {
    lanczos_of::<f64>(false, 1e-8);
    lanczos_of::<c64>(true, 1e-8);
    lanczos_of::<f32>(false, 2e-3);
    lanczos_of::<c32>(true, 2e-3);
}

/// Diagonal operator with an eigenvalue of multiplicity 3.
#[test]
fn degenerate_eigenvalues_are_found_separately() {
    let values = [-1.0, -1.0, -1.0, 0.5, 2.0, 3.0];
    let map = |x: &Tensor<f64>| -> Result<Tensor<f64>> {
        let x = x.to_vec().unwrap();
        Ok(Tensor::from_fn(&[6], |i| values[i] * x[i])?)
    };
    let options = KrylovOptions::new().count(4).separately(true);
    let found = lanczos(map, &start::<f64>(6, 2), &options).unwrap();
    assert!(found.report.converged);
    [-1.0, -1.0, -1.0, 0.5].iter().zip(&found.values).for_each(|(w, v)| near(*v, *w, 1e-10));
    // A Krylov space contains one of them; random directions then extend the basis.
    let all = lanczos(map, &start::<f64>(6, 2), &options.separately(false).count(6)).unwrap();
    assert_eq!(all.values.len(), 6);
    values.iter().zip(&all.values).for_each(|(w, v)| near(*v, *w, 1e-10));
    // More eigenvalues than the dimension of the space.
    let more = lanczos(map, &start::<f64>(6, 2), &options.count(9)).unwrap();
    assert_eq!((more.values.len(), more.report.converged), (6, true));
}

/// Exponentials against those of dense matrices, for real, imaginary and complex times.
fn exponential_of(hermitian: bool) {
    let n = 24;
    let a = if hermitian { DenseOperator::hermitian(n, 5, true) } else { random(n, 5, true) };
    let options = KrylovOptions::new().tolerance(1e-11).hermitian(hermitian);
    let v = start::<c64>(n, 9);
    let size = v.norm().unwrap();
    for (t, subspace) in [
        (c64::new(0.3, 0.0), 30),
        (c64::new(0.0, -1.0), 12),
        (c64::new(0.0, -8.0), 16),
        (c64::new(-0.4, 0.7), 8),
    ] {
        let map = |x: &Tensor<c64>| a.apply(x);
        let found = exponential(map, t, &v, &options.subspace(subspace)).unwrap();
        assert!(found.report.converged && found.fraction == 1.0);
        let scaled = Tensor::from_vec(a.entries.iter().map(|x| x * t).collect(), &[n, n]).unwrap();
        let exp =
            DenseOperator { n, entries: crate::expm::expm(&scaled).unwrap().to_vec().unwrap() };
        let want = exp.times(&wide(&v));
        let norm = distance(&want, &vec![c64::ZERO; n]);
        let error = distance(&wide(&found.vector), &want);
        assert!(error <= 1e-9 * norm, "{t}: {error} of {norm}");
        // The error estimate has the right order of magnitude, or is pessimistic.
        assert!(found.report.residual <= 1e-10 * norm.max(size) * found.steps as f64);
        if hermitian && t.re == 0.0 {
            near(found.vector.norm().unwrap(), size, 1e-13);
        }
    }
}

#[test]
fn exponentials_are_those_of_dense_matrices() {
    exponential_of(true);
    exponential_of(false);
    // A real vector becomes complex if its type allows it.
    let a = DenseOperator::hermitian(20, 4, false);
    let v = start::<f64>(20, 1);
    let options = KrylovOptions::new().hermitian(true);
    let i = c64::new(0.0, 1.0);
    let error = exponential(|x: &Tensor<f64>| a.apply(x), i, &v, &options).unwrap_err();
    assert!(matches!(error, LinalgError::Krylov(KrylovError::ComplexNumber { .. })));
    let parts = |x: &[f64]| ArrayVector::real(check::array(&[x.len()], |k| x[k]));
    let map = |x: &ArrayVector<Eager>| {
        let y: Tensor<f64> = Tensor::from_vec(check::elements(&x.re), &[20])?;
        Ok::<_, LinalgError>(parts(&a.apply(&y)?.to_vec()?))
    };
    let one = exponential(map, i, &parts(&v.to_vec().unwrap()), &options).unwrap();
    let two = exponential(|x: &Tensor<c64>| a.apply(x), i, &narrow::<c64>(&wide(&v)), &options);
    let two = wide(&two.unwrap().vector);
    let (re, im) = (check::elements(&one.vector.re), check::elements(&one.vector.im.unwrap()));
    let one: Vec<c64> = re.iter().zip(&im).map(|(&re, &im)| c64::new(re, im)).collect();
    assert!(distance(&one, &two) < 1e-11);
    // The maximum number of applications is reached: a fraction of the time.
    let few = options.max_applications(5);
    let part = exponential(|x: &Tensor<f64>| a.apply(x), -4.0, &v, &few).unwrap();
    assert!(!part.report.converged && part.fraction < 1.0 && part.report.require().is_err());
    let done = exponential(|x: &Tensor<f64>| a.apply(x), -4.0 * part.fraction, &v, &options);
    assert!(distance(&wide(&part.vector), &wide(&done.unwrap().vector)) < 1e-8);
}

/// Sums and inner products of several vectors, real and complex ones mixed, beside their definitions.
#[test]
fn several_vectors_at_once() {
    let n = 50;
    let vector = |seed: u64, complex: bool| {
        let entries = wide(&start::<c64>(n, seed));
        let im = complex.then(|| check::array(&[n], |k| entries[k].im));
        ArrayVector { re: check::array(&[n], |k| entries[k].re), im }
    };
    let numbers = |x: &ArrayVector<Eager>| -> Vec<c64> {
        let im = x.im.as_ref().map_or(vec![0.0; n], check::elements);
        check::elements(&x.re).iter().zip(im).map(|(&re, im)| c64::new(re, im)).collect()
    };
    let others = [vector(1, false), vector(2, true), vector(3, true), vector(4, false)];
    let c = [c64::new(0.5, 0.0), c64::new(-1.0, 2.0), c64::new(0.0, -0.3), c64::ZERO];
    for complex in [false, true] {
        let x = vector(9, complex);
        let found = x.inners(&others).unwrap();
        let mut sum = numbers(&x);
        for ((v, found), c) in others.iter().zip(found).zip(c) {
            let v = numbers(v);
            let inner: c64 = v.iter().zip(numbers(&x)).map(|(v, x)| v.conj() * x).sum();
            assert!((found - inner).norm() < 1e-12, "{found} {inner}");
            sum.iter_mut().zip(v).for_each(|(sum, v)| *sum += c * v);
        }
        let found = x.clone().add_terms(&c, &others).unwrap();
        assert!(distance(&numbers(&found), &sum) < 1e-13);
        // Real terms of a real vector keep it real.
        let real = x.clone().add_terms(&[c[0], c[0]], &[others[0].clone(), others[3].clone()]);
        assert_eq!(real.unwrap().im.is_some(), complex);
        assert!(x.inners(&[]).unwrap().is_empty());
        let short = ArrayVector::real(check::array(&[3], |_| 1.0));
        let short = [others[0].clone(), short];
        assert!(x.inners(&short).is_err() && x.add_terms(&c[..2], &short).is_err());
    }
}

/// Eigenvalues of general matrices, in the order of the target.
#[test]
fn arnoldi_finds_eigenvalues_of_general_maps() {
    for (complex, target) in
        [(false, Target::LargestModulus), (true, Target::LargestModulus), (true, Target::Lowest)]
    {
        let a = random(30, 8, complex);
        let mut all = crate::eig::eigvals(&a.tensor()).unwrap().to_vec().unwrap();
        all.sort_by(|x, y| target.key(*x).total_cmp(&target.key(*y)));
        let options = KrylovOptions::new().count(4).subspace(16).target(target);
        let found = arnoldi(|x: &Tensor<c64>| a.apply(x), &start::<c64>(30, 2), &options).unwrap();
        assert!(found.report.converged, "{:?}", found.report);
        for (i, (value, x)) in found.values.iter().zip(&found.vectors).enumerate() {
            assert!((target.key(*value) - target.key(all[i])).abs() < 1e-7);
            let x = wide(x);
            let scaled: Vec<c64> = x.iter().map(|x| x * value).collect();
            assert!(distance(&a.times(&x), &scaled) < 1e-7);
        }
    }
    // Real vectors of type `ArrayVector`: conjugate pairs have complex eigenvectors.
    let a = random(20, 6, false);
    let map = |x: &ArrayVector<Eager>| {
        assert!(x.im.is_none());
        let y: Tensor<f64> = Tensor::from_vec(check::elements(&x.re), &[20])?;
        let y = a.apply(&y)?.to_vec()?;
        Ok::<_, LinalgError>(ArrayVector::real(check::array(&[20], |k| y[k])))
    };
    let v = ArrayVector::real(check::noise(&check::array(&[20], |_| 0.0), 3));
    let found = arnoldi(map, &v, &KrylovOptions::new().count(4).subspace(12)).unwrap();
    assert!(found.report.converged);
    let mut all = crate::eig::eigvals(&a.tensor()).unwrap().to_vec().unwrap();
    all.sort_by(|x, y| y.norm().total_cmp(&x.norm()));
    found.values.iter().zip(&all).for_each(|(v, w)| near(v.norm(), w.norm(), 1e-8));
}

#[test]
fn davidson_agrees_with_lanczos_and_needs_fewer_applications() {
    // Diagonally dominant, as Hamiltonians of quantum chemistry.
    let n = 40;
    let mut a = DenseOperator::hermitian(n, 12, true);
    a.entries.iter_mut().for_each(|x| *x *= 0.05);
    (0..n).for_each(|i| a.entries[i * (n + 1)] += i as f64);
    let all = a.eigenvalues();
    let options = KrylovOptions::new().count(3).subspace(12).tolerance(1e-10);
    let map = |x: &Tensor<c64>| a.apply(x);
    let unit = |k: usize| Tensor::from_fn(&[n], |i| c64::new(f64::from(u8::from(i == k)), 0.0));
    let starts: Vec<Tensor<c64>> = (0..3).map(|k| unit(k).unwrap()).collect();
    let found = davidson_diagonal(map, &a.diagonal(), &starts, &options).unwrap();
    eigenpairs(&a, &found, &all[..3], 1e-7);
    let by_lanczos = lanczos(map, &start::<c64>(n, 1), &options).unwrap();
    eigenpairs(&a, &by_lanczos, &all[..3], 1e-7);
    assert!(found.report.applications < by_lanczos.report.applications);
    // From one vector, without a preconditioner.
    let plain = davidson(map, |r: &Tensor<c64>, _| Ok(r.clone()), &starts[..1], &options).unwrap();
    eigenpairs(&a, &plain, &all[..3], 1e-7);
}

/// Linear systems, from 0 and from an initial guess.
fn systems<T: LinalgScalar>(complex: bool, eps: f64) {
    let n = 30;
    let b = start::<T>(n, 4);
    let guess = start::<T>(n, 5);
    let options = KrylovOptions::new().tolerance(eps * 0.1).subspace(12).max_applications(2000);
    let check = |a: &DenseOperator, found: Result<Solution<Tensor<T>>>| {
        let found = found.unwrap();
        assert!(found.report.converged, "{:?}", found.report);
        let error = distance(&a.times(&wide(&found.vector)), &wide(&b));
        assert!(error <= eps * b.norm().unwrap(), "{error} {:?}", found.report);
    };
    let positive = DenseOperator::positive(n, 3, complex);
    let indefinite = DenseOperator::hermitian(n, 4, complex).shifted(0.3);
    let general = random(n, 5, complex).shifted(9.0);
    for guess in [None, Some(&guess)] {
        let map = |x: &Tensor<T>| positive.apply(x);
        check(&positive, conjugate_gradients(map, &b, guess, &options));
        let scale = |r: &Tensor<T>| r.divided(&positive.diagonal(), 0.0, 1e-3);
        check(&positive, conjugate_gradients_with(map, scale, &b, guess, &options));
        check(&positive, minres(map, &b, guess, &options));
        check(&indefinite, minres(|x: &Tensor<T>| indefinite.apply(x), &b, guess, &options));
        let whole = options.subspace(n);
        check(&indefinite, gmres(|x: &Tensor<T>| indefinite.apply(x), &b, guess, &whole));
        check(&general, gmres(|x: &Tensor<T>| general.apply(x), &b, guess, &options));
        check(&general, bicgstab(|x: &Tensor<T>| general.apply(x), &b, guess, &options));
    }
}

#[test]
fn systems_of_equations() {
    systems::<f64>(false, 1e-8);
    systems::<c64>(true, 1e-8);
    systems::<f32>(false, 1e-3);
}

#[test]
fn bad_input_is_an_error() {
    type V = Tensor<f64>;
    let options = KrylovOptions::new();
    let unit = |x: &V| Ok::<V, LinalgError>(x.clone());
    let v = start::<f64>(10, 1);
    let zero = Tensor::<f64>::zeros(&[10]).unwrap();
    let krylov = |error: LinalgError| match error {
        LinalgError::Krylov(error) => error,
        other => panic!("{other:?}"),
    };
    for bad in [
        options.tolerance(f64::NAN),
        options.tolerance(-1.0),
        options.count(0),
        options.count(30),
        options.max_applications(0),
    ] {
        let error = krylov(lanczos(unit, &v, &bad).unwrap_err());
        assert!(matches!(error, KrylovError::Option { .. }), "{error:?}");
    }
    let error = krylov(exponential(unit, c64::new(0.0, f64::NAN), &v, &options).unwrap_err());
    assert!(matches!(error, KrylovError::Option { option: "t", .. }));
    let zero_start = KrylovError::ZeroStart { op: "lanczos" };
    assert_eq!(krylov(lanczos(unit, &zero, &options).unwrap_err()), zero_start);
    let inside = lanczos_beyond(unit, &v, std::slice::from_ref(&v), &options).unwrap_err();
    assert_eq!(krylov(inside), zero_start);
    assert!(matches!(
        krylov(arnoldi(unit, &zero, &options).unwrap_err()),
        KrylovError::ZeroStart { .. }
    ));
    assert!(matches!(
        krylov(davidson_diagonal(unit, &v, std::slice::from_ref(&zero), &options).unwrap_err()),
        KrylovError::ZeroStart { .. }
    ));
    // NaN during the iteration.
    let mut left = 3;
    let nan = |x: &V| -> Result<V> {
        left -= 1;
        x.scale(c64::new(if left == 0 { f64::NAN } else { left as f64 }, 0.0))?
            .axpy(c64::new(1.0, 0.0), &x.random(left as u64 + 10)?)
    };
    let error = krylov(exponential(nan, 1.0, &v, &options).unwrap_err());
    assert!(matches!(error, KrylovError::NonFinite { applications: 3, .. }), "{error:?}");
    // Operators that violate the assumptions of the method.
    let a = random(10, 3, false);
    let map = |x: &V| a.apply(x);
    let hermitian = |error| matches!(krylov(error), KrylovError::NotHermitian { .. });
    assert!(hermitian(lanczos(map, &v, &options).unwrap_err()));
    assert!(hermitian(davidson_diagonal(map, &v, std::slice::from_ref(&v), &options).unwrap_err()));
    assert!(hermitian(minres(map, &v, None, &options).unwrap_err()));
    assert!(hermitian(exponential(map, 1.0, &v, &options.hermitian(true)).unwrap_err()));
    let minus = |x: &V| x.scale(c64::new(-1.0, 0.0));
    let error = krylov(conjugate_gradients(minus, &v, None, &options).unwrap_err());
    assert!(matches!(error, KrylovError::NotPositive { .. }));
    let singular = |x: &V| x.scale(c64::ZERO);
    for error in [
        gmres(singular, &v, None, &options).unwrap_err(),
        minres(singular, &v, None, &options).unwrap_err(),
        bicgstab(singular, &v, None, &options).unwrap_err(),
    ] {
        assert!(matches!(krylov(error), KrylovError::Breakdown { .. }));
    }
    // Vectors of mismatching shape, and errors of the caller's own type.
    let longer = |_: &V| Ok::<V, LinalgError>(Tensor::zeros(&[11])?);
    let error = krylov(lanczos(longer, &v, &options).unwrap_err());
    assert!(matches!(error, KrylovError::ShapeMismatch { .. }));
    #[derive(Debug)]
    enum Mine {
        Linalg,
        Stop,
    }
    impl From<LinalgError> for Mine {
        fn from(_: LinalgError) -> Self {
            Mine::Linalg
        }
    }
    let stop = |_: &V| Err::<V, Mine>(Mine::Stop);
    assert!(matches!(lanczos(stop, &v, &options).unwrap_err(), Mine::Stop));
    assert!(matches!(lanczos(stop, &zero, &options).unwrap_err(), Mine::Linalg));
    // Zero right-hand sides have the solution 0.
    let solved = gmres(unit, &zero, None, &options).unwrap();
    assert!(solved.report.converged && solved.report.applications == 0);
}
