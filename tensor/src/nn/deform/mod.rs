//! Deformable convolution over two spatial axes (Dai et al. 2017), with a mask (Zhu et al. 2019).
//!
//! Window element k of position t reads x at the point `t·s + k·d − p + Δ[t, k]` by bilinear interpolation of the four
//! elements around it, and multiplies by a mask,
//!
//! ```text
//! y[n, o, t] = β[o] + Σ_{c, k} w[o, c, k] · m[n, g, k, t] · x[n, c](t·s + k·d − p + Δ[n, g, k, t])
//! ```
//!
//! where channels share the offsets Δ and the mask m of their offset group g, and x = 0 outside. As for
//! other [convolutions](super::conv) this is `Y = W·X̃` in tiles of `X̃[(c, k), t]`. With C̃ = Wᵀ·Ȳ the
//! cotangents are sums over tiles: `W̄ = Ȳ·X̃ᵀ`; x̄ takes C̃ at the four elements with their weights; m̄ is
//! C̃ times the value, and Δ̄ is C̃ times m times the slope of the value, summed over the channels of a
//! group.

mod shapes;

use std::ops::Range;

use t4a_algebra::Float;
use t4a_algebra::gemm::MatRef;

use self::shapes::DeformGeometry;
pub use self::shapes::DeformOptions;
use crate::copy::row_major;
use crate::error::Result;
use crate::loops::parallel;
use crate::output::{
    Filled, Output, ProductSum, Workspace, add_product, parts_mut, share, share_with,
};
use crate::route::{Path, Route};
use crate::tensor::Tensor;
use crate::view::View;

/// Elements of a tile.
const TILE: usize = 1 << 16;
/// Maximum number of partial sums of a weight.
const PARTS: usize = 4;

/// An element that there is not.
const OUTSIDE: usize = usize::MAX;

/// Sampling point of a window element.
#[derive(Clone, Copy)]
struct SamplingPoint<T> {
    /// Offsets of the elements above left, above right, below left and below right.
    at: [usize; 4],
    /// Distances of the point below and right of the first element.
    h: T,
    w: T,
    mask: T,
}

impl<T: Float> SamplingPoint<T> {
    const NOWHERE: Self = Self { at: [OUTSIDE; 4], h: T::ZERO, w: T::ZERO, mask: T::ZERO };

    #[inline(always)]
    fn weights(&self) -> [T; 4] {
        let (h, w) = (T::ONE.sub(self.h), T::ONE.sub(self.w));
        [h.mul(w), h.mul(self.w), self.h.mul(w), self.h.mul(self.w)]
    }

    #[inline(always)]
    fn corners(&self, plane: &[T]) -> [T; 4] {
        self.at.map(|at| plane.get(at).copied().unwrap_or(T::ZERO))
    }

    /// The value in a plane, without the mask.
    #[inline(always)]
    fn value(&self, plane: &[T]) -> T {
        let (v, w) = (self.corners(plane), self.weights());
        v[0].mul(w[0]).add(v[1].mul(w[1])).add(v[2].mul(w[2]).add(v[3].mul(w[3])))
    }

    /// The slopes of the value downwards and to the right.
    #[inline(always)]
    fn slopes(&self, plane: &[T]) -> [T; 2] {
        let v = self.corners(plane);
        let between = |t: T, a: T, b: T| a.add(t.mul(b.sub(a)));
        [
            between(self.w, v[2].sub(v[0]), v[3].sub(v[1])),
            between(self.h, v[1].sub(v[0]), v[3].sub(v[2])),
        ]
    }
}

/// Operands as slices, and the sizes.
struct DeformSlices<'a, T> {
    g: DeformGeometry,
    x: &'a [T],
    offset: &'a [T],
    weight: &'a [T],
    mask: Option<&'a [T]>,
}

