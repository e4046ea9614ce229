//! All operations on matrices as one enum, and their execution.
//!
//! ```text
//! MatrixOp   any operation; one row each
//! rule       parts common to all derivative rules
//! Linalg     a MatrixOp on arrays: a t4a_diff::Operation, complex matrices as pairs
//! device     device kernels of some operations
//! ```

mod array;
mod device;
mod rule;
#[cfg(test)]
mod scales;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tests;

use smallvec::SmallVec;
use t4a_tensor::Tensor;

pub use array::Linalg;

use crate::degeneracy::Degeneracy;
use crate::error::Result;
use crate::operation::{Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($op:path),)*) => {
        /// Any operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[non_exhaustive]
        #[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
        pub enum MatrixOp {
            $($(#[$doc])* $name($op),)*
        }

        $(impl From<$op> for MatrixOp {
            fn from(op: $op) -> Self {
                MatrixOp::$name(op)
            }
        })*

        impl MatrixOp {
            /// Name in errors and tables.
            pub fn name(&self) -> &'static str {
                match self { $(MatrixOp::$name(_) => <$op as MatrixOperation>::NAME,)* }
            }
            /// Operand shapes.
            pub fn operands(&self) -> Signature {
                match self { $(MatrixOp::$name(_) => <$op as MatrixOperation>::OPERANDS,)* }
            }
            /// Kinds of the results, in order.
            pub fn results(&self) -> &'static [PartKind] {
                match self { $(MatrixOp::$name(_) => <$op as MatrixOperation>::RESULTS,)* }
            }
            /// Kinds of [`Outcome::hidden`].
            pub fn hidden(&self) -> &'static [PartKind] {
                match self { $(MatrixOp::$name(_) => <$op as MatrixOperation>::HIDDEN,)* }
            }
            /// As [`MatrixOperation::sizes`].
            pub fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
                match self { $(MatrixOp::$name(op) => op.sizes(operands),)* }
            }
            /// As [`MatrixOperation::permutations`].
            pub fn permutations(&self, size: [usize; 2]) -> SmallVec<[usize; 2]> {
                match self { $(MatrixOp::$name(op) => op.permutations(size),)* }
            }
            /// As [`MatrixOperation::saves`].
            pub fn saves(&self, size: [usize; 2], permuted: bool) -> Option<Factorisation> {
                match self { $(MatrixOp::$name(op) => op.saves(size, permuted),)* }
            }
            /// As [`MatrixOperation::forward`].
            ///
            /// # Errors
            /// Those of the operation.
            pub fn forward<T: LinalgScalar>(
                &self,
                operands: &[&Tensor<T>],
                tracked: bool,
            ) -> Result<Outcome<Batched<T>>> {
                match self { $(MatrixOp::$name(op) => op.forward(operands, tracked),)* }
            }
            /// As [`MatrixOperation::info`].
            ///
            /// # Errors
            /// Those of the operation.
            pub fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
                match self { $(MatrixOp::$name(op) => op.info(operands),)* }
            }
            /// As [`MatrixOperation::vjp`].
            ///
            /// # Errors
            /// Those of the operation.
            pub fn vjp<M: Matrices>(
                &self,
                operands: &[M],
                out: &Outcome<M>,
                cotangents: &[Option<Part<M>>],
            ) -> Result<Vec<M>> {
                match self { $(MatrixOp::$name(op) => op.vjp(operands, out, cotangents),)* }
            }
            /// As [`MatrixOperation::jvp`].
            ///
            /// # Errors
            /// Those of the operation.
            pub fn jvp<M: Matrices>(
                &self,
                operands: &[M],
                out: &Outcome<M>,
                tangents: &[Option<M>],
            ) -> Result<Vec<Part<M>>> {
                match self { $(MatrixOp::$name(op) => op.jvp(operands, out, tangents),)* }
            }
        }
    };
}

