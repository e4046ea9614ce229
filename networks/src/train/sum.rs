//! Sums over all or some sites, with weights: integrals on grids of products of nodes.

use t4a_linalg::LinalgScalar;
use t4a_tensor::Tensor;

use super::matrix::{absorb_left, product};
use super::{Result, TensorTrain, TrainError};

impl<T: LinalgScalar> TensorTrain<T> {
    /// `Σ F(s₁, …, s_n)` over all multi-indices. Cost as one evaluation.
    ///
    /// # Errors
    /// `Tensor` (memory).
    pub fn sum(&self) -> Result<T> {
        let ones: Vec<Vec<T>> = self.sizes().iter().map(|&d| vec![T::ONE; d]).collect();
        self.weighted_sum(&ones)
    }

    /// `Σ F(s₁, …, s_n) Π wₖ[sₖ]`: an integral, if the weights are those of a quadrature rule.
    ///
    /// # Errors
    /// `Length` unless there are as many weights as indices.
    pub fn weighted_sum(&self, weights: &[Vec<T>]) -> Result<T> {
        self.check_weights("weighted_sum", &weights.iter().map(Some).collect::<Vec<_>>())?;
        let mut left = Tensor::ones(&[1, 1])?;
        for (core, w) in self.cores.iter().zip(weights) {
            left = product(&left, &weighted(core, w)?)?;
        }
        Ok(left.get(&[0, 0]).unwrap_or(T::ZERO))
    }

    /// Sums over the sites that have weights; the result has the other sites.
    ///
    /// # Errors
    /// `Length` unless there is an entry for each site and a weight for each index of it; `Sites` if no site
    /// is left, for which [`TensorTrain::weighted_sum`] is made.
    pub fn contract_sites(&self, weights: &[Option<Vec<T>>]) -> Result<Self> {
        let op = "contract_sites";
        self.check_weights(op, &weights.iter().map(Option::as_ref).collect::<Vec<_>>())?;
        let mut cores: Vec<Tensor<T>> = Vec::new();
        let mut left = Tensor::ones(&[1, 1])?;
        for (core, weights) in self.cores.iter().zip(weights) {
            match weights {
                Some(w) => left = product(&left, &weighted(core, w)?)?,
                None => {
                    cores.push(absorb_left(&left, core)?);
                    left = t4a_tensor::create::eye(core.shape()[2], core.shape()[2])?;
                }
            }
        }
        match cores.pop() {
            None => Err(TrainError::Sites { op, required: 1, given: 0 }),
            Some(last) => {
                cores.push(super::matrix::absorb_right(&last, &left)?);
                Self::checked(op, cores)
            }
        }
    }

    fn check_weights(&self, op: &'static str, weights: &[Option<&Vec<T>>]) -> Result<()> {
        let given = weights.len();
        if given != self.len() {
            return Err(TrainError::Length { op, required: self.len(), given });
        }
        for (d, w) in self.sizes().into_iter().zip(weights) {
            if let Some(w) = w.filter(|w| w.len() != d) {
                return Err(TrainError::Length { op, required: d, given: w.len() });
            }
        }
        Ok(())
    }
}

/// `Σₛ w[s] A(s)`, `[l, r]`.
fn weighted<T: LinalgScalar>(core: &Tensor<T>, w: &[T]) -> Result<Tensor<T>> {
    let row = Tensor::from_slice(w, &[1, w.len()])?;
    // The matrices A(l, ·) = [d, r] are a batch.
    let shape = core.shape();
    Ok(product(&row, core)?.reshape(&[shape[0], shape[2]])?)
}
