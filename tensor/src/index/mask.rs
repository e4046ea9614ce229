//! A value where a mask holds.

use t4a_algebra::{Scalar, bf16, c32, c64, f16};

use crate::error::Result;
use crate::loops::kernel::{Binary, Ternary};
use crate::map::{zip, zip3};
use crate::tensor::Tensor;

/// Elements that are true or false: everything that may differ from 0. NaN is true.
pub trait Truth: Scalar {
    /// Whether this is not 0.
    fn truth(self) -> bool;
}

macro_rules! truth {
    ($($t:ident $zero:expr),*) => {$(
        impl Truth for $t {
            #[inline(always)]
            fn truth(self) -> bool {
                self != $zero
            }
        }
    )*};
}

truth!(bool false, u8 0, u16 0, u32 0, u64 0, i8 0, i16 0, i32 0, i64 0, f32 0.0, f64 0.0,
    c32 c32::new(0.0, 0.0), c64 c64::new(0.0, 0.0));

macro_rules! half_truth {
    ($($t:ident),*) => {$(
        impl Truth for $t {
            #[inline(always)]
            fn truth(self) -> bool {
                self.to_bits() & 0x7fff != 0
            }
        }
    )*};
}

half_truth!(f16, bf16);

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
struct Fill<T>(T);

impl<T: Scalar, M: Truth> Binary<T, M> for Fill<T> {
    type Out = T;
    const NAME: &'static str = "mask_fill";
    #[inline(always)]
    fn apply(self, x: T, mask: M) -> T {
        if mask.truth() { self.0 } else { x }
    }
}

/// `outᵢ = valueᵢ` where `maskᵢ` holds, else `xᵢ`; shapes broadcast.
///
/// Cost: three reads and one write per element; `x` or `value` is overwritten if it has the shape
/// of the result and no other owner.
///
/// # Errors
/// [`TensorError::ShapeMismatch`](crate::TensorError::ShapeMismatch).
pub fn mask_where<T: Scalar, M: Truth>(
    x: Tensor<T>,
    mask: Tensor<M>,
    value: Tensor<T>,
) -> Result<Tensor<T>> {
    zip3(Where, x, mask, value)
}

/// `outᵢ = value` where `maskᵢ` holds, else `xᵢ`; shapes broadcast.
///
/// # Errors
/// As [`mask_where`].
pub fn mask_fill<T: Scalar, M: Truth>(
    x: Tensor<T>,
    mask: Tensor<M>,
    value: T,
) -> Result<Tensor<T>> {
    zip(Fill(value), x, mask)
}
