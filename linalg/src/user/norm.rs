//! Powers, norms, condition numbers, Householder products: functions composed of others.

use crate::call::Pair;
use crate::norm::{condition_of_values, of_elements, of_values};
use crate::operation::Part;
use crate::program::{self, MatrixProgram};
use crate::svd::SvdvalsOp;
use crate::vocabulary::{Matrices, RealMatrix};
use crate::{LinalgError, Result, householder, power};
use t4a_diff::{Array, Dual, Flags};

use super::call::{self, ResultsOf, jvp, plain, status};
use super::matrix::{Matrix, Ranked};
use super::solve::{inv_ex, inv_jvp};

pub use crate::norm::Norm;

struct Power(i64);

impl MatrixProgram for Power {
    const NAME: &'static str = "matrix_power";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(power::power(&inputs[0], self.0))
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
    let a = a.into_pair();
    check_square(Power::NAME, a.shape())?;
    Ok(M::from_pair(program::run(&Power(k), &[a])?))
}

/// `Aᵏ` and its tangent along `dA`. Cost three times that of the power.
///
/// # Errors
/// As [`matrix_power`]; `Tensor` if the shapes differ.
pub fn matrix_power_jvp<F, M: Matrix<F>>(a: M, da: M, k: i64) -> Result<(M, M)> {
    let (a, da) = (a.into_pair(), da.into_pair());
    check_square(Power::NAME, a.shape())?;
    let (value, tangent) = program::with_tangents(&Power(k), &[a], &[da])?;
    Ok((M::from_pair(value), M::from_pair(tangent)))
}

struct ElementwiseNorm(Norm);

impl MatrixProgram for ElementwiseNorm {
    const NAME: &'static str = "matrix_norm";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Real(of_elements(&inputs[0], self.0))
    }
}

fn check_norm<F, M: Matrix<F>>(op: &'static str, a: &M, norm: Norm) -> Result<()> {
    let shape = a.clone().into_pair().shape();
    norm.check(op, shape[shape.len() - 2], shape[shape.len() - 1])
}

/// Matrix norm `‖A‖`, `[…, m, n]` → `[…]`, real ([`crate::norm`]).
///
/// The derivative of `|0|` is 0; if several rows or columns attain an extremum, the derivative is the mean of theirs.
/// Spectral norms have the derivatives of [`svdvals`](super::svdvals).
///
/// # Errors
/// `Tensor` for extrema over no values; spectral norms `NonFinite`, `NoConvergence` with the batch index.
pub fn matrix_norm<F, M: Matrix<F>>(a: M, norm: Norm) -> Result<M::RealNumber> {
    check_norm(ElementwiseNorm::NAME, &a, norm)?;
    Ok(M::real_number(measure(a, norm)?))
}

fn measure<F, M: Matrix<F>>(a: M, norm: Norm) -> Result<call::ResultOf<F, M>> {
    match norm.is_spectral() {
        true => plain(SvdvalsOp, [a], |parts| of_row(&parts[0], |s| of_values(s, norm)))
            .and_then(|value| value)
            .map_err(|error| error.of(ElementwiseNorm::NAME)),
        false => program::run(&ElementwiseNorm(norm), &[a.into_pair()]),
    }
}

/// Applies a function to a row of real numbers.
fn of_row<A: Array>(
    row: &Pair<A>,
    f: impl FnOnce(&RealMatrix<A>) -> RealMatrix<A>,
) -> Result<Pair<A>> {
    Ok(Pair::real(f(&RealMatrix::new(row.re.clone())).into_array()?))
}

/// `‖A‖` and its tangent along `dA`.
///
/// # Errors
/// As [`matrix_norm`]; `Tensor` if the shapes differ.
pub fn matrix_norm_jvp<F, M: Matrix<F>>(
    a: M,
    da: M,
    norm: Norm,
) -> Result<(M::RealNumber, M::RealNumber)> {
    check_norm(ElementwiseNorm::NAME, &a, norm)?;
    let (value, tangent) = measure_jvp(a, da, norm)?;
    Ok((M::real_number(value), M::real_number(tangent)))
}

