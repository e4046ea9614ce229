//! Derivatives of the sums of a semiring; the semirings are in [`semirings`](crate::semirings).
//!
//! The cotangent of an element `c = ⊕ₖ aₖ ⊗ bₖ` is multiplied by a weight wₖ for term k, and within the term by
//! `∂(a ⊗ b)` for a and b:
//!
//! ```text
//!            Standard   MaxPlus MinPlus   MaxMul MinMul MaxMin                  LogSumExp
//! wₖ         1          1 for the first term that is c, else 0                  exp(aₖ + bₖ − c)
//! ∂(a ⊗ b)   (b, a)     (1, 1)            (b, a)        1 to the smaller factor (1, 1)
//! ```
//!
//! An element equal to the zero of the semiring has derivative 0, even in an operand that is only copied: the
//! derivative does not depend on the path, or on whether a summed axis has size 1. In derivatives 0 · ∞ is 0.
//!
//! **Ties** resolve to the first term: terms are numbered by the labels that a step sums, labels of earlier occurrence
//! in the subscripts slowest; sliced labels precede them. Among two equal factors of (max, min) the one named first by
//! the path has derivative 1. **NaN** is chosen as the best term would be; over log-sum-exp all weights of its sum are
//! NaN. Terms of +∞ of log-sum-exp have equal weights, at each step and among slices.
//!
//! [`Counting<S>`](t4a_algebra::Counting) has the derivative of `S` on its values: they equal the contraction over `S`,
//! and counts are locally constant.

mod argmax;
pub(crate) mod log_sum;
mod marginal;
mod matrices;
mod slices;

pub(crate) use argmax::same;
pub use matrices::MatrixProduct;
pub(crate) use matrices::elements;
pub(crate) use slices::{Slices, add_slice, open_to};

use t4a_algebra::{Numeric, Scalar, Selective, Semiring};
use t4a_tensor::Tensor;
use t4a_tensor::matmul::{matmul, matmul_argmax};

use crate::error::Result;
use crate::memory::mapped;

/// Kind of derivative of a sum with respect to its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The semiring is (+, ×) of the element type: weight 1 for every term.
    Linear,
    /// Weight 1 for the first term that equals the sum, else 0.
    Argmax,
    /// Weight [`Differentiable::marginal`] for every term.
    Marginal,
}

/// A semiring whose contractions are differentiable. Cotangents and tangents are ordinary numbers of the same type.
pub trait Differentiable<T: Numeric>: Semiring<T> {
    /// Kind of derivative of the sum.
    const SHARE: Share;

    /// True if [`Differentiable::marginal_vjp`] reads the sums; if false, the products are not recomputed for it.
    const READS_SUMS: bool = true;

    /// `∂(a ⊗ b)/∂a` and `∂(a ⊗ b)/∂b`.
    fn partials(a: T, b: T) -> (T, T);

    /// `∂(t₁ ⊕ t₂ ⊕ …)/∂t` of a term t, given the sum.
    fn marginal(term: T, sum: T) -> T {
        let _ = (term, sum);
        T::ONE
    }

    /// True if `x` absorbs all other terms, as +∞ in log-sum-exp. In such a sum the terms equal to `x` have equal
    /// weights and the others have weight 0.
    fn absorbs(x: T) -> bool {
        let _ = x;
        false
    }

    /// Complex conjugate; the identity on reals.
    fn conj(x: T) -> T {
        x
    }

    /// The product `[batch, m, k] · [batch, k, n]`, and its argmax if the semiring is [`Selective`];
    /// [`selective_matmul`] computes both.
    ///
    /// # Errors
    /// `OutOfMemory`; if k exceeds the range of `u32`.
    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        Ok((matmul::<Self, T>(a, b)?, None))
    }

    /// Cotangents of A and B for [`Share::Marginal`]; the default loops over [`Differentiable::marginal`].
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn marginal_vjp(x: &MatrixProduct<'_, T>, cotangent: &[T]) -> Result<[Vec<T>; 2]> {
        marginal::vjp::<Self, T>(x, cotangent)
    }

    /// Tangent of C for [`Share::Marginal`], with the same default.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn marginal_jvp(x: &MatrixProduct<'_, T>, da: &[T], db: &[T]) -> Result<Vec<T>> {
        marginal::jvp::<Self, T>(x, da, db)
    }
}

/// [`Differentiable::matmul`] of a selective semiring: the product computes the argmax.
///
/// # Errors
/// `OutOfMemory`; if k exceeds the range of `u32`.
pub fn selective_matmul<S: Selective<T>, T: Scalar>(
    a: &Tensor<T>,
    b: &Tensor<T>,
) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
    let (c, argmax) = matmul_argmax::<S, T>(a, b)?;
    Ok((c, Some(argmax)))
}

/// Conversion from the accumulator, rounded once.
fn narrowed<T: Numeric>(x: &[T::Acc]) -> Result<Vec<T>> {
    mapped(x, T::narrow)
}

/// `g·p`, and 0 if either is 0, even if the other is infinite or NaN: a zero cotangent has zero derivatives, and a
/// factor of weight 0 too.
fn scaled<T: Numeric>(g: T, p: T) -> T::Acc {
    let none = g == T::ZERO || p == T::ZERO;
    if none { T::Acc::ZERO } else { g.widen().mul(p.widen()) }
}

/// `1 / n`.
pub(crate) fn nth<T: Numeric>(n: usize) -> T {
    T::from_f64(1.0 / n as f64)
}

/// Cotangents of A and B given that of C, for non-linear semirings.
pub(crate) fn vjp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    cotangent: &[T],
) -> Result<[Vec<T>; 2]> {
    match S::SHARE {
        Share::Argmax => argmax::vjp::<S, T>(x, cotangent),
        _ => S::marginal_vjp(x, cotangent),
    }
}

/// Tangent of C given those of A and B, for non-linear semirings.
pub(crate) fn jvp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    da: &[T],
    db: &[T],
) -> Result<Vec<T>> {
    match S::SHARE {
        Share::Argmax => argmax::jvp::<S, T>(x, da, db),
        _ => S::marginal_jvp(x, da, db),
    }
}
