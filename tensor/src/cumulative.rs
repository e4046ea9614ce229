//! Running sums, products, maxima and minima along an axis.
//!
//! ```text
//! memory order    outer × axis × inner
//! inner = 1       one accumulator per row; four rows at a time hide its latency. Sums: those of some
//!                 elements of a row side by side, then that of the elements before them
//! inner > 1       a block of accumulators, one per column: vectorised, and read in memory order
//! ```

use std::marker::PhantomData;

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Numeric, Real, Scalar};

use crate::error::{Result, check_axis};
use crate::layout::Dims;
use crate::loops::parallel;
use crate::output::{
    Cursor, Fresh, Full, FullColumns, Output, OutputColumns, Workspace, share_with, tile_width,
};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Number of accumulators in a block, and their maximum size in bytes: they fit in the L1 cache.
const BLOCK: usize = 512;
const BLOCK_BYTES: usize = 1 << 13;
/// Elements of a row that are read, summed and written together: rows at power-of-two distances share cache sets, and
/// alternating reads and writes would evict lines (bench `backend`, row `cumsum 1024² rows`).
const STEPS: usize = 4;
/// Elements of a row whose sums are vectorised.
const LANES: usize = 16;
/// Number of elements after which a sum is restarted.
const RUN: usize = 256;
/// Elements per unit of parallel work.
const GRAIN: usize = 1 << 15;

/// `outᵢ = x₀ + … + xᵢ` along an axis.
///
/// Sums of 16-bit floats accumulate in `f32`; integers wrap. Elements are added in runs of 256, and the sums of runs by
/// compensated summation: |error of yᵢ| ≤ 257·ε·Σ|xⱼ| over j ≤ i, up to terms in ε². The sum of a run may overflow
/// although no result does.
///
/// Cost: one read and one write per element, and a copy first unless `x` is dense.
///
/// ```
/// use t4a_tensor::{Tensor, cumulative::cumsum};
/// let x = Tensor::from_vec(vec![1, 2, 3, 4], &[2, 2])?;
/// assert_eq!(cumsum(&x, 0)?.to_vec()?, [1, 2, 4, 6]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
///
/// # Errors
/// [`TensorError::Axis`](crate::TensorError::Axis).
pub fn cumsum<T: Numeric>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    cumulate(Sum, x, axis)
}

/// `outᵢ = x₀ · … · xᵢ` along an axis; otherwise as [`cumsum`].
///
/// # Errors
/// [`TensorError::Axis`](crate::TensorError::Axis).
pub fn cumprod<T: Numeric>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    cumulate(Product, x, axis)
}

/// `outᵢ = max(x₀, …, xᵢ)` along an axis; NaN from the first NaN on.
///
/// # Errors
/// [`TensorError::Axis`](crate::TensorError::Axis).
pub fn cummax<T: Real>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    cumulate(Maximum, x, axis)
}

/// `outᵢ = min(x₀, …, xᵢ)` along an axis; NaN from the first NaN on.
///
/// # Errors
/// [`TensorError::Axis`](crate::TensorError::Axis).
pub fn cummin<T: Real>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    cumulate(Minimum, x, axis)
}

/// An associative operation with an accumulator.
trait Accumulate<T: Scalar>: Copy + Send + Sync {
    const NAME: &'static str;
    /// True if the accumulator is of a wider type than the elements.
    const PROMOTES: bool = size_of::<Self::Acc>() != size_of::<T>();
    /// True if the accumulator is restarted after every [`RUN`] elements and combined with that of the previous runs.
    const RUNS: bool = false;
    type Acc: Copy;
    fn lift(x: T) -> Self::Acc;
    fn lower(acc: Self::Acc) -> T;
    fn combine(acc: Self::Acc, x: Self::Acc) -> Self::Acc;
    /// The identity of the accumulator, for kernels with runs.
    fn nothing(first: Self::Acc) -> Self::Acc {
        first
    }
    /// The accumulator of all elements from those of the runs before.
    #[inline(always)]
    fn after(_: Self::Acc, acc: Self::Acc) -> Self::Acc {
        acc
    }
    /// Adds a run to the total of the previous runs, `(value, compensation)`.
    #[inline(always)]
    fn carry(before: (Self::Acc, Self::Acc), _: Self::Acc) -> (Self::Acc, Self::Acc) {
        before
    }
}

