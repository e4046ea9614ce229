//! Planes on a grid on which windows are shifted copies.
//!
//! x, padded with zeros, is split by the residues of its positions modulo the stride:
//!
//! ```text
//! y[t] = Σ_k w[k]·x̃[t·s + k·d]        phase r of x̃ at m:  x̃[m·s + r]
//! ```
//!
//! so that one window element reads one phase, shifted by a constant.
//!
//! With stride 1 the zeros after a line are those before the next one ([`Geometry::shared`]), also of the next plane;
//! [`PAST`] zeros follow the last plane.

use t4a_algebra::Float;

use super::geometry::{Geometry, MOST_SHARED};
use super::sums::SLACK;
use crate::error::Result;
use crate::storage::collect;

/// Elements past the end of the last plane that the last block of a run may read.
pub(super) const PAST: usize = SLACK + MOST_SHARED;

/// Positions of a plane split into phases, each a dense volume of the same size.
#[derive(Clone, Copy)]
pub(super) struct PhaseGrid {
    pub(super) s: [usize; 3],
    pub(super) size: [usize; 3],
}

impl PhaseGrid {
    pub(super) fn volume(&self) -> usize {
        self.size.iter().product()
    }

    pub(super) fn len(&self) -> usize {
        self.volume() * self.s.iter().product::<usize>()
    }

    /// Within a phase.
    pub(super) fn linear(&self, [d, h, w]: [usize; 3]) -> usize {
        (d * self.size[1] + h) * self.size[2] + w
    }

    /// Of a position.
    pub(super) fn place(&self, u: [usize; 3]) -> usize {
        if self.s == [1; 3] {
            return self.linear(u);
        }
        let phase = (0..3).fold(0, |phase, i| phase * self.s[i] + u[i] % self.s[i]);
        phase * self.volume() + self.linear(std::array::from_fn(|i| u[i] / self.s[i]))
    }

    /// Calls `body(from, place, len)` for every run of a plane of size `n` whose position 0 is position `p` of the
    /// grid: elements `from`, `from + s`, … of the plane are contiguous on the grid, starting at `place`. Positions
    /// outside the grid are skipped.
    pub(super) fn for_each_run(
        &self,
        n: [usize; 3],
        p: [usize; 3],
        mut body: impl FnMut(usize, usize, usize),
    ) {
        let inside = |axis: usize, i: usize| i + p[axis] < self.size[axis] * self.s[axis];
        let step = self.s[2];
        for d in (0..n[0]).take_while(|&d| inside(0, d)) {
            for h in (0..n[1]).take_while(|&h| inside(1, h)) {
                let line = (d * n[1] + h) * n[2];
                for first in (0..step.min(n[2])).take_while(|&first| inside(2, first)) {
                    let place = self.place([d + p[0], h + p[1], first + p[2]]);
                    let (room, len) = match step {
                        1 => (self.size[2] - p[2], n[2]),
                        _ => (self.size[2] - (first + p[2]) / step, (n[2] - first).div_ceil(step)),
                    };
                    body(line + first, place, len.min(room));
                }
            }
        }
    }

    /// Writes planes of size `n` to consecutive grids.
    pub(super) fn spread<'p, T: Float>(
        &self,
        planes: impl Iterator<Item = &'p [T]>,
        n: [usize; 3],
        p: [usize; 3],
        out: &mut [T],
    ) {
        let step = self.s[2];
        if self.s == [1; 3] {
            let [depth, height, len] =
                std::array::from_fn(|i| n[i].min(self.size[i].saturating_sub(p[i])));
            if len == 0 {
                return;
            }
            for (plane, out) in planes.zip(out.chunks_exact_mut(self.len())) {
                for d in 0..depth {
                    let lines = plane[d * n[1] * n[2]..].chunks_exact(n[2]).take(height);
                    let grid = out[self.linear([d + p[0], 0, 0])..].chunks_exact_mut(self.size[2]);
                    for (line, out) in lines.zip(grid.skip(p[1])) {
                        copy_line(&mut out[p[2]..][..len], &line[..len]);
                    }
                }
            }
            return;
        }
        for (plane, out) in planes.zip(out.chunks_exact_mut(self.len())) {
            self.for_each_run(n, p, |from, place, len| {
                let out = &mut out[place..place + len];
                if step == 1 {
                    copy_line(out, &plane[from..from + len]);
                } else {
                    for (out, &x) in out.iter_mut().zip(plane[from..].iter().step_by(step)) {
                        *out = x;
                    }
                }
            });
        }
    }
}

/// Copies a line of equal length. One of 16 to 64 elements is copied in two or four parts of 16, which may overlap: for 56
/// elements of `f32` in 2.9 instead of 4.5 ns (Zen 5).
#[inline(always)]
fn copy_line<T: Copy>(to: &mut [T], from: &[T]) {
    const PART: usize = 16;
    let len = from.len();
    assert_eq!(to.len(), len);
    if !(PART..=4 * PART).contains(&len) {
        return to.copy_from_slice(from);
    }
    let mut part = |at: usize| to[at..at + PART].copy_from_slice(&from[at..at + PART]);
    part(0);
    if len > 2 * PART {
        part(PART);
        part(len - 2 * PART);
    }
    part(len - PART);
}

/// The grid of a padded x, and the offset of every window element on it.
pub(super) fn windows(g: &Geometry) -> Result<(PhaseGrid, Vec<usize>)> {
    let mut size = std::array::from_fn(|i| g.on_grid(i));
    size[2] -= g.shared();
    let grid = PhaseGrid { s: g.stride, size };
    Ok((grid, places(g, &grid)?))
}

/// The offset of every window element on a grid.
pub(super) fn places(g: &Geometry, grid: &PhaseGrid) -> Result<Vec<usize>> {
    let places = elements(g).map(|k| grid.place(std::array::from_fn(|i| k[i] * g.dilation[i])));
    collect("conv", g.planes()[1], places)
}

/// The elements of a window, in order.
pub(super) fn elements(g: &Geometry) -> impl Iterator<Item = [usize; 3]> + use<> {
    let [kd, kh, kw] = g.k;
    (0..kd * kh * kw).map(move |k| [k / (kh * kw), k / kw % kh, k % kw])
}

/// Offset of every block of `block` positions in the lines of y, which are padded to `pitch` positions.
pub(super) fn starts(
    g: &Geometry,
    grid: &PhaseGrid,
    pitch: usize,
    block: usize,
) -> Result<Vec<usize>> {
    let height = g.y[0] * g.y[1];
    let line = move |i: usize| (0..pitch).step_by(block).map(move |w| (i, w));
    let at = |(i, w): (usize, usize)| grid.linear([i / g.y[1], i % g.y[1], w]);
    collect("conv", height * pitch / block, (0..height).flat_map(line).map(at))
}

/// Offset of every window element of `channels` channels with consecutive grids.
pub(super) fn taps(channels: usize, grid: &PhaseGrid, places: &[usize]) -> Result<Vec<usize>> {
    let of = |channel: usize| places.iter().map(move |place| channel * grid.len() + place);
    collect("conv", channels * places.len(), (0..channels).flat_map(of))
}
