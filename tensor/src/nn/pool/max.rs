//! Maxima of windows.
//!
//! Positions outside of x count as −∞. NaN is greater than any number. Among equal elements the
//! first in row-major order is the maximum.

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Real};

use super::{PoolOptions, positions, sizes};
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::loops::parallel;
use crate::output::{Filled, Fresh, Full, Output, parts_mut, share, share_with};
use crate::route::{Path, Route};
use crate::storage::collect;
use crate::tensor::Tensor;

/// Maximum ratio of the line of all windows to a line of x.
const FAR: usize = 4;
/// Minimum number of elements of the planes of a task.
const CHUNK: usize = 1 << 13;

/// `y[n, c, i, j]` = the maximum of window (i, j).
///
/// Shapes: `[N, C, H, W] → [N, C, H', W']`. Cost: one read of `x`, one write of `y`, one
/// comparison per window element.
///
/// # Errors
/// [`TensorError::Shape`], [`TensorError::Value`] for windows that do not fit; `OutOfMemory`.
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::nn::pool::{PoolOptions, max_pool, max_pool_with_indices, mean_pool};
///
/// let x = Tensor::from_vec(vec![1.0f32, 2.0, 3.0, 4.0], &[1, 1, 2, 2])?;
/// let options = PoolOptions::new([2, 2]);
/// assert_eq!(max_pool(&x, &options)?.to_vec()?, [4.0]);
/// assert_eq!(max_pool_with_indices(&x, &options)?.1.to_vec()?, [3]);
/// assert_eq!(mean_pool(&x, &options, false)?.to_vec()?, [2.5]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn max_pool<T: Float>(x: &Tensor<T>, options: &PoolOptions) -> Result<Tensor<T>> {
    Ok(pool::<T, false>("max_pool", x, options)?.0)
}

/// [`max_pool`], and for each window the index of its maximum in the plane of x, `i·W + j`; −1 for a window outside x.
///
/// # Errors
/// As [`max_pool`].
pub fn max_pool_with_indices<T: Float>(
    x: &Tensor<T>,
    options: &PoolOptions,
) -> Result<(Tensor<T>, Tensor<i64>)> {
    pool::<T, true>("max_pool_with_indices", x, options)
}

/// Cotangent of `x`: the cotangent of every maximum is added at its index.
///
/// Shapes: `x_shape` is `[N, C, H, W]`, `dy` and `indices` are `[N, C, H', W']`; negative indices
/// are skipped.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::Index`] for one past the plane; `OutOfMemory`.
pub fn max_pool_vjp<T: Float>(
    x_shape: &[usize],
    dy: &Tensor<T>,
    indices: &Tensor<i64>,
) -> Result<Tensor<T>> {
    let op = "max_pool_vjp";
    let [planes, h, w] = sizes(op, x_shape)?;
    let same = dy.shape() == indices.shape() && dy.rank() == 4 && dy.shape()[..2] == x_shape[..2];
    if !same {
        let required = "cotangents and indices of one shape, with the images and channels of x";
        return Err(TensorError::shapes(op, dy.shape(), indices.shape(), required));
    }
    let (dy, indices) = (row_major(dy)?, row_major(indices)?);
    let places = indices.as_slice().unwrap_or_default();
    let size = h * w;
    let mut dx = Tensor::<T>::zeros(x_shape)?;
    let grads = dy.as_slice().unwrap_or_default();
    let per_plane = dy.shape()[2] * dy.shape()[3];
    let parallel = parallel::worthwhile(grads.len(), 4);
    let per_chunk = (CHUNK / size.max(per_plane).max(1)).max(1);
    share(parts_mut(dx.as_mut_slice()?, planes), per_chunk, parallel, |plane, dx| {
        let range = plane * per_plane..(plane + 1) * per_plane;
        for (&index, &g) in places[range.clone()].iter().zip(&grads[range]) {
            match dx.get_mut(index as usize) {
                Some(x) => *x = x.add(g),
                None if index < 0 => {}
                None => return Err(TensorError::Index { op, index, axis: 2, size }),
            }
        }
        Ok(())
    })?;
    Ok(dx.with_route(Route::native(Path::Fused)))
}

