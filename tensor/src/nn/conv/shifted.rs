//! Convolutions as sums of shifted copies, without a matrix of windows: of few channels per group, or of small
//! planes.
//!
//! With t on the pitch of a phase of the grid the whole plane is a single long run, without edges; what lies
//! between its lines is computed and not used. The adjoint is the same sum over shifted copies of y, once per
//! phase.

use std::ops::Range;

use t4a_algebra::Float;
use t4a_algebra::simd::dispatch;

use super::geometry::Geometry;
use super::grid::{Grid, elements, places, windows};
use super::parts::{TASKS, weight_in_parts};
use super::strips::{Size, Strips};
use super::sums::{
    CHANNELS, Dots, DotsTogether, LANES, SLACK, Sum, WIDE, abreast, blocks, ranges, vector, widest,
};
use crate::copy::row_major;
use crate::error::Result;
use crate::loops::parallel;
use crate::output::{Filled, Output, parts_mut, share};
use crate::route::{Path, Route};
use crate::storage::collect;
use crate::tensor::Tensor;

fn worthwhile(g: &Geometry) -> bool {
    parallel::worthwhile_narrow_steps(g.work())
}

/// `w(group, tap, channel)` of `channels` channels per group, in the order in which [`Sum`] reads it.
fn packed<T: Float>(
    groups: usize,
    taps: usize,
    channels: usize,
    most: usize,
    w: impl Fn(usize, usize, usize) -> T,
) -> Result<Vec<T>> {
    let mut out = collect(groups * taps * channels, std::iter::empty())?;
    for group in 0..groups {
        for range in ranges(channels, most) {
            for tap in 0..taps {
                out.extend(range.clone().map(|channel| w(group, tap, channel)));
            }
        }
    }
    Ok(out)
}

/// What sums of some channels of a group begin with.
fn begun<T: Float>(bias: Option<&[T]>, first: usize, channels: &Range<usize>) -> [T; WIDE] {
    let mut init = [T::ZERO; WIDE];
    if let Some(bias) = bias {
        init[..channels.len()].copy_from_slice(&bias[first..][channels.clone()]);
    }
    init
}

/// The convolution, plus a bias per channel, of `most` channels at a time.
pub(super) fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
    most: usize,
) -> Result<Tensor<T>> {
    let (taps, ws) = (g.c * g.planes()[1], weight.as_slice().unwrap_or_default());
    sums(x, |group, tap, o| ws[(group * g.o + o) * taps + tap], bias, g, most)
}

/// The adjoint, plus a bias per channel, as the convolution `back` over y: [`Geometry::reversed`].
pub(super) fn reversed<T: Float>(
    weight: &Tensor<T>,
    y: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    back: &Geometry,
    most: usize,
) -> Result<Tensor<T>> {
    let (k, ws) = (back.planes()[1], weight.as_slice().unwrap_or_default());
    let w = |group: usize, tap: usize, c: usize| {
        ws[((group * back.c + tap / k) * back.o + c) * k + k - 1 - tap % k]
    };
    sums(y, w, bias, back, most)
}

/// Strips of a convolution: at least 16, if they have enough positions, and a source in half of a second-level
/// cache of 512 KiB.
fn strips(g: &Geometry) -> Size {
    let positions = g.planes()[2];
    let shared = g.n.saturating_mul(g.groups).saturating_mul(positions).div_ceil(TASKS);
    Size { channels: g.c, bytes: 256 << 10, least: 128, most: shared }
}

/// Bytes of what is read of x at a time.
pub(super) fn bytes<T>(g: &Geometry) -> usize {
    strips(g).on_grid::<T>(g)
}

