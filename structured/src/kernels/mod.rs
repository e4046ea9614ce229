//! Execution of plans on memory: the only unsafe code of this crate.
//!
//! ```text
//! matrix     one matrix product
//! moves      strided copies of blocks, with signs
//! products   matrix products of coupled sectors
//! panels     copies and products interleaved, in cache-sized panels
//! short      products with two short dimensions
//! ```
//!
//! The constructors of plans check every offset; the length of each buffer is checked against the plan here.

mod matrix;
mod moves;
mod panels;
mod products;
mod short;

use t4a_algebra::{Numeric, Semiring, Standard, c32, c64, parallel};
use t4a_tensor::storage::Buffer;
use t4a_tensor::{AnyTensor, DType, Element, Layout, Tensor, TensorError};

use crate::error::{Result, StructuredError};
use crate::plan::{ContractionPlan, Rearrangement};

/// Uninitialised memory for a result.
struct UninitBuffer<T> {
    buffer: Buffer,
    first: *mut T,
}

impl<T: Element> UninitBuffer<T> {
    fn new(len: usize) -> Result<Self> {
        // The pool rejects sizes beyond the address space, which `saturating_mul` produces on overflow.
        let mut buffer = Buffer::alloc("structured", len.saturating_mul(size_of::<T>()))?;
        // A new buffer has one owner, so a mutable pointer is available.
        let first = buffer.as_mut_ptr().unwrap_or(std::ptr::null_mut()).cast();
        Ok(Self { buffer, first })
    }

    /// # Safety
    /// All `len` elements are written.
    unsafe fn finish(self, op: &'static str, len: usize) -> Result<AnyTensor> {
        let layout = Layout::contiguous(op, &[len], size_of::<T>())?;
        // SAFETY: the elements are written (contract of this function), and the buffer has room for `len` of them.
        Ok(unsafe { Tensor::<T>::from_buffer(self.buffer, layout)? }.into())
    }
}

/// Elements of a flat tensor; checks its length.
fn flat<'a, T: Element>(op: &'static str, x: &'a AnyTensor, required: usize) -> Result<&'a [T]> {
    let slice = x.typed::<T>()?.as_slice().filter(|x| x.len() == required);
    slice.ok_or(StructuredError::LengthMismatch { op, required, given: x.numel() })
}

/// Evaluates an expression for the element type of a tensor, real or complex.
macro_rules! on_fields {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {
        match $dtype {
            DType::F32 => {
                type $t = f32;
                $body
            }
            DType::F64 => {
                type $t = f64;
                $body
            }
            DType::C32 => {
                type $t = c32;
                $body
            }
            DType::C64 => {
                type $t = c64;
                $body
            }
            dtype => Err(unsupported($op, dtype)),
        }
    };
}

pub(crate) fn unsupported(op: &'static str, dtype: DType) -> StructuredError {
    TensorError::DTypeUnsupported { op, dtype, expected: "f32 or f64" }.into()
}

/// `y = R x`.
pub(crate) fn rearrange(
    op: &'static str,
    plan: &Rearrangement,
    x: &AnyTensor,
) -> Result<AnyTensor> {
    fn typed<T: Element + Numeric>(
        op: &'static str,
        plan: &Rearrangement,
        x: &AnyTensor,
    ) -> Result<AnyTensor> {
        let x = flat::<T>(op, x, plan.from_len())?;
        let y = UninitBuffer::<T>::new(plan.to_len())?;
        // SAFETY: the lengths of both buffers are those of the plan.
        unsafe {
            moves::run(plan, x.as_ptr(), y.first, parallel::worthwhile(plan.elements(), 1));
            y.finish(op, plan.to_len())
        }
    }
    let x = x.to_contiguous()?;
    on_fields!(op, x.dtype(), T => typed::<T>(op, plan, &x))
}

/// Contraction of two flat tensors.
pub(crate) fn contract(
    op: &'static str,
    plan: &ContractionPlan,
    x: &AnyTensor,
    y: &AnyTensor,
) -> Result<AnyTensor> {
    fn typed<T: Element + Numeric>(
        op: &'static str,
        plan: &ContractionPlan,
        x: &AnyTensor,
        y: &AnyTensor,
    ) -> Result<AnyTensor>
    where
        Standard: Semiring<T>,
    {
        let [la, lb, lc] = plan.lens();
        let (x, y) = (flat::<T>(op, x, la)?, flat::<T>(op, y, lb)?);
        let z = UninitBuffer::<T>::new(lc)?;
        // One scratch buffer for all operands that are rearranged as a whole.
        let panels = plan.panels();
        let [a, b, c] = [0, 1, 2].map(|operand| {
            let moves = plan.operands().into_iter().chain([plan.result()]).nth(operand).flatten();
            moves.filter(|_| panels.is_none_or(|panels| panels.operand != operand))
        });
        let room = |plan: Option<&Rearrangement>, len: fn(&Rearrangement) -> usize| {
            // Each part starts on a cache line.
            plan.map_or(0, len).next_multiple_of(64 / size_of::<T>())
        };
        let ra = room(a, Rearrangement::to_len);
        let rb = room(b, Rearrangement::to_len);
        let rc = room(c, Rearrangement::from_len);
        let scratch = UninitBuffer::<T>::new(ra + rb + rc)?;
        // SAFETY: the parts of the scratch buffer have the lengths of the plan and do not overlap; x, y and z have
        // the lengths of the plan. Every element is written by a move or a product before it is read.
        unsafe {
            let at = |offset| scratch.first.wrapping_add(offset);
            let enter = |plan: Option<&Rearrangement>, x: &[T], to: *mut T| match plan {
                Some(plan) => {
                    moves::run(plan, x.as_ptr(), to, parallel::worthwhile(plan.elements(), 1));
                    to.cast_const()
                }
                None => x.as_ptr(),
            };
            let (a, b) = (enter(a, x, at(0)), enter(b, y, at(ra)));
            let products = plan.products();
            // Moving an element costs as much as 64 multiply-adds (bench `graded`).
            let moved = panels.map_or(0, |panels| panels.elements);
            let parallel = parallel::worthwhile_steps(products.steps().saturating_add(64 * moved));
            let to = if c.is_some() { at(ra + rb) } else { z.first };
            match panels {
                Some(panels) => panels::run(plan, panels, [a, b], to, parallel),
                None => products::run(products, a, b, to, parallel),
            }
            if let Some(c) = c {
                moves::run(c, to, z.first, parallel::worthwhile(c.elements(), 1));
            }
            z.finish(op, lc)
        }
    }
    let (x, y) = (x.to_contiguous()?, y.to_contiguous()?);
    if x.dtype() != y.dtype() {
        let (required, given) = (x.dtype(), y.dtype());
        return Err(StructuredError::DType { op, required, given });
    }
    on_fields!(op, x.dtype(), T => typed::<T>(op, plan, &x, &y))
}
