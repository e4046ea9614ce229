//! One step of symmetric CTMRG about an environment, with constant projectors.
//!
//! With `M = U S Vᴴ` the projectors are the kept columns of U. Near M they are
//!
//! ```text
//! U_k + U_d X,   X = (S_k U_dᴴ dM V_k + S_d V_dᴴ dMᴴ U_k) / (s_k² − s_d²),   d: dropped, k: kept,
//! ```
//!
//! and this expression, whose value is `U_k`, is what arrays differentiate: the rotation among kept columns, which is
//! not unique at degenerate singular values, is a gauge and left out. Second derivatives are not those of the step.
//!
//! At a fixed point the columns are rotated such that the environment itself returns, not an equivalent one: the
//! rotation is the dominant eigenvector of the transfer matrix between the new and the old edge.
//!
//! Reference: A. Francuz, N. Schuch, B. Vanhecke (2023).

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_linalg::krylov::{KrylovOptions, Target, Vector, lanczos};
use t4a_linalg::polar::Side;
use t4a_structured::{Bond, FluxOn, GradedTensor, Sector, Spec, Svd, Truncated, einsum};

use super::options::CtmOptions;
use super::symmetric::{Symmetric, normalised};
use crate::error::Result;
use crate::fill::Filler;
use crate::scalar::norm;

/// A step of symmetric CTMRG with the projectors of one environment.
///
/// [`FixedStep::apply`] is a function of the bulk tensor and of the environment over any arrays. At the tensors that
/// the step was made of its value is the step, and its first derivative is that of the step up to a gauge of the bond.
/// At a fixed point it returns the environment that it was given.
#[derive(Clone, Debug)]
pub struct FixedStep<S> {
    /// `[f, d, χ]`, conjugated columns.
    projector: GradedTensor<S>,
    derivative: Option<Derivative<S>>,
    truncation: f64,
}

/// Constants of the first-order change of the columns.
#[derive(Clone, Debug)]
struct Derivative<S> {
    quarter: GradedTensor<S>,
    u: GradedTensor<S>,
    vh: GradedTensor<S>,
    kept: [GradedTensor<S>; 2],
    /// `s_k / (s_k² − s_d²)` and `s_d / (s_k² − s_d²)`, 0 for kept pairs: `[all, kept]`.
    weights: [GradedTensor<S>; 2],
    /// Rotation of the kept columns.
    gauge: Option<GradedTensor<S>>,
}

/// The constant tensor over arrays like one.
fn lifted<S: Sector, A: Array>(x: &GradedTensor<S>, like: &A) -> Result<GradedTensor<S, A>> {
    let part = |x: &t4a_diff::Eager| -> Result<A> { Ok(like.constant(x.tensor()?.clone())) };
    let (re, im) = (part(x.re())?, x.im().map(part).transpose()?);
    Ok(GradedTensor::new(x.spec().clone(), re, im)?)
}

/// Entries of two tensors of one structure multiplied.
fn weighted<S: Sector, A: Array>(
    x: &GradedTensor<S, A>,
    weights: &GradedTensor<S, A>,
) -> Result<GradedTensor<S, A>> {
    let x = x.repartition(weights.spec().rows())?;
    Ok(GradedTensor::new(x.spec().clone(), x.re().mul(weights.re()), None)?)
}

impl<S: Sector> FixedStep<S> {
    /// The step of an environment, with its derivative.
    ///
    /// # Errors
    /// Those of the factorisation.
    pub fn new(
        bulk: &GradedTensor<S>,
        environment: &Symmetric<S>,
        options: &CtmOptions,
    ) -> Result<Self> {
        options.check(super::symmetric::OP)?;
        let quarter = environment.quarter(bulk)?.repartition(2)?;
        let mut step = Self::of(&quarter, options)?;
        let Svd { u, s, vh } = quarter.svd(2, FluxOn::Right)?;
        let Truncated { kept, .. } =
            quarter.svd_truncated(2, FluxOn::Right, options.truncation())?;
        let weights = weights(&u, &s, &kept.s, &kept.u)?;
        let kept = [kept.u, kept.vh];
        let derivative = Derivative { quarter, u, vh, kept, weights, gauge: None };
        step.derivative = Some(derivative);
        step.fix_gauge(bulk, environment)?;
        Ok(step)
    }

