//! Principal logarithm of a general matrix by its Schur form, with inverse scaling and squaring.
//!
//! ```text
//! A = Q T Qᴴ,   ln T = 2ˢ ln T^(1/2ˢ),   ln(I + X) ≈ Σⱼ wⱼ (I + tⱼX)⁻¹ X
//! ```
//!
//! Square roots of `T` are taken until the norms of powers of `X = T^(1/2ˢ) − I` are small, which for matrices far
//! from normal requires few; then follows the diagonal Padé approximant of degree 8 in partial fractions
//! (Gauss–Legendre quadrature). The diagonal and first superdiagonal have closed forms without the cancellation of
//! `T^(1/2ˢ) − I` and of differences of logarithms (module `divided`). The derivative uses block matrices as that of
//! [`sqrtm`] (module `frechet`). For Hermitian matrices [`hermitian_function`](crate::hermitian) is faster.
//!
//! Reference: A. Al-Mohy, N. Higham 2012, algorithm 5.1 and Table 2.1; N. Higham, L. Lin 2011.

mod op;
#[cfg(test)]
mod tests;

use std::f64::consts::LN_2;

use t4a_tensor::Tensor;

use crate::batch::MatrixStatus;
use crate::error::{Result, SINGULAR, check};
use crate::frechet;
use crate::scalar::LinalgScalar;
use crate::scale::PowerOfTwo;
use crate::schur::square::{ONE, SquareMatrix};
use crate::schur::{SchurForm, divided, function, moderate};
use crate::sqrtm;
use crate::vocabulary::Matrices;

pub use op::LogmOp;

/// Positive nodes and weights of Gauss–Legendre quadrature on [−1, 1].
const NODES: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// Norm of powers up to which degree 8 reaches 2⁻⁵³ (Table 2.1).
const NEAR: f64 = 0.367;
/// Maximum number of square roots; every matrix of doubles reaches the neighbourhood of I with fewer.
const ROOTS: i32 = 1000;

/// `T^(1/2ˢ) − I` from the root `r` of `t`; diagonal and first superdiagonal are recomputed in closed form.
fn minus_one(r: &SquareMatrix, t: &SquareMatrix, s: i32) -> SquareMatrix {
    let mut x = r.clone();
    let power = 0.5f64.powi(s);
    for i in 0..t.n() {
        let value = t[(i, i)];
        x[(i, i)] = match s {
            0 => value - ONE,
            _ => divided::exp_m1(power * value.ln()),
        };
        if i > 0 && s > 0 {
            x[(i - 1, i)] = t[(i - 1, i)] * divided::power(power, t[(i - 1, i - 1)], value);
        }
    }
    x
}

/// True if the powers of `x` are so small that the approximant is exact up to rounding.
fn is_near(x: &SquareMatrix) -> bool {
    if x.one_norm() <= NEAR {
        return true;
    }
    let diagonal = (0..x.n()).map(|i| x[(i, i)].norm()).fold(0.0, f64::max);
    if diagonal > NEAR {
        return false;
    }
    // max(d₂, d₃), max(d₃, d₄), max(d₄, d₅) with dₖ = ‖Xᵏ‖^(1/k).
    let size = |power: &SquareMatrix, k: f64| power.one_norm().powf(1.0 / k);
    let second = x.times(x);
    let third = second.times(x);
    let fourth = second.times(&second);
    let (d_2, d_3, d_4) = (size(&second, 2.0), size(&third, 3.0), size(&fourth, 4.0));
    d_2.max(d_3) <= NEAR
        || d_3.max(d_4) <= NEAR
        || (d_4 <= NEAR && size(&fourth.times(x), 5.0) <= NEAR)
}

/// `ln T` of an upper triangular matrix with nonzero diagonal.
fn triangular(t: &SquareMatrix) -> Result<SquareMatrix, MatrixStatus> {
    let n = t.n();
    let (mut r, mut s) = (t.clone(), 0);
    let x = loop {
        let x = minus_one(&r, t, s);
        if is_near(&x) {
            break x;
        }
        if s == ROOTS {
            return Err(MatrixStatus::NoConvergence);
        }
        s += 1;
        let power = 0.5f64.powi(s);
        let root = |i: usize| (power * t[(i, i)].ln()).exp();
        r = sqrtm::triangular(&r, root, 0.0)?;
    };
    let mut sum = SquareMatrix::zeros(n);
    for (node, weight) in NODES {
        for node in [node, -node] {
            let mut shifted = x.clone().scaled((1.0 + node) / 2.0);
            (0..n).for_each(|i| shifted[(i, i)] += ONE);
            sum = sum.plus(weight / 2.0, &shifted.upper_solve(x.clone()));
        }
    }
    let mut log = sum.scaled(2f64.powi(s));
    for i in 0..n {
        log[(i, i)] = t[(i, i)].ln();
        if i > 0 {
            log[(i - 1, i)] = t[(i - 1, i)] * divided::ln(t[(i - 1, i - 1)], t[(i, i)]);
        }
    }
    Ok(log)
}

/// `ln T` of a scaled Schur form.
fn logarithm(form: &SchurForm, scale: PowerOfTwo) -> Result<SquareMatrix, MatrixStatus> {
    let (n, limit) = (form.t.n(), form.uncertainty());
    if let Some(i) = (0..n).find(|&i| form.value(i).norm() <= limit) {
        return Err(MatrixStatus::Pivot(i));
    }
    if form.on_negative_axis() {
        return Err(MatrixStatus::NegativeEigenvalue);
    }
    let mut log = triangular(&form.t)?;
    let e = scale.exponent();
    for i in 0..n {
        let value = form.value(i) * 2f64.powi(e / 2) * 2f64.powi(e - e / 2);
        log[(i, i)] = match value.norm().is_normal() {
            true => value.ln(),
            false => log[(i, i)] + f64::from(e) * LN_2,
        };
    }
    Ok(log)
}

/// Principal logarithm: `e^B = A`, imaginary parts of the eigenvalues of `B` between −π and π. The logarithm of a
/// real matrix is real.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost about 25·n³ complex products for the Schur form, and 4 to 8·n³ for
/// roots and 8 triangular systems.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence`, `Overflow` with the
/// batch index.
pub fn logm<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<T>> {
    let (out, info) = logm_ex(a)?;
    check("logm", &info, SINGULAR)?;
    Ok(out)
}

/// As [`logm`], with an info tensor of the batch's shape instead of an error.
///
/// # Errors
/// `NotMatrix`, `NotSquare`.
pub fn logm_ex<T: LinalgScalar>(a: &Tensor<T>) -> Result<(Tensor<T>, Tensor<i32>)> {
    function("logm", a, moderate, logarithm)
}

/// `L(A, dA)` for any implementor of [`Matrices`]. The error of a failed matrix is carried in the result.
pub fn jvp<M: Matrices>(a: &M, da: &M) -> M {
    frechet::along(LogmOp, a, da)
}

/// `Ā` for any implementor of [`Matrices`].
pub fn vjp<M: Matrices>(a: &M, b_cotangent: &M) -> M {
    frechet::cotangent(LogmOp, a, b_cotangent)
}
