//! (max, +).

use crate::gemm::Kernel;
use crate::{Cancellative, Numeric, Selective, Semiring, Signed, UncheckedSemiring};

/// `a ⊕ b = max(a, b)`, `a ⊗ b = a + b`, with −∞ and 0: best scores, longest paths, ground states.
///
/// Integers saturate; `MIN` is −∞, and a sum below the range becomes −∞.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MaxPlus;

impl<T: Signed> Semiring<T> for MaxPlus {
    const ZERO: T = T::LOWEST;
    const ONE: T = T::ZERO;
    const GEMM: Kernel<T> = Kernel::unchecked::<Self>();

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.max(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.plus_low(b)
    }
}

impl<T: Signed> Selective<T> for MaxPlus {
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::unchecked_argmax::<Self>();

    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a.wins_max(b)
    }
}

impl<T: Signed> Cancellative<T> for MaxPlus {
    #[inline(always)]
    fn cancels(x: T) -> bool {
        x > T::LOWEST && x < T::HIGHEST
    }
}

impl<T: Signed> UncheckedSemiring<T> for MaxPlus {
    #[inline(always)]
    fn fits(x: T) -> bool {
        x.is_plain_term() || x == T::LOWEST
    }

    #[inline(always)]
    fn encode(x: T) -> T::Acc {
        if x == T::LOWEST { T::FAR.neg() } else { x.widen() }
    }

    #[inline(always)]
    fn decode(x: T::Acc) -> T {
        if x < T::BOUND.neg() { T::LOWEST } else { T::narrow(x) }
    }

    #[inline(always)]
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
        Numeric::add(a, b)
    }

    #[inline(always)]
    fn fused_mul(a: T::Acc, b: T::Acc, one: T::Acc) -> T::Acc {
        T::fused_sum(a, b, one)
    }
}
