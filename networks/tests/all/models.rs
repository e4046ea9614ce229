//! Models of the tests.

use t4a_networks::sites::{self, Sites};
use t4a_networks::{Mps, Sum, lattice};
use t4a_structured::{Product, U1, Z2};

/// `Σ ½(S⁺S⁻ + S⁻S⁺) + Δ SᶻSᶻ` of spins `twice / 2`.
pub(crate) fn xxz(n: usize, twice: usize, delta: f64) -> Sum<U1> {
    let site = if twice == 1 { sites::spin_half() } else { sites::spin(twice).unwrap() };
    let mut h = Sum::new(&Sites::uniform(site, n));
    for i in 0..n - 1 {
        h.add_with_adjoint(0.5, [("S+", i), ("S-", i + 1)]);
        h.add(delta, [("Sz", i), ("Sz", i + 1)]);
    }
    h
}

/// `−Σ XX − Σ Z`, critical, by the parity of up spins.
pub(crate) fn ising(n: usize) -> Sum<Z2> {
    let site = sites::spin_half().conserve(|q: U1| Z2::new((i64::from(q.0) + 1) / 2)).unwrap();
    let mut h = Sum::new(&Sites::uniform(site, n));
    for i in 0..n {
        h.add(-1.0, [("Z", i)]);
        if i + 1 < n {
            h.add(-1.0, [("X", i), ("X", i + 1)]);
        }
    }
    h
}

/// The Hubbard chain at t = 1.
pub(crate) fn hubbard(n: usize, u: f64) -> Sum<Product<U1, U1>> {
    let mut h = Sum::new(&Sites::uniform(sites::electron(), n));
    for i in 0..n {
        h.add(u, [("Nupdn", i)]);
        if i + 1 < n {
            h.add_with_adjoint(-1.0, [("Cdagup", i), ("Cup", i + 1)]);
            h.add_with_adjoint(-1.0, [("Cdagdn", i), ("Cdn", i + 1)]);
        }
    }
    h
}

/// Spinless fermions with a repulsion of neighbours on a square lattice at t = 1.
pub(crate) fn t_v(columns: usize, rows: usize, v: f64) -> Sum<U1> {
    let lattice = lattice::square(columns, rows, false).unwrap();
    let mut h = Sum::new(&Sites::uniform(sites::fermion(), lattice.sites()));
    for &(i, j) in lattice.bonds() {
        h.add_with_adjoint(-1.0, [("Cdag", i), ("C", j)]);
        h.add(v, [("N", i), ("N", j)]);
    }
    h
}

/// A product state of names in turn.
pub(crate) fn product<S: t4a_structured::Sector>(h: &Sum<S>, names: &[&str]) -> Mps<S> {
    let n = h.sites().len();
    Mps::product(h.sites(), names.iter().copied().cycle().take(n)).unwrap()
}
