//! Weights as dot products of shifted copies: of long runs of several lines and images, of lines read in place, and
//! of few channels per group.

use t4a_algebra::Float;
use t4a_algebra::simd::dispatch;

use super::geometry::Geometry;
use super::grid::{PAST, PhaseGrid, places, starts, taps, windows};
use super::parts::{in_a_row, weight_in_parts};
use super::shifted::worthwhile;
use super::strips::{Size, Strips};
use super::sums::{
    CHANNELS, DotsTogether, IsFinite, LANES, SIDE, SLACK, WINDOW_LANES, WindowDots, WindowSum,
    abreast, vector, widest, window,
};
use crate::error::Result;
use crate::output::{Filled, parts_mut, share, share_with};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// The weight as sums over long runs of several lines and images; NaN if an element multiplied by the zeros between
/// lines of y is not finite.
pub(super) fn of_runs<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    /// Bytes of x and number of positions at a time: with fewer, the sum over lanes dominates the cost.
    const BYTES: usize = 512 << 10;
    const RUN: usize = 4096;
    const LEAST: usize = 1024;
    let [x_plane, k, y_plane] = g.planes();
    let channels = g.c.div_ceil(2).clamp(64usize.div_ceil(k), 64).min(g.c);
    let size = Size { channels, bytes: BYTES, least: LEAST / 2, most: RUN };
    let strips = Strips::new::<T>(g, size)?;
    // Several images together, if they are small.
    let together = match strips.count() {
        1 => (RUN / strips.grid.volume()).min(BYTES / size.on_grid::<T>(g)).clamp(1, g.n),
        _ => 1,
    };
    let mut grid = strips.grid;
    let apart = grid.size[0];
    grid.size[0] *= together;
    let offsets = taps(channels, &grid, &places(g, &grid)?)?;
    let most = grid.volume().next_multiple_of(SLACK);
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let scratch = || {
        let src = Filled::new(channels * grid.len() + PAST, T::ZERO)?;
        let lines = Filled::new(CHANNELS * most, T::ZERO)?;
        Ok((src, lines, Filled::new(CHANNELS * channels * k, T::ZERO)?))
    };
    weight_in_parts(g, channels, LEAST.div_ceil(y_plane), scratch, |(src, lines, dots), part, w| {
        let mut w = w.write(|_, row| row.fill(T::ZERO));
        let taps = part.channels.len() * k;
        let mut partial = [T::ZERO; LANES];
        let pieces = part.images.len() * strips.count();
        // Elements between lines remain zero as long as the lines have the same places.
        let mut places = None;
        for first in (0..pieces).step_by(together) {
            // Image and strip of every piece.
            let piece = |i: usize| {
                let image = part.images.start + (first + i) / strips.count();
                (image * g.groups + part.group, (first + i) % strips.count())
            };
            let count = together.min(pieces - first);
            src.fill(T::ZERO);
            for i in 0..count {
                let (image, strip) = piece(i);
                let strip = strips.nth(strip);
                let planes = &xs[(image * g.c + part.channels.start) * x_plane..];
                let planes = planes[..part.channels.len() * x_plane].chunks_exact(x_plane);
                let mut at = strip.at;
                at[0] += i * apart * g.stride[0];
                grid.spread(planes.map(|plane| &plane[strip.x.clone()]), strip.size, at, src);
            }
            let last = strips.nth(piece(count - 1).1).y;
            let end = grid.linear([(count - 1) * apart + last[0] - 1, last[1] - 1, last[2]]);
            let run = end.next_multiple_of(SLACK);
            if places.replace(end) != Some(end) {
                lines.fill(T::ZERO);
            }
            for from in (0..g.o).step_by(CHANNELS) {
                let rows = CHANNELS.min(g.o - from);
                let lines = &mut lines[..CHANNELS * run];
                for (r, lines) in lines.chunks_exact_mut(run).take(rows).enumerate() {
                    for i in 0..count {
                        let (image, strip) = piece(i);
                        let size = strips.nth(strip).y;
                        let y = &ys[(image * g.o + from + r) * y_plane..][..y_plane];
                        let mut y = y[strip * strips.positions()..].chunks_exact(size[2]);
                        for d in 0..size[0] {
                            for h in 0..size[1] {
                                let at = grid.linear([i * apart + d, h, 0]);
                                let line = y.next().unwrap_or_default();
                                lines[at..][..line.len()].copy_from_slice(line);
                            }
                        }
                    }
                }
                let dots = &mut dots[..CHANNELS * taps];
                dispatch(DotsTogether {
                    channels: CHANNELS,
                    x: src,
                    offsets: &offsets[..taps],
                    starts: None,
                    block: widest::<T>(),
                    y: lines,
                    lanes: &mut partial,
                    w: dots,
                });
                for (r, dots) in dots.chunks_exact(taps).take(rows).enumerate() {
                    let sums = w.row(from + r).iter_mut().zip(dots);
                    sums.for_each(|(w, &dot)| *w = w.add(dot));
                }
            }
        }
        Ok(w)
    })
}

