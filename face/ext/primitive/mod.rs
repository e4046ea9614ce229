//! Implementation of the array traits of `t4a-diff`, in which derivative rules are written, for primitives of any
//! backend.
//!
//! Functions of a backend are not called for results without elements: those of CubeCL launch a kernel of no cubes,
//! which CUDA refuses, and after a refused launch its device accepts no other work.

mod array;
mod elements;

use burn_backend::tensor::{BoolTensor, Device, FloatTensor, IntTensor};
use burn_backend::{
    Backend, BoolDType, ExecutionError, FloatDType, IntDType, Scalar, Shape as BurnShape, Slice,
    TensorData, TensorMetadata, try_read_sync,
};
use t4a_diff::array::Shape;
use t4a_diff::{Array, Flags, Integers};
use t4a_tensor::{AnyTensor, DType, Result, TensorError};

pub use elements::{ElementParts, SemiringArray};

use crate::ext::line::{T4aTensor, bool_device, device_settings, dtype, float_device, int_device};
use crate::ext::operation::Operations;

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

    fn is_empty(&self) -> bool {
        self.0.shape().contains(&0)
    }

    /// An array without elements.
    fn empty(&self, sizes: &[usize]) -> Self {
        Self(B::float_empty(shape(sizes), &self.device(), self.float()))
    }

    /// An elementwise function.
    fn map(&self, f: impl FnOnce(FloatTensor<B>) -> FloatTensor<B>) -> Self {
        if self.is_empty() { self.clone() } else { Self(f(self.0.clone())) }
    }

    /// An elementwise function of two arrays, which broadcasts.
    fn with(
        &self,
        y: &Self,
        f: impl FnOnce(FloatTensor<B>, FloatTensor<B>) -> FloatTensor<B>,
    ) -> Self {
        match self.is_empty() || y.is_empty() {
            true => self.empty(&common(&self.0.shape(), &y.0.shape())),
            false => Self(f(self.0.clone(), y.0.clone())),
        }
    }

    /// A predicate of the elements of `x`.
    fn compared(
        &self,
        x: FloatTensor<B>,
        f: impl FnOnce(FloatTensor<B>, BoolDType) -> BoolTensor<B>,
    ) -> Bools<B> {
        Bools(match x.shape().contains(&0) {
            true => B::bool_empty(x.shape(), &self.device(), self.bools()),
            false => f(x, self.bools()),
        })
    }

    /// A reduction along an axis; `none` is that of no elements.
    fn reduce(
        &self,
        axis: usize,
        none: f64,
        f: impl FnOnce(FloatTensor<B>, usize) -> FloatTensor<B>,
    ) -> Self
    where
        B: Operations,
    {
        if !self.is_empty() {
            return Self(f(self.0.clone(), axis));
        }
        let mut sizes = self.0.shape().to_vec();
        sizes[axis] = 1;
        Array::full(self, &sizes, none)
    }

    /// Expands both operands to their common shape; some backends do not broadcast in comparisons and selections.
    fn broadcast(&self, y: &Self) -> [FloatTensor<B>; 2] {
        let (a, b) = (self.0.shape(), y.0.shape());
        if a == b {
            return [self.0.clone(), y.0.clone()];
        }
        let common = shape(&common(&a, &b));
        [self, y].map(|x| B::float_expand(x.0.clone(), common.clone()))
    }
}

/// Size of an axis after broadcasting.
fn common_size(a: usize, b: usize) -> usize {
    if a == 1 { b } else { a }
}

fn common(a: &[usize], b: &[usize]) -> Vec<usize> {
    a.iter().zip(b).map(|(&a, &b)| common_size(a, b)).collect()
}