impl<'a, T: Float> DeformSlices<'a, T> {
    /// Channel planes of an image.
    fn planes(&self, image: usize, channel: usize) -> &'a [T] {
        let size = self.g.x[0] * self.g.x[1];
        &self.x[(image * self.g.c + channel) * size..][..size]
    }

    /// Sampling points of element `k` of an offset group at some positions.
    fn points(
        &self,
        image: usize,
        group: usize,
        k: usize,
        positions: Range<usize>,
        points: &mut [SamplingPoint<T>],
    ) {
        let g = &self.g;
        let (kernel, size) = (g.k[0] * g.k[1], g.y[0] * g.y[1]);
        let at = (image * g.offset_groups + group) * kernel + k;
        let offset = &self.offset[2 * at * size..][..2 * size];
        let mask = self.mask.map(|mask| &mask[at * size..][..size]);
        let element = [k / g.k[1], k % g.k[1]];
        for (point, t) in points.iter_mut().zip(positions) {
            let position = [t / g.y[1], t % g.y[1]];
            let place = |i: usize, moved: T| {
                let whole = position[i] * g.stride[i] + element[i] * g.dilation[i];
                T::from_f64(whole as f64 - g.padding[i] as f64).add(moved)
            };
            let (h, w) = (place(0, offset[t]), place(1, offset[size + t]));
            let outside = |p: T, n: usize| p.to_f64() <= -1.0 || p.to_f64() >= n as f64;
            if outside(h, g.x[0]) || outside(w, g.x[1]) {
                *point = SamplingPoint::NOWHERE;
                continue;
            }
            let (top, left) = (h.floor(), w.floor());
            let (i, j) = (top.to_f64() as isize, left.to_f64() as isize);
            let at = |i: isize, j: isize| {
                let inside = i >= 0 && j >= 0 && i < g.x[0] as isize && j < g.x[1] as isize;
                if inside { i as usize * g.x[1] + j as usize } else { OUTSIDE }
            };
            *point = SamplingPoint {
                at: [at(i, j), at(i, j + 1), at(i + 1, j), at(i + 1, j + 1)],
                h: h.sub(top),
                w: w.sub(left),
                mask: mask.map_or(T::ONE, |mask| mask[t]),
            };
        }
    }

    /// The tile for a range of channels of the image and a range of positions.
    fn gather(
        &self,
        image: usize,
        channels: Range<usize>,
        positions: Range<usize>,
        points: &mut [SamplingPoint<T>],
        tile: &mut [T],
    ) {
        let g = &self.g;
        let (kernel, cols) = (g.k[0] * g.k[1], positions.len());
        if channels.is_empty() {
            return;
        }
        let per_group = g.c / g.offset_groups;
        for group in channels.start / per_group..channels.end.div_ceil(per_group) {
            let own = group * per_group..(group + 1) * per_group;
            let own = own.start.max(channels.start)..own.end.min(channels.end);
            for k in 0..kernel {
                let points = &mut points[..cols];
                self.points(image, group, k, positions.clone(), points);
                for c in own.clone() {
                    let plane = self.planes(image, c);
                    let row = &mut tile[((c - channels.start) * kernel + k) * cols..][..cols];
                    for (v, point) in row.iter_mut().zip(points.iter()) {
                        *v = point.mask.mul(point.value(plane));
                    }
                }
            }
        }
    }

    /// The weight of channels of a group, as a matrix with a row per output channel.
    fn weights(&self, group: usize, channels: Range<usize>) -> Result<MatRef<'a, T>> {
        let g = &self.g;
        let (per, kernel) = (g.c / g.weight_groups, g.k[0] * g.k[1]);
        let out = g.o / g.weight_groups;
        let from = (group * out * per + channels.start - group * per) * kernel;
        matrix(self.weight, from, (out, channels.len() * kernel), per * kernel)
    }

    /// Positions of a tile with this many channels.
    fn step(&self, channels: usize) -> usize {
        let rows = (channels * self.g.k[0] * self.g.k[1]).max(1);
        (TILE / rows).max(64).min(self.g.y[0] * self.g.y[1]).max(1)
    }

    fn work(&self) -> usize {
        let g = &self.g;
        let per_element = g.o / g.weight_groups + 16;
        [g.c, g.k[0], g.k[1], g.y[0], g.y[1], per_element]
            .into_iter()
            .fold(g.n, usize::saturating_mul)
    }
}

