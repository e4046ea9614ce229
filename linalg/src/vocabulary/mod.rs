//! Operations in which derivative rules are written.
//!
//! A rule is a function generic over [`Matrices`], a batch of `m × n` matrices. A vector is a batch of `1 × n` rows,
//! a number one of `1 × 1` matrices. Elementwise operations broadcast axes of size 1, so a row times a matrix scales
//! its columns. The derivative of every operation is expressed by operations of this trait, so a rule can be
//! differentiated again.
//!
//! Implementors: [`RealMatrix`] and [`ComplexMatrix`] over any array of `t4a-diff` (recorded on a tape, or with
//! tangents on dual numbers), [`Batched`] (engine tensors of one type, with a complex matrix as one tensor), and
//! [`DualMatrix`] (any implementor with a tangent, for programs).
//!
//! Convention (that of PyTorch): for a real loss `L`, the cotangent of `A` is
//! `Ā = ∂L/∂Re A + i ∂L/∂Im A`, so `dL = Re⟨Ā, dA⟩` with `⟨X, Y⟩ = tr(Xᴴ Y)`.

mod arrays;
mod batched;
mod dual;
mod engine;
mod factors;
mod kernels;
mod matrix;
#[cfg(test)]
mod tests;
mod triangle;

use std::ops::Range;

pub use batched::Batched;
pub use dual::DualMatrix;
pub use factors::{Carrier, Factors, Spectrum};
pub use matrix::{ComplexMatrix, RealMatrix};
pub use triangle::{Triangle, TriangleOp};

use crate::error::{LinalgError, Result};
use crate::permutation::Permutation;
use crate::spectrum::MatrixFunction;
use crate::table::MatrixOp;

/// Part of a matrix that [`Matrices::mask`] keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// Entries with `j ≤ i + k`.
    Lower(isize),
    /// Entries with `j ≥ i + k`.
    Upper(isize),
    /// Entries with `j = i`.
    Diagonal,
}

impl Region {
    /// True if entry `(i, j)` is kept.
    pub fn contains(self, i: usize, j: usize) -> bool {
        let (i, j) = (i as isize, j as isize);
        match self {
            Region::Lower(k) => j <= i + k,
            Region::Upper(k) => j >= i + k,
            Region::Diagonal => i == j,
        }
    }
}

/// Batches of matrices with the operations of derivative rules.
pub trait Matrices: Clone + std::fmt::Debug {
    /// Real matrices of the same precision.
    type Real: RealMatrices<Real = Self::Real, Complex = Self::Complex>;
    /// Complex matrices of the same precision.
    type Complex: Matrices<Real = Self::Real, Complex = Self::Complex>;
    /// True for complex entries.
    const IS_COMPLEX: bool;

    /// Number of rows `m`.
    fn rows(&self) -> usize;
    /// Number of columns `n`.
    fn cols(&self) -> usize;
    /// Distance from 1 to the next larger real number.
    fn epsilon(&self) -> f64;

    /// `A + B`, broadcasting.
    fn add(&self, rhs: &Self) -> Self;
    /// `A − B`, broadcasting.
    fn sub(&self, rhs: &Self) -> Self;
    /// `A ∘ B`, elementwise, broadcasting.
    fn mul(&self, rhs: &Self) -> Self;
    /// `A ∘ R` with real `R`, elementwise, broadcasting.
    fn mul_real(&self, rhs: &Self::Real) -> Self;
    /// `c A`.
    fn scale(&self, c: f64) -> Self;
    /// `A B`.
    fn matmul(&self, rhs: &Self) -> Self;
    /// `Aᵀ`.
    fn transpose(&self) -> Self;
    /// Complex conjugate; `A` itself if real.
    fn conj(&self) -> Self;