fn pool<T: Float, const INDICES: bool>(
    op: &'static str,
    x: &Tensor<T>,
    options: &PoolOptions,
) -> Result<(Tensor<T>, Tensor<i64>)> {
    let [planes, h, w] = sizes(op, x.shape())?;
    let [oh, ow] = positions(op, x.shape(), options)?;
    if INDICES && h.saturating_mul(w) > i32::MAX as usize {
        return Err(TensorError::shape(op, x.shape(), "a plane of less than 2³¹ elements"));
    }
    let x = row_major(x)?;
    let shape = [x.shape()[0], x.shape()[1], oh, ow];
    let out = Output::<T>::new(op, &shape)?;
    let indices = Output::<i64>::new(op, if INDICES { &shape } else { &[0] })?;
    let xs = x.as_slice().unwrap_or_default();
    // Along a line: windows of step s are contiguous in phases; position u is in phase u mod s at index u div s.
    let (step, padding) = (options.stride[1], options.padding[1]);
    let reach = ow.saturating_sub(1) * step + (options.window[1] - 1) * options.dilation[1] + 1;
    // Windows that extend far beyond x, or are far apart, are evaluated individually instead.
    let line = reach.max(padding + w).next_multiple_of(step);
    let far = line > FAR * (w + 1024);
    let pitch = if far { 0 } else { line / step };
    // First column of each window inside x: the argmax if all elements are −∞.
    let left = |j: usize| {
        let k = padding.saturating_sub(j * step).div_ceil(options.dilation[1]);
        let at = j * step + k * options.dilation[1];
        if k < options.window[1] && at < padding + w { (at - padding) as i32 } else { -1 }
    };
    let lefts: Vec<i32> =
        if INDICES { collect("max_pool", ow, (0..ow).map(left))? } else { Vec::new() };
    let work = options.window.into_iter().fold(planes * oh * ow, usize::saturating_mul);
    // Several planes share scratch (bench `backend`, rows `max pool`).
    let per_chunk = (CHUNK / (h * w).max(oh * ow).max(1)).max(1);
    let scratch = || {
        let row = Filled::new(if INDICES { 0 } else { w }, T::NEG_INFINITY)?;
        let line = Filled::new(pitch * step, T::NEG_INFINITY)?;
        Ok((row, line, Filled::new(lefts.len(), 0i32)?))
    };
    let (y, at) = out.try_write_both(indices, |y, at| {
        let parts = (y.equal_parts(planes), at.equal_parts(planes));
        let parallel = parallel::worthwhile(work, 1);
        share_with(parts, per_chunk, parallel, scratch, |(row, line, best), plane, (y, at)| {
            let lines = Lines::<T, INDICES> {
                x: &xs[plane * h * w..][..h * w],
                size: [h, w],
                row,
                line,
                pitch,
                far,
                lefts: &lefts,
                best,
                ow,
                options: *options,
            };
            Ok(dispatch(Plane { lines, y, at }))
        })
    })?;
    let route = Route::native(Path::Fused);
    Ok((y.with_route(route), at.with_route(route)))
}

struct Plane<'a, 'o, T, const INDICES: bool> {
    lines: Lines<'a, T, INDICES>,
    y: Fresh<'o, T>,
    at: Fresh<'o, i64>,
}

struct Lines<'a, T, const INDICES: bool> {
    x: &'a [T],
    size: [usize; 2],
    /// Maxima over the lines of a window.
    row: &'a mut [T],
    /// A line by phases, between elements of −∞.
    line: &'a mut [T],
    /// Elements of a phase.
    pitch: usize,
    /// True if there are no phases, because most of them would be outside x.
    far: bool,
    /// First column of each window of a line, or −1.
    lefts: &'a [i32],
    /// Indices of the maxima of one line of y.
    best: &'a mut [i32],
    ow: usize,
    options: PoolOptions,
}

impl<'o, T: Float, const INDICES: bool> Loop for Plane<'_, 'o, T, INDICES> {
    type Output = (Full<'o, T>, Full<'o, i64>);
    #[inline(always)]
    fn run(mut self) -> Self::Output {
        let ow = self.lines.ow;
        let count = self.y.len().checked_div(ow).unwrap_or(0);
        let mut ys = self.y.cursor();
        if !INDICES {
            for i in 0..count {
                let y = ys.next(ow);
                ys.done(match self.lines.far {
                    true => y.each(self.lines.best(i, |value, _| value)),
                    false => self.lines.values(i, y),
                });
            }
            return (ys.finish(), self.at.fill(-1));
        }
        let mut ats = self.at.cursor();
        for i in 0..count {
            let (y, at) = (ys.next(ow), ats.next(ow));
            let (y, at) = match self.lines.far {
                true => y.each_both(at, self.lines.best(i, |value, place| (value, place))),
                false => self.lines.places(i, y, at),
            };
            ys.done(y);
            ats.done(at);
        }
        (ys.finish(), ats.finish())
    }
}

/// Index of position `u` of a line in its phases.
#[inline(always)]
fn shift(u: usize, step: usize, pitch: usize) -> usize {
    u % step * pitch + u / step
}

/// Writes a line of x to its phases.
#[inline(always)]
fn split<T: Float>(row: &[T], padding: usize, step: usize, pitch: usize, line: &mut [T]) {
    match step {
        1 => line[padding..padding + row.len()].copy_from_slice(row),
        2 => {
            let (pairs, last) = row.as_chunks::<2>();
            let (low, high) = line.split_at_mut(pitch);
            // Even columns are in the phase of the padding.
            let (even, odd) = if padding.is_multiple_of(2) {
                (&mut low[padding / 2..], &mut high[padding / 2..])
            } else {
                (&mut high[padding / 2..], &mut low[padding / 2 + 1..])
            };
            if let Some(&x) = last.first() {
                even[pairs.len()] = x;
            }
            let (even, odd) = (&mut even[..pairs.len()], &mut odd[..pairs.len()]);
            for ((pair, even), odd) in pairs.iter().zip(even).zip(odd) {
                *even = pair[0];
                *odd = pair[1];
            }
        }
        _ => {
            for (w, &x) in row.iter().enumerate() {
                line[shift(w + padding, step, pitch)] = x;
            }
        }
    }
}