/// A matrix with row stride `pitch`.
fn matrix<T: Float>(
    data: &[T],
    at: usize,
    shape: (usize, usize),
    pitch: usize,
) -> Result<MatRef<'_, T>> {
    View::of(data).matrix("deform_conv", at as isize, shape, (pitch as isize, 1))
}

/// The operands of a deformable convolution.
pub struct Deform<'a, T> {
    /// `[N, C, H, W]`
    pub x: &'a Tensor<T>,
    /// `[N, offset groups · K · L · 2, H', W']`: downwards and to the right, in turns.
    pub offset: &'a Tensor<T>,
    /// `[O, C / weight groups, K, L]`
    pub weight: &'a Tensor<T>,
    /// `[N, offset groups · K · L, H', W']`
    pub mask: Option<&'a Tensor<T>>,
}

/// Operands, copied to row-major order if necessary.
struct DenseOperands<T> {
    x: Tensor<T>,
    offset: Tensor<T>,
    weight: Tensor<T>,
    mask: Option<Tensor<T>>,
}

impl<T: Float> Deform<'_, T> {
    fn geometry(&self, op: &'static str, options: &DeformOptions) -> Result<DeformGeometry> {
        let mask = self.mask.map(Tensor::shape);
        DeformGeometry::new(
            op,
            [self.x.shape(), self.offset.shape(), self.weight.shape()],
            mask,
            options,
        )
    }

    fn dense(&self) -> Result<DenseOperands<T>> {
        let mask = self.mask.map(row_major).transpose()?;
        let (x, offset, weight) =
            (row_major(self.x)?, row_major(self.offset)?, row_major(self.weight)?);
        Ok(DenseOperands { x, offset, weight, mask })
    }
}

impl<T: Float> DenseOperands<T> {
    fn operands(&self, g: DeformGeometry) -> DeformSlices<'_, T> {
        let [x, offset, weight] =
            [&self.x, &self.offset, &self.weight].map(|t| t.as_slice().unwrap_or_default());
        DeformSlices { g, x, offset, weight, mask: self.mask.as_ref().and_then(Tensor::as_slice) }
    }
}

/// The deformable convolution, plus a bias per output channel.
///
/// Shapes: those of [`Deform`], `bias: [O] → [N, O, H', W']` with
/// `⌊(size + 2p − d·(k − 1) − 1)/s⌋ + 1` positions along an axis. Cost: 2·N·O·(C/weight groups)·
/// positions·window operations, and four reads per element of `X̃`; scratch below 1 MiB per thread.
///
/// # Errors
/// [`TensorError::Shape`](crate::TensorError::Shape), `ShapeMismatch`, `Value` for options that do not
/// fit, `OutOfMemory`.
pub fn deform_conv<T: Float>(
    operands: &Deform<'_, T>,
    bias: Option<&Tensor<T>>,
    options: &DeformOptions,
) -> Result<Tensor<T>> {
    let op = "deform_conv";
    let g = operands.geometry(op, options)?;
    g.check_bias(op, bias.map(Tensor::shape))?;
    let dense = operands.dense()?;
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let ops = &dense.operands(g);
    let g = &ops.g;
    let route = Route::native(Path::Fused);
    let out = Output::<T>::new(op, &g.y_shape())?;
    if out.numel() == 0 {
        return Ok(out.write(|y| y.copy_from(&[])).with_route(route));
    }
    let (size, kernel) = (g.y[0] * g.y[1], g.k[0] * g.k[1]);
    let (per, out_per) = (g.c / g.weight_groups, g.o / g.weight_groups);
    let step = ops.step(per);
    let per_image = size.div_ceil(step);
    let parallel = parallel::worthwhile(ops.work(), 1);
    let scratch = || {
        Ok((Filled::new(step, SamplingPoint::NOWHERE)?, Filled::new(per * kernel * step, T::ZERO)?))
    };
    let y = out.try_write(|y| {
        let parts = y.columns([out_per, size], step);
        share_with(parts, 1, parallel, scratch, |(points, tile), task, y| {
            let (task, part) = (task / per_image, task % per_image);
            let (image, group) = (task / g.weight_groups, task % g.weight_groups);
            let positions = part * step..((part + 1) * step).min(size);
            let (channels, cols) = (group * per..(group + 1) * per, positions.len());
            ops.gather(image, channels.clone(), positions, points, tile);
            let y = match bias {
                Some(bias) => {
                    let bias = &bias[group * out_per..];
                    ProductSum::Begun(y.write(|o, row| row.fill(bias[o])))
                }
                None => ProductSum::Empty(y),
            };
            if per * kernel == 0 {
                return Ok(y.finish());
            }
            let tile = matrix(tile, 0, (per * kernel, cols), cols)?;
            Ok(y.add(op, ops.weights(group, channels)?, tile)?.finish())
        })
    })?;
    Ok(y.with_route(route))
}

