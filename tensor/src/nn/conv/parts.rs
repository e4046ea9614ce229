//! Weights as sums over parts of the images, by blocks of channels of x.

use std::ops::Range;

use t4a_algebra::Float;

use super::geometry::Geometry;
use crate::error::Result;
use crate::kernels::fold::Sum;
use crate::loops::parallel;
use crate::output::{FullColumns, Output, OutputColumns, share_with};
use crate::reduce::reduce;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Minimum number of tasks, if the sizes permit: enough for many threads, and constant, so that sums do not depend on
/// the number of threads.
pub(super) const TASKS: usize = 16;
/// Maximum number of parts of the images; each has a separate partial weight.
const MOST: usize = 8;

/// Consecutive tasks that use the same scratch: several if enough groups of them remain for any number of threads.
pub(super) fn in_a_row(tasks: usize) -> usize {
    (tasks / (4 * TASKS)).max(1)
}

/// Indices below `total` in ranges of `step`.
pub(super) fn nth(total: usize, step: usize, i: usize) -> Range<usize> {
    i * step..((i + 1) * step).min(total)
}

/// One summand of a block of a weight.
pub(super) struct WeightTerm {
    pub(super) group: usize,
    /// Channels of x in the group.
    pub(super) channels: Range<usize>,
    pub(super) images: Range<usize>,
}

/// The weight of which `body` writes the columns of every part; `channels` of x are a block, and a part has
/// `least` images or all.
pub(super) fn weight_in_parts<T: Float, C>(
    g: &Geometry,
    channels: usize,
    least: usize,
    scratch: impl Fn() -> Result<C> + Sync,
    body: impl for<'a> Fn(&mut C, WeightTerm, OutputColumns<'a, T>) -> Result<FullColumns<'a, T>> + Sync,
) -> Result<Tensor<T>> {
    let [_, k, _] = g.planes();
    let blocks = g.c.div_ceil(channels);
    // Few blocks of channels share the images as well.
    let parts = TASKS.div_ceil(g.groups * blocks).min(MOST).min(g.n / least.max(1)).max(1);
    let images = g.n.div_ceil(parts);
    let parts = g.n.div_ceil(images);
    let mut shape = g.w_shape();
    shape.insert(0, parts);
    let parallel = parallel::worthwhile_steps(g.work());
    let out = Output::<T>::new("conv_weight", &shape)?.try_write(|w| {
        let columns = w.columns([g.o, g.c * k], channels * k);
        share_with(columns, 1, parallel, scratch, |scratch, task, w| {
            let (part, rest) = (task / (g.groups * blocks), task % (g.groups * blocks));
            let part = WeightTerm {
                group: rest / blocks,
                channels: nth(g.c, channels, rest % blocks),
                images: nth(g.n, images, part),
            };
            body(scratch, part, w)
        })
    })?;
    let out = if parts == 1 { out } else { reduce(Sum, &out, &[0])? };
    Ok(out.select(0, 0)?.with_route(Route::native(Path::Fused)))
}
