//! Batching rules shared by many methods, as rows: the method name and its arguments besides tensors.
//!
//! ```text
//! map      treats all axes alike: applied to the inner tensor
//! zip      elementwise on two tensors: a shared operand is broadcast along the batch
//! along    along an axis, whose index is increased by one for a batch
//! whole    over all elements: along the single axis of a flattened example
//! create   a new tensor, which all examples share
//! ```

use burn_backend::tensor::{BoolTensor, FloatTensor, IntTensor};

use crate::tensor::VmapTensor;

/// Float tensors of `Vmap<B>`.
pub(crate) type F<B> = VmapTensor<FloatTensor<B>>;
/// Integer tensors of `Vmap<B>`.
pub(crate) type I<B> = VmapTensor<IntTensor<B>>;
/// Boolean tensors of `Vmap<B>`.
pub(crate) type T<B> = VmapTensor<BoolTensor<B>>;

macro_rules! map {
    ($x:ident => $y:ident: $($f:ident($($arg:ident: $t:ty),*))*) => {$(
        #[track_caller]
        fn $f(x: $x<B>, $($arg: $t),*) -> $y<B> {
            x.map(|x| B::$f(x, $($arg),*))
        }
    )*};
}

macro_rules! zip {
    ($x:ident: $kx:ident, $y:ident: $ky:ident => $z:ident: $($f:ident($($arg:ident: $t:ty),*))*) => {$(
        #[track_caller]
        fn $f(x: $x<B>, y: $y<B>, $($arg: $t),*) -> $z<B> {
            let size = $crate::tensor::common(stringify!($f), [x.size(), y.size()]);
            let x = $crate::movement::raise::<B, burn_backend::tensor::$kx>(x, size);
            let y = $crate::movement::raise::<B, burn_backend::tensor::$ky>(y, size);
            $crate::tensor::VmapTensor::new(B::$f(x, y, $($arg),*), size)
        }
    )*};
}

macro_rules! along {
    ($x:ident => $y:ident: $($f:ident($($arg:ident: $t:ty),*))*) => {$(
        #[track_caller]
        fn $f(x: $x<B>, dim: usize, $($arg: $t),*) -> $y<B> {
            let dim = dim + x.prefix();
            x.map(|x| B::$f(x, dim, $($arg),*))
        }
    )*};
    ($x:ident => ($y:ident, $i:ident): $($f:ident($($arg:ident: $t:ty),*))*) => {$(
        #[track_caller]
        fn $f(x: $x<B>, dim: usize, $($arg: $t),*) -> ($y<B>, $i<B>) {
            let (dim, size) = (dim + x.prefix(), x.size());
            let (y, i) = B::$f(x.into_inner().0, dim, $($arg),*);
            ($crate::tensor::VmapTensor::new(y, size), $crate::tensor::VmapTensor::new(i, size))
        }
    )*};
}

macro_rules! whole {
    ($x:ident: $kx:ident => $y:ident: $($f:ident, $along:ident($($arg:ident: $t:ty),*))*) => {$(
        #[track_caller]
        fn $f(x: $x<B>, $($arg: $t),*) -> $y<B> {
            match x.size() {
                None => x.map(|x| B::$f(x, $($arg),*)),
                Some(size) => {
                    let x = $crate::movement::flat::<B, burn_backend::tensor::$kx>(x, size);
                    $crate::tensor::VmapTensor::batched(B::$along(x, 1, $($arg),*))
                }
            }
        }
    )*};
}

macro_rules! create {
    ($y:ident: $($f:ident($($arg:ident: $t:ty),*))*) => {$(
        fn $f($($arg: $t),*) -> $y<B> {
            $crate::tensor::VmapTensor::shared(B::$f($($arg),*))
        }
    )*};
}

/// Data-movement methods of one tensor kind.
macro_rules! moves {
    ($x:ident: $k:ident: $reshape:ident $expand:ident $permute:ident $swap_dims:ident $flip:ident $slice:ident
     $slice_assign:ident $gather:ident $scatter:ident $select:ident $select_assign:ident $cat:ident
     $mask_where:ident) => {
        #[track_caller]
        fn $reshape(x: $x<B>, shape: Shape) -> $x<B> {
            movement::reshape::<B, $k>(x, shape)
        }
        #[track_caller]
        fn $expand(x: $x<B>, shape: Shape) -> $x<B> {
            movement::expand::<B, $k>(x, shape)
        }
        #[track_caller]
        fn $permute(x: $x<B>, axes: &[usize]) -> $x<B> {
            movement::permute::<B, $k>(x, axes)
        }
        #[track_caller]
        fn $swap_dims(x: $x<B>, dim1: usize, dim2: usize) -> $x<B> {
            let prefix = x.prefix();
            x.map(|x| B::$swap_dims(x, dim1 + prefix, dim2 + prefix))
        }
        #[track_caller]
        fn $flip(x: $x<B>, axes: &[usize]) -> $x<B> {
            movement::flip::<B, $k>(x, axes)
        }
        #[track_caller]
        fn $slice(x: $x<B>, slices: &[Slice]) -> $x<B> {
            movement::slice::<B, $k>(x, slices)
        }
        #[track_caller]
        fn $slice_assign(x: $x<B>, slices: &[Slice], value: $x<B>) -> $x<B> {
            movement::slice_assign::<B, $k>(x, slices, value)
        }
        #[track_caller]
        fn $gather(dim: usize, x: $x<B>, indices: I<B>) -> $x<B> {
            movement::gather::<B, $k>(dim, x, indices)
        }
        #[track_caller]
        fn $scatter(dim: usize, x: $x<B>, indices: I<B>, value: $x<B>) -> $x<B> {
            movement::scatter::<B, $k>(dim, x, indices, value)
        }
        #[track_caller]
        fn $select(x: $x<B>, dim: usize, indices: I<B>) -> $x<B> {
            movement::select::<B, $k>(x, dim, indices)
        }
        #[track_caller]
        fn $select_assign(x: $x<B>, dim: usize, indices: I<B>, value: $x<B>) -> $x<B> {
            movement::select_assign::<B, $k>(x, dim, indices, value)
        }
        #[track_caller]
        fn $cat(all: Vec<$x<B>>, dim: usize) -> $x<B> {
            movement::cat::<B, $k>(all, dim)
        }
        #[track_caller]
        fn $mask_where(x: $x<B>, mask: T<B>, value: $x<B>) -> $x<B> {
            movement::mask_where::<B, $k>(x, mask, value)
        }
    };
}

pub(crate) use {along, create, map, moves, whole, zip};
