//! Operations along one axis: the tensor as `outer × axis × inner` in memory order.
//!
//! A dense tensor in any order of its axes is read in place, and the result has the same order; any other layout is
//! copied first. With `inner = 1` a lane along the axis is a contiguous row, otherwise adjacent lanes are vectorised.

use smallvec::SmallVec;
use t4a_algebra::Float;

use crate::error::{Result, check_axis};
use crate::layout::Dims;
use crate::loops::parallel;
use crate::output::{Fresh, Full, FullColumns, Output, OutputColumns, share, tile_width};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Maximum number of lanes in a vectorised block.
pub(super) const WIDTH: usize = 128;
/// Elements of a chunk of rows.
const CHUNK: usize = 1 << 14;

/// An operation along an axis of `N` operands of equal shape, on contiguous memory.
pub(super) trait Along<T: Float, const N: usize>: Copy + Sync {
    /// Name of the operation, for errors.
    const NAME: &'static str;
    /// Work per element in additions; it decides about threads.
    const COST: usize;
    /// Rows of `n > 0` elements: `out` and every operand have the same number of rows.
    fn rows<'o>(self, n: usize, x: [&[T]; N], out: Fresh<'o, T>) -> Full<'o, T>;
    /// At most [`WIDTH`] adjacent lanes. Element `i` of the first lane is at `i·pitch` in every operand.
    fn columns<'o>(
        self,
        pitch: usize,
        x: [&[T]; N],
        out: OutputColumns<'o, T>,
    ) -> FullColumns<'o, T>;
}

/// Axes in memory order if the tensor is dense, else unchanged.
fn memory_order<T>(x: &Tensor<T>) -> SmallVec<[usize; 6]> {
    let layout = x.layout();
    let mut axes: SmallVec<[usize; 6]> = (0..layout.rank()).collect();
    let forward = layout.strides().iter().zip(layout.shape()).all(|(&s, &n)| n == 1 || s > 0);
    if !layout.is_contiguous() && forward && layout.is_dense() {
        axes.sort_by_key(|&axis| std::cmp::Reverse(layout.strides()[axis]));
    }
    axes
}

/// Runs an operation along an axis. The operands have the same shape, checked by the caller.
pub(super) fn along<T: Float, const N: usize, K: Along<T, N>>(
    kernel: K,
    operands: [&Tensor<T>; N],
    axis: usize,
) -> Result<Tensor<T>> {
    const { super::assert_small::<T>() };
    let rank = operands[0].rank();
    check_axis(K::NAME, axis, rank)?;
    let order = memory_order(operands[0]);
    let mut sources = SmallVec::<[Tensor<T>; N]>::new();
    for x in operands {
        sources.push(crate::copy::row_major(&x.permute(&order)?)?);
    }
    let shape: Dims = sources[0].shape().into();
    let at = order.iter().position(|&a| a == axis).unwrap_or(axis);
    let x: [&[T]; N] = std::array::from_fn(|i| sources[i].as_slice().unwrap_or_default());
    let sizes = (shape[at], shape[at + 1..].iter().product());
    let out = Output::<T>::new(K::NAME, &shape)?.try_write(|out| walk(kernel, x, out, sizes))?;
    let mut back: SmallVec<[usize; 6]> = order.clone();
    for (position, &axis) in order.iter().enumerate() {
        back[axis] = position;
    }
    out.with_route(Route::native(Path::Fused)).permute(&back)
}

fn walk<'o, T: Float, const N: usize, K: Along<T, N>>(
    kernel: K,
    x: [&[T]; N],
    out: Fresh<'o, T>,
    (n, inner): (usize, usize),
) -> Result<Full<'o, T>> {
    let parallel = parallel::worthwhile(out.len(), K::COST);
    if inner == 1 {
        let step = n * (CHUNK / n.max(1)).max(1);
        return Ok(out.par_chunks(step, parallel, |chunk, out| {
            let x = x.map(|x| &x[chunk * step..][..out.len()]);
            kernel.rows(n, x, out)
        }));
    }
    let width = tile_width(out.len() / n.max(1), WIDTH, parallel);
    let tiles = inner.div_ceil(width);
    share(out.columns([n, inner], width), 1, parallel, |part, columns| {
        let from = part / tiles * n * inner + part % tiles * width;
        Ok(kernel.columns(inner, x.map(|x| &x[from..]), columns))
    })
}
