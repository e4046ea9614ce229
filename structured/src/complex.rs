//! Complex block-sparse and diagonal tensors as pairs of real tensors of one structure.
//! [`GradedTensor`](crate::GradedTensor) represents complex entries itself.

use t4a_diff::{Array, Pairs};
use t4a_einsum::FloatSemiring;
use t4a_tensor::{AnyTensor, Tensor};

use crate::block_sparse::BlockSparseTensor;
use crate::diag::{DiagTensor, diag_einsum};
use crate::error::{Result, StructuredError};
use crate::operation::{Contract, FrobeniusNorm, InnerProduct, apply, one};

/// Complex tensor `re + i im`; both tensors have the same structure.
#[derive(Clone, Debug)]
pub struct Complex<T> {
    re: T,
    im: T,
}

impl<T> Complex<T> {
    /// Real part.
    pub fn re(&self) -> &T {
        &self.re
    }

    /// Imaginary part.
    pub fn im(&self) -> &T {
        &self.im
    }

    fn try_map(&self, f: impl Fn(&T) -> Result<T>) -> Result<Self> {
        Ok(Self { re: f(&self.re)?, im: f(&self.im)? })
    }
}

fn same_dtype<A: Array>(re: &A, im: &A) -> Result<()> {
    let (op, required, given) = ("complex", re.dtype(), im.dtype());
    if required == given { Ok(()) } else { Err(StructuredError::DType { op, required, given }) }
}

impl<A: Array> Complex<BlockSparseTensor<A>> {
    /// `re + i im`.
    ///
    /// # Errors
    /// `Invalid` for different patterns, `DType`.
    pub fn new(re: BlockSparseTensor<A>, im: BlockSparseTensor<A>) -> Result<Self> {
        if re.pattern() != im.pattern() {
            let message = "both parts have the same blocks".into();
            return Err(StructuredError::Invalid { op: "complex", message });
        }
        same_dtype(re.data(), im.data())?;
        Ok(Self { re, im })
    }

    fn data(&self) -> [&A; 2] {
        [self.re.data(), self.im.data()]
    }

    /// Complex conjugate.
    pub fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.scale(-1.0) }
    }

    /// Product with a real number.
    pub fn scale(&self, c: f64) -> Self {
        Self { re: self.re.scale(c), im: self.im.scale(c) }
    }

    /// `a + b`; the result stores the union of the blocks.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::add`].
    pub fn add(&self, other: &Self) -> Result<Self> {
        Ok(Self { re: self.re.add(&other.re)?, im: self.im.add(&other.im)? })
    }

    /// Permutation of the axes.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::permute`].
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.try_map(|x| x.permute(axes))
    }

    /// Trace over pairs of axes.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::trace`].
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<Self> {
        self.try_map(|x| x.trace(pairs))
    }

    /// Contraction over pairs of axes, as one operation.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::contract`].
    pub fn contract(&self, other: &Self, axes: &[usize], other_axes: &[usize]) -> Result<Self> {
        let (pattern, plan) = self.re.pattern().contract(other.re.pattern(), axes, other_axes)?;
        same_dtype(self.re.data(), other.re.data())?;
        let op = Pairs::new(Contract { plan });
        let parts = apply(&op, &[self.data(), other.data()].concat())?;
        let [re, im] = <[A; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("a pair"));
        let pattern = std::sync::Arc::new(pattern);
        Ok(Self {
            re: BlockSparseTensor::new(pattern.clone(), re)?,
            im: BlockSparseTensor::new(pattern, im)?,
        })
    }

    /// `Σ x* y` of tensors with the same stored blocks: real and imaginary part, arrays of one element.
    ///
    /// # Errors
    /// `Invalid` for different patterns.
    pub fn inner(&self, other: &Self) -> Result<[A; 2]> {
        if self.re.pattern() != other.re.pattern() {
            let message = "both tensors have the same blocks".into();
            return Err(StructuredError::Invalid { op: "inner", message });
        }
        same_dtype(self.re.data(), other.re.data())?;
        let parts = apply(&InnerProduct { complex: true }, &[self.data(), other.data()].concat())?;
        Ok(<[A; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("a pair")))
    }

    /// Frobenius norm `√Σ |x|²`, an array of one element. The derivative at 0 is 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn norm(&self) -> Result<A> {
        one(&FrobeniusNorm { complex: true }, &self.data())
    }

    /// Dense real and imaginary parts; entries outside of the stored blocks are 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn to_dense(&self) -> Result<[A; 2]> {
        Ok([self.re.to_dense()?, self.im.to_dense()?])
    }
}

