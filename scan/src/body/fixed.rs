//! Solutions of `x = f(θ, x)` by iteration, and their derivatives by the implicit function theorem.
//!
//! ```text
//! value       x ← f(θ, x)           until x does not change any more
//! cotangents  u ← x̄ + (∂f/∂x)ᵀ u    in the same way, from u = x̄;  θ̄ = (∂f/∂θ)ᵀ u
//! ```
//!
//! Nothing of the iteration is kept. Both converge if the spectral radius of ∂f/∂x is below 1 at the solution, as fast as its
//! powers decrease.

use std::sync::Arc;

use t4a_diff::{Array, Value};
use t4a_tensor::DType;

use super::below::below_steps;
use super::broyden::Inverse;
use super::span::{Cotangents, Span};
use super::steps::{Flat, Steps};
use super::tape::{
    Ends, Tape, above, all_above, all_below, below, count, is_tracked, joined, recorded,
};
use crate::error::{Result, ScanError};
use crate::schedule::Policy;

/// A method for x = f(x).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// x ← f(x), for contractions.
    #[default]
    Iterate,
    /// Broyden's method, which needs no contraction and converges superlinearly near a solution where 1 − ∂f/∂x is
    /// invertible. It keeps two vectors for each correction, of which there are at most so many.
    Broyden(usize),
}

/// When an iteration ends, and how it gets there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedPoint {
    /// No number changes by more than this times one plus the largest number.
    pub tolerance: f64,
    /// Most steps, those of the cotangents apart.
    pub steps: usize,
    /// That of the solution, and of its cotangents.
    pub method: Method,
}

impl Default for FixedPoint {
    /// 10⁻⁶, which `f32` can reach, and 1000 steps of the iteration.
    fn default() -> Self {
        Self { tolerance: 1e-6, steps: 1000, method: Method::Iterate }
    }
}

impl FixedPoint {
    /// With Broyden's method: roots are no fixed points of contractions.
    #[must_use]
    pub fn for_root(self) -> Self {
        let method = match self.method {
            Method::Iterate => Method::Broyden(30),
            method => method,
        };
        Self { method, ..self }
    }
}

/// A solver below a tape: a step, then consts and where to begin.
pub trait SolveBelow<A: Array>:
    Fn(Steps<A>, Flat<A>, Flat<A>, &FixedPoint) -> Result<Flat<A>> + Clone + Send + 'static
{
}

impl<A: Array, F> SolveBelow<A> for F where
    F: Fn(Steps<A>, Flat<A>, Flat<A>, &FixedPoint) -> Result<Flat<A>> + Clone + Send + 'static
{
}

/// The largest change, and the largest number, of floats.
fn distance<A: Array>(old: &[Value<A>], new: &[Value<A>]) -> Result<[f64; 2]> {
    let largest = |x: &A| -> Result<f64> {
        let n = count(&x.shape());
        if n == 0 {
            return Ok(0.0);
        }
        let x = x.abs().reshape(&[n]).max(0).elements()?.cast(DType::F64)?;
        Ok(x.typed::<f64>()?.to_vec()?.first().copied().unwrap_or(0.0))
    };
    let mut all = [0.0f64; 2];
    let floats = |(old, new): (&Value<A>, &Value<A>)| {
        Some((old.as_float()?.clone(), new.as_float()?.clone()))
    };
    for (old, new) in old.iter().zip(new).filter_map(floats) {
        for (all, x) in all.iter_mut().zip([&new.sub(&old), &new]) {
            let x = largest(x)?;
            // NaN stays.
            if x.is_nan() || *all < x {
                *all = x;
            }
        }
    }
    Ok(all)
}

fn floats<A: Array>(all: &[Value<A>]) -> Vec<A> {
    all.iter().filter_map(Value::as_float).cloned().collect()
}

/// Steps from `init`, of floats, until the carry does not change any more.
///
/// Cost: for each a step, the largest numbers read on the host, and what the method computes.
///
/// # Errors
/// [`ScanError::NotConverged`]; those of the steps, and of reading numbers of a level that has none.
pub fn fixed_point<A: Array>(
    steps: &Steps<A>,
    consts: &[Value<A>],
    init: Flat<A>,
    settings: &FixedPoint,
) -> Result<Flat<A>> {
    let mut x = init;
    let mut change = f64::INFINITY;
    let mut inverse = match settings.method {
        Method::Iterate => None,
        Method::Broyden(memory) => Some(Inverse::new(memory)),
    };
    for _ in 0..settings.steps {
        let (next, _) = steps.step(consts, x.clone(), Vec::new())?;
        let [distance, size] = distance(&x, &next)?;
        change = distance / (1.0 + size);
        if change <= settings.tolerance {
            return Ok(next);
        }
        if change.is_nan() {
            break;
        }
        x = match &mut inverse {
            None => next,
            Some(inverse) => {
                let (x, next) = (floats(&x), floats(&next));
                let residual: Vec<A> = x.iter().zip(&next).map(|(x, next)| x.sub(next)).collect();
                let step = inverse.step(&residual)?;
                x.iter().zip(&step).map(|(x, step)| Value::Float(x.add(step))).collect()
            }
        };
    }
    let FixedPoint { tolerance, steps, .. } = *settings;
    Err(ScanError::NotConverged { steps, tolerance, change })
}

