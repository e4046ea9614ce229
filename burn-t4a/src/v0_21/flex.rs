//! Burn's own CPU backend over the same memory: the route of every operation without a native
//! kernel.
//!
//! Tensors cross in both directions without copying, strided views included: Flex holds our buffer
//! through `Bytes`, we hold Flex's storage as foreign memory. Results carry the route
//! [`Path::Flex`] with a reason, and a strict [policy](t4a_tensor::route::Policy) rejects the
//! operation before it computes.

use std::sync::Arc;

use burn_backend::ops::DeformConv2dBackward;
use burn_backend::{BoolDType, Shape};
use burn_backend::{DType as BurnDType, TensorMetadata};
use burn_flex::{Flex, FlexQTensor, FlexTensor, Layout as FlexLayout};
use t4a_tensor::route::{Path, Reason};
use t4a_tensor::{AnyTensor, DType, Layout, Result, Route, Tensor};

use super::BurnT4a;
use super::data::{adopt_owner, share};
use super::primitive::{T4aTensor, engine_dtype};
use crate::boundary::accept;

/// Runs an operation of Flex under its name.
macro_rules! flex {
    ($op:ident($($arg:expr),* $(,)?)) => {
        $crate::v0_21::flex::run(stringify!($op), || burn_flex::Flex::$op($($arg),*))
    };
}
pub(super) use flex;

/// Runs an operation on Flex, if the route policy allows it.
#[track_caller]
pub(super) fn run<R: FromFlex>(op: &'static str, f: impl FnOnce() -> R) -> R::Native {
    let route = accept(Route::fallback(op, Path::Flex, Reason::OpUnsupported));
    accept(f().adopt(route))
}

/// What an operation of Flex returns.
pub(super) trait FromFlex {
    /// The same on our side.
    type Native;
    fn adopt(self, route: Route) -> Result<Self::Native>;
}

impl FromFlex for FlexTensor {
    type Native = T4aTensor;
    fn adopt(self, route: Route) -> Result<T4aTensor> {
        Ok(from_flex(self)?.then(|any| Ok(any.with_route(route))))
    }
}

impl FromFlex for FlexQTensor {
    type Native = FlexQTensor;
    fn adopt(self, _: Route) -> Result<FlexQTensor> {
        Ok(self)
    }
}

impl FromFlex for (FlexTensor, FlexTensor) {
    type Native = (T4aTensor, T4aTensor);
    fn adopt(self, route: Route) -> Result<Self::Native> {
        Ok((self.0.adopt(route)?, self.1.adopt(route)?))
    }
}

impl FromFlex for DeformConv2dBackward<Flex> {
    type Native = DeformConv2dBackward<BurnT4a>;
    fn adopt(self, route: Route) -> Result<Self::Native> {
        Ok(DeformConv2dBackward {
            x_grad: self.x_grad.adopt(route)?,
            offset_grad: self.offset_grad.adopt(route)?,
            weight_grad: self.weight_grad.adopt(route)?,
            mask_grad: self.mask_grad.map(|grad| grad.adopt(route)).transpose()?,
            bias_grad: self.bias_grad.map(|grad| grad.adopt(route)).transpose()?,
        })
    }
}

impl From<T4aTensor> for FlexTensor {
    /// The same memory under the same layout. Booleans cross as `Native`, whatever their store.
    fn from(tensor: T4aTensor) -> Self {
        let dtype = match tensor.dtype() {
            BurnDType::Bool(_) => BurnDType::Bool(BoolDType::Native),
            other => other,
        };
        let any = tensor.into_any();
        let layout = any.layout();
        let shape: Shape = layout.shape().iter().copied().collect();
        let layout = FlexLayout::new(shape, layout.strides().to_vec(), layout.offset());
        let buffer = any.into_buffer();
        let len = buffer.len();
        FlexTensor::from_arc(Arc::new(share(buffer, 0, len)), layout, dtype)
    }
}

