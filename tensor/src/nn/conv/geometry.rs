//! Sizes of a convolution, checked. Fewer than three spatial axes get leading ones of size 1.

use crate::error::{Result, TensorError};
use crate::layout::{Dims, MAX_NUMEL, numel_of};

/// Stride, padding and dilation along each spatial axis, and the number of groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// Stride of windows; at least 1.
    pub stride: Dims,
    /// Zeros before x.
    pub padding: Dims,
    /// Zeros after x.
    pub padding_end: Dims,
    /// Stride of the elements of a window; at least 1.
    pub dilation: Dims,
    /// Groups of channels; a divisor of both channel counts.
    pub groups: usize,
}

impl ConvOptions {
    /// Stride 1, no padding, dilation 1, one group.
    pub fn new(spatial_axes: usize) -> Self {
        let fill = |v| Dims::from_elem(v, spatial_axes);
        let (stride, dilation) = (fill(1), fill(1));
        Self { stride, padding: fill(0), padding_end: fill(0), dilation, groups: 1 }
    }

    /// The same padding before and after x.
    pub fn padded(mut self, padding: &[usize]) -> Self {
        self.padding = padding.into();
        self.padding_end = padding.into();
        self
    }

    /// Total padding along an axis.
    fn margin(&self, axis: usize) -> Option<usize> {
        self.padding[axis].checked_add(self.padding_end[axis])
    }
}

/// Maximum of [`Geometry::shared`].
pub(super) const MOST_SHARED: usize = 16;

/// Sizes of a convolution. Per axis, element `k` of window `t` is at index `t·stride + k·dilation − padding` of x.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    /// Number of spatial axes of the operands.
    pub(super) axes: usize,
    /// Images.
    pub(super) n: usize,
    pub(super) groups: usize,
    /// Channels of x and of y in a group.
    pub(super) c: usize,
    pub(super) o: usize,
    /// Sizes of x, of the window and of y.
    pub(super) x: [usize; 3],
    pub(super) k: [usize; 3],
    pub(super) y: [usize; 3],
    pub(super) stride: [usize; 3],
    pub(super) padding: [usize; 3],
    pub(super) dilation: [usize; 3],
}

/// Maximum number of positions along a padded axis, so that sums of positions do not overflow.
const MAX_SIZE: usize = 4 * MAX_NUMEL;

/// Window extent `d·(k − 1) + 1`.
fn extent(k: usize, d: usize) -> Option<usize> {
    (k.checked_sub(1)?).checked_mul(d)?.checked_add(1).filter(|&e| e <= MAX_SIZE)
}

impl Geometry {
    /// For `x: [N, C, …]`, `w: [O, C/groups, …]`.
    pub(super) fn forward(
        op: &'static str,
        x: &[usize],
        w: &[usize],
        options: &ConvOptions,
    ) -> Result<Self> {
        let axes = Self::check(op, x, w, options)?;
        let (c, o) = (w[1], w[0] / options.groups);
        if x[1] != c.saturating_mul(options.groups) {
            let required = "input channels = groups × second axis of the weight";
            return Err(TensorError::shapes(op, x, w, required));
        }
        let mut y = [1; 3];
        for i in 0..axes {
            let stride = options.stride[i];
            let padded = options.margin(i).and_then(|p| p.checked_add(x[2 + i]));
            let fits = extent(w[2 + i], options.dilation[i]).zip(padded);
            y[3 - axes + i] = match fits {
                Some((e, padded)) if e <= padded => (padded - e) / stride + 1,
                _ => {
                    return Err(TensorError::shapes(
                        op,
                        x,
                        w,
                        "windows inside of the padded input",
                    ));
                }
            };
        }
        Self::assemble(op, axes, x[0], [c, o], &x[2..], &w[2..], y, options)
    }

