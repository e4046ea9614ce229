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
use super::grid::{Grid, elements, windows};
use super::sums::{
    CHANNELS, Dots, DotsTogether, SLACK, Sum, abreast, blocks, ranges, together, vector,
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

/// `w(tap, channel)` of every group in the order in which [`Sum`] reads them.
fn packed<T: Float>(
    g: &Geometry,
    taps: usize,
    channels: usize,
    w: impl Fn(usize, usize, usize) -> T,
) -> Result<Vec<T>> {
    let mut out = collect(g.groups * taps * channels, std::iter::empty())?;
    for group in 0..g.groups {
        for range in ranges(channels) {
            for tap in 0..taps {
                out.extend(range.clone().map(|channel| w(group, tap, channel)));
            }
        }
    }
    Ok(out)
}

/// What sums of some channels of a group begin with.
fn begun<T: Float>(bias: Option<&[T]>, first: usize, channels: &Range<usize>) -> [T; CHANNELS] {
    let mut init = [T::ZERO; CHANNELS];
    if let Some(bias) = bias {
        init[..channels.len()].copy_from_slice(&bias[first..][channels.clone()]);
    }
    init
}

/// The convolution, plus a bias per channel.
pub(super) fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let (xs, ws) = (x.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let run = grid.linear(g.y.map(|n| n - 1)) + 1;
    let taps = g.c * k;
    let offsets = collect(taps, (0..taps).map(|i| i / k * grid.len() + places[i % k]))?;
    let ws = packed(g, taps, g.o, |group, tap, o| ws[(group * g.o + o) * taps + tap])?;
    let out = Output::<T>::new("conv", &g.y_shape())?.try_write(|y| {
        // One task per image and group: x is spread once for all of its channels of y.
        share(y.parts(g.o * y_plane), 1, worthwhile(g), |task, y| {
            let group = task % g.groups;
            let mut src = Filled::new(g.c * grid.len() + SLACK, T::ZERO)?;
            let pitch = blocks(run, 1);
            let mut sums = Filled::new(together(g.o) * pitch, T::ZERO)?;
            let planes = &xs[task * g.c * x_plane..][..g.c * x_plane];
            grid.spread(planes, g.x, g.padding, &mut src);
            let mut lines = y.cursor();
            for range in ranges(g.o) {
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
                    for d in 0..g.y[0] {
                        for h in 0..g.y[1] {
                            let from = r * pitch + grid.linear([d, h, 0]);
                            lines.copy_from(&sums[from..][..g.y[2]]);
                        }
                    }
                }
            }
            Ok(lines.finish())
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
    let ws = packed(g, taps, g.c, |group, tap, c| {
        let (o, i) = (order[tap].0 / k, order[tap].0 % k);
        ws[((group * g.o + o) * g.c + c) * k + i]
    })?;
    let out = Output::<T>::new("conv", &g.x_shape())?.try_write(|x| {
        share(x.parts(g.c * x_plane), 1, worthwhile(g), |task, x| {
            let group = task % g.groups;
            let mut src = Filled::new(g.o * from.len() + SLACK, T::ZERO)?;
            let pitch = to.len() + SLACK;
            let mut sums = Filled::new(together(g.c) * pitch, T::ZERO)?;
            let planes = &ys[task * g.o * y_plane..][..g.o * y_plane];
            from.spread(planes, g.y, reads.most, &mut src);
            let mut planes = x.cursor();
            for range in ranges(g.c) {
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

/// The weight, summed over images in order.
pub(super) fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    // Some channels of y each.
    let at_once = if g.is_thin() { 1 } else { CHANNELS };
    let blocks = g.o / at_once;
    let vectors = (0..y_plane).step_by(vector::<T>()).map(|t| {
        let (line, w) = (t / g.y[2], t % g.y[2]);
        grid.linear([line / g.y[1], line % g.y[1], w])
    });
    let starts = collect(y_plane, vectors)?;
    // Lines of y for channels one by one.
    let pitch = g.y[2].next_multiple_of(abreast::<T>(g.y[2]));
    let padded = if at_once == 1 && pitch > g.y[2] { y_plane / g.y[2] * pitch } else { 0 };
    let parts = parts_mut(w.as_mut_slice()?, g.groups * blocks);
    share(parts, 1, worthwhile(g), |task, w| {
        let (group, from) = (task / blocks, task % blocks * at_once);
        let mut src = Filled::new(g.c * grid.len() + SLACK, T::ZERO)?;
        let mut lines = Filled::new(padded, T::ZERO)?;
        for image in 0..g.n {
            let image = image * g.groups + group;
            let planes = &xs[image * g.c * x_plane..][..g.c * x_plane];
            grid.spread(planes, g.x, g.padding, &mut src);
            let y = &ys[(image * g.o + from) * y_plane..][..at_once * y_plane];
            if padded > 0 {
                for (to, from) in lines.chunks_exact_mut(pitch).zip(y.chunks_exact(g.y[2])) {
                    to[..g.y[2]].copy_from_slice(from);
                }
            }
            let (grid, places) = (&grid, &places[..]);
            if at_once == CHANNELS {
                let (x, starts, w) = (&src[..], &starts[..], &mut *w);
                dispatch(DotsTogether { grid, x, places, starts, y, w });
                continue;
            }
            // A line of whole blocks is one already.
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
