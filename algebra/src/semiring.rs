//! Semirings over plain elements.
//!
//! A semiring is a zero-sized tag that gives a plain element type two operations, so that one
//! buffer can be read in several algebras without a copy: `f32` data under
//! [`Standard`](crate::Standard) is a sum of products, under [`MaxPlus`](crate::MaxPlus) a maximum
//! of sums.

use crate::Scalar;
use crate::gemm::Kernel;

/// (T, ⊕, ⊗) with identities 0 and 1: ⊕ is associative and commutative, ⊗ is associative and
/// distributes over ⊕, and 0 ⊗ a = a ⊗ 0 = 0. ⊗ need not commute; its order is kept.
///
/// A semiring of one's own needs the first four items and then has everything that is generic
/// over semirings. [`laws::semiring`](crate::laws::semiring) checks the axioms on samples.
///
/// ```
/// use t4a_algebra::{Semiring, gemm::{MatMut, MatRef, Product}, laws};
/// /// Greatest common divisor and product.
/// #[derive(Clone, Copy)]
/// struct Gcd;
/// impl Semiring<u64> for Gcd {
///     const ZERO: u64 = 0;
///     const ONE: u64 = 1;
///     fn add(a: u64, b: u64) -> u64 {
///         if b == 0 { a } else { Self::add(b, a % b) }
///     }
///     fn mul(a: u64, b: u64) -> u64 {
///         a * b
///     }
/// }
/// laws::semiring::<Gcd, u64>(&[0, 1, 2, 6, 15, 49], PartialEq::eq)?;
/// let mut c = [0];
/// Product::new(
///     MatRef::row_major(&[6, 10], 1, 2)?,
///     MatRef::row_major(&[5, 9], 2, 1)?,
///     MatMut::row_major(&mut c, 1, 1)?,
/// )?
/// .run::<Gcd>();
/// assert_eq!(c, [30]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Semiring<T: Scalar>: Copy + Send + Sync + 'static {
    /// Identity of ⊕; annihilates under ⊗.
    const ZERO: T;
    /// Identity of ⊗.
    const ONE: T;

    /// `a ⊕ b`.
    fn add(a: T, b: T) -> T;

    /// `a ⊗ b`.
    fn mul(a: T, b: T) -> T;

    /// `c ⊕ (a ⊗ b)`, the step of every sum of products.
    #[inline(always)]
    fn mul_add(a: T, b: T, c: T) -> T {
        Self::add(c, Self::mul(a, b))
    }

    /// Whether `x` is an element of the semiring, where that is not every value of the type: the
    /// axioms are promised for elements only.
    #[inline(always)]
    fn contains(x: T) -> bool {
        let _ = x;
        true
    }

    /// The matrix product: a semiring that knows a better way than the generic one names it here.
    const GEMM: Kernel<T> = Kernel::generic::<Self>();
}

/// A semiring whose ⊕ picks one of its operands, so that every sum has an argmax.
///
/// [`laws::selective`](crate::laws::selective) checks what is asked of [`Selective::better`].
pub trait Selective<T: Scalar>: Semiring<T> {
    /// Whether ⊕ prefers `a` to `b`: a strict order with 0 as its least element, and
    /// `a ⊕ b = a` where it holds. Elements of which neither is better are interchangeable.
    fn better(a: T, b: T) -> bool;

    /// The matrix product and the argmax.
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::generic_argmax::<Self>();
}

/// A selective semiring whose ⊗ keeps strict preference: if `a` is better than `b`, then `a ⊗ x` is
/// better than `b ⊗ x` and `x ⊗ a` better than `x ⊗ b`, for every x that [`Cancellative::cancels`].
///
/// Terms that differ stay different then, so that those which attain the best value can be counted
/// step by step: [`Counting`](crate::Counting) asks for it. (max, min) is no such semiring, because
/// min(1, 0) = min(2, 0). [`laws::cancellative`](crate::laws::cancellative) checks it on samples.
pub trait Cancellative<T: Scalar>: Selective<T> {
    /// Whether `x ⊗ a = x ⊗ b` for a = b only, up to rounding. False for 0, and for what absorbs
    /// other elements than 0: NaN, an infinity, an integer at which sums or products saturate.
    fn cancels(x: T) -> bool;
}
