//! Sums whose terms connect neighbours at most, bond by bond.

use t4a_algebra::c64;
use t4a_structured::{GradedTensor, Sector, Spec};

use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::sites::LocalMatrix;
use crate::sums::Sum;
use crate::sums::strings::{END, Strings};

const OP: &str = "tebd";

/// Terms of each bond as a tensor `[i, i + 1, i In, i + 1 In]`. A term of one site is shared by the bonds beside it.
pub(super) fn bond_terms<S: Sector>(sum: &Sum<S>) -> Result<Vec<GradedTensor<S>>> {
    let sites = sum.sites();
    let n = sites.len();
    if n < 2 {
        let (what, required, given) = ("sites", 2, n);
        return Err(NetworksError::Length { op: OP, what, required, given });
    }
    let strings = Strings::new(sum, S::TRIVIAL, false)?;
    let mut bonds: Vec<Filler<S>> = Vec::new();
    for i in 0..n - 1 {
        let legs = [sites.at(OP, i)?.leg(), sites.at(OP, i + 1)?.leg()];
        let all = legs.iter().map(|leg| (*leg).clone()).chain(legs.iter().map(|leg| leg.dual()));
        bonds.push(Filler::new(Spec::new(all.collect(), S::TRIVIAL, 2)?));
    }
    let identity =
        |i: usize| -> Result<LocalMatrix> { Ok(LocalMatrix::identity(sites.at(OP, i)?.dim())) };
    for &(string, x) in &strings.terms {
        let mut parts = Vec::new();
        let mut next = string;
        while next != END {
            let suffix = strings.suffixes[next as usize];
            let site = suffix.site as usize;
            let matrix = &strings.symbols[strings.kinds[site]].matrices[suffix.symbol as usize].1;
            parts.push((site, matrix.clone()));
            next = suffix.rest;
        }
        match &parts[..] {
            [] => add(&mut bonds[0], x, &identity(0)?, &identity(1)?),
            [(i, a)] => {
                let beside = if n > 2 && *i > 0 && *i + 1 < n { 0.5 } else { 1.0 };
                if *i > 0 {
                    add(&mut bonds[i - 1], x * beside, &identity(i - 1)?, a);
                }
                if *i + 1 < n {
                    add(&mut bonds[*i], x * beside, a, &identity(i + 1)?);
                }
            }
            [(i, a), (j, b)] if i + 1 == *j => add(&mut bonds[*i], x, a, b),
            _ => {
                let sites: Vec<usize> = parts.iter().map(|&(site, _)| site).collect();
                let (name, given) = ("a term", format!("on sites {sites:?}"));
                let required = "one on neighbours";
                return Err(NetworksError::Argument { op: OP, name, given, required });
            }
        }
    }
    bonds.into_iter().map(Filler::finish).collect()
}

fn add<S: Sector>(bond: &mut Filler<S>, x: c64, a: &LocalMatrix, b: &LocalMatrix) {
    for (i, k, y) in a.nonzeros() {
        for (j, l, z) in b.nonzeros() {
            bond.add(&[i, j, k, l], x * y * z);
        }
    }
}

/// `exp(c h)` of each bond.
pub(super) fn exponentials<S: Sector>(
    terms: &[GradedTensor<S>],
    c: c64,
) -> Result<Vec<GradedTensor<S>>> {
    terms.iter().map(|h| Ok(h.scale_complex(c).exp()?)).collect()
}
