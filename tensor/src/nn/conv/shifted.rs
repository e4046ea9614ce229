//! Convolutions as sums of shifted copies, without a matrix of windows.
//!
//! With t on the pitch of a phase of the grid all lines of a strip form one long run without edges; elements between
//! the lines are computed and discarded. The adjoint is the same sum over shifted copies of y, with reversed windows
//! or, for strides other than 1, once per phase.

use std::ops::Range;

use t4a_algebra::Float;
use t4a_algebra::simd::{dispatch, dispatch_narrow};

use super::geometry::Geometry;
use super::grid::{self, PhaseGrid, elements};
use super::parts::{TASKS, in_a_row};
use super::strips::{Size, Strips};
use super::sums::{CHANNELS, LineSums, SLACK, ShiftedSum, WIDE, blocks, ranges};
use crate::copy::row_major;
use crate::error::Result;
use crate::loops::parallel;
use crate::output::{Filled, Output, share, share_with};
use crate::route::{Path, Route};
use crate::storage::collect;
use crate::tensor::Tensor;

pub(super) fn worthwhile(g: &Geometry) -> bool {
    parallel::worthwhile_narrow_steps(g.work())
}

/// `w(group, tap, channel)` of `channels` channels per group, in the access order of [`ShiftedSum`].
fn packed<T: Float>(
    groups: usize,
    taps: usize,
    channels: usize,
    most: usize,
    w: impl Fn(usize, usize, usize) -> T,
) -> Result<Vec<T>> {
    let mut out = collect("conv", groups * taps * channels, std::iter::empty())?;
    for group in 0..groups {
        for range in ranges(channels, most) {
            for tap in 0..taps {
                out.extend(range.clone().map(|channel| w(group, tap, channel)));
            }
        }
    }
    Ok(out)
}

/// Initial values of the sums of some channels of a group: the bias or 0.
fn begun<T: Float>(bias: Option<&[T]>, first: usize, channels: &Range<usize>) -> [T; WIDE] {
    let mut init = [T::ZERO; WIDE];
    if let Some(bias) = bias {
        init[..channels.len()].copy_from_slice(&bias[first..][channels.clone()]);
    }
    init
}

/// The convolution, plus a bias per channel, for `most` channels at a time.
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

/// Strips of a convolution: at least 16, if they have enough positions, with a source that fits in half of a 512 KiB L2
/// cache.
fn strips(g: &Geometry) -> Size {
    let positions = g.planes()[2];
    let shared = g.n.saturating_mul(g.groups).saturating_mul(positions).div_ceil(TASKS);
    Size { channels: g.c, bytes: 256 << 10, least: 128, most: shared }
}

/// Bytes of x that are read at a time.
pub(super) fn bytes<T>(g: &Geometry) -> usize {
    strips(g).on_grid::<T>(g)
}

