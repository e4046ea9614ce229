//! Properties of an elementwise operation apart from its kernel, and the shape of its result.

use crate::error::Result;
use crate::layout::{Dims, broadcast_shapes};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Maximum number of elements of row-major operands that skip the loop over axes: its set-up would cost more than the
/// arithmetic (bench `backend`, row `add 4×4`).
pub(crate) const SMALL: usize = 4096;

/// Properties of an elementwise operation apart from its kernel. Entry 0 of each array is the result.
pub(super) struct ElementwiseSpec<const M: usize> {
    pub(super) op: &'static str,
    pub(super) cost: usize,
    /// Bytes per element.
    pub(super) sizes: [usize; M],
    /// True if the element type is that of the result.
    pub(super) same_type: [bool; M],
    /// True if the body can overwrite the run of the operand.
    pub(super) in_place: [bool; M],
    /// True if the kernel computes in a wider type than the elements'.
    pub(super) promotes: bool,
}

impl<const M: usize> ElementwiseSpec<M> {
    /// The route of a result, given the path of its operands: long runs or gathered.
    pub(super) fn route(&self, path: Path) -> Route {
        Route::promoted(path, self.promotes)
    }
}

/// The common shape of the operands.
pub(super) fn broadcast<const M: usize>(
    op: &'static str,
    operands: &[Option<Tensor<()>>; M],
) -> Result<Dims> {
    let mut shape = Dims::new();
    for (i, x) in operands.iter().flatten().enumerate() {
        let given = x.layout().shape();
        shape = if i == 0 { Dims::from_slice(given) } else { broadcast_shapes(op, &shape, given)? };
    }
    Ok(shape)
}
