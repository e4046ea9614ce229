//! Data-movement operations for every tensor kind. Shapes and axes are those of one example; the batch is axis 0 of the
//! inner tensor.

use burn_backend::tensor::{Bool, Int};
use burn_backend::{Backend, Shape, Slice, TensorMetadata, get_device_settings};

use crate::kind::{DataKind, Primitive};
use crate::tensor::{VmapTensor, common};

/// A tensor of `Vmap<B>`.
pub(crate) type MappedTensor<B, K> = VmapTensor<Primitive<B, K>>;

/// Shape with the batch axis prepended.
fn behind(size: Option<usize>, sizes: &[usize]) -> Shape {
    size.into_iter().chain(sizes.iter().copied()).collect()
}

/// Axes with the batch axis prepended.
fn axes(prefix: usize, axes: &[usize]) -> Vec<usize> {
    (0..prefix).chain(axes.iter().map(|axis| axis + prefix)).collect()
}

/// Slices with a full slice of the batch axis prepended.
fn slices(prefix: usize, slices: &[Slice]) -> Vec<Slice> {
    vec![Slice::full(); prefix].into_iter().chain(slices.iter().copied()).collect()
}

/// Inner tensor with a batch axis if there is a batch size; a shared tensor becomes a broadcast view.
pub(crate) fn raise<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    size: Option<usize>,
) -> Primitive<B, K> {
    let (inner, batched) = x.into_inner();
    match size {
        Some(size) if !batched => {
            let shape = inner.shape();
            let one = K::reshape(inner, behind(Some(1), &shape));
            if size == 1 { one } else { K::expand(one, behind(Some(size), &shape)) }
        }
        _ => inner,
    }
}

pub(crate) fn reshape<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    shape: Shape,
) -> MappedTensor<B, K> {
    let size = x.size();
    x.map(|x| K::reshape(x, behind(size, &shape)))
}

/// Broadcasts to a shape; new leading axes are inserted after the batch axis.
pub(crate) fn expand<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    shape: Shape,
) -> MappedTensor<B, K> {
    let (size, own) = (x.size(), x.shape());
    x.map(|x| {
        let new = shape.num_dims().saturating_sub(own.num_dims());
        let x = match (size, new) {
            (None, _) | (_, 0) => x,
            _ => {
                let ones = std::iter::repeat_n(1, new);
                K::reshape(x, size.into_iter().chain(ones).chain(own.iter().copied()).collect())
            }
        };
        K::expand(x, behind(size, &shape))
    })
}

pub(crate) fn permute<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    order: &[usize],
) -> MappedTensor<B, K> {
    let prefix = x.prefix();
    x.map(|x| K::permute(x, &axes(prefix, order)))
}

pub(crate) fn flip<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    which: &[usize],
) -> MappedTensor<B, K> {
    let prefix = x.prefix();
    x.map(|x| K::flip(x, &which.iter().map(|axis| axis + prefix).collect::<Vec<_>>()))
}

pub(crate) fn slice<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    at: &[Slice],
) -> MappedTensor<B, K> {
    let prefix = x.prefix();
    x.map(|x| K::slice(x, &slices(prefix, at)))
}

pub(crate) fn slice_assign<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    at: &[Slice],
    y: MappedTensor<B, K>,
) -> MappedTensor<B, K> {
    let size = common("slice_assign", [x.size(), y.size()]);
    let (x, y) = (raise::<B, K>(x, size), raise::<B, K>(y, size));
    VmapTensor::new(K::slice_assign(x, &slices(size.is_some() as usize, at), y), size)
}

pub(crate) fn cat<B: Backend, K: DataKind<B>>(
    all: Vec<MappedTensor<B, K>>,
    dim: usize,
) -> MappedTensor<B, K> {
    let size = common("cat", all.iter().map(VmapTensor::size));
    let all = all.into_iter().map(|x| raise::<B, K>(x, size)).collect();
    VmapTensor::new(K::cat(all, dim + size.is_some() as usize), size)
}

pub(crate) fn gather<B: Backend, K: DataKind<B>>(
    dim: usize,
    x: MappedTensor<B, K>,
    index: MappedTensor<B, Int>,
) -> MappedTensor<B, K> {
    let size = common("gather", [x.size(), index.size()]);
    let (x, index) = (raise::<B, K>(x, size), raise::<B, Int>(index, size));
    VmapTensor::new(K::gather(dim + size.is_some() as usize, x, index), size)
}

pub(crate) fn scatter<B: Backend, K: DataKind<B>>(
    dim: usize,
    x: MappedTensor<B, K>,
    index: MappedTensor<B, Int>,
    y: MappedTensor<B, K>,
) -> MappedTensor<B, K> {
    let size = common("scatter", [x.size(), index.size(), y.size()]);
    let (x, y) = (raise::<B, K>(x, size), raise::<B, K>(y, size));
    let index = raise::<B, Int>(index, size);
    VmapTensor::new(K::scatter(dim + size.is_some() as usize, x, index, y), size)
}

/// Broadcasts indices `[n]` along axis `dim` to this shape.
fn spread<B: Backend>(
    index: MappedTensor<B, Int>,
    dim: usize,
    shape: &Shape,
) -> MappedTensor<B, Int> {
    let mut one = vec![1; shape.num_dims()];
    one[dim] = index.shape()[0];
    let mut all = shape.to_vec();
    all[dim] = one[dim];
    expand::<B, Int>(reshape::<B, Int>(index, Shape::from(one)), Shape::from(all))
}

