//! (max, min).

use crate::gemm::Product;
use crate::gemm::lean::{self, Lean};
use crate::{Extended, Selective, Semiring};

/// `a ⊕ b = max(a, b)`, `a ⊗ b = min(a, b)`, with −∞ and +∞: widest paths, bottlenecks, fuzzy
/// relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MaxMin;

impl<T: Extended> Semiring<T> for MaxMin {
    const ZERO: T = T::LOWEST;
    const ONE: T = T::HIGHEST;

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.max(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.min(b)
    }

    unsafe fn gemm(p: &Product<'_, T>) {
        // SAFETY: passed on.
        unsafe { lean::product::<Self, T>(p) }
    }
}

impl<T: Extended> Selective<T> for MaxMin {
    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a > b || (a.is_nan() && !b.is_nan())
    }

    unsafe fn gemm_select(p: &Product<'_, T>) {
        // SAFETY: passed on.
        unsafe { lean::select::<Self, T>(p) }
    }
}

impl<T: Extended> Lean<T> for MaxMin {
    type Packed = T::Wide;
    const FLOATS: bool = T::IS_FLOAT;

    #[inline(always)]
    fn fits(x: T) -> bool {
        !x.is_nan()
    }

    #[inline(always)]
    fn enter(x: T) -> T::Wide {
        x.to_wide()
    }

    #[inline(always)]
    fn leave(x: T::Wide) -> T {
        T::from_wide(x)
    }

    #[inline(always)]
    fn lean_mul(a: T::Wide, b: T::Wide) -> T::Wide {
        if a < b { a } else { b }
    }

    #[inline(always)]
    fn lean_better(a: T::Wide, b: T::Wide) -> bool {
        a > b
    }
}
