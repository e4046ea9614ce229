//! Convolutions with very few channels per group, as sums of shifted copies.
//!
//! With one channel a matrix product would read every window element once per product. Here x,
//! padded with zeros, is split by the residues of its positions modulo the stride:
//!
//! ```text
//! y[t] = Σ_k w[k]·x̃[t·s + k·d]        phase r of x̃ at m:  x̃[m·s + r]
//! ```
//!
//! so that one window element reads one phase, shifted by a constant. With t on the pitch of a
//! phase the whole plane is a single long run, without edges; what lies between its lines is
//! computed and not used. The adjoint is the same sum over shifted copies of y, once per phase.

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::geometry::Geometry;
use crate::copy::row_major;
use crate::error::Result;
use crate::loops::parallel;
use crate::nn::lanes;
use crate::output::{Filled, Fresh, Full, Output, Workspace, parts_mut, share};
use crate::route::{Path, Route};
use crate::storage::collect;
use crate::tensor::Tensor;

/// Elements past the end of scratch that the last block of a run may touch.
const SLACK: usize = 32;

/// Positions of a plane split into phases, each a dense volume of the same size.
#[derive(Clone, Copy)]
struct Grid {
    s: [usize; 3],
    size: [usize; 3],
}

impl Grid {
    fn volume(&self) -> usize {
        self.size.iter().product()
    }

    fn len(&self) -> usize {
        self.volume() * self.s.iter().product::<usize>()
    }

    /// Within a phase.
    fn linear(&self, [d, h, w]: [usize; 3]) -> usize {
        (d * self.size[1] + h) * self.size[2] + w
    }

    /// Of a position.
    fn place(&self, u: [usize; 3]) -> usize {
        let phase = (0..3).fold(0, |phase, i| phase * self.s[i] + u[i] % self.s[i]);
        phase * self.volume() + self.linear(std::array::from_fn(|i| u[i] / self.s[i]))
    }

    /// Calls `body(from, place, len)` for every run of a plane of size `n` whose position 0 is
    /// position `p` of the grid: elements `from`, `from + s`, … of the plane are neighbours from
    /// `place` on. Positions outside of the grid are left out.
    fn for_each_run(
        &self,
        n: [usize; 3],
        p: [usize; 3],
        mut body: impl FnMut(usize, usize, usize),
    ) {
        let inside = |axis: usize, i: usize| (i + p[axis]) / self.s[axis] < self.size[axis];
        let step = self.s[2];
        for d in (0..n[0]).take_while(|&d| inside(0, d)) {
            for h in (0..n[1]).take_while(|&h| inside(1, h)) {
                let line = (d * n[1] + h) * n[2];
                for first in (0..step.min(n[2])).take_while(|&first| inside(2, first)) {
                    let place = self.place([d + p[0], h + p[1], first + p[2]]);
                    let room = self.size[2] - (first + p[2]) / step;
                    body(line + first, place, (n[2] - first).div_ceil(step).min(room));
                }
            }
        }
    }

    /// Writes a plane on the grid.
    fn spread<T: Float>(&self, plane: &[T], n: [usize; 3], p: [usize; 3], out: &mut [T]) {
        let step = self.s[2];
        self.for_each_run(n, p, |from, place, len| {
            let out = &mut out[place..place + len];
            if step == 1 {
                out.copy_from_slice(&plane[from..from + len]);
            } else {
                for (out, &x) in out.iter_mut().zip(plane[from..].iter().step_by(step)) {
                    *out = x;
                }
            }
        });
    }
}

/// The grid of a padded x, and the place of every window element on it.
fn windows(g: &Geometry) -> Result<(Grid, Vec<usize>)> {
    let size =
        |i: usize| ((g.y[i] - 1) * g.stride[i] + (g.k[i] - 1) * g.dilation[i]) / g.stride[i] + 1;
    let grid = Grid { s: g.stride, size: std::array::from_fn(size) };
    let places = elements(g).map(|k| grid.place(std::array::from_fn(|i| k[i] * g.dilation[i])));
    let places = collect(g.planes()[1], places)?;
    Ok((grid, places))
}

/// The elements of a window, in order.
fn elements(g: &Geometry) -> impl Iterator<Item = [usize; 3]> + use<> {
    let [kd, kh, kw] = g.k;
    (0..kd * kh * kw).map(move |k| [k / (kh * kw), k / kw % kh, k % kw])
}

/// `outᵢ = init + Σ w·src[offset + i]` over the taps (offset, w), of whole blocks.
struct Sum<'a, 'o, T> {
    src: &'a [T],
    taps: &'a [(usize, T)],
    init: T,
    out: Fresh<'o, T>,
}

