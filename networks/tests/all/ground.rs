//! Derivatives of ground states against exact diagonalisation, and of energies, fidelities and likelihoods.

use t4a_algebra::c64;
use t4a_diff::{Array, Dual, Eager, check};
use t4a_networks::sites::{self, Sites};
use t4a_networks::train::{TensorTrain, TrainOperator};
use t4a_networks::{
    DmrgOptions, GroundState, Method, Mpo, Mps, NetworksError, ResponseOptions, Sum,
    contract_features,
};
use t4a_structured::{Sector, Trivial, U1, Z2};
use t4a_tensor::random::{Generator, normal};

use crate::dense::{Dense, dense_sum};
use crate::gradients::{difference, duals, moved, tangent};
use crate::models::{t_v, xxz};

type D = Dual<Eager>;

fn number(x: &Eager) -> f64 {
    check::elements(x)[0]
}

fn weight(x: f64, tangent: f64) -> D {
    Dual::new(check::array(&[1], |_| x), check::array(&[1], |_| tangent))
}

type Terms = Vec<(c64, Vec<(&'static str, usize)>)>;

/// Parity-conserving spins, and the terms `−Σ XX`, `−Σ Z`, `Σ X X` over three sites.
fn parts(n: usize) -> (Sites<Z2>, [Terms; 3]) {
    let site = sites::spin_half().conserve(|q: U1| Z2::new((i64::from(q.0) + 1) / 2)).unwrap();
    let bonds: Terms = (0..n - 1).map(|i| ((-1.0).into(), vec![("X", i), ("X", i + 1)])).collect();
    let field: Terms = (0..n).map(|i| ((-1.0 - 0.1 * i as f64).into(), vec![("Z", i)])).collect();
    let far: Terms = (0..n - 2).map(|i| (1.0.into(), vec![("X", i), ("X", i + 2)])).collect();
    (Sites::uniform(site, n), [bonds, field, far])
}

fn mpo<S: Sector>(sites: &Sites<S>, terms: &[(c64, Vec<(&str, usize)>)]) -> Mpo<S> {
    let mut sum = Sum::new(sites);
    for (c, factors) in terms {
        sum.add(*c, factors.iter().copied());
    }
    sum.mpo().unwrap()
}

/// `(E, ⟨O⟩)` of the ground state of a dense sum.
fn exact(h: &Dense, o: &Dense) -> (f64, f64) {
    let (values, vectors) = h.eigh();
    let n = h.n;
    let x: Vec<c64> = (0..n).map(|i| vectors[i * n]).collect();
    let mean =
        |i: usize| -> c64 { (0..n).map(|j| x[i].conj() * o.entries[i * n + j] * x[j]).sum() };
    (values[0], (0..n).map(mean).sum::<c64>().re)
}

#[test]
fn ground_states_have_derivatives_by_implicit_functions() {
    let n = 6;
    let (sites, terms) = parts(n);
    let operators: Vec<_> = terms.iter().map(|x| mpo(&sites, x)).collect();
    let matrices: Vec<_> = terms.iter().map(|x| dense_sum(&sites, x)).collect();
    let (theta, along) = ([1.0, 1.3, 0.2], [0.7, -0.4, 0.9]);
    let dense = |step: f64| {
        let mut h = Dense::zeros(1 << n);
        for k in 0..3 {
            h.add((theta[k] + step * along[k]).into(), &matrices[k]);
        }
        h
    };
    let weights: Vec<D> = (0..3).map(|k| weight(theta[k], along[k])).collect();
    let h = Mpo::weighted(&operators, &weights).unwrap();
    let options = DmrgOptions::new().tolerance(1e-14).cutoff(1e-18);
    let start = Mps::random(&sites, Z2::new(0), 8, false, &Generator::new(3)).unwrap();
    let ground = GroundState::find(&h, start, options).unwrap();
    let energy = ground.energy().unwrap();
    // The observable has a derivative of its own.
    let own = Mpo::weighted(&operators[..2], &[weight(0.5, 0.3), weight(1.0, -1.0)]).unwrap();
    let mean = ground.expectation(&own, &ResponseOptions::new().tolerance(1e-13)).unwrap();
    let observable = |step: f64| {
        let mut o = Dense::zeros(1 << n);
        o.add((0.5 + 0.3 * step).into(), &matrices[0]);
        o.add((1.0 - step).into(), &matrices[1]);
        o
    };
    let at = |step: f64| exact(&dense(step), &observable(step));
    let (e, o) = at(0.0);
    assert!((number(&energy.value) - e).abs() < 1e-10, "{e}");
    assert!((number(&mean.value) - o).abs() < 1e-6 * o.abs(), "{o}");
    let want = difference(|step| at(step).0);
    let got = number(&energy.into_tangent());
    assert!((got - want).abs() < 1e-6 * want.abs(), "energy: {got}, {want}");
    let want = difference(|step| at(step).1);
    let got = number(&mean.into_tangent());
    assert!((got - want).abs() < 1e-6 * want.abs(), "expectation: {got}, {want}");
    // A conserved quantity does not respond, but for its own derivative.
    let one = mpo(&sites, &[(2.0.into(), vec![("Id", 0)])]);
    let fixed = Mpo::weighted(&[one], &[weight(1.0, 3.0)]).unwrap();
    let fixed = ground.expectation(&fixed, &ResponseOptions::new()).unwrap();
    assert!((number(&fixed.into_tangent()) - 6.0).abs() < 1e-10);
}

#[test]
fn responses_of_complex_states_and_their_errors() {
    // A current term makes the Hamiltonian and its ground state complex.
    let n = 5;
    let site = sites::spin_half();
    let sites = Sites::uniform(site, n);
    let hop = |phase: f64, i: usize| {
        let c = c64::new(phase.cos(), phase.sin()) * 0.5;
        [(c, vec![("S+", i), ("S-", i + 1)]), (c.conj(), vec![("S-", i), ("S+", i + 1)])]
    };
    let a: Vec<_> = (0..n - 1).flat_map(|i| hop(0.4 * i as f64, i)).collect();
    let b: Vec<_> = (0..n).map(|i| (c64::from(0.3 * (i * i) as f64), vec![("Sz", i)])).collect();
    let current: Vec<_> = hop(1.1, 2).into_iter().collect();
    let options = DmrgOptions::new().tolerance(1e-14).cutoff(1e-18);
    let start = Mps::random(&sites, U1(1), 8, true, &Generator::new(5)).unwrap();
    let operators = [mpo(&sites, &a), mpo(&sites, &b)];
    let h = Mpo::weighted(&operators, &[weight(1.0, 0.5), weight(1.0, -1.0)]).unwrap();
    let ground = GroundState::find(&h, start, options).unwrap();
    let o = mpo(&sites, &current);
    let mean = ground.expectation(
        &o.over(h.tensors()[0].re()).unwrap(),
        &ResponseOptions::new().tolerance(1e-13),
    );
    let got = number(&mean.unwrap().into_tangent());
    // The dense ground state of the sector: other sectors are lifted.
    let total = |h: &mut Dense| {
        let z: Vec<_> = (0..n).map(|i| (c64::ONE, vec![("Sz", i)])).collect();
        let mut z = dense_sum(&sites, &z);
        z.add((-0.5).into(), &Dense::identity(1 << n));
        h.add(50.0.into(), &z.mul(&z));
    };
    let at = |step: f64| {
        let mut h = Dense::zeros(1 << n);
        h.add((1.0 + 0.5 * step).into(), &dense_sum(&sites, &a));
        h.add((1.0 - step).into(), &dense_sum(&sites, &b));
        total(&mut h);
        exact(&h, &dense_sum(&sites, &current)).1
    };
    let want = difference(at);
    assert!((got - want).abs() < 1e-6 * want.abs(), "{got}, {want}");

    let short = ResponseOptions::new().sweeps(1);
    let over = o.over(h.tensors()[0].re()).unwrap();
    let error = ground.expectation(&over, &short).unwrap_err();
    assert!(matches!(error, NetworksError::Unconverged { sweeps: 1, .. }), "{error}");
    let error = ground.expectation(&over, &ResponseOptions::new().max_dim(0)).unwrap_err();
    assert!(matches!(error, NetworksError::Argument { .. }), "{error}");
    let error = Mpo::weighted(&operators, &[weight(1.0, 0.0)]).unwrap_err();
    assert!(matches!(error, NetworksError::Length { required: 2, given: 1, .. }), "{error}");
}

#[test]
fn energies_fidelities_and_likelihoods_have_derivatives() {
    let h = t_v(3, 2, 2.0);
    let mpo = h.mpo().unwrap();
    for complex in [false, true] {
        let state =
            |seed| Mps::random(h.sites(), U1(3), 4, complex, &Generator::new(seed)).unwrap();
        let (a, b) = (state(7), state(8));
        let samples = a.sample(6, &Generator::new(1)).unwrap();
        let with = |x: &Mps<U1>| Mps::new(duals(x.tensors(), 1.0)).unwrap();
        let at = |step: f64| Mps::new(moved(a.tensors(), step)).unwrap();
        let (da, like) = (with(&a), with(&a).tensors()[0].re().clone());
        let fixed = b.over(&like).unwrap();

        let want = |x: &Mps<U1>| x.expectation(&mpo).unwrap().re / x.inner(x).unwrap().re;
        let got = da.energy(&mpo.over(&like).unwrap()).unwrap();
        assert!((number(&got.value) - want(&a)).abs() < 1e-12);
        close(tangent((got, None)), difference(|step| want(&at(step))));

        let want = |x: &Mps<U1>| {
            let norms = x.inner(x).unwrap().re * b.inner(&b).unwrap().re;
            (x.inner(&b).unwrap().norm_sqr() / norms).ln()
        };
        let got = da.ln_fidelity(&fixed).unwrap();
        assert!((number(&got.value) - want(&a)).abs() < 1e-11);
        close(tangent((got, None)), difference(|step| want(&at(step))));

        // Amplitudes of the dense vector; the last site is fastest.
        let place = |s: &Vec<usize>| s.iter().fold(0, |place, k| 2 * place + k);
        let want = |x: &Mps<U1>| -> f64 {
            let (vector, norm) = (x.to_vector().unwrap(), x.inner(x).unwrap().re);
            samples.iter().map(|s| (vector[place(s)].norm_sqr() / norm).ln()).sum()
        };
        let got = da.log_likelihood(&samples).unwrap().sum(0);
        assert!((number(&got.value) - want(&a)).abs() < 1e-10);
        close(tangent((got, None)), difference(|step| want(&at(step))));
    }
}

fn close(got: f64, want: f64) {
    assert!((got - want).abs() < 1e-7 * want.abs().max(1.0), "{got}, {want}");
}

#[test]
fn long_chains_neither_overflow_nor_vanish() {
    let h = xxz(400, 1, 1.0);
    let state = Mps::random(h.sites(), U1(0), 4, false, &Generator::new(2)).unwrap();
    let big = Mps::new(state.tensors().iter().map(|x| x.scale(1e5)).collect()).unwrap();
    let (mpo, ln) = (h.mpo().unwrap(), big.ln_norm_squared().unwrap());
    assert!((number(&ln) - 800.0 * 1e5f64.ln()).abs() < 1e-8);
    let (own, scaled) = (state.energy(&mpo).unwrap(), big.energy(&mpo).unwrap());
    assert!((number(&own) - number(&scaled)).abs() < 1e-9 * number(&own).abs());
    assert!(number(&big.ln_fidelity(&state).unwrap()).abs() < 1e-9);
    let samples = state.sample(2, &Generator::new(1)).unwrap();
    let (own, scaled) = (state.log_likelihood(&samples), big.log_likelihood(&samples));
    let (own, scaled) = (check::elements(&own.unwrap()), check::elements(&scaled.unwrap()));
    assert!(own.iter().zip(&scaled).all(|(a, b)| (a - b).abs() < 1e-8 && a.is_finite()));
    // A state of another charge has probability 0.
    let never = check::elements(&state.log_likelihood(&[vec![0; 400]]).unwrap());
    assert_eq!(never, [f64::NEG_INFINITY]);
    let error = state.log_likelihood(&[vec![2; 400]]).unwrap_err();
    assert!(matches!(error, NetworksError::Argument { .. }), "{error}");
    let error = state.log_likelihood(&[vec![0; 399]]).unwrap_err();
    assert!(matches!(error, NetworksError::Length { required: 400, given: 399, .. }), "{error}");
}

fn array(shape: &[usize], seed: u64) -> Eager {
    let x: t4a_tensor::Tensor<f64> = normal(&Generator::new(seed), shape, 0.0, 1.0).unwrap();
    t4a_tensor::AnyTensor::from(x).into()
}

#[test]
fn features_contract_with_the_cores() {
    let shapes = [[1, 3, 2], [2, 2, 4], [4, 3, 5]];
    let core = |k: usize| array(&shapes[k], 10 + k as u64);
    let cores: Vec<_> =
        (0..3).map(|k| (core(k), (k == 1).then(|| array(&shapes[1], 20)))).collect();
    let features: Vec<_> = (0..3).map(|k| array(&[6, shapes[k][1]], 30 + k as u64)).collect();
    let got = contract_features(&cores, &features).unwrap();
    let read = check::elements;
    let (re, im) = (read(&got.re), read(&got.im.unwrap()));
    let ln = read(&got.ln_norm);
    for n in 0..6 {
        let mut row = vec![c64::ONE];
        for k in 0..3 {
            let [l, d, r] = shapes[k];
            let (a, b) = (read(&cores[k].0), cores[k].1.as_ref().map(read));
            let phi = read(&features[k]);
            let mut next = vec![c64::ZERO; r];
            for (i, j, m) in
                (0..l).flat_map(|i| (0..d).flat_map(move |j| (0..r).map(move |m| (i, j, m))))
            {
                let at = (i * d + j) * r + m;
                let x = c64::new(a[at], b.as_ref().map_or(0.0, |b| b[at]));
                next[m] += row[i] * phi[n * d + j] * x;
            }
            row = next;
        }
        for m in 0..5 {
            let own = c64::new(re[n * 5 + m], im[n * 5 + m]) * ln[n].exp();
            assert!((own - row[m]).norm() < 1e-12, "{own}, {}", row[m]);
        }
    }
    let error = contract_features(&cores, &features[1..]).unwrap_err();
    assert!(matches!(error, NetworksError::Length { .. }), "{error}");
    let wrong = [features[1].clone(), features[1].clone(), features[2].clone()];
    let error = contract_features(&cores, &wrong).unwrap_err();
    assert!(matches!(error, NetworksError::Chain { site: 0, .. }), "{error}");
}

#[test]
fn dense_cores_and_trains_are_chains() {
    let f = TensorTrain::<c64>::random(&Generator::new(1), &[2, 3, 2, 4], 5).unwrap();
    let state = f.to_mps().unwrap();
    let (vector, dense) = (state.to_vector().unwrap(), f.to_dense().unwrap().to_vec().unwrap());
    assert!(vector.iter().zip(&dense).all(|(a, b)| (a - b).norm() < 1e-14));
    let back = TensorTrain::<c64>::from_mps(&state).unwrap();
    assert!(back.distance(&f).unwrap() < 1e-12);
    let error = TensorTrain::<f64>::from_mps(&state).unwrap_err();
    assert!(matches!(error, NetworksError::Chain { .. }), "{error}");
    let f32s =
        TensorTrain::<f32>::random(&Generator::new(1), &[2, 3], 2).unwrap().to_mps().unwrap();
    assert_eq!(f32s.tensors()[0].re().dtype(), t4a_tensor::DType::F32);

    // A graded chain has the same amplitudes without charges, and operators commute with the conversion.
    let h = xxz(5, 1, 0.5);
    let graded = Mps::random(h.sites(), U1(1), 4, true, &Generator::new(9)).unwrap();
    let free: Mps<Trivial> = graded.without_charges().unwrap();
    let (a, b) = (graded.to_vector().unwrap(), free.to_vector().unwrap());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).norm() < 1e-14));
    let mpo = h.mpo().unwrap();
    let map = TrainOperator::<c64>::from_mpo(&mpo).unwrap();
    let image = map.apply(&TensorTrain::from_mps(&graded).unwrap()).unwrap();
    let exact = t4a_linalg::svd::Truncation::new();
    let want = graded.apply(&mpo, Method::Exact, exact).unwrap().to_vector().unwrap();
    let got = image.to_mps().unwrap().to_vector().unwrap();
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).norm() < 1e-12));
    let again = map.to_mpo().unwrap().without_charges().unwrap();
    assert!((again.inner(&again).unwrap() - mpo.inner(&mpo).unwrap()).norm() < 1e-12);
    let error = Mps::<Trivial>::from_cores([(check::array(&[2, 2], |_| 1.0), None)]).unwrap_err();
    assert!(matches!(error, NetworksError::Chain { site: 0, .. }), "{error}");
}
