//! Convolutions as matrix products over tiles of windows.

use std::ops::Range;

use t4a_algebra::Float;
use t4a_algebra::gemm::MatRef;

use super::columns::{gather, scatter_add};
use super::geometry::Geometry;
use super::parts::{TASKS, nth, weight_in_parts};
use crate::copy::row_major;
use crate::error::Result;
use crate::loops::parallel;
use crate::output::{
    Output, ProductSum, Workspace, add_product, parts_of_groups_mut, share, share_with,
};
use crate::route::{Path, Route};
use crate::tensor::Tensor;
use crate::view::View;

/// Rows of a tile: the depth of one matrix product (bench `nn`, rows `conv`).
const DEPTH: usize = 512;
/// Bytes of a tile: half of a 512 KiB second-level cache.
const TILE_BYTES: usize = 256 << 10;
/// Minimum number of positions of a tile: products with fewer are slow.
const LEAST: usize = 64;
/// Bytes of a tile of that few positions.
const MOST_BYTES: usize = 16 << 20;
/// Tile sizes of the matrix of windows.
struct WindowTiles {
    /// Channels of x per tile.
    channels: usize,
    /// Positions of y per tile.
    positions: usize,
}

impl WindowTiles {
    fn new<T>(g: &Geometry, least_tasks: usize) -> Self {
        let [_, k, y] = g.planes();
        let share = (g.c * g.n * g.groups).div_ceil(least_tasks).max(1);
        let channels = (DEPTH / k).max(1).min(g.c).min(share);
        let bytes = channels * k * size_of::<T>();
        let most = (TILE_BYTES / bytes).max(LEAST.min(MOST_BYTES / bytes)).max(1);
        // Whole lines if they fit.
        let line = g.y[2];
        let positions = if most > line { most / line * line } else { most };
        Self { channels, positions: positions.min(y) }
    }
}

fn ranges(total: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    (0..total).step_by(step.max(1)).map(move |from| from..(from + step).min(total))
}

/// A matrix whose first element is `data[at]`; its rows are contiguous with stride `pitch`.
fn matrix<T: Float>(
    data: &[T],
    at: usize,
    shape: (usize, usize),
    pitch: usize,
) -> Result<MatRef<'_, T>> {
    View::of(data).matrix("conv", at as isize, shape, (pitch as isize, 1))
}

/// `Y = W·X̃`.
pub(super) fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let op = "conv";
    let [x_plane, k, y_plane] = g.planes();
    let tiles = WindowTiles::new::<T>(g, 1);
    let per_image = y_plane.div_ceil(tiles.positions);
    let (xs, ws) = (x.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let direct = g.is_pointwise();
    let depth = if direct { 0 } else { tiles.channels * k };
    let scratch = || Workspace::new(depth * tiles.positions);
    let parallel = parallel::worthwhile_steps(g.work());
    let out = Output::<T>::new(op, &g.y_shape())?.try_write(|y| {
        let parts = y.columns([g.o, y_plane], tiles.positions);
        share_with(parts, 1, parallel, scratch, |scratch, task, y| {
            let (image, tile) = (task / per_image, task % per_image);
            let group = image % g.groups;
            let positions = nth(y_plane, tiles.positions, tile);
            let cols = positions.len();
            let x = &xs[image * g.c * x_plane..][..g.c * x_plane];
            // The weight of some channels from the first on.
            let w = |from: usize, depth: usize| {
                matrix(ws, group * g.o * g.c * k + from * k, (g.o, depth), g.c * k)
            };
            let mut y = match bias {
                Some(bias) => {
                    let bias = &bias[group * g.o..];
                    ProductSum::Begun(y.write(|o, row| row.fill(bias[o])))
                }
                None => ProductSum::Empty(y),
            };
            if direct {
                let b = matrix(x, positions.start, (g.c, cols), x_plane)?;
                return Ok(y.add(op, w(0, g.c)?, b)?.finish());
            }
            for channels in ranges(g.c, tiles.channels) {
                let (from, count) = (channels.start, channels.len());
                let tile = scratch.fresh(count * k * cols);
                let tile = gather(g, &x[from * x_plane..], count, positions.clone(), tile);
                y = y.add(op, w(from, count * k)?, matrix(&tile, 0, (count * k, cols), cols)?)?;
            }
            Ok(y.finish())
        })
    })?;
    Ok(out.with_route(Route::native(Path::Fused)))
}

/// `X̃ = Wᵀ·Y`, added to x over windows.
pub(super) fn adjoint<T: Float>(
    mut x: Tensor<T>,
    weight: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let op = "conv";
    let [x_plane, k, y_plane] = g.planes();
    let tiles = WindowTiles::new::<T>(g, TASKS);
    let blocks = g.c.div_ceil(tiles.channels);
    let (ys, ws) = (y.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    // The channels of an image are adjacent.
    let parts = parts_of_groups_mut(x.as_mut_slice()?, g.c * x_plane, tiles.channels * x_plane);
    share(parts, 1, parallel::worthwhile_steps(g.work()), |task, x| {
        let (image, block) = (task / blocks, task % blocks);
        let group = image % g.groups;
        let channels = nth(g.c, tiles.channels, block);
        let depth = channels.len() * k;
        let w = matrix(ws, group * g.o * g.c * k + channels.start * k, (g.o, depth), g.c * k)?;
        let y = &ys[image * g.o * y_plane..][..g.o * y_plane];
        if g.is_pointwise() {
            return add_product(op, x, w.transpose(), matrix(y, 0, (g.o, y_plane), y_plane)?);
        }
        let mut scratch = Workspace::new(depth * tiles.positions)?;
        for positions in ranges(y_plane, tiles.positions) {
            let cols = positions.len();
            let y = matrix(y, positions.start, (g.o, cols), y_plane)?;
            let tile = scratch.fresh(depth * cols).product(op, w.transpose(), y)?;
            scatter_add(g, x, channels.len(), positions, &tile);
        }
        Ok(())
    })?;
    Ok(x.with_route(Route::native(Path::Fused)))
}

/// `W = Y·X̃ᵀ`, summed over images.
pub(super) fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let op = "conv_weight";
    let [x_plane, k, y_plane] = g.planes();
    let tiles = WindowTiles::new::<T>(g, 1);
    let channels = tiles.channels.min(g.c.div_ceil(4).max(64usize.div_ceil(k)));
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let direct = g.is_pointwise();
    let step = if direct { y_plane } else { tiles.positions };
    let scratch = || Workspace::new(if direct { 0 } else { channels * k * step });
    weight_in_parts(g, channels, 1, scratch, |scratch, part, w| {
        let (from, count) = (part.channels.start, part.channels.len());
        let mut w = ProductSum::Empty(w);
        for image in part.images {
            let image = image * g.groups + part.group;
            let x = &xs[(image * g.c + from) * x_plane..][..count * x_plane];
            let y = &ys[image * g.o * y_plane..][..g.o * y_plane];
            for positions in ranges(y_plane, step) {
                let cols = positions.len();
                let dy = matrix(y, positions.start, (g.o, cols), y_plane)?;
                w = if direct {
                    w.add(op, dy, matrix(x, 0, (count, cols), x_plane)?.transpose())?
                } else {
                    let tile = scratch.fresh(count * k * cols);
                    let tile = gather(g, x, count, positions, tile);
                    w.add(op, dy, matrix(&tile, 0, (count * k, cols), cols)?.transpose())?
                };
            }
        }
        Ok(w.finish())
    })
}
