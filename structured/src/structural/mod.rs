//! What happens to structures: each operation gives the structure of its result and the plan on the
//! buffers. Fermionic signs are in the plans.
//!
//! ```text
//! signs      parities of blocks, inversions, reversal
//! permute    permute, other rows, conj, dagger, twist, flip
//! fuse       fuse and split
//! trace      pairs of legs of one tensor
//! contract   legs of two tensors
//! restrict   leading states of a leg, blocks, maps as matrices
//! dense      to and from dense buffers
//! ```
//!
//! A tensor is an ordered product of its legs, and two odd legs change sign when they are exchanged.
//! Reference: the rules are those of symmray, ITensors and TensorKit, which agree.

mod contract;
mod dense;
mod fuse;
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
use crate::plan::{Axis, Builder, Rearrangement};
use crate::sector::Sector;
use crate::spec::{Block, Spec};

/// What a plan follows from, besides the structures.
pub(crate) type Arguments = SmallVec<[u32; 12]>;

/// The structure of a result, and how its buffer follows from that of the operand.
type Planned<S> = (Spec<S>, Arc<Rearrangement>);

/// The plan of an operation on one structure, made once.
fn planned<S: Sector>(
    op: &'static str,
    spec: &Spec<S>,
    arguments: Arguments,
    make: impl FnOnce() -> Result<Planned<S>>,
) -> Result<(Spec<S>, Rearrange)> {
    let weight = |planned: &Planned<S>| 2 * planned.1.bytes();
    let planned = cached((op, spec.id(), arguments), weight, |_| make())?;
    Ok((planned.0.clone(), Rearrange { plan: planned.1.clone() }))
}

/// Axes of a tensor, each named once at most.
fn check_axes(op: &'static str, rank: usize, axes: &[usize]) -> Result<()> {
    for (i, &axis) in axes.iter().enumerate() {
        if axis >= rank || axes[..i].contains(&axis) {
            return Err(StructuredError::Axis { op, axis, rank });
        }
    }
    Ok(())
}

/// Every block of x goes to the block of `to` whose axis `k` is axis `axes[k]` of x.
fn permuted<S: Sector>(
    from: &Spec<S>,
    to: &Spec<S>,
    axes: &[usize],
    negative: impl Fn(&Block) -> bool,
) -> Rearrangement {
    let mut build = Builder::new(from.len(), to.len());
    for block in to.blocks() {
        // Blocks of the result are visited in their order: writes go forward.
        let mut places = SmallVec::<[u32; 6]>::from_elem(0, axes.len());
        for (k, &axis) in axes.iter().enumerate() {
            places[axis] = block.places[k];
        }
        if let Some(source) = from.block(&places) {
            let axis = |(k, &axis): (usize, &usize)| Axis {
                size: block.shape[k],
                from: source.strides[axis],
                to: block.strides[k],
            };
            let moved = axes.iter().enumerate().map(axis);
            build.push(source.offset, block.offset, negative(source), moved);
        }
    }
    build.finish(true, true)
}
