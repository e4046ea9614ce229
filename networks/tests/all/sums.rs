//! Operator sums against dense matrices, and their bond dimensions against ranks.

use std::sync::Arc;

use t4a_algebra::c64;
use t4a_networks::lattice;
use t4a_networks::sites::{self, Site, Sites};
use t4a_networks::{Mpo, NetworksError, Sum};
use t4a_structured::{Sector, Trivial, U1, Z2};
use t4a_tensor::Tensor;
use t4a_tensor::random::{Generator, uniform};

use crate::dense::{Dense, dense_sum};

type Terms<'a> = Vec<(c64, Vec<(&'a str, usize)>)>;

fn sum<S: Sector>(sites: &Sites<S>, terms: &Terms) -> Sum<S> {
    let mut sum = Sum::new(sites);
    for (c, factors) in terms {
        sum.add(*c, factors.iter().copied());
    }
    sum
}

/// The rank of the operator between the first `cut` sites and the rest.
fn rank(dims: &[usize], matrix: &Dense, cut: usize) -> usize {
    let a: usize = dims[..cut].iter().product();
    let b: usize = dims[cut..].iter().product();
    let mut entries = vec![c64::ZERO; (a * b) * (a * b)];
    for (k, &x) in matrix.entries.iter().enumerate() {
        let (row, col) = (k / (a * b), k % (a * b));
        let (i, j) = (row / b * a + col / b, row % b * b + col % b);
        entries[i * b * b + j] = x;
    }
    let matrix = Tensor::from_vec(entries, &[a * a, b * b]).unwrap();
    let s = t4a_linalg::svd::svdvals(&matrix).unwrap().to_vec().unwrap();
    s.iter().filter(|&&x| x > 1e-11 * s[0]).count()
}

/// The operator is that of the dense matrices, and no bond is larger than the rank.
fn check<S: Sector>(sites: &Sites<S>, terms: &Terms, mpo: &Mpo<S>) {
    let dense = dense_sum(sites, terms);
    let error = dense.distance(&mpo.to_matrix().unwrap());
    assert!(error < 1e-12, "{error}");
    let dims: Vec<usize> = sites.iter().map(Site::dim).collect();
    for (i, &dim) in mpo.bond_dims().iter().enumerate() {
        assert_eq!(dim, rank(&dims, &dense, i + 1), "bond {i}: {terms:?}");
    }
}

/// Random products of operators that conserve the charge.
fn random_terms<'a, S: Sector>(
    sites: &Sites<S>,
    names: &[&'a str],
    count: usize,
    seed: u64,
) -> Terms<'a> {
    let generator = Generator::new(seed);
    let draw = |n: usize| {
        let x = uniform::<f64>(&generator, &[1], 0.0, n as f64).unwrap().to_vec().unwrap()[0];
        (x as usize).min(n - 1)
    };
    let mut terms = Vec::new();
    while terms.len() < count {
        let factors: Vec<(&str, usize)> =
            (0..1 + draw(4)).map(|_| (names[draw(names.len())], draw(sites.len()))).collect();
        let charge = factors
            .iter()
            .try_fold(S::TRIVIAL, |sum, (name, at)| sum.fuse(sites.get(*at)?.charge_of(name)?));
        let odd =
            factors.iter().filter(|(name, at)| sites.get(*at).unwrap().is_odd(name) == Some(true));
        if charge == Some(S::TRIVIAL) && odd.count() % 2 == 0 {
            let c = c64::new(0.25 * (1 + draw(7)) as f64, 0.5 * draw(3) as f64);
            terms.push((c, factors));
        }
    }
    terms
}

fn random<S: Sector>(sites: &Sites<S>, names: &[&str]) {
    for seed in 0..4 {
        let terms = random_terms(sites, names, 3 + 5 * seed as usize, seed);
        check(sites, &terms, &sum(sites, &terms).mpo().unwrap());
    }
}

