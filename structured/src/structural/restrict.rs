//! Restriction to leading states of a leg, extraction of blocks, column signs.

use std::sync::Arc;

use super::signs::{Parities, reverses};
use super::{PlanArguments, check_axes, permuted, planned};
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg, inverse, product};
use crate::operation::{Rearrange, ScaleBond};
use crate::plan::{MoveAxis, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::{SectorBlock, SectorMatrix, Spec};

/// Leading `dims[k]` values of each sector `k` of a leg.
pub(crate) fn leading<S: Sector>(leg: &Leg<S>, dims: &[usize]) -> Rearrange {
    let starts = leg.starts();
    let mut build = RearrangementBuilder::new(leg.dim(), dims.iter().sum());
    let mut to = 0;
    for (&from, &size) in starts.iter().zip(dims) {
        if size > 0 {
            build.push(from, to, false, [MoveAxis { size, from: 1, to: 1 }].into_iter());
        }
        to += size;
    }
    Rearrange { plan: Arc::new(build.finish(true, true)) }
}

impl<S: Sector> Spec<S> {
    /// Restriction of an axis to the leading `dims[k]` states of sector `k`.
    ///
    /// # Errors
    /// `MoveAxis`; `Invalid` if `dims[k]` exceeds the dimension of the sector.
    pub fn restrict(&self, axis: usize, dims: &[usize]) -> Result<(Self, Rearrange)> {
        let op = "restrict";
        check_axes(op, self.legs().len(), &[axis])?;
        let leg = &self.legs()[axis];
        let all = leg.sectors();
        if dims.len() != all.len() || dims.iter().zip(all).any(|(&dim, &(_, of))| dim > of) {
            let message = format!(
                "dimensions {dims:?} exceed those of the sectors of {leg}, or differ in number"
            );
            return Err(StructuredError::Invalid { op, message });
        }
        // Not cached: the dimensions depend on values.
        let kept = all.iter().zip(dims).filter(|&(_, &dim)| dim > 0);
        let kept = kept.map(|(&(sector, _), &dim)| (sector, dim)).collect();
        let mut legs = self.legs().to_vec();
        legs[axis] = Leg::sorted(kept, leg.direction())?;
        let to = Spec::new(legs, self.flux(), self.rows())?;
        let mut build = RearrangementBuilder::new(self.len(), to.len());
        let rows = self.rows();
        let side = if axis < rows { rows } else { self.legs().len() - rows };
        if side == 1 {
            // The leading rows or columns of each matrix.
            for target in to.matrices() {
                let Some(matrix) = self.matrix(target.charge) else { continue };
                let rows = MoveAxis { size: target.rows, from: matrix.cols, to: target.cols };
                let cols = MoveAxis { size: target.cols, from: 1, to: 1 };
                build.push_sorted(matrix.offset, target.offset, false, [rows, cols].into_iter());
            }
        } else {
            for target in to.blocks() {
                let mut places = target.places.clone();
                let sector = to.legs()[axis].sectors()[places[axis] as usize].0;
                let Some(place) = leg.place(sector) else { continue };
                places[axis] = place as u32;
                if let Some(block) = self.block(&places) {
                    let moved = block.axes_to(target).zip(&target.shape);
                    let moved = moved.map(|(axis, &size)| MoveAxis { size, ..axis });
                    build.push_sorted(block.offset, target.offset, false, moved);
                }
            }
        }
        Ok((to, Rearrange { plan: Arc::new(build.finish(true, true)) }))
    }

    /// Operation that multiplies each entry by the value of its state on one axis.
    ///
    /// # Errors
    /// `MoveAxis`.
    pub fn numbers(&self, axis: usize) -> Result<ScaleBond> {
        let op = "scale_bond";
        check_axes(op, self.legs().len(), &[axis])?;
        let (_, plan) = planned(op, self, [axis as u32].into_iter().collect(), || {
            let starts = self.legs()[axis].starts();
            let mut build = RearrangementBuilder::new(self.legs()[axis].dim(), self.len());
            for block in self.blocks() {
                let moved = (0..block.shape.len()).map(|k| MoveAxis {
                    size: block.shape[k],
                    from: usize::from(k == axis),
                    to: block.strides[k],
                });
                build.push(starts[block.places[axis] as usize], block.offset, false, moved);
            }
            Ok((self.clone(), Arc::new(build.finish(true, false))))
        })?;
        Ok(ScaleBond { plan: plan.plan, complex: false })
    }

    /// Map from the values of the first leg to the diagonals of a map of two legs.
    pub(crate) fn diagonal(&self) -> Rearrange {
        let leg = &self.legs()[0];
        let starts = leg.starts();
        let mut build = RearrangementBuilder::new(leg.dim(), self.len());
        for matrix in self.matrices() {
            for row in self.rows_of(matrix).iter() {
                let axis = MoveAxis { size: row.size, from: 1, to: matrix.cols + 1 };
                let from = starts[row.places[0] as usize];
                build.push(from, matrix.offset, false, [axis].into_iter());
            }
        }
        Rearrange { plan: Arc::new(build.finish(true, true)) }
    }

    /// Elements of a block in row-major order.
    pub(crate) fn extract(&self, block: &SectorBlock) -> Rearrange {
        let mut stride = block.shape.iter().product::<usize>();
        let mut build = RearrangementBuilder::new(self.len(), stride);
        let axis = |(&size, &from): (&usize, &usize)| {
            stride /= size;
            MoveAxis { size, from, to: stride }
        };
        let axes: Vec<MoveAxis> = block.shape.iter().zip(&block.strides).map(axis).collect();
        build.push(block.offset, 0, false, axes.into_iter());
        Rearrange { plan: Arc::new(build.finish(true, true)) }
    }

    /// Multiplies the columns of a map (column legs dual to the row legs, in the same order) by the signs of the
    /// contraction over these legs, so that the matrices multiply as the maps do.
    ///
    /// # Errors
    /// `Rank`, `LegMismatch`, `Flux`.
    pub(crate) fn composition(&self, op: &'static str) -> Result<(Self, Rearrange)> {
        let (rows, legs) = (self.rows(), self.legs());
        if legs.len() != 2 * rows {
            return Err(StructuredError::Rank { op, required: 2 * rows, given: legs.len() });
        }
        for axis in 0..rows {
            if !legs[axis].contracts_with(&legs[rows + axis]) {
                return Err(StructuredError::LegMismatch {
                    op,
                    axis,
                    lhs: legs[axis].to_string(),
                    other: rows + axis,
                    rhs: legs[rows + axis].to_string(),
                    required: "legs that are dual to each other",
                });
            }
        }
        if self.flux() != S::TRIVIAL {
            let (flux, required) = (self.flux().to_string(), S::TRIVIAL.to_string());
            return Err(StructuredError::Flux { op, flux, required });
        }
        self.column_signs()
    }

    /// Signs of the contraction over all column legs, applied to the columns. The operation is its own inverse.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub(crate) fn column_signs(&self) -> Result<(Self, Rearrange)> {
        planned("composition", self, PlanArguments::new(), || {
            let (odd, legs, rows) = (Parities::new(self), self.legs(), self.rows());
            let all: Vec<usize> = (0..legs.len()).collect();
            let out = |axis: &usize| legs[*axis].direction() == Direction::Out;
            let negative = |block: &[u32]| {
                let out = odd.count(block, (rows..legs.len()).filter(out));
                reverses(odd.count(block, rows..legs.len())) != (out % 2 == 1)
            };
            Ok((self.clone(), Arc::new(permuted(self, self, &all, negative))))
        })
    }

    /// Structure of the inverse and of the adjoint: row legs are the duals of the column legs, column legs those of
    /// the row legs, the flux is inverted. Also the order of its matrices in terms of those of this structure.
    ///
    /// # Errors
    /// `ChargeOverflow`.
    pub(crate) fn reversed(&self) -> Result<(Self, Vec<u32>)> {
        let op = "inverse";
        let (above, below) = self.legs().split_at(self.rows());
        let legs = below.iter().chain(above).map(Leg::dual).collect();
        let flux = inverse(self.flux(), op)?;
        let mut charges = Vec::with_capacity(self.matrices().len());
        for (k, matrix) in self.matrices().iter().enumerate() {
            charges.push((product(matrix.charge, flux, op)?, k as u32));
        }
        charges.sort_unstable();
        let order = charges.into_iter().map(|(_, k)| k).collect();
        Ok((Self::new(legs, flux, below.len())?, order))
    }

    /// Map from consecutive square matrices of the given coupled sectors to the buffer of this structure; other
    /// entries are 0.
    pub(crate) fn embed(&self, charges: &[S]) -> Rearrange {
        let found: Vec<_> = charges.iter().filter_map(|&charge| self.matrix(charge)).collect();
        let size = |matrix: &&SectorMatrix<S>| matrix.rows * matrix.cols;
        let mut build = RearrangementBuilder::new(found.iter().map(size).sum(), self.len());
        let mut from = 0;
        for matrix in found {
            let axis = MoveAxis { size: size(&matrix), from: 1, to: 1 };
            build.push(from, matrix.offset, false, [axis].into_iter());
            from += size(&matrix);
        }
        Rearrange { plan: Arc::new(build.finish(true, true)) }
    }
}
