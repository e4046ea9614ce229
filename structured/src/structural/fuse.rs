//! Fusion of neighbouring legs, and splitting of fused legs.

use std::ops::Range;
use std::sync::Arc;

use super::signs::{Parities, reverses};
use super::{Planned, planned};
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg};
use crate::operation::Rearrange;
use crate::plan::{MoveAxis, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector> Spec<S> {
    /// Fuses neighbouring legs into one of this direction; it is a row if the first of them is. An incoming fused leg
    /// has a sign −1 for each odd outgoing leg and where the reversal of the odd legs is an odd permutation. Fusing
    /// both sides of a contraction then leaves its value unchanged.
    ///
    /// # Errors
    /// `MoveAxis`, `ChargeOverflow`, `TooLarge`.
    pub fn fuse(&self, axes: Range<usize>, direction: Direction) -> Result<(Self, Rearrange)> {
        let (op, rank) = ("fuse", self.legs().len());
        if axes.start >= axes.end || axes.end > rank {
            return Err(StructuredError::Axis { op, axis: axes.end.max(axes.start), rank });
        }
        let inward = u32::from(direction == Direction::In);
        let arguments = [axes.start as u32, axes.end as u32, inward].into_iter().collect();
        planned(op, self, arguments, || {
            let fused = Leg::fused(&self.legs()[axes.clone()], direction)?;
            let mut legs = self.legs().to_vec();
            legs.splice(axes.clone(), [fused]);
            let rows = match self.rows() {
                rows if rows >= axes.end => rows - (axes.len() - 1),
                rows if rows > axes.start => axes.start + 1,
                rows => rows,
            };
            let to = Spec::new(legs, self.flux(), rows)?;
            fused_into(self, to, &axes)
        })
    }

    /// Replaces a fused leg by the legs it was fused from; all of them are rows if it was.
    ///
    /// # Errors
    /// `MoveAxis`, `NotFused`.
    pub fn split(&self, axis: usize) -> Result<(Self, Rearrange)> {
        let (op, rank) = ("split", self.legs().len());
        let leg = self.legs().get(axis).ok_or(StructuredError::Axis { op, axis, rank })?;
        let parts = leg.fusion().ok_or(StructuredError::NotFused { op, axis })?;
        planned(op, self, [axis as u32].into_iter().collect(), || {
            let mut legs = self.legs().to_vec();
            legs.splice(axis..=axis, parts.iter().cloned());
            let rows = match self.rows() > axis {
                true => self.rows() + parts.len() - 1,
                false => self.rows(),
            };
            let from = Spec::new(legs, self.flux(), rows)?;
            let (_, plan) = fused_into(&from, self.clone(), &(axis..axis + parts.len()))?;
            Ok((from, plan.adjoint()))
        })
    }
}

/// Map of the blocks of `from` to those of `to`, in which `axes` are fused.
fn fused_into<S: Sector>(from: &Spec<S>, to: Spec<S>, axes: &Range<usize>) -> Result<Planned<S>> {
    let op = "fuse";
    let (legs, at) = (from.legs(), axes.start);
    let fused = &to.legs()[at];
    let odd = Parities::new(from);
    let inward = fused.direction() == Direction::In;
    let outward: Vec<usize> =
        axes.clone().filter(|&axis| legs[axis].direction() == Direction::Out).collect();
    let mut build = RearrangementBuilder::new(from.len(), to.len());
    for block in from.blocks() {
        let row = fused.fused_row(&block.places[axes.clone()], op)?;
        let Some((place, start)) = row else {
            return Err(StructuredError::NotFused { op, axis: at });
        };
        let mut places = block.places.clone();
        places.drain(axes.clone());
        places.insert(at, place);
        let Some(target) = to.block(&places) else {
            return Err(StructuredError::NotFused { op, axis: at });
        };
        let negative = inward
            && (reverses(odd.count(block.places(), axes.clone()))
                != (odd.count(block.places(), outward.iter().copied()) % 2 == 1));
        // Within the fused axis, the states of a sector tuple are in row-major order.
        let mut strides = target.strides.clone();
        let mut stride = strides.remove(at);
        let offset = target.offset + start * stride;
        for axis in axes.clone().rev() {
            strides.insert(at, stride);
            stride *= block.shape[axis];
        }
        let axis =
            |k: usize| MoveAxis { size: block.shape[k], from: block.strides[k], to: strides[k] };
        build.push(block.offset, offset, negative, (0..legs.len()).map(axis));
    }
    Ok((to, Arc::new(build.finish(true, true))))
}
