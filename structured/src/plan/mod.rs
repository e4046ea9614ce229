//! What is done to flat buffers, whatever the sectors: plans hold places and strides only, so that one
//! serves every symmetry and element type, and is data.
//!
//! ```text
//! rearrangement   linear maps that move blocks, with signs: permute, fuse, trace, dense conversion
//! products        matrix products of parts of two buffers into parts of a third
//! contraction     rearrange both operands, multiply, rearrange the result; closed under its own adjoint
//! sequence        several of these, each of the results of the ones before
//! panels          a contraction in parts that lie in a cache
//! matrices        a buffer of matrices, on each of which something is computed
//! ```

mod contraction;
mod matrices;
mod panels;
mod products;
mod rearrangement;
mod sequence;

pub use contraction::Contraction;
pub use matrices::MatrixList;
pub(crate) use panels::{Along, Panels, SHORT, along};
pub(crate) use products::Group;
pub use products::{Products, View};
pub use rearrangement::Rearrangement;
pub(crate) use rearrangement::{Axis, Builder, Move};
pub use sequence::{Sequence, SequenceStep};
