//! States against dense vectors.

use t4a_algebra::c64;
use t4a_linalg::svd::Truncation;
use t4a_networks::sites::{self, Sites};
use t4a_networks::{Method, Mps, NetworksError, Sum};
use t4a_structured::{Product, Sector, U1};
use t4a_tensor::random::Generator;

use crate::dense::{Dense, embedded};
use crate::models::{hubbard, t_v, xxz};

fn random<S: Sector>(h: &Sum<S>, charge: S, dim: usize, complex: bool, seed: u64) -> Mps<S> {
    Mps::random(h.sites(), charge, dim, complex, &Generator::new(seed)).unwrap()
}

fn inner(x: &[c64], y: &[c64]) -> c64 {
    x.iter().zip(y).map(|(a, b)| a.conj() * b).sum()
}

fn apply(h: &Dense, x: &[c64]) -> Vec<c64> {
    (0..h.n).map(|i| (0..h.n).map(|j| h.entries[i * h.n + j] * x[j]).sum()).collect()
}

fn distance(x: &[c64], y: &[c64]) -> f64 {
    x.iter().zip(y).map(|(a, b)| (a - b).norm_sqr()).sum::<f64>().sqrt()
}

#[test]
fn canonical_forms_keep_the_state() {
    let h = xxz(7, 1, 1.0);
    let state = random(&h, U1(1), 6, true, 1);
    assert!(state.max_bond_dim() <= 6 && state.charge() == U1(1));
    let x = state.to_vector().unwrap();
    assert!((inner(&x, &x).re - 1.0).abs() < 1e-13);
    for center in [6, 0, 3, 4] {
        let mut moved = state.clone();
        moved.orthogonalise(3).unwrap();
        moved.orthogonalise(center).unwrap();
        assert!(distance(&moved.to_vector().unwrap(), &x) < 1e-13);
        // Isometries on both sides: the norm is that of the centre.
        let without = Mps::new(moved.tensors().to_vec()).unwrap();
        assert!((without.norm().unwrap() - moved.norm().unwrap()).abs() < 1e-13);
        for (i, a) in moved.tensors().iter().enumerate() {
            let bra = a.conj().unwrap();
            let axes: &[usize] = if i < center { &[0, 1] } else { &[1, 2] };
            if i == center {
                continue;
            }
            let product = bra.contract(a, axes, axes).unwrap().to_dense().unwrap().0;
            use t4a_diff::Array;
            let n = product.shape()[0];
            let entries = product.elements().unwrap().typed::<f64>().unwrap().to_vec().unwrap();
            let identity = |k: usize| if k / n == k % n { 1.0 } else { 0.0 };
            assert!(entries.iter().enumerate().all(|(k, x)| (x - identity(k)).abs() < 1e-13));
        }
    }
}

#[test]
fn sums_multiples_and_overlaps_are_those_of_vectors() {
    let h = t_v(3, 2, 1.0);
    let (a, b) = (random(&h, U1(3), 5, true, 1), random(&h, U1(3), 4, false, 2));
    let (x, y) = (a.to_vector().unwrap(), b.to_vector().unwrap());
    assert!((a.inner(&b).unwrap() - inner(&x, &y)).norm() < 1e-13);
    let c = c64::new(0.3, -0.8);
    let sum = a.scale_complex(c).add(&b.scale(2.0)).unwrap();
    let expected: Vec<c64> = x.iter().zip(&y).map(|(x, y)| c * x + y * 2.0).collect();
    assert!(distance(&sum.to_vector().unwrap(), &expected) < 1e-13);
    let mut same = a.add(&a).unwrap();
    assert!(same.truncate(Truncation::new().relative_cutoff(1e-10)).unwrap() < 1e-20);
    assert_eq!(same.bond_dims(), a.bond_dims());
    assert!((same.norm().unwrap() - 2.0).abs() < 1e-12);
    let other = random(&h, U1(2), 4, false, 2);
    assert_eq!(a.inner(&other).unwrap(), c64::ZERO);
    assert!(matches!(a.add(&other).unwrap_err(), NetworksError::Charge { .. }));
}

#[test]
fn truncation_reports_what_it_drops() {
    let h = xxz(8, 1, 1.0);
    let state = random(&h, U1(0), 16, false, 9);
    let mut cut = state.clone();
    let dropped = cut.truncate(Truncation::new().max_dim(4)).unwrap();
    assert_eq!(cut.max_bond_dim(), 4);
    // The sum of the squares is the square of the distance, each truncation being orthogonal to the rest.
    let distance = distance(&cut.to_vector().unwrap(), &state.to_vector().unwrap());
    assert!((distance * distance - dropped).abs() < 1e-12, "{dropped} {distance}");
}