#[test]
fn random_sums_of_spins_are_dense_matrices_of_the_smallest_rank() {
    random(&Sites::uniform(sites::spin_half(), 4), &["Sz", "S+", "S-", "Z", "ProjUp", "Id"]);
    random(&Sites::uniform(sites::spin(2).unwrap(), 3), &["Sz", "S+", "S-", "Sz2"]);
    let free = sites::spin_half().conserve(|_| Trivial).unwrap();
    random(&Sites::uniform(free, 4), &["Sx", "Sy", "Sz", "S+"]);
    let parity = sites::spin_half().conserve(|q: U1| Z2::new((i64::from(q.0) + 1) / 2)).unwrap();
    random(&Sites::uniform(parity, 4), &["Sx", "Sy", "Sz", "S-"]);
}

#[test]
fn random_sums_of_fermions_have_the_signs_of_their_order() {
    random(&Sites::uniform(sites::fermion(), 4), &["C", "Cdag", "N", "C", "Cdag"]);
    let names = ["Cup", "Cdagup", "Cdn", "Cdagdn", "Nup", "Ntot", "S+", "S-", "Nupdn"];
    random(&Sites::uniform(sites::electron(), 3), &names);
    let parity = sites::fermion().conserve(|q: U1| Z2::new(q.0.into())).unwrap();
    random(&Sites::uniform(parity, 5), &["C", "Cdag", "N"]);
    let free = sites::fermion().conserve(|_| Trivial).unwrap();
    random(&Sites::uniform(free, 5), &["C", "Cdag", "N"]);
}

#[test]
fn random_sums_of_bosons_clocks_and_mixed_chains() {
    random(&Sites::uniform(sites::boson(2).unwrap(), 3), &["B", "Bdag", "N"]);
    random(&Sites::uniform(sites::hard_core_boson(), 4), &["B", "Bdag", "N"]);
    random(
        &Sites::uniform(sites::clock::<3>().unwrap(), 3),
        &["Sigma", "SigmaDag", "Tau", "TauDag"],
    );
    // Fermions beside spins: strings run over fermions only.
    let spin = sites::spin_half().conserve(|q: U1| U1((q.0 + 1) / 2)).unwrap();
    let (fermion, spin) = (Arc::new(sites::fermion()), Arc::new(spin));
    let mixed = Sites::new([fermion.clone(), spin.clone(), fermion.clone(), spin, fermion]);
    let terms: Terms = vec![
        (c64::new(0.5, 0.25), vec![("Cdag", 4), ("C", 0)]),
        (1.0.into(), vec![("Cdag", 4), ("C", 2)]),
        (2.0.into(), vec![("Cdag", 0), ("S+", 1), ("S-", 3), ("C", 2)]),
        (0.75.into(), vec![("Cdag", 2), ("C", 2), ("Sz", 3)]),
    ];
    check(&mixed, &terms, &sum(&mixed, &terms).mpo().unwrap());
}

#[test]
fn user_defined_fermions() {
    // Three states: vacuum, one fermion, a boson of two fermions.
    let site = Site::new("trion", [("pair", U1(2)), ("vacuum", U1(0)), ("one", U1(1))])
        .unwrap()
        .with_odd_states(["one"])
        .unwrap();
    assert_eq!(site.states().map(|(name, _)| name).collect::<Vec<_>>(), ["vacuum", "one", "pair"]);
    let site = site
        .with_operator("C", &[0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0])
        .unwrap()
        .with_operator("D", &[0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 2.0, 0.0])
        .unwrap();
    assert_eq!(site.is_odd("C"), Some(true));
    random(&Sites::uniform(site, 3), &["C", "D"]);
}

