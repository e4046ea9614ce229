//! The array traits: operations on arrays of floats, of integers and of booleans.
//!
//! Elementwise operations of two arrays of one rank broadcast axes of size 1. Reductions keep their axis, with size 1. The
//! caller of an operation checks shapes before its rule runs; an implementor that finds an error nevertheless
//! propagates it to the result ([`Eager`]) or panics, as Burn's backends do.

mod blocks;
mod dual;
mod engine;
mod kernel;

use std::fmt::Debug;

use t4a_tensor::{AnyTensor, DType, Result, TensorError};

use crate::operation::{Operation, Outcome, Value};

#[cfg(test)]
mod tests;

pub use blocks::{
    BlockCopies, BlockCopy, BlockProducts, BlockSum, BlockTerm, DeviceTables, FlatMatrix,
};
pub use dual::Dual;
pub use engine::{Eager, ElementKind, Indices, Reals, Truths};
pub use kernel::{Cumulation, Kernel, MatrixFactors, MatrixKernel, Semiring};

/// Sizes of axes.
pub type Shape = Vec<usize>;

/// Real and imaginary part of complex numbers; a missing part is zero.
pub type PairParts<'a, A> = [Option<&'a A>; 2];

/// An array of floats of one dtype, known at run time.
pub trait Array: Clone + Debug + Sized + 'static {
    /// The integer array type of the same backend.
    type Integers: Integers<Flags = Self::Flags>;
    /// The boolean array type of the same backend.
    type Flags: Flags;

    /// Sizes of the axes.
    fn shape(&self) -> Shape;
    /// The element type.
    fn dtype(&self) -> DType;

    // Constants of this array's dtype and device.

    /// An array filled with `c`.
    fn full(&self, shape: &[usize], c: f64) -> Self;
    /// An array of these elements.
    fn constant(&self, elements: AnyTensor) -> Self;
    /// An index array of these elements.
    fn indices(&self, elements: AnyTensor) -> Self::Integers;
    /// `0, 1, …, n − 1`.
    fn counting(&self, n: usize) -> Self::Integers;
    /// 1 where true, else 0.
    fn indicator(&self, flags: &Self::Flags) -> Self;
    /// The same values without a derivative.
    fn detach(&self) -> Self;
    /// The elements as an engine tensor.
    ///
    /// # Errors
    /// The first error of the operations that computed it; that of a transfer.
    fn elements(&self) -> Result<AnyTensor>;

    // Arithmetic, elementwise.

    /// `x + y`.
    fn add(&self, y: &Self) -> Self;
    /// `x − y`.
    fn sub(&self, y: &Self) -> Self;
    /// `x y`.
    fn mul(&self, y: &Self) -> Self;
    /// `x / y`.
    fn div(&self, y: &Self) -> Self;
    /// `x + c`.
    fn shift(&self, c: f64) -> Self;
    /// `c x`.
    fn scale(&self, c: f64) -> Self;

    // Elementary functions.

    /// `1 / x`.
    fn recip(&self) -> Self;
    /// `eˣ`.
    fn exp(&self) -> Self;
    /// `ln x`.
    fn ln(&self) -> Self;
    /// `√x`.
    fn sqrt(&self) -> Self;
    /// `xᵖ`.
    fn pow(&self, p: f64) -> Self;
    /// `tanh x`.
    fn tanh(&self) -> Self;
    /// `ln(1 + x)`.
    fn ln_1p(&self) -> Self;
    /// `sin x`.
    fn sin(&self) -> Self;
    /// `cos x`.
    fn cos(&self) -> Self;
    /// `2/√π ∫₀ˣ e^(−t²) dt`.
    fn erf(&self) -> Self;
    /// `|x|`; its derivative at 0 is 0.
    fn abs(&self) -> Self;

    // Comparison and selection; not differentiable with respect to the compared values.

    /// `x = y`.
    fn equal(&self, y: &Self) -> Self::Flags;
    /// `x > y`.
    fn greater(&self, y: &Self) -> Self::Flags;
    /// `x = c`.
    fn equals(&self, c: f64) -> Self::Flags;
    /// True where x is NaN.
    fn is_nan(&self) -> Self::Flags;
    /// `y` where the flags are true, else `x`; all of one shape.
    fn replace(&self, flags: &Self::Flags, y: &Self) -> Self;
    /// `c` where the flags are true, else `x`; the flags have the shape of x.
    fn fill(&self, flags: &Self::Flags, c: f64) -> Self;

    // Movement.

    /// The same elements in row-major order.
    fn reshape(&self, shape: &[usize]) -> Self;
    /// Axis `k` of the result is axis `axes[k]`.
    fn permute(&self, axes: &[usize]) -> Self;
    /// Repeats axes of size 1.
    fn expand(&self, shape: &[usize]) -> Self;
    /// Elements `start, start + step, …` of an axis, `len` of them.
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self;
    /// Zeros of `size` along an axis, with x at `start, start + step, …`: the adjoint of
    /// [`Array::slice`].
    fn embed(&self, axis: usize, start: usize, step: usize, size: usize) -> Self;
    /// Concatenation along an axis; at least one array.
    fn cat(arrays: &[Self], axis: usize) -> Self;
    /// Reverses axes.
    fn flip(&self, axes: &[usize]) -> Self;

    // Reductions and cumulative sums.

    /// `Σ x` along an axis.
    fn sum(&self, axis: usize) -> Self;
    /// The index of the first maximum along an axis.
    fn argmax(&self, axis: usize) -> Self::Integers;
    /// `x₀, x₀ + x₁, …` along an axis.
    fn cumsum(&self, axis: usize) -> Self;

    // Indexing.

    /// `out[…, i, …] = x[…, index[…, i, …], …]`, with `i` at `axis`.
    fn gather(&self, axis: usize, index: &Self::Integers) -> Self;
    /// `x`, with `y[…, i, …]` added at `index[…, i, …]` of `axis`.
    fn scatter_add(&self, axis: usize, index: &Self::Integers, y: &Self) -> Self;

    /// `[…, m, k] · […, k, n]`, batch axes broadcast.
    fn matmul(&self, y: &Self) -> Self;

    /// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]` without memory for its terms, if the device has such a kernel; not
    /// recorded by tapes. With `places` also the first k whose term equals the sum, or is NaN, and the number of terms
    /// where the sum is the zero of the semiring; `None` over log-sum-exp.
    fn semiring_matmul(
        &self,
        _b: &Self,
        _over: Semiring,
        _places: bool,
    ) -> Option<(Self, Option<Self::Integers>)> {
        None
    }

    /// The cotangents of both operands of [`Array::semiring_matmul`] given `g`, that of its result, over a semiring
    /// with nonzero weights for all terms, if the device has such a kernel; not recorded by tapes.
    fn semiring_cotangents(&self, _b: &Self, _over: Semiring, _g: &Self) -> Option<[Self; 2]> {
        None
    }

    /// `h_t = a_t h_{t−1} + b_t` along an axis, for a of this shape, with the initial value `first` or 0, if the device
    /// has such a kernel; not recorded by tapes. With `reverse` time runs from the end of the axis.
    fn recurrence(
        &self,
        _b: &Self,
        _first: Option<&Self>,
        _axis: usize,
        _reverse: bool,
    ) -> Option<Self> {
        None
    }

    /// [`Array::recurrence`] of complex numbers as real and imaginary part.
    fn complex_recurrence(
        _a: [&Self; 2],
        _b: [&Self; 2],
        _first: Option<[&Self; 2]>,
        _axis: usize,
        _reverse: bool,
    ) -> Option<[Self; 2]> {
        None
    }

    /// A cumulative operation along an axis, from its end with `reverse`, if the device has such a kernel; not recorded
    /// by tapes.
    fn cumulative(&self, _of: Cumulation, _axis: usize, _reverse: bool) -> Option<Self> {
        None
    }

    /// Factors of small matrices `[β, m, n]`, or the solutions of the systems with right-hand sides `b`, if the device
    /// has such a kernel; not recorded by tapes.
    fn matrix_kernel(&self, _of: MatrixKernel, _b: Option<&Self>) -> Option<MatrixFactors<Self>> {
        None
    }

    /// Products of parts of two flat arrays, if the device has such a kernel; not recorded by tapes.
    fn block_products(&self, _b: &Self, _of: &BlockProducts) -> Option<Self> {
        None
    }

    /// True if the device has kernels for complex numbers with parts of this dtype: [`Array::complex_matmul`],
    /// [`Array::complex_block_products`].
    fn has_complex_products(&self) -> bool {
        false
    }

    /// `c[β, m, n] = Σₖ a[β, m, k] b[β, k, n]` of complex numbers, conjugated where `conj` is true, if the device has
    /// such a kernel; not recorded by tapes. One operand at least has both parts.
    fn complex_matmul(
        _a: PairParts<'_, Self>,
        _b: PairParts<'_, Self>,
        _conj: [bool; 2],
    ) -> Option<[Self; 2]> {
        None
    }

    /// [`Array::block_products`] of complex numbers, as [`Array::complex_matmul`].
    fn complex_block_products(
        _a: PairParts<'_, Self>,
        _b: PairParts<'_, Self>,
        _conj: [bool; 2],
        _of: &BlockProducts,
    ) -> Option<[Self; 2]> {
        None
    }

    /// Copies of parts of a flat array, if the device has such a kernel; not recorded by tapes.
    fn block_copies(&self, _of: &BlockCopies) -> Option<Self> {
        None
    }

    // Operations.

    /// The results of an operation, executed in the mode of the array type: fused kernels, one tape node, or a tangent
    /// rule. With `tracked` operands also its hidden results.
    ///
    /// # Errors
    /// Those of the operation.
    fn apply<O: Operation>(
        op: &O,
        inputs: &[Value<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Self>, O::Error>;

    /// The results of an operation and their tangents, given operands and tangents.
    ///
    /// # Errors
    /// Those of the rule.
    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Self>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Self>>, O::Error> {
        op.jvp(inputs, tracked)
    }

    // Derived operations.

    /// Elements `start, start + 1, …` of an axis, `len` of them.
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        self.slice(axis, start, len, 1)
    }

    /// An array of the same shape that is zero where x is the constant zero; detached.
    fn activity(&self) -> Self {
        let x = self.detach();
        let negative = x.neg();
        x.replace(&negative.greater(&x), &negative)
    }
    /// `x + y`, in place if x is the only owner of its memory.
    fn plus(self, y: &Self) -> Self {
        self.add(y)
    }
    /// `x + Σ cᵢ yᵢ` over the terms with `cᵢ ≠ 0`, in their order; in place if x is the only owner of its memory.
    fn plus_terms(self, terms: &[(f64, &Self)]) -> Self {
        terms.iter().fold(self, |sum, &(c, y)| match c {
            0.0 => sum,
            1.0 => sum.plus(y),
            c => sum.plus(&y.scale(c)),
        })
    }
    /// `Σ xᵢ yᵢ` of an array with each of some others of its shape as numbers, which have no derivative.
    ///
    /// # Errors
    /// Those of the arrays.
    fn dots(&self, others: &[&Self]) -> Result<Vec<f64>> {
        let n = self.shape().iter().product();
        let x = self.detach().reshape(&[1, n]);
        let dot = |y: &&Self| {
            let product = x.matmul(&y.detach().reshape(&[n, 1])).elements()?.cast(DType::F64)?;
            let missing = || TensorError::Value { op: "dot", message: "no element".into() };
            product.typed::<f64>()?.get(&[0, 0]).ok_or_else(missing)
        };
        others.iter().map(dot).collect()
    }
    /// `x − y`, in place if x is the only owner of its memory.
    fn minus(self, y: &Self) -> Self {
        self.sub(y)
    }
    /// `−x`.
    fn neg(&self) -> Self {
        self.scale(-1.0)
    }
    /// The maximum along an axis; the derivative is that of the first maximum.
    fn max(&self, axis: usize) -> Self {
        self.gather(axis, &self.argmax(axis))
    }
    /// The index of the first minimum along an axis.
    fn argmin(&self, axis: usize) -> Self::Integers {
        self.neg().argmax(axis)
    }
    /// The minimum along an axis; the derivative is that of the first minimum.
    fn min(&self, axis: usize) -> Self {
        self.neg().max(axis).neg()
    }
    /// 1, −1, or 0 for 0; detached.
    fn sign(&self) -> Self {
        let x = self.detach();
        let zero = x.full(&vec![1; x.shape().len()], 0.0);
        x.indicator(&x.greater(&zero)).sub(&x.indicator(&zero.greater(&x)))
    }
    /// `Σ x / n` along an axis.
    fn mean(&self, axis: usize) -> Self {
        let size = self.shape().get(axis).copied().unwrap_or(1);
        self.sum(axis).scale(1.0 / size as f64)
    }
    /// Swaps the last two axes.
    fn transpose(&self) -> Self {
        let rank = self.shape().len();
        let mut axes: Vec<usize> = (0..rank).collect();
        if let [.., row, column] = &mut axes[..] {
            std::mem::swap(row, column);
        }
        self.permute(&axes)
    }
    /// The adjoint of broadcasting from `shape` to the shape of this array: sums over the axes where `shape` has 1.
    fn sum_to(&self, shape: &[usize]) -> Self {
        let mut sum = self.clone();
        for (axis, &size) in shape.iter().enumerate() {
            if size == 1 && sum.shape().get(axis).is_some_and(|&size| size != 1) {
                sum = sum.sum(axis);
            }
        }
        sum
    }
}

