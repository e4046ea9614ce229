//! Structures composed of blocks, and direct sums of tensors.

use std::sync::Arc;

use smallvec::SmallVec;

use super::check_axes;
use crate::error::{Result, StructuredError};
use crate::leg::Leg;
use crate::operation::Rearrange;
use crate::plan::{MoveAxis, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::{BlockDims, SectorBlock, Spec};
use crate::tuples::SectorIndices;

impl<S: Sector> Spec<S> {
    /// Block with one given sector per leg.
    ///
    /// # Errors
    /// `Rank`; `Invalid` for a sector that its leg does not have; `Flux` for a block that the symmetry forbids.
    pub fn block_of(&self, op: &'static str, sectors: &[S]) -> Result<&SectorBlock> {
        let (required, given) = (self.legs().len(), sectors.len());
        if required != given {
            return Err(StructuredError::Rank { op, required, given });
        }
        let mut places = SectorIndices::new();
        for (axis, (leg, &sector)) in self.legs().iter().zip(sectors).enumerate() {
            places.push(leg.place_of(op, axis, sector)? as u32);
        }
        let forbidden = || {
            let names: Vec<String> = sectors.iter().map(|sector| sector.to_string()).collect();
            let flux = format!("of the block in sectors ({})", names.join("; "));
            StructuredError::Flux { op, flux, required: self.flux().to_string() }
        };
        self.block(&places).ok_or_else(forbidden)
    }

    /// Map from consecutive row-major blocks to the buffer; all other entries are 0.
    ///
    /// # Errors
    /// As [`Spec::block_of`]; `DuplicateBlock`.
    pub(crate) fn assemble(&self, op: &'static str, sectors: &[&[S]]) -> Result<Rearrange> {
        let blocks: Vec<&SectorBlock> =
            sectors.iter().map(|&own| self.block_of(op, own)).collect::<Result<_>>()?;
        let mut offsets: Vec<(usize, usize)> =
            blocks.iter().enumerate().map(|(k, block)| (block.offset, k)).collect();
        offsets.sort_unstable();
        if let Some(pair) = offsets.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let block = blocks[pair[0].1].places.to_vec();
            return Err(StructuredError::DuplicateBlock { op, block });
        }
        let volume = |block: &&SectorBlock| block.shape.iter().product::<usize>();
        let mut build = RearrangementBuilder::new(blocks.iter().map(volume).sum(), self.len());
        let mut start = 0;
        for block in blocks {
            build.push(start, block.offset, false, row_major(block));
            start += volume(&block);
        }
        Ok(Rearrange { plan: Arc::new(build.finish(true, true)) })
    }

    /// Direct sum along `axes`: the legs of these axes are concatenated, all others are equal. The operand of the
    /// plan is the concatenation of the buffers of the terms.
    ///
    /// # Errors
    /// `Invalid` for no term; `Rank`, `MoveAxis`, `LegMismatch`, `Flux`.
    pub fn direct_sum(terms: &[&Self], axes: &[usize]) -> Result<(Self, Rearrange)> {
        let op = "direct_sum";
        let Some(first) = terms.first() else {
            let message = "at least one tensor is required".into();
            return Err(StructuredError::Invalid { op, message });
        };
        check_axes(op, first.legs().len(), axes)?;
        for term in terms {
            first.check_term(op, term, axes)?;
        }
        let mut legs = first.legs().to_vec();
        // For each term and axis, the first of its states in each sector.
        let mut starts: Vec<SmallVec<[Option<Vec<usize>>; 6]>> =
            vec![SmallVec::from_elem(None, legs.len()); terms.len()];
        for &axis in axes {
            let own: Vec<&Leg<S>> = terms.iter().map(|term| &term.legs()[axis]).collect();
            let stacked = Leg::stacked(&own)?;
            legs[axis] = stacked.leg;
            for (starts, own) in starts.iter_mut().zip(stacked.starts) {
                starts[axis] = Some(own);
            }
        }
        let to = Self::new(legs, first.flux(), first.rows())?;
        let mut build =
            RearrangementBuilder::new(terms.iter().map(|term| term.len()).sum(), to.len());
        let mut before = 0;
        for (term, starts) in terms.iter().zip(&starts) {
            for block in term.blocks() {
                let mut places = SectorIndices::new();
                for (axis, &place) in block.places.iter().enumerate() {
                    let sector = term.legs()[axis].sectors()[place as usize].0;
                    places.push(to.legs()[axis].place_of(op, axis, sector)? as u32);
                }
                let Some(target) = to.block(&places) else { continue };
                let mut offset = target.offset;
                for (axis, starts) in starts.iter().enumerate() {
                    if let Some(starts) = starts {
                        offset += starts[block.places[axis] as usize] * target.strides[axis];
                    }
                }
                build.push(before + block.offset, offset, false, block.axes_to(target));
            }
            before += term.len();
        }
        // Without concatenated legs the terms overlap and are added.
        let disjoint = !axes.is_empty() || terms.len() == 1;
        Ok((to, Rearrange { plan: Arc::new(build.finish(disjoint, true)) }))
    }

    /// Checks that a term has the same flux and, apart from `axes`, the same legs as `self`.
    fn check_term(&self, op: &'static str, term: &Self, axes: &[usize]) -> Result<()> {
        let (required, given) = (self.legs().len(), term.legs().len());
        if required != given {
            return Err(StructuredError::Rank { op, required, given });
        }
        if self.flux() != term.flux() {
            let (required, flux) = (self.flux().to_string(), term.flux().to_string());
            return Err(StructuredError::Flux { op, flux, required });
        }
        for (axis, (lhs, rhs)) in self.legs().iter().zip(term.legs()).enumerate() {
            if !axes.contains(&axis) && lhs != rhs {
                let (lhs, rhs) = (lhs.to_string(), rhs.to_string());
                let required = "equal legs where none are stacked";
                return Err(StructuredError::LegMismatch {
                    op,
                    axis,
                    lhs,
                    other: axis,
                    rhs,
                    required,
                });
            }
        }
        Ok(())
    }
}

/// Axes of a move from a row-major array to a block.
fn row_major(block: &SectorBlock) -> impl Iterator<Item = MoveAxis> {
    let mut strides = BlockDims::from_elem(1, block.shape.len());
    let mut stride = 1;
    for (own, &size) in strides.iter_mut().zip(&block.shape).rev() {
        *own = stride;
        stride *= size;
    }
    let axis = |((&size, &from), &to): ((&usize, &usize), &usize)| MoveAxis { size, from, to };
    let axes: MoveAxes = block.shape.iter().zip(&strides).zip(&block.strides).map(axis).collect();
    axes.into_iter()
}

type MoveAxes = SmallVec<[MoveAxis; 6]>;
