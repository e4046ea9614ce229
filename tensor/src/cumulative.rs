//! Running sums, products, maxima and minima along an axis.
//!
//! ```text
//! memory order    outer × axis × inner
//! inner = 1       one accumulator per row; four rows at a time hide its latency
//! inner > 1       a block of accumulators, one per column: vectorised, and read in memory order
//! ```

use std::mem::MaybeUninit;

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Numeric, Real, Scalar};

use crate::error::{Result, check_axis};
use crate::layout::Dims;
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Accumulators kept in the first-level cache.
const BLOCK: usize = 512;
/// Elements of a row that are read, summed and written at a time: rows a power of two apart share
/// cache sets, which lines that are read and lines that are written should not fill in turn (bench
/// `backend`, row `cumsum 1024² rows`).
const STEPS: usize = 4;
/// Elements per unit of parallel work.
const GRAIN: usize = 1 << 15;

/// `outᵢ = x₀ + … + xᵢ` along an axis.
///
/// Sums of 16-bit floats accumulate in `f32`; integers wrap. The order of additions is that of the
/// axis.
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
    type Acc: Copy;
    fn lift(x: T) -> Self::Acc;
    fn lower(acc: Self::Acc) -> T;
    fn combine(acc: Self::Acc, x: Self::Acc) -> Self::Acc;
}

macro_rules! accumulate {
    ($($name:ident $label:literal $class:ident $acc:ty, |$a:ident, $b:ident| $e:expr,
        $lift:expr, $lower:expr;)*) => {$(
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
        }
    )*};
}

accumulate! {
    Sum "cumsum" Numeric T::Acc, |a, b| a.add(b), T::widen, T::narrow;
    Product "cumprod" Numeric T::Acc, |a, b| a.mul(b), T::widen, T::narrow;
    Maximum "cummax" Real T, |a, b| a.max(b), std::convert::identity, std::convert::identity;
    Minimum "cummin" Real T, |a, b| a.min(b), std::convert::identity, std::convert::identity;
}

fn cumulate<T: Scalar, K: Accumulate<T>>(_: K, x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    let op = K::NAME;
    check_axis(op, axis, x.rank())?;
    let dense = x.layout().is_dense() && x.layout().strides().iter().all(|&s| s >= 0);
    let x = if dense { x.clone() } else { crate::copy::to_contiguous(x)? };
    // Axes in the order of memory: the result keeps it.
    let mut axes: Dims = (0..x.rank()).collect();
    axes.sort_by_key(|&a| std::cmp::Reverse(x.layout().strides()[a].unsigned_abs()));
    let order = x.layout().permute(&axes)?;
    let place = axes.iter().position(|&a| a == axis).unwrap_or(0);
    let product = |shape: &[usize]| shape.iter().product::<usize>();
    let shape = order.shape();
    let (outer, n, inner) = (product(&shape[..place]), shape[place], product(&shape[place + 1..]));

    let mut out = Output::<T>::new(op, shape)?;
    if out.layout().numel() > 0 {
        let (src, dst) = (SendPtr(x.as_ptr().cast_mut()), SendPtr(out.as_mut_ptr()));
        // SAFETY: both sides hold `outer · n · inner` elements.
        unsafe {
            match inner {
                1 => rows::<T, K>(src, dst, outer, n),
                _ => columns::<T, K>(src, dst, outer, n, inner),
            }
        }
    }
    // SAFETY: every element was written.
    let out = unsafe { out.assume_init() };
    let mut back: Dims = (0..axes.len()).collect();
    for (to, &from) in axes.iter().enumerate() {
        back[from] = to;
    }
    Ok(out.into_permuted(&back)?.with_route(Route::native(Path::LoopReduce)))
}

/// # Safety
/// `src` and `dst` hold `count` rows of `n` elements.
unsafe fn rows<T: Scalar, K: Accumulate<T>>(
    src: SendPtr<T>,
    dst: SendPtr<T>,
    count: usize,
    n: usize,
) {
    let per_chunk = (GRAIN / n).max(1).next_multiple_of(4);
    // The latency of an addition: about four of them.
    let parallel = parallel::worthwhile(count.saturating_mul(n), 4);
    parallel::for_each(count.div_ceil(per_chunk), parallel, &|chunk| {
        let mut row = chunk * per_chunk;
        let end = count.min(row + per_chunk);
        // SAFETY: rows below `count`.
        unsafe {
            while row + 4 <= end {
                let at = row * n;
                scan::<T, K, 4>(src.get().add(at), dst.get().add(at), n);
                row += 4;
            }
            for row in row..end {
                scan::<T, K, 1>(src.get().add(row * n), dst.get().add(row * n), n);
            }
        }
    });
}

