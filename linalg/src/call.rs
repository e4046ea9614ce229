//! Operations on the arrays of any implementor of [`Array`], in two forms: plain, and with the status of each matrix. On
//! dual numbers they have tangents.

use smallvec::SmallVec;
use t4a_diff::array::Flags;
use t4a_diff::{Array, Dual, Integers, Meta, Value};
use t4a_tensor::{AnyTensor, DType, Tensor, TensorError};

use crate::error::Result;
use crate::operation::{PartKind, next};
use crate::permutation::Permutation;
use crate::systems::Movable;
use crate::table::{Linalg, MatrixOp};

/// Batch of matrices: real `[…, m, n]`, or a pair of arrays for complex ones. Vectors are rows `[…, 1, n]`, numbers
/// `[…, 1, 1]`.
#[derive(Clone, Debug)]
pub struct Pair<A> {
    /// Real part.
    pub re: A,
    /// Imaginary part; `None` for real matrices.
    pub im: Option<A>,
}

impl<A: Array> Pair<A> {
    /// Real matrices.
    pub fn real(re: A) -> Self {
        Self { re, im: None }
    }

    /// Complex matrices.
    pub fn complex(re: A, im: A) -> Self {
        Self { re, im: Some(im) }
    }

    /// True for complex matrices.
    pub fn is_complex(&self) -> bool {
        self.im.is_some()
    }

    /// Shape of both parts.
    pub fn shape(&self) -> Vec<usize> {
        self.re.shape()
    }

    /// Applies a function to each part.
    pub fn map<C>(&self, f: impl Fn(&A) -> C) -> Pair<C> {
        Pair { re: f(&self.re), im: self.im.as_ref().map(f) }
    }

    /// Transpose of the last two axes.
    pub fn transpose(&self) -> Self {
        self.map(A::transpose)
    }

    /// The complex conjugate.
    pub fn conj(&self) -> Self {
        Self { re: self.re.clone(), im: self.im.as_ref().map(A::neg) }
    }

    /// Adjoint `Aᴴ`.
    pub fn adjoint(&self) -> Self {
        self.transpose().conj()
    }

    /// Elements `start..start + len` of an axis.
    pub fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        self.map(|x| x.narrow(axis, start, len))
    }

    pub(crate) fn read(complex: bool, arrays: &mut impl Iterator<Item = A>) -> Self {
        let re = next(arrays);
        Self { re, im: complex.then(|| next(arrays)) }
    }

    pub(crate) fn arrays(&self) -> impl Iterator<Item = A> + '_ {
        [Some(&self.re), self.im.as_ref()].into_iter().flatten().cloned()
    }
}

impl<A: Array> Movable for Pair<A> {
    fn reshaped(self, shape: &[usize]) -> Result<Self> {
        Ok(self.map(|x| x.reshape(shape)))
    }
    fn expanded(self, shape: &[usize]) -> Result<Self> {
        Ok(self.map(|x| x.expand(shape)))
    }
    fn permuted(self, axes: &[usize]) -> Result<Self> {
        Ok(self.map(|x| x.permute(axes)))
    }
}

/// Results of an operation, with the permutations of pivoting.
#[derive(Clone, Debug)]
pub struct OperationResults<A: Array> {
    /// Floating-point results.
    pub results: Vec<Pair<A>>,
    /// Permutations `[…, n]` of the rows and of the columns, as far as the operation pivots them.
    pub permutations: Vec<A::Integers>,
}

impl<A: Array> OperationResults<A> {
    /// Copies a permutation to the host.
    ///
    /// # Errors
    /// Errors of the transfer.
    pub fn permutation(&self, i: usize) -> Result<Permutation> {
        Permutation::read(&self.permutations[i])
    }

    /// One result, without permutations.
    pub(crate) fn one(result: Pair<A>) -> Self {
        Self { results: vec![result], permutations: Vec::new() }
    }