impl<'o, T: Float> Sum<'_, 'o, T> {
    #[inline(always)]
    fn blocks<const B: usize>(self) -> Full<'o, T> {
        let Self { src, taps, init, out } = self;
        let count = out.len() / B;
        let mut blocks = out.cursor();
        for i in 0..count {
            let mut acc = [init; B];
            for &(offset, w) in taps {
                let x = &src[offset + i * B..][..B];
                for (acc, &x) in acc.iter_mut().zip(x) {
                    *acc = w.mul_add(x, *acc);
                }
            }
            blocks.copy_from(&acc);
        }
        blocks.finish()
    }
}

impl<'o, T: Float> Loop for Sum<'_, 'o, T> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        // Four 256-bit registers.
        if size_of::<T>() <= 4 { self.blocks::<32>() } else { self.blocks::<16>() }
    }
}

/// `wₖ ← wₖ + Σ_t x̃[place_k + t]·y[t]` over the lines of y.
struct Dots<'a, T> {
    grid: &'a Grid,
    x: &'a [T],
    places: &'a [usize],
    y: &'a [T],
    size: [usize; 3],
    w: &'a mut [T],
}

impl<T: Float> Dots<'_, T> {
    /// `G` window elements at a time, `B` positions side by side.
    #[inline(always)]
    fn group<const G: usize, const B: usize>(&mut self, from: usize) {
        let mut acc = [[T::ZERO; B]; G];
        let width = self.size[2];
        for (i, line) in self.y.chunks_exact(width).enumerate() {
            let start = self.grid.linear([i / self.size[1], i % self.size[1], 0]);
            let (blocks, tail) = line.as_chunks::<B>();
            for (j, y) in blocks.iter().enumerate() {
                for (acc, &place) in acc.iter_mut().zip(&self.places[from..from + G]) {
                    let at = place + start + j * B;
                    for ((acc, &x), &y) in acc.iter_mut().zip(&self.x[at..at + B]).zip(y) {
                        *acc = x.mul_add(y, *acc);
                    }
                }
            }
            if !tail.is_empty() {
                // Zeros on both sides: what lies past a line may be infinite.
                let mut y = [T::ZERO; B];
                y[..tail.len()].copy_from_slice(tail);
                for (acc, &place) in acc.iter_mut().zip(&self.places[from..from + G]) {
                    let at = place + start + width - tail.len();
                    let x = &self.x[at..at + B];
                    for (lane, ((acc, &x), &y)) in acc.iter_mut().zip(x).zip(&y).enumerate() {
                        let x = if lane < tail.len() { x } else { T::ZERO };
                        *acc = x.mul_add(y, *acc);
                    }
                }
            }
        }
        for (w, acc) in self.w[from..from + G].iter_mut().zip(&acc) {
            *w = w.add(lanes::sum(acc, |x| x));
        }
    }

    #[inline(always)]
    fn all<const B: usize>(mut self) {
        let n = self.places.len();
        for from in (0..n / 4 * 4).step_by(4) {
            self.group::<4, B>(from);
        }
        for from in n / 4 * 4..n {
            self.group::<1, B>(from);
        }
    }
}

impl<T: Float> Loop for Dots<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if size_of::<T>() <= 4 { self.all::<16>() } else { self.all::<8>() }
    }
}

/// Results of a run, and room for its last block.
fn blocks(len: usize) -> usize {
    len.next_multiple_of(SLACK)
}

fn worthwhile(g: &Geometry) -> bool {
    parallel::worthwhile_narrow_steps(g.work())
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
    let out = Output::<T>::new("conv", &g.y_shape())?.try_write(|y| {
        // One task per image and group: x is spread once for all of its channels of y.
        share(y.parts(g.o * y_plane), 1, worthwhile(g), |task, y| {
            let group = task % g.groups;
            let mut src = Filled::new(g.c * grid.len() + SLACK, T::ZERO)?;
            let mut sums = Workspace::new(blocks(run))?;
            for c in 0..g.c {
                let plane = &xs[(task * g.c + c) * x_plane..][..x_plane];
                grid.spread(plane, g.x, g.padding, &mut src[c * grid.len()..][..grid.len()]);
            }
            let mut lines = y.cursor();
            for o in 0..g.o {
                let channel = group * g.o + o;
                let tap = |(i, &w): (usize, &T)| (i / k * grid.len() + places[i % k], w);
                let ws = &ws[channel * g.c * k..][..g.c * k];
                let taps = collect(ws.len(), ws.iter().enumerate().map(tap))?;
                let init = bias.map_or(T::ZERO, |bias| bias[channel]);
                let out = sums.fresh(blocks(run));
                let sums = dispatch(Sum { src: &src, taps: &taps, init, out });
                for line in 0..y_plane / g.y[2] {
                    let from = grid.linear([line / g.y[1], line % g.y[1], 0]);
                    lines.copy_from(&sums[from..][..g.y[2]]);
                }
            }
            Ok(lines.finish())
        })
    })?;
    Ok(out.with_route(Route::native(Path::Fused)))
}

