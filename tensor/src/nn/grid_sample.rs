//! Interpolation of planes at the points of a grid.
//!
//! A grid contains points (u, v) with −1 … 1 from one border of the plane to the other: the centres of the outermost
//! elements with aligned corners, otherwise their outer edges. Elements outside are 0 or given by the padding.
//! Positions and weights are computed in `f64`, once for all channels, and sums are accumulated in `f64`.

use t4a_algebra::Float;

use super::resample::cubic;
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::layout::numel_of;
use crate::loops::parallel;
use crate::output::{Filled, Output, share_with};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Points of a task.
const CHUNK: usize = 256;

/// Interpolation between the elements of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// The nearest element; halves round away from 0.
    Nearest,
    /// The nearest element; halves round to the even index.
    NearestEven,
    /// Bilinear interpolation of the four adjacent elements.
    Linear,
    /// Cubic convolution of 4 × 4 elements with a = −¾ (Keys 1981).
    Cubic,
}

/// Values outside of a plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Padding {
    /// Zeros.
    Zeros,
    /// The outermost elements.
    Border,
    /// Repeated reflection of the plane at its border.
    Reflection,
}

/// Options of [`grid_sample`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GridSampleOptions {
    /// Interpolation.
    pub sampling: Sampling,
    /// Values outside of a plane.
    pub padding: Padding,
    /// ±1 are the centres of the outermost elements; otherwise their outer edges.
    pub align_corners: bool,
}

/// `y[n, c, i, j]` = plane (n, c) at point `grid[n, i, j] = (u, v)`, u along the width.
///
/// Shapes: `x: [N, C, H, W]`, `grid: [N, H', W', 2] → [N, C, H', W']`. Points that are not finite read the middle with
/// [`Padding::Border`]; otherwise linear and cubic values are NaN, as the range of the grid's element type permits.
/// Cost: k reads per element of y, with k = 1, 4 or 16.
///
/// # Errors
/// [`TensorError::Shape`] for other ranks and planes without elements, [`TensorError::ShapeMismatch`],
/// `SizeOverflow`, `OutOfMemory`.
pub fn grid_sample<T: Float>(
    x: &Tensor<T>,
    grid: &Tensor<T>,
    options: &GridSampleOptions,
) -> Result<Tensor<T>> {
    match options.sampling {
        Sampling::Nearest | Sampling::NearestEven => sample::<T, 1>(x, grid, options),
        Sampling::Linear => sample::<T, 2>(x, grid, options),
        Sampling::Cubic => sample::<T, 4>(x, grid, options),
    }
}

/// Reads along an axis: elements, [`OUTSIDE`] for a zero, with their weights.
#[derive(Clone, Copy)]
struct GridTaps<const N: usize> {
    at: [usize; N],
    weight: [f64; N],
}

/// An element that there is not.
const OUTSIDE: usize = usize::MAX;

/// Size and options of one axis.
#[derive(Clone, Copy)]
struct GridAxis {
    size: usize,
    options: GridSampleOptions,
}

impl GridAxis {
    /// Position of a coordinate in units of elements.
    fn position(&self, u: f64) -> f64 {
        let n = self.size as f64;
        if self.options.align_corners {
            (u + 1.0) * (n - 1.0) / 2.0
        } else {
            (u + 1.0) * n / 2.0 - 0.5
        }
    }

    /// The position that the padding makes of one outside.
    fn padded(&self, p: f64) -> f64 {
        let last = self.size as f64 - 1.0;
        match self.options.padding {
            Padding::Zeros => p,
            Padding::Border => p.clamp(0.0, last),
            Padding::Reflection => {
                let edge = if self.options.align_corners { 0.0 } else { -0.5 };
                let span = last - 2.0 * edge;
                if span <= 0.0 {
                    return edge;
                }
                let t = (p - edge).abs();
                let t = t - (t / (2.0 * span)).floor() * (2.0 * span);
                span - (t - span).abs() + edge
            }
        }
    }

    /// The element at a whole position.
    fn element(&self, i: f64) -> usize {
        let last = self.size - 1;
        match self.options.padding {
            Padding::Zeros if !(i >= 0.0 && i <= last as f64) => OUTSIDE,
            // A float is cut off at the ends of the integers, and NaN becomes 0.
            _ => (i.max(0.0) as usize).min(last),
        }
    }

