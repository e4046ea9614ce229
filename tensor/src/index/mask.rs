//! Selection by a mask.

use t4a_algebra::Scalar;

use crate::error::Result;
use crate::kernels::compare::Truth;
use crate::loops::kernel::{Binary, Ternary};
use crate::map::{zip, zip3};
use crate::tensor::Tensor;

#[derive(Clone, Copy)]
struct Where;

impl<T: Scalar, M: Truth> Ternary<T, M, T> for Where {
    type Out = T;
    const NAME: &'static str = "mask_where";
    #[inline(always)]
    fn apply(self, x: T, mask: M, value: T) -> T {
        if mask.truth() { value } else { x }
    }
}

#[derive(Clone, Copy)]
struct MaskFill<T>(T);

impl<T: Scalar, M: Truth> Binary<T, M> for MaskFill<T> {
    type Out = T;
    const NAME: &'static str = "mask_fill";
    #[inline(always)]
    fn apply(self, x: T, mask: M) -> T {
        if mask.truth() { self.0 } else { x }
    }
}

/// `outᵢ = valueᵢ` where `maskᵢ` is true, else `xᵢ`; shapes broadcast.
///
/// Cost: three reads and one write per element; `x` or `value` is overwritten if it has the shape
/// of the result and no other owner.
///
/// # Errors
/// [`TensorError::ShapeMismatch`](crate::TensorError::ShapeMismatch).
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::index::{mask_fill, mask_where};
///
/// let x = Tensor::from_vec(vec![1.0, 2.0], &[2])?;
/// let mask = Tensor::from_vec(vec![true, false], &[2])?;
/// let value = Tensor::from_vec(vec![10.0], &[1])?;
/// assert_eq!(mask_where(x.clone(), mask.clone(), value)?.to_vec()?, [10.0, 2.0]);
/// assert_eq!(mask_fill(x, mask, 0.0)?.to_vec()?, [0.0, 2.0]);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn mask_where<T: Scalar, M: Truth>(
    x: Tensor<T>,
    mask: Tensor<M>,
    value: Tensor<T>,
) -> Result<Tensor<T>> {
    zip3(Where, x, mask, value)
}

/// `outᵢ = value` where `maskᵢ` is true, else `xᵢ`; shapes broadcast.
///
/// # Errors
/// As [`mask_where`].
pub fn mask_fill<T: Scalar, M: Truth>(
    x: Tensor<T>,
    mask: Tensor<M>,
    value: T,
) -> Result<Tensor<T>> {
    zip(MaskFill(value), x, mask)
}
