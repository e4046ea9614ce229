//! Kernels that devices may have beyond elementwise operations and reductions.

use super::Array;

/// A semiring whose products of matrices some devices have kernels for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Semiring {
    /// (max, +).
    MaxPlus,
    /// (min, +).
    MinPlus,
    /// (max, ×) of numbers that are not negative.
    MaxMul,
    /// (max, min).
    MaxMin,
    /// `ln Σ eˣ` and +.
    LogSumExp,
}

/// A kernel for each matrix of a batch, real.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatrixKernel {
    /// `L` of (A + Aᵀ)/2 = L Lᵀ.
    Cholesky,
    /// `L` and `U` packed in one matrix, of `A[p] = L U`.
    Lu,
    /// Thin `Q` and `R`, whose diagonal is ≥ 0.
    Qr,
    /// Eigenvalues `[β, 1, n]` in nondecreasing order and eigenvectors of (A + Aᵀ)/2.
    Eigh,
    /// Thin `U`, singular values `[β, 1, k]` in nonincreasing order, and `Vᵀ`.
    Svd,
    /// `op(T)⁻¹ B`.
    Triangular {
        /// The upper triangle is read.
        upper: bool,
        /// Ones on the diagonal, whatever is stored there.
        unit: bool,
        /// The transpose of the triangle is solved for.
        transposed: bool,
    },
}

/// Results of a [`MatrixKernel`].
#[derive(Clone, Debug)]
pub struct MatrixFactors<A: Array> {
    /// The factors, `[β, …, …]`.
    pub factors: Vec<A>,
    /// `p` of [`MatrixKernel::Lu`], `[β, m]`.
    pub rows: Option<A::Integers>,
    /// 0 where all is well, of any shape.
    pub status: A::Integers,
}

/// A kernel of the definition of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kernel {
    /// Sums and extrema along an axis.
    Reduction,
    /// Products of matrices.
    Matmul,
    /// Products of matrices over a semiring.
    Semiring(Semiring),
    /// `h ← a h + b` along an axis.
    Recurrence,
    /// Running sums along an axis.
    RunningSum,
    /// Factorisations and triangular systems, for matrices of this size.
    Matrix(MatrixKernel, [usize; 2]),
}
