//! (min, +).

use crate::gemm::Product;
use crate::gemm::lean::{self, Lean};
use crate::{Cancellative, Extended, Numeric, Selective, Semiring};

/// `a ⊕ b = min(a, b)`, `a ⊗ b = a + b`, with +∞ and 0: shortest paths, least energies.
///
/// Integers saturate; `MAX` is +∞, and a sum that exceeds the range becomes +∞.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinPlus;

impl<T: Extended> Semiring<T> for MinPlus {
    const ZERO: T = T::HIGHEST;
    const ONE: T = T::ZERO;

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.min(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.plus_high(b)
    }

    unsafe fn gemm(p: &Product<'_, T>) {
        // SAFETY: passed on.
        unsafe { lean::product::<Self, T>(p) }
    }
}

impl<T: Extended> Selective<T> for MinPlus {
    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a.wins_min(b)
    }

    unsafe fn gemm_select(p: &Product<'_, T>) {
        // SAFETY: passed on.
        unsafe { lean::select::<Self, T>(p) }
    }
}

impl<T: Extended> Cancellative<T> for MinPlus {
    /// Unsigned sums do not saturate at 0.
    #[inline(always)]
    fn cancels(x: T) -> bool {
        x < T::HIGHEST && (x > T::LOWEST || x == T::ZERO)
    }
}

impl<T: Extended> Lean<T> for MinPlus {
    #[inline(always)]
    fn fits(x: T) -> bool {
        x.is_plain_term() || x == T::HIGHEST
    }

    #[inline(always)]
    fn enter(x: T) -> T::Wide {
        if x == T::HIGHEST { T::FAR } else { x.to_wide() }
    }

    #[inline(always)]
    fn leave(x: T::Wide) -> T {
        if x > T::BOUND { T::HIGHEST } else { T::from_wide(x) }
    }

    #[inline(always)]
    fn lean_mul(a: T::Wide, b: T::Wide) -> T::Wide {
        Numeric::add(a, b)
    }

    #[inline(always)]
    fn fused_mul(a: T::Wide, b: T::Wide, one: T::Wide) -> T::Wide {
        lean::fused_sum::<T>(a, b, one)
    }

    #[inline(always)]
    fn lean_better(a: T::Wide, b: T::Wide) -> bool {
        a < b
    }
}
