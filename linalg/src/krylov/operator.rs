//! The operator of the caller, with a count of its applications and a check of its results.

use super::error::KrylovError;
use super::options::KrylovOptions;
use super::vector::Vector;
use crate::error::LinalgError;

/// Operator given as a function.
pub(super) type OperatorFn<'a, V, E> = &'a mut dyn FnMut(&V) -> Result<V, E>;

/// Operator within a method.
pub(super) struct Operator<'a, V, E> {
    map: OperatorFn<'a, V, E>,
    pub(super) op: &'static str,
    most: usize,
    pub(super) applications: usize,
}

/// Converts an error of a method to the error type of the caller.
pub(super) fn failed<V: Vector, E: From<V::Error>>(error: impl Into<LinalgError>) -> E {
    V::Error::from(error.into()).into()
}

impl<'a, V: Vector, E: From<V::Error>> Operator<'a, V, E> {
    pub(super) fn new(
        op: &'static str,
        map: OperatorFn<'a, V, E>,
        options: &KrylovOptions,
    ) -> Self {
        Self { map, op, most: options.max_applications, applications: 0 }
    }

    /// True if the maximum number of applications is reached.
    pub(super) fn exhausted(&self) -> bool {
        self.applications >= self.most
    }

    /// `A x` and its norm; an error if the norm is not finite.
    pub(super) fn apply(&mut self, x: &V) -> Result<(V, f64), E> {
        let y = (self.map)(x)?;
        self.applications += 1;
        let norm = self.finite("an image of the operator", &y)?;
        Ok((y, norm))
    }

    /// Norm of a vector; an error if it is not finite.
    pub(super) fn finite(&self, what: &'static str, x: &V) -> Result<f64, E> {
        let norm = x.norm()?;
        if norm.is_finite() {
            return Ok(norm);
        }
        let (op, applications) = (self.op, self.applications);
        Err(self.failed(KrylovError::NonFinite { op, what, norm, applications }))
    }

    pub(super) fn failed(&self, error: impl Into<LinalgError>) -> E {
        failed::<V, E>(error)
    }
}
