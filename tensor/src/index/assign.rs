//! Regions of strided memory: `slice_assign`, `cat`, `repeat`.

use t4a_algebra::Scalar;

use super::put::writable;
use super::tiles::Traversal;
use super::{ROUTE, sized};
use crate::error::{Result, TensorError, check_axis};
use crate::layout::{Dims, Layout, numel_of};
use crate::loops::parallel::{self, SendPtr};
use crate::output::{Fresh, Full, Output};
use crate::storage::collect;
use crate::tensor::Tensor;

/// Minimum number of bytes of a row for a separate copy call.
const RUN_BYTES: usize = 128;

/// The indices `start, start + step, …` of an axis, `len` of them, with a step of either sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First index.
    pub start: usize,
    /// Number of elements.
    pub len: usize,
    /// Step between consecutive elements, not 0.
    pub step: isize,
}

/// `x[span₀, span₁, …] ← values`; axes without a span are taken whole.
///
/// The memory of `x` is overwritten if it has no other owner.
///
/// Shapes: `values` broadcasts to the lengths of the spans.
///
/// Cost: one read and one write per value, and a copy of `x` if it is shared.
///
/// ```
/// use t4a_tensor::{Tensor, index::{Span, slice_assign}};
/// let x = Tensor::<i32>::zeros(&[5])?;
/// let v = Tensor::from_vec(vec![1, 2, 3], &[3])?;
/// let odd_backwards = Span { start: 4, len: 3, step: -2 };
/// assert_eq!(slice_assign(x, &[odd_backwards], &v)?.to_vec()?, [3, 0, 2, 0, 1]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Shape`] for more spans than axes, [`TensorError::Index`] for a span that leaves
/// its axis, [`TensorError::Value`] for step 0, [`TensorError::ShapeMismatch`].
pub fn slice_assign<T: Scalar>(
    x: Tensor<T>,
    spans: &[Span],
    values: &Tensor<T>,
) -> Result<Tensor<T>> {
    let op = "slice_assign";
    let region = region_of(op, x.layout(), spans)?;
    let source = broadcast(op, values, region.shape())?;
    let mut x = writable(x)?;
    // The copy of a shared tensor may have another layout than the tensor.
    let region = region_of(op, x.layout(), spans)?;
    let Some(memory) = x.memory_mut() else { return Ok(x) };
    let target = memory.wrapping_add(region.offset());
    // SAFETY: the region is inside `x`, which is unique and injective; `values` has other memory, because the memory of
    // `x` has one owner.
    unsafe { write(SendPtr(target), region.strides(), &source, region.shape()) };
    Ok(x.with_route(ROUTE))
}

fn region_of(op: &'static str, layout: &Layout, spans: &[Span]) -> Result<Layout> {
    if spans.len() > layout.rank() {
        return Err(TensorError::shape(op, layout.shape(), "at most one span per axis"));
    }
    let mut region = layout.clone();
    for (axis, span) in spans.iter().enumerate() {
        region = region.slice_axis(axis, span.start, span.len, span.step)?;
    }
    Ok(region)
}

fn broadcast<T: Scalar>(
    op: &'static str,
    values: &Tensor<T>,
    shape: &[usize],
) -> Result<Tensor<T>> {
    values.expand(shape).map_err(|_| {
        TensorError::shapes(op, values.shape(), shape, "values that broadcast to the region")
    })
}

/// Concatenates tensors along an axis.
///
/// Shapes: equal except along `axis`.
///
/// Cost: one read and one write per element.
///
/// # Errors
/// [`TensorError::Value`] for no tensors, [`TensorError::Axis`], [`TensorError::ShapeMismatch`].
pub fn cat<T: Scalar>(tensors: &[Tensor<T>], axis: usize) -> Result<Tensor<T>> {
    let op = "cat";
    let first = tensors.first().ok_or_else(|| TensorError::value(op, "no tensors to join"))?;
    check_axis(op, axis, first.rank())?;
    let mut shape: Dims = first.shape().into();
    shape[axis] = 0;
    for x in tensors {
        let agree = x.rank() == first.rank()
            && (0..x.rank()).all(|a| a == axis || x.shape()[a] == first.shape()[a]);
        if !agree {
            let required = "equal sizes except along the axis";
            return Err(TensorError::shapes(op, first.shape(), x.shape(), required));
        }
        let overflow = || TensorError::SizeOverflow { op, shape: x.shape().to_vec() };
        shape[axis] = shape[axis].checked_add(x.shape()[axis]).ok_or_else(overflow)?;
    }
    let mut out = Output::<T>::new(op, &shape)?;
    let outer = shape[..axis].iter().product::<usize>();
    let long = |part: &&[T]| size_of_val(*part) >= outer.saturating_mul(RUN_BYTES);
    let parts =
        collect("cat", tensors.len(), tensors.iter().filter_map(Tensor::as_slice).filter(long))?;
    if outer > 0 && parts.len() == tensors.len() {
        return Ok(out.write(|out| join_rows(&parts, outer, out)).with_route(ROUTE));
    }
    let mut target = out.as_mut_ptr();
    for x in tensors {
        let strides = out.layout().strides();
        // SAFETY: the parts of the axis are disjoint, inside the result, and cover it.
        unsafe { write(SendPtr(target), strides, x, x.shape()) };
        target = target.wrapping_offset(x.shape()[axis] as isize * strides[axis]);
    }
    // SAFETY: every part was written.
    Ok(unsafe { out.assume_init() }.with_route(ROUTE))
}