impl<A: Array> Complex<DiagTensor<A>> {
    /// `re + i im`.
    ///
    /// # Errors
    /// `Invalid` for different classes or sizes, `DType`.
    pub fn new(re: DiagTensor<A>, im: DiagTensor<A>) -> Result<Self> {
        if re.classes() != im.classes() || re.sizes() != im.sizes() {
            let message = "both parts have the same classes and sizes".into();
            return Err(StructuredError::Invalid { op: "complex", message });
        }
        same_dtype(re.elements(), im.elements())?;
        Ok(Self { re, im })
    }

    /// Complex conjugate.
    pub fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.scale(-1.0) }
    }

    /// Permutation of the axes.
    ///
    /// # Errors
    /// As [`DiagTensor::permute`].
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.try_map(|x| x.permute(axes))
    }

    /// Dense real and imaginary parts.
    ///
    /// # Errors
    /// Errors of the einsum.
    pub fn to_dense(&self) -> Result<[A; 2]> {
        let std = FloatSemiring::Standard;
        Ok([self.re.to_dense(std)?, self.im.to_dense(std)?])
    }

    /// Real and imaginary part stacked along a new last axis of size 2.
    fn stacked(&self) -> Result<DiagTensor<A>> {
        let mut shape = self.re.sizes().to_vec();
        let mut classes = self.re.classes().to_vec();
        // A number may have the shape [1], whose axis belongs to no class.
        shape.truncate(classes.iter().map(|class| class + 1).max().unwrap_or(0));
        let last = shape.len();
        shape.push(1);
        let parts = [&self.re, &self.im].map(|x| x.payload().reshape(&shape));
        classes.push(last);
        DiagTensor::new(A::cat(&parts, last), classes)
    }
}

/// [`diag_einsum`] of complex tensors over (+, ×).
///
/// A complex number is a vector of two elements, and the product of two complex numbers is a contraction with the
/// 2×2×2 multiplication table of ℂ; the complex einsum is therefore one einsum of real tensors.
///
/// # Errors
/// As [`diag_einsum`].
pub fn diag_einsum_complex<A: Array>(
    subscripts: &str,
    operands: &[&Complex<DiagTensor<A>>],
) -> Result<Complex<DiagTensor<A>>> {
    let invalid = |message| StructuredError::Invalid { op: "diag", message };
    let (inputs, output) =
        subscripts.split_once("->").ok_or_else(|| invalid(format!("{subscripts}: no output")))?;
    let inputs: Vec<&str> = inputs.split(',').collect();
    let (Some(first), true) = (operands.first(), inputs.len() == operands.len()) else {
        let (n, given) = (inputs.len(), operands.len());
        return Err(invalid(format!("{subscripts}: {n} operands are required, given {given}")));
    };
    // Multiplication table: re = ac − bd, im = ad + bc, shape [2, 2, 2].
    let table = vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0, -1.0, 0.0];
    let table = AnyTensor::from(Tensor::from_vec(table, &[2, 2, 2])?);
    let table = table.cast(first.re.elements().dtype())?;
    let table = DiagTensor::dense(first.re.elements().constant(table));
    // Labels of the re/im axes, from a private-use plane of Unicode: operand k has label 2k, the partial product up
    // to it 2k + 1.
    let label = |i: usize| char::from_u32(0xf0000 + i as u32).unwrap_or('\u{f0000}');
    let mut terms: Vec<String> = Vec::new();
    let mut tensors: Vec<DiagTensor<A>> = Vec::new();
    for (k, (&x, own)) in operands.iter().zip(&inputs).enumerate() {
        terms.push(format!("{own}{}", label(2 * k)));
        tensors.push(x.stacked()?);
        if k > 0 {
            let before = if k == 1 { label(0) } else { label(2 * k - 1) };
            terms.push(format!("{before}{}{}", label(2 * k), label(2 * k + 1)));
            tensors.push(table.clone());
        }
    }
    let last = if operands.len() == 1 { label(0) } else { label(2 * operands.len() - 1) };
    let text = format!("{}->{output}{last}", terms.join(","));
    let tensors: Vec<&DiagTensor<A>> = tensors.iter().collect();
    let product = diag_einsum(FloatSemiring::Standard, &text, &tensors)?;
    let shape = product.sizes().to_vec();
    let axis = shape.len() - 1;
    let classes = &product.classes()[..product.classes().len() - 1];
    let part = |i: usize| {
        let part = product.payload().narrow(axis, i, 1).reshape(&shape[..axis]);
        DiagTensor::new(part, classes.to_vec())
    };
    Complex::<DiagTensor<A>>::new(part(0)?, part(1)?)
}