/// Scans `R` neighbouring rows together.
///
/// # Safety
/// `src` and `dst` hold `R` rows of `n > 0` elements.
#[inline]
unsafe fn scan<T: Scalar, K: Accumulate<T>, const R: usize>(src: *const T, dst: *mut T, n: usize) {
    // SAFETY: row r < R and element i < n.
    unsafe {
        let mut acc: [K::Acc; R] = std::array::from_fn(|r| K::lift(*src.add(r * n)));
        for r in 0..R {
            dst.add(r * n).write(K::lower(acc[r]));
        }
        let whole = (n - 1) / STEPS * STEPS;
        for i in (1..=whole).step_by(STEPS) {
            let x: [[T; STEPS]; R] =
                std::array::from_fn(|r| src.add(r * n + i).cast::<[T; STEPS]>().read());
            let mut sums = x;
            for c in 0..STEPS {
                for r in 0..R {
                    acc[r] = K::combine(acc[r], K::lift(x[r][c]));
                    sums[r][c] = K::lower(acc[r]);
                }
            }
            for (r, sums) in sums.into_iter().enumerate() {
                dst.add(r * n + i).cast::<[T; STEPS]>().write(sums);
            }
        }
        for i in whole + 1..n {
            for r in 0..R {
                acc[r] = K::combine(acc[r], K::lift(*src.add(r * n + i)));
                dst.add(r * n + i).write(K::lower(acc[r]));
            }
        }
    }
}

/// # Safety
/// `src` and `dst` hold `outer · n · inner` elements.
unsafe fn columns<T: Scalar, K: Accumulate<T>>(
    src: SendPtr<T>,
    dst: SendPtr<T>,
    outer: usize,
    n: usize,
    inner: usize,
) {
    let blocks = inner.div_ceil(BLOCK);
    let items = outer * blocks;
    let per_chunk = (GRAIN / (n * inner.min(BLOCK))).max(1);
    let parallel = parallel::worthwhile(outer * n * inner, 1);
    parallel::for_each(items.div_ceil(per_chunk), parallel, &|chunk| {
        for item in chunk * per_chunk..items.min((chunk + 1) * per_chunk) {
            let first = item % blocks * BLOCK;
            let at = item / blocks * n * inner + first;
            let cols = BLOCK.min(inner - first);
            // SAFETY: columns `first..first + cols` of one matrix; blocks are disjoint.
            unsafe {
                dispatch(Columns::<T, K> {
                    src: src.get().add(at),
                    dst: dst.get().add(at),
                    n,
                    inner,
                    cols,
                    kernel: std::marker::PhantomData,
                });
            }
        }
    });
}

/// A block of columns. Made in `columns` only, which vouches for the pointers.
struct Columns<T, K> {
    src: *const T,
    dst: *mut T,
    n: usize,
    inner: usize,
    cols: usize,
    kernel: std::marker::PhantomData<K>,
}

impl<T: Scalar, K: Accumulate<T>> Loop for Columns<T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut acc = [const { MaybeUninit::<K::Acc>::uninit() }; BLOCK];
        let acc = &mut acc[..self.cols];
        for i in 0..self.n {
            // SAFETY: row i < n of the block, in both matrices; these are different memory.
            let (x, out) = unsafe {
                (
                    std::slice::from_raw_parts(self.src.add(i * self.inner), self.cols),
                    std::slice::from_raw_parts_mut(
                        self.dst.add(i * self.inner).cast::<MaybeUninit<T>>(),
                        self.cols,
                    ),
                )
            };
            for ((acc, &x), out) in acc.iter_mut().zip(x).zip(out) {
                let x = K::lift(x);
                // SAFETY: written in row 0.
                let sum = if i == 0 { x } else { K::combine(unsafe { acc.assume_init() }, x) };
                acc.write(sum);
                out.write(K::lower(sum));
            }
        }
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
        // 2048 + 1 is not a binary16 number: rounding every partial sum would stay at 2048.
        let x = Tensor::full(&[4096], f16::ONE).unwrap();
        assert_eq!(cumsum(&x, 0).unwrap().get(&[4095]), Some(f16::from_f32(4096.0)));
        let x = x.reshape(&[4096, 1]).unwrap().expand(&[4096, 3]).unwrap();
        assert_eq!(cumsum(&x, 0).unwrap().get(&[4095, 2]), Some(f16::from_f32(4096.0)));
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
