//! Overlaps of changes of one tensor of a symmetric iPEPS: the metric that gradients are preconditioned with.
//!
//! The overlap of two states that differ from ψ(a) at one site is `⟨x| N |y⟩`, N: the environment of the site. Directions
//! that hardly change the state have small eigenvalues of N, in which the energy is flat; `(N + δ)⁻¹` times the gradient is
//! long in them. N commutes with the symmetries of the square.
//!
//! Reference: X.-Y. Zhang, Q. Yang, P. Corboz, J. Haegeman, W. Tang, *Accelerating two-dimensional tensor network
//! optimization by preconditioning* (2025).

use t4a_diff::Array;
use t4a_linalg::LinalgError;
use t4a_linalg::krylov::{KrylovError, KrylovOptions, conjugate_gradients};
use t4a_structured::{GradedTensor, Sector, StructuredError, einsum};

use super::energy::SymmetricEnergy;
use super::layers::double_of;
use super::subspace::lifted;
use super::symmetric::{Symmetric, one};
use crate::error::{NetworksError, Result};
use crate::scalar::number;
use crate::tape::{Recorded, pullback};

/// δ relative to the overlap of the state with itself.
const SHIFT: f64 = 1e-3;

/// The metric N + δ at a state.
pub(super) struct StateMetric<S> {
    /// The environment of a site with open bonds, of ring 1 with the state of norm 1.
    ring: GradedTensor<S>,
}

impl<S: Sector> StateMetric<S> {
    pub(super) fn new(
        energy: &SymmetricEnergy<S>,
        state: &GradedTensor<S>,
        environment: &Symmetric<S>,
    ) -> Result<Self> {
        let state = energy.prepared(state)?;
        let ring = environment.open_ring()?;
        let size = number(&one(&einsum("lurd,lurd->", &[&ring, &double_of(&state, &state)?])?))?;
        Ok(Self { ring: ring.scale(1.0 / size) })
    }

    /// `N x + δ x`.
    pub(super) fn apply(&self, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
        let variable = Recorded::variable(x.re().clone());
        let y = GradedTensor::new(x.spec().clone(), variable.clone(), None)?;
        let (x_fixed, ring) = (lifted(x, &variable)?, lifted(&self.ring, &variable)?);
        let overlap = one(&einsum("lurd,lurd->", &[&ring, &double_of(&x_fixed, &y)?])?);
        let ones = overlap.value().full(&overlap.shape(), 1.0);
        let product = pullback(&[(&overlap, ones)], &[&variable])?.swap_remove(0);
        Ok(GradedTensor::new(x.spec().clone(), product, None)?.add(&x.scale(SHIFT))?)
    }

    /// `(N + δ)⁻¹ x` by conjugate gradients.
    pub(super) fn solve(&self, x: &GradedTensor<S>) -> Result<GradedTensor<S>> {
        let options = KrylovOptions::new().max_applications(100).tolerance(1e-6);
        match conjugate_gradients(|x| self.apply(x), x, None, &options) {
            // The environment is far from a fixed point.
            Err(NetworksError::Structured(StructuredError::Linalg(LinalgError::Krylov(
                KrylovError::NotPositive { .. } | KrylovError::NonFinite { .. },
            )))) => Ok(x.clone()),
            found => Ok(found?.vector),
        }
    }
}
