//! Maxima of windows.
//!
//! Positions outside of x count as −∞. NaN is greater than any number. Among equal elements the
//! first in row-major order is the maximum.

use std::mem::MaybeUninit;

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Real};

use super::{PoolOptions, positions, row_major, sizes};
use crate::error::{Result, TensorError};
use crate::loops::parallel::{self, SendPtr};
use crate::nn::for_each_chunk;
use crate::route::{Path, Route};
use crate::tensor::{Output, Tensor};

/// `y[n, c, i, j]` = the greatest element of window (i, j).
///
/// Shapes: `[N, C, H, W] → [N, C, H', W']`. Cost: one read of `x`, one write of `y`, one
/// comparison per window element.
///
/// # Errors
/// [`TensorError::Shape`], [`TensorError::Value`] for windows that do not fit; `OutOfMemory`.
pub fn max_pool<T: Float>(x: &Tensor<T>, options: &PoolOptions) -> Result<Tensor<T>> {
    Ok(pool::<T, false>("max_pool", x, options)?.0)
}

/// [`max_pool`], and for each window the place of its maximum in the plane of x, `i·W + j`; −1 for
/// a window that lies outside.
///
/// # Errors
/// As [`max_pool`].
pub fn max_pool_with_indices<T: Float>(
    x: &Tensor<T>,
    options: &PoolOptions,
) -> Result<(Tensor<T>, Tensor<i64>)> {
    pool::<T, true>("max_pool_with_indices", x, options)
}

/// Cotangent of `x`: that of every maximum at its place.
///
/// Shapes: `x_shape` is `[N, C, H, W]`, `dy` and `indices` are `[N, C, H', W']`; negative indices
/// are left out.
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
    if let Some(&index) = places.iter().find(|&&i| i >= size as i64) {
        return Err(TensorError::Index { op, index, axis: 2, size });
    }
    let mut dx = Tensor::<T>::zeros(x_shape)?;
    let dst = SendPtr(dx.as_mut_slice()?.as_mut_ptr());
    let grads = dy.as_slice().unwrap_or_default();
    let per_plane = dy.shape()[2] * dy.shape()[3];
    parallel::for_each(planes, parallel::worthwhile(grads.len(), 4), &|plane| {
        // SAFETY: plane by plane disjoint, `size` elements each.
        let dx = unsafe { std::slice::from_raw_parts_mut(dst.get().add(plane * size), size) };
        let range = plane * per_plane..(plane + 1) * per_plane;
        for (&i, &g) in places[range.clone()].iter().zip(&grads[range]) {
            if i >= 0 {
                dx[i as usize] = dx[i as usize].add(g);
            }
        }
    });
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
    let mut out = Output::<T>::new(op, &shape)?;
    let mut indices = Output::<i64>::new(op, if INDICES { &shape } else { &[0] })?;
    let (src, dst, at) =
        (SendPtr(x.as_ptr().cast_mut()), SendPtr(out.as_mut_ptr()), SendPtr(indices.as_mut_ptr()));
    // Room for a line of x with the elements that windows reach outside of it.
    let span = ((ow - 1) * options.stride[1] + (options.window[1] - 1) * options.dilation[1] + 1)
        .max(options.padding[1] + w);
    let work = (planes * oh * ow).saturating_mul(options.window[0] * options.window[1]);
    for_each_chunk(planes, parallel::worthwhile(work, 1), &|plane| {
        let mut line = Output::<T>::new(op, &[span])?;
        let mut best = Output::<i32>::new(op, &[if INDICES { ow } else { 0 }])?;
        line.as_mut_slice().fill(MaybeUninit::new(T::NEG_INFINITY));
        best.as_mut_slice().fill(MaybeUninit::new(0));
        // SAFETY: planes are disjoint, and the scratch has just been written.
        unsafe {
            use crate::nn::softmax::written;
            let per = oh * ow;
            let run = Plane::<T, INDICES> {
                x: std::slice::from_raw_parts(src.get().add(plane * h * w).cast_const(), h * w),
                w,
                line: written(line.as_mut_slice()),
                best: written(best.as_mut_slice()),
                y: std::slice::from_raw_parts_mut(dst.get().add(plane * per).cast(), per),
                at: if INDICES {
                    std::slice::from_raw_parts_mut(at.get().add(plane * per).cast(), per)
                } else {
                    &mut []
                },
                ow,
                options: *options,
            };
            dispatch(run);
        }
        Ok(())
    })?;
    let route = Route::native(Path::Fused);
    // SAFETY: every element of every plane was written.
    unsafe { Ok((out.assume_init().with_route(route), indices.assume_init().with_route(route))) }
}