    /// Rectangular block.
    fn slice(&self, rows: Range<usize>, cols: Range<usize>) -> Self;
    /// `[A; B]`.
    fn stack(&self, below: &Self) -> Self;
    /// Permutes rows: row `i` of the result is row `pᵢ`.
    fn permute_rows(&self, p: &Permutation) -> Self;
    /// Sets entries outside of the region to zero.
    fn mask(&self, keep: Region) -> Self;
    /// `Σᵢ Aᵢⱼ` as a row.
    fn sum_rows(&self) -> Self;
    /// An `m × n` matrix of entries `c`, for each matrix of the batch; a constant.
    fn constant(&self, m: usize, n: usize, c: f64) -> Self;

    /// One number for each matrix of the batch, `1 × 1`; a constant.
    fn each(&self, values: &[f64]) -> Self::Real;

    /// Real part.
    fn re(&self) -> Self::Real;
    /// Imaginary part; zero if real.
    fn im(&self) -> Self::Real;
    /// `re + i im`; the imaginary part is dropped by real matrices.
    fn from_parts(re: &Self::Real, im: &Self::Real) -> Self;
    /// Conversion to complex matrices.
    fn to_complex(&self) -> Self::Complex;
    /// Part of complex matrices that this type represents: the adjoint of [`Matrices::to_complex`].
    fn from_complex(z: &Self::Complex) -> Self;

    /// `op(T)⁻¹ B` with `T = self`.
    fn solve_triangular(&self, b: &Self, triangle: Triangle) -> Self;
    /// `A⁻¹ B`.
    fn solve(&self, b: &Self) -> Self;
    /// The solution of `P X + X P = B` with positive definite Hermitian `P = self`.
    fn lyapunov(&self, b: &Self) -> Self;

    /// Result of an operation with one result of the operands' type and no saved factors.
    fn operate(op: MatrixOp, operands: &[&Self]) -> Self;
    /// A carried error.
    fn failed(error: LinalgError) -> Self;

    /// Singular values as a row, in nonincreasing order; a constant.
    fn svdvals(&self) -> Self::Real;
    /// `det A` of a regular matrix, `1 × 1`.
    fn det(&self) -> Self;
    /// `det A` as a constant.
    fn detached(&self) -> Self;

    /// Largest modulus of each matrix, `1 × 1`; a constant.
    fn largest(&self) -> Self::Real;
    /// The first error of the preceding operations.
    fn error(&self) -> Option<LinalgError>;
    /// Frobenius norm of each matrix, as host values.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    fn norms(&self) -> Result<Vec<f64>>;

    /// `U diag(c) Vᴴ`, the gradient of a function with slopes `c` at the values of a matrix. Its derivative is not
    /// that of the product alone: where it may be differentiated, this is an operation of its own
    /// ([`spectrum`](crate::spectrum)), as are the three below.
    ///
    /// # Errors
    /// Errors of the operation.
    fn spectral_gradient(
        factors: &Factors<Self>,
        _carrier: Carrier<'_, Self>,
        c: &Self::Real,
    ) -> Result<Self> {
        Ok(factors.sum(c))
    }

    /// `dS` along `dA`.
    ///
    /// # Errors
    /// Errors of the operation.
    fn spectral_tangent(
        factors: &Factors<Self>,
        _carrier: Carrier<'_, Self>,
        da: &Self,
    ) -> Result<Self::Real> {
        factors.tangent(da)
    }

    /// Gradient of a loss of the factors of `A`, whose derivative along directions that split ties is an error: the
    /// rules of factorisations have none there. `vectors` is true if the loss uses vectors: second derivatives
    /// through them lose all digits already at gaps below `√ε`.
    ///
    /// # Errors
    /// `SecondOrderAtTie`.
    fn unsplit(gradient: Self, _a: &Self, _factors: Factors<Self>, _vectors: bool) -> Result<Self> {
        Ok(gradient)
    }

    /// [`Matrices::unsplit`] for eigenvalues and eigenvectors of a general matrix.
    ///
    /// # Errors
    /// As [`Matrices::unsplit`].
    fn unsplit_eigenvectors(
        gradient: Self,
        _a: &Self,
        _values: &Self::Complex,
        _vectors: &Self::Complex,
    ) -> Result<Self> {
        Ok(gradient)
    }

