//! The k largest or smallest elements of every row.
//!
//! A row is scanned against the current k-th best word; few elements pass, so the cost is close to one read. Passing
//! elements are appended to a buffer that is reduced to k words when it is full.

use t4a_algebra::Int;
use t4a_algebra::simd::{Loop, dispatch};

use super::radix;
use super::{
    Order, ROUTE, RadixKey, RowWords, SortKey, each_row, elements_of, places, prepare, sort_tagged,
    tag, words_of,
};
use crate::error::{Result, TensorError};
use crate::layout::Dims;
use crate::output::Output;
use crate::tensor::Tensor;

/// Number of elements tested together.
const BLOCK: usize = 64;

/// The `k` largest (or smallest) elements along an axis in order, and their indices; equal elements in their original
/// order. Floats are in the total order of [`SortKey`].
///
/// Shapes: `k` at `axis`.
///
/// Cost: about one read per element for `k` much smaller than the axis.
///
/// # Errors
/// [`TensorError::Axis`]; [`TensorError::Value`] if `k` exceeds the axis or the integer type `I`
/// cannot hold an index.
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::sort::topk;
///
/// let x = Tensor::from_vec(vec![3.0f32, 9.0, 1.0, 7.0], &[4])?;
/// let (values, indices) = topk::<_, i64>(&x, 0, 2, true)?;
/// assert_eq!((values.to_vec()?, indices.to_vec()?), (vec![9.0, 7.0], vec![1, 3]));
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn topk<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    largest: bool,
) -> Result<(Tensor<T>, Tensor<I>)> {
    let order = T::ORDER.reversed(largest);
    let (values, indices) = topk_words("topk", words_of(x.clone()), axis, k, order)?;
    // SAFETY: these are words of the elements.
    Ok((unsafe { values.retag() }, indices))
}

/// Indices of the `k` largest (or smallest) elements along an axis, as in [`topk`].
///
/// # Errors
/// As [`topk`].
pub fn argtopk<T: SortKey, I: Int>(
    x: &Tensor<T>,
    axis: usize,
    k: usize,
    largest: bool,
) -> Result<Tensor<I>> {
    let order = T::ORDER.reversed(largest);
    Ok(topk_words("argtopk", words_of(x.clone()), axis, k, order)?.1)
}

fn topk_words<K: RadixKey, I: Int>(
    op: &'static str,
    x: Tensor<K>,
    axis: usize,
    k: usize,
    order: Order<K>,
) -> Result<(Tensor<K>, Tensor<I>)> {
    let (rows, back) = prepare::<K, I>(op, x, axis)?;
    let (_, _, len) = elements_of(&rows);
    if k > len {
        let message = format!("{k} elements asked of axis {axis} of size {len}");
        return Err(TensorError::value(op, message));
    }
    let mut shape: Dims = rows.shape().into();
    shape[rows.rank() - 1] = k;
    let (values, indices) = (Output::new(op, &shape)?, Output::new(op, &shape)?);
    let (elements, count, len) = elements_of(&rows);
    let count = if k == 0 { 0 } else { count };
    let capacity = k.saturating_mul(2).max(2 * BLOCK);
    let room = len.min(capacity.saturating_add(BLOCK));
    // A reduction to the k smallest words does not keep the order of their indices.
    let low = if room == len { K::SHIFT } else { 0 };
    let (values, indices) = values.try_write_both(indices, |values, indices| {
        let parts = (values.equal_parts(count), indices.equal_parts(count));
        let scratch = || RowWords::<K::Tagged>::new(room, low);
        each_row(parts, len, scratch, |words, row, (values, indices), threads| {
            let row = &elements[row * len..(row + 1) * len];
            let words = if room == len {
                sort_tagged(row, order, words, threads)?
            } else {
                scan(row, k, order, capacity, words)?
            };
            let element = |&word| order.element(word, row);
            let words = &words[..k];
            Ok((values.extend(words.iter().map(element)), indices.extend(places::<K, I>(words))))
        })
    })?;
    let values = values.into_permuted(&back)?.with_route(ROUTE);
    Ok((values, indices.into_permuted(&back)?.with_route(ROUTE)))
}

/// The k smallest words of a row, sorted. Requires memory for `capacity + BLOCK` words.
fn scan<'a, K: RadixKey>(
    row: &[K],
    k: usize,
    order: Order<K>,
    capacity: usize,
    words: &'a mut RowWords<K::Tagged>,
) -> Result<&'a mut [K::Tagged]> {
    let [words, other] = words.both();
    let (head, tail) = row.split_at(capacity);
    tag(head, order, words);
    let mut limit = cut::<K>(&mut words[..capacity], k);
    let mut filled = k;
    for (block, elements) in tail.chunks(BLOCK).enumerate() {
        if !dispatch(AnyBelow { elements, limit, order }) {
            continue;
        }
        for (i, &x) in elements.iter().enumerate() {
            // Keys must be below the limit: an element equal to the k-th best has a later position and is not selected.
            let key = order.stable_key(x);
            if key < limit {
                words[filled] = key.tag(capacity + block * BLOCK + i);
                filled += 1;
            }
        }
        if filled >= capacity {
            limit = cut::<K>(&mut words[..filled], k);
            filled = k;
        }
    }
    radix::sort(&mut words[..filled], other, 0, false)
}

/// Moves the k smallest words to the front; returns the key of the k-th.
fn cut<K: RadixKey>(words: &mut [K::Tagged], k: usize) -> K {
    K::of(*words.select_nth_unstable(k - 1).1)
}

/// True if a key is below a stable one: no stable key is that of −0, so those below it are among them.
struct AnyBelow<'a, K> {
    elements: &'a [K],
    limit: K,
    order: Order<K>,
}

impl<K: RadixKey> Loop for AnyBelow<'_, K> {
    type Output = bool;
    #[inline(always)]
    fn run(self) -> bool {
        let mut any = false;
        for &x in self.elements {
            any |= self.order.key(x) < self.limit;
        }
        any
    }
}
