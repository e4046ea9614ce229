//! What is done to flat buffers, whatever the sectors: plans hold places and strides only, so that one
//! serves every symmetry and element type, and is data.
//!
//! ```text
//! rearrangement   linear maps that move blocks, with signs: permute, fuse, trace, dense conversion
//! products        matrix products of parts of two buffers into parts of a third
//! contraction     rearrange both operands, multiply, rearrange the result; closed under its own adjoint
//! ```

mod contraction;
mod products;
mod rearrangement;

pub use contraction::Contraction;
pub(crate) use products::Group;
pub use products::{Products, View};
pub use rearrangement::Rearrangement;
pub(crate) use rearrangement::{Axis, Builder, Move};