fn measure_jvp<F, M: Matrix<F>>(
    a: M,
    da: M,
    norm: Norm,
) -> Result<(call::ResultOf<F, M>, call::ResultOf<F, M>)> {
    Ok(match norm.is_spectral() {
        true => {
            // These norms are linear in the values, and the tangents have the same order.
            let read = |parts: ResultsOf<F, M>| of_row(&parts[0], |s| of_values(s, norm));
            let (value, tangent) = jvp(SvdvalsOp, [a], [da], read)?;
            (value?, tangent?)
        }
        false => {
            program::with_tangents(&ElementwiseNorm(norm), &[a.into_pair()], &[da.into_pair()])?
        }
    })
}

/// All elements of a tensor as one row.
fn flat<A: Array>(x: &Pair<A>) -> Pair<A> {
    let count = x.shape().iter().product();
    x.map(|x| x.reshape(&[1, count]))
}

fn number<F, N: Ranked<F>>(value: Pair<N::Array>) -> N {
    N::from_pair(value.map(|x| x.reshape(&vec![1; N::RANK])))
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
    Ok(number::<F, N>(program::run(&ElementwiseNorm(Norm::Frobenius), &[flat(&x.into_pair())])?))
}

/// [`norm`] and its tangent along `dx`.
///
/// # Errors
/// As [`norm`]; `Tensor` if the shapes differ.
pub fn norm_jvp<F, X, N>(x: X, dx: X) -> Result<(N, N)>
where
    X: Ranked<F>,
    N: Ranked<F, Array = X::Array>,
{
    let (x, dx) = (flat(&x.into_pair()), flat(&dx.into_pair()));
    let (value, tangent) = program::with_tangents(&ElementwiseNorm(Norm::Frobenius), &[x], &[dx])?;
    Ok((number::<F, N>(value), number::<F, N>(tangent)))
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

/// Condition number `‖A‖ ‖A⁻¹‖`, `[…, n, n]` → `[…]`; for `Two` the quotient of the largest and the smallest singular
/// value, for `MinusTwo` its inverse, both also for `m × n` matrices. ∞ for singular matrices, which have no gradient
/// and do not affect the others of a batch.
///
/// # Errors
/// `NotSquare`, `Tensor` for matrices without elements; `NonFinite`, `NoConvergence` with the batch
/// index.
pub fn cond<F, M: Matrix<F>>(a: M, norm: Norm) -> Result<M::RealNumber> {
    const NAME: &str = "cond";
    let shape = a.clone().into_pair().shape();
    if matches!(norm, Norm::Two | Norm::MinusTwo) {
        check_norm(NAME, &a, norm)?;
        let read = |parts: ResultsOf<F, M>| of_row(&parts[0], |s| condition_of_values(s, norm));
        let value = plain(SvdvalsOp, [a], read).and_then(|value| value);
        return value.map(M::real_number).map_err(|error| error.of(NAME));
    }
    check_square(NAME, shape)?;
    check_norm(NAME, &a, norm)?;
    // Non-finite elements are an error, singular matrices are not.
    if let Err(error @ LinalgError::NonFinite { .. }) = super::lu::lu(a.clone()) {
        return Err(error.of(NAME));
    }
    let a = M::from_pair(program::run(&NearOne, &[a.into_pair()])?);
    let (inverse, _) = inv_ex(a.clone()).map_err(|error| error.of(NAME))?;
    let x = measure(a, norm).map_err(|error| error.of(NAME))?;
    let y = measure_inverse(inverse, norm)?;
    // Inverses of singular matrices are NaN: replaced by 1, so that NaN does not enter the gradients.
    let failed = y.re.is_nan();
    let product = x.re.mul(&y.re.fill(&failed, 1.0)).fill(&failed, f64::INFINITY);
    Ok(M::real_number(Pair::real(product)))
}

/// Reciprocal condition number `1/(‖A‖ ‖A⁻¹‖)` in the 1-norm, `[…, n, n]` → `[…]`: 0 for singular matrices, whose
/// gradient is zero, and for matrices with non-finite elements. About the machine epsilon for matrices that are
/// singular up to rounding, for which [`solve`](super::solve()) and [`inv`](super::inv) have no correct digits. Cost
/// that of an inverse.
///
/// # Errors
/// `NotSquare`, `Tensor` for matrices without elements.
pub fn rcond<F, M: Matrix<F>>(a: M) -> Result<M::RealNumber> {
    const NAME: &str = "rcond";
    check_square(NAME, a.clone().into_pair().shape())?;
    check_norm(NAME, &a, Norm::One)?;
    let a = M::from_pair(program::run(&NearOne, &[a.into_pair()])?);
    let (inverse, _) = inv_ex(a.clone()).map_err(|error| error.of(NAME))?;
    let y = measure(inverse, Norm::One)?.re;
    // Inverses of failed matrices are NaN: both are replaced by 1, so that NaN does not enter the gradients.
    let failed = y.is_nan();
    let regular = a.into_pair().map(|x| x.fill(&failed.expand(&x.shape()), 1.0));
    let x = measure(M::from_pair(regular), Norm::One)?.re;
    let value = x.mul(&y.fill(&failed, 1.0)).recip().fill(&failed, 0.0);
    Ok(M::real_number(Pair::real(value)))
}

/// The condition number and its tangent along `dA`, of regular matrices.
///
/// # Errors
/// As [`cond`]; `Singular`; `Tensor` if the shapes differ.
pub fn cond_jvp<F, M: Matrix<F>>(
    a: M,
    da: M,
    norm: Norm,
) -> Result<(M::RealNumber, M::RealNumber)> {
    const NAME: &str = "cond";
    let named = |error: LinalgError| error.of(NAME);
    check_norm(NAME, &a, norm)?;
    if matches!(norm, Norm::Two | Norm::MinusTwo) {
        let (s, ds) = jvp(SvdvalsOp, [a], [da], |mut parts| parts.swap_remove(0)).map_err(named)?;
        let row = Pair::real(Dual::new(s.re, ds.re));
        let quotient = of_row(&row, |s| condition_of_values(s, norm))?.re;
        let (value, tangent) = (quotient.value.clone(), quotient.into_tangent());
        return Ok((M::real_number(Pair::real(value)), M::real_number(Pair::real(tangent))));
    }
    check_square(NAME, a.clone().into_pair().shape())?;
    let (a, da) = program::with_tangents(&NearOne, &[a.into_pair()], &[da.into_pair()])?;
    let (a, da) = (M::from_pair(a), M::from_pair(da));
    let (inverse, moving) = inv_jvp(a.clone(), da.clone()).map_err(named)?;
    let (x, dx) = measure_jvp(a, da, norm).map_err(named)?;
    let (y, dy) = measure_jvp(inverse, moving, norm).map_err(named)?;
    let tangent = dx.re.mul(&y.re).add(&x.re.mul(&dy.re));
    Ok((M::real_number(Pair::real(x.re.mul(&y.re))), M::real_number(Pair::real(tangent))))
}

/// [`measure`] with NaN for matrices of NaN.
fn measure_inverse<F, M: Matrix<F>>(inverse: M, norm: Norm) -> Result<call::ResultOf<F, M>> {
    match norm.is_spectral() {
        true => {
            let (parts, _) = status(SvdvalsOp, [inverse], |parts| parts)?;
            of_row(&parts[0], |s| of_values(s, norm))
        }
        false => measure(inverse, norm),
    }
}

struct Reflections;

impl MatrixProgram for Reflections {
    const NAME: &'static str = "householder_product";

    fn run<M: Matrices>(&self, inputs: &[M]) -> Part<M> {
        Part::Full(householder::product(&inputs[0], &inputs[1]))
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
    let (v, tau) = (v.into_pair(), M::rows(tau));
    check_reflections(&v.shape(), tau.shape())?;
    Ok(M::from_pair(program::run(&Reflections, &[v, tau])?))
}

/// The product and its tangent along `dV` and `dτ`.
///
/// # Errors
/// As [`householder_product`].
pub fn householder_product_jvp<F, M: Matrix<F>>(
    v: M,
    tau: M::Vector,
    dv: M,
    dtau: M::Vector,
) -> Result<(M, M)> {
    let (v, tau) = (v.into_pair(), M::rows(tau));
    check_reflections(&v.shape(), tau.shape())?;
    let tangents = [dv.into_pair(), M::rows(dtau)];
    let (value, tangent) = program::with_tangents(&Reflections, &[v, tau], &tangents)?;
    Ok((M::from_pair(value), M::from_pair(tangent)))
}

/// Checks the shapes; `row` is `[…, 1, k]`.
fn check_reflections(v: &[usize], mut row: Vec<usize>) -> Result<()> {
    row.remove(row.len() - 2);
    householder::check_shapes(v, &row)
}
