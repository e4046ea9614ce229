//! Sorting along an axis: `sort`, `argsort`, `sort_with_indices`, `topk`.
//!
//! ```text
//! keys     an element as an unsigned word of the same order
//! radix    sorts words, by comparison or by digits
//! top      the k smallest words of a row
//! ```
//!
//! Every element becomes a word; complemented words sort downwards. To carry an index along, it is
//! put below the key: the words are then distinct, which makes every sort stable. So there is one
//! sort per word width, whatever the dtype. Rows that are not contiguous are brought together
//! first; the result of sorting along another axis than the last one is dense in that order of
//! axes.

mod keys;
mod radix;
mod top;

use std::mem::MaybeUninit;
use std::sync::Mutex;

use t4a_algebra::{Int, Scalar};

pub use keys::{Key, SortKey, Word};
pub use top::{argtopk, topk};

use self::radix::Scratch;
use crate::error::{Result, TensorError, check_axis};
use crate::layout::Dims;
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

const ROUTE: Route = Route::native(Path::LoopReduce);

/// The elements in ascending or descending order along an axis.
///
/// Floats are in IEEE 754 total order (see [`SortKey`]): a NaN without sign comes after +∞, one with
/// sign before −∞; descending is the exact reverse.
///
/// The memory of `x` is overwritten if it has no other owner and rows are contiguous.
///
/// Cost: per row of `n`, `O(n log n)` comparisons for short rows, one pass per varying byte of the
/// element for long ones, and one row of scratch.
///
/// ```
/// use t4a_tensor::{Tensor, sort};
/// let x = Tensor::from_vec(vec![2.0, f64::NAN, -1.0], &[3])?;
/// assert_eq!(sort::sort(x, 0, false)?.get(&[0]), Some(-1.0));
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Axis`].
pub fn sort<T: SortKey>(x: Tensor<T>, axis: usize, descending: bool) -> Result<Tensor<T>> {
    check_axis("sort", axis, x.rank())?;
    let len = x.shape()[axis];
    let (mut rows, back) = to_rows(x, axis)?;
    let count = rows.numel().checked_div(len).unwrap_or(0);
    let ptr = SendPtr(rows.as_mut_slice()?.as_mut_ptr());
    each_row(count, len, |row, threads| {
        // SAFETY: rows are disjoint. A key has the size and alignment of its element, and every
        // element is a valid key in memory; elements are written back before anyone reads them.
        let words = unsafe {
            let row = ptr.get().add(row * len);
            let words = row.cast::<T::Key>();
            for i in 0..len {
                *words.add(i) = (*row.add(i)).to_key().flip(descending);
            }
            std::slice::from_raw_parts_mut(words, len)
        };
        let sorted = radix::sort(words, 0, threads);
        for word in words {
            let element = T::from_key(word.flip(descending));
            // SAFETY: as above.
            unsafe { *std::ptr::from_mut(word).cast::<T>() = element };
        }
        sorted
    })?;
    Ok(rows.into_permuted(&back)?.with_route(ROUTE))
}

/// The sorted elements and where they came from, with equal elements in their original order.
///
/// # Errors
/// As [`sort`]; [`TensorError::Value`] if the integer type `I` cannot hold an index.
pub fn sort_with_indices<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    descending: bool,
) -> Result<(Tensor<T>, Tensor<I>)> {
    let op = "sort_with_indices";
    let (rows, back) = prepare::<T, I>(op, x, axis)?;
    let mut values = Output::<T>::new(op, rows.shape())?;
    let mut indices = Output::<I>::new(op, rows.shape())?;
    let to = SendPtr(values.as_mut_ptr());
    let tagged = Tags { ptr: SendPtr(indices.as_mut_ptr().cast()), write: write_indices::<T, I> };
    sort_tagged(&rows, descending, Some(to), tagged)?;
    // SAFETY: every row of both was written.
    let (values, indices) = unsafe { (values.assume_init(), indices.assume_init()) };
    let values = values.into_permuted(&back)?.with_route(ROUTE);
    Ok((values, indices.into_permuted(&back)?.with_route(ROUTE)))
}

/// Where the sorted elements come from, with equal elements in their original order.
///
/// # Errors
/// As [`sort_with_indices`].
pub fn argsort<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    descending: bool,
) -> Result<Tensor<I>> {
    let op = "argsort";
    let (rows, back) = prepare::<T, I>(op, x, axis)?;
    let mut indices = Output::<I>::new(op, rows.shape())?;
    let tagged = Tags { ptr: SendPtr(indices.as_mut_ptr().cast()), write: write_indices::<T, I> };
    sort_tagged(&rows, descending, None, tagged)?;
    // SAFETY: every row was written.
    Ok(unsafe { indices.assume_init() }.into_permuted(&back)?.with_route(ROUTE))
}

/// Where indices go: the integer type is a function pointer, not one more parameter of the sorts.
struct Tags<T: SortKey> {
    ptr: SendPtr<u8>,
    write: unsafe fn(*mut u8, usize, &[TaggedOf<T>]),
}

type TaggedOf<T> = <<T as SortKey>::Key as Key>::Tagged;

/// Writes the indices of tagged words from element `at` on.
///
/// # Safety
/// `ptr` takes as many elements of type `I` there.
unsafe fn write_indices<T: SortKey, I: Int>(ptr: *mut u8, at: usize, words: &[TaggedOf<T>]) {
    for (i, &word) in words.iter().enumerate() {
        // SAFETY: the caller's promise.
        unsafe { *ptr.cast::<I>().add(at + i) = I::from_i64(T::Key::index(word) as i64) };
    }
}

/// Sorts every row of a contiguous tensor with indices.
fn sort_tagged<T: SortKey>(
    rows: &Tensor<T>,
    descending: bool,
    values: Option<SendPtr<T>>,
    tags: Tags<T>,
) -> Result<()> {
    let (Some(elements), Some(&len)) = (rows.as_slice(), rows.shape().last()) else {
        return Ok(());
    };
    each_row(elements.len().checked_div(len).unwrap_or(0), len, |row, threads| {
        let mut scratch = Scratch::<TaggedOf<T>>::new(len)?;
        let words = tag(&elements[row * len..(row + 1) * len], descending, scratch.words());
        radix::sort(words, T::Key::SHIFT, threads)?;
        // SAFETY: rows are disjoint, and the results have the shape of the input.
        unsafe {
            if let Some(values) = values {
                for (i, &word) in words.iter().enumerate() {
                    *values.get().add(row * len + i) =
                        T::from_key(T::Key::of(word).flip(descending));
                }
            }
            (tags.write)(tags.ptr.get(), row * len, words);
        }
        Ok(())
    })
}

/// The words of a row with their indices.
fn tag<'a, T: SortKey>(
    row: &[T],
    flip: bool,
    words: &'a mut [MaybeUninit<TaggedOf<T>>],
) -> &'a mut [TaggedOf<T>] {
    let words = &mut words[..row.len()];
    for (i, (word, x)) in words.iter_mut().zip(row).enumerate() {
        word.write(x.to_key().flip(flip).tag(i));
    }
    // SAFETY: every word was written.
    unsafe { &mut *(std::ptr::from_mut(words) as *mut [TaggedOf<T>]) }
}

/// Calls `body(row, threads)` for every row: rows on several threads, or several threads within
/// each row if there are few.
fn each_row(
    count: usize,
    len: usize,
    body: impl Fn(usize, bool) -> Result<()> + Sync + Send,
) -> Result<()> {
    let cost = 8 * (usize::BITS - len.leading_zeros()) as usize;
    let worthwhile = parallel::worthwhile(count.saturating_mul(len), cost.max(1));
    if count < parallel::threads() {
        return (0..count).try_for_each(|row| body(row, worthwhile));
    }
    let failed = Mutex::new(Ok(()));
    let per_chunk = ((1 << 14) / len.max(1)).max(1);
    parallel::for_each(count.div_ceil(per_chunk), worthwhile, &|chunk| {
        for row in chunk * per_chunk..count.min((chunk + 1) * per_chunk) {
            if let Err(error) = body(row, false) {
                *failed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Err(error);
                return;
            }
        }
    });
    failed.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Checks that indices along the axis fit, and brings the rows together.
fn prepare<T: Scalar, I: Int>(
    op: &'static str,
    x: &Tensor<T>,
    axis: usize,
) -> Result<(Tensor<T>, Dims)> {
    check_axis(op, axis, x.rank())?;
    fits::<I>(op, x.shape()[axis])?;
    to_rows(x.clone(), axis)
}

/// Checks that an integer type can hold the indices of an axis, and a tagged word too.
pub(crate) fn fits<I: Int>(op: &'static str, size: usize) -> Result<()> {
    let last = size.saturating_sub(1);
    if I::from_i64(last as i64).to_usize() == Some(last) && last <= u32::MAX as usize {
        return Ok(());
    }
    Err(TensorError::value(op, format!("indices up to {last} need a wider integer")))
}

/// The tensor with `axis` last, contiguous; and the permutation that leads back.
fn to_rows<T: Scalar>(x: Tensor<T>, axis: usize) -> Result<(Tensor<T>, Dims)> {
    let rank = x.rank();
    let mut axes: Dims = (0..rank).filter(|&a| a != axis).collect();
    axes.push(axis);
    let mut back: Dims = (0..rank).collect();
    for (to, &from) in axes.iter().enumerate() {
        back[from] = to;
    }
    let rows = x.into_permuted(&axes)?;
    if rows.layout().is_contiguous() {
        return Ok((rows, back));
    }
    Ok((crate::copy::to_contiguous(&rows)?, back))
}

#[cfg(test)]
mod tests;