/// A convolution with the weight `w(group, tap, channel)`; window elements of a channel of x are adjacent.
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
    let offsets = grid::taps(g.c, grid, places)?;
    let ws = packed(g.groups, taps, g.o, most, w)?;
    // Single channels are written in place.
    let together = ranges(g.o, most).next().map_or(0, |range| range.len() & !1);
    let out = Output::<T>::new("conv", &g.y_shape())?.try_write(|y| {
        // x is spread once for all channels of y.
        let parts = y.columns([g.o, y_plane], strips.positions());
        let scratch = || {
            let src = Filled::new(g.c * grid.len() + grid::PAST, T::ZERO)?;
            Ok((src, Filled::new(together * blocks(grid.volume(), 1), T::ZERO)?))
        };
        let grain = in_a_row(g.n * g.groups * strips.count());
        share_with(parts, grain, worthwhile(g), scratch, |(src, sums), task, mut y| {
            let (image, strip) = (task / strips.count(), strips.nth(task % strips.count()));
            let group = image % g.groups;
            let run = grid.linear(strip.y.map(|n| n - 1)) + 1;
            let pitch = blocks(run, 1);
            if strips.count() > 1 {
                // Strips are at different places of the grid; whole planes leave the zeros around them.
                src.fill(T::ZERO);
            }
            let planes = xs[image * g.c * x_plane..][..g.c * x_plane].chunks_exact(x_plane);
            let parts = planes.map(|plane| &plane[strip.x.clone()]);
            grid.spread(parts, strip.size, strip.at, src);
            for range in ranges(g.o, most) {
                let init = begun(bias, group * g.o, &range);
                let weights = &ws[(group * g.o + range.start) * taps..][..range.len() * taps];
                if range.len() == 1 {
                    let mut planes = y.next().cursor();
                    for d in 0..strip.y[0] {
                        let out = planes.next(strip.y[1] * strip.y[2]);
                        let plane = dispatch_narrow(LineSums {
                            src: &src[..],
                            offsets: &offsets,
                            weights,
                            init: init[0],
                            from: grid.linear([d, 0, 0]),
                            pitch: grid.size[2],
                            width: strip.y[2],
                            out,
                        });
                        planes.done(plane);
                    }
                    y.done(planes.finish());
                    continue;
                }
                dispatch(ShiftedSum {
                    src: &src[..],
                    offsets: &offsets,
                    weights,
                    init: &init[..range.len()],
                    run: blocks(run, range.len()),
                    pitch,
                    out: &mut sums[..],
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

/// Access pattern of the adjoint in y: for every phase of x its window elements, sorted by phase.
struct AdjointReads {
    from: PhaseGrid,
    to: PhaseGrid,
    /// Zeros before y.
    most: [usize; 3],
    /// Phase, window element and offset in a plane of y.
    all: Vec<(usize, usize, usize)>,
    run: usize,
}

impl AdjointReads {
    fn new(g: &Geometry) -> Result<Self> {
        let k = g.planes()[1];
        // Window element k shifts y by q_k = k·d div s within phase k·d mod s.
        let moved = |i: usize, k: usize| k * g.dilation[i] / g.stride[i];
        let most: [usize; 3] = std::array::from_fn(|i| moved(i, g.k[i] - 1));
        let reach: [usize; 3] =
            std::array::from_fn(|i| (g.x[i] - 1 + g.padding[i]) / g.stride[i] + 1);
        let size = std::array::from_fn(|i| reach[i] + most[i]);
        let from = PhaseGrid { s: [1; 3], size };
        let phase = |k: [usize; 3]| {
            (0..3).fold(0, |phase, i| phase * g.stride[i] + k[i] * g.dilation[i] % g.stride[i])
        };
        let read = |(i, k): (usize, [usize; 3])| {
            let at = from.linear(std::array::from_fn(|i: usize| most[i] - moved(i, k[i])));
            (phase(k), i, at)
        };
        let mut all: Vec<_> = collect("conv", k, elements(g).enumerate().map(read))?;
        all.sort_unstable();
        let run = from.linear(reach.map(|n| n - 1)) + 1;
        Ok(Self { from, to: PhaseGrid { s: g.stride, size }, most, all, run })
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
    let reads = AdjointReads::new(g)?;
    let (from, to) = (reads.from, reads.to);
    let phases: usize = g.stride.iter().product();
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let (ys, ws) = (y.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let taps = g.o * k;
    // Ordered by phase: window elements of a channel of y are adjacent.
    let mut order: Vec<(usize, usize)> = collect("conv", taps, std::iter::empty())?;
    for phase in 0..phases {
        let own = &reads.all[reads.of(phase)];
        order.extend(
            (0..g.o)
                .flat_map(|o| own.iter().map(move |&(_, i, at)| (o * k + i, o * from.len() + at))),
        );
    }
    let offsets: Vec<usize> = collect("conv", taps, order.iter().map(|&(_, at)| at))?;
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
                    // The last block may overlap the next phase, which is written later.
                    dispatch(ShiftedSum {
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