/// The same memory under the same layout.
fn from_flex(value: FlexTensor) -> Result<T4aTensor> {
    let dtype = engine_dtype(value.dtype())?;
    let store = match value.dtype() {
        BurnDType::Bool(store) => store,
        _ => BoolDType::Native,
    };
    let bytes = value.bytes();
    let buffer = if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
        let values: Vec<bool> = bytes.iter().map(|&byte| byte != 0).collect();
        let len = values.len();
        AnyTensor::from(Tensor::from_vec(values, &[len])?).into_buffer()
    } else {
        adopt_owner(value.data_arc(), |bytes| bytes, dtype.size())?
    };
    let layout = value.layout();
    let len = buffer.len() / dtype.size();
    let layout = Layout::from_parts(layout.shape(), layout.strides(), layout.start_offset(), len)?;
    // SAFETY: Flex initialises its storage, and booleans are bytes of 0 and 1 by now.
    let any = unsafe { AnyTensor::from_buffer(buffer, layout, dtype) }?;
    Ok(T4aTensor::new(any)?.with_store(store))
}

#[cfg(test)]
mod tests {
    use burn_backend::TensorData;
    use burn_backend::ops::FloatTensorOps;

    use super::*;

    fn matrix() -> AnyTensor {
        Tensor::from_vec((0..12).map(|i| i as f32).collect(), &[3, 4]).unwrap().into()
    }

    fn first(tensor: &FlexTensor) -> *const u8 {
        tensor.bytes().as_ptr()
    }

    #[test]
    fn tensors_cross_without_copying_in_both_directions() {
        let views = [
            matrix(),
            matrix().permute(&[1, 0]).unwrap(),
            matrix().slice_axis(1, 1, 2, 2).unwrap(),
            matrix().flip(&[0, 1]).unwrap(),
            matrix().select(0, 2).unwrap().expand(&[5, 4]).unwrap(),
            matrix().slice_axis(0, 3, 0, 1).unwrap(),
        ];
        for view in views {
            let ptr = view.buffer().as_ptr();
            let over: FlexTensor = T4aTensor::new(view.clone()).unwrap().into();
            assert_eq!(first(&over), ptr);
            assert_eq!(over.layout().shape().as_slice(), view.shape());
            let back = from_flex(over).unwrap();
            assert_eq!(back.any().buffer().as_ptr(), ptr);
            assert_eq!(back.any().layout(), view.layout());
            assert_eq!(
                back.any().typed::<f32>().unwrap().to_vec().unwrap(),
                view.typed::<f32>().unwrap().to_vec().unwrap()
            );
        }
        let theirs = FlexTensor::from_data(TensorData::from([[1i64, 2], [3, 4]])).transpose(0, 1);
        let ptr = first(&theirs);
        let ours = from_flex(theirs.clone()).unwrap();
        assert_eq!(ours.any().buffer().as_ptr(), ptr);
        assert_eq!(ours.any().typed::<i64>().unwrap().to_vec().unwrap(), [1, 3, 2, 4]);
        let again: FlexTensor = ours.into();
        assert_eq!(first(&again), ptr);
    }

    #[test]
    fn flex_writes_in_place_only_into_memory_that_nobody_else_holds() {
        let any = Tensor::<f32>::full(&[4], 2.0).unwrap();
        let (ptr, shared) = (any.buffer().as_ptr(), T4aTensor::new(any.into()).unwrap());
        let negated = flex!(float_neg(shared.clone().into()));
        assert_eq!(shared.any().typed::<f32>().unwrap().to_vec().unwrap(), [2.0; 4]);
        assert_eq!(negated.any().typed::<f32>().unwrap().to_vec().unwrap(), [-2.0; 4]);
        let unique = flex!(float_neg(shared.into()));
        assert_eq!(unique.any().buffer().as_ptr(), ptr);
        assert_eq!(unique.any().typed::<f32>().unwrap().to_vec().unwrap(), [-2.0; 4]);
    }

    #[test]
    fn bytes_that_are_no_booleans_are_normalised() {
        let dtype = BurnDType::Bool(BoolDType::U8);
        let theirs = FlexTensor::from_data(TensorData::from_bytes_vec(vec![0, 7, 1], [3], dtype));
        let ours = from_flex(theirs).unwrap();
        assert_eq!(ours.dtype(), dtype);
        assert_eq!(ours.any().typed::<bool>().unwrap().to_vec().unwrap(), [false, true, true]);
    }
}