impl<T: Float, const INDICES: bool> Lines<'_, T, INDICES> {
    /// Lines of x in the window of line `i` of y: the elements of the window, and the first line.
    #[inline(always)]
    fn lines(&self, i: usize) -> (std::ops::Range<usize>, usize) {
        let PoolOptions { window, stride, padding, dilation, .. } = self.options;
        let start = i * stride[0];
        let first = padding[0].saturating_sub(start).div_ceil(dilation[0]);
        let end = (padding[0] + self.size[0]).saturating_sub(start).div_ceil(dilation[0]);
        let last = end.min(window[0]);
        (first.min(last)..last, (start + first * dilation[0]).wrapping_sub(padding[0]))
    }

    /// Line `i` of y, window by window, over the elements inside x: the maximum and its index.
    fn best<R>(&self, i: usize, give: impl Fn(T, i64) -> R) -> impl Fn(usize) -> R {
        let PoolOptions { window, stride, padding, dilation, .. } = self.options;
        let (lines, top) = self.lines(i);
        let w = self.size[1];
        move |j: usize| {
            let start = j * stride[1];
            let first = padding[1].saturating_sub(start).div_ceil(dilation[1]);
            let end = (padding[1] + w).saturating_sub(start).div_ceil(dilation[1]);
            let columns = first..end.min(window[1]);
            let (mut best, mut place) = (T::NEG_INFINITY, -1);
            for h in (0..lines.len()).map(|k| top + k * dilation[0]) {
                for k in columns.clone() {
                    let at = h * w + (start + k * dilation[1] - padding[1]);
                    let x = self.x[at];
                    if place < 0 || x > best || (x.is_nan() && !best.is_nan()) {
                        (best, place) = (x, at as i64);
                    }
                }
            }
            give(best, place)
        }
    }

    /// Line `i` of y: the maxima of columns first, then along the line.
    #[inline(always)]
    fn values<'o>(&mut self, i: usize, y: Fresh<'o, T>) -> Full<'o, T> {
        let PoolOptions { window, stride, padding, dilation, .. } = self.options;
        let (elements, top) = self.lines(i);
        let w = self.size[1];
        let line = |k: usize| &self.x[(top + k * dilation[0]) * w..][..w];
        match elements.len() {
            0 => self.row.fill(T::NEG_INFINITY),
            1 => self.row.copy_from_slice(line(0)),
            _ => {
                for ((max, &a), &b) in self.row.iter_mut().zip(line(0)).zip(line(1)) {
                    *max = Real::max(a, b);
                }
            }
        }
        for k in 2..elements.len() {
            for (max, &x) in self.row.iter_mut().zip(line(k)) {
                *max = Real::max(*max, x);
            }
        }
        split(self.row, padding[1], stride[1], self.pitch, self.line);
        let moved =
            |k: usize| &self.line[shift(k * dilation[1], stride[1], self.pitch)..][..self.ow];
        let mut y = match window[1] {
            1 => y.copy_from(moved(0)),
            _ => y.zip(moved(0), moved(1), Real::max),
        };
        for k in 2..window[1] {
            for (y, &x) in y.iter_mut().zip(moved(k)) {
                *y = Real::max(*y, x);
            }
        }
        y
    }

    /// Line `i` of y with indices, one window element at a time over the whole line.
    #[inline(always)]
    fn places<'o>(
        &mut self,
        i: usize,
        y: Fresh<'o, T>,
        at: Fresh<'o, i64>,
    ) -> (Full<'o, T>, Full<'o, i64>) {
        let PoolOptions { window, stride, padding, dilation, .. } = self.options;
        let (elements, top) = self.lines(i);
        let w = self.size[1];
        let base = if elements.is_empty() { None } else { Some((top * w) as i32) };
        for (best, &left) in self.best.iter_mut().zip(self.lefts) {
            *best = base.filter(|_| left >= 0).map_or(-1, |base| base + left);
        }
        let mut y = y.fill(T::NEG_INFINITY);
        for kh in 0..elements.len() {
            let h = top + kh * dilation[0];
            split(&self.x[h * w..][..w], padding[1], stride[1], self.pitch, self.line);
            for kw in 0..window[1] {
                let (u, step) = (kw * dilation[1], stride[1]);
                let from = &self.line[shift(u, step, self.pitch)..];
                let mut place = ((h * w + u) as i32).wrapping_sub(padding[1] as i32);
                for ((y, best), &x) in y.iter_mut().zip(self.best.iter_mut()).zip(from) {
                    let larger = x > *y || (x.is_nan() && !y.is_nan());
                    *y = if larger { x } else { *y };
                    *best = if larger { place } else { *best };
                    place = place.wrapping_add(step as i32);
                }
            }
        }
        (y, at.map(self.best, i64::from))
    }
}
