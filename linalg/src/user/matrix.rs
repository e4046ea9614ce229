//! Traits of the tensor types that the functions of this module accept and return, implemented by each interface
//! crate.

use std::fmt::Debug;

use t4a_diff::Array;

use crate::Result;
use crate::call::Pair;

/// Batch of matrices `[…, m, n]`, real or complex, of the interface `F`.
///
/// The associated types are tensors of lower rank. One number per matrix has the shape of the batch; the
/// representation for a single matrix is up to the interface.
///
/// `F` is a local type of the interface crate, which lets it implement this trait for foreign tensor types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no matrix of floats",
    label = "expected a float or complex tensor of rank 2 or more",
    note = "batches are leading axes; a vector becomes a matrix by `unsqueeze_dim`, integers one by `float()`"
)]
pub trait Matrix<F>: Clone + Debug {
    /// Number of axes.
    const RANK: usize;
    /// True for complex matrices.
    const COMPLEX: bool;
    /// Array type of the real and imaginary parts.
    type Array: Array;
    /// A single real matrix.
    type Single: Matrix<F, Array = Self::Array>;
    /// Vectors `[…, k]` of the type of the matrix.
    type Vector: Clone + Debug;
    /// Real vectors `[…, k]`.
    type RealVector: Clone + Debug;
    /// Complex vectors `[…, k]`.
    type ComplexVector: Clone + Debug;
    /// Complex matrices.
    type ComplexMatrix: Clone + Debug;
    /// Numbers `[…]` of the type of the matrix.
    type Number: Clone + Debug;
    /// Real numbers `[…]`.
    type RealNumber: Clone + Debug;
    /// Indices `[…, k]`.
    type Indices: Clone + Debug;
    /// Status of each matrix, `[…]`.
    type Info: Clone + Debug;

    /// Arrays of the matrices.
    fn into_pair(self) -> Pair<Self::Array>;
    /// Matrices of a result.
    fn from_pair(value: Pair<Self::Array>) -> Self;
    /// Complex matrices of a result.
    fn complex_matrix(value: Pair<Self::Array>) -> Self::ComplexMatrix;
    /// Vectors as rows `[…, 1, k]`.
    fn rows(vectors: Self::Vector) -> Pair<Self::Array>;
    /// Vectors of rows.
    fn vectors(rows: Pair<Self::Array>) -> Self::Vector;
    /// Vectors of a result, which stores them as rows.
    fn real_vector(value: Pair<Self::Array>) -> Self::RealVector;
    /// As [`Matrix::real_vector`].
    fn complex_vector(value: Pair<Self::Array>) -> Self::ComplexVector;
    /// Numbers of a result, which stores them as `1 × 1` matrices.
    fn number(value: Pair<Self::Array>) -> Self::Number;
    /// As [`Matrix::number`].
    fn real_number(value: Pair<Self::Array>) -> Self::RealNumber;
    /// Indices `[…, k]` of a result.
    fn indices(index: <Self::Array as Array>::Integers) -> Self::Indices;
    /// Indices as an engine tensor `[…, k]`.
    ///
    /// # Errors
    /// `Tensor` if the backend does not provide its data.
    fn host(indices: Self::Indices) -> Result<t4a_tensor::Tensor<i64>>;
    /// Status as a tensor of the interface, from an engine tensor `[…]`, on the device of `like`.
    ///
    /// # Errors
    /// `Tensor` for lack of memory.
    fn info(info: &t4a_tensor::Tensor<i32>, like: &Self::Array) -> Result<Self::Info>;
}

/// Tensor of any rank, real or complex, of the interface `F`.
pub trait Ranked<F>: Sized {
    /// Array type of the real and imaginary parts.
    type Array: Array;
    /// A matrix of rank 2 of the same interface, for results of a single matrix.
    type Single: Matrix<F, Array = Self::Array>;
    /// Number of axes.
    const RANK: usize;
    /// True for complex tensors.
    const COMPLEX: bool;
    /// Arrays of the tensor.
    fn into_pair(self) -> Pair<Self::Array>;
    /// Tensor of a result.
    fn from_pair(value: Pair<Self::Array>) -> Self;
}

/// Right-hand sides of systems with these matrices: matrices of the same type, or vectors `[…, m]` with
/// the batch axes of the matrices.
pub trait RightHandSide<F, M: Matrix<F>>: Sized {
    /// True for vectors.
    const VECTOR: bool;
    /// As columns of matrices.
    fn into_columns(self) -> Pair<M::Array>;
    /// From columns of matrices.
    fn from_columns(columns: Pair<M::Array>) -> Self;
}

impl<F, M: Matrix<F>> RightHandSide<F, M> for M {
    const VECTOR: bool = false;

    fn into_columns(self) -> Pair<M::Array> {
        self.into_pair()
    }

    fn from_columns(columns: Pair<M::Array>) -> Self {
        Self::from_pair(columns)
    }
}
