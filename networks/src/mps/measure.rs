//! Expectation values of operators of sites, correlations, entanglement.

use t4a_algebra::c64;
use t4a_diff::{Array, Eager};
use t4a_structured::{GradedTensor, Sector, einsum};

use super::Mps;
use super::overlap::transfer;
use crate::error::{NetworksError, Result};
use crate::mpo::Mpo;
use crate::scalar::{complex, edge, entry, number};
use crate::sites::{LocalMatrix, Site, Sites};
use crate::sums::Sum;

impl<S: Sector> Mps<S> {
    /// `⟨O⟩` of an operator at each site, divided by `⟨ψ|ψ⟩`; 0 for an operator that changes the charge.
    ///
    /// Cost: `O(n d D³)`.
    ///
    /// # Errors
    /// `UnknownOperator`; `Definition` for an operator without a charge of its own; `Parity` for one that is odd in
    /// fermions; `Norm` for a state of norm 0.
    pub fn expect(&self, sites: &Sites<S>, operator: &str) -> Result<Vec<c64>> {
        let op = "expect";
        self.check_legs(op, sites.iter().map(Site::leg))?;
        for (at, site) in sites.iter().enumerate() {
            site.matrix(operator).ok_or_else(|| site.unknown(op, at, operator))?;
            if site.is_odd(operator) == Some(true) {
                let (given, required) = ("odd", "even");
                let term = format!("{operator}({at})");
                return Err(NetworksError::Parity { op, term, given, required });
            }
        }
        let mut state = self.clone();
        state.normalise()?;
        let mut values = Vec::with_capacity(self.len());
        for (at, site) in sites.iter().enumerate() {
            state.orthogonalise(at)?;
            values.push(match site.charge_of(operator) {
                Some(charge) if charge != S::TRIVIAL => c64::ZERO,
                _ => {
                    let (x, o) = (&state.tensors[at], site.operator(operator)?);
                    let moved = o.contract(x, &[1], &[1])?.permute(&[1, 0, 2], x.spec().rows())?;
                    complex(&x.inner(&moved)?)?
                }
            });
        }
        Ok(values)
    }

    /// `⟨Aᵢ Bⱼ⟩` for all pairs of sites, `[i][j]`, divided by `⟨ψ|ψ⟩`. Signs of fermions are those of the product in
    /// this order, also for i > j.
    ///
    /// Cost: `O(n² d D³)`.
    ///
    /// # Errors
    /// `UnknownOperator`; `Definition` for an operator without a charge of its own; `Parity`, `Norm`.
    pub fn correlation(&self, sites: &Sites<S>, a: &str, b: &str) -> Result<Vec<Vec<c64>>> {
        let op = "correlation";
        self.check_legs(op, sites.iter().map(Site::leg))?;
        for (at, site) in sites.iter().enumerate() {
            for name in [a, b] {
                site.matrix(name).ok_or_else(|| site.unknown(op, at, name))?;
                site.operator(name)?;
            }
            if site.is_odd(a) != site.is_odd(b) {
                let (given, required) = ("odd", "even");
                let term = format!("{a}({at}) {b}({at})");
                return Err(NetworksError::Parity { op, term, given, required });
            }
        }
        let n = self.len();
        let mut state = self.clone();
        state.normalise()?;
        state.orthogonalise(0)?;
        let mut values = vec![vec![c64::ZERO; n]; n];
        for i in 0..n {
            state.orthogonalise(i)?;
            let site = sites.at(op, i)?;
            let odd = site.is_odd(a) == Some(true);
            // Both orders of the pair with i on the left: A at i, and B at i.
            let both = site.own(a).mul(&site.own(b));
            values[i][i] = state.local(i, site, &both)?;
            for first in [true, false] {
                let (own, other) = if first { (a, b) } else { (b, a) };
                let mut left = state.begin(i, site, own, odd)?;
                for j in i + 1..n {
                    let x = &state.tensors[j];
                    let far = sites.at(op, j)?;
                    let end = insert(&left, x, &far.operator(other)?)?;
                    // The fermion operator at j is the first factor: its exchange with the one at i has a sign.
                    let sign = if odd && !first { -1.0 } else { 1.0 };
                    let value = complex(&closed(&end)?)? * sign;
                    if first {
                        values[i][j] = value;
                    } else {
                        values[j][i] = value;
                    }
                    left = match odd && far.has_fermions() {
                        true => insert(&left, x, &far.operator("F")?)?,
                        false => transfer3(&left, x)?,
                    };
                }
            }
        }
        Ok(values)
    }

