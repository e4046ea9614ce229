//! Strips of lines of y, such that the part of x that a strip reads fits in the L2 cache when copied to a grid.

use std::ops::Range;

use super::geometry::Geometry;
use super::grid::{PhaseGrid, windows};
use crate::error::Result;

/// Sizes of the strips of y.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Number of channels of x that are copied to the grid.
    pub(super) channels: usize,
    /// Maximum number of bytes on the grid, unless a strip then has fewer positions than `least`.
    pub(super) bytes: usize,
    /// Positions of y at least and at most, if a line has no more.
    pub(super) least: usize,
    pub(super) most: usize,
}

/// Strips along the first axis along which planes extend: lines are contiguous in x and in y.
pub(super) struct Strips<'a> {
    g: &'a Geometry,
    axis: usize,
    /// Positions of y along the axis.
    lines: usize,
    /// Of one strip.
    pub(super) grid: PhaseGrid,
    /// Every window element on the grid.
    pub(super) places: Vec<usize>,
}

/// One strip.
pub(super) struct Strip {
    /// Range of a plane of x that is read, its sizes, and the grid position of its first element.
    pub(super) x: Range<usize>,
    pub(super) size: [usize; 3],
    pub(super) at: [usize; 3],
    /// Sizes of the part of y.
    pub(super) y: [usize; 3],
}

impl Size {
    /// Bytes of x on the grid of a strip.
    pub(super) fn on_grid<T>(self, g: &Geometry) -> usize {
        let (axis, lines) = self.cut::<T>(g);
        self.of_lines::<T>(g, axis, lines)
    }

    fn of_lines<T>(self, g: &Geometry, axis: usize, lines: usize) -> usize {
        let part = g.with_lines(axis, lines);
        let per_axis = |i: usize| part.on_grid(i).saturating_mul(g.stride[i]);
        let bytes = self.channels.saturating_mul(size_of::<T>());
        (0..3).map(per_axis).fold(bytes, usize::saturating_mul)
    }

    /// The axis, and the number of positions along it in a strip.
    fn cut<T>(self, g: &Geometry) -> (usize, usize) {
        let axis = (0..2).find(|&i| g.x[i].max(g.y[i]) > 1).unwrap_or(2);
        let across: usize = g.y[axis + 1..].iter().product();
        let least = self.least.div_ceil(across).min(g.y[axis]);
        let lines = (self.most / across).clamp(least, g.y[axis]);
        // The number of bytes is affine in the number of lines.
        let [one, all] = [1, lines].map(|lines| self.of_lines::<T>(g, axis, lines));
        if all <= self.bytes || lines == least {
            return (axis, lines);
        }
        let per_line = ((all - one) / (lines - 1)).max(1);
        (axis, (1 + self.bytes.saturating_sub(one) / per_line).clamp(least, lines))
    }
}

impl<'a> Strips<'a> {
    pub(super) fn new<T>(g: &'a Geometry, size: Size) -> Result<Self> {
        let (axis, lines) = size.cut::<T>(g);
        let (grid, places) = windows(&g.with_lines(axis, lines))?;
        Ok(Self { g, axis, lines, grid, places })
    }

    /// Strips of a plane.
    pub(super) fn count(&self) -> usize {
        self.g.y[self.axis].div_ceil(self.lines)
    }

    /// Positions of y in a strip but the last one.
    pub(super) fn positions(&self) -> usize {
        self.lines * self.g.y[self.axis + 1..].iter().product::<usize>()
    }

    pub(super) fn nth(&self, i: usize) -> Strip {
        let Self { g, axis, lines, .. } = *self;
        let first = i * lines;
        let count = lines.min(g.y[axis] - first);
        // Zeros before x are counted from the first position that the strip reads.
        let (from, span) = (first * g.stride[axis], self.grid.size[axis] * g.stride[axis]);
        let begin = from.saturating_sub(g.padding[axis]).min(g.x[axis]);
        let end = (from + span).saturating_sub(g.padding[axis]).clamp(begin, g.x[axis]);
        let line: usize = g.x[axis + 1..].iter().product();
        let (mut size, mut at, mut y) = (g.x, g.padding, g.y);
        size[axis] = end - begin;
        at[axis] = (begin + g.padding[axis]).saturating_sub(from);
        y[axis] = count;
        Strip { x: begin * line..end * line, size, at, y }
    }
}
