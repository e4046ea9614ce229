//! One step of symmetric CTMRG about an environment, with constant projectors.
//!
//! The projectors are the kept columns of the grown corner, which arrays differentiate to second order as the subspace
//! that they span ([`Subspace`]). Third derivatives are not those of the step.
//!
//! At a fixed point the columns are rotated such that the environment itself returns, not an equivalent one: the
//! rotation is the dominant eigenvector of the transfer matrix between the new and the old edge.
//!
//! Reference: A. Francuz, N. Schuch, B. Vanhecke (2023).

use t4a_diff::{Array, Eager};
use t4a_linalg::krylov::{KrylovOptions, Target, Vector, lanczos};
use t4a_linalg::polar::Side;
use t4a_structured::{FluxOn, GradedTensor, Sector, Spec, Svd, Truncated, einsum};

use super::options::CtmOptions;
use super::subspace::{Subspace, lifted};
use super::symmetric::{Symmetric, normalised};
use crate::error::Result;
use crate::scalar::norm;

/// A step of symmetric CTMRG with the projectors of one environment.
///
/// [`FixedStep::apply`] is a function of the bulk tensor and of the environment over any arrays. At the tensors that
/// the step was made of its value is the step, and its first and second derivatives are those of the step up to a gauge of
/// the bond. At a fixed point it returns the environment that it was given.
#[derive(Clone, Debug)]
pub struct FixedStep<S> {
    /// `[f, d, χ]`, conjugated columns.
    projector: GradedTensor<S>,
    derivative: Option<Subspace<S>>,
    /// Rotation of the kept columns.
    gauge: Option<GradedTensor<S>>,
    truncation: f64,
}

impl<S: Sector> FixedStep<S> {
    /// The step of an environment, with its derivatives.
    ///
    /// # Errors
    /// Those of the factorisation.
    pub fn new(
        bulk: &GradedTensor<S>,
        environment: &Symmetric<S>,
        options: &CtmOptions,
    ) -> Result<Self> {
        Self::with_derivatives(bulk, environment, options, true)
    }

    /// [`FixedStep::new`], with second derivatives or without.
    pub(super) fn with_derivatives(
        bulk: &GradedTensor<S>,
        environment: &Symmetric<S>,
        options: &CtmOptions,
        has_second_order: bool,
    ) -> Result<Self> {
        options.check(super::symmetric::OP)?;
        let quarter = environment.quarter(bulk)?.repartition(2)?;
        let (mut step, kept) = Self::of(&quarter, options)?;
        step.derivative = Some(Subspace::new(quarter, kept, has_second_order)?);
        step.fix_gauge(bulk, environment)?;
        Ok(step)
    }

    /// The step of an environment without a derivative: that of the iteration.
    pub(super) fn projectors(
        bulk: &GradedTensor<S>,
        environment: &Symmetric<S>,
        options: &CtmOptions,
    ) -> Result<Self> {
        Ok(Self::of(&environment.quarter(bulk)?, options)?.0)
    }

    /// The step of a grown corner without a derivative, and the kept factors.
    fn of(quarter: &GradedTensor<S>, options: &CtmOptions) -> Result<(Self, Svd<S, Eager>)> {
        let Truncated { kept, error } =
            quarter.svd_truncated(2, FluxOn::Right, options.truncation())?;
        let truncation = error / norm(quarter)?;
        let projector = kept.u.conj()?;
        Ok((Self { projector, derivative: None, gauge: None, truncation }, kept))
    }

    /// Norm of the dropped singular values of the grown corner, relative to that of all.
    pub fn truncation(&self) -> f64 {
        self.truncation
    }

    /// Rotates the columns such that the new edge is the old one, if its bond is that of the old one.
    fn fix_gauge(&mut self, bulk: &GradedTensor<S>, environment: &Symmetric<S>) -> Result<()> {
        let next = self.apply(bulk, environment)?;
        if next.bond() != environment.bond() {
            return Ok(());
        }
        let (new, old) = (next.edge(), environment.edge().conj()?);
        let leg = next.bond();
        let spec = Spec::new(vec![leg.dual(), leg.clone()], S::TRIVIAL, 1)?;
        let map = |x: &GradedTensor<S>| -> Result<GradedTensor<S>> {
            Ok(einsum("krl,lb,arb->ka", &[new, x, &old])?.conj()?.repartition(1)?)
        };
        // The identity has no part of the solution where signs differ.
        let start = GradedTensor::zeros(spec, t4a_tensor::DType::F64, false)?.random(5)?;
        let options = KrylovOptions::new().target(Target::Highest).tolerance(1e-13).subspace(60);
        let found = lanczos(map, &start, &options.max_applications(600))?;
        let Some(x) = found.vectors.first() else { return Ok(()) };
        let gauge = x.polar(1, Side::Right)?.u;
        self.projector = einsum("fdk,ka->fda", &[&self.projector, &gauge])?;
        self.gauge = Some(gauge);
        Ok(())
    }

    /// The next environment.
    ///
    /// # Errors
    /// `Structured` for tensors of other legs than those of the step.
    pub fn apply<A: Array>(
        &self,
        bulk: &GradedTensor<S, A>,
        environment: &Symmetric<S, A>,
    ) -> Result<Symmetric<S, A>> {
        let quarter = environment.quarter(bulk)?.repartition(2)?;
        let mut p = lifted(&self.projector, bulk.re())?;
        if let Some(derivative) = &self.derivative {
            let mut change = derivative.change(&quarter)?.conj()?;
            if let Some(gauge) = &self.gauge {
                change = einsum("fdk,ka->fda", &[&change, &lifted(gauge, bulk.re())?])?;
            }
            p = p.add(&change.repartition(p.spec().rows())?)?;
        }
        let corner = einsum("fdvr,fdk,vrl->kl", &[&quarter, &p, &p])?.repartition(1)?;
        let edge = environment.edge().conj()?;
        let edge = einsum("fls,lurd,fdk,sum->krm", &[&edge, bulk, &p, &p])?.repartition(1)?;
        let corner = corner.add(&corner.permute(&[1, 0], 1)?)?;
        let edge = edge.add(&edge.permute(&[2, 1, 0], 1)?)?;
        Ok(Symmetric::of(normalised(&corner)?, normalised(&edge)?))
    }
}
