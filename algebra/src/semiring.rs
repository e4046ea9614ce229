//! Semirings over plain elements.
//!
//! A semiring is a zero-sized tag that defines two operations on a plain element type, so that the same buffer can be
//! used in several algebras without a copy: `f32` data under [`Standard`](crate::Standard) gives sums of products,
//! under [`MaxPlus`](crate::MaxPlus) maxima of sums.

use crate::gemm::Kernel;
use crate::{Extended, Scalar};

/// (T, ⊕, ⊗) with identities 0 and 1: ⊕ is associative and commutative, ⊗ is associative and distributes over ⊕, and 0
/// ⊗ a = a ⊗ 0 = 0. ⊗ need not commute; the order of its operands is kept.
///
/// A user-defined semiring needs the first four items to support everything that is generic over semirings.
/// [`laws::semiring`](crate::laws::semiring) checks the axioms on samples.
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

    /// True if `x` is an element of the semiring, for types with values that are not: the axioms hold for elements
    /// only.
    #[inline(always)]
    fn contains(x: T) -> bool {
        let _ = x;
        true
    }

    /// The matrix product; a semiring with a faster kernel than the generic one sets it here.
    const GEMM: Kernel<T> = Kernel::generic::<Self>();
}

/// A semiring whose ⊕ returns one of its operands, so that every sum has an argmax.
///
/// [`laws::selective`](crate::laws::selective) checks the requirements of [`Selective::better`].
pub trait Selective<T: Scalar>: Semiring<T> {
    /// True if ⊕ prefers `a` to `b`: a strict order with 0 as its least element, such that `a ⊕ b = a` if true. If
    /// neither of two elements is better, they are interchangeable.
    fn better(a: T, b: T) -> bool;

    /// The matrix product with argmax.
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::generic_argmax::<Self>();
}

/// A selective semiring whose ⊗ preserves strict preference: if `a` is better than `b`, then `a ⊗ x` is better than
/// `b ⊗ x` and `x ⊗ a` better than `x ⊗ b`, for every x for which [`Cancellative::cancels`].
///
/// Distinct terms then stay distinct, so that the terms that attain the best value can be counted step by step, as
/// [`Counting`](crate::Counting) requires. (max, min) is not cancellative, because min(1, 0) = min(2, 0).
/// [`laws::cancellative`](crate::laws::cancellative) checks it on samples.
pub trait Cancellative<T: Scalar>: Selective<T> {
    /// True if `x ⊗ a = x ⊗ b` implies a = b, up to rounding. False for 0, and for values that absorb elements other
    /// than 0: NaN, an infinity, an integer at which sums or products saturate.
    fn cancels(x: T) -> bool;
}

/// A selective semiring with a cheaper, commutative arithmetic for elements without special cases.
///
/// Matrix products scan their operands once beforehand and use this arithmetic if all elements fit: set
/// [`Semiring::GEMM`] to [`Kernel::unchecked`] and [`Selective::GEMM_ARGMAX`] to [`Kernel::unchecked_argmax`]. On
/// elements that fit the results must equal those of the semiring, which [`laws::unchecked`](crate::laws::unchecked)
/// checks on samples.
///
/// ```
/// use t4a_algebra::gemm::Kernel;
/// use t4a_algebra::{Extended, Selective, Semiring, UncheckedSemiring, laws};
/// /// Minimum and maximum: the least height that a path has to climb.
/// #[derive(Clone, Copy)]
/// struct MinMax;
/// impl<T: Extended> Semiring<T> for MinMax {
///     const ZERO: T = T::HIGHEST;
///     const ONE: T = T::LOWEST;
///     const GEMM: Kernel<T> = Kernel::unchecked::<Self>();
///     fn add(a: T, b: T) -> T {
///         a.min(b)
///     }
///     fn mul(a: T, b: T) -> T {
///         a.max(b)
///     }
/// }
/// impl<T: Extended> Selective<T> for MinMax {
///     const GEMM_ARGMAX: Kernel<T, true> = Kernel::unchecked_argmax::<Self>();
///     fn better(a: T, b: T) -> bool {
///         a.wins_min(b)
///     }
/// }
/// impl<T: Extended> UncheckedSemiring<T> for MinMax {
///     fn fits(x: T) -> bool {
///         !x.is_nan()
///     }
///     fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
///         if a > b { a } else { b }
///     }
///     fn unchecked_better(a: T::Acc, b: T::Acc) -> bool {
///         a < b
///     }
/// }
/// let samples = [f32::NEG_INFINITY, -1.5, 0.0, 2.0, f32::INFINITY, f32::NAN];
/// laws::unchecked::<MinMax, f32>(&samples, |a, b| a.total_cmp(b).is_eq())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait UncheckedSemiring<T: Extended>: Selective<T> {
    /// True if the arithmetic below is correct for this element together with all others that fit.
    fn fits(x: T) -> bool;

    /// Encodes an element for the arithmetic below.
    #[inline(always)]
    fn encode(x: T) -> T::Acc {
        x.widen()
    }

    /// Decodes a result.
    #[inline(always)]
    fn decode(x: T::Acc) -> T {
        T::narrow(x)
    }

    /// `a ⊗ b`.
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc;

    /// `a ⊗ b` as a fused multiply-add with a factor 1, if the instruction set has it and it is faster.
    #[inline(always)]
    fn fused_mul(a: T::Acc, b: T::Acc, _one: T::Acc) -> T::Acc {
        Self::unchecked_mul(a, b)
    }

    /// True if ⊕ prefers `a` to `b`.
    #[inline(always)]
    fn unchecked_better(a: T::Acc, b: T::Acc) -> bool {
        a > b
    }
}
