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
use crate::error::Result;
use crate::loops::parallel::{self, SendPtr};
use crate::nn::{for_each_chunk, lanes};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Multiply-adds below which threads cost more than they save.
const MIN_PARALLEL: usize = 1 << 18;
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

    /// A plane on the grid, with zeros elsewhere.
    fn spread<T: Float>(&self, plane: &[T], n: [usize; 3], p: [usize; 3], out: &mut [T]) {
        out.fill(T::ZERO);
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
fn windows(g: &Geometry) -> (Grid, Vec<usize>) {
    let size =
        |i: usize| ((g.y[i] - 1) * g.stride[i] + (g.k[i] - 1) * g.dilation[i]) / g.stride[i] + 1;
    let grid = Grid { s: g.stride, size: std::array::from_fn(size) };
    let places = elements(g).map(|k| grid.place(std::array::from_fn(|i| k[i] * g.dilation[i])));
    let places = places.collect();
    (grid, places)
}

/// The elements of a window, in order.
fn elements(g: &Geometry) -> impl Iterator<Item = [usize; 3]> + use<> {
    let [kd, kh, kw] = g.k;
    (0..kd * kh * kw).map(move |k| [k / (kh * kw), k / kw % kh, k % kw])
}

/// `outᵢ = init + Σ w·src[offset + i]` over the taps (offset, w), rounded up to whole blocks.
struct Sum<'a, T> {
    src: &'a [T],
    taps: &'a [(usize, T)],
    init: T,
    out: &'a mut [T],
}

impl<T: Float> Sum<'_, T> {
    #[inline(always)]
    fn blocks<const B: usize>(self) {
        let Self { src, taps, init, out } = self;
        let end = src.len().checked_sub(out.len());
        assert!(taps.iter().all(|&(offset, _)| end.is_some_and(|end| offset <= end)));
        for (i, out) in out.chunks_exact_mut(B).enumerate() {
            let mut acc = [init; B];
            for &(offset, w) in taps {
                // SAFETY: every tap has as many elements after it as there are results: checked
                // above.
                let x = unsafe { src.get_unchecked(offset + i * B..offset + (i + 1) * B) };
                for (acc, &x) in acc.iter_mut().zip(x) {
                    *acc = w.mul_add(x, *acc);
                }
            }
            out.copy_from_slice(&acc);
        }
    }
}

impl<T: Float> Loop for Sum<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
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

/// Zeros, with room for the blocks of a run past the end.
fn scratch<T: Float>(len: usize) -> Result<Tensor<T>> {
    Tensor::zeros(&[len.saturating_add(SLACK)])
}

/// Results of a run, and room for its last block.
fn blocks(len: usize) -> usize {
    len.next_multiple_of(SLACK)
}

fn worthwhile(g: &Geometry) -> bool {
    g.work() >= MIN_PARALLEL && parallel::threads() > 1
}

