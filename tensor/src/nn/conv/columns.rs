//! Tiles of the matrix of windows `X̃[(c, k), t]`: rows are window elements, columns a range of
//! positions.

use t4a_algebra::Float;

use super::geometry::Geometry;

/// Calls `body(row, columns, valid, at)` for every run of neighbouring positions within one line
/// of y: `columns` is where the run starts in the tile and how long it is, `valid` which part of
/// it lies inside of x, and `at` where the first valid position reads in x of this group.
#[inline(always)]
fn for_each_line(
    g: &Geometry,
    channels: std::ops::Range<usize>,
    positions: std::ops::Range<usize>,
    mut body: impl FnMut(usize, (usize, usize), (usize, usize), usize),
) {
    let [x_plane, ..] = g.planes();
    let width = g.y[2];
    let mut row = 0;
    for c in channels {
        for kd in 0..g.k[0] {
            let (d_lo, d_hi, d_at) = g.inside(0, kd);
            for kh in 0..g.k[1] {
                let (h_lo, h_hi, h_at) = g.inside(1, kh);
                for kw in 0..g.k[2] {
                    let (w_lo, w_hi, w_at) = g.inside(2, kw);
                    let mut t = positions.start;
                    while t < positions.end {
                        let (line, w) = (t / width, t % width);
                        let (d, h) = (line / g.y[1], line % g.y[1]);
                        let len = (width - w).min(positions.end - t);
                        let lo = w_lo.clamp(w, w + len);
                        let hi = w_hi.clamp(lo, w + len);
                        let inside = d >= d_lo && d < d_hi && h >= h_lo && h < h_hi && lo < hi;
                        let (valid, at) = if inside {
                            let place = |i: usize, axis: usize, at: isize| {
                                ((i * g.stride[axis]) as isize + at) as usize
                            };
                            let (z, y) = (place(d, 0, d_at), place(h, 1, h_at));
                            let at = (z * g.x[1] + y) * g.x[2] + place(lo, 2, w_at);
                            ((lo - w, hi - w), c * x_plane + at)
                        } else {
                            ((0, 0), 0)
                        };
                        body(row, (t - positions.start, len), valid, at);
                        t += len;
                    }
                    row += 1;
                }
            }
        }
    }
}

/// Fills a tile, row-major with `positions.len()` columns.
///
/// # Safety
/// `x` is readable for all planes of its group, `tile` writable for channels × window × positions
/// elements.
pub(super) unsafe fn gather<T: Float>(
    g: &Geometry,
    x: *const T,
    channels: std::ops::Range<usize>,
    positions: std::ops::Range<usize>,
    tile: *mut T,
) {
    let cols = positions.len();
    let stride = g.stride[2];
    for_each_line(g, channels, positions, |row, (col, len), (lo, hi), at| {
        // SAFETY: the line lies inside of the tile, the valid part reads inside of x.
        unsafe {
            let dst = tile.add(row * cols + col);
            for i in 0..lo {
                dst.add(i).write(T::ZERO);
            }
            if stride == 1 {
                std::ptr::copy_nonoverlapping(x.add(at), dst.add(lo), hi - lo);
            } else {
                for i in 0..hi - lo {
                    dst.add(lo + i).write(*x.add(at + i * stride));
                }
            }
            for i in hi..len {
                dst.add(i).write(T::ZERO);
            }
        }
    });
}

/// Adds a tile to x, each element at the place that [`gather`] reads it from.
///
/// # Safety
/// As [`gather`], with x writable and the tile initialised.
pub(super) unsafe fn scatter_add<T: Float>(
    g: &Geometry,
    x: *mut T,
    channels: std::ops::Range<usize>,
    positions: std::ops::Range<usize>,
    tile: *const T,
) {
    let cols = positions.len();
    let stride = g.stride[2];
    for_each_line(g, channels, positions, |row, (col, _), (lo, hi), at| {
        // SAFETY: as in `gather`.
        unsafe {
            let src = tile.add(row * cols + col + lo);
            if stride == 1 {
                let dst = std::slice::from_raw_parts_mut(x.add(at), hi - lo);
                for (dst, &v) in dst.iter_mut().zip(std::slice::from_raw_parts(src, hi - lo)) {
                    *dst = dst.add(v);
                }
            } else {
                for i in 0..hi - lo {
                    let dst = x.add(at + i * stride);
                    *dst = (*dst).add(*src.add(i));
                }
            }
        }
    });
}