/// The elements of a tensor that has none.
fn empty_elements(x: &impl TensorMetadata) -> Result<AnyTensor> {
    read(async { Ok(TensorData::from_bytes_vec(Vec::new(), x.shape(), x.dtype())) })
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
        let common = shape(&common(&a, &b));
        let [a, b] = [self, j].map(|i| B::int_expand(i.0.clone(), common.clone()));
        Self(a).flags(|a, bools| f(a, b, bools))
    }

    fn is_empty(&self) -> bool {
        self.0.shape().contains(&0)
    }

    /// An array without elements.
    fn empty(&self, sizes: &[usize]) -> Self {
        Self(B::int_empty(shape(sizes), &int_device::<B>(&self.0), self.0.dtype().into()))
    }

    /// An elementwise function.
    fn map(&self, f: impl FnOnce(IntTensor<B>) -> IntTensor<B>) -> Self {
        if self.is_empty() { self.clone() } else { Self(f(self.0.clone())) }
    }

    /// A predicate of the elements.
    fn flags(&self, f: impl FnOnce(IntTensor<B>, BoolDType) -> BoolTensor<B>) -> Bools<B> {
        let device = int_device::<B>(&self.0);
        let bools = device_settings::<B>(&device).bool_dtype;
        Bools(match self.is_empty() {
            true => B::bool_empty(self.0.shape(), &device, bools),
            false => f(self.0.clone(), bools),
        })
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
        match self.is_empty() {
            true => empty_elements(&self.0),
            false => read(B::int_into_data(self.0.clone())),
        }
    }
    fn full(&self, sizes: &[usize], c: i64) -> Self {
        if sizes.contains(&0) {
            return self.empty(sizes);
        }
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
        let mut sizes = Integers::shape(self);
        sizes[axis] = len;
        match sizes.contains(&0) {
            true => self.empty(&sizes),
            false => Self(B::int_slice(self.0.clone(), &along(axis, start, len, 1))),
        }
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        let whole: Vec<_> = arrays.iter().filter(|i| !i.is_empty()).map(|i| i.0.clone()).collect();
        if whole.is_empty() {
            let mut sizes = Integers::shape(&arrays[0]);
            sizes[axis] = arrays.iter().map(|i| Integers::shape(i)[axis]).sum();
            return arrays[0].empty(&sizes);
        }
        Self(B::int_cat(whole, axis))
    }
    fn shift(&self, c: i64) -> Self {
        self.map(|i| B::int_add_scalar(i, Scalar::Int(c)))
    }
    fn equal(&self, j: &Self) -> Bools<B> {
        self.compared(j, B::int_equal)
    }
    fn greater(&self, j: &Self) -> Bools<B> {
        self.compared(j, B::int_greater)
    }
    fn at_least(&self, c: i64) -> Bools<B> {
        self.flags(|i, bools| B::int_greater_equal_elem(i, Scalar::Int(c), bools))
    }
    fn fill(&self, flags: &Bools<B>, c: i64) -> Self {
        self.map(|i| B::int_mask_fill(i, flags.0.clone(), Scalar::Int(c)))
    }
}

impl<B: Backend> Bools<B> {
    fn is_empty(&self) -> bool {
        self.0.shape().contains(&0)
    }

    /// An array without elements.
    fn empty(&self, sizes: &[usize]) -> Self {
        Self(B::bool_empty(shape(sizes), &bool_device::<B>(&self.0), self.0.dtype().into()))
    }

    /// An elementwise function.
    fn map(&self, f: impl FnOnce(BoolTensor<B>) -> BoolTensor<B>) -> Self {
        if self.is_empty() { self.clone() } else { Self(f(self.0.clone())) }
    }
}

impl<B: Backend> Flags for Bools<B> {
    fn shape(&self) -> Shape {
        self.0.shape().to_vec()
    }
    fn elements(&self) -> Result<AnyTensor> {
        match self.is_empty() {
            true => empty_elements(&self.0),
            false => read(B::bool_into_data(self.0.clone())),
        }
    }
    fn full(&self, sizes: &[usize], holds: bool) -> Self {
        if sizes.contains(&0) {
            return self.empty(sizes);
        }
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
        let mut sizes = Flags::shape(self);
        sizes[axis] = len;
        match sizes.contains(&0) {
            true => self.empty(&sizes),
            false => Self(B::bool_slice(self.0.clone(), &along(axis, start, len, 1))),
        }
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        let whole: Vec<_> = arrays.iter().filter(|b| !b.is_empty()).map(|b| b.0.clone()).collect();
        if whole.is_empty() {
            let mut sizes = Flags::shape(&arrays[0]);
            sizes[axis] = arrays.iter().map(|b| Flags::shape(b)[axis]).sum();
            return arrays[0].empty(&sizes);
        }
        Self(B::bool_cat(whole, axis))
    }
    fn and(&self, rhs: &Self) -> Self {
        self.map(|b| B::bool_and(b, rhs.0.clone()))
    }
    fn or(&self, rhs: &Self) -> Self {
        self.map(|b| B::bool_or(b, rhs.0.clone()))
    }
    fn not(&self) -> Self {
        self.map(B::bool_not)
    }
    fn any(&self, axis: usize) -> Self {
        if !self.is_empty() {
            return Self(B::bool_any_dim(self.0.clone(), axis));
        }
        let mut sizes = Flags::shape(self);
        sizes[axis] = 1;
        Flags::full(self, &sizes, false)
    }
}