    fn new(results: Vec<Pair<A>>, extra: Vec<Value<A>>) -> Self {
        let permutations = extra.iter().map(|x| x.integers().clone()).collect();
        Self { results, permutations }
    }
}

fn pairs<A: Array>(op: &Linalg, arrays: impl IntoIterator<Item = A>) -> Vec<Pair<A>> {
    let mut arrays = arrays.into_iter();
    let complex = |kind: &PartKind| kind.arrays(op.complex) == 2;
    op.op.results().iter().map(|kind| Pair::read(complex(kind), &mut arrays)).collect()
}

/// At most three complex operands; no operand is tracked, so nothing is saved for derivative rules.
const UNTRACKED: [bool; 6] = [false; 6];

/// Validates the operands; returns the operation on arrays and the number of floating-point results.
fn checked<A: Array>(op: impl Into<MatrixOp>, operands: &[Pair<A>]) -> Result<(Linalg, usize)> {
    let op = Linalg { op: op.into(), complex: operands.iter().any(Pair::is_complex) };
    let meta = |x: A| Meta { shape: x.shape(), dtype: x.dtype() };
    let metas: SmallVec<[Meta; 2]> = operands.iter().flat_map(Pair::arrays).map(meta).collect();
    op.check(&metas)?;
    Ok((op, metas.len()))
}

fn values<A: Array>(operands: &[Pair<A>]) -> Vec<Value<A>> {
    operands.iter().flat_map(Pair::arrays).map(Value::Float).collect()
}

/// Results of the operation.
///
/// # Errors
/// Errors of the operation.
pub fn run<A: Array>(op: impl Into<MatrixOp>, operands: &[Pair<A>]) -> Result<OperationResults<A>> {
    let (op, count) = checked(op, operands)?;
    let out = A::apply(&op, &values(operands), &UNTRACKED[..count])?;
    Ok(OperationResults::new(pairs(&op, out.results), out.extra))
}

/// Results and the status of each matrix; the results of failed matrices are NaN. See [`isolated`].
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn with_status<A: Array>(
    op: impl Into<MatrixOp>,
    operands: Vec<Pair<A>>,
) -> Result<(OperationResults<A>, Tensor<i32>)> {
    let op = op.into();
    isolated(operands, |operands| run(op, operands), |operands| info(op, operands))
}

/// Status of each matrix, in the shape of the batch: [`info`](crate::operation::MatrixOperation::info).
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn info<A: Array>(op: impl Into<MatrixOp>, operands: &[Pair<A>]) -> Result<Tensor<i32>> {
    let (op, _) = checked(op, operands)?;
    op.info(&operands.iter().flat_map(Pair::arrays).collect::<Vec<_>>())
}

/// Checks that tangents have the shapes and dtypes of their operands.
///
/// # Errors
/// `Tensor`.
pub fn check_tangents<A: Array>(
    op: &'static str,
    operands: &[Pair<A>],
    tangents: &[Pair<A>],
) -> Result<()> {
    for (x, dx) in operands.iter().zip(tangents) {
        if x.shape() != dx.shape() || x.is_complex() != dx.is_complex() {
            let required = "a tangent has the shape of its input";
            return Err(TensorError::shapes(op, &x.shape(), &dx.shape(), required).into());
        }
        let (lhs, rhs) = (x.re.dtype(), dx.re.dtype());
        if lhs != rhs {
            return Err(TensorError::DTypeMismatch { op, lhs, rhs }.into());
        }
    }
    Ok(())
}

/// Operands with their tangents as dual numbers.
pub(crate) fn duals<A: Array>(operands: &[Pair<A>], tangents: &[Pair<A>]) -> Vec<Pair<Dual<A>>> {
    let part = |(x, dx): (A, A)| Dual::new(x, dx);
    let one = |(x, dx): (&Pair<A>, &Pair<A>)| Pair {
        re: part((x.re.clone(), dx.re.clone())),
        im: x.im.clone().zip(dx.im.clone()).map(part),
    };
    operands.iter().zip(tangents).map(one).collect()
}

