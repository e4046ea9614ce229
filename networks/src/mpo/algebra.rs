//! Adjoints, sums and inner products of operators.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector, einsum};

use super::Mpo;
use crate::error::{NetworksError, Result};
use crate::mps::stacked;
use crate::scalar::{complex, edge, entry, multiplied};

/// Part of the norm below which an operator counts as its adjoint: the square root of what rounding leaves of the
/// difference of two squares.
const HERMITIAN: f64 = 1e-6;

impl<S: Sector, A: Array> Mpo<S, A> {
    /// The adjoint, of the inverse charge.
    ///
    /// # Errors
    /// Those of the tensors.
    pub fn adjoint(&self) -> Result<Self> {
        let adjoint = |x: &GradedTensor<S, A>| -> Result<GradedTensor<S, A>> {
            Ok(x.conj()?.permute(&[0, 2, 1, 3], 2)?.flip(0)?.flip(3)?)
        };
        Self::new(self.tensors.iter().map(adjoint).collect::<Result<_>>()?)
    }

    /// `c` times the operator. Differentiable.
    pub fn scale(&self, c: f64) -> Self {
        let mut out = self.clone();
        out.tensors[0] = out.tensors[0].scale(c);
        out
    }

    /// The sum, whose bonds are direct sums of both. Differentiable.
    ///
    /// # Errors
    /// `Charge` for operators of different charges; `Length`, `Chain` for other sites.
    pub fn add(&self, other: &Self) -> Result<Self> {
        let op = "add";
        self.check_sites(op, other)?;
        let (required, given) = (self.charge(), other.charge());
        if required != given {
            let (given, required) = (given.to_string(), required.to_string());
            let what = "the second operator".into();
            return Err(NetworksError::Charge { op, what, given, required });
        }
        Ok(Self { tensors: stacked(&[&self.tensors, &other.tensors])? })
    }

    /// `Σₖ cₖ Oₖ` with numbers that are arrays of one element, over arrays and in the type of these: the parameters of a
    /// Hamiltonian, in which everything that is computed from the sum is differentiable. Bonds are direct sums.
    ///
    /// # Errors
    /// `Length` unless there is one array of one element per operator, at least one; `Charge` for operators of different
    /// charges; `Chain` for other sites.
    pub fn weighted(operators: &[Mpo<S>], weights: &[A]) -> Result<Self> {
        let op = "weighted sum";
        let (what, required, given) = ("weights", operators.len().max(1), weights.len());
        if required != given || operators.is_empty() {
            return Err(NetworksError::Length { op, what, required, given });
        }
        let mut terms = Vec::with_capacity(given);
        for (k, (operator, weight)) in operators.iter().zip(weights).enumerate() {
            if weight.shape().iter().product::<usize>() != 1 {
                let (what, required, given) =
                    ("elements per weight", 1, weight.shape().iter().product());
                return Err(NetworksError::Length { op, what, required, given });
            }
            operators[0].check_sites(op, operator)?;
            let (required, given) = (operators[0].charge(), operator.charge());
            if required != given {
                let (given, required) = (given.to_string(), required.to_string());
                let what = format!("operator {k}");
                return Err(NetworksError::Charge { op, what, given, required });
            }
            let mut tensors = operator.over(weight)?.tensors;
            tensors[0] = multiplied(&tensors[0], &weight.reshape(&[1]))?;
            terms.push(tensors);
        }
        let terms: Vec<&[GradedTensor<S, A>]> = terms.iter().map(|x| &x[..]).collect();
        Ok(Self { tensors: stacked(&terms)? })
    }

    pub(super) fn check_sites(&self, op: &'static str, other: &Self) -> Result<()> {
        if self.len() != other.len() {
            let (what, required, given) = ("sites", self.len(), other.len());
            return Err(NetworksError::Length { op, what, required, given });
        }
        match (0..self.len()).find(|&i| self.physical(i) != other.physical(i)) {
            None => Ok(()),
            Some(site) => {
                let message = format!("{} beside {}", self.physical(site), other.physical(site));
                Err(NetworksError::Chain { op, site, message })
            }
        }
    }

    /// `Tr(self† other) / d` with the dimension d of the space, as arrays of one element. Differentiable.
    ///
    /// Cost: `O(n d² w³)`.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites.
    pub fn inner_array(&self, other: &Self) -> Result<(A, Option<A>)> {
        self.check_sites("inner", other)?;
        let (a, b) = (&self.tensors, &other.tensors);
        let first = b[0].spec().legs()[0].dual();
        let mut left = edge(&b[0], vec![first.clone(), first.dual()])?;
        for (a, b) in a.iter().zip(b) {
            let states = b.spec().legs()[1].dim() as f64;
            left = einsum("kb,kqpm,bqpn->mn", &[&left, b, &a.conj()?])?.scale(1.0 / states);
        }
        Ok(entry(&left))
    }

    /// `Tr(self† other) / d`; 0 for operators of different charges.
    ///
    /// # Errors
    /// As [`Mpo::inner_array`].
    pub fn inner(&self, other: &Self) -> Result<c64> {
        complex(&self.inner_array(other)?)
    }

    /// Rejects operators that add a charge or differ from their adjoint by more than 10⁻⁶ of their norm.
    ///
    /// Cost: `O(n d² w³)`.
    ///
    /// # Errors
    /// `Charge`, `NotHermitian`.
    pub fn check_hermitian(&self, op: &'static str) -> Result<()> {
        if self.charge() != S::TRIVIAL {
            let (given, required) = (self.charge().to_string(), S::TRIVIAL.to_string());
            return Err(NetworksError::Charge { op, what: "the operator".into(), given, required });
        }
        let (square, cross) = (self.inner(self)?.re, self.adjoint()?.inner(self)?.re);
        // ‖H − H†‖² / 4 ‖H‖².
        let deviation = ((square - cross).max(0.0) / (2.0 * square)).sqrt();
        match deviation > HERMITIAN || !square.is_finite() {
            true => Err(NetworksError::NotHermitian { op, deviation }),
            false => Ok(()),
        }
    }
}