operations! {
    /// `A` → `U`, `S`, `Vᴴ`; cotangents may have fewer columns, for truncation.
    Svd(crate::svd::SvdOp),
    /// `A` → `S`.
    Svdvals(crate::svd::SvdvalsOp),
    /// `A` → `U f(S) Vᴴ`.
    SvdFunction(crate::svd::SvdFunctionOp),
    /// `A` → `Q`, `R`.
    Qr(crate::qr::QrOp),
    /// `A` → `Q`, `R` and a permutation of the columns.
    QrPivoted(crate::qr::QrPivotedOp),
    /// `A` → `L`, `Q` (thin).
    Lq(crate::qr::LqOp),
    /// `A` → packed `L` and `U`, and permutations.
    LuFactor(crate::lu::LuFactorOp),
    /// `A` → `L`.
    Cholesky(crate::cholesky::CholeskyOp),
    /// `A` → `E`, `V`.
    Eigh(crate::eigh::EighOp),
    /// `A` → `E`.
    Eigvalsh(crate::eigh::EigvalshOp),
    /// `A` → `λ`, `V`, complex.
    Eig(crate::eig::EigOp),
    /// `A` → `λ`, complex.
    Eigvals(crate::eig::EigvalsOp),
    /// `A` → `U`, `P`.
    Polar(crate::polar::PolarOp),
    /// `A` → `e^A`.
    Expm(crate::expm::ExpmOp),
    /// `A` → `√A`.
    Sqrtm(crate::sqrtm::SqrtmOp),
    /// `A` → `ln A`.
    Logm(crate::logm::LogmOp),
    /// `A` → `f(A)`.
    HermitianFunction(crate::hermitian::HermitianFunctionOp),
    /// `A` → `A⁻¹`.
    Inv(crate::inverse::InvOp),
    /// `A` → the pseudoinverse.
    Pinv(crate::pinv::PinvOp),
    /// `A` → `det A`, `1 × 1`.
    Det(crate::det::DetOp),
    /// `A` → `sign`, `ln|det A|`, `1 × 1`.
    Slogdet(crate::det::SlogdetOp),
    /// `A`, `B` → `A⁻¹ B`.
    Solve(crate::solve::SolveOp),
    /// `T`, `B` → `op(T)⁻¹ B`.
    SolveTriangular(crate::triangular::SolveTriangularOp),
    /// `A`, `B` → `X` with minimal `‖A X − B‖`, for full rank.
    Lstsq(crate::lstsq::LstsqOp),
    /// `A`, `B` → the pseudoinverse times `B`.
    LstsqMinNorm(crate::lstsq::LstsqMinNormOp),
    /// `P`, `B` → `X` with `P X + X P = B`, of positive definite `P`.
    LyapunovPositive(crate::lyapunov::LyapunovPositiveOp),
    /// `A`, `B`, `C` → `X` with `A X + X B = C`.
    Sylvester(crate::sylvester::SylvesterOp),
    /// `A` → `Uₚ Sₚ Vₚᴴ`.
    LowRank(crate::svd::LowRankOp),
}

impl From<Factorisation> for MatrixOp {
    fn from(by: Factorisation) -> Self {
        match by {
            Factorisation::Svd => {
                let (vectors, degeneracy) = (crate::svd::Vectors::Thin, Degeneracy::SEPARABLE);
                crate::svd::SvdOp { vectors, degeneracy }.into()
            }
            Factorisation::Qr => crate::qr::QrOp { columns: crate::qr::Columns::Thin }.into(),
            Factorisation::Lq => crate::qr::LqOp.into(),
            Factorisation::Lu => {
                crate::lu::LuFactorOp { pivoting: crate::lu::Pivoting::Partial }.into()
            }
            Factorisation::Eigh => crate::eigh::EighOp { degeneracy: Degeneracy::SEPARABLE }.into(),
            Factorisation::Eig => crate::eig::EigOp { degeneracy: Degeneracy::SEPARABLE }.into(),
            Factorisation::Pinv { rtol } => crate::pinv::PinvOp { rtol }.into(),
        }
    }
}