#[test]
fn terms_that_cancel_may_violate_the_charge() {
    let sites = Sites::uniform(sites::spin_half(), 4);
    let mut terms: Terms = Vec::new();
    for i in 0..3 {
        for name in ["Sx", "Sy", "Sz"] {
            terms.push((1.0.into(), vec![(name, i), (name, i + 1)]));
        }
    }
    let mpo = sum(&sites, &terms).mpo().unwrap();
    assert!(mpo.tensors()[1].im().is_none());
    check(&sites, &terms, &mpo);
    terms.pop();
    terms.pop();
    let error = sum(&sites, &terms).mpo().unwrap_err();
    assert!(matches!(error, NetworksError::Charge { .. }), "{error}");
}

#[test]
fn known_bond_dimensions() {
    let sites = Sites::uniform(sites::spin_half(), 30);
    let mut h = Sum::new(&sites);
    for i in 0..29 {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]).add(1.0, [("Sz", i), ("Sz", i + 1)]);
    }
    let ends = |dim: usize, n: usize| [vec![dim - 1], vec![dim; n - 3], vec![dim - 1]].concat();
    // No term is complete before the first bond, none begins behind the last.
    assert_eq!(h.mpo().unwrap().bond_dims(), ends(5, 30));
    // One state per exponential.
    let mut h = Sum::new(&sites);
    h.add_exponential(1.0, 0.5, ["Sz", "Sz"]).add_exponential(-0.3, 0.8, ["Sz", "Sz"]);
    let dims = h.mpo().unwrap().bond_dims();
    assert_eq!((dims[0], dims[1], dims[15]), (2, 4, 4), "{dims:?}");
    // Hubbard: four hoppings, two ends; the interaction is of one site.
    let sites = Sites::uniform(sites::electron(), 12);
    let mut h = Sum::new(&sites);
    for i in 0..12 {
        h.add(4.0, [("Nup", i), ("Ndn", i)]);
        if i < 11 {
            h.add_with_adjoint(-1.0, [("Cdagup", i), ("Cup", i + 1)]);
            h.add_with_adjoint(-1.0, [("Cdagdn", i), ("Cdn", i + 1)]);
        }
    }
    assert_eq!(h.mpo().unwrap().bond_dims(), [6; 11]);
    // Quadratic hoppings between all pairs: 2 k + 2 with k > 1 the smaller side.
    let sites = Sites::uniform(sites::fermion(), 10);
    let mut h = Sum::new(&sites);
    for i in 0..10 {
        for j in i + 1..10 {
            h.add_with_adjoint(
                1.0 / (1.0 + (i * j) as f64 + (j as f64).sin()),
                [("Cdag", i), ("C", j)],
            );
        }
    }
    let dims = h.mpo().unwrap().bond_dims();
    assert_eq!(dims, [3, 6, 8, 10, 12, 10, 8, 6, 3]);
}

#[test]
fn lattices_have_the_neighbours_of_their_sites() {
    let degrees = |lattice: &lattice::Lattice| {
        let mut degrees = vec![0; lattice.sites()];
        lattice.bonds().iter().for_each(|&(a, b)| {
            degrees[a] += 1;
            degrees[b] += 1;
        });
        degrees
    };
    let inner = |lattice: &lattice::Lattice, rows: usize| {
        let degrees = degrees(lattice);
        degrees[rows..degrees.len() - rows].to_vec()
    };
    assert_eq!(inner(&lattice::square(4, 4, true).unwrap(), 4), [4; 8]);
    assert_eq!(inner(&lattice::triangular(4, 4, true).unwrap(), 4), [6; 8]);
    assert_eq!(inner(&lattice::honeycomb(4, 4, true).unwrap(), 4), [3; 8]);
    assert_eq!(lattice::square(3, 3, false).unwrap().bonds().len(), 12);
    assert_eq!(lattice::triangular(3, 3, false).unwrap().bonds().len(), 16);
    // Neighbours are at distance 1 in the plane.
    for lattice in [
        lattice::square(3, 3, false).unwrap(),
        lattice::triangular(3, 3, false).unwrap(),
        lattice::honeycomb(3, 4, false).unwrap(),
    ] {
        for &(a, b) in lattice.bonds() {
            let ([x, y], [u, v]) = (lattice.position(a).unwrap(), lattice.position(b).unwrap());
            assert!((f64::hypot(x - u, y - v) - 1.0).abs() < 1e-12, "{a} {b}");
        }
    }
    assert!(lattice::honeycomb(3, 3, true).is_err() && lattice::square(0, 3, false).is_err());
}

