//! Fermions and bosons by their numbers.

use t4a_algebra::c64;
use t4a_structured::{Product, U1};

use super::spin::built;
use super::{LocalMatrix, Site};
use crate::error::{NetworksError, Result};

/// Spinless fermions: states `Emp`, `Occ` of charge n; operators `C Cdag N F`, where `C` and `Cdag` are odd.
pub fn fermion() -> Site<U1> {
    let made = || {
        let site =
            Site::new("fermion", [("Emp", U1(0)), ("Occ", U1(1))])?.with_odd_states(["Occ"])?;
        site.with_operator("C", &[0.0, 1.0, 0.0, 0.0])?
            .with_operator("Cdag", &[0.0, 0.0, 1.0, 0.0])?
            .with_operator("N", &[0.0, 0.0, 0.0, 1.0])
    };
    built(made())
}

/// Fermions with spin ½: states `Emp`, `Dn`, `Up`, `UpDn` of charges (n, 2 Sᶻ), where `UpDn` is
/// `c†↑ c†↓` of the vacuum; operators `Cup Cdagup Cdn Cdagdn` (odd), `Nup Ndn Ntot Nupdn Sz S+ S- F`.
///
/// ```
/// use t4a_networks::Mps;
/// use t4a_networks::sites::{Sites, electron};
///
/// let sites = Sites::uniform(electron(), 2);
/// let state = Mps::product(&sites, ["UpDn", "Dn"])?;
/// let n: Vec<f64> = state.expect(&sites, "Ntot")?.iter().map(|x| x.re).collect();
/// assert_eq!(n, [2.0, 1.0]);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
pub fn electron() -> Site<Product<U1, U1>> {
    let made = || {
        let charge = |n, m| Product(U1(n), U1(m));
        let states = [
            ("Emp", charge(0, 0)),
            ("Dn", charge(1, -1)),
            ("Up", charge(1, 1)),
            ("UpDn", charge(2, 0)),
        ];
        let site = Site::new("electron", states)?.with_odd_states(["Dn", "Up"])?;
        let [emp, dn, up, both] = [0, 1, 2, 3];
        let matrix = |entries: &[(usize, usize, f64)]| {
            let mut out = LocalMatrix::zeros(4);
            entries.iter().for_each(|&(i, j, x)| out.entries[i * 4 + j] = x.into());
            out
        };
        // The operator of spin ↓ passes the one of spin ↑.
        let c_up = matrix(&[(emp, up, 1.0), (dn, both, 1.0)]);
        let c_dn = matrix(&[(emp, dn, 1.0), (up, both, -1.0)]);
        let (d_up, d_dn) = (c_up.adjoint(), c_dn.adjoint());
        let (n_up, n_dn) = (d_up.mul(&c_up), d_dn.mul(&c_dn));
        let sz = n_up.add(&n_dn.scale((-1.0).into())).scale(0.5.into());
        let all = [
            ("Nupdn", n_up.mul(&n_dn)),
            ("Ntot", n_up.add(&n_dn)),
            ("Nup", n_up),
            ("Ndn", n_dn),
            ("Sz", sz),
            ("S+", d_up.mul(&c_dn)),
            ("S-", d_dn.mul(&c_up)),
            ("Cup", c_up),
            ("Cdn", c_dn),
            ("Cdagup", d_up),
            ("Cdagdn", d_dn),
        ];
        all.into_iter().try_fold(site, |site, (name, x)| site.with_matrix(name, x))
    };
    built(made())
}

/// Bosons of which a site has at most `most`: states `0`, `1`, … of charge n; operators `B Bdag N`.
///
/// # Errors
/// `Argument` for no boson at all and more than 1000.
pub fn boson(most: usize) -> Result<Site<U1>> {
    if !(1..=1000).contains(&most) {
        let (op, name, given) = ("boson", "the largest number", most.to_string());
        return Err(NetworksError::Argument { op, name, given, required: "1 to 1000" });
    }
    let names: Vec<String> = (0..=most).map(|k| k.to_string()).collect();
    let states = names.iter().enumerate().map(|(k, name)| (&name[..], U1(k as i32)));
    let mut lower = LocalMatrix::zeros(most + 1);
    for k in 1..=most {
        lower.entries[(k - 1) * (most + 1) + k] = (k as f64).sqrt().into();
    }
    let number: Vec<c64> = (0..=most).map(|k| (k as f64).into()).collect();
    Site::new("boson", states)?
        .with_matrix("Bdag", lower.adjoint())?
        .with_matrix("B", lower)?
        .with_matrix("N", LocalMatrix::diagonal(&number))
}

/// Bosons of which a site has one at most.
pub fn hard_core_boson() -> Site<U1> {
    built(boson(1))
}
