//! Spins by twice their magnetisation.

use t4a_algebra::c64;
use t4a_structured::U1;

use super::{LocalMatrix, Site};
use crate::error::{NetworksError, Result};

/// Spin ½: states `Dn`, `Up` of charge 2 Sᶻ; operators of [`spin`], the Pauli matrices `X`, `Y`, `Z` and the
/// projectors `ProjDn`, `ProjUp`.
///
/// ```
/// use t4a_networks::Mps;
/// use t4a_networks::sites::{Sites, spin, spin_half};
///
/// let sites = Sites::uniform(spin_half(), 2);
/// let state = Mps::product(&sites, ["Up", "Dn"])?;
/// let sz: Vec<f64> = state.expect(&sites, "Sz")?.iter().map(|x| x.re).collect();
/// assert_eq!(sz, [0.5, -0.5]);
/// // Spin 1 has three states.
/// let state = Mps::product(&Sites::uniform(spin(2)?, 1), ["1"])?;
/// assert_eq!(state.expect(&Sites::uniform(spin(2)?, 1), "Sz")?[0].re, 1.0);
/// # Ok::<(), t4a_networks::NetworksError>(())
/// ```
pub fn spin_half() -> Site<U1> {
    let made = || {
        let [one, half] = [1.0, 2.0].map(c64::from);
        let site = operators(Site::new("spin 1/2", [("Dn", U1(-1)), ("Up", U1(1))])?, 1)?;
        site.with("X", |site| site.own("Sx").scale(half))?
            .with("Y", |site| site.own("Sy").scale(half))?
            .with("Z", |site| site.own("Sz").scale(half))?
            .with("ProjDn", |_| LocalMatrix::diagonal(&[one, c64::ZERO]))?
            .with("ProjUp", |_| LocalMatrix::diagonal(&[c64::ZERO, one]))
    };
    built(made())
}

/// Spin S = `twice / 2`: states named by their magnetisation, `-1`, `0`, `1` or `-3/2`, …, of charge 2 Sᶻ;
/// operators `Sz S+ S- Sx Sy Sz2 Sx2 Sy2`.
///
/// # Errors
/// `Argument` for S = 0 and beyond 2 S = 1000.
pub fn spin(twice: usize) -> Result<Site<U1>> {
    if !(1..=1000).contains(&twice) {
        let (op, name, given) = ("spin", "twice the spin", twice.to_string());
        return Err(NetworksError::Argument { op, name, given, required: "1 to 1000" });
    }
    let charges: Vec<i32> = (0..=twice as i32).map(|k| 2 * k - twice as i32).collect();
    let name = |&m: &i32| match m % 2 {
        0 => (m / 2).to_string(),
        _ => format!("{m}/2"),
    };
    let names: Vec<String> = charges.iter().map(name).collect();
    let states = names.iter().zip(&charges).map(|(name, &m)| (&name[..], U1(m)));
    let kind = if twice.is_multiple_of(2) {
        format!("spin {}", twice / 2)
    } else {
        format!("spin {twice}/2")
    };
    operators(Site::new(&kind, states)?, twice)
}

/// The operators of a spin whose states ascend in magnetisation.
fn operators(site: Site<U1>, twice: usize) -> Result<Site<U1>> {
    let (n, s) = (twice + 1, twice as f64 / 2.0);
    let m = |k: usize| k as f64 - s;
    let mut up = LocalMatrix::zeros(n);
    for k in 0..twice {
        up.entries[(k + 1) * n + k] = (s * (s + 1.0) - m(k) * m(k + 1)).sqrt().into();
    }
    let down = up.adjoint();
    let sz = LocalMatrix::diagonal(&(0..n).map(|k| m(k).into()).collect::<Vec<_>>());
    let sx = up.add(&down).scale(0.5.into());
    let sy = up.add(&down.scale((-1.0).into())).scale(c64::new(0.0, -0.5));
    let squares = [("Sz2", sz.mul(&sz)), ("Sx2", sx.mul(&sx)), ("Sy2", sy.mul(&sy))];
    let all = [("Sz", sz), ("S+", up), ("S-", down), ("Sx", sx), ("Sy", sy)];
    all.into_iter().chain(squares).try_fold(site, |site, (name, x)| site.with_matrix(name, x))
}

/// The site of a definition of this crate, which has no error.
pub(super) fn built<S>(site: Result<Site<S>>) -> Site<S> {
    match site {
        Ok(site) => site,
        Err(error) => unreachable!("a definition of the crate: {error}"),
    }
}
