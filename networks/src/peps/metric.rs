//! Overlaps of changes of one tensor of a symmetric iPEPS: the metric that gradients are preconditioned with.
//!
//! The overlap of two states that differ from ψ(a) at one site is `⟨x| N |y⟩`, N: the environment of the site. Directions
//! that hardly change the state have small eigenvalues of N, in which the energy is flat; `(N + δ)⁻¹` times the gradient is
//! long in them. N commutes with the symmetries of the square.
//!
//! Reference: X.-Y. Zhang, Q. Yang, P. Corboz, J. Haegeman, W. Tang, *Accelerating two-dimensional tensor network
//! optimization by preconditioning* (2025).

use t4a_diff::Array;
use t4a_structured::{GradedTensor, Sector, einsum};

use super::energy::SymmetricEnergy;
use super::layers::double_of;
use super::subspace::lifted;
use super::symmetric::{Symmetric, one};
use crate::error::Result;
use crate::scalar::{norm, number};
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
        let dot =
            |x: &GradedTensor<S>, y: &GradedTensor<S>| -> Result<f64> { number(&x.inner(y)?.0) };
        let bound = 1e-6 * norm(x)?;
        let (mut solution, mut residual, mut direction) = (x.scale(0.0), x.clone(), x.clone());
        let mut square = dot(x, x)?;
        for _ in 0..100 {
            if square.sqrt() <= bound {
                break;
            }
            let image = self.apply(&direction)?;
            let curvature = dot(&direction, &image)?;
            // The environment is far from a fixed point.
            if curvature.is_nan() || curvature <= 0.0 {
                return Ok(x.clone());
            }
            let length = square / curvature;
            solution = solution.add(&direction.scale(length))?;
            residual = residual.sub(&image.scale(length))?;
            let next = dot(&residual, &residual)?;
            direction = residual.add(&direction.scale(next / square))?;
            square = next;
        }
        Ok(solution)
    }
}