    /// Derivative of a function of `a` with these factors along `c`; differentiable, also for close values.
    ///
    /// # Errors
    /// `SplitTie` for a rank that splits a tie; the first error of the preceding operations.
    fn function_slope(
        c: &Self,
        _a: &Self,
        factors: Factors<Self>,
        f: MatrixFunction,
    ) -> Result<Self> {
        f.slope(&factors, c)
    }

    /// The second derivative `x` of a function of `a` with these values, as an operation without a rule: its
    /// derivative is an error.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    fn settled(x: Self, _a: &Self, _values: &Self::Real, _f: MatrixFunction) -> Result<Self> {
        Ok(x)
    }

    /// Quantity that is zero for matrices with zero value and zero tangent, `1 × 1`; a constant.
    fn activity(&self) -> Self::Real {
        self.largest()
    }

    // Provided methods, composed of the required ones.

    /// Smallest normal number; its reciprocal is finite.
    fn min_positive(&self) -> f64 {
        match self.epsilon() < 1e-10 {
            true => f64::MIN_POSITIVE,
            false => f64::from(f32::MIN_POSITIVE),
        }
    }
    /// Largest modulus of each matrix as a divisor: 1 for a zero matrix, and at least the smallest normal number; a
    /// constant.
    fn magnitude(&self) -> Self::Real {
        let largest = self.largest();
        let zero = largest.within(&largest.scale(0.0));
        let tiny = largest.constant(1, 1, self.min_positive());
        let small = largest.within(&tiny).sub(&zero);
        largest.add(&zero).add(&small.mul(&tiny))
    }
    /// `A / c` for a power of two `c`, a constant, that scales the largest modulus to about 1; exact.
    fn near_one(&self) -> Self {
        self.mul_real(&self.magnitude().power_of_two().recip())
    }
    /// `|A|`, elementwise; its derivative at 0 is 0.
    fn modulus(&self) -> Self::Real {
        let re = self.re().abs();
        if !Self::IS_COMPLEX {
            return re;
        }
        // r = s √((re/s)² + (im/s)²) is independent of s, which is a constant: the larger part.
        let im = self.im().abs();
        let above = im.sub(&re);
        let size = re.add(&above.mul(&above.not_negative())).detached();
        // Numbers whose reciprocal could overflow are replaced by their larger part.
        let small = size.within(&size.constant(1, 1, self.min_positive()));
        let scale = size.add(&small).recip();
        let (x, y) = (re.mul(&scale), im.mul(&scale));
        x.mul(&x).add(&y.mul(&y)).add(&small).powf(0.5).mul(&size)
    }
    /// `Aᴴ`.
    fn adjoint(&self) -> Self {
        self.transpose().conj()
    }
    /// `−A`.
    fn neg(&self) -> Self {
        self.scale(-1.0)
    }
    /// `(A + Aᴴ)/2`.
    fn herm(&self) -> Self {
        self.add(&self.adjoint()).scale(0.5)
    }
    /// `(A − Aᴴ)/2`.
    fn skew(&self) -> Self {
        self.sub(&self.adjoint()).scale(0.5)
    }
    /// Hermitian matrix with the strict lower triangle of square `A`, and the real part of its diagonal.
    fn hermitian_from_lower(&self) -> Self {
        let lower = self.mask(Region::Lower(-1));
        let diagonal = Self::from_re(&self.mask(Region::Diagonal).re());
        lower.add(&lower.adjoint()).add(&diagonal)
    }
    /// The diagonal as a row.
    fn diagonal(&self) -> Self {
        let k = self.rows().min(self.cols());
        self.slice(0..k, 0..k).mask(Region::Diagonal).sum_rows()
    }
    /// `tr A`, `1 × 1`.
    fn trace(&self) -> Self {
        self.diagonal().transpose().sum_rows()
    }
    /// The diagonal matrix of a row.
    fn diagonal_matrix(&self) -> Self {
        let n = self.cols();
        self.constant(n, n, 0.0).add(self).mask(Region::Diagonal)
    }
    /// The unit matrix.
    fn identity(&self, n: usize) -> Self {
        self.constant(n, n, 1.0).mask(Region::Diagonal)
    }
    /// `[A, B]`.
    fn append(&self, right: &Self) -> Self {
        self.transpose().stack(&right.transpose()).transpose()
    }
    /// Permutes columns: column `j` of the result is column `pⱼ`.
    fn permute_cols(&self, p: &Permutation) -> Self {
        self.transpose().permute_rows(p).transpose()
    }
    /// `r + 0i`.
    fn from_re(re: &Self::Real) -> Self {
        Self::from_parts(re, &re.scale(0.0))
    }
    /// `op(T)⁻¹` from the right: `B op(T)⁻¹` with `T = self`.
    fn solve_triangular_right(&self, b: &Self, triangle: Triangle) -> Self {
        // (B op(T)⁻¹)ᵀ = op(T)⁻ᵀ Bᵀ
        match triangle.op {
            TriangleOp::None => self.solve_triangular(
                &b.transpose(),
                Triangle { op: TriangleOp::Transpose, ..triangle },
            ),
            TriangleOp::Transpose => {
                self.solve_triangular(&b.transpose(), Triangle { op: TriangleOp::None, ..triangle })
            }
            TriangleOp::Adjoint => {
                let plain = Triangle { op: TriangleOp::None, ..triangle };
                self.conj().solve_triangular(&b.transpose(), plain)
            }
        }
        .transpose()
    }
}