/// The error of an operation that computed an operand if there is one, else `error`.
///
/// Arrays that carry an error have no shape, so shape checks on them fail.
pub fn first_error<A: Array, E: From<TensorError>>(operands: &[&A], error: E) -> E {
    operands.iter().find_map(|x| x.elements().err()).map_or(error, E::from)
}

/// Integers that index an [`Array`].
pub trait Integers: Clone + Debug + Sized + 'static {
    /// The boolean array type of the same backend.
    type Flags: Flags;

    /// Sizes of the axes.
    fn shape(&self) -> Shape;
    /// The element type.
    fn dtype(&self) -> DType;
    /// The elements as an engine tensor.
    ///
    /// # Errors
    /// As [`Array::elements`].
    fn elements(&self) -> Result<AnyTensor>;
    /// An array filled with `c`, of this dtype and device.
    fn full(&self, shape: &[usize], c: i64) -> Self;
    /// The same elements in row-major order.
    fn reshape(&self, shape: &[usize]) -> Self;
    /// Repeats axes of size 1.
    fn expand(&self, shape: &[usize]) -> Self;
    /// `len` elements of an axis, starting at `start`.
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self;
    /// Concatenation along an axis; at least one array.
    fn cat(arrays: &[Self], axis: usize) -> Self;
    /// `i + c`.
    fn shift(&self, c: i64) -> Self;
    /// `i = j`, broadcasting.
    fn equal(&self, j: &Self) -> Self::Flags;
    /// `i > j`, broadcasting.
    fn greater(&self, j: &Self) -> Self::Flags;
    /// `i ≥ c`.
    fn at_least(&self, c: i64) -> Self::Flags;
    /// `c` where the flags are true, else `i`; of one shape.
    fn fill(&self, flags: &Self::Flags, c: i64) -> Self;
}

/// Arrays of booleans.
pub trait Flags: Clone + Debug + Sized + 'static {
    /// Sizes of the axes.
    fn shape(&self) -> Shape;
    /// The elements as an engine tensor.
    ///
    /// # Errors
    /// As [`Array::elements`].
    fn elements(&self) -> Result<AnyTensor>;
    /// An array filled with one boolean, on this device.
    fn full(&self, shape: &[usize], holds: bool) -> Self;
    /// The same elements in row-major order.
    fn reshape(&self, shape: &[usize]) -> Self;
    /// Repeats axes of size 1.
    fn expand(&self, shape: &[usize]) -> Self;
    /// `len` elements of an axis, starting at `start`.
    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self;
    /// Concatenation along an axis; at least one array.
    fn cat(arrays: &[Self], axis: usize) -> Self;
    /// Logical and.
    fn and(&self, rhs: &Self) -> Self;
    /// Logical or.
    fn or(&self, rhs: &Self) -> Self;
    /// Logical not.
    fn not(&self) -> Self;
    /// Logical or along an axis, which keeps size 1.
    fn any(&self, axis: usize) -> Self;
}
