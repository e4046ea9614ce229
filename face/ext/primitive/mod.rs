//! Implementation of the array traits of `t4a-diff`, in which derivative rules are written, for primitives of any
//! backend.

mod array;
mod elements;

use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IntTensor};
use burn_backend::{
    Backend, BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape as BurnShape, Slice,
    TensorData, TensorMetadata, try_read_sync,
};
use t4a_diff::array::Shape;
use t4a_diff::{Flags, Integers};
use t4a_tensor::{AnyTensor, DType, Result, TensorError};

pub use elements::{ElementParts, SemiringArray};

use crate::ext::line::{T4aTensor, bool_device, device_settings, dtype, float_device, int_device};

/// Float primitive of a backend.
#[derive(Clone, Debug)]
pub struct Floats<B: Backend>(pub FloatTensor<B>);

/// Integer primitive of a backend, used for indices.
#[derive(Clone, Debug)]
pub struct Indices<B: Backend>(pub IntTensor<B>);

/// Boolean primitive of a backend.
#[derive(Clone, Debug)]
pub struct Bools<B: Backend>(pub BoolTensor<B>);

impl<B: Backend> Floats<B> {
    fn device(&self) -> Device<B> {
        float_device::<B>(&self.0)
    }

    fn float(&self) -> FloatDType {
        self.0.dtype().into()
    }

    fn bools(&self) -> BoolDType {
        device_settings::<B>(&self.device()).bool_dtype
    }

    pub(crate) fn ints(&self) -> IntDType {
        device_settings::<B>(&self.device()).int_dtype
    }

    /// Expands both operands to their common shape; some backends do not broadcast in comparisons and selections.
    fn broadcast(&self, y: &Self) -> [FloatTensor<B>; 2] {
        let (a, b) = (self.0.shape(), y.0.shape());
        if a == b {
            return [self.0.clone(), y.0.clone()];
        }
        let common: BurnShape = a.iter().zip(b.iter()).map(|(&a, &b)| a.max(b)).collect();
        [self, y].map(|x| B::float_expand(x.0.clone(), common.clone()))
    }
}

/// Unwraps the data that a backend returns for a read.
fn read(
    data: impl Future<Output = std::result::Result<TensorData, ExecutionError>>,
) -> Result<AnyTensor> {
    let failed = |message: String| TensorError::value("reading a tensor", message);
    match try_read_sync(data) {
        Some(Ok(data)) => Ok(T4aTensor::try_from_data(data)?.into_any()),
        Some(Err(error)) => Err(failed(format!("the backend could not hand out data: {error:?}"))),
        None => Err(failed("the backend hands out data asynchronously only".into())),
    }
}

/// Converts a shape to Burn's; a scalar has shape `[1]`, since Burn has no rank 0.
pub(crate) fn shape(sizes: &[usize]) -> BurnShape {
    if sizes.is_empty() { BurnShape::from([1]) } else { sizes.iter().copied().collect() }
}

/// Slices that select `len` elements of an axis from `start` with stride `step`.
fn along(axis: usize, start: usize, len: usize, step: usize) -> Vec<Slice> {
    let mut slices = vec![Slice::full(); axis + 1];
    let end = if len == 0 { start } else { start + (len - 1) * step + 1 };
    slices[axis] = Slice::new(start as isize, Some(end as isize), step as isize);
    slices
}

impl<B: Backend> Indices<B> {
    fn compared(
        &self,
        j: &Self,
        f: impl FnOnce(IntTensor<B>, IntTensor<B>, BoolDType) -> BoolTensor<B>,
    ) -> Bools<B> {
        let (a, b) = (self.0.shape(), j.0.shape());
        let common: BurnShape = a.iter().zip(b.iter()).map(|(&a, &b)| a.max(b)).collect();
        let [a, b] = [self, j].map(|i| B::int_expand(i.0.clone(), common.clone()));
        let bools = device_settings::<B>(&int_device::<B>(&a)).bool_dtype;
        Bools(f(a, b, bools))
    }
}

impl<B: Backend> Integers for Indices<B> {
    type Flags = Bools<B>;

    fn shape(&self) -> Shape {
        self.0.shape().to_vec()
    }
    fn dtype(&self) -> DType {
        dtype(self.0.dtype())
    }
    fn elements(&self) -> Result<AnyTensor> {
        read(B::int_into_data(self.0.clone()))
    }
    fn full(&self, sizes: &[usize], c: i64) -> Self {
        let device = int_device::<B>(&self.0);
        Self(B::int_full(shape(sizes), Scalar::Int(c), &device, self.0.dtype().into()))
    }
    fn reshape(&self, sizes: &[usize]) -> Self {
        Self(B::int_reshape(self.0.clone(), shape(sizes)))
    }
    fn expand(&self, sizes: &[usize]) -> Self {
        Self(B::int_expand(self.0.clone(), shape(sizes)))
    }
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        Self(B::int_slice(self.0.clone(), &along(axis, start, len, 1)))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        Self(B::int_cat(arrays.iter().map(|i| i.0.clone()).collect(), axis))
    }
    fn shift(&self, c: i64) -> Self {
        Self(B::int_add_scalar(self.0.clone(), Scalar::Int(c)))
    }
    fn equal(&self, j: &Self) -> Bools<B> {
        self.compared(j, B::int_equal)
    }
    fn greater(&self, j: &Self) -> Bools<B> {
        self.compared(j, B::int_greater)
    }
    fn at_least(&self, c: i64) -> Bools<B> {
        let bools = device_settings::<B>(&int_device::<B>(&self.0)).bool_dtype;
        Bools(B::int_greater_equal_elem(self.0.clone(), Scalar::Int(c), bools))
    }
    fn fill(&self, flags: &Bools<B>, c: i64) -> Self {
        Self(B::int_mask_fill(self.0.clone(), flags.0.clone(), Scalar::Int(c)))
    }
}

impl<B: Backend> Flags for Bools<B> {
    fn shape(&self) -> Shape {
        self.0.shape().to_vec()
    }
    fn elements(&self) -> Result<AnyTensor> {
        read(B::bool_into_data(self.0.clone()))
    }
    fn full(&self, sizes: &[usize], holds: bool) -> Self {
        let (device, dtype) = (bool_device::<B>(&self.0), self.0.dtype().into());
        Self(match holds {
            true => B::bool_ones(shape(sizes), &device, dtype),
            false => B::bool_zeros(shape(sizes), &device, dtype),
        })
    }
    fn reshape(&self, sizes: &[usize]) -> Self {
        Self(B::bool_reshape(self.0.clone(), shape(sizes)))
    }
    fn expand(&self, sizes: &[usize]) -> Self {
        Self(B::bool_expand(self.0.clone(), shape(sizes)))
    }
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        Self(B::bool_slice(self.0.clone(), &along(axis, start, len, 1)))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        Self(B::bool_cat(arrays.iter().map(|b| b.0.clone()).collect(), axis))
    }
    fn and(&self, rhs: &Self) -> Self {
        Self(B::bool_and(self.0.clone(), rhs.0.clone()))
    }
    fn or(&self, rhs: &Self) -> Self {
        Self(B::bool_or(self.0.clone(), rhs.0.clone()))
    }
    fn not(&self) -> Self {
        Self(B::bool_not(self.0.clone()))
    }
    fn any(&self, axis: usize) -> Self {
        Self(B::bool_any_dim(self.0.clone(), axis))
    }
}