/// Batched indices on a batched x are a gather; on a shared x, one selection of all indices.
pub(crate) fn select<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    dim: usize,
    index: MappedTensor<B, Int>,
) -> MappedTensor<B, K> {
    common("select", [x.size(), index.size()]);
    let shape = x.shape();
    match (x.size(), index.size()) {
        (_, None) => {
            let prefix = x.prefix();
            let index = index.into_inner().0;
            x.map(|x| K::select(x, dim + prefix, index))
        }
        (None, Some(size)) => {
            let n = index.shape()[0];
            let flat = B::int_reshape(index.into_inner().0, Shape::from([size * n]));
            let all = K::select(x.into_inner().0, dim, flat);
            let mut sizes = shape.to_vec();
            sizes.splice(dim..=dim, [size, n]);
            let mut order: Vec<usize> = (0..sizes.len()).filter(|&axis| axis != dim).collect();
            order.insert(0, dim);
            VmapTensor::batched(K::permute(K::reshape(all, Shape::from(sizes)), &order))
        }
        (Some(_), Some(_)) => {
            let index = spread::<B>(index, dim, &shape);
            gather::<B, K>(dim, x, index)
        }
    }
}

pub(crate) fn select_assign<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    dim: usize,
    index: MappedTensor<B, Int>,
    y: MappedTensor<B, K>,
) -> MappedTensor<B, K> {
    let size = common("select_assign", [x.size(), index.size(), y.size()]);
    if index.is_batched() {
        let index = spread::<B>(index, dim, &y.shape());
        return scatter::<B, K>(dim, x, index, y);
    }
    let (x, y) = (raise::<B, K>(x, size), raise::<B, K>(y, size));
    let dim = dim + size.is_some() as usize;
    VmapTensor::new(K::select_assign(x, dim, index.into_inner().0, y), size)
}

pub(crate) fn mask_where<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    mask: MappedTensor<B, Bool>,
    y: MappedTensor<B, K>,
) -> MappedTensor<B, K> {
    let size = common("mask_where", [x.size(), mask.size(), y.size()]);
    let (x, y) = (raise::<B, K>(x, size), raise::<B, K>(y, size));
    VmapTensor::new(K::mask_where(x, raise::<B, Bool>(mask, size), y), size)
}

/// Flattens each example: `[batch, elements]`.
pub(crate) fn flat<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    size: usize,
) -> Primitive<B, K> {
    let elements = x.shape().num_elements();
    K::reshape(x.into_inner().0, Shape::from([size, elements]))
}

/// Prepends the example number to batched indices `[…, k]`: `[batch, …, k + 1]`.
pub(crate) fn numbered<B: Backend>(index: MappedTensor<B, Int>, size: usize) -> Primitive<B, Int> {
    // The index type of one example may be too small for the number of examples.
    let device = B::int_device(index.inner());
    let dtype = get_device_settings::<B>(&device).int_dtype;
    let index = B::int_cast(raise::<B, Int>(index, Some(size)), dtype);
    let mut shape = index.shape().to_vec();
    let last = shape.len() - 1;
    let mut column = vec![1; shape.len()];
    column[0] = size;
    let numbers = B::int_arange(0..size as i64, &device, dtype);
    shape[last] = 1;
    let numbers = B::int_expand(B::int_reshape(numbers, Shape::from(column)), Shape::from(shape));
    B::int_cat(vec![numbers, index], last)
}

pub(crate) fn swap_dims<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    dim1: usize,
    dim2: usize,
) -> MappedTensor<B, K> {
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.swap(dim1, dim2);
    permute::<B, K>(x, &order)
}

/// `[…, m, k] · […, k, n]`, by the product of the inner backend. A batch times one shared matrix is one product of all
/// rows.
pub(crate) fn matmul<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    y: MappedTensor<B, K>,
    product: impl Fn(Primitive<B, K>, Primitive<B, K>) -> Primitive<B, K>,
) -> MappedTensor<B, K> {
    let size = common("matmul", [x.size(), y.size()]);
    let Some(size) = size else {
        return VmapTensor::shared(product(x.into_inner().0, y.into_inner().0));
    };
    let (sx, sy) = (x.shape(), y.shape());
    let rank = sx.num_dims();
    let is_one = |shape: &Shape| shape[..rank - 2].iter().all(|&n| n == 1);
    match (x.is_batched(), y.is_batched()) {
        (true, false) if is_one(&sy) => rows::<B, K>(x, y, size, product),
        // A single column: computed as rows of the transposed product.
        (false, true) if is_one(&sx) && sy[rank - 1] == 1 => {
            let turn = |x| swap_dims::<B, K>(x, rank - 2, rank - 1);
            turn(rows::<B, K>(turn(y), turn(x), size, product))
        }
        _ => {
            let one = |x: MappedTensor<B, K>| {
                let shape = x.shape();
                match x.into_inner() {
                    (x, true) => x,
                    (x, false) => K::reshape(x, behind(Some(1), &shape)),
                }
            };
            VmapTensor::batched(product(one(x), one(y)))
        }
    }
}

/// Product of batched rows with one shared matrix.
fn rows<B: Backend, K: DataKind<B>>(
    x: MappedTensor<B, K>,
    y: MappedTensor<B, K>,
    size: usize,
    product: impl Fn(Primitive<B, K>, Primitive<B, K>) -> Primitive<B, K>,
) -> MappedTensor<B, K> {
    let (mut shape, matrix) = (x.shape().to_vec(), y.shape());
    let rank = shape.len();
    let (k, n) = (matrix[rank - 2], matrix[rank - 1]);
    let all = size * shape[..rank - 1].iter().product::<usize>();
    let x = K::reshape(x.into_inner().0, Shape::from([all, shape[rank - 1]]));
    let y = K::reshape(y.into_inner().0, Shape::from([k, n]));
    shape[rank - 1] = n;
    VmapTensor::batched(K::reshape(product(x, y), behind(Some(size), &shape)))
}
