//! Energies, fidelities and likelihoods as arrays, which are differentiable where the arrays are. Tensors are scaled
//! on the way, so that long chains neither overflow nor vanish: the factors are constants, which cancel.

use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::Mps;
use super::overlap::transfer;
use crate::environment::{grow_left, left_edge};
use crate::error::{NetworksError, Result};
use crate::features::contract_features;
use crate::mpo::Mpo;
use crate::scalar::{divided, edge, entry, fixed_norm};

impl<S: Sector, A: Array> Mps<S, A> {
    /// The real part of `⟨ψ|O|ψ⟩ / ⟨ψ|ψ⟩`, an array of one element: the energy of a Hamiltonian, the expectation value of
    /// a Hermitian operator. Differentiable in the tensors of the state and of the operator.
    ///
    /// NaN for a state of norm 0. Cost: as [`Mps::matrix_element`].
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites.
    pub fn energy(&self, operator: &Mpo<S, A>) -> Result<A> {
        let legs = (0..operator.len()).map(|i| operator.physical(i));
        self.check_legs("energy", legs)?;
        let first = self.tensors[0].spec().legs()[0].dual();
        let mut norm = edge(&self.tensors[0], vec![first.clone(), first.dual()])?;
        let mut value = left_edge(&self.tensors[0], &operator.tensors()[0])?;
        for (x, w) in self.tensors.iter().zip(operator.tensors()) {
            norm = transfer(&norm, x, x)?;
            value = grow_left(&value, x, w, &x.conj()?)?;
            let by = fixed_norm(&norm)?;
            (norm, value) = (divided(&norm, &by)?, divided(&value, &by)?);
        }
        Ok(entry(&value).0.div(&entry(&norm).0))
    }

    /// `⟨self|other⟩` as a number of norm 1 at most, and the logarithm of what it was divided by.
    fn scaled_inner(&self, other: &Self) -> Result<(GradedTensor<S, A>, A)> {
        other.check_legs("inner", (0..self.len()).map(|i| self.physical(i)))?;
        let first = other.tensors[0].spec().legs()[0].dual();
        let mut left = edge(&other.tensors[0], vec![first.clone(), first.dual()])?;
        let mut ln = self.tensors[0].re().full(&[1], 0.0);
        for (ket, bra) in other.tensors.iter().zip(&self.tensors) {
            left = transfer(&left, ket, bra)?;
            let by = fixed_norm(&left)?;
            (left, ln) = (divided(&left, &by)?, ln.add(&by.ln()));
        }
        Ok((left, ln))
    }

    /// `ln⟨ψ|ψ⟩`, an array of one element, for chains whose norm leaves the range of numbers too. Differentiable.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn ln_norm_squared(&self) -> Result<A> {
        let (left, ln) = self.scaled_inner(self)?;
        Ok(entry(&left).0.ln().add(&ln))
    }

    /// `ln(|⟨self|other⟩|² / (⟨self|self⟩ ⟨other|other⟩))`, an array of one element, at most 0; −∞ for orthogonal states.
    /// Differentiable in the tensors of both.
    ///
    /// # Errors
    /// `Length`, `Chain` for other sites.
    pub fn ln_fidelity(&self, other: &Self) -> Result<A> {
        let (left, ln) = self.scaled_inner(other)?;
        let (re, im) = entry(&left);
        let square = match im {
            Some(im) => re.mul(&re).add(&im.mul(&im)),
            None => re.mul(&re),
        };
        let norms = self.ln_norm_squared()?.add(&other.ln_norm_squared()?);
        Ok(square.ln().add(&ln.scale(2.0)).sub(&norms))
    }

    /// `ln(|⟨s|ψ⟩|² / ⟨ψ|ψ⟩)` of each sample s, shape `[samples]`; −∞ for a state of probability 0. A sample has one
    /// number per site, in the order of the site's basis, as those of [`Mps::sample`]. Differentiable in the tensors of
    /// the state: minus the mean is the loss of a Born machine.
    ///
    /// Cost: `O(n d D²)` per sample on dense cores, and the norm.
    ///
    /// Reference: Z. Han, J. Wang, H. Fan, L. Wang, P. Zhang, *Unsupervised generative modeling using matrix product
    /// states* (2018).
    ///
    /// # Errors
    /// `Length` without samples or for one of another length; `Argument` for a number beyond the basis of its site.
    pub fn log_likelihood(&self, samples: &[Vec<usize>]) -> Result<A> {
        let cores = self.to_cores()?;
        let features = self.one_hot(samples)?;
        let ln = contract_features(&cores, &features)?.ln_norm;
        let ln = ln.scale(2.0).reshape(&[samples.len()]);
        Ok(ln.sub(&self.ln_norm_squared()?))
    }

    /// By site, `[samples, d]`: 1 at the state of the sample.
    fn one_hot(&self, samples: &[Vec<usize>]) -> Result<Vec<A>> {
        let (op, sites) = ("log_likelihood", self.len());
        if samples.is_empty() {
            let (what, required, given) = ("samples", 1, 0);
            return Err(NetworksError::Length { op, what, required, given });
        }
        if let Some(sample) = samples.iter().find(|sample| sample.len() != sites) {
            let (what, required, given) = ("numbers per sample", sites, sample.len());
            return Err(NetworksError::Length { op, what, required, given });
        }
        let like = self.tensors[0].re();
        let site = |site: usize| {
            let d = self.physical(site).dim();
            let mut entries = vec![0.0; samples.len() * d];
            for (k, sample) in samples.iter().enumerate() {
                let s = sample[site];
                if s >= d {
                    let (name, given) = ("the state of a site", s.to_string());
                    let required = "a number below the dimension of the site";
                    return Err(NetworksError::Argument { op, name, given, required });
                }
                entries[k * d + s] = 1.0;
            }
            let x = AnyTensor::from(Tensor::<f64>::from_vec(entries, &[samples.len(), d])?);
            Ok(like.constant(if like.dtype() == DType::F64 { x } else { x.cast(like.dtype())? }))
        };
        (0..sites).map(site).collect()
    }
}
