//! Operations on flat buffers, independent of symmetries. Plans contain offsets and strides only; one plan serves
//! every element type and can be serialised.
//!
//! ```text
//! rearrangement   linear maps that move blocks, with signs: permute, fuse, trace, dense conversion
//! products        matrix products of parts of two buffers into parts of a third
//! contraction     rearrange both operands, multiply, rearrange the result; closed under adjoints
//! sequence        several rearrangements and contractions; each uses results of earlier ones
//! panels          division of a contraction into cache-sized panels
//! matrices        a buffer of matrices for operations on each matrix
//! ```

mod contraction;
mod matrices;
mod panels;
mod products;
mod rearrangement;
mod sequence;

pub use contraction::ContractionPlan;
pub use matrices::MatrixList;
pub(crate) use panels::{ContractionPanels, PanelDimension, SHORT, along};
pub(crate) use products::TermGroup;
pub use products::{MatrixView, Products};
pub use rearrangement::Rearrangement;
pub(crate) use rearrangement::{BlockMove, MoveAxis, RearrangementBuilder};
pub use sequence::{SequencePlan, SequenceStep};
