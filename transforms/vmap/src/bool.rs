//! Boolean tensors.

use burn_backend::ops::BoolTensorOps;
use burn_backend::tensor::{Bool, Device};
use burn_backend::{
    Backend, BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape, Slice, TensorData,
};

use crate::backend::{Vmap, refuse, unreadable};
use crate::movement;
use crate::rows::{F, I, T, along, create, map, moves, whole, zip};
use crate::tensor::VmapTensor;

impl<B: Backend> BoolTensorOps<Self> for Vmap<B> {
    create! { T:
        bool_from_data(data: TensorData, device: &Device<B>)
        bool_zeros(shape: Shape, device: &Device<B>, dtype: BoolDType)
        bool_ones(shape: Shape, device: &Device<B>, dtype: BoolDType)
        bool_empty(shape: Shape, device: &Device<B>, dtype: BoolDType)
    }
    map! { T => T:
        bool_to_device(device: &Device<B>) bool_transpose() bool_not()
        bool_equal_elem(y: Scalar) bool_not_equal_elem(y: Scalar)
    }
    map! { T => I: bool_into_int(dtype: IntDType) }
    map! { T => F: bool_into_float(dtype: FloatDType) }
    zip! { T: Bool, T: Bool => T:
        bool_equal() bool_not_equal() bool_and() bool_or() bool_xor() bool_mask_fill(value: Scalar)
    }
    along! { T => T:
        bool_any_dim() bool_all_dim() bool_repeat_dim(times: usize) bool_unfold(size: usize, step: usize)
    }
    whole! { T: Bool => T: bool_any, bool_any_dim() bool_all, bool_all_dim() }
    moves! { T: Bool: bool_reshape bool_expand bool_permute bool_swap_dims bool_flip bool_slice
        bool_slice_assign bool_gather bool_scatter_or bool_select bool_select_or bool_cat bool_mask_where
    }

    async fn bool_into_data(x: T<B>) -> Result<TensorData, ExecutionError> {
        if x.is_batched() {
            return Err(unreadable("bool_into_data", &x));
        }
        B::bool_into_data(x.into_inner().0).await
    }

    fn bool_device(x: &T<B>) -> Device<B> {
        B::bool_device(x.inner())
    }

    async fn bool_argwhere(x: T<B>, dtype: IntDType) -> I<B> {
        if x.is_batched() {
            refuse(
                "bool_argwhere",
                "the number of results differs between the examples of a batch; return the mask from the mapped \
                 function, or weigh by it (mask_where, mask_fill)",
            )
        }
        VmapTensor::shared(B::bool_argwhere(x.into_inner().0, dtype).await)
    }
}
