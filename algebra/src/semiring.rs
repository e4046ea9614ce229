//! Semirings over plain elements.
//!
//! A semiring is a zero-sized tag that gives a plain element type two operations, so that one
//! buffer can be read in several algebras without a copy: `f32` data under
//! [`Standard`](crate::Standard) is a sum of products, under a tropical semiring a maximum of
//! sums.

use crate::Scalar;
use crate::gemm::{self, Product};

/// (T, ⊕, ⊗) with identities 0 and 1: ⊕ is associative and commutative, ⊗ is associative and
/// distributes over ⊕, and 0 ⊗ a = a ⊗ 0 = 0. ⊗ need not commute; its order is kept.
///
/// A semiring of one's own needs the first four items and then has everything that is generic
/// over semirings.
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

    /// The matrix product. The default is [`gemm::generic`]; a semiring that knows a better way
    /// overrides it, for all products or for some shapes.
    ///
    /// # Safety
    /// Called by [`Product::run`], which has proved what [`Product::batch`] asks for.
    unsafe fn gemm(p: &Product<'_, T>) {
        // SAFETY: passed on.
        unsafe { gemm::generic::<Self, T>(p) }
    }
}