    /// The step of an environment without a derivative: that of the iteration.
    pub(super) fn projectors(
        bulk: &GradedTensor<S>,
        environment: &Symmetric<S>,
        options: &CtmOptions,
    ) -> Result<Self> {
        Self::of(&environment.quarter(bulk)?, options)
    }

    fn of(quarter: &GradedTensor<S>, options: &CtmOptions) -> Result<Self> {
        let Truncated { kept, error } =
            quarter.svd_truncated(2, FluxOn::Right, options.truncation())?;
        let truncation = error / norm(quarter)?;
        Ok(Self { projector: kept.u.conj()?, derivative: None, truncation })
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
        if let Some(derivative) = &mut self.derivative {
            derivative.gauge = Some(gauge);
        }
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
            let change = derivative.change(&quarter)?.repartition(p.spec().rows())?;
            p = p.add(&change)?;
        }
        let corner = einsum("fdvr,fdk,vrl->kl", &[&quarter, &p, &p])?.repartition(1)?;
        let edge = environment.edge().conj()?;
        let edge = einsum("fls,lurd,fdk,sum->krm", &[&edge, bulk, &p, &p])?.repartition(1)?;
        let corner = corner.add(&corner.permute(&[1, 0], 1)?)?;
        let edge = edge.add(&edge.permute(&[2, 1, 0], 1)?)?;
        Ok(Symmetric::of(normalised(&corner)?, normalised(&edge)?))
    }
}

impl<S: Sector> Derivative<S> {
    /// The first-order change of the projector, of value 0.
    fn change<A: Array>(&self, quarter: &GradedTensor<S, A>) -> Result<GradedTensor<S, A>> {
        let lift = |x: &GradedTensor<S>| lifted(x, quarter.re());
        let change = quarter.sub(&lift(&self.quarter)?)?;
        let (u, vh) = (lift(&self.u)?, lift(&self.vh)?);
        let [uk, vk] = [lift(&self.kept[0])?, lift(&self.kept[1])?];
        let from_left = einsum("fda,fdvr,bvr->ab", &[&u.conj()?, &change, &vk.conj()?])?;
        let from_right = einsum("avr,fdvr,fdb->ab", &[&vh, &change.conj()?, &uk])?;
        let x = weighted(&from_left, &lift(&self.weights[0])?)?
            .add(&weighted(&from_right, &lift(&self.weights[1])?)?)?;
        let mut columns = einsum("fda,ab->fdb", &[&u, &x])?.conj()?;
        if let Some(gauge) = &self.gauge {
            columns = einsum("fdk,ka->fda", &[&columns, &lift(gauge)?])?;
        }
        Ok(columns)
    }
}

/// The weights of pairs of columns `[all, kept]`, both parts.
fn weights<S: Sector>(
    u: &GradedTensor<S>,
    s: &Bond<S, t4a_diff::Eager>,
    kept: &Bond<S, t4a_diff::Eager>,
    uk: &GradedTensor<S>,
) -> Result<[GradedTensor<S>; 2]> {
    let legs = vec![u.spec().legs()[2].dual(), uk.spec().legs()[2].clone()];
    let spec = Spec::new(legs, S::TRIVIAL, 1)?;
    let (all, kept) = (s.numbers()?, kept.numbers()?);
    let mut fillers = [Filler::new(spec.clone()), Filler::new(spec)];
    let mut first = 0;
    for (sector, values) in &all {
        let mut second = 0;
        for (other, few) in &kept {
            if other == sector {
                for (b, sk) in few.iter().enumerate() {
                    for (a, sd) in values.iter().enumerate().skip(few.len()) {
                        let gap = (sk - sd) * (sk + sd);
                        if gap <= 0.0 {
                            // A tie across the cut has no derivative; its part is left out.
                            continue;
                        }
                        fillers[0].add(&[first + a, second + b], c64::new(sk / gap, 0.0));
                        fillers[1].add(&[first + a, second + b], c64::new(sd / gap, 0.0));
                    }
                }
            }
            second += few.len();
        }
        first += values.len();
    }
    let [left, right] = fillers;
    Ok([left.finish()?, right.finish()?])
}
