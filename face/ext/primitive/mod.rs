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

/// A primitive of any kind.
trait Primitive: Clone {
    /// The type of the backend.
    type Of: TensorMetadata;

    fn new(x: Self::Of) -> Self;
    fn inner(&self) -> Self::Of;
    /// A primitive without elements.
    fn empty(&self, sizes: &[usize]) -> Self;

    fn sizes(&self) -> Shape {
        self.inner().shape().to_vec()
    }

    fn is_empty(&self) -> bool {
        self.inner().shape().contains(&0)
    }

    /// An elementwise function.
    fn map(&self, f: impl FnOnce(Self::Of) -> Self::Of) -> Self {
        if self.is_empty() { self.clone() } else { Self::new(f(self.inner())) }
    }

    /// The result of `f`, which has these sizes.
    fn sized(&self, sizes: &[usize], f: impl FnOnce() -> Self::Of) -> Self {
        if sizes.contains(&0) { self.empty(sizes) } else { Self::new(f()) }
    }

    /// `len` elements of an axis from `start` with stride `step`.
    fn sliced(
        &self,
        [axis, start, len, step]: [usize; 4],
        f: impl FnOnce(Self::Of, &[Slice]) -> Self::Of,
    ) -> Self {
        let mut sizes = self.sizes();
        sizes[axis] = len;
        self.sized(&sizes, || f(self.inner(), &along(axis, start, len, step)))
    }

    /// The concatenation.
    fn joined(
        arrays: &[Self],
        axis: usize,
        f: impl FnOnce(Vec<Self::Of>, usize) -> Self::Of,
    ) -> Self {
        let mut sizes = arrays[0].sizes();
        sizes[axis] = arrays.iter().map(|x| x.sizes()[axis]).sum();
        let whole = || arrays.iter().filter(|x| !x.is_empty()).map(Self::inner).collect();
        arrays[0].sized(&sizes, || f(whole(), axis))
    }

    /// The elements on the host.
    fn host<R>(&self, f: impl FnOnce(Self::Of) -> R) -> Result<AnyTensor>
    where
        R: Future<Output = std::result::Result<TensorData, ExecutionError>>,
    {
        let x = self.inner();
        match self.is_empty() {
            true => {
                read(async { Ok(TensorData::from_bytes_vec(Vec::new(), x.shape(), x.dtype())) })
            }
            false => read(f(x)),
        }
    }
}

impl<B: Backend> Primitive for Floats<B> {
    type Of = FloatTensor<B>;

    fn new(x: FloatTensor<B>) -> Self {
        Self(x)
    }
    fn inner(&self) -> FloatTensor<B> {
        self.0.clone()
    }
    fn empty(&self, sizes: &[usize]) -> Self {
        Self(B::float_empty(shape(sizes), &self.device(), self.float()))
    }
}

impl<B: Backend> Primitive for Indices<B> {
    type Of = IntTensor<B>;

    fn new(x: IntTensor<B>) -> Self {
        Self(x)
    }
    fn inner(&self) -> IntTensor<B> {
        self.0.clone()
    }
    fn empty(&self, sizes: &[usize]) -> Self {
        Self(B::int_empty(shape(sizes), &int_device::<B>(&self.0), self.0.dtype().into()))
    }
}

impl<B: Backend> Primitive for Bools<B> {
    type Of = BoolTensor<B>;

    fn new(x: BoolTensor<B>) -> Self {
        Self(x)
    }
    fn inner(&self) -> BoolTensor<B> {
        self.0.clone()
    }
    fn empty(&self, sizes: &[usize]) -> Self {
        Self(B::bool_empty(shape(sizes), &bool_device::<B>(&self.0), self.0.dtype().into()))
    }
}

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
        let mut sizes = self.sizes();
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
        self.host(B::int_into_data)
    }
    fn full(&self, sizes: &[usize], c: i64) -> Self {
        let device = int_device::<B>(&self.0);
        self.sized(sizes, || {
            B::int_full(shape(sizes), Scalar::Int(c), &device, self.0.dtype().into())
        })
    }
    fn reshape(&self, sizes: &[usize]) -> Self {
        Self(B::int_reshape(self.0.clone(), shape(sizes)))
    }
    fn expand(&self, sizes: &[usize]) -> Self {
        Self(B::int_expand(self.0.clone(), shape(sizes)))
    }
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        self.sliced([axis, start, len, 1], B::int_slice)
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        Self::joined(arrays, axis, B::int_cat)
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

impl<B: Backend> Flags for Bools<B> {
    fn shape(&self) -> Shape {
        self.0.shape().to_vec()
    }
    fn elements(&self) -> Result<AnyTensor> {
        self.host(B::bool_into_data)
    }
    fn full(&self, sizes: &[usize], holds: bool) -> Self {
        let (device, dtype) = (bool_device::<B>(&self.0), self.0.dtype().into());
        self.sized(sizes, || match holds {
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
        self.sliced([axis, start, len, 1], B::bool_slice)
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        Self::joined(arrays, axis, B::bool_cat)
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
        let mut sizes = self.sizes();
        sizes[axis] = 1;
        Flags::full(self, &sizes, false)
    }
}
