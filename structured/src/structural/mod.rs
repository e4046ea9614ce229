//! Operations on structures: each returns the structure of its result and the plan for the buffers, including
//! fermionic signs.
//!
//! ```text
//! signs      parities of blocks, inversions, reversal
//! permute    permute, repartition, conj, dagger, twist, flip
//! reorder    rearrangement of blocks by a permutation of legs
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
mod reorder;
mod restrict;
mod signs;
mod trace;

pub(crate) use dense::uncovered;
use reorder::permuted;
pub(crate) use restrict::leading;

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::operation::Rearrange;
use crate::plan::Rearrangement;
use crate::sector::Sector;
use crate::spec::Spec;

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