/// Real matrices.
pub trait RealMatrices: Matrices {
    /// `1 / x`, elementwise.
    fn recip(&self) -> Self;
    /// `eˣ`, elementwise.
    fn exp(&self) -> Self;
    /// `ln x`, elementwise.
    fn ln(&self) -> Self;
    /// `xᵖ`, elementwise.
    fn powf(&self, p: f64) -> Self;
    /// 1 where `|x| ≤ limit`, else 0; a constant. The limit broadcasts.
    fn within(&self, limit: &Self) -> Self;

    /// All entries as host values, row by row and matrix by matrix.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    fn entries(&self) -> Result<Vec<f64>>;
    /// Largest modulus of each matrix, as [`Matrices::largest`].
    fn largest_real(&self) -> Self;
    /// Smallest entry of each nonempty matrix, `1 × 1`; a constant.
    fn smallest_real(&self) -> Self;

    /// Largest power of two not larger than `x`, for normal `x > 0`; a constant.
    ///
    /// Reference: S. Rump, T. Ogita, S. Oishi 2008, Algorithm 3.5.
    fn power_of_two(&self) -> Self {
        let (u, shift) = (self.epsilon() / 2.0, if self.epsilon() < 1e-10 { 64 } else { 24 });
        // Scaled to about 1: neither φx nor ux may overflow or underflow.
        let small = self.within(&self.constant(1, 1, 1.0));
        let large = small.constant(1, 1, 1.0).sub(&small);
        let toward = |e: i32| small.scale(2f64.powi(e)).add(&large.scale(2f64.powi(-e)));
        let q = self.detached().mul(&toward(shift)).scale(1.0 + 0.5 / u);
        q.sub(&q.scale(1.0 - u)).mul(&toward(-shift))
    }

    /// 1 where `x ≥ 0`, else 0; a constant.
    fn not_negative(&self) -> Self {
        self.within(self)
    }

    /// `|x|`, elementwise; its derivative at 0 is 0.
    fn abs(&self) -> Self {
        let one = self.constant(1, 1, 1.0);
        let sign = self.not_negative().scale(2.0).sub(&one);
        self.mul(&sign.sub(&self.within(&one.scale(0.0))))
    }

    /// `1 / x`, and 0 where `|x| ≤ limit`.
    fn masked_recip(&self, limit: &Self) -> Self {
        let inside = self.within(limit);
        let outside = inside.scale(-1.0).add(&inside.constant(1, 1, 1.0));
        // The divisor is replaced by a nonzero number where `inside` is 1; the quotient is dropped there.
        let safe = self.mul(&outside).add(&inside);
        safe.recip().mul(&outside)
    }
}
