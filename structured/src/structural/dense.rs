//! Dense buffers: states of a leg by ascending sectors, axes in row-major order.

use std::sync::Arc;

use super::{PlanArguments, planned};
use crate::error::{Result, StructuredError};
use crate::leg::{Leg, MOST_ELEMENTS};
use crate::operation::Rearrange;
use crate::plan::{MoveAxis, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector> Spec<S> {
    /// Map to the dense buffer; forbidden entries are 0. The adjoint drops the forbidden entries.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn to_dense(&self) -> Result<Rearrange> {
        let op = "to_dense";
        let shape = self.shape();
        let size = shape.iter().try_fold(1usize, |n, &dim| n.checked_mul(dim));
        let limit = MOST_ELEMENTS;
        let size = size.filter(|&n| n <= limit).ok_or(StructuredError::TooLarge {
            op,
            what: "elements",
            limit,
        })?;
        let (_, plan) = planned(op, self, PlanArguments::new(), || {
            let strides = row_major(&shape);
            let starts: Vec<Vec<usize>> = self.legs().iter().map(Leg::starts).collect();
            let mut build = RearrangementBuilder::new(self.len(), size);
            for block in self.blocks() {
                let first = |(k, &place): (usize, &u32)| starts[k][place as usize] * strides[k];
                let to = block.places.iter().enumerate().map(first).sum();
                let axis = |k: usize| MoveAxis {
                    size: block.shape[k],
                    from: block.strides[k],
                    to: strides[k],
                };
                build.push(block.offset, to, false, (0..shape.len()).map(axis));
            }
            Ok((self.clone(), Arc::new(build.finish(true, true))))
        })?;
        Ok(plan)
    }
}

fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

/// First entry of a dense buffer that the symmetry forbids and that exceeds the tolerance.
pub(crate) fn uncovered<S: Sector>(
    spec: &Spec<S>,
    dense: &Rearrange,
    elements: &[f64],
    tolerance: f64,
) -> Result<()> {
    let op = "from_dense";
    let mut allowed = vec![false; elements.len()];
    dense.plan.pairs().for_each(|(_, to, _)| allowed[to] = true);
    // NaN exceeds every tolerance.
    let exceeds = |x: f64| x.is_nan() || x.abs() > tolerance;
    let found = elements.iter().zip(&allowed).position(|(&x, &allowed)| !allowed && exceeds(x));
    let Some(position) = found else { return Ok(()) };
    let (shape, mut rest) = (spec.shape(), position);
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = rest % shape[axis];
        rest /= shape[axis];
    }
    let (mut charge, mut sectors) = (Some(S::TRIVIAL), Vec::new());
    for (leg, &i) in spec.legs().iter().zip(&index) {
        let place = leg.starts().partition_point(|&start| start <= i) - 1;
        sectors.push(leg.sectors()[place].0.to_string());
        charge = charge.and_then(|charge| charge.fuse(leg.charge(place, op).ok()?));
    }
    Err(StructuredError::FluxViolation {
        op,
        index,
        value: elements[position],
        sectors: format!("({})", sectors.join("; ")),
        given: charge.map_or_else(|| "beyond the range of its type".into(), |q| q.to_string()),
        required: spec.flux().to_string(),
    })
}
