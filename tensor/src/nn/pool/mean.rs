//! Means of windows. A window is a range of lines times a range of columns, so the sum runs over
//! lines first and the divisor is a product.

use std::ops::Range;

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::{PoolOptions, check_output, positions, sizes};
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::loops::parallel;
use crate::output::{Filled, Fresh, Full, Output, parts_mut, share};
use crate::route::{Path, Route};
use crate::storage::collect;
use crate::tensor::Tensor;

/// `y[n, c, i, j]` = the sum over window (i, j) divided by its number of elements: of those inside
/// of x, or with `count_padding` of those inside of the padded plane.
///
/// Shapes: `[N, C, H, W] → [N, C, H', W']`. Cost: one read of `x`, one write of `y`, one addition
/// per window element.
///
/// # Errors
/// [`TensorError::Shape`], [`TensorError::Value`] for windows that do not fit or are dilated;
/// `OutOfMemory`.
pub fn mean_pool<T: Float>(
    x: &Tensor<T>,
    options: &PoolOptions,
    count_padding: bool,
) -> Result<Tensor<T>> {
    let op = "mean_pool";
    let axes = stepped(op, x.shape(), options, count_padding)?;
    forward(op, x, &axes)
}

/// Cotangent of `x` in [`mean_pool`]: that of every window, divided as in the forward pass, is added to each of its
/// elements. `x_shape` is the shape of `x`.
///
/// # Errors
/// As [`mean_pool`]; [`TensorError::ShapeMismatch`].
pub fn mean_pool_vjp<T: Float>(
    x_shape: &[usize],
    dy: &Tensor<T>,
    options: &PoolOptions,
    count_padding: bool,
) -> Result<Tensor<T>> {
    let op = "mean_pool_vjp";
    let axes = stepped(op, x_shape, options, count_padding)?;
    backward(op, x_shape, dy, &axes)
}

/// [`mean_pool`] with `size` windows along each axis that cover x: window i spans
/// `⌊i·n/size⌋ … ⌈(i + 1)·n/size⌉` of n elements.
///
/// # Errors
/// [`TensorError::Shape`], [`TensorError::Value`] for empty planes; `OutOfMemory`.
pub fn adaptive_mean_pool<T: Float>(x: &Tensor<T>, size: [usize; 2]) -> Result<Tensor<T>> {
    let op = "adaptive_mean_pool";
    let axes = adaptive(op, x.shape(), size)?;
    forward(op, x, &axes)
}

/// Cotangent of `x` of [`adaptive_mean_pool`]; the size is that of `dy`.
///
/// # Errors
/// As [`adaptive_mean_pool`]; [`TensorError::ShapeMismatch`].
pub fn adaptive_mean_pool_vjp<T: Float>(x_shape: &[usize], dy: &Tensor<T>) -> Result<Tensor<T>> {
    let op = "adaptive_mean_pool_vjp";
    sizes(op, dy.shape())?;
    let axes = adaptive(op, x_shape, [dy.shape()[2], dy.shape()[3]])?;
    backward(op, x_shape, dy, &axes)
}

/// For each window along one axis: its elements inside x, and its divisor.
type Windows = Vec<(Range<usize>, usize)>;

/// The windows along an axis of `size` elements.
#[derive(Clone, Copy)]
struct WindowAxis {
    size: usize,
    /// Number of windows.
    count: usize,
    kind: WindowRule,
}

#[derive(Clone, Copy)]
enum WindowRule {
    Stepped { window: usize, stride: usize, padding: usize, count_padding: bool },
    Adaptive,
}

impl WindowAxis {
    fn window(&self, i: usize) -> (Range<usize>, usize) {
        match self.kind {
            WindowRule::Stepped { window, stride, padding, count_padding } => {
                let (from, end) = (i * stride, padding + self.size);
                let to = (from + window).min(end + padding);
                let inside = from.clamp(padding, end) - padding..to.clamp(padding, end) - padding;
                let count = if count_padding { to.saturating_sub(from) } else { inside.len() };
                (inside, count.max(1))
            }
            WindowRule::Adaptive => {
                let place = |i: usize| i as u128 * self.size as u128;
                let from = (place(i) / self.count as u128) as usize;
                let range = from..place(i + 1).div_ceil(self.count as u128) as usize;
                let count = range.len().max(1);
                (range, count)
            }
        }
    }

    fn windows(&self) -> Result<Windows> {
        collect("mean_pool", self.count, (0..self.count).map(|i| self.window(i)))
    }
}

fn stepped(
    op: &'static str,
    x: &[usize],
    options: &PoolOptions,
    count_padding: bool,
) -> Result<[WindowAxis; 2]> {
    let counts = positions(op, x, options)?;
    let PoolOptions { window, stride, padding, dilation, .. } = *options;
    if dilation != [1; 2] {
        return Err(TensorError::value(op, "means of dilated windows are not defined"));
    }
    Ok([0, 1].map(|i| {
        let (window, stride, padding) = (window[i], stride[i], padding[i]);
        let kind = WindowRule::Stepped { window, stride, padding, count_padding };
        WindowAxis { size: x[2 + i], count: counts[i], kind }
    }))
}

