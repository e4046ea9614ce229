//! Complex block-sparse and diagonal tensors: pairs of real ones of one structure. Graded tensors are
//! complex by themselves.

use t4a_diff::{Array, Pairs};
use t4a_einsum::FloatSemiring;
use t4a_tensor::{AnyTensor, Tensor};

use crate::block_sparse::BlockSparseTensor;
use crate::diag::{DiagTensor, diag_einsum};
use crate::error::{Result, StructuredError};
use crate::operation::{Contract, Inner, Norm, apply, one};

/// `re + i im`, two tensors of one structure.
#[derive(Clone, Debug)]
pub struct Complex<T> {
    re: T,
    im: T,
}

impl<T> Complex<T> {
    /// The real part.
    pub fn re(&self) -> &T {
        &self.re
    }

    /// The imaginary part.
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

    /// The conjugate.
    pub fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.scale(-1.0) }
    }

    /// Times a real number.
    pub fn scale(&self, c: f64) -> Self {
        Self { re: self.re.scale(c), im: self.im.scale(c) }
    }

    /// The sum, on the blocks of either.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::add`].
    pub fn add(&self, other: &Self) -> Result<Self> {
        Ok(Self { re: self.re.add(&other.re)?, im: self.im.add(&other.im)? })
    }

    /// As [`BlockSparseTensor::permute`].
    ///
    /// # Errors
    /// As there.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.try_map(|x| x.permute(axes))
    }

    /// As [`BlockSparseTensor::trace`].
    ///
    /// # Errors
    /// As there.
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<Self> {
        self.try_map(|x| x.trace(pairs))
    }

    /// The contraction over pairs of axes, as one operation.
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

    /// `Σ x* y` of tensors with the same blocks: real and imaginary part, arrays of one element.
    ///
    /// # Errors
    /// `Invalid` for other blocks.
    pub fn inner(&self, other: &Self) -> Result<[A; 2]> {
        if self.re.pattern() != other.re.pattern() {
            let message = "both tensors have the same blocks".into();
            return Err(StructuredError::Invalid { op: "inner", message });
        }
        same_dtype(self.re.data(), other.re.data())?;
        let parts = apply(&Inner { complex: true }, &[self.data(), other.data()].concat())?;
        Ok(<[A; 2]>::try_from(parts).unwrap_or_else(|_| unreachable!("a pair")))
    }

    /// `√Σ |x|²`, an array of one element; its derivative at 0 is 0.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn norm(&self) -> Result<A> {
        one(&Norm { complex: true }, &self.data())
    }

    /// All entries, zeros included: real and imaginary part.
    ///
    /// # Errors
    /// Those of the memory.
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

    /// The conjugate.
    pub fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.scale(-1.0) }
    }

    /// As [`DiagTensor::permute`].
    ///
    /// # Errors
    /// As there.
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.try_map(|x| x.permute(axes))
    }

    /// All elements: real and imaginary part.
    ///
    /// # Errors
    /// Those of the einsum.
    pub fn to_dense(&self) -> Result<[A; 2]> {
        let std = FloatSemiring::Standard;
        Ok([self.re.to_dense(std)?, self.im.to_dense(std)?])
    }

    /// Both parts behind each other, along an axis of its own.
    fn stacked(&self) -> Result<DiagTensor<A>> {
        let mut shape = self.re.sizes().to_vec();
        let mut classes = self.re.classes().to_vec();
        // A number may have the shape [1], which no axis follows.
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
/// A complex number is a vector of two, and the product of two such vectors a contraction with the table
/// of 1 and i: so this is one einsum of real tensors.
///
/// # Errors
/// As there.
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
    // re = ac − bd, im = ad + bc, as [2, 2, 2].
    let table = vec![1.0, 0.0, 0.0, 1.0, 0.0, 1.0, -1.0, 0.0];
    let table = AnyTensor::from(Tensor::from_vec(table, &[2, 2, 2])?);
    let table = table.cast(first.re.elements().dtype())?;
    let table = DiagTensor::dense(first.re.elements().constant(table));
    // Labels of parts, which nobody types: operand k has 2k, the product up to it 2k + 1.
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
