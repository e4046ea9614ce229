//! Resampling of planes to another size, as for images: a filter along each axis.
//!
//! Result i of n is sampled at position p of an axis of m elements,
//!
//! ```text
//! aligned corners   p = i·(m − 1)/(n − 1)            otherwise   p = (i + ½)·m/n − ½
//! y[i, j] = Σ_{k, l} h(pᵢ − k)·h(qⱼ − l)·x[k, l]
//! ```
//!
//! with the filters of [`Filter`]. Positions and weights are computed in `f64`. The filter is applied along lines
//! first, and each line of x is filtered once (`taps`: indices and weights of the elements).

pub(super) use self::taps::cubic;

mod taps;

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use self::taps::{Taps, axis};
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::layout::numel_of;
use crate::loops::parallel;
use crate::output::{Filled, Fresh, Full, Output, parts_of_groups_mut, share};
use crate::route::{Path, Route};
use crate::storage::collect;
use crate::tensor::Tensor;

/// Minimum number of elements of a task.
const CHUNK: usize = 1 << 14;

/// Weights of the elements of a result; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Filter {
    /// Element `⌊i·m/n⌋`, independent of `align_corners`.
    Nearest,
    /// Element `⌊(i + ½)·m/n⌋`, independent of `align_corners`.
    NearestExact,
    /// Linear interpolation of the two adjacent elements; extrapolation is constant.
    Linear,
    /// Cubic convolution of four elements with a = −¾ (Keys 1981); the first and last element go on
    /// outside.
    Cubic,
    /// Six elements with `sinc(t)·sinc(t/3)` (Duchon 1979); elements outside are skipped, and the weights of the others
    /// normalised.
    Lanczos3,
}

/// Options of resampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResampleOptions {
    /// The filter along both axes.
    pub filter: Filter,
    /// Keep the positions of the first and last elements.
    pub align_corners: bool,
}

/// Runs `$body` with the number of elements that a filter reads.
macro_rules! with_width {
    ($filter:expr, $n:ident => $body:expr) => {
        match $filter {
            Filter::Nearest | Filter::NearestExact => {
                const $n: usize = 1;
                $body
            }
            Filter::Linear => {
                const $n: usize = 2;
                $body
            }
            Filter::Cubic => {
                const $n: usize = 4;
                $body
            }
            Filter::Lanczos3 => {
                const $n: usize = 6;
                $body
            }
        }
    };
}

/// Resamples the planes to another size.
///
/// Shapes: `[N, C, H, W] → [N, C, H', W']`. Cost: with a filter of k elements, k multiply-adds per column of y for each
/// line of x that is used, and k per element of y.
///
/// # Errors
/// [`TensorError::Shape`] for planes without elements and other ranks; `SizeOverflow`, `OutOfMemory`.
pub fn resample<T: Float>(
    x: &Tensor<T>,
    size: [usize; 2],
    options: &ResampleOptions,
) -> Result<Tensor<T>> {
    let op = "resample";
    let planes = planes(op, x.shape(), size)?;
    let x = row_major(x)?;
    with_width!(options.filter, N => forward::<T, N>(op, &x, planes, size, options))
}

/// Cotangent of `x` of [`resample`] from that of `y`; `x_shape` is the shape of `x`.
///
/// # Errors
/// As [`resample`]; [`TensorError::ShapeMismatch`].
pub fn resample_vjp<T: Float>(
    x_shape: &[usize],
    dy: &Tensor<T>,
    options: &ResampleOptions,
) -> Result<Tensor<T>> {
    let op = "resample_vjp";
    let size = match *dy.shape() {
        [_, _, h, w] => [h, w],
        _ => return Err(TensorError::shape(op, dy.shape(), "[images, channels, height, width]")),
    };
    let planes = planes(op, x_shape, size)?;
    if dy.shape()[..2] != x_shape[..2] {
        return Err(TensorError::shapes(op, dy.shape(), x_shape, "the same images and channels"));
    }
    let dy = row_major(dy)?;
    with_width!(options.filter, N => backward::<T, N>(x_shape, &dy, planes, options))
}

/// Number of planes, if the result can be counted.
fn planes(op: &'static str, x: &[usize], size: [usize; 2]) -> Result<usize> {
    numel_of(op, x)?;
    let [n, c, h, w] = *x else {
        return Err(TensorError::shape(op, x, "[images, channels, height, width]"));
    };
    if (h == 0 || w == 0) && !size.contains(&0) {
        return Err(TensorError::shape(op, x, "planes that are not empty"));
    }
    numel_of(op, &[n, c, size[0], size[1]])?;
    Ok(n * c)
}

fn forward<T: Float, const N: usize>(
    op: &'static str,
    x: &Tensor<T>,
    planes: usize,
    [oh, ow]: [usize; 2],
    options: &ResampleOptions,
) -> Result<Tensor<T>> {
    let (h, w) = (x.shape()[2], x.shape()[3]);
    let out = Output::<T>::new(op, &[x.shape()[0], x.shape()[1], oh, ow])?;
    let route = Route::native(Path::Fused);
    if out.numel() == 0 {
        return Ok(out.write(|y| y.copy_from(&[])).with_route(route));
    }
    let (rows, columns) = (&axis::<T, N>(h, oh, options)?, &axis::<T, N>(w, ow, options)?);
    let xs = x.as_slice().unwrap_or_default();
    // Lines of y per task.
    let lines = CHUNK.div_ceil(ow).min(oh);
    let per_plane = oh.div_ceil(lines);
    let parallel = parallel::worthwhile(planes * oh * ow, 2 * N);
    let y = out.try_write(|y| {
        share(y.parts_of_groups(oh * ow, lines * ow), 1, parallel, |task, y| {
            let x = &xs[task / per_plane * h * w..][..h * w];
            let from = task % per_plane * lines;
            let mut cache = Filled::new(N * ow, T::ZERO)?;
            let rows = &rows[from..from + y.len() / ow];
            Ok(dispatch(ResampleForward { x, w, rows, columns, cache: &mut cache, y }))
        })
    })?;
    Ok(y.with_route(route))
}

