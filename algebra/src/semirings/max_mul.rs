//! (max, ×) on numbers ≥ 0.

use crate::gemm::Kernel;
use crate::{Cancellative, Extended, Numeric, Selective, Semiring, UncheckedSemiring};

/// `a ⊕ b = max(a, b)`, `a ⊗ b = a·b`, with 0 and 1, on numbers ≥ 0: most probable explanations.
///
/// Negative numbers are not elements, see [`Semiring::contains`]: the maximum with 0 would absorb their products.
/// `0·∞ = 0`. Integers saturate at `MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MaxMul;

impl<T: Extended> Semiring<T> for MaxMul {
    const ZERO: T = T::ZERO;
    const ONE: T = T::ONE;
    const GEMM: Kernel<T> = Kernel::unchecked::<Self>();

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.max(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.times(b)
    }

    #[inline(always)]
    fn contains(x: T) -> bool {
        x >= T::ZERO || x.is_nan()
    }
}

impl<T: Extended> Selective<T> for MaxMul {
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::unchecked_argmax::<Self>();

    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a.wins_max(b)
    }
}

impl<T: Extended> Cancellative<T> for MaxMul {
    #[inline(always)]
    fn cancels(x: T) -> bool {
        x > T::ZERO && x < T::HIGHEST
    }
}

impl<T: Extended> UncheckedSemiring<T> for MaxMul {
    #[inline(always)]
    fn fits(x: T) -> bool {
        x.is_plain_factor()
    }

    #[inline(always)]
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
        Numeric::mul(a, b)
    }
}
