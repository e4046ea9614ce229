//! (min, ×) on numbers ≥ 0.

use crate::gemm::Kernel;
use crate::{Cancellative, Extended, Numeric, Selective, Semiring, UncheckedSemiring};

/// `a ⊕ b = min(a, b)`, `a ⊗ b = a·b`, with +∞ and 1, on numbers ≥ 0: least products, such as the best chain of
/// exchange rates or the smallest bound on an amplification.
///
/// Negative numbers are not elements, see [`Semiring::contains`]: they reverse the order of products. `0·∞ = ∞`.
/// Integers saturate; `MAX` is +∞.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinMul;

impl<T: Extended> Semiring<T> for MinMul {
    const ZERO: T = T::HIGHEST;
    const ONE: T = T::ONE;
    const GEMM: Kernel<T> = Kernel::unchecked::<Self>();

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.min(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.times_high(b)
    }

    #[inline(always)]
    fn contains(x: T) -> bool {
        x >= T::ZERO || x.is_nan()
    }
}

impl<T: Extended> Selective<T> for MinMul {
    const GEMM_ARGMAX: Kernel<T, true> = Kernel::unchecked_argmax::<Self>();

    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a.wins_min(b)
    }
}

impl<T: Extended> Cancellative<T> for MinMul {
    #[inline(always)]
    fn cancels(x: T) -> bool {
        x > T::ZERO && x < T::HIGHEST
    }
}

impl<T: Extended> UncheckedSemiring<T> for MinMul {
    /// Floats above 0, ∞ included: 0·∞ would be NaN.
    #[inline(always)]
    fn fits(x: T) -> bool {
        if T::IS_FLOAT { x > T::ZERO } else { x.is_plain_factor() }
    }

    #[inline(always)]
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
        Numeric::mul(a, b)
    }

    #[inline(always)]
    fn unchecked_better(a: T::Acc, b: T::Acc) -> bool {
        a < b
    }
}
