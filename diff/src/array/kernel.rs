//! Optional device kernels beyond elementwise operations and reductions.

use super::Array;

/// A semiring for which some devices have matrix product kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Semiring {
    /// (max, +).
    MaxPlus,
    /// (min, +).
    MinPlus,
    /// (max, ×) on numbers ≥ 0.
    MaxMul,
    /// (min, ×) on numbers ≥ 0.
    MinMul,
    /// (max, min).
    MaxMin,
    /// `ln Σ eˣ` and +.
    LogSumExp,
}

/// A cumulative operation other than sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cumulation {
    /// Maximum; NaN from the first NaN on.
    Max,
    /// Minimum; NaN from the first NaN on.
    Min,
    /// `ln Σ eˣ`.
    LogSumExp,
}

/// A kernel for each real matrix of a batch.
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
        /// Take the diagonal as ones, regardless of the stored values.
        unit: bool,
        /// Solve with the transposed triangle.
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
    /// 0 for success, of any shape.
    pub status: A::Integers,
}

/// A kernel that the definition of an operation uses.
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
    /// `h ← a h + b` of complex numbers along an axis.
    ComplexRecurrence,
    /// Cumulative sums along an axis.
    RunningSum,
    /// Other cumulative operations along an axis.
    Cumulative(Cumulation),
    /// Products and copies of parts of flat arrays.
    Blocks,
    /// Factorisations and triangular systems, for matrices of this size.
    Matrix(MatrixKernel, [usize; 2]),
}