macro_rules! accumulate {
    ($($name:ident $label:literal $class:ident $acc:ty, |$a:ident, $b:ident| $e:expr,
        $lift:expr, $lower:expr $(, { $($more:tt)* })?;)*) => {$(
        #[derive(Clone, Copy)]
        struct $name;
        impl<T: $class> Accumulate<T> for $name {
            const NAME: &'static str = $label;
            type Acc = $acc;
            #[inline(always)]
            fn lift(x: T) -> $acc { $lift(x) }
            #[inline(always)]
            fn lower(acc: $acc) -> T { $lower(acc) }
            #[inline(always)]
            fn combine($a: $acc, $b: $acc) -> $acc { $e }
            $($($more)*)?
        }
    )*};
}

accumulate! {
    Sum "cumsum" Numeric T::Acc, |a, b| a.add(b), T::widen, T::narrow, {
        const RUNS: bool = true;
        fn nothing(_: T::Acc) -> T::Acc { T::Acc::ZERO }
        #[inline(always)]
        fn after(before: T::Acc, acc: T::Acc) -> T::Acc { before.add(acc) }
        #[inline(always)]
        fn carry(before: (T::Acc, T::Acc), acc: T::Acc) -> (T::Acc, T::Acc) { compensated(before, acc) }
    };
    Product "cumprod" Numeric T::Acc, |a, b| a.mul(b), T::widen, T::narrow;
    Maximum "cummax" Real T, |a, b| a.max(b), std::convert::identity, std::convert::identity;
    Minimum "cummin" Real T, |a, b| a.min(b), std::convert::identity, std::convert::identity;
}

/// The compensated sum of two numbers, `(value, compensation)` (Neumaier 1974; the exact error of an addition by
/// Knuth). Integers have compensation 0, and sums that are not finite keep the previous one.
#[inline(always)]
fn compensated<A: Numeric>((before, low): (A, A), x: A) -> (A, A) {
    let sum = before.add(x);
    let added = sum.sub(before);
    let low = low.add(before.sub(sum.sub(added)).add(x.sub(added)));
    let whole = sum.add(low);
    let rest = low.sub(whole.sub(sum));
    if rest.sub(rest) == A::ZERO { (whole, rest) } else { (sum, A::ZERO) }
}

fn cumulate<T: Scalar, K: Accumulate<T>>(_: K, x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    let op = K::NAME;
    check_axis(op, axis, x.rank())?;
    let dense = x.layout().is_dense() && x.layout().strides().iter().all(|&s| s >= 0);
    let x = if dense { x.clone() } else { crate::copy::to_contiguous(x)? };
    // Axes in memory order, which the result keeps.
    let mut axes: Dims = (0..x.rank()).collect();
    axes.sort_by_key(|&a| std::cmp::Reverse(x.layout().strides()[a].unsigned_abs()));
    let ordered = x.permute(&axes)?;
    let place = axes.iter().position(|&a| a == axis).unwrap_or(0);
    let shape = ordered.shape();
    let (n, inner) = (shape[place], shape[place + 1..].iter().product());

    let elements = ordered.as_slice().unwrap_or_default();
    let out = Output::<T>::new(op, shape)?.try_write(|out| match inner {
        1 => Ok(rows::<T, K>(elements, out, n)),
        _ => columns::<T, K>(elements, out, n, inner),
    })?;
    let mut back: Dims = (0..axes.len()).collect();
    for (to, &from) in axes.iter().enumerate() {
        back[from] = to;
    }
    Ok(out.into_permuted(&back)?.with_route(Route::promoted(Path::LoopReduce, K::PROMOTES)))
}

/// True if elements are small enough for arrays on the stack.
const fn small<T>() -> bool {
    size_of::<T>() <= 64
}

/// Rows of `n` elements.
fn rows<'o, T: Scalar, K: Accumulate<T>>(x: &[T], out: Fresh<'o, T>, n: usize) -> Full<'o, T> {
    let per_chunk = n * (GRAIN / n.max(1)).max(1).next_multiple_of(4);
    // The latency of an addition: about four of them.
    let parallel = parallel::worthwhile(x.len(), 4);
    out.par_chunks(per_chunk, parallel, |chunk, out| {
        let x = &x[chunk * per_chunk..][..out.len()];
        if K::RUNS {
            return dispatch(Runs::<T, K> { x, n, out, kind: PhantomData });
        }
        let fours = if small::<T>() { x.len() / (4 * n) * (4 * n) } else { 0 };
        let (fours, rest) = x.split_at(fours);
        let mut out = out.cursor();
        for x in fours.chunks_exact(4 * n) {
            let four = four::<T, K>(x, out.next(4 * n));
            out.done(four);
        }
        for x in rest.chunks_exact(n) {
            let row = row::<T, K>(x, out.next(n));
            out.done(row);
        }
        out.finish()
    })
}

