//! Convolutions as matrix products over tiles of windows.

use std::ops::Range;

use t4a_algebra::gemm::{MatMut, MatRef, Product};
use t4a_algebra::{Float, Standard};

use super::columns::{gather, scatter_add};
use super::geometry::Geometry;
use crate::error::{Result, TensorError};
use crate::loops::parallel::SendPtr;
use crate::nn::for_each_chunk;
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Rows of a tile: what a matrix product sums over at a time (bench `nn`, rows `conv`).
const DEPTH: usize = 512;
/// Bytes of a tile: half of a 512 KiB second-level cache.
const TILE_BYTES: usize = 256 << 10;
/// Multiply-adds below which threads cost more than they save.
const MIN_PARALLEL: usize = 1 << 20;
/// Tasks that there should be at least, if the sizes allow: enough for many threads, and fixed,
/// so that sums do not depend on their number.
const TASKS: usize = 16;

/// How the matrix of windows is cut.
struct Tiles {
    /// Channels of x per tile.
    channels: usize,
    /// Positions of y per tile.
    positions: usize,
}

impl Tiles {
    fn new<T>(g: &Geometry, least_tasks: usize) -> Self {
        let [_, k, y] = g.planes();
        let share = (g.c * g.n * g.groups).div_ceil(least_tasks).max(1);
        let channels = (DEPTH / k).max(1).min(g.c).min(share);
        let most = (TILE_BYTES / (channels * k * size_of::<T>())).max(64);
        // Whole lines where they fit.
        let line = g.y[2];
        let positions = if most > line { most / line * line } else { most };
        Self { channels, positions: positions.min(y) }
    }
}

fn ranges(total: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total).step_by(step.max(1)).map(move |from| from..(from + step).min(total))
}

fn nth(total: usize, step: usize, i: usize) -> Range<usize> {
    i * step..((i + 1) * step).min(total)
}

/// `C ← A·B` or `C ← C + A·B`, each a pointer, a shape and strides.
///
/// # Safety
/// The operands are valid, and nobody else writes C.
unsafe fn multiply<T: Float>(
    (a, a_strides): (*const T, (isize, isize)),
    (b, b_strides): (*const T, (isize, isize)),
    (c, c_stride): (*mut T, usize),
    (m, k, n): (usize, usize, usize),
    accumulate: bool,
) -> Result<()> {
    // SAFETY: passed on.
    let product = unsafe {
        let a = MatRef::from_raw_parts(a, (m, k), a_strides);
        let b = MatRef::from_raw_parts(b, (k, n), b_strides);
        Product::new(a, b, MatMut::from_raw_parts(c, (m, n), (c_stride as isize, 1)))
    };
    let product = product.map_err(|error| TensorError::value("conv", error.to_string()))?;
    product.accumulate(accumulate).run::<Standard>();
    Ok(())
}

/// `Y = W·X̃`.
pub(super) fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let tiles = Tiles::new::<T>(g, 1);
    let per_image = y_plane.div_ceil(tiles.positions);
    let bias = bias.map(Tensor::to_vec).transpose()?;
    let mut out = Output::<T>::new("conv", &g.y_shape())?;
    let (src, w, dst) = (
        SendPtr(x.as_ptr().cast_mut()),
        SendPtr(weight.as_ptr().cast_mut()),
        SendPtr(out.as_mut_ptr()),
    );
    let tasks = g.n * g.groups * per_image;
    for_each_chunk(tasks, g.work() >= MIN_PARALLEL, &|task| {
        let (image, tile) = (task / per_image, task % per_image);
        let group = image % g.groups;
        let positions = nth(y_plane, tiles.positions, tile);
        let cols = positions.len();
        let depth = if g.is_pointwise() { 0 } else { tiles.channels * k };
        let mut scratch = Output::<T>::new("conv", &[depth * cols])?;
        // SAFETY: image and group are inside; tasks write disjoint columns of their image.
        unsafe {
            let x = src.get().add(image * g.c * x_plane).cast_const();
            let w = w.get().add(group * g.o * g.c * k).cast_const();
            let y = dst.get().add(image * g.o * y_plane + positions.start);
            if let Some(bias) = &bias {
                for (o, &b) in bias[group * g.o..][..g.o].iter().enumerate() {
                    for i in 0..cols {
                        y.add(o * y_plane + i).write(b);
                    }
                }
            }
            let row = (g.c * k) as isize;
            if g.is_pointwise() {
                let b = (x.add(positions.start), (x_plane as isize, 1));
                let shape = (g.o, g.c, cols);
                return multiply((w, (row, 1)), b, (y, y_plane), shape, bias.is_some());
            }
            for channels in ranges(g.c, tiles.channels) {
                let from = channels.start;
                let add = bias.is_some() || from > 0;
                let depth = channels.len() * k;
                gather(g, x, channels, positions.clone(), scratch.as_mut_ptr());
                let b = (scratch.as_mut_ptr().cast_const(), (cols as isize, 1));
                let shape = (g.o, depth, cols);
                multiply((w.add(from * k), (row, 1)), b, (y, y_plane), shape, add)?;
            }
        }
        Ok(())
    })?;
    // SAFETY: every column of every image was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(Path::Fused)))
}

