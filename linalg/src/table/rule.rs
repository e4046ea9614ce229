//! Parts common to all derivative rules: matrices without cotangents, and cotangents of saved factors.

use super::MatrixOp;
use crate::error::{LinalgError, Result};
use crate::idle::Idle;
use crate::operation::{Outcome, Part, zeros};
use crate::vocabulary::Matrices;

impl<M: Matrices> Part<M> {
    fn activity(&self) -> M::Real {
        match self {
            Part::Full(x) => x.activity(),
            Part::Real(x) => x.activity(),
            Part::Complex(x) => x.activity(),
        }
    }

    fn cotangent(&self, idle: &Idle<M::Real>) -> Self {
        match self {
            Part::Full(x) => Part::Full(idle.cotangent(x)),
            Part::Real(x) => Part::Real(idle.cotangent(x)),
            Part::Complex(x) => Part::Complex(idle.cotangent(x)),
        }
    }

    fn factor(&self, idle: &Idle<M::Real>) -> Self {
        match self {
            Part::Full(x) => Part::Full(idle.factor(x)),
            Part::Real(x) => Part::Real(idle.values(x)),
            Part::Complex(x) if x.rows() == 1 => Part::Complex(idle.values(x)),
            Part::Complex(x) => Part::Complex(idle.factor(x)),
        }
    }

    pub(crate) fn error(&self) -> Option<LinalgError> {
        match self {
            Part::Full(x) => x.error(),
            Part::Real(x) => x.error(),
            Part::Complex(x) => x.error(),
        }
    }
}

/// Tangents of results and hidden results, and of the saved factors.
type TangentsWithSaved<M> = (Vec<Part<M>>, Vec<Part<M>>);

impl MatrixOp {
    /// Cotangents of the operands from those of the results and hidden results, and from those of the saved factors.
    /// A matrix with zero cotangents does not fail.
    ///
    /// # Errors
    /// Errors of the rule: `GaugeIllDefined`, `RankDeficient`, `Singular`; `SecondOrderAtTie` if the cotangent of a
    /// saved factor depends on its gauge, which is not a property of the loss.
    pub fn pullback<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
        saved: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let mut all = self.spared(operands, out, cotangents)?;
        if let Some((by, factors)) = &out.saved
            && saved.iter().any(Option::is_some)
        {
            let factors = Outcome::new(factors.clone()).permuted(out.permutations.iter().cloned());
            let through =
                MatrixOp::from(*by).spared(&operands[..1], &factors, saved).map_err(|error| {
                    match error {
                        LinalgError::GaugeIllDefined { op, batch, .. }
                        | LinalgError::SplitTie { op, batch } => {
                            LinalgError::SecondOrderAtTie { op, batch }
                        }
                        other => other,
                    }
                })?;
            all[0] = all[0].add(&through[0]);
        }
        Ok(all)
    }

    /// Applies the rule; if a matrix with zero cotangents makes it fail, once more without such matrices.
    fn spared<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        if cotangents.iter().all(Option::is_none) {
            return Ok(operands.iter().map(zeros).collect());
        }
        let rule = |operands: &[M], out: &Outcome<M>, cotangents: &[Option<Part<M>>]| {
            let all = self.vjp(operands, out, cotangents)?;
            match all.iter().find_map(M::error) {
                Some(error) => Err(error),
                None => Ok(all),
            }
        };
        let activity = || {
            let all = cotangents.iter().flatten().map(Part::activity);
            all.reduce(|a, b| a.add(&b))
        };
        rule(operands, out, cotangents).or_else(|error| {
            let idle = Idle::behind(error, activity())?;
            let operands: Vec<M> = operands.iter().map(|x| idle.factor(x)).collect();
            let factors = |parts: &[Part<M>]| parts.iter().map(|part| part.factor(&idle)).collect();
            let out = Outcome {
                results: factors(&out.results),
                hidden: out.hidden.clone(),
                saved: out.saved.as_ref().map(|(by, parts)| (*by, factors(parts))),
                permutations: out.permutations.clone(),
            };
            let cotangents: Vec<_> =
                cotangents.iter().map(|x| x.as_ref().map(|x| x.cotangent(&idle))).collect();
            rule(&operands, &out, &cotangents)
        })
    }

    /// Tangents of results and hidden results, and of the saved factors.
    ///
    /// # Errors
    /// Errors of the rule.
    pub fn pushforward<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
        with_saved: bool,
    ) -> Result<TangentsWithSaved<M>> {
        let moving = self.jvp(operands, out, tangents)?;
        let saved = match (&out.saved, &tangents[0]) {
            (Some((by, factors)), Some(_)) if with_saved => {
                let factors =
                    Outcome::new(factors.clone()).permuted(out.permutations.iter().cloned());
                MatrixOp::from(*by).jvp(&operands[..1], &factors, &tangents[..1])?
            }
            (Some((_, factors)), None) if with_saved => factors.iter().map(Part::zeros).collect(),
            _ => Vec::new(),
        };
        match moving.iter().chain(&saved).find_map(Part::error) {
            Some(error) => Err(error),
            None => Ok((moving, saved)),
        }
    }
}