/// A convolution with the weight `w(group, tap, channel)`; window elements of a channel of x are neighbours.
fn sums<T: Float>(
    x: &Tensor<T>,
    w: impl Fn(usize, usize, usize) -> T,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
    most: usize,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let strips = Strips::new::<T>(g, strips(g))?;
    let (grid, places) = (&strips.grid, &strips.places);
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let xs = x.as_slice().unwrap_or_default();
    let taps = g.c * k;
    let offsets = collect(taps, (0..taps).map(|i| i / k * grid.len() + places[i % k]))?;
    let ws = packed(g.groups, taps, g.o, most, w)?;
    let together = ranges(g.o, most).next().map_or(0, |range| range.len());
    let out = Output::<T>::new("conv", &g.y_shape())?.try_write(|y| {
        // x is spread once for all channels of y.
        let parts = y.columns([g.o, y_plane], strips.positions());
        share(parts, 1, worthwhile(g), |task, mut y| {
            let (image, strip) = (task / strips.count(), strips.nth(task % strips.count()));
            let group = image % g.groups;
            let mut src = Filled::new(g.c * grid.len() + SLACK, T::ZERO)?;
            let run = grid.linear(strip.y.map(|n| n - 1)) + 1;
            let pitch = blocks(run, 1);
            let mut sums = Filled::new(together * pitch, T::ZERO)?;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            let parts = planes.map(|plane| &plane[strip.x.clone()]);
            grid.spread(parts, strip.size, strip.at, &mut src);
            for range in ranges(g.o, most) {
                let init = begun(bias, group * g.o, &range);
                dispatch(Sum {
                    src: &src,
                    offsets: &offsets,
                    weights: &ws[(group * g.o + range.start) * taps..][..range.len() * taps],
                    init: &init[..range.len()],
                    run: blocks(run, range.len()),
                    pitch,
                    out: &mut sums,
                });
                for r in 0..range.len() {
                    let mut lines = y.next().cursor();
                    for d in 0..strip.y[0] {
                        for h in 0..strip.y[1] {
                            let from = r * pitch + grid.linear([d, h, 0]);
                            lines.copy_from(&sums[from..][..strip.y[2]]);
                        }
                    }
                    y.done(lines.finish());
                }
            }
            Ok(y.finish())
        })
    })?;
    Ok(out.with_route(Route::native(Path::Fused)))
}

/// What the adjoint reads of y: for every phase of x its window elements, sorted by phase.
struct Reads {
    from: Grid,
    to: Grid,
    /// Zeros before y.
    most: [usize; 3],
    /// Phase, window element and place in a plane of y.
    all: Vec<(usize, usize, usize)>,
    run: usize,
}

impl Reads {
    fn new(g: &Geometry) -> Result<Self> {
        let k = g.planes()[1];
        // Window element k moves y by q_k = k·d div s within phase k·d mod s.
        let moved = |i: usize, k: usize| k * g.dilation[i] / g.stride[i];
        let most: [usize; 3] = std::array::from_fn(|i| moved(i, g.k[i] - 1));
        let reach: [usize; 3] =
            std::array::from_fn(|i| (g.x[i] - 1 + g.padding[i]) / g.stride[i] + 1);
        let size = std::array::from_fn(|i| reach[i] + most[i]);
        let from = Grid { s: [1; 3], size };
        let phase = |k: [usize; 3]| {
            (0..3).fold(0, |phase, i| phase * g.stride[i] + k[i] * g.dilation[i] % g.stride[i])
        };
        let read = |(i, k): (usize, [usize; 3])| {
            let at = from.linear(std::array::from_fn(|i: usize| most[i] - moved(i, k[i])));
            (phase(k), i, at)
        };
        let mut all: Vec<_> = collect(k, elements(g).enumerate().map(read))?;
        all.sort_unstable();
        let run = from.linear(reach.map(|n| n - 1)) + 1;
        Ok(Self { from, to: Grid { s: g.stride, size }, most, all, run })
    }

    /// The window elements of a phase, as a range of all.
    fn of(&self, phase: usize) -> Range<usize> {
        let from = self.all.partition_point(|read| read.0 < phase);
        from..self.all.partition_point(|read| read.0 <= phase)
    }
}