    /// Geometry of a transposed convolution: `y: [N, O, …]`, `w: [O, C/groups, …]` and `extra` positions of x after the
    /// last window.
    pub(super) fn transposed(
        op: &'static str,
        y: &[usize],
        w: &[usize],
        extra: &[usize],
        options: &ConvOptions,
    ) -> Result<Self> {
        let axes = Self::check(op, y, w, options)?;
        if y[1] != w[0] || extra.len() != axes {
            let required = "input channels = first axis of the weight";
            return Err(TensorError::shapes(op, y, w, required));
        }
        let mut x = Dims::new();
        for i in 0..axes {
            let size = (|| {
                let steps = y[2 + i].checked_sub(1)?.checked_mul(options.stride[i])?;
                let reach = steps.checked_add(extent(w[2 + i], options.dilation[i])?)?;
                let full = reach.checked_add(extra[i])?;
                full.checked_sub(options.margin(i)?)
            })();
            match size {
                Some(size) if size <= MAX_SIZE => x.push(size),
                _ => {
                    let required =
                        "a result of at least no size: (in − 1)·s + d·(k − 1) + 1 ≥ p + p′";
                    return Err(TensorError::shapes(op, y, w, required));
                }
            }
        }
        let mut size = [1; 3];
        size[3 - axes..].copy_from_slice(&y[2..]);
        let channels = [w[1], w[0] / options.groups];
        Self::assemble(op, axes, y[0], channels, &x, &w[2..], size, options)
    }

    fn check(op: &'static str, x: &[usize], w: &[usize], options: &ConvOptions) -> Result<usize> {
        let axes = x.len().wrapping_sub(2);
        numel_of(op, x)?;
        numel_of(op, w)?;
        if !(1..=3).contains(&axes) {
            return Err(TensorError::shape(op, x, "[images, channels, one to three sizes]"));
        }
        if w.len() != x.len() || w[2..].contains(&0) {
            return Err(TensorError::shapes(
                op,
                x,
                w,
                "equal ranks and windows that are not empty",
            ));
        }
        let ConvOptions { stride, padding, padding_end, dilation, groups } = options;
        let all = [stride, padding, padding_end, dilation];
        let far = |v: &Dims| v.iter().any(|&v| v > MAX_NUMEL);
        if all.iter().any(|v| v.len() != axes)
            || stride.contains(&0)
            || dilation.contains(&0)
            || *groups == 0
            || all.into_iter().any(far)
        {
            let required = "one stride ≥ 1, paddings and dilation ≥ 1 per axis, none above 2⁴⁸, and groups ≥ 1";
            return Err(TensorError::value(op, format!("required {required}, got {options:?}")));
        }
        if !w[0].is_multiple_of(*groups) {
            let message = format!("{} channels do not divide into {groups} groups", w[0]);
            return Err(TensorError::value(op, message));
        }
        Ok(axes)
    }

    /// All sizes, if the three shapes have elements that can be counted.
    fn assemble(
        op: &'static str,
        axes: usize,
        n: usize,
        [c, o]: [usize; 2],
        x: &[usize],
        k: &[usize],
        y: [usize; 3],
        options: &ConvOptions,
    ) -> Result<Self> {
        let pad = |from: &[usize], with: usize| {
            let mut out = [with; 3];
            out[3 - axes..].copy_from_slice(from);
            out
        };
        let groups = options.groups;
        let overflow = || TensorError::SizeOverflow { op, shape: vec![groups, c, o] };
        let far = |channels: usize| groups.checked_mul(channels).is_none();
        if far(c) || far(o) {
            return Err(overflow());
        }
        let g = Self {
            axes,
            n,
            groups,
            c,
            o,
            x: pad(x, 1),
            k: pad(k, 1),
            y,
            stride: pad(&options.stride, 1),
            padding: pad(&options.padding, 0),
            dilation: pad(&options.dilation, 1),
        };
        for shape in [g.x_shape(), g.y_shape(), g.w_shape()] {
            numel_of(op, &shape)?;
        }
        Ok(g)
    }

    /// Elements of a plane of x, of a window and of a plane of y.
    pub(super) fn planes(&self) -> [usize; 3] {
        [self.x, self.k, self.y].map(|size| size.iter().product())
    }

    fn shape(&self, head: [usize; 2], sizes: [usize; 3]) -> Dims {
        head.iter().chain(&sizes[3 - self.axes..]).copied().collect()
    }

    pub(super) fn x_shape(&self) -> Dims {
        self.shape([self.n, self.groups * self.c], self.x)
    }

    pub(super) fn y_shape(&self) -> Dims {
        self.shape([self.n, self.groups * self.o], self.y)
    }

    pub(super) fn w_shape(&self) -> Dims {
        self.shape([self.groups * self.o, self.c], self.k)
    }

    /// True if there are no elements to sum.
    pub(super) fn is_empty(&self) -> bool {
        [self.n, self.c, self.o].contains(&0) || self.planes().contains(&0)
    }