struct ResampleForward<'a, 'o, T, const N: usize> {
    x: &'a [T],
    w: usize,
    rows: &'a [Taps<T, N>],
    columns: &'a [Taps<T, N>],
    /// Lines of x after the filter along them: line `i` at `i mod N`.
    cache: &'a mut [T],
    y: Fresh<'o, T>,
}

impl<'o, T: Float, const N: usize> Loop for ResampleForward<'_, 'o, T, N> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let ow = self.columns.len();
        // The elements of a filter are adjacent, so they have different slots in the cache.
        let mut held = [usize::MAX; N];
        let mut y = self.y.cursor();
        for row in self.rows {
            for i in row.at {
                if held[i % N] != i {
                    held[i % N] = i;
                    let line = &self.x[i * self.w..][..self.w];
                    let out = &mut self.cache[i % N * ow..][..ow];
                    for (out, taps) in out.iter_mut().zip(self.columns) {
                        *out = taps.read(line);
                    }
                }
            }
            let lines: [&[T]; N] = std::array::from_fn(|k| &self.cache[row.at[k] % N * ow..][..ow]);
            let line = y.next(ow);
            y.done(match N {
                1 => line.copy_from(lines[0]),
                _ => line.each(|j| {
                    let first = lines[0][j].mul(row.weight[0]);
                    (1..N).fold(first, |sum, k| lines[k][j].mul_add(row.weight[k], sum))
                }),
            });
        }
        y.finish()
    }
}

fn backward<T: Float, const N: usize>(
    x_shape: &[usize],
    dy: &Tensor<T>,
    planes: usize,
    options: &ResampleOptions,
) -> Result<Tensor<T>> {
    let [h, w] = [x_shape[2], x_shape[3]];
    let [oh, ow] = [dy.shape()[2], dy.shape()[3]];
    let mut dx = Tensor::<T>::zeros(x_shape)?;
    let route = Route::native(Path::Fused);
    if dx.numel() == 0 || dy.numel() == 0 {
        return Ok(dx.with_route(route));
    }
    let (rows, columns) = (axis::<T, N>(h, oh, options)?, &axis::<T, N>(w, ow, options)?);
    // The lines of y that a line of x counts for, by lines of x.
    let reads = rows.iter().enumerate();
    let reads = reads.flat_map(|(o, taps)| (0..N).map(move |k| (taps.at[k], o, taps.weight[k])));
    let mut reads: Vec<(usize, usize, T)> = collect("resample", N * oh, reads)?;
    reads.sort_by_key(|&(line, o, _)| (line, o));
    let reads = reads.as_slice();
    let grads = dy.as_slice().unwrap_or_default();
    let lines = CHUNK.div_ceil(w).min(h);
    let per_plane = h.div_ceil(lines);
    let parallel = parallel::worthwhile(planes * (oh * ow + h * w), 2 * N);
    let parts = parts_of_groups_mut(dx.as_mut_slice()?, h * w, lines * w);
    share(parts, 1, parallel, |task, dx| {
        let dy = &grads[task / per_plane * oh * ow..][..oh * ow];
        let from = task % per_plane * lines;
        let first = reads.partition_point(|read| read.0 < from);
        let mut sum = Filled::new(ow, T::ZERO)?;
        dispatch(ResampleBackward {
            dy,
            reads: &reads[first..],
            from,
            columns,
            sum: &mut sum,
            w,
            dx,
        });
        Ok(())
    })?;
    Ok(dx.with_route(route))
}

struct ResampleBackward<'a, T, const N: usize> {
    dy: &'a [T],
    /// Line of x, line of y and weight.
    reads: &'a [(usize, usize, T)],
    /// First line of x.
    from: usize,
    columns: &'a [Taps<T, N>],
    /// Cotangents of a line of x after the filter along it.
    sum: &'a mut [T],
    w: usize,
    dx: &'a mut [T],
}

impl<T: Float, const N: usize> Loop for ResampleBackward<'_, T, N> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let ow = self.columns.len();
        let mut reads = self.reads;
        for (i, dx) in self.dx.chunks_exact_mut(self.w).enumerate() {
            let (own, others) =
                reads.split_at(reads.partition_point(|read| read.0 <= self.from + i));
            reads = others;
            if own.is_empty() {
                continue;
            }
            self.sum.fill(T::ZERO);
            for &(_, o, weight) in own {
                for (sum, &dy) in self.sum.iter_mut().zip(&self.dy[o * ow..][..ow]) {
                    *sum = dy.mul_add(weight, *sum);
                }
            }
            for (taps, &sum) in self.columns.iter().zip(self.sum.iter()) {
                taps.add(sum, dx);
            }
        }
    }
}
