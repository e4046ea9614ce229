//! Powers, norms, condition numbers, Householder products: functions composed of others.

use crate::call::{self, OperationResults, Pair};
use crate::inverse::InvOp;
use crate::lu::LuFactorOp;
use crate::norm::{condition_of_values, of_elements, of_values};
use crate::operation::Part;
use crate::program::{self, MatrixProgram};
use crate::svd::SvdvalsOp;
use crate::vocabulary::{Matrices, RealMatrix};
use crate::{LinalgError, MatrixOp, Result, householder, power};
use t4a_diff::{Array, Flags};
use t4a_tensor::Tensor;

use super::call::{Composition, Function, ResultsOf, functions, number, one, parts, plain};
use super::matrix::{Matrix, Ranked};

pub use crate::norm::Norm;

functions! {
    MatrixPowerOp: M -> M = one;
    MatrixNormOp: M -> M::RealNumber = number::<F, M>;
    CondOp: M -> M::RealNumber = number::<F, M>;
    RcondOp: M -> M::RealNumber = number::<F, M>;
}

/// `A` → `Aᵏ`.
#[derive(Clone, Copy, Debug)]
pub struct MatrixPowerOp {
    /// The exponent.
    pub k: i64,
}

impl MatrixProgram for MatrixPowerOp {
    const NAME: &'static str = "matrix_power";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(power::power(&inputs[0], self.k))
    }
}

impl Composition for MatrixPowerOp {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn run<A: Array>(&self, a: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        check_square(Self::NAME, a[0].shape())?;
        Ok(OperationResults::one(program::run(self, &a)?))
    }

    /// Only inverses fail.
    fn failing(&self) -> Option<MatrixOp> {
        Some(InvOp.into())
    }
}

fn check_square(op: &'static str, shape: Vec<usize>) -> Result<()> {
    match shape[shape.len() - 2..] {
        [m, n] if m == n => Ok(()),
        _ => Err(LinalgError::NotSquare { op, shape }),
    }
}

/// Matrix power `Aᵏ` by repeated squaring; the inverse of `A⁻ᵏ` for `k < 0`, the unit matrix for `k = 0`.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost at most 2 log₂ k products, and an inverse for negative `k`; each is a node
/// of the tape.
///
/// # Errors
/// `NotSquare`; for negative `k` also `NonFinite`, `Singular` with the batch index.
pub fn matrix_power<F, M: Matrix<F>>(a: M, k: i64) -> Result<M> {
    plain(MatrixPowerOp { k }, a)
}

/// Norms of matrices that are not functions of their singular values.
struct ElementwiseNorm(Norm);

impl MatrixProgram for ElementwiseNorm {
    const NAME: &'static str = "matrix_norm";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Real(of_elements(&inputs[0], self.0))
    }
}

fn check_norm<A: Array>(op: &'static str, a: &Pair<A>, norm: Norm) -> Result<()> {
    let shape = a.shape();
    norm.check(op, shape[shape.len() - 2], shape[shape.len() - 1])
}

/// Applies a function to a row of real numbers.
fn of_row<A: Array>(
    row: &Pair<A>,
    f: impl FnOnce(&RealMatrix<A>) -> RealMatrix<A>,
) -> Result<Pair<A>> {
    Ok(Pair::real(f(&RealMatrix::new(row.re.clone())).into_array()?))
}

/// `A` → `‖A‖`.
#[derive(Clone, Copy, Debug)]
pub struct MatrixNormOp {
    /// The norm.
    pub norm: Norm,
}

impl Composition for MatrixNormOp {
    fn name(&self) -> &'static str {
        ElementwiseNorm::NAME
    }

    fn run<A: Array>(&self, a: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        check_norm(self.name(), &a[0], self.norm)?;
        let value = match self.norm.is_spectral() {
            true => {
                let out = call::run(SvdvalsOp, &a).map_err(|error| error.of(self.name()))?;
                // Linear in the values, whose tangents have the same order.
                of_row(&out.results[0], |s| of_values(s, self.norm))?
            }
            false => program::run(&ElementwiseNorm(self.norm), &a)?,
        };
        Ok(OperationResults::one(value))
    }

    fn failing(&self) -> Option<MatrixOp> {
        Some(SvdvalsOp.into())
    }
}

