//! Sorting along an axis: `sort`, `argsort`, `sort_with_indices`, `topk`.
//!
//! ```text
//! keys     an element as an unsigned word of the same order
//! radix    sorts words, by comparison or by digits
//! top      the k smallest words of a row
//! ```
//!
//! Every element is converted to a word; complemented words sort in descending order. An index is stored in the low
//! bits below the key: the words are then distinct, which makes every sort stable. There is thus one sort per word
//! width, independent of the dtype. Rows that are not contiguous are copied first; the result of a sort along an axis
//! other than the last one is dense in that order of axes.

mod keys;
mod radix;
mod top;

use t4a_algebra::{Int, Scalar};

pub use keys::{Order, RadixKey, RadixWord, SortKey};
pub use top::{argtopk, topk};

use crate::error::{Result, TensorError, check_axis};
use crate::layout::Dims;
use crate::loops::parallel;
use crate::output::{DisjointParts, ExactLength, Filled, Output, parts_mut, share_with};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

const ROUTE: Route = Route::native(Path::LoopReduce);

/// The elements in ascending or descending order along an axis.
///
/// Floats are in the total order of [`SortKey`]: NaN is greater than +∞; descending order is the exact reverse.
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
    // SAFETY: the result has the words of the elements in another order.
    unsafe { Ok(sort_words(words_of(x), axis, T::ORDER.reversed(descending))?.retag()) }
}

fn sort_words<K: RadixKey>(x: Tensor<K>, axis: usize, order: Order<K>) -> Result<Tensor<K>> {
    check_axis("sort", axis, x.rank())?;
    let len = x.shape()[axis];
    let (mut rows, back) = to_rows(x, axis)?;
    let count = rows.numel().checked_div(len).unwrap_or(0);
    let parts = parts_mut(rows.as_mut_slice()?, count);
    each_row(
        parts,
        len,
        || RowWords::<K>::new(len, 0),
        |words, _, row, threads| {
            let [words, other] = words.both();
            for (word, &x) in words.iter_mut().zip(&*row) {
                *word = order.key(x);
            }
            let sorted = radix::sort(words, other, 0, threads)?;
            for (x, &word) in row.iter_mut().zip(&*sorted) {
                *x = order.word(word);
            }
            Ok(())
        },
    )?;
    Ok(rows.into_permuted(&back)?.with_route(ROUTE))
}

/// The sorted elements and their original indices; equal elements, including zeros of both signs, keep their original
/// order.
///
/// # Errors
/// As [`sort`]; [`TensorError::Value`] if the integer type `I` cannot hold an index.
pub fn sort_with_indices<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    descending: bool,
) -> Result<(Tensor<T>, Tensor<I>)> {
    let order = T::ORDER.reversed(descending);
    let (values, indices) = sort_words_with_indices(words_of(x.clone()), axis, order)?;
    // SAFETY: these are words of the elements.
    Ok((unsafe { values.retag() }, indices))
}

fn sort_words_with_indices<K: RadixKey, I: Int>(
    x: Tensor<K>,
    axis: usize,
    order: Order<K>,
) -> Result<(Tensor<K>, Tensor<I>)> {
    let op = "sort_with_indices";
    let (rows, back) = prepare::<K, I>(op, x, axis)?;
    let (values, indices) = (Output::new(op, rows.shape())?, Output::new(op, rows.shape())?);
    let (elements, count, len) = elements_of(&rows);
    let (values, indices) = values.try_write_both(indices, |values, indices| {
        let parts = (values.equal_parts(count), indices.equal_parts(count));
        let scratch = || RowWords::<K::Tagged>::new(len, K::SHIFT);
        each_row(parts, len, scratch, |words, row, (values, indices), threads| {
            let row = &elements[row * len..(row + 1) * len];
            let words = sort_tagged(row, order, words, threads)?;
            let element = |&word| order.element(word, row);
            Ok((values.extend(words.iter().map(element)), indices.extend(places::<K, I>(words))))
        })
    })?;
    let values = values.into_permuted(&back)?.with_route(ROUTE);
    Ok((values, indices.into_permuted(&back)?.with_route(ROUTE)))
}

/// Indices that sort the tensor along an axis, with equal elements in their original order.
///
/// # Errors
/// As [`sort_with_indices`].
pub fn argsort<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    descending: bool,
) -> Result<Tensor<I>> {
    argsort_words(words_of(x.clone()), axis, T::ORDER.reversed(descending))
}