    /// The same geometry with fewer positions along an axis.
    pub(super) fn with_lines(&self, axis: usize, lines: usize) -> Self {
        let mut part = self.clone();
        part.y[axis] = lines;
        part
    }

    /// Positions along an axis of one phase of the grid on which windows are shifted copies.
    pub(super) fn on_grid(&self, i: usize) -> usize {
        ((self.y[i] - 1) * self.stride[i] + (self.k[i] - 1) * self.dilation[i]) / self.stride[i] + 1
    }

    /// Number of zeros after every line of the grid that are also the zeros before the next line.
    pub(super) fn shared(&self) -> usize {
        // Lines that are cut into strips begin at different places of the grid.
        if self.stride != [1; 3] || self.y[0] * self.y[1] == 1 {
            return 0;
        }
        let after = self.on_grid(2).saturating_sub(self.padding[2] + self.x[2]);
        // Lines of y do not overlap.
        let window = (self.k[2] - 1) * self.dilation[2];
        after.min(self.padding[2]).min(window).min(MOST_SHARED)
    }

    /// The adjoint as a convolution from y to x with reversed windows; `None` if it is not one.
    pub(super) fn reversed(&self) -> Option<Self> {
        if self.stride != [1; 3] {
            return None;
        }
        let mut padding = [0; 3];
        for i in 0..3 {
            padding[i] = ((self.k[i] - 1) * self.dilation[i]).checked_sub(self.padding[i])?;
        }
        let (c, o, x, y) = (self.o, self.c, self.y, self.x);
        Some(Self { c, o, x, y, padding, ..self.clone() })
    }

    /// Number of elements of a padded plane for sums of shifted copies; `None` if it is much larger than the number of
    /// elements without padding.
    fn padded(&self) -> Option<usize> {
        let padded = (0..3).try_fold(1usize, |len, i| {
            let reach = (self.x[i] + self.padding[i]).max((self.y[i] - 1) * self.stride[i]);
            let size = (reach + (self.k[i] - 1) * self.dilation[i]) / self.stride[i] + 2;
            len.checked_mul(size)?.checked_mul(self.stride[i])
        });
        let [x, k, y] = self.planes();
        padded.filter(|&padded| padded <= 16 * (x + k + y) + (1 << 16))
    }

    /// True if there are too few channels for a matrix product (bench `nn`, rows `depthwise`).
    pub(super) fn is_thin(&self) -> bool {
        self.groups > 1 && self.c * self.o <= 4 && self.padded().is_some()
    }

    /// True if the planes of `channels` channels fit in the inner caches, so that a matrix of windows costs more than
    /// the padding (bench `nn`, rows `planes`).
    pub(super) fn is_small(&self, channels: usize) -> bool {
        const MOST: usize = 1 << 14;
        let small = |padded: usize| padded.saturating_mul(channels) <= MOST;
        !self.is_pointwise() && self.padded().is_some_and(small)
    }

    /// True if lines of y are multiples of `vector` and the channels of y are multiples of `together`.
    pub(super) fn has_whole_lines(&self, vector: usize, together: usize) -> bool {
        self.y[2].is_multiple_of(vector) && self.o.is_multiple_of(together)
    }

    /// True if the matrix of windows is x itself.
    pub(super) fn is_pointwise(&self) -> bool {
        self.k == [1; 3] && self.stride == [1; 3] && self.padding == [0; 3] && self.x == self.y
    }

    /// Multiply-adds of the whole operation.
    pub(super) fn work(&self) -> usize {
        let [_, k, y] = self.planes();
        [self.groups, self.o, self.c, k, y].iter().fold(self.n, |a, &b| a.saturating_mul(b))
    }

    /// Positions `[lo, hi)` of y along an axis whose window element `k` is inside x, and the index in x of position 0.
    #[inline]
    pub(super) fn inside(&self, axis: usize, k: usize) -> (usize, usize, isize) {
        let s = self.stride[axis];
        let offset = (k * self.dilation[axis]) as isize - self.padding[axis] as isize;
        let lo = if offset < 0 { offset.unsigned_abs().div_ceil(s) } else { 0 };
        let end = self.x[axis] as isize - offset;
        let hi = if end > 0 { (end as usize).div_ceil(s) } else { 0 };
        let hi = hi.min(self.y[axis]);
        (lo.min(hi), hi, offset)
    }
}
