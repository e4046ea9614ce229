//! One pairwise contraction, `C[β, μ, ν] = ⊕_κ A[β, μ, κ] ⊗ B[β, κ, ν]`.
//!
//! ```text
//! nothing summed     elementwise product of broadcast views
//! small, interleaved vectors over the batch
//! else               groups of labels with a common stride are read in place, others are
//! copied; then a batched matrix product
//! ```

use smallvec::SmallVec;
use t4a_algebra::Scalar;
use t4a_tensor::copy::to_contiguous;
use t4a_tensor::route::Path as RoutePath;
use t4a_tensor::{Layout, Route, Tensor};

use crate::backend::{BgemmShape, ProductBackends, TensordotAxes};
use crate::error::{EinsumError, Result};
use crate::labelled::{LabelledArray, align};
use crate::network::{Ids, LabelId};
use crate::plan::PairLabels;
use crate::table::RingTable;

fn dims(ids: &[LabelId], sizes: &[usize]) -> SmallVec<[usize; 8]> {
    ids.iter().map(|&id| sizes[id as usize]).collect()
}

fn volume(ids: &[LabelId], sizes: &[usize]) -> usize {
    ids.iter().map(|&id| sizes[id as usize]).product()
}

/// `ids` by their strides in `x`, largest first.
fn by_stride<T: Scalar>(ids: &Ids, x: &LabelledArray<T>) -> Ids {
    let stride = |id: &LabelId| {
        let axis = x.ids.iter().position(|known| known == id);
        axis.map_or(0, |axis| x.tensor.layout().strides()[axis].unsigned_abs())
    };
    let mut ids = ids.clone();
    ids.sort_by_key(|id| std::cmp::Reverse(stride(id)));
    ids
}

/// ⊕ over the given labels.
pub(crate) fn sum_out<T: Scalar>(
    ring: &RingTable<T>,
    x: LabelledArray<T>,
    ids: &Ids,
    sizes: &[usize],
) -> Result<LabelledArray<T>> {
    if ids.is_empty() {
        return Ok(x);
    }
    let kept: Ids = x.ids.iter().copied().filter(|id| !ids.contains(id)).collect();
    let (kept, summed) = (by_stride(&kept, &x), by_stride(ids, &x));
    let k = volume(&summed, sizes);
    // A ⊗ (1, …, 1)ᵀ: exact, because 1 is neutral.
    let ones = Tensor::full(&[1, 1], ring.one)?.expand(&[k, 1])?;
    let a = MatrixLayout::new(&x, &[], &kept, &summed, sizes)?.read(&x.tensor)?;
    let tensor = (ring.matmul)(&a, &ones)?.reshape(&dims(&kept, sizes))?;
    Ok(LabelledArray { tensor, ids: kept })
}

/// True if the matrices of a batch are interleaved, so that each element of a matrix is on a separate cache line (bench
/// `einsum`, row `batched_matmul_innermost`).
fn is_scattered<T>(layout: &Layout, batch: usize) -> bool {
    let line = (64 / size_of::<T>().max(1)).max(2);
    let smallest = |axes: std::ops::Range<usize>| {
        let moves = axes.filter(|&axis| layout.shape()[axis] > 1 && layout.strides()[axis] != 0);
        moves.map(|axis| layout.strides()[axis].unsigned_abs()).min()
    };
    match (smallest(0..batch), smallest(batch..layout.rank())) {
        (Some(between), Some(within)) => between < within && within >= line,
        _ => false,
    }
}

/// Conversion of a tensor to a batch of matrices.
struct MatrixLayout {
    order: SmallVec<[usize; 8]>,
    shape: SmallVec<[usize; 8]>,
    /// True if the strides allow a view and do not scatter the matrices; no copy then.
    view: bool,
    /// True if the copy transposes rows and columns, because rows have the smaller stride.
    swapped: bool,
}