#[test]
fn operators_on_states_are_products_with_vectors() {
    let h = hubbard(4, 3.0);
    let mpo = h.mpo().unwrap();
    let state = random(&h, Product(U1(4), U1(0)), 8, false, 3);
    let x = state.to_vector().unwrap();
    let dense = Dense { n: x.len(), entries: mpo.to_matrix().unwrap() };
    let y = apply(&dense, &x);
    for method in [Method::Exact, Method::ZipUp, Method::Variational] {
        let product = state.apply(&mpo, method, Truncation::new().relative_cutoff(1e-14)).unwrap();
        assert!(distance(&product.to_vector().unwrap(), &y) < 1e-10, "{method:?}");
    }
    // Bonds too small for the product: the sweeps are at least as close as the zip-up.
    let near = |method| {
        let product = state.apply(&mpo, method, Truncation::new().max_dim(6)).unwrap();
        assert!(product.max_bond_dim() <= 6);
        distance(&product.to_vector().unwrap(), &y)
    };
    let (zip, fit) = (near(Method::ZipUp), near(Method::Variational));
    assert!(fit <= zip * (1.0 + 1e-9) && fit > 1e-3, "{zip} {fit}");
    // The density matrix truncates as the exact product does.
    let (exact, density) = (near(Method::Exact), near(Method::DensityMatrix));
    assert!((density / exact - 1.0).abs() < 1e-6, "{exact} {density}");
    let value = state.expectation(&mpo).unwrap();
    assert!((value - inner(&x, &y)).norm() < 1e-12);
    // A fermion less.
    let mut annihilate = Sum::new(h.sites());
    let annihilate =
        annihilate.with_charge(Product(U1(-1), U1(-1))).add(1.0, [("Cup", 2)]).mpo().unwrap();
    let y = apply(&embedded(h.sites(), "Cup", 2), &x);
    for method in [Method::Exact, Method::DensityMatrix] {
        let less = state.apply(&annihilate, method, Truncation::new()).unwrap();
        assert_eq!(less.charge(), Product(U1(3), U1(-1)));
        assert!(distance(&less.to_vector().unwrap(), &y) < 1e-12);
    }
    assert!(matches!(
        state.apply(&xxz_electrons(), Method::Exact, Truncation::new()),
        Err(NetworksError::Length { .. })
    ));
}

#[test]
fn density_matrices_give_the_truncated_product() {
    // A complex state, and a policy by discarded weight: the squares of what bonds drop sum to that of the distance.
    let h = xxz(8, 1, 1.0);
    let mut hop = Sum::new(h.sites());
    hop.add(c64::new(0.5, 1.0), [("S+", 1), ("S-", 6)]).add(2.0, [("Sz", 3), ("Sz", 4)]);
    let mpo = hop.mpo().unwrap();
    let state = random(&h, U1(0), 6, true, 4);
    let x = state.to_vector().unwrap();
    let y = apply(&Dense { n: x.len(), entries: mpo.to_matrix().unwrap() }, &x);
    let norm = inner(&y, &y).re.sqrt();
    let by = |policy: Truncation| {
        let product = state.apply(&mpo, Method::DensityMatrix, policy).unwrap();
        assert_eq!(product.center(), Some(0));
        assert!(
            (product.norm().unwrap() - product.inner(&product).unwrap().re.sqrt()).abs() < 1e-12
        );
        (distance(&product.to_vector().unwrap(), &y) / norm, product.max_bond_dim())
    };
    let (error, dim) = by(Truncation::new().relative_cutoff(1e-7));
    assert!(error < 1e-6 && dim <= 16, "{error} {dim}");
    let (error, cut) = by(Truncation::new().relative_discarded_weight(1e-2));
    // At most 7 bonds drop a hundredth of the squares each.
    assert!(error > 0.02 && error < 0.07f64.sqrt() && cut < dim, "{error} {cut}");
    let one = Sites::uniform(sites::spin_half(), 1);
    let up = Mps::product(&one, ["Up"]).unwrap();
    let mut z = Sum::new(&one);
    z.add(3.0, [("Sz", 0)]);
    let z = up.apply(&z.mpo().unwrap(), Method::DensityMatrix, Truncation::new()).unwrap();
    assert!((up.inner(&z).unwrap() - c64::new(1.5, 0.0)).norm() < 1e-14);
}

fn xxz_electrons() -> t4a_networks::Mpo<Product<U1, U1>> {
    hubbard(3, 1.0).mpo().unwrap()
}