fn adaptive(op: &'static str, x: &[usize], size: [usize; 2]) -> Result<[WindowAxis; 2]> {
    let [_, h, w] = sizes(op, x)?;
    if (h == 0 || w == 0) && !size.contains(&0) {
        return Err(TensorError::shape(op, x, "planes that are not empty"));
    }
    Ok([0, 1].map(|i| WindowAxis { size: x[2 + i], count: size[i], kind: WindowRule::Adaptive }))
}

fn forward<T: Float>(op: &'static str, x: &Tensor<T>, axes: &[WindowAxis; 2]) -> Result<Tensor<T>> {
    let [planes, h, w] = sizes(op, x.shape())?;
    let [oh, ow] = axes.map(|axis| axis.count);
    let out = Output::<T>::new(op, &[x.shape()[0], x.shape()[1], oh, ow])?;
    let per = oh * ow;
    let route = Route::native(Path::Fused);
    if out.numel() == 0 {
        return Ok(out.write(|y| y.copy_from(&[])).with_route(route));
    }
    let x = row_major(x)?;
    let x = x.as_slice().unwrap_or_default();
    let windows = &[axes[0].windows()?, axes[1].windows()?];
    let parallel = parallel::worthwhile(planes * (h * w + per), 2);
    let y = out.try_write(|y| {
        share(y.parts(per), 1, parallel, |plane, y| {
            let mut line = Filled::new(w, T::ZERO)?;
            let x = &x[plane * h * w..][..h * w];
            Ok(dispatch(MeanPool { x, line: &mut line, y, windows }))
        })
    })?;
    Ok(y.with_route(route))
}

struct MeanPool<'a, 'o, T> {
    x: &'a [T],
    /// Sums over the lines of a window.
    line: &'a mut [T],
    y: Fresh<'o, T>,
    windows: &'a [Windows; 2],
}

impl<'o, T: Float> Loop for MeanPool<'_, 'o, T> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let [lines, columns] = self.windows;
        let w = self.line.len();
        let mut y = self.y.cursor();
        for (rows, height) in lines {
            self.line.fill(T::ZERO);
            for h in rows.clone() {
                for (sum, &x) in self.line.iter_mut().zip(&self.x[h * w..(h + 1) * w]) {
                    *sum = sum.add(x);
                }
            }
            let line = y.next(columns.len()).extend(columns.iter().map(|(range, width)| {
                let line = &self.line[range.clone()];
                let sum = line.iter().fold(T::ZERO, |sum, &x| sum.add(x));
                sum.mul(T::from_f64(1.0 / (height * width) as f64))
            }));
            y.done(line);
        }
        y.finish()
    }
}

fn backward<T: Float>(
    op: &'static str,
    x_shape: &[usize],
    dy: &Tensor<T>,
    axes: &[WindowAxis; 2],
) -> Result<Tensor<T>> {
    let [planes, h, w] = sizes(op, x_shape)?;
    let [oh, ow] = axes.map(|axis| axis.count);
    check_output(op, dy.shape(), x_shape, [oh, ow])?;
    let dy = row_major(dy)?;
    let grads = dy.as_slice().unwrap_or_default();
    let mut dx = Tensor::<T>::zeros(x_shape)?;
    let per = oh * ow;
    if !grads.is_empty() {
        let windows = &[axes[0].windows()?, axes[1].windows()?];
        let parallel = parallel::worthwhile(planes * (h * w + per), 2);
        share(parts_mut(dx.as_mut_slice()?, planes), 1, parallel, |plane, dx| {
            let mut line = Filled::new(w, T::ZERO)?;
            let dy = &grads[plane * per..(plane + 1) * per];
            dispatch(MeanPoolVjp { dy, line: &mut line, dx, windows });
            Ok(())
        })?;
    }
    Ok(dx.with_route(Route::native(Path::Fused)))
}

struct MeanPoolVjp<'a, T> {
    dy: &'a [T],
    /// The cotangents of one line of windows, at their columns.
    line: &'a mut [T],
    dx: &'a mut [T],
    windows: &'a [Windows; 2],
}

impl<T: Float> Loop for MeanPoolVjp<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let [lines, columns] = self.windows;
        let w = self.line.len();
        for ((rows, height), dy) in lines.iter().zip(self.dy.chunks(columns.len().max(1))) {
            self.line.fill(T::ZERO);
            for ((range, width), &dy) in columns.iter().zip(dy) {
                let share = dy.mul(T::from_f64(1.0 / (height * width) as f64));
                for x in &mut self.line[range.clone()] {
                    *x = x.add(share);
                }
            }
            for h in rows.clone() {
                for (x, &v) in self.dx[h * w..(h + 1) * w].iter_mut().zip(self.line.iter()) {
                    *x = x.add(v);
                }
            }
        }
    }
}
