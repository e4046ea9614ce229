//! Functions of the values of a matrix with their first and second directional derivatives.

use crate::degeneracy::Degeneracy;
use crate::error::{LinalgError, Result};
use crate::hermitian::{self, Elementary, check_domain};
use crate::svd;
use crate::vocabulary::{Factors, Matrices, RealMatrices, Spectrum};

/// Function `U f(S) Vᴴ` whose derivatives are defined at ties. The tables of divided differences are real and
/// symmetric, and the second derivative is a symmetric bilinear form: each derivative is its own transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum MatrixFunction {
    /// `V f(λ) Vᴴ` of Hermitian matrices.
    Hermitian(Elementary),
    /// `U f(S) Vᴴ`.
    Singular(Elementary),
    /// Truncation `Uₚ Sₚ Vₚᴴ` of this rank.
    LowRank(usize),
}

impl MatrixFunction {
    /// Name of the operation that computes the function.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MatrixFunction::Hermitian(_) => "hermitian_function",
            MatrixFunction::Singular(_) => "svd_function",
            MatrixFunction::LowRank(_) => "low_rank",
        }
    }

    pub(crate) fn spectrum(self) -> Spectrum {
        match self {
            MatrixFunction::Hermitian(_) => Spectrum::Hermitian,
            MatrixFunction::Singular(_) | MatrixFunction::LowRank(_) => Spectrum::Singular,
        }
    }

    /// 1 for each matrix with values so close to each other, or singular values so close to zero, that derivatives
    /// through vectors have lost half of their digits, else 0; their errors are `ε/g²` for a relative gap `g`.
    pub(crate) fn crowded<R: RealMatrices<Real = R>>(self, values: &R) -> R {
        let n = values.cols();
        let limit = values.largest_real().scale(values.epsilon().powf(0.25));
        let mut close = values.constant(1, 1, 0.0);
        if n > 1 {
            let gaps = values.slice(0..1, 1..n).sub(&values.slice(0..1, 0..n - 1));
            close = close.add(&gaps.within(&limit).transpose().sum_rows());
        }
        if n > 0 && self.spectrum() == Spectrum::Singular {
            close = close.add(&values.slice(0..1, n - 1..n).within(&limit));
        }
        let none = close.within(&close.scale(0.0));
        none.constant(1, 1, 1.0).sub(&none)
    }

    /// First derivative `D f(A)[C]`.
    ///
    /// # Errors
    /// `SplitTie` for a rank that splits a tie.
    pub fn slope<M: Matrices>(self, factors: &Factors<M>, c: &M) -> Result<M> {
        let Factors { u, s, v, .. } = factors;
        match self {
            MatrixFunction::Hermitian(f) => Ok(hermitian::vjp(s, u, c, &f)),
            MatrixFunction::Singular(f) => Ok(svd::vjp_function(u, s, &v.adjoint(), c, &f)),
            MatrixFunction::LowRank(p) => svd::low_rank_slope(factors, c, p),
        }
    }

    /// Second derivative `D² f(A)[C, E]`.
    ///
    /// # Errors
    /// `OutsideDomain` where it does not exist.
    pub fn second<M: Matrices>(self, factors: &Factors<M>, [c, e]: [&M; 2]) -> Result<M> {
        let Factors { u, s, v, of } = factors;
        if self.spectrum() == Spectrum::Singular && u.rows() < v.rows() {
            let factors = Factors { u: v.clone(), s: s.clone(), v: u.clone(), of: *of };
            let [c, e] = [c, e].map(M::adjoint);
            return Ok(self.second(&factors, [&c, &e])?.adjoint());
        }
        let second = match self {
            MatrixFunction::Hermitian(f) => hermitian::second::second(s, u, [c, e], f),
            // Zero, without the rounding errors of quotients by small values.
            MatrixFunction::Singular(Elementary::Pow(1.0)) => c.scale(0.0),
            MatrixFunction::Singular(f) => {
                let limit = Degeneracy::DEFAULT.limit(s, u.rows());
                if let Some(batch) = svd::second::bends_at_zero(s, &limit, f)? {
                    return Err(LinalgError::OutsideDomain { op: self.name(), batch });
                }
                svd::second::second([u, v], [c, e], &svd::second::Odd::new(s, limit, f))
            }
            MatrixFunction::LowRank(p) => {
                svd::second::second([u, v], [c, e], &svd::second::Cut::new(s, p))
            }
        };
        check_domain(self.name(), &second)?;
        Ok(second)
    }
}