#[test]
fn operators_add_and_have_adjoints() {
    let h = xxz(4, 1, 1.0);
    let mut one_way = Sum::new(h.sites());
    one_way.add(c64::new(0.5, 1.0), [("S+", 0), ("S-", 2)]);
    let (a, b) = (h.mpo().unwrap(), one_way.mpo().unwrap());
    let dense = |m: &t4a_networks::Mpo<U1>| Dense { n: 16, entries: m.to_matrix().unwrap() };
    let mut sum = dense(&a);
    sum.add(c64::new(2.0, 0.0), &dense(&b));
    assert!(sum.distance(&a.add(&b.scale(2.0)).unwrap().to_matrix().unwrap()) < 1e-14);
    let adjoint = dense(&b).adjoint();
    assert!(adjoint.distance(&b.adjoint().unwrap().to_matrix().unwrap()) < 1e-14);
    let trace = |x: &Dense, y: &Dense| inner(&x.entries, &y.entries) / 16.0;
    assert!((a.inner(&b).unwrap() - trace(&dense(&a), &dense(&b))).norm() < 1e-14);
    assert!((b.inner(&b).unwrap() - trace(&dense(&b), &dense(&b))).norm() < 1e-14);
}

#[test]
fn products_and_truncations_of_operators() {
    let h = t_v(2, 2, 1.5);
    let mpo = h.mpo().unwrap();
    let mut hop = Sum::new(h.sites());
    hop.add(c64::new(0.5, 1.0), [("Cdag", 0), ("C", 2)]).add(2.0, [("N", 3)]);
    let hop = hop.mpo().unwrap();
    let dense = |m: &t4a_networks::Mpo<U1>| Dense { n: 16, entries: m.to_matrix().unwrap() };
    let product = mpo.mul(&hop).unwrap();
    let exact = dense(&mpo).mul(&dense(&hop));
    assert!(exact.distance(&product.to_matrix().unwrap()) < 1e-13);
    let mut square = mpo.mul(&mpo).unwrap();
    let before = square.bond_dims();
    square.truncate(Truncation::new().relative_cutoff(1e-12)).unwrap();
    let exact = dense(&mpo).mul(&dense(&mpo));
    assert!(exact.distance(&square.to_matrix().unwrap()) < 1e-12);
    assert!(square.bond_dims().iter().zip(&before).all(|(a, b)| a < b), "{before:?}");
    // The dropped squares are the square of the Frobenius norm of the difference.
    let mut cut = square.clone();
    let dropped = cut.truncate(Truncation::new().max_dim(3)).unwrap();
    let mut difference = exact.clone();
    difference.add(c64::new(-1.0, 0.0), &dense(&cut));
    let norm: f64 = difference.entries.iter().map(|x| x.norm_sqr()).sum();
    assert!((norm - dropped).abs() < 1e-10 * norm && norm > 0.1, "{norm} {dropped}");
    // The variance.
    let state = random(&h, U1(2), 4, true, 3).scale(2.0);
    let x = state.to_vector().unwrap();
    let y = apply(&dense(&mpo), &x);
    let (n, mean) = (inner(&x, &x).re, inner(&x, &y).re);
    let variance = inner(&y, &y).re / n - mean * mean / (n * n);
    assert!((state.variance(&mpo).unwrap() - variance).abs() < 1e-12);
}

#[test]
fn expectation_values_and_correlations() {
    let h = t_v(3, 2, 1.0);
    let sites = h.sites();
    let state = random(&h, U1(3), 6, true, 5).scale(3.0);
    let x = state.to_vector().unwrap();
    let norm = inner(&x, &x).re;
    let value = |m: &Dense| inner(&x, &apply(m, &x)) / norm;
    for (i, n) in state.expect(sites, "N").unwrap().into_iter().enumerate() {
        assert!((n - value(&embedded(sites, "N", i))).norm() < 1e-12);
    }
    for (a, b) in [("Cdag", "C"), ("C", "Cdag"), ("N", "N"), ("N", "F")] {
        let all = state.correlation(sites, a, b).unwrap();
        for i in 0..6 {
            for j in 0..6 {
                let exact = value(&embedded(sites, a, i).mul(&embedded(sites, b, j)));
                assert!(
                    (all[i][j] - exact).norm() < 1e-12,
                    "{a}({i}) {b}({j}): {} {exact}",
                    all[i][j]
                );
            }
        }
    }
    let mut string = Sum::new(sites);
    string.add(2.0, [("Cdag", 4), ("N", 2), ("C", 1)]);
    let product = [("Cdag", 4), ("N", 2), ("C", 1)]
        .iter()
        .fold(Dense::identity(x.len()), |m, (name, i)| m.mul(&embedded(sites, name, *i)));
    assert!((state.expect_sum(&string).unwrap() - value(&product) * 2.0).norm() < 1e-12);
    assert!(matches!(state.expect(sites, "Q").unwrap_err(), NetworksError::UnknownOperator { .. }));
    assert!(matches!(state.expect(sites, "C").unwrap_err(), NetworksError::Parity { .. }));
    assert!(matches!(
        state.correlation(sites, "C", "N").unwrap_err(),
        NetworksError::Parity { .. }
    ));
}

