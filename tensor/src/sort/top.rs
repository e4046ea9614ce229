//! The k greatest or least elements of every row.
//!
//! A row is scanned against the k-th best word so far; few elements pass, so the cost is close to
//! one read. What passes goes to a buffer that is cut back to k words when it is full.

use std::mem::MaybeUninit;

use t4a_algebra::Int;
use t4a_algebra::simd::{Loop, dispatch};

use super::radix;
use super::{Key, ROUTE, SortKey, TaggedOf, Tags, each_row, prepare, tag, write_indices};
use crate::error::{Result, TensorError};
use crate::loops::parallel::SendPtr;
use crate::output::Output;
use crate::tensor::Tensor;

/// Elements tested at once.
const BLOCK: usize = 64;

/// The `k` greatest (or least) elements along an axis, best first, and where they are; equal
/// elements in their original order. Floats are in the total order of [`SortKey`].
///
/// Shapes: `k` at `axis`.
///
/// Cost: about one read per element for `k` much smaller than the axis.
///
/// # Errors
/// [`TensorError::Axis`]; [`TensorError::Value`] if `k` exceeds the axis or the integer type `I`
/// cannot hold an index.
pub fn topk<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    largest: bool,
) -> Result<(Tensor<T>, Tensor<I>)> {
    topk_rows("topk", x, axis, k, largest)
}

/// Where the `k` greatest (or least) elements along an axis are, as in [`topk`].
///
/// # Errors
/// As [`topk`].
pub fn argtopk<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    largest: bool,
) -> Result<Tensor<I>> {
    Ok(topk_rows("argtopk", x, axis, k, largest)?.1)
}

fn topk_rows<T: SortKey, I: Int>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    largest: bool,
) -> Result<(Tensor<T>, Tensor<I>)> {
    let (rows, back) = prepare::<T, I>(op, x, axis)?;
    let len = x.shape()[axis];
    if k > len {
        let message = format!("{k} elements asked of axis {axis} of size {len}");
        return Err(TensorError::value(op, message));
    }
    let mut shape = rows.shape().to_vec();
    shape[rows.rank() - 1] = k;
    let mut values = Output::<T>::new(op, &shape)?;
    let mut indices = Output::<I>::new(op, &shape)?;
    let to = SendPtr(values.as_mut_ptr());
    let tags = Tags { ptr: SendPtr(indices.as_mut_ptr().cast()), write: write_indices::<T, I> };
    top_of_rows(&rows, k, largest, to, tags)?;
    // SAFETY: every row of both was written.
    let (values, indices) = unsafe { (values.assume_init(), indices.assume_init()) };
    let values = values.into_permuted(&back)?.with_route(ROUTE);
    Ok((values, indices.into_permuted(&back)?.with_route(ROUTE)))
}

fn top_of_rows<T: SortKey>(
    rows: &Tensor<T>,
    k: usize,
    largest: bool,
    values: SendPtr<T>,
    tags: Tags<T>,
) -> Result<()> {
    let (Some(elements), Some(&len)) = (rows.as_slice(), rows.shape().last()) else {
        return Ok(());
    };
    if k == 0 {
        return Ok(());
    }
    each_row(elements.len().checked_div(len).unwrap_or(0), len, |row, threads| {
        let elements = &elements[row * len..(row + 1) * len];
        let capacity = (2 * k).max(2 * BLOCK);
        let mut scratch = radix::Scratch::<TaggedOf<T>>::new(len.min(capacity + BLOCK))?;
        let words = if len <= capacity + BLOCK {
            let words = tag(elements, largest, scratch.words());
            radix::sort(words, T::Key::SHIFT, threads)?;
            words
        } else {
            scan(elements, k, largest, capacity, scratch.words())?
        };
        // SAFETY: rows of the results are disjoint and have k elements.
        unsafe {
            for (i, &word) in words[..k].iter().enumerate() {
                *values.get().add(row * k + i) = T::from_key(T::Key::of(word).flip(largest));
            }
            (tags.write)(tags.ptr.get(), row * k, &words[..k]);
        }
        Ok(())
    })
}

/// The k least words of a row, sorted. The buffer has room for `capacity + BLOCK` words.
fn scan<'a, T: SortKey>(
    row: &[T],
    k: usize,
    flip: bool,
    capacity: usize,
    buffer: &'a mut [MaybeUninit<TaggedOf<T>>],
) -> Result<&'a mut [TaggedOf<T>]> {
    let (head, tail) = row.split_at(capacity);
    let mut limit = cut::<T>(tag(head, flip, buffer), k);
    let mut filled = k;
    for (block, elements) in tail.chunks(BLOCK).enumerate() {
        if !dispatch(AnyBelow { elements, limit, flip }) {
            continue;
        }
        for (i, x) in elements.iter().enumerate() {
            // An element equal to the k-th best comes later and loses: keys have to be below it.
            let key = x.to_key().flip(flip);
            if key < limit {
                buffer[filled].write(key.tag(capacity + block * BLOCK + i));
                filled += 1;
            }
        }
        if filled >= capacity {
            limit = cut::<T>(written(buffer, filled), k);
            filled = k;
        }
    }
    let words = written(buffer, filled);
    radix::sort(words, 0, false)?;
    Ok(words)
}

/// Moves the k least words to the front; the key of the k-th.
fn cut<T: SortKey>(words: &mut [TaggedOf<T>], k: usize) -> T::Key {
    T::Key::of(*words.select_nth_unstable(k - 1).1)
}

/// The first words of a buffer, which `scan` has written.
fn written<W>(buffer: &mut [MaybeUninit<W>], filled: usize) -> &mut [W] {
    // SAFETY: `scan` calls this for words that it has written.
    unsafe { &mut *(std::ptr::from_mut(&mut buffer[..filled]) as *mut [W]) }
}

struct AnyBelow<'a, T: SortKey> {
    elements: &'a [T],
    limit: T::Key,
    flip: bool,
}

impl<T: SortKey> Loop for AnyBelow<'_, T> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let mut any = false;
        for x in self.elements {
            any |= x.to_key().flip(self.flip) < self.limit;
        }
        any
    }
}
