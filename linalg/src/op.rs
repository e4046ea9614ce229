//! Every operation with a derivative as a value: forward, VJP and JVP through one door.
//!
//! A backend that records operations on a tape, or a caller from another language, needs one
//! function instead of twenty. The rules are generic over the vocabulary, so the same call serves
//! engine tensors, duals (second order) and the primitives of a Burn backend.

mod any;
mod forward;
mod rule;
#[cfg(test)]
mod scales;
#[cfg(test)]
mod tests;

pub use any::{AnyOutcome, complex_from_parts, complex_into_parts};

use crate::degeneracy::Degeneracy;
use crate::hermitian::Elementary;
use crate::lu::Pivoting;
use crate::permutation::Permutation;
use crate::polar::Side;
use crate::qr::Columns;
use crate::spectrum::Spectrum;
use crate::svd::Vectors;
use crate::triangular::Triangle;
use crate::vocabulary::{Dual, Matrices};

/// A differentiable operation on one or two batches of matrices.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Op {
    /// `A` → `U`, `S`, `Vᴴ`; also with fewer cotangent columns, for truncation.
    Svd(Vectors, Degeneracy),
    /// `A` → `S`.
    SvdVals,
    /// `A` → `Q`, `R`.
    Qr(Columns),
    /// `A` → `Q`, `R` and a permutation of the columns.
    QrPivoted(Columns),
    /// `A` → `L`, `Q` (thin).
    Lq,
    /// `A` → packed `L` and `U`, and permutations.
    LuFactor(Pivoting),
    /// `A` → `L`.
    Cholesky,
    /// `A` → `E`, `V`.
    Eigh(Degeneracy),
    /// `A` → `E`.
    EigvalsH,
    /// `A` → its values `S`, and `[A; 0]`: for second derivatives, with the two below
    /// ([`spectrum`](crate::spectrum)).
    Spectrum(Spectrum),
    /// `[A; 0]`, `c` → `U diag(c) Vᴴ`. The row `c` is real.
    SpectrumGradient(Spectrum),
    /// `[A; 0]`, `dA` → `dS`.
    SpectrumTangent(Spectrum),
    /// A gradient → the same, without a derivative along directions that split ties.
    Unsplit,
    /// `A` → `λ`, `V`, complex.
    Eig(Degeneracy),
    /// `A` → `λ`, complex.
    EigVals,
    /// `A` → `U`, `P`.
    Polar(Side),
    /// `A` → `e^A`.
    Expm,
    /// `A` → `√A`.
    Sqrtm,
    /// `A` → `ln A`.
    Logm,
    /// `A` → `f(A)`.
    Hermitian(Elementary),
    /// `A` → `U f(S) Vᴴ`.
    SvdFunction(Elementary),
    /// `A` → `A⁻¹`.
    Inv,
    /// `A` → the pseudoinverse with this relative cutoff.
    Pinv(Option<f64>),
    /// `A` → `det A`, `1 × 1`.
    Det,
    /// `A` → `sign`, `ln|det A|`, `1 × 1`.
    Slogdet,
    /// `A`, `B` → `A⁻¹ B`.
    Solve,
    /// `T`, `B` → `op(T)⁻¹ B`.
    SolveTriangular(Triangle),
    /// `A`, `B` → `X` with `‖A X − B‖` minimal, at full rank.
    Lstsq,
    /// `A`, `B` → the pseudoinverse with this relative cutoff, times `B`.
    LstsqMinNorm(Option<f64>),
    /// `P`, `B` → `X` with `P X + X P = B`.
    Lyapunov,
}

/// A result of an operation. Vectors are rows, numbers `1 × 1`.
#[derive(Clone, Debug)]
pub enum Part<M: Matrices> {
    /// Of the type of the inputs.
    Full(M),
    /// Real: singular values, eigenvalues of Hermitian matrices.
    Real(M::Real),
    /// Complex: general eigenvalues and eigenvectors.
    Complex(M::Complex),
}

/// Which [`Part`] a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Part::Full`].
    Full,
    /// [`Part::Real`].
    Real,
    /// [`Part::Complex`].
    Complex,
}

/// What an operation returns, and what its rules need beyond that.
#[derive(Clone, Debug)]
pub struct Outcome<M: Matrices> {
    /// The results.
    pub parts: Vec<Part<M>>,
    /// The factorisation of the first input that the rules use, as results of another operation.
    pub saved: Option<(Op, Vec<Part<M>>)>,
    /// The row permutation of a pivoted factorisation, in `parts` or in `saved`.
    pub rows: Option<Permutation>,
    /// The column permutation of a pivoted factorisation.
    pub cols: Option<Permutation>,
}