/// Matrix norm `‖A‖`, `[…, m, n]` → `[…]`, real ([`crate::norm`]).
///
/// The derivative of `|0|` is 0; if several rows or columns attain an extremum, the derivative is the mean of theirs.
/// Spectral norms have the derivatives of [`svdvals`](super::svdvals).
///
/// # Errors
/// `Tensor` for extrema over no values; spectral norms `NonFinite`, `NoConvergence` with the batch index.
pub fn matrix_norm<F, M: Matrix<F>>(a: M, norm: Norm) -> Result<M::RealNumber> {
    plain(MatrixNormOp { norm }, a)
}

/// `x` → `√Σ|xᵢ|²` over all elements of a tensor.
#[derive(Clone, Copy, Debug)]
pub struct NormOp;

impl Composition for NormOp {
    fn name(&self) -> &'static str {
        "norm"
    }

    fn run<A: Array>(&self, x: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        let value = program::run(&ElementwiseNorm(Norm::Frobenius), &x);
        Ok(OperationResults::one(value.map_err(|error| error.of(self.name()))?))
    }
}

impl<F, X, N> Function<F, X, N> for NormOp
where
    X: Ranked<F>,
    N: Ranked<F, Array = X::Array>,
{
    type Array = X::Array;
    type Info = <X::Single as Matrix<F>>::Info;

    fn operands(x: X) -> Vec<Pair<X::Array>> {
        let x = x.into_pair();
        let row = [1, x.shape().iter().product()];
        vec![x.map(|x| x.reshape(&row))]
    }
    fn results(out: OperationResults<X::Array>) -> Result<N> {
        let [value] = parts(out);
        Ok(N::from_pair(value.map(|x| x.reshape(&vec![1; N::RANK]))))
    }
    fn info(codes: &Tensor<i32>, like: &X::Array) -> Result<Self::Info> {
        X::Single::info(codes, like)
    }
}

/// Norm `√Σ|xᵢ|²` over all elements of a tensor of any rank; for one norm per matrix see [`matrix_norm`]. The result
/// has size 1 on every axis. It overflows only if the norm does; its derivative at zero is 0.
///
/// # Errors
/// `Tensor` for other dtypes than f32 and f64.
pub fn norm<F, X, N>(x: X) -> Result<N>
where
    X: Ranked<F>,
    N: Ranked<F, Array = X::Array>,
{
    plain(NormOp, x)
}

/// Scales a matrix by a power of two, which does not change condition numbers: derivatives of the inverse are
/// products of two inverses, which may overflow.
struct NearOne;

impl MatrixProgram for NearOne {
    const NAME: &'static str = "cond";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(inputs[0].near_one())
    }
}

/// `A` → `‖A‖ ‖A⁻¹‖`.
#[derive(Clone, Copy, Debug)]
pub struct CondOp {
    /// The norm.
    pub norm: Norm,
}

impl CondOp {
    /// Quotient of singular values.
    fn of_values<A: Array>(self, a: &[Pair<A>]) -> Result<Pair<A>> {
        let out = call::run(SvdvalsOp, a)?;
        of_row(&out.results[0], |s| condition_of_values(s, self.norm))
    }

    /// Product of the norms of the matrix and of its inverse.
    fn of_inverse<A: Array>(self, a: &[Pair<A>]) -> Result<Pair<A>> {
        // Non-finite elements are an error, singular matrices are not.
        let constant: Vec<_> = a.iter().map(|x| x.map(A::detach)).collect();
        if let Err(error @ LinalgError::NonFinite { .. }) =
            call::run(LuFactorOp::PARTIAL, &constant)
        {
            return Err(error);
        }
        let a = program::run(&NearOne, a)?;
        let (inverse, _) = call::with_status(InvOp, vec![a.clone()])?;
        let norm = MatrixNormOp { norm: self.norm };
        let x = &norm.run(vec![a])?.results[0].re;
        let y = &norm.run_isolated(inverse.results)?.0.results[0].re;
        // Inverses of singular matrices are NaN: replaced by 1, so that NaN does not enter the gradients.
        let failed = y.is_nan();
        Ok(Pair::real(x.mul(&y.fill(&failed, 1.0)).fill(&failed, f64::INFINITY)))
    }
}

impl Composition for CondOp {
    fn name(&self) -> &'static str {
        NearOne::NAME
    }

    fn run<A: Array>(&self, a: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        let of_values = matches!(self.norm, Norm::Two | Norm::MinusTwo);
        if !of_values {
            check_square(self.name(), a[0].shape())?;
        }
        check_norm(self.name(), &a[0], self.norm)?;
        let value = if of_values { self.of_values(&a) } else { self.of_inverse(&a) };
        Ok(OperationResults::one(value.map_err(|error| error.of(self.name()))?))
    }

    fn failing(&self) -> Option<MatrixOp> {
        Some(SvdvalsOp.into())
    }
}