/// As [`fixed_point`], as one node of a tape, with `solve` below it. The solution does not depend on where the iteration
/// begins.
///
/// # Errors
/// Those of `solve`; `Captured`, `DTypes`.
pub fn fixed_point_below_tape<T: Tape<Kind: Sync>>(
    steps: Steps<T>,
    consts: Flat<T>,
    init: Flat<T>,
    settings: FixedPoint,
    solve: impl SolveBelow<T::Below>,
) -> Result<Flat<T>> {
    let all = consts.iter().chain(&init);
    let Some(kind) = all.filter_map(Value::as_float).map(T::kind).next() else { return Ok(init) };
    let init: Flat<T> = init.into_iter().map(|x| above(below(x), kind)).collect();
    if !consts.iter().any(is_tracked) {
        let steps = below_steps(&steps, kind, Policy::Sqrt);
        let x = solve(steps, all_below(consts), all_below(init), &settings)?;
        return Ok(all_above(x, kind));
    }
    let forward = |like: T, [consts, init, _]: [Flat<T::Below>; 3]| {
        let kind = like.kind();
        let x = solve(below_steps(&steps, kind, Policy::Sqrt), consts.clone(), init, &settings)?;
        Ok((x.clone(), Solved { steps, kind, consts, x, settings, solve }))
    };
    let all = [consts, init, Vec::new()];
    Ok(recorded(all, Policy::Sqrt, forward, Solved::back)?[0].clone())
}

/// Everything that the rule needs.
struct Solved<T: Tape, S> {
    steps: Steps<T>,
    kind: T::Kind,
    consts: Flat<T::Below>,
    x: Flat<T::Below>,
    settings: FixedPoint,
    solve: S,
}

impl<T: Tape<Kind: Sync>, S: SolveBelow<T::Below>> Solved<T, S> {
    /// Cotangents of the tracked consts, packed.
    fn back(self, ends: Ends, cotangent: T::Below) -> Result<T::Below> {
        let given = ends.parted(cotangent.clone()).into_iter().flatten().map(Value::Float);
        let given: Flat<T::Below> = given.collect();
        let (consts, n) = (self.consts.len(), self.x.len());
        let (steps, kind) = (self.steps.clone(), self.kind);
        // The consts of this iteration: θ, x, x̄.
        let body = move |mut all: Flat<T::Below>, u: Flat<T::Below>, _| {
            let (x_bar, x) = (all.split_off(consts + n), all.split_off(consts));
            let of_x = cotangents(&steps, kind, all, x, u)?.carry;
            let next = |(x, g): (&Value<T::Below>, Option<T::Below>)| match g {
                Some(g) => Value::Float(x.float().add(&g)),
                None => x.clone(),
            };
            Ok((x_bar.iter().zip(of_x).map(next).collect(), Vec::new()))
        };
        let paths = Arc::new((0..n).map(|i| format!("cotangent {i}")).collect());
        let back = Steps { body: Arc::new(body), length: 1, reverse: false, paths };
        let settings = FixedPoint { steps: self.settings.steps.min(T::SPANS - 1), ..self.settings };
        let all = [&self.consts[..], &self.x, &given].concat();
        let u = (self.solve)(back, all, given, &settings)?;
        let of_consts = cotangents(&self.steps, kind, self.consts.clone(), self.x, u)?.consts;
        let all = of_consts.into_iter().zip(&self.consts).zip(ends.tracked);
        let fill = |g: Option<T::Below>, x: &Value<T::Below>| {
            g.unwrap_or_else(|| cotangent.full(&x.shape(), 0.0))
        };
        Ok(joined(all.filter(|(_, wanted)| *wanted).map(|((g, x), _)| fill(g, x)).collect()))
    }
}

/// Cotangents of x and of the consts of a step that has a cotangent.
fn cotangents<T: Tape>(
    steps: &Steps<T>,
    kind: T::Kind,
    consts: Flat<T::Below>,
    x: Flat<T::Below>,
    cotangent: Flat<T::Below>,
) -> Result<Cotangents<T::Below>> {
    let span = Span {
        steps: steps.clone(),
        kind,
        of_consts: vec![None; consts.len()],
        consts,
        carry: x,
        xs: vec![Vec::new()],
        of_carry: cotangent.into_iter().map(Value::into_float).collect(),
        of_ys: vec![Vec::new()],
        wanted_xs: Vec::new(),
    };
    T::back(span, &mut Vec::new())
}