/// `X̃ = Wᵀ·Y`, added to x over windows.
pub(super) fn adjoint<T: Float>(
    mut x: Tensor<T>,
    weight: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let tiles = Tiles::new::<T>(g, TASKS);
    let blocks = g.c.div_ceil(tiles.channels);
    let dst = SendPtr(x.as_mut_slice()?.as_mut_ptr());
    let (w, src) = (SendPtr(weight.as_ptr().cast_mut()), SendPtr(y.as_ptr().cast_mut()));
    let tasks = g.n * g.groups * blocks;
    for_each_chunk(tasks, g.work() >= MIN_PARALLEL, &|task| {
        let (image, block) = (task / blocks, task % blocks);
        let group = image % g.groups;
        let channels = nth(g.c, tiles.channels, block);
        let depth = channels.len() * k;
        // The transposed weight of these channels, W[o, (c, k)], is read with swapped strides.
        // SAFETY: image and group are inside; tasks write disjoint channels of their image.
        unsafe {
            let x = dst.get().add(image * g.c * x_plane);
            let w = w.get().add(group * g.o * g.c * k + channels.start * k).cast_const();
            let w = (w, (1, (g.c * k) as isize));
            let y = src.get().add(image * g.o * y_plane).cast_const();
            if g.is_pointwise() {
                let to = (x.add(channels.start * x_plane), x_plane);
                let from = (y, (y_plane as isize, 1));
                return multiply(w, from, to, (depth, g.o, y_plane), true);
            }
            let mut scratch = Output::<T>::new("conv", &[depth * tiles.positions])?;
            for positions in ranges(y_plane, tiles.positions) {
                let cols = positions.len();
                let from = (y.add(positions.start), (y_plane as isize, 1));
                let to = (scratch.as_mut_ptr(), cols);
                multiply(w, from, to, (depth, g.o, cols), false)?;
                scatter_add(g, x, channels.clone(), positions, scratch.as_mut_ptr());
            }
        }
        Ok(())
    })?;
    Ok(x.with_route(Route::native(Path::Fused)))
}

/// `W = Y·X̃ᵀ`, summed over images.
pub(super) fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let mut tiles = Tiles::new::<T>(g, 1);
    tiles.channels = tiles.channels.min(g.c.div_ceil(4).max(64usize.div_ceil(k)));
    let blocks = g.c.div_ceil(tiles.channels);
    // Few blocks of channels share the images as well, each part with a sum of its own.
    let parts = TASKS.div_ceil(g.groups * blocks).clamp(1, 4).min(g.n);
    let images = g.n.div_ceil(parts);
    let parts = g.n.div_ceil(images);
    let w_len = g.groups * g.o * g.c * k;
    let mut shape = g.w_shape();
    shape.insert(0, parts);
    let mut out = Output::<T>::new("conv_weight", &shape)?;
    let dst = SendPtr(out.as_mut_ptr());
    let (src, dy) = (SendPtr(x.as_ptr().cast_mut()), SendPtr(y.as_ptr().cast_mut()));
    let tasks = parts * g.groups * blocks;
    for_each_chunk(tasks, g.work() >= MIN_PARALLEL, &|task| {
        let (part, rest) = (task / (g.groups * blocks), task % (g.groups * blocks));
        let (group, block) = (rest / blocks, rest % blocks);
        let channels = nth(g.c, tiles.channels, block);
        let depth = channels.len() * k;
        let direct = g.is_pointwise();
        let scratch = if direct { 0 } else { depth * tiles.positions };
        let mut scratch = Output::<T>::new("conv_weight", &[scratch])?;
        // SAFETY: as in `forward`; tasks write disjoint columns of their part of W.
        unsafe {
            let to = part * w_len + group * g.o * g.c * k + channels.start * k;
            let to = (dst.get().add(to), g.c * k);
            let mut add = false;
            for image in nth(g.n, images, part) {
                let image = image * g.groups + group;
                let x = src.get().add(image * g.c * x_plane).cast_const();
                let y = dy.get().add(image * g.o * y_plane).cast_const();
                for positions in ranges(y_plane, if direct { y_plane } else { tiles.positions }) {
                    let cols = positions.len();
                    let a = (y.add(positions.start), (y_plane as isize, 1));
                    let b = if direct {
                        (x.add(channels.start * x_plane), (1, x_plane as isize))
                    } else {
                        gather(g, x, channels.clone(), positions, scratch.as_mut_ptr());
                        (scratch.as_mut_ptr().cast_const(), (1, cols as isize))
                    };
                    multiply(a, b, to, (g.o, cols, depth), add)?;
                    add = true;
                }
            }
        }
        Ok(())
    })?;
    // SAFETY: every part has an image, whose first product wrote its columns.
    let out = unsafe { out.assume_init() };
    let out = if parts == 1 {
        out
    } else {
        crate::reduce::reduce(crate::kernels::fold::Sum, &out, &[0])?
    };
    Ok(out.select(0, 0)?.with_route(Route::native(Path::Fused)))
}