#[test]
fn rejected_terms() {
    let sites = Sites::uniform(sites::spin_half(), 3);
    let error = |sum: &Sum<U1>| sum.mpo().unwrap_err();
    let e = error(Sum::new(&sites).add(1.0, [("Sq", 0)]));
    assert!(
        matches!(&e, NetworksError::UnknownOperator { operator, .. } if operator == "Sq"),
        "{e}"
    );
    let e = error(Sum::new(&sites).add(1.0, [("Sz", 3)]));
    assert!(matches!(e, NetworksError::SiteOutOfRange { site: 3, sites: 3, .. }), "{e}");
    let e = error(Sum::new(&sites).add(1.0, [("S+", 0)]));
    assert!(matches!(e, NetworksError::Charge { .. }), "{e}");
    let e = error(Sum::new(&sites).add(f64::NAN, [("Sz", 0)]));
    assert!(matches!(e, NetworksError::Argument { .. }), "{e}");
    let none = Sites::uniform(sites::spin_half(), 0);
    assert!(matches!(error(&Sum::new(&none)), NetworksError::Argument { .. }));
    let fermions = Sites::uniform(sites::fermion().conserve(|_| Trivial).unwrap(), 3);
    let e = Sum::new(&fermions).add(1.0, [("C", 0)]).mpo().unwrap_err();
    assert!(matches!(e, NetworksError::Parity { given: "odd", .. }), "{e}");
    // A charge that is stated is allowed, and is the operator's.
    let mut raise = Sum::new(&sites);
    raise.with_charge(U1(2)).add(1.0, [("S+", 1)]).add(2.0, [("S+", 2), ("Sz", 0)]);
    let terms: Terms =
        vec![(1.0.into(), vec![("S+", 1)]), (2.0.into(), vec![("S+", 2), ("Sz", 0)])];
    let mpo = raise.mpo().unwrap();
    assert_eq!(mpo.charge(), U1(2));
    check(&sites, &terms, &mpo);
    // Zero.
    let zero = Sum::new(&sites).add(1.0, [("Sz", 0)]).add(-1.0, [("Sz", 0)]).mpo().unwrap();
    assert!(zero.to_matrix().unwrap().iter().all(|x| x.norm() == 0.0));
}

#[test]
fn rejected_sites() {
    let fermionic = Site::new("fermion", [("0", t4a_structured::FermionNumber(0))]);
    assert!(matches!(fermionic.unwrap_err(), NetworksError::FermionicSector { .. }));
    let twice = Site::new("spin", [("a", U1(0)), ("a", U1(1))]);
    assert!(matches!(twice.unwrap_err(), NetworksError::Definition { .. }));
    let site = || Site::new("spin", [("a", U1(0)), ("b", U1(1))]).unwrap();
    assert!(site().with_operator("X", &[1.0]).is_err());
    assert!(site().with_operator("X", &[f64::NAN, 0.0, 0.0, 0.0]).is_err());
    assert!(site().with_operator("Id", &[1.0, 0.0, 0.0, 1.0]).is_err());
    assert!(site().with_odd_states(["c"]).is_err());
    let odd = site().with_odd_states(["b"]).unwrap();
    assert!(odd.with_operator("X", &[1.0, 1.0, 0.0, 1.0]).is_err());
    assert!(sites::spin(0).is_err() && sites::boson(0).is_err() && sites::clock::<1>().is_err());
}