/// The convolution, plus a bias per channel.
pub(super) fn forward<T: Float>(
    x: &Tensor<T>,
    weight: &Tensor<T>,
    bias: Option<&Tensor<T>>,
    g: &Geometry,
) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g);
    let bias = bias.map(Tensor::to_vec).transpose()?;
    let (xs, ws) = (x.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let mut out = Output::<T>::new("conv", &g.y_shape())?;
    let dst = SendPtr(out.as_mut_ptr());
    let run = grid.linear(g.y.map(|n| n - 1)) + 1;
    // One task per image and group: x is spread once for all of its channels of y.
    for_each_chunk(g.n * g.groups, worthwhile(g), &|task| {
        let group = task % g.groups;
        let (mut src, mut sums) = (scratch::<T>(g.c * grid.len())?, scratch::<T>(blocks(run))?);
        let (src, sums) = (src.as_mut_slice()?, &mut sums.as_mut_slice()?[..blocks(run)]);
        for c in 0..g.c {
            let plane = &xs[(task * g.c + c) * x_plane..][..x_plane];
            grid.spread(plane, g.x, g.padding, &mut src[c * grid.len()..(c + 1) * grid.len()]);
        }
        for o in 0..g.o {
            let channel = group * g.o + o;
            let tap = |(i, &w): (usize, &T)| (i / k * grid.len() + places[i % k], w);
            let taps: Vec<_> =
                ws[channel * g.c * k..][..g.c * k].iter().enumerate().map(tap).collect();
            let init = bias.as_ref().map_or(T::ZERO, |bias| bias[channel]);
            dispatch(Sum { src, taps: &taps, init, out: sums });
            for line in 0..y_plane / g.y[2] {
                let from = grid.linear([line / g.y[1], line % g.y[1], 0]);
                let to = (task * g.o + o) * y_plane + line * g.y[2];
                // SAFETY: the line lies inside of the plane; tasks write disjoint planes.
                unsafe {
                    let to = dst.get().add(to);
                    std::ptr::copy_nonoverlapping(sums[from..from + g.y[2]].as_ptr(), to, g.y[2]);
                }
            }
        }
        Ok(())
    })?;
    // SAFETY: every line of every plane was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(Path::Fused)))
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
    // Per phase of x: the window elements that reach it, and where they read y.
    let mut reads = vec![Vec::new(); phases];
    for (i, k) in elements(g).enumerate() {
        let at = from.linear(std::array::from_fn(|i| most[i] - moved(i, k[i])));
        reads[phase(k)].push((i, at));
    }
    let bias = bias.map(Tensor::to_vec).transpose()?;
    let (ys, ws) = (y.as_slice().unwrap_or_default(), weight.as_slice().unwrap_or_default());
    let mut out = Output::<T>::new("conv", &g.x_shape())?;
    let dst = SendPtr(out.as_mut_ptr());
    let run = from.linear(reach.map(|n| n - 1)) + 1;
    for_each_chunk(g.n * g.groups, worthwhile(g), &|task| {
        let group = task % g.groups;
        let (mut src, mut sums) = (scratch::<T>(g.o * from.len())?, scratch::<T>(to.len())?);
        let (src, sums) = (src.as_mut_slice()?, sums.as_mut_slice()?);
        for o in 0..g.o {
            let plane = &ys[(task * g.o + o) * y_plane..][..y_plane];
            from.spread(plane, g.y, most, &mut src[o * from.len()..(o + 1) * from.len()]);
        }
        for c in 0..g.c {
            let init = bias.as_ref().map_or(T::ZERO, |bias| bias[group * g.c + c]);
            for (phase, reads) in reads.iter().enumerate() {
                let mut taps = Vec::with_capacity(g.o * reads.len());
                for o in 0..g.o {
                    let ws = &ws[((group * g.o + o) * g.c + c) * k..][..k];
                    taps.extend(reads.iter().map(|&(i, at)| (o * from.len() + at, ws[i])));
                }
                // The last block may reach into the next phase, which comes later.
                let begin = phase * to.volume();
                let out = &mut sums[begin..begin + blocks(run)];
                dispatch(Sum { src, taps: &taps, init, out });
            }
            let plane = dst.get().wrapping_add((task * g.c + c) * x_plane);
            to.for_each_run(g.x, g.padding, |at, place, len| {
                for (i, &v) in sums[place..place + len].iter().enumerate() {
                    // SAFETY: an element of the plane; tasks write disjoint planes.
                    unsafe { plane.add(at + i * g.stride[2]).write(v) };
                }
            });
        }
        Ok(())
    })?;
    // SAFETY: every element of every plane is on the grid, so it was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(Path::Fused)))
}

/// The weight, summed over images in order.
pub(super) fn weight<T: Float>(x: &Tensor<T>, y: &Tensor<T>, g: &Geometry) -> Result<Tensor<T>> {
    let [x_plane, k, y_plane] = g.planes();
    let (grid, places) = windows(g);
    let (xs, ys) = (x.as_slice().unwrap_or_default(), y.as_slice().unwrap_or_default());
    let mut w = Tensor::<T>::zeros(&g.w_shape())?;
    let dst = SendPtr(w.as_mut_slice()?.as_mut_ptr());
    for_each_chunk(g.groups * g.o * g.c, worthwhile(g), &|task| {
        let (o, c) = (task / g.c, task % g.c);
        let mut src = scratch::<T>(grid.len())?;
        let src = src.as_mut_slice()?;
        // SAFETY: tasks write disjoint windows.
        let w = unsafe { std::slice::from_raw_parts_mut(dst.get().add(task * k), k) };
        for image in 0..g.n {
            let from = (image * g.groups + o / g.o) * g.c + c;
            let plane = &xs[from * x_plane..][..x_plane];
            grid.spread(plane, g.x, g.padding, &mut src[..grid.len()]);
            let y = &ys[(image * g.groups * g.o + o) * y_plane..][..y_plane];
            dispatch(Dots { grid: &grid, x: src, places: &places, y, size: g.y, w });
        }
        Ok(())
    })?;
    Ok(w.with_route(Route::native(Path::Fused)))
}
