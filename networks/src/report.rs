//! Reports of algorithms after each sweep or step.

use std::ops::ControlFlow;

use crate::error::{NetworksError, Result};

/// A sweep of a search, or a step of an evolution.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Number of sweeps or steps so far, this one included.
    pub step: usize,
    /// The energy after it. For evolutions the expectation value of the operator, where it is known.
    pub energy: f64,
    /// The largest sum of squares of singular values dropped at one bond.
    pub truncation: f64,
    /// The largest number of states of a bond.
    pub bond_dim: usize,
    /// Wall-clock time of it.
    pub seconds: f64,
}

/// The answer of a callback: `Continue(())` or `Break(())`, or an error of its own, [`NetworksError::callback`].
pub type Flow = Result<ControlFlow<()>>;

impl NetworksError {
    /// The error of a callback, with its text.
    pub fn callback(error: impl std::fmt::Display) -> Self {
        Self::Callback { op: "callback", message: error.to_string() }
    }
}

/// So many steps, after each of which the callback decides whether to go on; the report of the last one.
pub(crate) fn run(
    op: &'static str,
    steps: usize,
    mut callback: impl FnMut(&Report) -> Flow,
    mut step: impl FnMut() -> Result<Report>,
) -> Result<Report> {
    let mut report = Report::before(op, steps)?;
    for _ in 0..steps {
        report = step()?;
        if callback(&report)?.is_break() {
            break;
        }
    }
    Ok(report)
}

impl Report {
    /// The report before the first of a number of steps.
    fn before(op: &'static str, steps: usize) -> Result<Self> {
        if steps == 0 {
            let (name, given) = ("the number of steps", "0".into());
            return Err(NetworksError::Argument { op, name, given, required: "at least 1" });
        }
        Ok(Self { step: 0, energy: f64::NAN, truncation: 0.0, bond_dim: 0, seconds: 0.0 })
    }
}
