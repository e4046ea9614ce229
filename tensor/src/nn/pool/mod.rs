//! Pooling over two spatial axes: maxima and means of windows, and their derivatives.
//!
//! ```text
//! max    greatest element of a window, with its position
//! mean   mean of a window; windows in steps, or cut to a given number of results
//! ```
//!
//! A window is a rectangle, so both work by lines first (whole rows of x at a time, vectorised)
//! and then within a line. One spatial axis is two with a size of 1.

mod max;
mod mean;

pub use max::{max_pool, max_pool_vjp, max_pool_with_indices};
pub use mean::{adaptive_mean_pool, adaptive_mean_pool_vjp, mean_pool, mean_pool_vjp};

use crate::error::{Result, TensorError};
use crate::layout::{MAX_NUMEL, numel_of};

/// Sizes and steps of windows along the two spatial axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Size of a window; at least 1.
    pub window: [usize; 2],
    /// Stride of windows; at least 1.
    pub stride: [usize; 2],
    /// Positions outside of x on either side.
    pub padding: [usize; 2],
    /// Stride of the elements of a window; at least 1. Mean pooling requires 1.
    pub dilation: [usize; 2],
    /// Rule for windows that end after the padded plane.
    pub overhang: Overhang,
}

/// Rule for windows that end after the padded plane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overhang {
    /// No such window: sizes are rounded down.
    #[default]
    Never,
    /// One such window: sizes are rounded up. The first window of an axis is inside.
    Always,
    /// One such window, if it begins before the trailing padding.
    BeginsInside,
}

impl PoolOptions {
    /// Non-overlapping windows.
    pub fn new(window: [usize; 2]) -> Self {
        Self {
            window,
            stride: window,
            padding: [0; 2],
            dilation: [1; 2],
            overhang: Overhang::Never,
        }
    }
}

/// Images times channels, height and width.
fn sizes(op: &'static str, x: &[usize]) -> Result<[usize; 3]> {
    // Any sizes of a shape multiply.
    numel_of(op, x)?;
    match *x {
        [n, c, h, w] => Ok([n * c, h, w]),
        _ => Err(TensorError::shape(op, x, "[images, channels, height, width]")),
    }
}

/// `(size + 2p − d·(k − 1) − 1)/s + 1` along both axes, rounded according to the overhang, with overflow checks.
fn positions(op: &'static str, x: &[usize], options: &PoolOptions) -> Result<[usize; 2]> {
    let [_, h, w] = sizes(op, x)?;
    let PoolOptions { window, stride, padding, dilation, overhang } = *options;
    // Sums and products of a few of them exist.
    if [window, stride, padding, dilation].into_iter().flatten().any(|v| v > MAX_NUMEL) {
        return Err(TensorError::value(op, format!("windows {options:?} are out of range")));
    }
    let mut out = [0; 2];
    for (axis, size) in [h, w].into_iter().enumerate() {
        let reach = window[axis].checked_sub(1).and_then(|k| k.checked_mul(dilation[axis]));
        let padded = padding[axis].checked_mul(2).and_then(|p| p.checked_add(size));
        // Maximum distance of the end of a window from the end of the padded plane.
        let past = match overhang {
            Overhang::BeginsInside => stride[axis].saturating_sub(1),
            Overhang::Never | Overhang::Always => 0,
        };
        let room = padded.zip(reach).and_then(|(p, r)| (p + past).checked_sub(r)?.checked_sub(1));
        out[axis] = match room {
            Some(room) if stride[axis] > 0 && dilation[axis] > 0 && room < 2 * MAX_NUMEL => {
                let last = match overhang {
                    Overhang::Always => room.div_ceil(stride[axis]),
                    Overhang::Never | Overhang::BeginsInside => room / stride[axis],
                };
                let dropped = overhang == Overhang::BeginsInside
                    && last * stride[axis] >= size + padding[axis];
                last + 1 - usize::from(dropped)
            }
            _ => {
                let message = format!("windows {options:?} do not fit into {h} × {w}");
                return Err(TensorError::value(op, message));
            }
        };
    }
    // The farthest element that a window names.
    for axis in 0..2 {
        let last = out[axis].saturating_sub(1).checked_mul(stride[axis]);
        let reach = last.and_then(|l| l.checked_add((window[axis] - 1) * dilation[axis]));
        if reach.is_none_or(|r| r > 4 * MAX_NUMEL) {
            return Err(TensorError::value(op, format!("windows {options:?} are out of range")));
        }
    }
    numel_of(op, &[x[0], x[1], out[0], out[1]])?;
    Ok(out)
}

fn check_output(op: &'static str, dy: &[usize], x: &[usize], [h, w]: [usize; 2]) -> Result<()> {
    let want = [x[0], x[1], h, w];
    if dy == want {
        return Ok(());
    }
    Err(TensorError::shapes(op, dy, &want, "the shape of the pooled tensor"))
}