impl MatrixLayout {
    /// Axes in the order batch, `rows` merged into one axis, `cols` merged into one axis.
    fn new<T: Scalar>(
        x: &LabelledArray<T>,
        batch: &[LabelId],
        rows: &Ids,
        cols: &Ids,
        sizes: &[usize],
    ) -> Result<Self> {
        let layout = x.tensor.layout();
        let axis = |id: &LabelId| x.ids.iter().position(|known| known == id);
        let arrange = |rows: &Ids, cols: &Ids| {
            let order: SmallVec<[usize; 8]> =
                batch.iter().chain(rows).chain(cols).filter_map(axis).collect();
            let mut shape = dims(batch, sizes);
            shape.extend([volume(rows, sizes), volume(cols, sizes)]);
            (order, shape)
        };
        let (order, shape) = arrange(rows, cols);
        let fused = layout.permute(&order)?.reshape(&shape)?;
        if fused.is_some_and(|fused| !is_scattered::<T>(&fused, batch.len())) {
            return Ok(Self { order, shape, view: true, swapped: false });
        }
        let last_stride = |ids: &Ids| {
            let stride = |id| axis(id).map(|axis| layout.strides()[axis].unsigned_abs());
            ids.last().and_then(stride).unwrap_or(usize::MAX)
        };
        let swapped = last_stride(rows) < last_stride(cols);
        let (order, shape) = if swapped { arrange(cols, rows) } else { (order, shape) };
        Ok(Self { order, shape, view: false, swapped })
    }

    fn read<T: Scalar>(&self, x: &Tensor<T>) -> Result<Tensor<T>> {
        let x = x.permute(&self.order)?;
        let x = if self.view { x } else { to_contiguous(&x)? };
        let matrices = x.reshape(&self.shape)?;
        if !self.swapped {
            return Ok(matrices);
        }
        let rank = matrices.rank();
        Ok(matrices.swap_axes(rank - 2, rank - 1)?)
    }
}

/// The contraction of a pair; the label order of the result is unspecified.
pub(crate) fn contract<T: Scalar>(
    ring: &RingTable<T>,
    step: &PairLabels,
    a: LabelledArray<T>,
    b: LabelledArray<T>,
    sizes: &[usize],
    backend: &ProductBackends<'_, T>,
) -> Result<LabelledArray<T>> {
    let a = sum_out(ring, a, &step.lone_left, sizes)?;
    let b = sum_out(ring, b, &step.lone_right, sizes)?;
    if let Some(user) = backend.tensordot
        && let Some(tensor) = user.tensordot(&axes_of(step, &a, &b), &a.tensor, &b.tensor)?
    {
        let ids: Ids = step.batch.iter().chain(&step.left).chain(&step.right).copied().collect();
        let (expected, given) = (dims(&ids, sizes).to_vec(), tensor.shape().to_vec());
        if expected != given {
            let message = format!("tensordot gave shape {given:?}, needed {expected:?}");
            return Err(EinsumError::Backend(message));
        }
        return Ok(LabelledArray {
            tensor: tensor.with_route(Route::native(RoutePath::TensordotUser)),
            ids,
        });
    }
    if step.sum.is_empty() {
        return multiply(ring, step, a, b);
    }
    if backend.bgemm.is_none()
        && let Some(c) = interleaved(ring, step, &a, &b, sizes)?
    {
        return Ok(c);
    }
    let (m, n) = (by_stride(&step.left, &a), by_stride(&step.right, &b));
    let larger = if a.tensor.numel() >= b.tensor.numel() { &a } else { &b };
    let batch = by_stride(&step.batch, larger);
    // Tries the summed labels in the stride order of A and of B; takes the one with fewer copies.
    let (mut best, mut cost) = (None, usize::MAX);
    for order in [by_stride(&step.sum, &a), by_stride(&step.sum, &b)] {
        let left = MatrixLayout::new(&a, &batch, &m, &order, sizes)?;
        let right = MatrixLayout::new(&b, &batch, &order, &n, sizes)?;
        let price =
            |g: &MatrixLayout, x: &LabelledArray<T>| if g.view { 0 } else { x.tensor.numel() };
        let copied = price(&left, &a) + price(&right, &b);
        if copied < cost {
            (best, cost) = (Some((left, right)), copied);
        }
        if copied == 0 || step.sum.len() == 1 {
            break;
        }
    }
    let Some((left, right)) = best else {
        return Err(EinsumError::SizeOverflow { shape: a.tensor.shape().to_vec() });
    };
    let (left, right) = (left.read(&a.tensor)?, right.read(&b.tensor)?);
    let ids: Ids = batch.iter().chain(&m).chain(&n).copied().collect();
    let tensor = match backend.bgemm {
        None => (ring.matmul)(&left, &right)?,
        Some(user) => {
            let shape = BgemmShape {
                batch: volume(&batch, sizes),
                m: volume(&m, sizes),
                k: volume(&step.sum, sizes),
                n: volume(&n, sizes),
            };
            let mut out = Tensor::full(&[shape.batch, shape.m, shape.n], ring.zero)?;
            user.bgemm(shape, &left.to_vec()?, &right.to_vec()?, out.as_mut_slice()?)?;
            out.with_route(Route::native(RoutePath::BgemmUser))
        }
    };
    Ok(LabelledArray { tensor: tensor.reshape(&dims(&ids, sizes))?, ids })
}