/// Cotangents of the operands of [`deform_conv`]; that of a bias is the sum of `dy` per channel.
pub struct DeformVjp<T> {
    /// Of `x`.
    pub x: Tensor<T>,
    /// Of the offsets.
    pub offset: Tensor<T>,
    /// Of the weight.
    pub weight: Tensor<T>,
    /// Of the mask, if there is one.
    pub mask: Option<Tensor<T>>,
}

/// Cotangents from that of `y`.
///
/// A point on the border of a cell has the slope of the cell below and right of it; points that are
/// outside altogether have none. Cost: three times [`deform_conv`].
///
/// # Errors
/// As [`deform_conv`].
pub fn deform_conv_vjp<T: Float>(
    operands: &Deform<'_, T>,
    dy: &Tensor<T>,
    options: &DeformOptions,
) -> Result<DeformVjp<T>> {
    let op = "deform_conv_vjp";
    let g = operands.geometry(op, options)?;
    g.check_output(op, dy.shape())?;
    let (dense, dy) = (operands.dense()?, row_major(dy)?);
    let ops = &dense.operands(g);
    let route = Route::native(Path::Fused);
    let mut dx = Tensor::<T>::zeros(operands.x.shape())?;
    let mut doffset = Tensor::<T>::zeros(operands.offset.shape())?;
    let mut dmask = match operands.mask {
        Some(mask) => Tensor::<T>::zeros(mask.shape())?,
        None => Tensor::zeros(&[0])?,
    };
    let grads = dy.as_slice().unwrap_or_default();
    let weight = if grads.is_empty() || dx.numel() == 0 {
        Tensor::zeros(operands.weight.shape())?
    } else {
        let tasks = ops.g.n * ops.g.offset_groups;
        let own = (dx.as_mut_slice()?, doffset.as_mut_slice()?, dmask.as_mut_slice()?);
        let parts = ((parts_mut(own.0, tasks), parts_mut(own.1, tasks)), parts_mut(own.2, tasks));
        let parallel = parallel::worthwhile(ops.work(), 2);
        share(parts, 1, parallel, |task, ((x, offset), mask)| {
            let into = Into { x, offset, mask };
            points_vjp(op, ops, task, grads, into)?;
            Ok((((), ()), ()))
        })?;
        weight_vjp(op, ops, grads)?
    };
    let mask = operands.mask.map(|_| dmask.with_route(route));
    let (x, offset) = (dx.with_route(route), doffset.with_route(route));
    Ok(DeformVjp { x, offset, weight: weight.with_route(route), mask })
}

/// Cotangents of an offset group of an image.
struct Into<'a, T> {
    x: &'a mut [T],
    offset: &'a mut [T],
    /// Empty without a mask.
    mask: &'a mut [T],
}

