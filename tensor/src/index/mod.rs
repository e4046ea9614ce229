//! Indexing by index tensors, masks and regions.
//!
//! ```text
//! take      gather, index_select              read where an index says
//! put       scatter, index_scatter            combine where an index says
//! nd        gather_nd, scatter_nd             index tuples: one axis fused from several
//! mask      mask_where, mask_fill             a value where a mask holds
//! nonzero   the indices at which a tensor is not 0
//! assign    slice_assign, cat, repeat         regions of strided memory
//! indices   reads indices of any integer type in checked blocks
//! tiles     walks the fused axes of the operands
//! ```
//!
//! An index out of range is an error before an operand is written. Indices may have any integer type and any strides: a
//! repeated index is a view with stride 0. Data movement is compiled per element size.

mod assign;
mod indices;
mod mask;
mod nd;
mod nonzero;
mod put;
mod take;
mod tiles;

pub use assign::{Span, cat, repeat, slice_assign};
pub use mask::{mask_fill, mask_where};
pub use nd::{gather_nd, scatter_nd};
pub use nonzero::nonzero;
pub use put::{Assign, Reduction, index_scatter, scatter};
pub use take::{gather, index_select};

pub(crate) use indices::IndexTensor;
pub(crate) use nd::{gather_nd_at, scatter_nd_at};
pub(crate) use nonzero::{nonzero_of, truths};
pub(crate) use put::{Put, TypedPut, index_scatter_at, scatter_at};
pub(crate) use take::{gather_at, select_at};

use crate::error::{Result, TensorError};
use crate::route::{Path, Route};

const ROUTE: Route = Route::native(Path::LoopIndex);

/// Checks that two shapes agree except at one axis.
fn along_axis(op: &'static str, x: &[usize], axis: usize, index: &[usize]) -> Result<()> {
    let agree = x.len() == index.len()
        && x.iter().zip(index).enumerate().all(|(a, (x, index))| a == axis || x == index);
    if agree {
        return Ok(());
    }
    Err(TensorError::shapes(op, x, index, "an index with equal sizes except along the axis"))
}

/// Runs the body with `SIZE` bound to the size of an element in bytes, or to 0 for an odd one.
macro_rules! sized {
    ($size:expr, $name:ident => $body:expr) => {
        match $size {
            1 => {
                const $name: usize = 1;
                $body
            }
            2 => {
                const $name: usize = 2;
                $body
            }
            4 => {
                const $name: usize = 4;
                $body
            }
            8 => {
                const $name: usize = 8;
                $body
            }
            16 => {
                const $name: usize = 16;
                $body
            }
            _ => {
                const $name: usize = 0;
                $body
            }
        }
    };
}
use sized;

#[cfg(test)]
mod tests;