impl Op {
    /// Its name in errors and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Svd(..) => "svd",
            Op::SvdVals => "svdvals",
            Op::Qr(_) => "qr",
            Op::QrPivoted(_) => "qr_pivoted",
            Op::Lq => "lq",
            Op::LuFactor(_) => "lu_factor",
            Op::Cholesky => "cholesky",
            Op::Eigh(_) => "eigh",
            Op::EigvalsH => "eigvalsh",
            Op::Spectrum(_) => "spectrum",
            Op::SpectrumGradient(_) => "spectrum_gradient",
            Op::SpectrumTangent(_) => "spectrum_tangent",
            Op::Unsplit => "unsplit",
            Op::Eig(_) => "eig",
            Op::EigVals => "eigvals",
            Op::Polar(_) => "polar",
            Op::Expm => "expm",
            Op::Sqrtm => "sqrtm",
            Op::Logm => "logm",
            Op::Hermitian(_) => "hermitian_function",
            Op::SvdFunction(_) => "svd_function",
            Op::Inv => "inv",
            Op::Pinv(_) => "pinv",
            Op::Det => "det",
            Op::Slogdet => "slogdet",
            Op::Solve => "solve",
            Op::SolveTriangular(_) => "solve_triangular",
            Op::Lstsq => "lstsq",
            Op::LstsqMinNorm(_) => "lstsq_min_norm",
            Op::Lyapunov => "lyapunov",
        }
    }

    /// The kinds of its results, in order.
    pub fn results(&self) -> &'static [Kind] {
        use Kind::{Complex, Full, Real};
        match self {
            Op::Svd(..) => &[Full, Real, Full],
            Op::SvdVals | Op::EigvalsH | Op::SpectrumTangent(_) => &[Real],
            Op::Spectrum(_) => &[Real, Full],
            Op::Eigh(_) => &[Real, Full],
            Op::Eig(_) => &[Complex, Complex],
            Op::EigVals => &[Complex],
            Op::Qr(_) | Op::QrPivoted(_) | Op::Lq | Op::Polar(_) => &[Full, Full],
            Op::Slogdet => &[Full, Real],
            _ => &[Full],
        }
    }

    /// Number of inputs.
    pub fn arity(&self) -> usize {
        match self {
            Op::Solve | Op::SolveTriangular(_) | Op::Lstsq | Op::LstsqMinNorm(_) | Op::Lyapunov => {
                2
            }
            Op::SpectrumGradient(_) | Op::SpectrumTangent(_) => 2,
            _ => 1,
        }
    }
}

impl Op {
    /// Whether its rule is that of a decomposition with values: a second derivative needs values
    /// without ties, or directions that do not split them.
    pub fn is_spectral(&self) -> bool {
        let singular = matches!(self, Op::Svd(..) | Op::SvdFunction(_));
        let hermitian = matches!(self, Op::Eigh(_) | Op::Hermitian(_));
        singular || hermitian || matches!(self, Op::Eig(_) | Op::EigVals)
    }

    /// Which values it returns, if it returns nothing else.
    pub fn values_of(&self) -> Option<Spectrum> {
        match self {
            Op::SvdVals => Some(Spectrum::Singular),
            Op::EigvalsH => Some(Spectrum::Hermitian),
            _ => None,
        }
    }
}

impl<M: Matrices> Part<M> {
    /// The part as a matrix of the inputs' type.
    ///
    /// # Panics
    /// If it is of another kind: the kinds of an operation's results are fixed.
    pub fn full(&self) -> &M {
        match self {
            Part::Full(m) => m,
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }

    /// The part as a real matrix.
    ///
    /// # Panics
    /// As [`Part::full`].
    pub fn real(&self) -> &M::Real {
        match self {
            Part::Real(m) => m,
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }

    /// The part as a complex matrix.
    ///
    /// # Panics
    /// As [`Part::full`].
    pub fn complex(&self) -> &M::Complex {
        match self {
            Part::Complex(m) => m,
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }

    /// The part with a tangent beside it.
    pub fn dual(value: &Self, tangent: &Self) -> Part<Dual<M>> {
        match (value, tangent) {
            (Part::Full(v), Part::Full(t)) => Part::Full(Dual::new(v.clone(), t.clone())),
            (Part::Real(v), Part::Real(t)) => Part::Real(Dual::new(v.clone(), t.clone())),
            (Part::Complex(v), Part::Complex(t)) => Part::Complex(Dual::new(v.clone(), t.clone())),
            _ => unreachable!("the kind of a result is fixed by its operation"),
        }
    }
}