    /// `⟨O⟩` of a matrix of the site at the centre.
    fn local(&self, i: usize, site: &Site<S>, matrix: &LocalMatrix) -> Result<c64> {
        let neutral =
            site.components(matrix)?.into_iter().find(|(charge, _)| *charge == S::TRIVIAL);
        let Some((_, matrix)) = neutral else { return Ok(c64::ZERO) };
        let o = site.tensor(S::TRIVIAL, &matrix)?;
        let x = &self.tensors[i];
        let moved = o.contract(x, &[1], &[1])?.permute(&[1, 0, 2], x.spec().rows())?;
        complex(&x.inner(&moved)?)
    }

    /// The environment `[ket, bra]` of charge of an operator at the centre, with the string of fermions behind it.
    fn begin(&self, i: usize, site: &Site<S>, name: &str, odd: bool) -> Result<GradedTensor<S>> {
        let matrix = match odd {
            true => site.own(name).mul(&site.own("F")),
            false => site.own(name),
        };
        let charge = site.charge_of(name).unwrap_or(S::TRIVIAL);
        let o = site.tensor(charge, &matrix)?;
        let x = &self.tensors[i];
        let first = x.spec().legs()[0].dual();
        let identity = GradedTensor::identity(&[first], x.re().dtype())?;
        insert(&identity, x, &o)
    }

    /// `⟨ψ|O|ψ⟩ / ⟨ψ|ψ⟩` of an operator sum, any product of operators among them.
    ///
    /// # Errors
    /// Those of [`Sum::mpo`]; `Norm`.
    pub fn expect_sum(&self, sum: &Sum<S>) -> Result<c64> {
        let norm = self.inner(self)?.re;
        if !(norm.is_finite() && norm > 0.0) {
            return Err(NetworksError::Norm { op: "expect_sum", norm });
        }
        Ok(self.expectation(&sum.mpo()?)? / norm)
    }

    /// `(⟨H²⟩ − ⟨H⟩²)` of an operator H of charge 0, divided by `⟨ψ|ψ⟩`: 0 for eigenstates.
    ///
    /// Cost: `O(n d w² D³)` for bond dimension w of the operator.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites; `Norm`.
    pub fn variance(&self, operator: &Mpo<S>) -> Result<f64> {
        self.check_legs("variance", (0..operator.len()).map(|i| operator.physical(i)))?;
        let adjoint = operator.adjoint()?;
        let (x, w, v) = (&self.tensors, operator.tensors(), adjoint.tensors());
        let norm = self.inner(self)?.re;
        if !(norm.is_finite() && norm > 0.0) {
            return Err(NetworksError::Norm { op: "variance", norm });
        }
        let first = [&x[0], &w[0], &v[0]].map(|x| x.spec().legs()[0].dual());
        let legs = first.iter().cloned().chain([first[0].dual()]).collect();
        let mut left = edge(&x[0], legs)?;
        for ((x, w), v) in x.iter().zip(w).zip(v) {
            let all = [&left, x, w, v, &x.conj()?];
            left = einsum("kwvb,kpm,wqpc,vrqd,brn->mcdn", &all)?;
        }
        let square = complex(&entry(&left))?.re / norm;
        let mean = self.expectation(operator)? / norm;
        Ok(square - mean.norm_sqr())
    }

    /// Probabilities of the Schmidt states of the bond between sites `bond` and `bond + 1` by sector.
    ///
    /// # Errors
    /// As [`Mps::singular_values`].
    pub fn entanglement_spectrum(&self, bond: usize) -> Result<Vec<(S, Vec<f64>)>> {
        Ok(self.clone().singular_values(bond)?.probabilities()?.numbers()?)
    }

    /// The von Neumann entropy `−Σ p ln p` of each bond between sites.
    ///
    /// # Errors
    /// Those of the factorisations.
    pub fn entropies(&self) -> Result<Vec<f64>> {
        let mut state = self.clone();
        state.orthogonalise(0)?;
        let entropy = |bond| number(&state.singular_values(bond)?.entropy()?);
        (0..self.len().saturating_sub(1)).map(entropy).collect()
    }
}

/// One more site with an operator `[out, in]` of any charge.
fn insert<S: Sector>(
    left: &GradedTensor<S>,
    x: &GradedTensor<S>,
    o: &GradedTensor<S>,
) -> Result<GradedTensor<S>> {
    Ok(einsum("kb,kpm,qp,bqn->mn", &[left, x, o, &x.conj()?])?)
}

fn transfer3<S: Sector>(left: &GradedTensor<S>, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
    transfer(left, x, x)
}

/// The environment with right isometries behind it: its trace.
fn closed<S: Sector>(x: &GradedTensor<S>) -> Result<(Eager, Option<Eager>)> {
    if x.spec().flux() != S::TRIVIAL {
        return Ok((x.re().full(&[1], 0.0), None));
    }
    Ok(entry(&x.trace(&[(0, 1)])?))
}