fn argsort_words<K: RadixKey, I: Int>(
    x: Tensor<K>,
    axis: usize,
    order: Order<K>,
) -> Result<Tensor<I>> {
    let op = "argsort";
    let (rows, back) = prepare::<K, I>(op, x, axis)?;
    let (elements, count, len) = elements_of(&rows);
    let indices = Output::<I>::new(op, rows.shape())?.try_write(|indices| {
        let scratch = || RowWords::<K::Tagged>::new(len, K::SHIFT);
        each_row(indices.equal_parts(count), len, scratch, |words, row, indices, threads| {
            let row = &elements[row * len..(row + 1) * len];
            Ok(indices.extend(places::<K, I>(sort_tagged(row, order, words, threads)?)))
        })
    })?;
    Ok(indices.into_permuted(&back)?.with_route(ROUTE))
}

/// The elements as words.
fn words_of<T: SortKey>(x: Tensor<T>) -> Tensor<T::Key> {
    const { assert!(size_of::<T>() == size_of::<T::Key>()) };
    const { assert!(align_of::<T>() == align_of::<T::Key>()) };
    // SAFETY: every bit pattern is a word, and sizes and alignments agree.
    unsafe { x.retag() }
}

/// The elements of a contiguous tensor, the number of its rows and their length.
fn elements_of<T: Scalar>(rows: &Tensor<T>) -> (&[T], usize, usize) {
    let len = rows.shape().last().copied().unwrap_or(1);
    (rows.as_slice().unwrap_or_default(), rows.numel().checked_div(len).unwrap_or(0), len)
}

/// Words of a row, and scratch for their sort.
struct RowWords<W>(Filled<W>, Filled<W>);

impl<W: RadixWord> RowWords<W> {
    fn new(len: usize, low: u32) -> Result<Self> {
        let zero = W::default();
        Ok(Self(Filled::new(len, zero)?, Filled::new(radix::spare::<W>(len, low), zero)?))
    }

    fn both(&mut self) -> [&mut [W]; 2] {
        [&mut self.0, &mut self.1]
    }
}

/// The words of a row with their indices, in order.
fn sort_tagged<'a, K: RadixKey>(
    row: &[K],
    order: Order<K>,
    words: &'a mut RowWords<K::Tagged>,
    threads: bool,
) -> Result<&'a mut [K::Tagged]> {
    let [words, other] = words.both();
    let words = &mut words[..row.len()];
    tag(row, order, words);
    radix::sort(words, other, K::SHIFT, threads)
}

/// Makes words of the elements of a row and their indices.
fn tag<K: RadixKey>(row: &[K], order: Order<K>, words: &mut [K::Tagged]) {
    for (i, (word, &x)) in words.iter_mut().zip(row).enumerate() {
        *word = order.stable_key(x).tag(i);
    }
}

/// The indices of words.
fn places<K: RadixKey, I: Int>(words: &[K::Tagged]) -> impl ExactLength<Item = I> {
    words.iter().map(|&word| I::from_i64(K::index(word) as i64))
}

/// Calls `body(scratch, row, part, threads)` for every row and its part of the result: rows on several
/// threads, or several threads within each row if there are few.
fn each_row<S: DisjointParts + Sync, C>(
    parts: S,
    len: usize,
    scratch: impl Fn() -> Result<C> + Sync,
    body: impl Fn(&mut C, usize, S::Part, bool) -> Result<S::Done> + Sync,
) -> Result<S::Whole> {
    let count = parts.count();
    let cost = 8 * (usize::BITS - len.leading_zeros()) as usize;
    let worthwhile = parallel::worthwhile(count.saturating_mul(len), cost.max(1));
    let few = count < parallel::threads();
    let grain = if few { count } else { (1 << 14) / len.max(1) };
    share_with(parts, grain, worthwhile && !few, scratch, |scratch, row, part| {
        body(scratch, row, part, worthwhile && few)
    })
}

/// Checks that the index type can represent the indices of the axis, and makes rows contiguous.
fn prepare<T: Scalar, I: Int>(
    op: &'static str,
    x: Tensor<T>,
    axis: usize,
) -> Result<(Tensor<T>, Dims)> {
    check_axis(op, axis, x.rank())?;
    fits::<I>(op, x.shape()[axis])?;
    to_rows(x, axis)
}

/// Checks that an integer type, and a tagged word, can represent the indices of an axis.
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