/// Multiply-adds per matrix above which copying each matrix pays (bench `einsum`, row `batched_matmul_innermost`).
const INTERLEAVED: usize = 16 * 16 * 16;

/// The product of many small matrices interleaved in memory; `None` if a or b are not.
fn interleaved<T: Scalar>(
    ring: &RingTable<T>,
    step: &PairLabels,
    a: &LabelledArray<T>,
    b: &LabelledArray<T>,
    sizes: &[usize],
) -> Result<Option<LabelledArray<T>>> {
    let [m, n, k, count] =
        [&step.left, &step.right, &step.sum, &step.batch].map(|ids| volume(ids, sizes));
    let batch = by_stride(&step.batch, a);
    let together = |x: &LabelledArray<T>| {
        let axis = x.ids.iter().position(|id| Some(id) == batch.last());
        axis.is_some_and(|axis| x.tensor.layout().strides()[axis] == 1)
    };
    let small = m.saturating_mul(n).saturating_mul(k) <= INTERLEAVED;
    if !small || count < 64 || !together(a) || !together(b) {
        return Ok(None);
    }
    let group = |x: &LabelledArray<T>, rows: &Ids, cols: &Ids, shape: [usize; 3]| -> Result<_> {
        let ids: Ids = rows.iter().chain(cols).chain(&batch).copied().collect();
        Ok(align(x, &ids)?.reshape(&shape)?)
    };
    let a = group(a, &step.left, &step.sum, [m, k, count])?;
    let b = group(b, &step.sum, &step.right, [k, n, count])?;
    let tensor = (ring.matmul_interleaved)(&a, &b)?;
    let ids: Ids = step.left.iter().chain(&step.right).chain(&batch).copied().collect();
    Ok(Some(LabelledArray { tensor: tensor.reshape(&dims(&ids, sizes))?, ids }))
}

/// Products without a summed label: elementwise and outer.
fn multiply<T: Scalar>(
    ring: &RingTable<T>,
    step: &PairLabels,
    a: LabelledArray<T>,
    b: LabelledArray<T>,
) -> Result<LabelledArray<T>> {
    let larger = if a.tensor.numel() >= b.tensor.numel() { &a } else { &b };
    let all: Ids = step.batch.iter().chain(&step.left).chain(&step.right).copied().collect();
    let of_larger: Ids = all.iter().copied().filter(|id| larger.ids.contains(id)).collect();
    let mut ids: Ids = all.iter().copied().filter(|id| !of_larger.contains(id)).collect();
    let inner = by_stride(&of_larger, larger);
    // The inner axes of an outer product of blocks are those of the larger tensor.
    ids.extend(inner);
    let (left, right) = (align(&a, &ids)?, align(&b, &ids)?);
    drop((a, b));
    let out = (ring.times)(left, right)?;
    let route = Route::native(RoutePath::ContractElementwise);
    Ok(LabelledArray { tensor: out.with_route(route), ids })
}

fn axes_of<T: Scalar>(
    step: &PairLabels,
    a: &LabelledArray<T>,
    b: &LabelledArray<T>,
) -> TensordotAxes {
    let of = |x: &LabelledArray<T>, id: LabelId| {
        x.ids.iter().position(|&known| known == id).unwrap_or(0)
    };
    let both = |ids: &Ids| ids.iter().map(|&id| (of(a, id), of(b, id))).collect();
    TensordotAxes {
        batch: both(&step.batch),
        left: step.left.iter().map(|&id| of(a, id)).collect(),
        right: step.right.iter().map(|&id| of(b, id)).collect(),
        sum: both(&step.sum),
    }
}
