//! Sorting of erased tensors: all dtypes except the complex ones.

use super::AnyTensor;
use crate::dtype::{DType, Element};
use crate::error::{Result, TensorError};
use crate::tensor::Tensor;
use crate::{sort, with_dtype};

/// Runs the body with the element type bound, for dtypes with an order.
macro_rules! with_ordered {
    ($op:expr, $dtype:expr, $t:ident => $body:expr) => {
        with_dtype!($dtype, $t in ordered => $body, else => {
            let (op, dtype, expected) = ($op, $dtype, "an ordered type");
            Err(TensorError::DTypeUnsupported { op, dtype, expected })
        })
    };
}

/// Evaluates the body, which returns a tuple with indices at its end, with an unsigned integer type that represents the
/// indices, and casts them to the requested integer type. Indices have the same bits in signed and unsigned types, and
/// narrow ones are converted from 32 bits, so that the sorts are compiled for two types of eight.
macro_rules! with_index {
    ($op:expr, $dtype:expr, $size:expr, $i:ident => $body:expr) => {{
        let dtype = $dtype;
        with_dtype!(dtype, I in int => sort::fits::<I>($op, $size)?, else => {
            let expected = "an integer type";
            return Err(TensorError::DTypeUnsupported { op: $op, dtype, expected });
        });
        match dtype.size() {
            8 => { type $i = u64; $body }
            _ => { type $i = u32; $body }
        }
    }};
}

/// Indices cast to the requested integer type, which represents them.
fn indices<I: Element>(places: Tensor<I>, dtype: DType) -> Result<AnyTensor> {
    let route = places.route();
    let places = AnyTensor::from(places);
    if dtype.size() == size_of::<I>() {
        // Indices that fit have the same bits with and without sign.
        return Ok(AnyTensor { dtype, ..places });
    }
    Ok(places.cast(dtype)?.with_route(route))
}

impl AnyTensor {
    /// The elements in ascending or descending order along an axis: [`sort::sort`].
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`] for complex numbers.
    pub fn sort(self, axis: usize, descending: bool) -> Result<AnyTensor> {
        with_ordered!("sort", self.dtype, T => {
            sort::sort(self.into_typed::<T>()?, axis, descending).map(AnyTensor::from)
        })
    }

    /// The sorted elements and their original indices, stable: [`sort::sort_with_indices`]. `index` is the integer type
    /// of the indices.
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`].
    pub fn sort_with_indices(
        &self,
        axis: usize,
        descending: bool,
        index: DType,
    ) -> Result<(AnyTensor, AnyTensor)> {
        let op = "sort_with_indices";
        let size = self.shape().get(axis).copied().unwrap_or(0);
        with_ordered!(op, self.dtype, T => with_index!(op, index, size, I => {
            let x = self.typed::<T>()?;
            let (values, places) = sort::sort_with_indices::<T, I>(x, axis, descending)?;
            Ok((values.into(), indices(places, index)?))
        }))
    }

    /// Indices that sort the tensor along an axis, stable: [`sort::argsort`]. `index` is the integer type of the
    /// indices.
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`].
    pub fn argsort(&self, axis: usize, descending: bool, index: DType) -> Result<AnyTensor> {
        let op = "argsort";
        let size = self.shape().get(axis).copied().unwrap_or(0);
        with_ordered!(op, self.dtype, T => with_index!(op, index, size, I => {
            let places = sort::argsort::<T, I>(self.typed::<T>()?, axis, descending)?;
            indices(places, index)
        }))
    }

    /// The `k` largest or smallest elements along an axis, in order, with their indices: [`sort::topk`]. `index` is the
    /// integer type of the indices.
    ///
    /// # Errors
    /// As there; [`TensorError::DTypeUnsupported`].
    pub fn topk(
        &self,
        axis: usize,
        k: usize,
        largest: bool,
        index: DType,
    ) -> Result<(AnyTensor, AnyTensor)> {
        let op = "topk";
        let size = self.shape().get(axis).copied().unwrap_or(0);
        with_ordered!(op, self.dtype, T => with_index!(op, index, size, I => {
            let (values, places) = sort::topk::<T, I>(self.typed::<T>()?, axis, k, largest)?;
            Ok((values.into(), indices(places, index)?))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_come_in_the_type_asked_for() {
        let x = AnyTensor::from(Tensor::from_vec(vec![3.0f32, 1.0, 2.0], &[3]).unwrap());
        for dtype in DType::ALL {
            let sorted = x.argsort(0, true, dtype);
            if !dtype.is_int() {
                assert!(matches!(sorted, Err(TensorError::DTypeUnsupported { .. })));
                continue;
            }
            let sorted = sorted.unwrap();
            with_dtype!(dtype, I in int => {
                let places = sorted.typed::<I>().unwrap().to_vec().unwrap();
                assert_eq!(places, [0 as I, 2 as I, 1 as I]);
                let (_, places) = x.topk(0, 2, false, dtype).unwrap();
                assert_eq!(places.typed::<I>().unwrap().to_vec().unwrap(), [1 as I, 2 as I]);
                let (values, _) = x.sort_with_indices(0, false, dtype).unwrap();
                assert_eq!(values.typed::<f32>().unwrap().to_vec().unwrap(), [1.0, 2.0, 3.0]);
            }, else => unreachable!());
        }
    }

    #[test]
    fn dtypes_and_axes_that_cannot_be_sorted() {
        let c = AnyTensor::full(&[2], 0.0.into(), DType::C32).unwrap();
        assert!(matches!(c.clone().sort(0, false), Err(TensorError::DTypeUnsupported { .. })));
        assert!(c.topk(0, 1, true, DType::I64).is_err());
        let x = AnyTensor::full(&[300], 0.0.into(), DType::F32).unwrap();
        assert!(matches!(x.argsort(0, false, DType::I8), Err(TensorError::Value { .. })));
        assert!(matches!(x.argsort(0, false, DType::U8), Err(TensorError::Value { .. })));
        assert!(matches!(x.argsort(1, false, DType::I8), Err(TensorError::Axis { .. })));
        assert_eq!(x.argsort(0, false, DType::I16).unwrap().dtype(), DType::I16);
    }
}