/// The cotangents of x, the offsets and the mask of one offset group of an image.
fn points_vjp<T: Float>(
    op: &'static str,
    ops: &DeformSlices<'_, T>,
    task: usize,
    dy: &[T],
    into: Into<'_, T>,
) -> Result<()> {
    let g = &ops.g;
    let (image, group) = (task / g.offset_groups, task % g.offset_groups);
    let (size, kernel, plane) = (g.y[0] * g.y[1], g.k[0] * g.k[1], g.x[0] * g.x[1]);
    let (per, weight_per) = (g.c / g.offset_groups, g.c / g.weight_groups);
    let out = g.o / g.weight_groups;
    let own = group * per..(group + 1) * per;
    let most = per.min(weight_per);
    let step = ops.step(most);
    let mut points = Filled::new(step, SamplingPoint::NOWHERE)?;
    let mut scratch = Workspace::new(most * kernel * step)?;
    for from in (0..size).step_by(step) {
        let positions = from..(from + step).min(size);
        let cols = positions.len();
        for part in own.start / weight_per..own.end.div_ceil(weight_per) {
            let start = own.start.max(part * weight_per);
            let channels = start..own.end.min((part + 1) * weight_per);
            let rows = channels.len() * kernel;
            let dy = matrix(&dy[(image * g.o + part * out) * size..], from, (out, cols), size)?;
            let weight = ops.weights(part, channels.clone())?.transpose();
            let tile = scratch.fresh(rows * cols).product(op, weight, dy)?;
            for k in 0..kernel {
                let points = &mut points[..cols];
                ops.points(image, group, k, positions.clone(), points);
                for c in channels.clone() {
                    let x = ops.planes(image, c);
                    let dx = &mut into.x[(c - own.start) * plane..][..plane];
                    let row = &tile[((c - channels.start) * kernel + k) * cols..][..cols];
                    for ((point, &v), t) in points.iter().zip(row).zip(positions.clone()) {
                        let masked = v.mul(point.mask);
                        for (at, weight) in point.at.into_iter().zip(point.weights()) {
                            if let Some(x) = dx.get_mut(at) {
                                *x = x.add(masked.mul(weight));
                            }
                        }
                        let add = |into: &mut [T], at: usize, v: T| into[at] = into[at].add(v);
                        for (axis, slope) in point.slopes(x).into_iter().enumerate() {
                            add(into.offset, (2 * k + axis) * size + t, masked.mul(slope));
                        }
                        if !into.mask.is_empty() {
                            add(into.mask, k * size + t, v.mul(point.value(x)));
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

/// The cotangent of the weight, summed over images in order.
fn weight_vjp<T: Float>(
    op: &'static str,
    ops: &DeformSlices<'_, T>,
    dy: &[T],
) -> Result<Tensor<T>> {
    let g = &ops.g;
    let (size, kernel) = (g.y[0] * g.y[1], g.k[0] * g.k[1]);
    let (per, out) = (g.c / g.weight_groups, g.o / g.weight_groups);
    // Several parts of the images have separate sums.
    let images = g.n.div_ceil(PARTS.min(g.n));
    let parts = g.n.div_ceil(images);
    let step = ops.step(per);
    let mut dw = Tensor::<T>::zeros(&[parts, g.o, per, g.k[0], g.k[1]])?;
    let tasks = parts * g.weight_groups;
    let scratch = || {
        Ok((Filled::new(step, SamplingPoint::NOWHERE)?, Filled::new(per * kernel * step, T::ZERO)?))
    };
    let (groups, parallel) = (g.weight_groups, parallel::worthwhile(ops.work(), 1));
    let weights = parts_mut(dw.as_mut_slice()?, tasks);
    share_with(weights, 1, parallel, scratch, |(points, tile), task, dw| {
        let (part, group) = (task / groups, task % groups);
        for image in part * images..((part + 1) * images).min(g.n) {
            for from in (0..size).step_by(step) {
                let positions = from..(from + step).min(size);
                let cols = positions.len();
                ops.gather(image, group * per..(group + 1) * per, positions, points, tile);
                let tile = matrix(tile, 0, (per * kernel, cols), cols)?.transpose();
                let dy = &dy[(image * g.o + group * out) * size..];
                add_product(op, dw, matrix(dy, from, (out, cols), size)?, tile)?;
            }
        }
        Ok(())
    })?;
    if parts == 1 {
        return dw.select(0, 0);
    }
    crate::reduce::reduce(crate::kernels::fold::Sum, &dw, &[0])?.select(0, 0)
}