#[test]
fn entropies_of_singlets() {
    // Two singlets: ln 2 between their spins, 0 between the pairs.
    let sites = Sites::uniform(sites::spin_half(), 4);
    let state = |names: [&str; 4]| Mps::product(&sites, names).unwrap();
    let pair = |a: [&str; 4], b: [&str; 4]| state(a).add(&state(b).scale(-1.0)).unwrap();
    let left = pair(["Up", "Dn", "Up", "Dn"], ["Dn", "Up", "Up", "Dn"]);
    let right = pair(["Up", "Dn", "Dn", "Up"], ["Dn", "Up", "Dn", "Up"]);
    let mut singlets = left.add(&right.scale(-1.0)).unwrap();
    singlets.normalise().unwrap();
    let entropies = singlets.entropies().unwrap();
    for (entropy, exact) in entropies.iter().zip([2f64.ln(), 0.0, 2f64.ln()]) {
        assert!((entropy - exact).abs() < 1e-12, "{entropies:?}");
    }
    let spectrum = singlets.entanglement_spectrum(0).unwrap();
    assert_eq!(spectrum.len(), 2);
    assert!(spectrum.iter().all(|(_, p)| (p[0] - 0.5).abs() < 1e-12));
}

#[test]
fn samples_have_the_probabilities_of_the_state() {
    let h = t_v(2, 2, 1.0);
    let state = random(&h, U1(2), 4, true, 8).scale(0.5);
    let x = state.to_vector().unwrap();
    let norm = inner(&x, &x).re;
    let count = 2000;
    let mut counts = [0usize; 16];
    for sample in state.sample(count, &Generator::new(11)).unwrap() {
        assert_eq!(sample.iter().sum::<usize>(), 2);
        counts[sample.iter().fold(0, |sum, bit| 2 * sum + bit)] += 1;
    }
    for (k, &n) in counts.iter().enumerate() {
        let p = x[k].norm_sqr() / norm;
        let deviation = (p * (1.0 - p) / count as f64).sqrt();
        assert!((n as f64 / count as f64 - p).abs() <= 5.0 * deviation, "{k}: {n}, {p}");
    }
}

#[test]
fn rejected_states() {
    let sites = Sites::uniform(sites::spin_half(), 4);
    let generator = Generator::new(1);
    let e = Mps::random(&sites, U1(6), 4, false, &generator).unwrap_err();
    assert!(matches!(e, NetworksError::Charge { .. }), "{e}");
    let e = Mps::random(&sites, U1(0), 0, false, &generator).unwrap_err();
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
    let e = Mps::product(&sites, ["Up", "Left", "Up", "Up"]).unwrap_err();
    assert!(matches!(e, NetworksError::UnknownState { site: 1, .. }), "{e}");
    let e = Mps::product(&sites, ["Up"]).unwrap_err();
    assert!(matches!(e, NetworksError::Length { required: 4, given: 1, .. }), "{e}");
    // With one state per bond and a random sector there is a state.
    for seed in 0..5 {
        let state = Mps::random(&sites, U1(2), 1, false, &Generator::new(seed)).unwrap();
        assert_eq!(state.max_bond_dim(), 1);
        assert!((state.norm().unwrap() - 1.0).abs() < 1e-14);
    }
    let mut state = Mps::random(&sites, U1(0), 4, false, &generator).unwrap();
    assert!(matches!(state.orthogonalise(4).unwrap_err(), NetworksError::SiteOutOfRange { .. }));
    assert!(matches!(state.scale(0.0).normalise().unwrap_err(), NetworksError::Norm { .. }));
    let reversed = state.tensors().iter().rev().cloned().collect();
    assert!(matches!(Mps::new(reversed).unwrap_err(), NetworksError::Chain { .. }));
    assert!(matches!(Mps::<U1>::new(Vec::new()).unwrap_err(), NetworksError::Length { .. }));
}
