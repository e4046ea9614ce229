//! The principal logarithm of a general matrix by inverse scaling and squaring.
//!
//! ```text
//! ln A = 2ᵏ ln A^(1/2ᵏ),   ln(I + X) = ∫₀¹ X (I + tX)⁻¹ dt ≈ Σⱼ wⱼ X (I + tⱼX)⁻¹
//! ```
//!
//! Square roots, by the product form of Denman and Beavers, until `‖X‖ ≤ ¼`; then the rule of Gauss
//! and Legendre with eight nodes, which is the diagonal Padé approximant of degree 8 in partial
//! fractions and exact to 2⁻⁵³ up to norm 0.34. Roots need no Schur form, so that the algorithm is
//! written in the vocabulary: on dual numbers it is the Fréchet derivative, and `Ā = L(Aᴴ, B̄)`. For
//! Hermitian matrices [`hermitian_function`](crate::hermitian) is faster and more accurate.
//!
//! Reference: C. Kenney, A. Laub 1989; S. Cheng, N. Higham, C. Kenney, A. Laub 2001; L. Dieci,
//! B. Morini, A. Papini 1996; N. Higham, *Functions of Matrices*, Table 11.1.

mod op;
#[cfg(test)]
mod tests;

use t4a_tensor::Tensor;

use crate::batch::Shape;
use crate::error::{LinalgError, Result, SINGULAR, check};
use crate::scalar::LinalgScalar;
use crate::sqrtm::{one_by_one, sqrt};
use crate::vocabulary::{Dual, Matrices};

pub use op::LogmOp;

/// Nodes above 0 and weights on [−1, 1].
const NODES: [(f64, f64); 4] = [
    (0.183_434_642_495_649_8, 0.362_683_783_378_362),
    (0.525_532_409_916_329, 0.313_706_645_877_887_3),
    (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
    (0.960_289_856_497_536_3, 0.101_228_536_290_376_26),
];

/// Roots of numbers within the range of a double come this near to 1.
const ROOTS: usize = 16;
const NEAR: f64 = 0.25;

/// `ln A` in the vocabulary, with the number of roots that the worst matrix of the batch needs.
///
/// # Errors
/// `Singular` or `NoConvergence`, also for an eigenvalue on the negative real axis.
pub fn log<M: Matrices>(a: &M) -> Result<M> {
    let unit = a.identity(a.rows());
    let (mut root, mut doublings) = (a.clone(), 0);
    let x = loop {
        let x = root.sub(&unit);
        let distances = x.norms()?;
        if distances.iter().all(|&d| d <= NEAR) {
            break x;
        }
        if doublings == ROOTS {
            let batch = distances.iter().position(|&d| d.is_nan() || d > NEAR).unwrap_or(0);
            return Err(LinalgError::NoConvergence { op: "logm", batch });
        }
        root = sqrt(&root)?;
        doublings += 1;
    };
    let mut sum = x.scale(0.0);
    for (node, weight) in NODES {
        for node in [node, -node] {
            let shifted = unit.add(&x.scale((1.0 + node) / 2.0));
            sum = sum.add(&shifted.solve(&x).scale(weight / 2.0));
        }
    }
    Ok(sum.scale(2f64.powi(doublings as i32)))
}

/// `L(A, dA)` in the vocabulary.
///
/// # Errors
/// As [`log`].
pub fn jvp<M: Matrices>(a: &M, da: &M) -> Result<M> {
    Ok(log(&Dual::new(a.clone(), da.clone()))?.into_tangent())
}

/// `Ā = L(Aᴴ, B̄)` in the vocabulary.
///
/// # Errors
/// As [`log`].
pub fn vjp<M: Matrices>(a: &M, b_bar: &M) -> Result<M> {
    jvp(&a.adjoint(), b_bar)
}

/// The principal logarithm: `e^B = A`, imaginary parts of the eigenvalues of `B` between −π and π.
///
/// Shapes `[…, n, n]` → `[…, n, n]`. Cost that of a few square roots ([`sqrtm`](crate::sqrtm)) and 8
/// systems with `n` right-hand sides.
///
/// # Errors
/// `NotMatrix`, `NotSquare`; `NonFinite`, `Singular`, `NegativeEigenvalue`, `NoConvergence` with the
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
    Shape::square("logm", a)?;
    one_by_one("logm", &[a], |x| log(&x[0]))
}
