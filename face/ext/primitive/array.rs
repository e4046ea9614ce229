//! Implementation of `Array` for float primitives of a backend.

use burn_backend::{Scalar, TensorMetadata};
use t4a_diff::array::{
    BlockCopies, BlockProducts, Cumulation, MatrixFactors, MatrixKernel, Semiring, Shape,
};
use t4a_diff::{Array, Dual, Operation, Outcome, Value};
use t4a_tensor::{AnyTensor, DType, Result};

use super::{Bools, Floats, Indices, along, read, shape};
use crate::boundary::accept;
use crate::ext::line::{T4aTensor, dtype, scatter_add};
use crate::ext::operation::{Operand, Operations};

impl<B: Operations> Array for Floats<B> {
    type Integers = Indices<B>;
    type Flags = Bools<B>;

    fn shape(&self) -> Shape {
        self.0.shape().to_vec()
    }
    fn dtype(&self) -> DType {
        dtype(self.0.dtype())
    }
    fn full(&self, sizes: &[usize], c: f64) -> Self {
        let (device, float) = (self.device(), self.float());
        Self(match c {
            0.0 => B::float_zeros(shape(sizes), &device, float),
            1.0 => B::float_ones(shape(sizes), &device, float),
            c => B::float_full(shape(sizes), Scalar::Float(c), &device, float),
        })
    }
    fn constant(&self, elements: AnyTensor) -> Self {
        let data = accept(T4aTensor::from_any(elements).and_then(T4aTensor::try_into_data));
        Self(B::float_from_data(data, &self.device()))
    }
    fn indices(&self, elements: AnyTensor) -> Indices<B> {
        let data = accept(T4aTensor::from_any(elements).and_then(T4aTensor::try_into_data));
        Indices(B::int_from_data(data.convert_dtype(self.ints().into()), &self.device()))
    }
    fn counting(&self, n: usize) -> Indices<B> {
        Indices(B::int_arange(0..n as i64, &self.device(), self.ints()))
    }
    fn indicator(&self, flags: &Bools<B>) -> Self {
        Self(B::bool_into_float(flags.0.clone(), self.float()))
    }
    fn detach(&self) -> Self {
        Self(B::float_detach(self.0.clone()))
    }
    fn elements(&self) -> Result<AnyTensor> {
        read(B::float_into_data(self.0.clone()))
    }
    fn apply<O: Operation>(
        op: &O,
        inputs: &[Operand<B>],
        tracked: &[bool],
    ) -> Result<Outcome<Self>, O::Error> {
        B::run(op, inputs, tracked)
    }
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Self>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Self>>, O::Error> {
        B::jvp(op, inputs, tracked)
    }
    fn add(&self, y: &Self) -> Self {
        Self(B::float_add(self.0.clone(), y.0.clone()))
    }
    fn sub(&self, y: &Self) -> Self {
        Self(B::float_sub(self.0.clone(), y.0.clone()))
    }
    fn plus(self, y: &Self) -> Self {
        Self(B::float_add(self.0, y.0.clone()))
    }
    fn minus(self, y: &Self) -> Self {
        Self(B::float_sub(self.0, y.0.clone()))
    }
    fn mul(&self, y: &Self) -> Self {
        Self(B::float_mul(self.0.clone(), y.0.clone()))
    }
    fn div(&self, y: &Self) -> Self {
        Self(B::float_div(self.0.clone(), y.0.clone()))
    }
    fn shift(&self, c: f64) -> Self {
        Self(B::float_add_scalar(self.0.clone(), Scalar::Float(c)))
    }
    fn scale(&self, c: f64) -> Self {
        Self(B::float_mul_scalar(self.0.clone(), Scalar::Float(c)))
    }
    fn neg(&self) -> Self {
        Self(B::float_neg(self.0.clone()))
    }
    fn recip(&self) -> Self {
        Self(B::float_recip(self.0.clone()))
    }
    fn exp(&self) -> Self {
        Self(B::float_exp(self.0.clone()))
    }
    fn ln(&self) -> Self {
        Self(B::float_log(self.0.clone()))
    }
    fn sqrt(&self) -> Self {
        Self(B::float_sqrt(self.0.clone()))
    }
    fn pow(&self, p: f64) -> Self {
        Self(B::float_powf_scalar(self.0.clone(), Scalar::Float(p)))
    }
    fn tanh(&self) -> Self {
        Self(B::float_tanh(self.0.clone()))
    }
    fn ln_1p(&self) -> Self {
        Self(B::float_log1p(self.0.clone()))
    }
    fn sin(&self) -> Self {
        Self(B::float_sin(self.0.clone()))
    }
    fn cos(&self) -> Self {
        Self(B::float_cos(self.0.clone()))
    }
    fn erf(&self) -> Self {
        Self(B::float_erf(self.0.clone()))
    }
    fn abs(&self) -> Self {
        Self(B::float_abs(self.0.clone()))
    }
    fn sign(&self) -> Self {
        Self(B::float_sign(self.0.clone()))
    }
    fn equal(&self, y: &Self) -> Bools<B> {
        let [a, b] = self.broadcast(y);
        Bools(B::float_equal(a, b, self.bools()))
    }
    fn greater(&self, y: &Self) -> Bools<B> {
        let [a, b] = self.broadcast(y);
        Bools(B::float_greater(a, b, self.bools()))
    }
    fn equals(&self, c: f64) -> Bools<B> {
        Bools(B::float_equal_elem(self.0.clone(), Scalar::Float(c), self.bools()))
    }
    fn is_nan(&self) -> Bools<B> {
        Bools(B::float_is_nan(self.0.clone(), self.bools()))
    }
    fn replace(&self, flags: &Bools<B>, y: &Self) -> Self {
        Self(B::float_mask_where(self.0.clone(), flags.0.clone(), y.0.clone()))
    }
    fn fill(&self, flags: &Bools<B>, c: f64) -> Self {
        Self(B::float_mask_fill(self.0.clone(), flags.0.clone(), Scalar::Float(c)))
    }
    fn reshape(&self, sizes: &[usize]) -> Self {
        Self(B::float_reshape(self.0.clone(), shape(sizes)))
    }
    fn permute(&self, axes: &[usize]) -> Self {
        Self(B::float_permute(self.0.clone(), axes))
    }
    fn expand(&self, sizes: &[usize]) -> Self {
        Self(B::float_expand(self.0.clone(), shape(sizes)))
    }
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self {
        Self(B::float_slice(self.0.clone(), &along(axis, start, len, step)))
    }
    fn embed(&self, axis: usize, start: usize, step: usize, size: usize) -> Self {
        let mut sizes = self.shape();
        let len = std::mem::replace(&mut sizes[axis], size);
        let zeros = self.full(&sizes, 0.0).0;
        Self(B::float_slice_assign(zeros, &along(axis, start, len, step), self.0.clone()))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        Self(B::float_cat(arrays.iter().map(|x| x.0.clone()).collect(), axis))
    }
    fn flip(&self, axes: &[usize]) -> Self {
        Self(B::float_flip(self.0.clone(), axes))
    }
    fn sum(&self, axis: usize) -> Self {
        Self(B::float_sum_dim(self.0.clone(), axis))
    }
    fn mean(&self, axis: usize) -> Self {
        Self(B::float_mean_dim(self.0.clone(), axis))
    }
    fn max(&self, axis: usize) -> Self {
        B::array_extreme(self, axis, false)
    }
    fn min(&self, axis: usize) -> Self {
        B::array_extreme(self, axis, true)
    }
    fn argmin(&self, axis: usize) -> Indices<B> {
        B::array_place(self, axis, true)
    }
    fn argmax(&self, axis: usize) -> Indices<B> {
        B::array_place(self, axis, false)
    }
    fn cumsum(&self, axis: usize) -> Self {
        B::array_cumsum(self, axis)
    }
    fn gather(&self, axis: usize, index: &Indices<B>) -> Self {
        Self(B::float_gather(axis, self.0.clone(), index.0.clone()))
    }
    fn scatter_add(&self, axis: usize, index: &Indices<B>, y: &Self) -> Self {
        Self(scatter_add::<B>(axis, self.0.clone(), index.0.clone(), y.0.clone()))
    }
    fn matmul(&self, y: &Self) -> Self {
        B::array_matmul(self, y)
    }
    fn recurrence(
        &self,
        b: &Self,
        first: Option<&Self>,
        axis: usize,
        reverse: bool,
    ) -> Option<Self> {
        B::array_recurrence(self, b, first, axis, reverse)
    }
    fn complex_recurrence(
        a: [&Self; 2],
        b: [&Self; 2],
        first: Option<[&Self; 2]>,
        axis: usize,
        reverse: bool,
    ) -> Option<[Self; 2]> {
        B::array_complex_recurrence(a, b, first, axis, reverse)
    }
    fn cumulative(&self, of: Cumulation, axis: usize, reverse: bool) -> Option<Self> {
        B::array_cumulative(self, of, axis, reverse)
    }
    fn semiring_matmul(
        &self,
        b: &Self,
        over: Semiring,
        places: bool,
    ) -> Option<(Self, Option<Indices<B>>)> {
        B::array_semiring_matmul(self, b, over, places)
    }
    fn block_products(&self, b: &Self, of: &BlockProducts) -> Option<Self> {
        B::array_block_products(self, b, of)
    }
    fn block_copies(&self, of: &BlockCopies) -> Option<Self> {
        B::array_block_copies(self, of)
    }
    fn matrix_kernel(&self, of: MatrixKernel, b: Option<&Self>) -> Option<MatrixFactors<Self>> {
        B::array_matrix_kernel(self, of, b)
    }
    fn semiring_cotangents(&self, b: &Self, over: Semiring, g: &Self) -> Option<[Self; 2]> {
        B::array_semiring_cotangents(self, b, over, g)
    }
}
