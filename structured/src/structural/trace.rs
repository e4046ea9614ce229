//! Traces over pairs of legs of one tensor.

use std::sync::Arc;

use super::signs::Parities;
use super::{PlanArguments, check_axes, planned};
use crate::error::{Result, StructuredError};
use crate::leg::Direction;
use crate::operation::Rearrange;
use crate::plan::{MoveAxis, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector> Spec<S> {
    /// Trace over pairs of mutually dual legs; the free legs keep their order. For fermions it is the supertrace: a
    /// factor −1 on odd sectors if the first leg of a pair is outgoing.
    ///
    /// # Errors
    /// `MoveAxis`, `LegMismatch`.
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<(Self, Rearrange)> {
        let (op, legs) = ("trace", self.legs());
        let paired: Vec<usize> = pairs.iter().flat_map(|&(i, j)| [i, j]).collect();
        check_axes(op, legs.len(), &paired)?;
        for &(axis, other) in pairs {
            if !legs[axis].contracts_with(&legs[other]) {
                return Err(StructuredError::LegMismatch {
                    op,
                    axis,
                    lhs: legs[axis].to_string(),
                    other,
                    rhs: legs[other].to_string(),
                    required: "legs that are dual to each other",
                });
            }
        }
        let arguments: PlanArguments = paired.iter().map(|&axis| axis as u32).collect();
        planned(op, self, arguments, || {
            let free: Vec<usize> = (0..legs.len()).filter(|axis| !paired.contains(axis)).collect();
            let rows = free.iter().filter(|&&axis| axis < self.rows()).count();
            let kept = free.iter().map(|&axis| legs[axis].clone()).collect();
            let to = Spec::new(kept, self.flux(), rows)?;
            let odd = Parities::new(self);
            let order = [free.clone(), paired.clone()].concat();
            let super_: Vec<usize> = pairs
                .iter()
                .map(|&(i, _)| i)
                .filter(|&i| legs[i].direction() == Direction::Out)
                .collect();
            let mut build = RearrangementBuilder::new(self.len(), to.len());
            for block in self.blocks() {
                if pairs.iter().any(|&(i, j)| block.places[i] != block.places[j]) {
                    continue;
                }
                let places: Vec<u32> = free.iter().map(|&axis| block.places[axis]).collect();
                let Some(target) = to.block(&places) else { continue };
                let negative = odd.inverts(block.places(), &order)
                    != (odd.count(block.places(), super_.iter().copied()) % 2 == 1);
                let kept = free.iter().enumerate().map(|(k, &axis)| MoveAxis {
                    size: block.shape[axis],
                    from: block.strides[axis],
                    to: target.strides[k],
                });
                let summed = pairs.iter().map(|&(i, j)| MoveAxis {
                    size: block.shape[i],
                    from: block.strides[i] + block.strides[j],
                    to: 0,
                });
                build.push(block.offset, target.offset, negative, kept.chain(summed));
            }
            Ok((to, Arc::new(build.finish(pairs.is_empty(), true))))
        })
    }
}