/// The weight as sums over lines of whole vectors of [`CHANNELS`] channels of y at a time, read in place: for few
/// positions or few taps, where copying y would dominate the cost.
pub(super) fn of_lines<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let [x_plane, _, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let (blocks, block) = (g.o / CHANNELS, vector::<T>());
    let offsets = taps(g.c, &grid, &places)?;
    let starts = starts(g, &grid, g.y[2], block)?;
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let parts = parts_mut(w.as_mut_slice()?, g.groups * blocks);
    share(parts, 1, worthwhile(g), |task, w| {
        let (group, from) = (task / blocks, task % blocks * CHANNELS);
        let mut src = Filled::new(g.c * grid.len() + PAST, T::ZERO)?;
        let mut dots = Filled::new(CHANNELS * offsets.len(), T::ZERO)?;
        let mut partial = [T::ZERO; LANES];
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            grid.spread(planes, g.x, g.padding, &mut src);
            dispatch(DotsTogether {
                channels: CHANNELS,
                x: &src,
                offsets: &offsets,
                starts: Some(&starts),
                block,
                y: &ys[(image * g.o + from) * y_plane..][..CHANNELS * y_plane],
                lanes: &mut partial,
                w: &mut dots,
            });
            w.iter_mut().zip(&*dots).for_each(|(w, &dot)| *w = w.add(dot));
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}

/// The weight of few channels per group for windows of 3 × 3 adjacent elements, of which the first one is at `first` of the
/// grid, with registers of 512 bits; NaN if an element multiplied by the zeros after lines of y is not finite.
fn of_windows<T: Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
    grid: &PhaseGrid,
    first: usize,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    // The last columns are copied to lines of one block.
    let (width, block) = (g.y[2], widest::<T>());
    let whole = width / block * block;
    let padded = if whole < width { g.y[1] * block } else { 0 };
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let tasks = parts_mut(w.as_mut_slice()?, g.groups * g.o);
    let scratch = || {
        let src = Filled::new(g.c * grid.len() + PAST, T::ZERO)?;
        Ok((src, Filled::new(padded, T::ZERO)?, Filled::new(g.c * WINDOW_LANES, T::ZERO)?))
    };
    let grain = in_a_row(g.groups * g.o);
    share_with(tasks, grain, worthwhile(g), scratch, |(src, last, lanes), task, w| {
        let (group, o) = (task / g.o, task % g.o);
        lanes.fill(T::ZERO);
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            grid.spread(planes, g.x, g.padding, src);
            let y = ys[(image * g.o + o) * y_plane..][..y_plane].chunks_exact(g.y[1] * width);
            for (d, y) in y.enumerate() {
                for (to, from) in last.chunks_exact_mut(block).zip(y.chunks_exact(width)) {
                    to[..width - whole].copy_from_slice(&from[whole..]);
                }
                for (c, lanes) in lanes.chunks_exact_mut(WINDOW_LANES).enumerate() {
                    let from = c * grid.len() + first + grid.linear([d, 0, 0]);
                    let parts = [(from, y, width, whole), (from + whole, &last[..], block, block)];
                    for (from, y, width, columns) in parts {
                        if columns > 0 && !y.is_empty() {
                            dispatch(WindowDots {
                                x: &src[..],
                                from,
                                pitch: grid.size[2],
                                y,
                                width,
                                columns,
                                lanes: &mut *lanes,
                            });
                        }
                    }
                }
            }
        }
        for (w, lanes) in w.chunks_exact_mut(k).zip(lanes.chunks_exact(WINDOW_LANES)) {
            dispatch(WindowSum(lanes, w));
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}

/// The weight of few channels per group, summed over images in order.
pub(super) fn of_few_channels<T: Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    // With registers of 256 bits the compiler joins vectors by shuffles.
    if let Some(first) = window(&places, grid.size[2])
        && (widest::<T>() > vector::<T>() && g.y[1] >= SIDE && g.y[2] >= vector::<T>())
    {
        let w = of_windows(x, y, g, &grid, first)?;
        if !w.as_slice().unwrap_or_default().iter().any(|w| w.is_nan()) {
            return Ok(w);
        }
    }
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    // Lines of y padded to whole blocks; lines of whole blocks are read in place.
    let (block, height) = (abreast::<T>(g.y[2]), y_plane / g.y[2]);
    let pitch = g.y[2].next_multiple_of(block);
    let padded = if pitch > g.y[2] { height * pitch } else { 0 };
    let offsets = taps(g.c, &grid, &places)?;
    // Blocks of lines, and single elements, which are not followed by zeros.
    let blocks = starts(g, &grid, pitch, block)?;
    let elements = starts(g, &grid, g.y[2], 1)?;
    let parts = parts_mut(w.as_mut_slice()?, g.groups * g.o);
    let scratch = || {
        let src = Filled::new(g.c * grid.len() + PAST, T::ZERO)?;
        Ok((src, Filled::new(padded, T::ZERO)?, Filled::new(g.c * k, T::ZERO)?))
    };
    let grain = in_a_row(g.groups * g.o);
    share_with(parts, grain, worthwhile(g), scratch, |(src, lines, dots), task, w| {
        let (group, o) = (task / g.o, task % g.o);
        let mut partial = [T::ZERO; LANES];
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            grid.spread(planes, g.x, g.padding, src);
            let y = &ys[(image * g.o + o) * y_plane..][..y_plane];
            for (to, from) in lines.chunks_exact_mut(pitch).zip(y.chunks_exact(g.y[2])) {
                to[..g.y[2]].copy_from_slice(from);
            }
            let lines = if padded == 0 { y } else { &**lines };
            let (y, starts, block) = match padded == 0 || dispatch(IsFinite(&src[..])) {
                true => (lines, &blocks, block),
                false => (y, &elements, 1),
            };
            let (lanes, starts) = (&mut partial[..], Some(&starts[..]));
            let x = &src[..];
            dispatch(DotsTogether {
                channels: 1,
                x,
                offsets: &offsets,
                starts,
                block,
                y,
                lanes,
                w: dots,
            });
            w.iter_mut().zip(&**dots).for_each(|(w, &dot)| *w = w.add(dot));
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}