/// Cuts every part into `rows` equal rows and writes the first rows of all parts, then the second
/// ones, and so on: the result is written from front to back (bench `backend`, row `cat`).
fn join_rows<'o, T: Scalar>(parts: &[&[T]], rows: usize, out: Fresh<'o, T>) -> Full<'o, T> {
    let pitch = out.len() / rows;
    let per_chunk = ((1 << 15) / pitch.max(1)).max(1);
    let parallel = parallel::worthwhile(out.len(), 1);
    out.par_chunks(per_chunk * pitch, parallel, |chunk, out| {
        let count = out.len() / pitch;
        let mut out = out.cursor();
        for row in chunk * per_chunk..chunk * per_chunk + count {
            for part in parts {
                let len = part.len() / rows;
                out.copy_from(&part[row * len..(row + 1) * len]);
            }
        }
        out.finish()
    })
}

/// `out[…, t·n + i, …] = x[…, i, …]` for `t < times`, with an axis of size `n`.
///
/// Cost: one read and one write per element of the result.
///
/// # Errors
/// [`TensorError::Axis`], [`TensorError::SizeOverflow`].
pub fn repeat<T: Scalar>(x: &Tensor<T>, axis: usize, times: usize) -> Result<Tensor<T>> {
    let op = "repeat";
    check_axis(op, axis, x.rank())?;
    let mut shape: Dims = x.shape().into();
    let overflow = || TensorError::SizeOverflow { op, shape: x.shape().to_vec() };
    shape[axis] = shape[axis].checked_mul(times).ok_or_else(overflow)?;
    if numel_of(op, &shape)? == 0 {
        return Ok(Output::new(op, &shape)?.write(|out| out.copy_from(&[])).with_route(ROUTE));
    }
    let mut apart: Dims = x.shape().into();
    apart.insert(axis, times);
    let copy = crate::copy::to_contiguous(&x.unsqueeze(axis)?.expand(&apart)?)?;
    Ok(copy.into_shape(&shape)?.with_route(ROUTE))
}

/// Writes the elements of `x` to memory with any strides.
///
/// # Safety
/// `target` is writable at every index of `shape`, the shape of `x`, under `strides`; different
/// indices name different elements, none of them in the memory of `x`.
unsafe fn write<T: Scalar>(target: SendPtr<T>, strides: &[isize], x: &Tensor<T>, shape: &[usize]) {
    let tiles = Traversal::new(shape, [strides, x.layout().strides()]);
    let (to, from) = (tiles.inner(0), tiles.inner(1));
    // If source and destination have no common contiguous axis, both sides of a small square fit in the cache.
    let direct = to[1] == from[1] || from[1] == 0;
    let tiles = if direct { tiles.tile(16, 1 << 14) } else { tiles.tile(32, 32) };
    let source = SendPtr(x.as_ptr().cast_mut());
    tiles.for_each(1, |tile| {
        let dst = target.get().wrapping_offset(tile.at[0]).cast::<u8>();
        let src = source.get().wrapping_offset(tile.at[1]).cast::<u8>();
        let area = [tile.rows, tile.cols];
        sized!(size_of::<T>(), SIZE => {
            // SAFETY: tiles are inside the target and the source.
            unsafe { move_tile::<SIZE>(dst, to, src, from, area, size_of::<T>()) };
        });
    });
}

/// # Safety
/// Both sides are valid at every position of the tile. `SIZE` is `size`, or 0.
unsafe fn move_tile<const SIZE: usize>(
    dst: *mut u8,
    to: [isize; 2],
    src: *const u8,
    from: [isize; 2],
    [rows, cols]: [usize; 2],
    size: usize,
) {
    let size = if SIZE == 0 { size } else { SIZE };
    let bytes = |elements: isize| elements * size as isize;
    for row in 0..rows as isize {
        let dst = dst.wrapping_offset(bytes(row * to[0]));
        let src = src.wrapping_offset(bytes(row * from[0]));
        // SAFETY: the caller's contract; a copy of constant size is one move.
        unsafe {
            if to[1] == 1 && from[1] == 1 && cols >= 8 {
                std::ptr::copy_nonoverlapping(src, dst, cols * size);
                continue;
            }
            for col in 0..cols as isize {
                let dst = dst.offset(bytes(col * to[1]));
                std::ptr::copy_nonoverlapping(src.offset(bytes(col * from[1])), dst, size);
            }
        }
    }
}