/// The adjoint, plus a bias per channel.
pub(super) fn adjoint<T: Float>(
    weight: &Tensor<T>,
    y: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let reads = Reads::new(g)?;
    let (from, to) = (reads.from, reads.to);
    let phases: usize = g.stride.iter().product();
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let (ys, ws) = (y.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let taps = g.o * k;
    // Phase by phase: window elements of a channel of y are neighbours.
    let mut order: Vec<(usize, usize)> = collect(taps, std::iter::empty())?;
    for phase in 0..phases {
        let own = &reads.all[reads.of(phase)];
        order.extend(
            (0..g.o)
                .flat_map(|o| own.iter().map(move |&(_, i, at)| (o * k + i, o * from.len() + at))),
        );
    }
    let offsets: Vec<usize> = collect(taps, order.iter().map(|&(_, at)| at))?;
    let ws = packed(g.groups, taps, g.c, CHANNELS, |group, tap, c| {
        let (o, i) = (order[tap].0 / k, order[tap].0 % k);
        ws[((group * g.o + o) * g.c + c) * k + i]
    })?;
    let out = Output::<T>::new("conv", &g.x_shape())?.try_write(|x| {
        share(x.parts(g.c * x_plane), 1, worthwhile(g), |task, x| {
            let group = task % g.groups;
            let mut src = Filled::new(g.o * from.len() + SLACK, T::ZERO)?;
            let pitch = to.len() + SLACK;
            let together = if g.c < CHANNELS { 1 } else { CHANNELS };
            let mut sums = Filled::new(together * pitch, T::ZERO)?;
            let planes = ys[task * g.o * y_plane..][..g.o * y_plane].chunks_exact(y_plane);
            from.spread(planes, g.y, reads.most, &mut src);
            let mut planes = x.cursor();
            for range in ranges(g.c, CHANNELS) {
                let init = begun(bias, group * g.c, &range);
                let weights = &ws[(group * g.c + range.start) * taps..][..range.len() * taps];
                for phase in 0..phases {
                    let own = reads.of(phase);
                    let (first, last) = (own.start * g.o, own.end * g.o);
                    // The last block may reach into the next phase, which comes later.
                    dispatch(Sum {
                        src: &src,
                        offsets: &offsets[first..last],
                        weights: &weights[first * range.len()..last * range.len()],
                        init: &init[..range.len()],
                        run: blocks(reads.run, range.len()),
                        pitch,
                        out: &mut sums[phase * to.volume()..],
                    });
                }
                for r in 0..range.len() {
                    let sums = &sums[r * pitch..][..pitch];
                    // Every element of the plane is on the grid: runs make up whole lines, in order.
                    let width = g.x[2];
                    match g.stride[2].min(width) {
                        1 => to.for_each_run(g.x, g.padding, |_, place, len| {
                            planes.copy_from(&sums[place..][..len]);
                        }),
                        2 => {
                            let mut even: &[T] = &[];
                            to.for_each_run(g.x, g.padding, |at, place, len| {
                                let run = &sums[place..][..len];
                                if at.is_multiple_of(width) {
                                    even = run;
                                } else {
                                    let line = planes.next(width).interleave(even, run);
                                    planes.done(line);
                                }
                            });
                        }
                        _ => {
                            let mut plane = planes.next(x_plane).fill(T::ZERO);
                            to.for_each_run(g.x, g.padding, |at, place, len| {
                                let sums = &sums[place..][..len];
                                let line = plane[at..].iter_mut().step_by(g.stride[2]);
                                for (x, &v) in line.zip(sums) {
                                    *x = v;
                                }
                            });
                            planes.done(plane);
                        }
                    }
                }
            }
            Ok(planes.finish())
        })
    })?;
    Ok(out.with_route(Route::native(Path::Fused)))
}

/// The weight, as sums over long runs of several lines and images; NaN where zeros between lines of y meet what
/// is not finite.
pub(super) fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    /// Bytes of x at a time, and positions: with fewer, adding up the lanes is most of the work.
    const BYTES: usize = 512 << 10;
    const RUN: usize = 4096;
    const LEAST: usize = 1024;
    let [x_plane, k, y_plane] = g.planes();
    let channels = g.c.div_ceil(2).clamp(64usize.div_ceil(k), 64).min(g.c);
    let size = Size { channels, bytes: BYTES, least: LEAST / 2, most: RUN };
    let strips = Strips::new::<T>(g, size)?;
    // Images side by side, where they are that small.
    let together = match strips.count() {
        1 => (RUN / strips.grid.volume()).min(BYTES / size.on_grid::<T>(g)).clamp(1, g.n),
        _ => 1,
    };
    let mut grid = strips.grid;
    let apart = grid.size[0];
    grid.size[0] *= together;
    let places = places(g, &grid)?;
    let offsets = (0..channels * k).map(|i| i / k * grid.len() + places[i % k]);
    let offsets = collect(channels * k, offsets)?;
    let most = grid.volume().next_multiple_of(SLACK);
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let scratch = || {
        let src = Filled::new(channels * grid.len() + SLACK, T::ZERO)?;
        let lines = Filled::new(CHANNELS * most, T::ZERO)?;
        Ok((src, lines, Filled::new(CHANNELS * channels * k, T::ZERO)?))
    };
    weight_in_parts(g, channels, LEAST.div_ceil(y_plane), scratch, |(src, lines, dots), part, w| {
        let mut w = w.write(|_, row| row.fill(T::ZERO));
        let taps = part.channels.len() * k;
        let mut partial = [T::ZERO; LANES];
        let pieces = part.images.len() * strips.count();
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
            let run = grid.linear([(count - 1) * apart + last[0] - 1, last[1] - 1, last[2]]);
            let run = run.next_multiple_of(SLACK);
            for from in (0..g.o).step_by(CHANNELS) {
                let rows = CHANNELS.min(g.o - from);
                let lines = &mut lines[..CHANNELS * run];
                lines.fill(T::ZERO);
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

/// The weight, as sums over lines of whole vectors of [`CHANNELS`] channels of y at a time, read in place: for few
/// positions or few taps, next to which writing y anew costs too much.
pub(super) fn weight_of_lines<T: Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let (blocks, taps, block) = (g.o / CHANNELS, g.c * k, vector::<T>());
    let offsets = collect(taps, (0..taps).map(|i| i / k * grid.len() + places[i % k]))?;
    let starts = (0..y_plane).step_by(block).map(|t| {
        let (line, w) = (t / g.y[2], t % g.y[2]);
        grid.linear([line / g.y[1], line % g.y[1], w])
    });
    let starts = collect(y_plane / block, starts)?;
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let parts = parts_mut(w.as_mut_slice()?, g.groups * blocks);
    share(parts, 1, worthwhile(g), |task, w| {
        let (group, from) = (task / blocks, task % blocks * CHANNELS);
        let mut src = Filled::new(g.c * grid.len() + SLACK, T::ZERO)?;
        let mut dots = Filled::new(CHANNELS * taps, T::ZERO)?;
        let mut partial = [T::ZERO; LANES];
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            grid.spread(planes, g.x, g.padding, &mut src);
            dispatch(DotsTogether {
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

/// The weight of few channels per group, summed over images in order.
pub(super) fn thin_weight<T: Float>(
    x: &Tensor<T>,
    y: &Tensor<T>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    // Lines of y, whole blocks each; lines that are so already are read in place.
    let pitch = g.y[2].next_multiple_of(abreast::<T>(g.y[2]));
    let padded = if pitch > g.y[2] { y_plane / g.y[2] * pitch } else { 0 };
    let parts = parts_mut(w.as_mut_slice()?, g.groups * g.o);
    share(parts, 1, worthwhile(g), |task, w| {
        let (group, o) = (task / g.o, task % g.o);
        let mut src = Filled::new(g.c * grid.len() + SLACK, T::ZERO)?;
        let mut lines = Filled::new(padded, T::ZERO)?;
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            grid.spread(planes, g.x, g.padding, &mut src);
            let y = &ys[(image * g.o + o) * y_plane..][..y_plane];
            for (to, from) in lines.chunks_exact_mut(pitch).zip(y.chunks_exact(g.y[2])) {
                to[..g.y[2]].copy_from_slice(from);
            }
            let (grid, places) = (&grid, &places[..]);
            let lines = if padded == 0 { y } else { &lines[..] };
            for (c, w) in w.chunks_exact_mut(k).enumerate() {
                let x = &src[c * grid.len()..][..grid.len() + SLACK];
                dispatch(Dots { grid, x, places, y, lines, size: g.y, w });
            }
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}
