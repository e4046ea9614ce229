//! How the sums of each semiring pass derivatives on.
//!
//! An element `c = ⊕ₖ aₖ ⊗ bₖ` passes its cotangent on to term k with a weight wₖ, and within the
//! term to a and b with `∂(a ⊗ b)`:
//!
//! ```text
//!            Standard   MaxPlus MinPlus   MaxMul        MaxMin                  LogSumExp
//! wₖ         1          1 for the first term that is c, else 0                  exp(aₖ + bₖ − c)
//! ∂(a ⊗ b)   (b, a)     (1, 1)            (b, a)        1 to the smaller factor (1, 1)
//! ```
//!
//! An element that is 0 of the semiring has no term that counts and passes on nothing, also if it
//! is an operand that nothing is done to: what a derivative is does not depend on the path, or on
//! whether a summed axis has size 1. 0 · ∞ is 0 here as it is in (max, ×), in derivatives too.
//!
//! **Ties** go to the first term: terms are numbered by the labels that a step sums, those that occur
//! first in the subscripts slowest; labels that are sliced come before. Of two equal factors of
//! (max, min) the one counts that the path names first. **NaN** wins as any best term does; over
//! log-sum-exp it makes all shares of its sum NaN. Terms of +∞ of log-sum-exp share equally, at each
//! step and among slices.
//!
//! [`Counting<S>`](t4a_algebra::Counting) has the derivative of `S` on its values: they are the
//! contraction over `S`, and counts are locally constant.

mod argmax;
mod log_sum;
mod marginal;
mod matrices;
mod slices;

pub(crate) use argmax::same;
pub use matrices::MatrixProduct;
pub(crate) use matrices::elements;
pub(crate) use slices::{Slices, add_slice, open_to};

use t4a_algebra::{
    Extended, Field, Float, LogSumExp, MaxMin, MaxMul, MaxPlus, MinPlus, Numeric, Scalar,
    Selective, Semiring, Signed, Standard,
};
use t4a_tensor::Tensor;
use t4a_tensor::matmul::{matmul, matmul_argmax};

use crate::error::Result;
use crate::memory::mapped;

/// How a sum passes its derivative on to its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The semiring is (+, ×) of the element type: every term in full.
    Linear,
    /// The first term that equals the sum.
    Argmax,
    /// Every term with [`Differentiable::marginal`].
    Marginal,
}

/// A semiring whose contractions have a derivative. Cotangents and tangents are ordinary numbers
/// of the same type.
pub trait Differentiable<T: Numeric>: Semiring<T> {
    /// How the sum shares.
    const SHARE: Share;

    /// Whether [`Differentiable::marginal_vjp`] reads the sums: if it does not, the products are not
    /// repeated for it.
    const READS_SUMS: bool = true;

    /// `∂(a ⊗ b)/∂a` and `∂(a ⊗ b)/∂b`.
    fn partials(a: T, b: T) -> (T, T);

    /// `∂(t₁ ⊕ t₂ ⊕ …)/∂t` of a term t, given the sum.
    fn marginal(term: T, sum: T) -> T {
        let _ = (term, sum);
        T::ONE
    }

    /// Whether `x` hides what else a sum has, as +∞ of log-sum-exp does. Terms that are `x` share such
    /// a sum equally, others have no share.
    fn absorbs(x: T) -> bool {
        let _ = x;
        false
    }

    /// Complex conjugate; the identity on reals.
    fn conj(x: T) -> T {
        x
    }

    /// The product `[batch, m, k] · [batch, k, n]`, and if the semiring is
    /// [`Selective`] also its argmax; [`selective_matmul`] does that.
    ///
    /// # Errors
    /// `OutOfMemory`; if k exceeds the range of `u32`.
    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        Ok((matmul::<Self, T>(a, b)?, None))
    }

    /// Cotangents of A and B where all terms share; the default loops over
    /// [`Differentiable::marginal`].
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn marginal_vjp(x: &MatrixProduct<'_, T>, cotangent: &[T]) -> Result<[Vec<T>; 2]> {
        marginal::vjp::<Self, T>(x, cotangent)
    }

    /// The tangent of C where all terms share, in the same way.
    ///
    /// # Errors
    /// `OutOfMemory`.
    fn marginal_jvp(x: &MatrixProduct<'_, T>, da: &[T], db: &[T]) -> Result<Vec<T>> {
        marginal::jvp::<Self, T>(x, da, db)
    }
}

/// [`Differentiable::matmul`] of a selective semiring: the argmax comes out of the product itself.
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

/// From the accumulator, rounded once.
fn narrowed<T: Numeric>(x: &[T::Acc]) -> Result<Vec<T>> {
    mapped(x, T::narrow)
}

/// `g·p`, and 0 if either is, whatever the other: what nobody asks about has no derivative, and a
/// factor that does not count gets none.
fn scaled<T: Numeric>(g: T, p: T) -> T::Acc {
    let none = g == T::ZERO || p == T::ZERO;
    if none { T::Acc::ZERO } else { g.widen().mul(p.widen()) }
}

/// `1 / n`.
pub(crate) fn nth<T: Numeric>(n: usize) -> T {
    T::from_f64(1.0 / n as f64)
}

/// Cotangents of A and B, given that of C, for semirings that are not linear.
pub(crate) fn vjp<S: Differentiable<T>, T: Numeric>(
    x: &MatrixProduct<'_, T>,
    cotangent: &[T],
) -> Result<[Vec<T>; 2]> {
    match S::SHARE {
        Share::Argmax => argmax::vjp::<S, T>(x, cotangent),
        _ => S::marginal_vjp(x, cotangent),
    }
}

/// The tangent of C, given those of A and B, for semirings that are not linear.
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

impl<T: Field> Differentiable<T> for Standard {
    const SHARE: Share = Share::Linear;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }

    fn conj(x: T) -> T {
        x.conj()
    }
}

impl<T: Signed> Differentiable<T> for MaxPlus {
    const SHARE: Share = Share::Argmax;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
    }
}

impl<T: Extended> Differentiable<T> for MinPlus {
    const SHARE: Share = Share::Argmax;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
    }
}

impl<T: Extended> Differentiable<T> for MaxMul {
    const SHARE: Share = Share::Argmax;

    fn partials(a: T, b: T) -> (T, T) {
        (b, a)
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
    }
}

impl<T: Extended> Differentiable<T> for MaxMin {
    const SHARE: Share = Share::Argmax;

    /// The left factor wins ties, a NaN wins over a number.
    fn partials(a: T, b: T) -> (T, T) {
        if a <= b || a.is_nan() { (T::ONE, T::ZERO) } else { (T::ZERO, T::ONE) }
    }

    fn matmul(a: &Tensor<T>, b: &Tensor<T>) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        selective_matmul::<Self, T>(a, b)
    }
}

impl<T: Float> Differentiable<T> for LogSumExp {
    const SHARE: Share = Share::Marginal;
    const READS_SUMS: bool = false;

    fn partials(_: T, _: T) -> (T, T) {
        (T::ONE, T::ONE)
    }

    /// The share of the term in the sum, a probability.
    fn marginal(term: T, sum: T) -> T {
        term.sub(sum).exp()
    }

    fn absorbs(x: T) -> bool {
        x == T::INFINITY
    }

    fn marginal_vjp(x: &MatrixProduct<'_, T>, cotangent: &[T]) -> Result<[Vec<T>; 2]> {
        log_sum::vjp(x, cotangent)
    }

    fn marginal_jvp(x: &MatrixProduct<'_, T>, da: &[T], db: &[T]) -> Result<Vec<T>> {
        log_sum::jvp(x, da, db)
    }
}