struct Plane<'a, T, const INDICES: bool> {
    x: &'a [T],
    w: usize,
    /// A line of x, or the maxima of the lines of a window, between elements of −∞.
    line: &'a mut [T],
    /// Places of the maxima of one line of y.
    best: &'a mut [i32],
    y: &'a mut [MaybeUninit<T>],
    at: &'a mut [MaybeUninit<i64>],
    ow: usize,
    options: PoolOptions,
}

impl<T: Float, const INDICES: bool> Loop for Plane<'_, T, INDICES> {
    type Output = ();
    #[inline(always)]
    fn run(mut self) {
        for i in 0..self.y.len() / self.ow.max(1) {
            match (INDICES, self.options.stride[1]) {
                (false, 1) => self.values(i, 1),
                (false, 2) => self.values(i, 2),
                (false, stride) => self.values(i, stride),
                (true, 1) => self.places(i, 1),
                (true, 2) => self.places(i, 2),
                (true, stride) => self.places(i, stride),
            }
        }
    }
}

impl<T: Float, const INDICES: bool> Plane<'_, T, INDICES> {
    /// Lines of x in the window of line `i` of y.
    #[inline(always)]
    fn lines(&self, i: usize) -> (usize, usize) {
        let PoolOptions { window, stride, padding, dilation, .. } = self.options;
        let h = self.x.len().checked_div(self.w).unwrap_or(0);
        let start = i * stride[0];
        let first = padding[0].saturating_sub(start).div_ceil(dilation[0]);
        let room = (h + padding[0]).saturating_sub(start);
        (first, room.div_ceil(dilation[0]).min(window[0]).max(first))
    }

    /// Line `i` of y, without places: first the maxima over the lines of the windows, then along
    /// the line.
    #[inline(always)]
    fn values(&mut self, i: usize, stride: usize) {
        let PoolOptions { window, padding, dilation, .. } = self.options;
        let (first, last) = self.lines(i);
        let y = &mut self.y[i * self.ow..(i + 1) * self.ow];
        if first == last {
            y.fill(MaybeUninit::new(T::NEG_INFINITY));
            return;
        }
        let inside = &mut self.line[padding[1]..padding[1] + self.w];
        for k in first..last {
            let h = i * self.options.stride[0] + k * dilation[0] - padding[0];
            let row = &self.x[h * self.w..(h + 1) * self.w];
            if k == first {
                inside.copy_from_slice(row);
            } else {
                for (m, &x) in inside.iter_mut().zip(row) {
                    *m = Real::max(*m, x);
                }
            }
        }
        for (y, &x) in y.iter_mut().zip(self.line.iter().step_by(stride)) {
            y.write(x);
        }
        // SAFETY: just written: the line holds `ow` windows.
        let y = unsafe { crate::nn::softmax::written(y) };
        for k in 1..window[1] {
            let from = &self.line[k * dilation[1]..];
            for (y, &x) in y.iter_mut().zip(from.iter().step_by(stride)) {
                *y = Real::max(*y, x);
            }
        }
    }

    /// Line `i` of y with places, one window element at a time over the whole line.
    #[inline(always)]
    fn places(&mut self, i: usize, stride: usize) {
        let PoolOptions { window, padding, dilation, .. } = self.options;
        let (first, last) = self.lines(i);
        let out = i * self.ow..(i + 1) * self.ow;
        let y = &mut self.y[out.clone()];
        y.fill(MaybeUninit::new(T::NEG_INFINITY));
        // SAFETY: just written.
        let y = unsafe { crate::nn::softmax::written(y) };
        let top = (i * self.options.stride[0] + first * dilation[0]).wrapping_sub(padding[0]);
        for (j, best) in self.best.iter_mut().enumerate() {
            // The first element of the window inside of x: the answer if all are −∞.
            let start = j * stride;
            let k = padding[1].saturating_sub(start).div_ceil(dilation[1]);
            let left = start + k * dilation[1];
            let outside = first == last || k >= window[1] || left >= padding[1] + self.w;
            *best = if outside { -1 } else { (top * self.w + left - padding[1]) as i32 };
        }
        for kh in first..last {
            let h = i * self.options.stride[0] + kh * dilation[0] - padding[0];
            let row = &self.x[h * self.w..(h + 1) * self.w];
            self.line[padding[1]..padding[1] + self.w].copy_from_slice(row);
            for kw in 0..window[1] {
                let shift = (h * self.w + kw * dilation[1]) as i32 - padding[1] as i32;
                let from = self.line[kw * dilation[1]..].iter().step_by(stride);
                let lanes = y.iter_mut().zip(self.best.iter_mut()).zip(from).enumerate();
                for (j, ((y, best), &x)) in lanes {
                    let larger = x > *y || (x.is_nan() && !y.is_nan());
                    *y = if larger { x } else { *y };
                    *best = if larger { shift + (j * stride) as i32 } else { *best };
                }
            }
        }
        for (at, &best) in self.at[out].iter_mut().zip(self.best.iter()) {
            at.write(best.into());
        }
    }
}
