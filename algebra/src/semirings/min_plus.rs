//! (min, +).

use crate::gemm::Kernel;
use crate::{Cancellative, Extended, Numeric, Selective, Semiring, UncheckedSemiring};

/// `a ⊕ b = min(a, b)`, `a ⊗ b = a + b`, with +∞ and 0: shortest paths, least energies.
///
/// Integers saturate; `MAX` is +∞, and a sum above the range becomes +∞.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinPlus;

impl<T: Extended> Semiring<T> for MinPlus {
    const ZERO: T = T::HIGHEST;
    const ONE: T = T::ZERO;
    const GEMM: Kernel<T> = Kernel::unchecked::<Self>();

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.min(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.plus_high(b)
    }
}

impl<T: Extended> Selective<T> for MinPlus {
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::unchecked_argmax::<Self>();

    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a.wins_min(b)
    }
}

impl<T: Extended> Cancellative<T> for MinPlus {
    /// Unsigned sums do not saturate at 0.
    #[inline(always)]
    fn cancels(x: T) -> bool {
        x < T::HIGHEST && (x > T::LOWEST || x == T::ZERO)
    }
}

impl<T: Extended> UncheckedSemiring<T> for MinPlus {
    #[inline(always)]
    fn fits(x: T) -> bool {
        x.is_plain_term() || x == T::HIGHEST
    }

    #[inline(always)]
    fn encode(x: T) -> T::Acc {
        if x == T::HIGHEST { T::FAR } else { x.widen() }
    }

    #[inline(always)]
    fn decode(x: T::Acc) -> T {
        if x > T::BOUND { T::HIGHEST } else { T::narrow(x) }
    }

    #[inline(always)]
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
        Numeric::add(a, b)
    }

    #[inline(always)]
    fn fused_mul(a: T::Acc, b: T::Acc, one: T::Acc) -> T::Acc {
        T::fused_sum(a, b, one)
    }

    #[inline(always)]
    fn unchecked_better(a: T::Acc, b: T::Acc) -> bool {
        a < b
    }
}