/// A row by itself.
fn row<'o, T: Scalar, K: Accumulate<T>>(x: &[T], out: Fresh<'o, T>) -> Full<'o, T> {
    let mut acc = K::lift(x[0]);
    let mut out = out.cursor();
    out.push(K::lower(acc));
    for &x in &x[1..] {
        acc = K::combine(acc, K::lift(x));
        out.push(K::lower(acc));
    }
    out.finish()
}

/// Four adjacent rows together, to hide the latency of a combination.
#[inline]
fn four<'o, T: Scalar, K: Accumulate<T>>(x: &[T], out: Fresh<'o, T>) -> Full<'o, T> {
    let n = x.len() / 4;
    let x: [&[T]; 4] = std::array::from_fn(|r| &x[r * n..][..n]);
    out.together::<4>(|out| {
        let mut out = out.map(Fresh::cursor);
        let mut acc = x.map(|x| K::lift(x[0]));
        for (out, &acc) in out.iter_mut().zip(&acc) {
            out.push(K::lower(acc));
        }
        let whole = 1 + (n - 1) / STEPS * STEPS;
        for i in (1..whole).step_by(STEPS) {
            let mut sums: [[T; STEPS]; 4] = x.map(|x| x[i..i + STEPS].as_chunks().0[0]);
            for c in 0..STEPS {
                for r in 0..4 {
                    acc[r] = K::combine(acc[r], K::lift(sums[r][c]));
                    sums[r][c] = K::lower(acc[r]);
                }
            }
            for (out, sums) in out.iter_mut().zip(&sums) {
                out.copy_from(sums);
            }
        }
        for i in whole..n {
            for r in 0..4 {
                acc[r] = K::combine(acc[r], K::lift(x[r][i]));
                out[r].push(K::lower(acc[r]));
            }
        }
        out.map(Cursor::finish)
    })
}

/// Rows of `n` elements, in runs.
struct Runs<'a, 'o, T: Scalar, K> {
    x: &'a [T],
    n: usize,
    out: Fresh<'o, T>,
    kind: PhantomData<K>,
}

impl<'o, T: Scalar, K: Accumulate<T>> Loop for Runs<'_, 'o, T, K> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let mut out = self.out.cursor();
        for row in self.x.chunks_exact(self.n) {
            let nothing = K::nothing(K::lift(row[0]));
            let mut before = (nothing, nothing);
            let mut acc = nothing;
            for (i, run) in row.chunks(RUN).enumerate() {
                if i > 0 {
                    before = K::carry(before, acc);
                    acc = nothing;
                }
                let (chunks, tail) = run.as_chunks::<LANES>();
                for chunk in chunks {
                    let some = prefixes::<T, K>(chunk.map(K::lift));
                    let so_far = K::after(before.0, acc);
                    let all = |x| K::lower(K::combine(so_far, x));
                    let next = out.next(LANES).map(&some, all);
                    acc = K::combine(acc, some[LANES - 1]);
                    out.done(next);
                }
                for &x in tail {
                    acc = K::combine(acc, K::lift(x));
                    out.push(K::lower(K::after(before.0, acc)));
                }
            }
        }
        out.finish()
    }
}

/// Inclusive scan of a vector of LANES elements in log₂ LANES steps.
#[inline(always)]
fn prefixes<T: Scalar, K: Accumulate<T>>(mut x: [K::Acc; LANES]) -> [K::Acc; LANES] {
    let mut step = 1;
    while step < LANES {
        let last = x;
        for i in step..LANES {
            x[i] = K::combine(last[i - step], last[i]);
        }
        step *= 2;
    }
    x
}

/// Columns of matrices of `n × inner`.
fn columns<'o, T: Scalar, K: Accumulate<T>>(
    x: &[T],
    out: Fresh<'o, T>,
    n: usize,
    inner: usize,
) -> Result<Full<'o, T>> {
    let most = (BLOCK_BYTES / size_of::<K::Acc>().max(1)).clamp(1, BLOCK);
    let parallel = parallel::worthwhile(x.len(), 1);
    let most = tile_width(x.len() / n.max(1), most, parallel);
    let blocks = inner.div_ceil(most);
    let per_chunk = GRAIN / (n * inner.min(most)).max(1);
    let accs = if K::RUNS && n > RUN { 3 } else { 1 };
    let scratch = || Workspace::new(accs * inner.min(most));
    share_with(out.columns([n, inner], most), per_chunk, parallel, scratch, |acc, item, out| {
        let at = item / blocks * n * inner + item % blocks * most;
        let acc = acc.fresh(accs * out.width());
        Ok(dispatch(ColumnBlock::<T, K> { x: &x[at..], pitch: inner, acc, out }))
    })
}