    /// Indices and weights of the elements read for a position.
    fn reads<const N: usize>(&self, p: f64) -> GridTaps<N> {
        let (mut at, mut weight) = ([OUTSIDE; N], [1.0; N]);
        match self.options.sampling {
            Sampling::Nearest | Sampling::NearestEven => {
                let p = self.padded(p);
                let even = self.options.sampling == Sampling::NearestEven;
                // NaN reads element 0, independent of the padding.
                let i = if even { p.round_ties_even() } else { p.round() };
                at[0] = self.element(if i.is_nan() { 0.0 } else { i });
            }
            Sampling::Linear => {
                let p = self.padded(p);
                let base = p.floor();
                for k in 0..N {
                    at[k] = self.element(base + k as f64);
                    weight[k] = if k == 0 { 1.0 - (p - base) } else { p - base };
                }
            }
            Sampling::Cubic => {
                // Elements outside are mirrored one by one, not the point.
                let base = p.floor();
                for k in 0..N {
                    at[k] = self.element(self.padded(base + k as f64 - 1.0));
                    let t = p - base - (k as f64 - 1.0);
                    weight[k] = if t.is_nan() { t } else { cubic(t) };
                }
            }
        }
        GridTaps { at, weight }
    }
}

/// Indices and weights that a point reads from every channel.
#[derive(Clone, Copy)]
struct GridPoint<const N: usize> {
    at: [[usize; N]; N],
    weight: [[f64; N]; N],
}

impl<const N: usize> GridPoint<N> {
    fn new<T: Float>([h, w]: &[GridAxis; 2], [u, v]: [T; 2]) -> Self {
        let (mut p, mut q) = (w.position(u.to_f64()), h.position(v.to_f64()));
        if w.options.padding == Padding::Border && !(p.is_finite() && q.is_finite()) {
            (p, q) = ((w.size - 1) as f64 / 2.0, (h.size - 1) as f64 / 2.0);
        }
        let (rows, columns) = (h.reads::<N>(q), w.reads::<N>(p));
        let (mut at, mut weight) = ([[OUTSIDE; N]; N], [[0.0; N]; N]);
        for i in 0..N {
            for j in 0..N {
                if rows.at[i] != OUTSIDE && columns.at[j] != OUTSIDE {
                    at[i][j] = rows.at[i] * w.size + columns.at[j];
                }
                weight[i][j] = rows.weight[i] * columns.weight[j];
            }
        }
        Self { at, weight }
    }

    /// The value in a plane.
    #[inline(always)]
    fn read<T: Float>(&self, plane: &[T]) -> T {
        let value = |at: usize| plane.get(at).copied().unwrap_or(T::ZERO);
        if N == 1 {
            return value(self.at[0][0]);
        }
        let mut sum = 0.0;
        for (at, weight) in self.at.iter().zip(&self.weight) {
            for (&at, &weight) in at.iter().zip(weight) {
                sum += value(at).to_f64() * weight;
            }
        }
        T::from_f64(sum)
    }
}

fn sample<T: Float, const N: usize>(
    x: &Tensor<T>,
    grid: &Tensor<T>,
    options: &GridSampleOptions,
) -> Result<Tensor<T>> {
    let op = "grid_sample";
    let &[n, c, h, w] = x.shape() else {
        return Err(TensorError::shape(op, x.shape(), "[images, channels, height, width]"));
    };
    let (oh, ow) = match *grid.shape() {
        [images, oh, ow, 2] if images == n => (oh, ow),
        _ => {
            let required = "a grid [images, height, width, 2] of as many images";
            return Err(TensorError::shapes(op, x.shape(), grid.shape(), required));
        }
    };
    if h == 0 || w == 0 {
        return Err(TensorError::shape(op, x.shape(), "planes that are not empty"));
    }
    let shape = [n, c, oh, ow];
    numel_of(op, &shape)?;
    let (x, grid) = (row_major(x)?, row_major(grid)?);
    let (xs, points) = (x.as_slice().unwrap_or_default(), grid.as_slice().unwrap_or_default());
    let (points, _) = points.as_chunks::<2>();
    let out = Output::<T>::new(op, &shape)?;
    let route = Route::native(Path::Fused);
    if out.numel() == 0 {
        return Ok(out.write(|y| y.copy_from(&[])).with_route(route));
    }
    let axes = [h, w].map(|size| GridAxis { size, options: *options });
    let size = oh * ow;
    let per_image = size.div_ceil(CHUNK);
    let none = GridPoint::<N> { at: [[OUTSIDE; N]; N], weight: [[0.0; N]; N] };
    let parallel = parallel::worthwhile(n * size * (c + 8), 2 * N * N);
    let y = out.try_write(|y| {
        // The columns of a matrix with a row per channel.
        let parts = y.columns([c, size], CHUNK);
        let scratch = || Filled::new(CHUNK, none);
        share_with(parts, 1, parallel, scratch, |reads, task, y| {
            let (image, chunk) = (task / per_image, task % per_image);
            let points = &points[image * size + chunk * CHUNK..][..y.width()];
            for (read, &point) in reads.iter_mut().zip(points) {
                *read = GridPoint::new(&axes, point);
            }
            Ok(y.write(|channel, row| {
                let plane = &xs[(image * c + channel) * h * w..][..h * w];
                row.map(&reads[..points.len()], |point: GridPoint<N>| point.read(plane))
            }))
        })
    })?;
    Ok(y.with_route(route))
}
