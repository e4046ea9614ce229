//! Operations on structures: each returns the structure of its result and the plan for the buffers, including
//! fermionic signs.
//!
//! ```text
//! signs      parities of blocks, inversions, reversal
//! permute    permute, repartition, conj, dagger, twist, flip
//! fuse       fuse and split
//! trace      traces over pairs of legs
//! contract   contraction of two tensors
//! restrict   leading states of a leg, blocks, values on a leg, maps as matrices
//! network    einsum: several contractions as one operation
//! compose    tensors from blocks, direct sums
//! coarsen    other charges of the same states
//! dense      conversion to and from dense buffers
//! ```
//!
//! A tensor is an ordered product of its legs, and the exchange of two odd legs changes the sign. The sign rules are
//! those of symmray, ITensors and TensorKit, which agree.

mod coarsen;
mod compose;
mod contract;
mod dense;
mod fuse;
mod network;
mod permute;
mod restrict;
mod signs;
mod trace;

pub(crate) use dense::uncovered;
pub(crate) use restrict::leading;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::operation::Rearrange;
use crate::plan::{MoveAxis, Rearrangement, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::{BlockDims, Spec, strides_in};

/// Arguments that determine a plan, besides the structures.
pub(crate) type PlanArguments = SmallVec<[u32; 12]>;

/// Structure of a result, and the map from the buffer of the operand to its buffer.
type Planned<S> = (Spec<S>, Arc<Rearrangement>);

/// Cached plan of an operation on one structure.
fn planned<S: Sector>(
    op: &'static str,
    spec: &Spec<S>,
    arguments: PlanArguments,
    make: impl FnOnce() -> Result<Planned<S>>,
) -> Result<(Spec<S>, Rearrange)> {
    let weight = |planned: &Planned<S>| 2 * planned.1.bytes();
    let planned = cached((op, spec.id(), arguments), weight, |_| make())?;
    Ok((planned.0.clone(), Rearrange { plan: planned.1.clone() }))
}

/// Checks that axes are in range and not repeated.
pub(crate) fn check_axes(op: &'static str, rank: usize, axes: &[usize]) -> Result<()> {
    for (i, &axis) in axes.iter().enumerate() {
        if axis >= rank || axes[..i].contains(&axis) {
            return Err(StructuredError::Axis { op, axis, rank });
        }
    }
    Ok(())
}

/// Maps every block of x to the block of `to` whose axis `k` is axis `axes[k]` of x. `negative` returns true for the
/// sector indices of a block of x whose sign changes.
///
/// Cost: some tens of nanoseconds per block, which dominates the cost of a new plan. Blocks are located by the
/// indices of their row and column tuples, without a list of all blocks.
fn permuted<S: Sector>(
    from: &Spec<S>,
    to: &Spec<S>,
    axes: &[usize],
    negative: impl Fn(&[u32]) -> bool,
) -> Rearrangement {
    let rank = axes.len();
    let mut build = RearrangementBuilder::new(from.len(), to.len());
    let mut places = SmallVec::<[u32; 6]>::from_elem(0, rank);
    let [mut shape, mut own, mut shape_of_x, mut of_x] =
        [(); 4].map(|()| BlockDims::from_elem(0, rank));
    for matrix in to.matrices() {
        for row in to.rows_of(matrix) {
            // Blocks of the result are visited in storage order, so that writes are sequential.
            for col in to.cols_of(matrix) {
                for (k, &place) in row.places.iter().chain(&col.places).enumerate() {
                    shape[k] = to.legs()[k].sectors()[place as usize].1;
                    places[axes[k]] = place;
                    shape_of_x[axes[k]] = shape[k];
                }
                let Some((start, width)) = from.place(places.iter().copied()) else { continue };
                strides_in(&shape, to.rows(), matrix.cols, &mut own);
                strides_in(&shape_of_x, from.rows(), width, &mut of_x);
                let axis = |k: usize| MoveAxis { size: shape[k], from: of_x[axes[k]], to: own[k] };
                let offset = matrix.offset + row.start * matrix.cols + col.start;
                build.push(start, offset, negative(&places), (0..rank).map(axis));
            }
        }
    }
    build.finish(true, true)
}