/// Splits into value and tangent.
pub(crate) fn parted<A: Array>(x: Pair<Dual<A>>) -> (Pair<A>, Pair<A>) {
    (x.map(|x| x.value.clone()), x.map(|x| x.clone().into_tangent()))
}

/// Results of `forward`, with NaN for failed matrices, and the codes of `info`.
///
/// Failed matrices are replaced by regular ones before the operation, and their results by NaN afterwards. Their
/// gradient is zero; the gradients of the others are the same as in a batch without failures. Cost: that of the plain
/// operation if no matrix fails, three times that otherwise.
///
/// # Errors
/// Errors that do not concern a single matrix: shapes, dtypes, memory.
pub fn isolated<A: Array>(
    operands: Vec<Pair<A>>,
    forward: impl Fn(&[Pair<A>]) -> Result<OperationResults<A>>,
    info: impl Fn(&[Pair<A>]) -> Result<Tensor<i32>>,
) -> Result<(OperationResults<A>, Tensor<i32>)> {
    let error = match forward(&operands) {
        Ok(out) => {
            let shape = operands[0].shape();
            return Ok((out, Tensor::zeros(&shape[..shape.len() - 2])?));
        }
        Err(error) if error.batch().is_some() => error,
        Err(error) => return Err(error),
    };
    let info = info(&operands)?;
    let failed: Vec<i64> = info.to_vec()?.iter().map(|&code| i64::from(code != 0)).collect();
    if failed.iter().all(|&failed| failed == 0) {
        // The operation failed although every status is 0: the error is returned.
        return Err(error);
    }
    let shape: Vec<usize> = info.shape().iter().copied().chain([1, 1]).collect();
    let failed = AnyTensor::from(Tensor::from_vec(failed, &shape)?);
    let failed = operands[0].re.indices(failed).at_least(1);
    let regular = |(i, x): (usize, Pair<A>)| -> Result<Pair<A>> {
        if i > 0 {
            return Ok(x.map(|x| x.fill(&failed.expand(&x.shape()), 0.0)));
        }
        let diagonal = diagonal(&x.re)?;
        Ok(x.map(|x| x.replace(&failed.expand(&x.shape()), &diagonal)))
    };
    let regular = operands.into_iter().enumerate().map(regular).collect::<Result<Vec<_>>>()?;
    let mut out = forward(&regular)?;
    let spoil = |x: Pair<A>| x.map(|x| x.fill(&failed.expand(&x.shape()), f64::NAN));
    out.results = out.results.into_iter().map(spoil).collect();
    Ok((out, info))
}

/// Matrices that every operation accepts: diagonal, with distinct positive entries between 1 and 2.
fn diagonal<A: Array>(like: &A) -> Result<A> {
    let shape = like.shape();
    let (batch, matrix) = shape.split_at(shape.len() - 2);
    let (m, n) = (matrix[0], matrix[1]);
    let entry = |at: usize| match at / n == at % n {
        true => 2.0 - (at / n) as f64 / n as f64,
        false => 0.0,
    };
    let sizes: Vec<usize> = batch.iter().map(|_| 1).chain([m, n]).collect();
    let entries = Tensor::from_vec((0..m * n).map(entry).collect(), &sizes)?;
    let entries = AnyTensor::from(entries).cast(like.dtype())?;
    Ok(like.constant(entries).expand(&shape))
}

impl Permutation {
    /// Permutation of the indices `[…, n]` that an operation returned.
    pub(crate) fn read<I: Integers>(index: &I) -> Result<Self> {
        let index = index.elements()?.cast(DType::I64)?;
        let n = index.shape().last().copied().unwrap_or(0);
        Ok(Self::new(n, index.typed::<i64>()?.clone()))
    }
}