/// A block of columns.
struct ColumnBlock<'a, 'o, T: Scalar, K: Accumulate<T>> {
    /// From the first element of the columns on.
    x: &'a [T],
    pitch: usize,
    /// The accumulator of each column and, for kernels with runs, the totals of the previous runs and their
    /// compensation.
    acc: Fresh<'a, K::Acc>,
    out: OutputColumns<'o, T>,
}

impl<'o, T: Scalar, K: Accumulate<T>> Loop for ColumnBlock<'_, 'o, T, K> {
    type Output = FullColumns<'o, T>;
    #[inline(always)]
    fn run(self) -> FullColumns<'o, T> {
        let Self { x, pitch, acc, mut out } = self;
        let (n, width) = (out.rows(), out.width());
        let nothing = K::nothing(K::lift(x[0]));
        let mut all = acc.fill(nothing);
        let (acc, before) = all.split_at_mut(width);
        let (before, low) = before.split_at_mut(before.len() / 2);
        for i in 0..n {
            let x = &x[i * pitch..][..width];
            let anew = i == 0 || K::RUNS && i % RUN == 0;
            if anew && i > 0 {
                for ((acc, before), low) in acc.iter().zip(&mut *before).zip(&mut *low) {
                    (*before, *low) = K::carry((*before, *low), *acc);
                }
            }
            let step = |acc: &mut K::Acc, x: T| {
                let x = K::lift(x);
                *acc = if anew { x } else { K::combine(*acc, x) };
                *acc
            };
            let row = if !K::RUNS || i < RUN {
                out.next().extend(acc.iter_mut().zip(x).map(|(acc, &x)| K::lower(step(acc, x))))
            } else {
                let values = acc.iter_mut().zip(&*before).zip(x);
                out.next().extend(
                    values.map(|((acc, &before), &x)| K::lower(K::after(before, step(acc, x)))),
                )
            };
            out.done(row);
        }
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use t4a_algebra::{bf16, c32, c64, f16};

    use super::*;
    use crate::any::FromNumber;
    use crate::dtype::Element;
    use crate::testing::{Close, SHAPES, assert_close, elements, layouts, naive, tolerance};

    /// Every running result from scratch.
    fn reference<T: Scalar>(x: &Tensor<T>, axis: usize, f: impl Fn(Vec<T>) -> T) -> Vec<T> {
        naive(x.shape(), |at| {
            let mut from = at.to_vec();
            f((0..=at[axis])
                .map(|i| {
                    from[axis] = i;
                    x.get(&from).unwrap()
                })
                .collect())
        })
    }

    fn sums<T: Element + FromNumber + Close + Numeric>() {
        for shape in SHAPES {
            for axis in 0..shape.len() {
                for (name, x) in layouts::<T>(shape) {
                    let context = format!("{} {name} {shape:?} {axis}", T::DTYPE);
                    let got = elements(&cumsum(&x, axis).unwrap());
                    let want = reference(&x, axis, |lane| {
                        T::narrow(lane.iter().fold(T::Acc::ZERO, |acc, x| acc.add(x.widen())))
                    });
                    // Multiples of ¼ add up exactly.
                    assert_close(&got, &want, 0.0, &context);
                    let got = elements(&cumprod(&x, axis).unwrap());
                    let want = reference(&x, axis, |lane| {
                        T::narrow(lane.iter().fold(T::Acc::ONE, |acc, x| acc.mul(x.widen())))
                    });
                    assert_close(&got, &want, tolerance::<T>(100), &context);
                }
            }
        }
    }

    fn extremes<T: Element + FromNumber + Close + Real>() {
        for shape in SHAPES {
            for axis in 0..shape.len() {
                for (name, x) in layouts::<T>(shape) {
                    let context = format!("{} {name} {shape:?} {axis}", T::DTYPE);
                    let pick = |lane: Vec<T>, less: fn(&T, &T) -> bool| {
                        lane.into_iter().reduce(|a, b| if less(&b, &a) { b } else { a }).unwrap()
                    };
                    let want = reference(&x, axis, |lane| pick(lane, |a, b| a < b));
                    assert_close(&elements(&cummin(&x, axis).unwrap()), &want, 0.0, &context);
                    let want = reference(&x, axis, |lane| pick(lane, |a, b| a > b));
                    assert_close(&elements(&cummax(&x, axis).unwrap()), &want, 0.0, &context);
                }
            }
        }
    }

    #[test]
    fn running_sums_and_products_in_every_layout() {
        sums::<f64>();
        sums::<f32>();
        sums::<f16>();
        sums::<bf16>();
        sums::<i32>();
        sums::<u8>();
        sums::<c32>();
        sums::<c64>();
    }

    #[test]
    fn running_extremes_in_every_layout() {
        extremes::<f64>();
        extremes::<f32>();
        extremes::<f16>();
        extremes::<i64>();
        extremes::<u16>();
    }

    #[test]
    fn nan_stays_once_seen() {
        let x = Tensor::from_vec(vec![1.0, f32::NAN, 3.0, 0.0], &[4]).unwrap();
        for out in [cummax(&x, 0).unwrap(), cummin(&x, 0).unwrap()] {
            let out = elements(&out);
            assert!(out[0] == 1.0 && out[1..].iter().all(|v| v.is_nan()));
        }
        let x = x.reshape(&[4, 1]).unwrap().expand(&[4, 40]).unwrap();
        assert!(elements(&cummax(&x, 0).unwrap())[40..].iter().all(|v| v.is_nan()));
    }

    #[test]
    fn half_sums_accumulate_in_single_precision() {
        // 2048 + 1 is not a binary16 number: a sum rounded at every step would stagnate at 2048.
        let x = Tensor::full(&[4096], f16::ONE).unwrap();
        assert_eq!(cumsum(&x, 0).unwrap().get(&[4095]), Some(f16::from_f32(4096.0)));
        let x = x.reshape(&[4096, 1]).unwrap().expand(&[4096, 3]).unwrap();
        assert_eq!(cumsum(&x, 0).unwrap().get(&[4095, 2]), Some(f16::from_f32(4096.0)));
    }

    /// Added one by one in `f32`, ones end at 2²⁴.
    #[test]
    fn errors_of_long_sums_do_not_grow() {
        let n = 1 << 25;
        let y = cumsum(&Tensor::full(&[n], 1f32).unwrap(), 0).unwrap();
        assert_eq!(y.get(&[n - 1]), Some(33_554_432.0));
        let tenth = f64::from(0.1f32);
        for shape in [&[1 << 20, 3][..], &[6, 1 << 20], &[2, 1 << 19, 5]] {
            let axis = usize::from(shape[0] < 10);
            let y = cumsum(&Tensor::full(shape, 0.1f32).unwrap(), axis).unwrap();
            for i in [0, 1000, shape[axis] - 1] {
                let mut at = vec![1; shape.len()];
                at[axis] = i;
                let want = (i + 1) as f64 * tenth;
                let error = (f64::from(y.get(&at).unwrap()) - want).abs();
                assert!(error <= 257.0 * 2f64.powi(-24) * want, "{shape:?} {i}: {error}");
            }
        }
        let large = f32::MAX;
        let x = vec![1.0, -large, large, large, f32::INFINITY, 1.0, f32::NEG_INFINITY, 1.0];
        let y = elements(&cumsum(&Tensor::from_vec(x, &[8]).unwrap(), 0).unwrap());
        assert_eq!(y[..6], [1.0, -large, 0.0, large, f32::INFINITY, f32::INFINITY]);
        assert!(y[6..].iter().all(|y| y.is_nan()));
    }

    #[test]
    fn large_inputs_on_threads_and_memory_order() {
        let x = Tensor::from_fn(&[600, 700], |i| (i % 11) as i32 - 5).unwrap();
        for x in [x.clone(), x.permute(&[1, 0]).unwrap()] {
            for axis in 0..2 {
                let got = cumsum(&x, axis).unwrap();
                assert_eq!(got.layout().strides(), x.layout().strides());
                let mut want = elements(&x);
                let cols = x.shape()[1];
                let step = if axis == 0 { cols } else { 1 };
                for i in 0..want.len() {
                    if if axis == 0 { i >= cols } else { i % cols > 0 } {
                        want[i] += want[i - step];
                    }
                }
                assert_eq!(elements(&got), want);
            }
        }
        assert!(cumsum(&x, 2).is_err());
        assert!(cumsum(&Tensor::full(&[], 1).unwrap(), 0).is_err());
    }
}
