//! Permutations of legs, and changes of legs in place.

use std::sync::Arc;

use super::signs::{Parities, reverses};
use super::{PlanArguments, check_axes, permuted, planned};
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, inverse};
use crate::operation::Rearrange;
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector> Spec<S> {
    /// Permutation of the legs: leg `k` of the result is leg `axes[k]`; the first `rows` of them are rows. Each
    /// exchange of two odd legs gives a factor −1.
    ///
    /// # Errors
    /// `Rank`, `MoveAxis`, `Rows`.
    pub fn permute(&self, axes: &[usize], rows: usize) -> Result<(Self, Rearrange)> {
        let (op, rank) = ("permute", self.legs().len());
        if axes.len() != rank {
            return Err(StructuredError::Rank { op, required: rank, given: axes.len() });
        }
        check_axes(op, rank, axes)?;
        let arguments = axes.iter().chain([&rows]).map(|&x| x as u32).collect();
        planned(op, self, arguments, || {
            let legs = axes.iter().map(|&axis| self.legs()[axis].clone()).collect();
            let to = Spec::new(legs, self.flux(), rows)?;
            let odd = Parities::new(self);
            let plan = permuted(self, &to, axes, |block| odd.inverts(block, axes));
            Ok((to, Arc::new(plan)))
        })
    }

    /// Same tensor with another number of row legs.
    ///
    /// # Errors
    /// `Rows`.
    pub fn repartition(&self, rows: usize) -> Result<(Self, Rearrange)> {
        self.permute(&(0..self.legs().len()).collect::<Vec<_>>(), rows)
    }

    /// Factor −1 for each odd sector on these axes (parity of the legs).
    ///
    /// # Errors
    /// `MoveAxis`.
    pub fn twist(&self, axes: &[usize]) -> Result<(Self, Rearrange)> {
        let (op, rank) = ("twist", self.legs().len());
        check_axes(op, rank, axes)?;
        planned(op, self, axes.iter().map(|&x| x as u32).collect(), || {
            let odd = Parities::new(self);
            let all: Vec<usize> = (0..rank).collect();
            let negative = |block: &[u32]| odd.count(block, axes.iter().copied()) % 2 == 1;
            Ok((self.clone(), Arc::new(permuted(self, self, &all, negative))))
        })
    }

    /// Structure of the complex conjugate: dual legs in the same order, with a factor −1 where the reversal of the
    /// odd legs is an odd permutation. The caller conjugates the entries.
    ///
    /// # Errors
    /// `ChargeOverflow`.
    pub fn conj(&self) -> Result<(Self, Rearrange)> {
        let op = "conj";
        planned(op, self, PlanArguments::new(), || {
            let legs: Vec<_> = self.legs().iter().map(|leg| leg.dual()).collect();
            let to = Spec::new(legs, inverse(self.flux(), op)?, self.rows())?;
            let odd = Parities::new(self);
            let all: Vec<usize> = (0..self.legs().len()).collect();
            let negative = |block: &[u32]| reverses(odd.count(block, all.iter().copied()));
            let plan = permuted(self, &to, &all, negative);
            Ok((to, Arc::new(plan)))
        })
    }

    /// Structure of the adjoint: dual legs in reverse order; rows become columns. No sign. The caller conjugates the
    /// entries.
    ///
    /// # Errors
    /// `ChargeOverflow`.
    pub fn dagger(&self) -> Result<(Self, Rearrange)> {
        let op = "dagger";
        planned(op, self, PlanArguments::new(), || {
            let legs: Vec<_> = self.legs().iter().rev().map(|leg| leg.dual()).collect();
            let rank = legs.len();
            let to = Spec::new(legs, inverse(self.flux(), op)?, rank - self.rows())?;
            let reversed: Vec<usize> = (0..rank).rev().collect();
            let plan = permuted(self, &to, &reversed, |_| false);
            Ok((to, Arc::new(plan)))
        })
    }

    /// Reverses a leg: opposite direction, inverse sectors, and a factor −1 for odd sectors of an outgoing leg.
    /// Flipping both legs of a contraction leaves its value unchanged.
    ///
    /// # Errors
    /// `MoveAxis`, `ChargeOverflow`.
    pub fn flip(&self, axis: usize) -> Result<(Self, Rearrange)> {
        let op = "flip";
        check_axes(op, self.legs().len(), &[axis])?;
        planned(op, self, [axis as u32].into_iter().collect(), || {
            let leg = &self.legs()[axis];
            let mut legs = self.legs().to_vec();
            legs[axis] = leg.flipped()?;
            let to = Spec::new(legs, self.flux(), self.rows())?;
            let odd = Parities::new(self);
            let twisted = leg.direction() == Direction::Out;
            let mut build = crate::plan::RearrangementBuilder::new(self.len(), to.len());
            for block in self.blocks() {
                let mut places = block.places.clone();
                let sector = inverse(leg.sectors()[places[axis] as usize].0, op)?;
                let place = to.legs()[axis].place(sector);
                let Some(place) = place else { continue };
                places[axis] = place as u32;
                if let Some(target) = to.block(&places) {
                    let negative = twisted && odd.is_odd(block.places(), axis);
                    build.push(block.offset, target.offset, negative, block.axes_to(target));
                }
            }
            Ok((to, Arc::new(build.finish(true, true))))
        })
    }
}
