//! Implementation of `Array` for float primitives of a backend.

use burn_backend::{Scalar, TensorMetadata};
use t4a_diff::array::{
    BlockCopies, BlockProducts, Cumulation, MatrixFactors, MatrixKernel, PairParts, Semiring, Shape,
};
use t4a_diff::{Array, Dual, Operation, Outcome, Value};
use t4a_tensor::{AnyTensor, DType, Result};

use super::{Bools, Floats, Indices, Primitive, along, common_size, shape};
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
        self.sized(sizes, || match c {
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
        Indices(match n {
            0 => B::int_empty(shape(&[0]), &self.device(), self.ints()),
            n => B::int_arange(0..n as i64, &self.device(), self.ints()),
        })
    }
    fn indicator(&self, flags: &Bools<B>) -> Self {
        self.sized(&flags.sizes(), || B::bool_into_float(flags.0.clone(), self.float()))
    }
    fn detach(&self) -> Self {
        Self(B::float_detach(self.0.clone()))
    }
    fn elements(&self) -> Result<AnyTensor> {
        self.host(B::float_into_data)
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
        self.with(y, B::float_add)
    }
    fn sub(&self, y: &Self) -> Self {
        self.with(y, B::float_sub)
    }
    fn plus(self, y: &Self) -> Self {
        if self.is_empty() || y.is_empty() {
            self.add(y)
        } else {
            Self(B::float_add(self.0, y.0.clone()))
        }
    }
    fn minus(self, y: &Self) -> Self {
        if self.is_empty() || y.is_empty() {
            self.sub(y)
        } else {
            Self(B::float_sub(self.0, y.0.clone()))
        }
    }
    fn mul(&self, y: &Self) -> Self {
        self.with(y, B::float_mul)
    }
    fn div(&self, y: &Self) -> Self {
        self.with(y, B::float_div)
    }
    fn shift(&self, c: f64) -> Self {
        self.map(|x| B::float_add_scalar(x, Scalar::Float(c)))
    }
    fn scale(&self, c: f64) -> Self {
        self.map(|x| B::float_mul_scalar(x, Scalar::Float(c)))
    }
    fn neg(&self) -> Self {
        self.map(B::float_neg)
    }
    fn recip(&self) -> Self {
        self.map(B::float_recip)
    }
    fn exp(&self) -> Self {
        self.map(B::float_exp)
    }
    fn ln(&self) -> Self {
        self.map(B::float_log)
    }
    fn sqrt(&self) -> Self {
        self.map(B::float_sqrt)
    }
    fn pow(&self, p: f64) -> Self {
        self.map(|x| B::float_powf_scalar(x, Scalar::Float(p)))
    }
    fn tanh(&self) -> Self {
        self.map(B::float_tanh)
    }
    fn ln_1p(&self) -> Self {
        self.map(B::float_log1p)
    }
    fn sin(&self) -> Self {
        self.map(B::float_sin)
    }
    fn cos(&self) -> Self {
        self.map(B::float_cos)
    }
    fn erf(&self) -> Self {
        self.map(B::float_erf)
    }
    fn abs(&self) -> Self {
        self.map(B::float_abs)
    }
    fn sign(&self) -> Self {
        self.map(B::float_sign)
    }
    fn equal(&self, y: &Self) -> Bools<B> {
        let [a, b] = self.broadcast(y);
        self.compared(a, |a, bools| B::float_equal(a, b, bools))
    }
    fn greater(&self, y: &Self) -> Bools<B> {
        let [a, b] = self.broadcast(y);
        self.compared(a, |a, bools| B::float_greater(a, b, bools))
    }
    fn equals(&self, c: f64) -> Bools<B> {
        self.compared(self.0.clone(), |x, bools| B::float_equal_elem(x, Scalar::Float(c), bools))
    }
    fn is_nan(&self) -> Bools<B> {
        self.compared(self.0.clone(), B::float_is_nan)
    }
    fn replace(&self, flags: &Bools<B>, y: &Self) -> Self {
        self.map(|x| B::float_mask_where(x, flags.0.clone(), y.0.clone()))
    }
    fn fill(&self, flags: &Bools<B>, c: f64) -> Self {
        self.map(|x| B::float_mask_fill(x, flags.0.clone(), Scalar::Float(c)))
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
        self.sliced([axis, start, len, step], B::float_slice)
    }
    fn embed(&self, axis: usize, start: usize, step: usize, size: usize) -> Self {
        let mut sizes = self.shape();
        let len = std::mem::replace(&mut sizes[axis], size);
        let zeros = self.full(&sizes, 0.0).0;
        if self.is_empty() {
            return Self(zeros);
        }
        Self(B::float_slice_assign(zeros, &along(axis, start, len, step), self.0.clone()))
    }
    fn cat(arrays: &[Self], axis: usize) -> Self {
        Self::joined(arrays, axis, B::float_cat)
    }
    fn flip(&self, axes: &[usize]) -> Self {
        self.map(|x| B::float_flip(x, axes))
    }
    fn sum(&self, axis: usize) -> Self {
        self.reduce(axis, 0.0, B::float_sum_dim)
    }
    fn mean(&self, axis: usize) -> Self {
        self.reduce(axis, f64::NAN, B::float_mean_dim)
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
        self.sized(&index.sizes(), || B::float_gather(axis, self.0.clone(), index.0.clone()))
    }
    fn scatter_add(&self, axis: usize, index: &Indices<B>, y: &Self) -> Self {
        match y.is_empty() {
            true => self.clone(),
            false => Self(scatter_add::<B>(axis, self.0.clone(), index.0.clone(), y.0.clone())),
        }
    }
    fn matmul(&self, y: &Self) -> Self {
        if !self.is_empty() && !y.is_empty() {
            return B::array_matmul(self, y);
        }
        let ([mut sizes, others], rank) = ([self.shape(), y.shape()], self.0.shape().rank());
        sizes.iter_mut().zip(&others).take(rank - 2).for_each(|(a, &b)| {
            *a = common_size(*a, b);
        });
        sizes[rank - 1] = others[rank - 1];
        self.full(&sizes, 0.0)
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
    fn has_complex_products(&self) -> bool {
        B::has_complex_products(self)
    }
    fn complex_matmul(
        a: PairParts<'_, Self>,
        b: PairParts<'_, Self>,
        conj: [bool; 2],
    ) -> Option<[Self; 2]> {
        let first = |parts: PairParts<'_, Self>| parts.into_iter().flatten().next().cloned();
        let (x, y) = (first(a)?, first(b)?);
        if !x.is_empty() && !y.is_empty() {
            return B::array_complex_matmul(a, b, conj);
        }
        let zeros = x.full(&[x.shape()[0], x.shape()[1], y.shape()[2]], 0.0);
        Some([zeros.clone(), zeros])
    }
    fn complex_block_products(
        a: PairParts<'_, Self>,
        b: PairParts<'_, Self>,
        conj: [bool; 2],
        of: &BlockProducts,
    ) -> Option<[Self; 2]> {
        B::array_complex_block_products(a, b, conj, of)
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