/// The adjoint, plus a bias per channel.
pub(super) fn adjoint<T: Float>(
    weight: &Tensor<T>,
    y: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    // Window element k moves y by q_k = k·d div s within phase k·d mod s.
    let moved = |i: usize, k: usize| k * g.dilation[i] / g.stride[i];
    let most: [usize; 3] = std::array::from_fn(|i| moved(i, g.k[i] - 1));
    let reach: [usize; 3] = std::array::from_fn(|i| (g.x[i] - 1 + g.padding[i]) / g.stride[i] + 1);
    let size = std::array::from_fn(|i| reach[i] + most[i]);
    let from = Grid { s: [1; 3], size };
    let to = Grid { s: g.stride, size };
    let phases: usize = g.stride.iter().product();
    let phase = |k: [usize; 3]| {
        (0..3).fold(0, |phase, i| phase * g.stride[i] + k[i] * g.dilation[i] % g.stride[i])
    };
    // The window elements by the phases of x that they reach, and where they read y.
    let read = |(i, k): (usize, [usize; 3])| {
        let at = from.linear(std::array::from_fn(|i: usize| most[i] - moved(i, k[i])));
        (phase(k), i, at)
    };
    let mut reads: Vec<(usize, usize, usize)> = collect(k, elements(g).enumerate().map(read))?;
    reads.sort_unstable();
    let bias = bias.map(row_major).transpose()?;
    let bias = bias.as_ref().and_then(Tensor::as_slice);
    let (ys, ws) = (y.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let run = from.linear(reach.map(|n| n - 1)) + 1;
    let out = Output::<T>::new("conv", &g.x_shape())?.try_write(|x| {
        share(x.parts(g.c * x_plane), 1, worthwhile(g), |task, x| {
            let group = task % g.groups;
            let mut src = Filled::new(g.o * from.len() + SLACK, T::ZERO)?;
            let mut sums = Filled::new(to.len() + SLACK, T::ZERO)?;
            let mut taps: Vec<(usize, T)> = collect(g.o * k, std::iter::empty())?;
            for o in 0..g.o {
                let plane = &ys[(task * g.o + o) * y_plane..][..y_plane];
                from.spread(plane, g.y, most, &mut src[o * from.len()..][..from.len()]);
            }
            let mut planes = x.cursor();
            for c in 0..g.c {
                let init = bias.map_or(T::ZERO, |bias| bias[group * g.c + c]);
                let mut reads = reads.as_slice();
                for phase in 0..phases {
                    let (own, others) = reads.split_at(reads.partition_point(|r| r.0 == phase));
                    reads = others;
                    taps.clear();
                    for o in 0..g.o {
                        let ws = &ws[((group * g.o + o) * g.c + c) * k..][..k];
                        taps.extend(own.iter().map(|&(_, i, at)| (o * from.len() + at, ws[i])));
                    }
                    // The last block may reach into the next phase, which comes later.
                    let out = Fresh::over(&mut sums[phase * to.volume()..][..blocks(run)]);
                    dispatch(Sum { src: &src, taps: &taps, init, out });
                }
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
                            for (x, &v) in plane[at..].iter_mut().step_by(g.stride[2]).zip(sums) {
                                *x = v;
                            }
                        });
                        planes.done(plane);
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
    let [x_plane, _, y_plane] = g.planes();
    let (grid, places) = windows(g)?;
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let tasks = g.groups * g.o * g.c;
    share(parts_mut(w.as_mut_slice()?, tasks), 1, worthwhile(g), |task, w| {
        let (o, c) = (task / g.c, task % g.c);
        let mut src = Filled::new(grid.len() + SLACK, T::ZERO)?;
        for image in 0..g.n {
            let from = (image * g.groups + o / g.o) * g.c + c;
            let plane = &xs[from * x_plane..][..x_plane];
            grid.spread(plane, g.x, g.padding, &mut src[..grid.len()]);
            let y = &ys[(image * g.groups * g.o + o) * y_plane..][..y_plane];
            dispatch(Dots { grid: &grid, x: &src, places: &places, y, size: g.y, w: &mut *w });
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}
