//! Data movement on the inner backend, uniform over float, integer and boolean tensors.

use burn_backend::tensor::{Bool, BoolTensor, Float, FloatTensor, Int, IntTensor};
use burn_backend::{Backend, Shape, Slice, TensorMetadata};

/// Primitive type of a tensor kind.
pub(crate) type Primitive<B, K> = <K as DataKind<B>>::Primitive;

/// A tensor kind and its data-movement operations.
pub(crate) trait DataKind<B: Backend>: 'static {
    type Primitive: TensorMetadata + 'static;

    fn reshape(x: Self::Primitive, shape: Shape) -> Self::Primitive;
    fn expand(x: Self::Primitive, shape: Shape) -> Self::Primitive;
    fn permute(x: Self::Primitive, axes: &[usize]) -> Self::Primitive;
    fn flip(x: Self::Primitive, axes: &[usize]) -> Self::Primitive;
    fn slice(x: Self::Primitive, slices: &[Slice]) -> Self::Primitive;
    fn slice_assign(x: Self::Primitive, at: &[Slice], y: Self::Primitive) -> Self::Primitive;
    fn gather(dim: usize, x: Self::Primitive, i: IntTensor<B>) -> Self::Primitive;
    fn scatter(
        dim: usize,
        x: Self::Primitive,
        i: IntTensor<B>,
        y: Self::Primitive,
    ) -> Self::Primitive;
    fn select(x: Self::Primitive, dim: usize, i: IntTensor<B>) -> Self::Primitive;
    fn select_assign(
        x: Self::Primitive,
        dim: usize,
        i: IntTensor<B>,
        y: Self::Primitive,
    ) -> Self::Primitive;
    fn cat(all: Vec<Self::Primitive>, dim: usize) -> Self::Primitive;
    fn mask_where(x: Self::Primitive, at: BoolTensor<B>, y: Self::Primitive) -> Self::Primitive;
}

macro_rules! kinds {
    ($($kind:ident, $primitive:ident: $reshape:ident $expand:ident $permute:ident $flip:ident $slice:ident
       $slice_assign:ident $gather:ident $scatter:ident $select:ident $select_assign:ident $cat:ident
       $mask_where:ident;)*) => {$(
        impl<B: Backend> DataKind<B> for $kind {
            type Primitive = $primitive<B>;

            fn reshape(x: $primitive<B>, shape: Shape) -> $primitive<B> {
                B::$reshape(x, shape)
            }
            fn expand(x: $primitive<B>, shape: Shape) -> $primitive<B> {
                B::$expand(x, shape)
            }
            fn permute(x: $primitive<B>, axes: &[usize]) -> $primitive<B> {
                B::$permute(x, axes)
            }
            fn flip(x: $primitive<B>, axes: &[usize]) -> $primitive<B> {
                B::$flip(x, axes)
            }
            fn slice(x: $primitive<B>, slices: &[Slice]) -> $primitive<B> {
                B::$slice(x, slices)
            }
            fn slice_assign(x: $primitive<B>, at: &[Slice], y: $primitive<B>) -> $primitive<B> {
                B::$slice_assign(x, at, y)
            }
            fn gather(dim: usize, x: $primitive<B>, i: IntTensor<B>) -> $primitive<B> {
                B::$gather(dim, x, i)
            }
            fn scatter(
                dim: usize,
                x: $primitive<B>,
                i: IntTensor<B>,
                y: $primitive<B>,
            ) -> $primitive<B> {
                B::$scatter(dim, x, i, y)
            }
            fn select(x: $primitive<B>, dim: usize, i: IntTensor<B>) -> $primitive<B> {
                B::$select(x, dim, i)
            }
            fn select_assign(
                x: $primitive<B>,
                dim: usize,
                i: IntTensor<B>,
                y: $primitive<B>,
            ) -> $primitive<B> {
                B::$select_assign(x, dim, i, y)
            }
            fn cat(all: Vec<$primitive<B>>, dim: usize) -> $primitive<B> {
                B::$cat(all, dim)
            }
            fn mask_where(x: $primitive<B>, at: BoolTensor<B>, y: $primitive<B>) -> $primitive<B> {
                B::$mask_where(x, at, y)
            }
        }
    )*};
}

kinds! {
    Float, FloatTensor: float_reshape float_expand float_permute float_flip float_slice float_slice_assign
        float_gather float_scatter_add float_select float_select_add float_cat float_mask_where;
    Int, IntTensor: int_reshape int_expand int_permute int_flip int_slice int_slice_assign
        int_gather int_scatter_add int_select int_select_add int_cat int_mask_where;
    Bool, BoolTensor: bool_reshape bool_expand bool_permute bool_flip bool_slice bool_slice_assign
        bool_gather bool_scatter_or bool_select bool_select_or bool_cat bool_mask_where;
}

/// Evaluates an expression on the primitive of a leaf, with `K` bound to its kind, and wraps the result as a leaf of
/// that kind.
macro_rules! on_kind {
    ($leaf:expr, $x:ident: $k:ident => $body:expr) => {
        match $leaf {
            burn_t4a::ext::tree::Leaf::Float($x) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Float;
                burn_t4a::ext::tree::Leaf::Float($body)
            }
            burn_t4a::ext::tree::Leaf::Int($x) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Int;
                burn_t4a::ext::tree::Leaf::Int($body)
            }
            burn_t4a::ext::tree::Leaf::Bool($x) => {
                #[allow(dead_code)]
                type $k = burn_tensor::Bool;
                burn_t4a::ext::tree::Leaf::Bool($body)
            }
        }
    };
}

pub(crate) use on_kind;