/// Condition number `‖A‖ ‖A⁻¹‖`, `[…, n, n]` → `[…]`; for `Two` the quotient of the largest and the smallest singular
/// value, for `MinusTwo` its inverse, both also for `m × n` matrices. ∞ for singular matrices, which have no gradient
/// and do not affect the others of a batch.
///
/// # Errors
/// `NotSquare`, `Tensor` for matrices without elements; `NonFinite`, `NoConvergence` with the batch
/// index.
pub fn cond<F, M: Matrix<F>>(a: M, norm: Norm) -> Result<M::RealNumber> {
    plain(CondOp { norm }, a)
}

/// `A` → `1/(‖A‖ ‖A⁻¹‖)` in the 1-norm.
#[derive(Clone, Copy, Debug)]
pub struct RcondOp;

impl Composition for RcondOp {
    fn name(&self) -> &'static str {
        "rcond"
    }

    fn run<A: Array>(&self, a: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        check_square(self.name(), a[0].shape())?;
        check_norm(self.name(), &a[0], Norm::One)?;
        let a = program::run(&NearOne, &a)?;
        let inverse = call::with_status(InvOp, vec![a.clone()]);
        let (inverse, _) = inverse.map_err(|error| error.of(self.name()))?;
        let norm = MatrixNormOp { norm: Norm::One };
        let y = &norm.run(inverse.results)?.results[0].re;
        // Inverses of failed matrices are NaN: both are replaced by 1, so that NaN does not enter the gradients.
        let failed = y.is_nan();
        let regular = a.map(|x| x.fill(&failed.expand(&x.shape()), 1.0));
        let x = &norm.run(vec![regular])?.results[0].re;
        let value = x.mul(&y.fill(&failed, 1.0)).recip().fill(&failed, 0.0);
        Ok(OperationResults::one(Pair::real(value)))
    }
}

/// Reciprocal condition number `1/(‖A‖ ‖A⁻¹‖)` in the 1-norm, `[…, n, n]` → `[…]`: 0 for singular matrices, whose
/// gradient is zero, and for matrices with non-finite elements. About the machine epsilon for matrices that are
/// singular up to rounding, for which [`solve`](super::solve()) and [`inv`](super::inv) have no correct digits. Cost
/// that of an inverse.
///
/// # Errors
/// `NotSquare`, `Tensor` for matrices without elements.
pub fn rcond<F, M: Matrix<F>>(a: M) -> Result<M::RealNumber> {
    plain(RcondOp, a)
}

/// `V`, `τ` → the first columns of the product of reflections.
#[derive(Clone, Copy, Debug)]
pub struct HouseholderProductOp;

impl MatrixProgram for HouseholderProductOp {
    const NAME: &'static str = "householder_product";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(householder::product(&inputs[0], &inputs[1]))
    }
}

impl Composition for HouseholderProductOp {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn run<A: Array>(&self, operands: Vec<Pair<A>>) -> Result<OperationResults<A>> {
        let (v, mut tau) = (operands[0].shape(), operands[1].shape());
        // A row `[…, 1, k]`.
        tau.remove(tau.len() - 2);
        householder::check_shapes(&v, &tau)?;
        Ok(OperationResults::one(program::run(self, &operands)?))
    }
}

impl<F, M: Matrix<F>> Function<F, (M, M::Vector), M> for HouseholderProductOp {
    type Array = M::Array;
    type Info = M::Info;

    fn operands((v, tau): (M, M::Vector)) -> Vec<Pair<M::Array>> {
        vec![v.into_pair(), M::rows(tau)]
    }
    fn results(out: ResultsOf<F, M>) -> Result<M> {
        one(out)
    }
    fn info(codes: &Tensor<i32>, like: &M::Array) -> Result<M::Info> {
        M::info(codes, like)
    }
}

/// First `n` columns of `H₁ H₂ ⋯ Hₖ`, `Hᵢ = I − τᵢ vᵢ vᵢᴴ`: `vᵢ` is zero above entry `i`, 1 there, and below it
/// column `i` of the matrix, whose other entries are not read.
///
/// Shapes `[…, m, n]`, `[…, k]` → `[…, m, n]`, `k ≤ n ≤ m`. Cost about 2·m·k·(n + k) flops.
///
/// # Errors
/// `Tensor` if the shapes do not match.
pub fn householder_product<F, M: Matrix<F>>(v: M, tau: M::Vector) -> Result<M> {
    plain(HouseholderProductOp, (v, tau))
}
