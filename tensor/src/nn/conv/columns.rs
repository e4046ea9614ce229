//! Tiles of the matrix of windows `X̃[(c, k), t]`: rows are window elements, columns a range of
//! positions.

use std::ops::Range;

use t4a_algebra::Float;

use super::geometry::Geometry;
use crate::output::{Fresh, Full};

/// Calls `body(len, valid, at)` for every run of adjacent positions within one line of y, in the order of a row-major
/// tile: `valid` is the range of the `len` positions inside x, and `at` the offset of its first element in the planes
/// of x.
#[inline(always)]
fn for_each_line(
    g: &Geometry,
    channels: usize,
    positions: Range<usize>,
    mut body: impl FnMut(usize, Range<usize>, usize),
) {
    let [x_plane, ..] = g.planes();
    let width = g.y[2];
    let (line, first_w) = (positions.start / width, positions.start % width);
    let (first_d, first_h) = (line / g.y[1], line % g.y[1]);
    for c in 0..channels {
        for kd in 0..g.k[0] {
            let (d_lo, d_hi, d_at) = g.inside(0, kd);
            for kh in 0..g.k[1] {
                let (h_lo, h_hi, h_at) = g.inside(1, kh);
                for kw in 0..g.k[2] {
                    let (w_lo, w_hi, w_at) = g.inside(2, kw);
                    // Counted and not divided: lines of small images are short.
                    let (mut d, mut h, mut w) = (first_d, first_h, first_w);
                    let mut left = positions.len();
                    while left > 0 {
                        let len = (width - w).min(left);
                        let lo = w_lo.clamp(w, w + len);
                        let hi = w_hi.clamp(lo, w + len);
                        let inside = d >= d_lo && d < d_hi && h >= h_lo && h < h_hi && lo < hi;
                        let (valid, at) = if inside {
                            let place = |i: usize, axis: usize, at: isize| {
                                ((i * g.stride[axis]) as isize + at) as usize
                            };
                            let (z, y) = (place(d, 0, d_at), place(h, 1, h_at));
                            let at = (z * g.x[1] + y) * g.x[2] + place(lo, 2, w_at);
                            (lo - w..hi - w, c * x_plane + at)
                        } else {
                            (0..0, 0)
                        };
                        body(len, valid, at);
                        left -= len;
                        (h, w) = (h + 1, 0);
                        if h == g.y[1] {
                            (d, h) = (d + 1, 0);
                        }
                    }
                }
            }
        }
    }
}

/// Fills a tile, row-major with `positions.len()` columns, from the planes `x` of its channels.
pub(super) fn gather<'o, T: Float>(
    g: &Geometry,
    x: &[T],
    channels: usize,
    positions: Range<usize>,
    tile: Fresh<'o, T>,
) -> Full<'o, T> {
    let stride = g.stride[2];
    let mut tile = tile.cursor();
    for_each_line(g, channels, positions, |len, valid, at| {
        let count = valid.len();
        let line = tile.next(len).framed(valid, T::ZERO, |line| match stride {
            1 => line.copy_from(&x[at..][..count]),
            2 => {
                let (pairs, last) = x[at..].as_chunks::<2>();
                let mut line = line.cursor();
                let firsts = line.next(count.min(pairs.len()));
                line.done(firsts.extend(pairs.iter().map(|pair| pair[0])));
                last.iter().take(count.saturating_sub(pairs.len())).for_each(|&x| line.push(x));
                line.finish()
            }
            stride => line.extend(x[at..].iter().copied().step_by(stride)),
        });
        tile.done(line);
    });
    tile.finish()
}

/// Adds a tile to the planes `x` of its channels, with each element added at the position from which [`gather`] reads
/// it.
pub(super) fn scatter_add<T: Float>(
    g: &Geometry,
    x: &mut [T],
    channels: usize,
    positions: Range<usize>,
    tile: &[T],
) {
    let stride = g.stride[2];
    let mut tile = tile;
    for_each_line(g, channels, positions, |len, valid, at| {
        let (run, rest) = tile.split_at(len);
        tile = rest;
        let run = &run[valid];
        let add = |(x, &v): (&mut T, &T)| *x = x.add(v);
        match stride {
            1 => x[at..][..run.len()].iter_mut().zip(run).for_each(add),
            2 => {
                let (pairs, last) = x[at..].as_chunks_mut::<2>();
                let firsts = pairs.iter_mut().map(|pair| &mut pair[0]).chain(last);
                firsts.zip(run).for_each(add);
            }
            _ => x[at..].iter_mut().step_by(stride).zip(run).for_each(add),
        }
    });
}
