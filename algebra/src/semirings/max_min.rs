//! (max, min).

use crate::gemm::Kernel;
use crate::gemm::unchecked::{self, UncheckedSemiring};
use crate::{Extended, Selective, Semiring};

/// `a ⊕ b = max(a, b)`, `a ⊗ b = min(a, b)`, with −∞ and +∞: widest paths, bottlenecks, fuzzy
/// relations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MaxMin;

impl<T: Extended> Semiring<T> for MaxMin {
    const ZERO: T = T::LOWEST;
    const ONE: T = T::HIGHEST;
    const GEMM: Kernel<T> = unchecked::kernel::<Self, T>();

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.max(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.min(b)
    }
}

impl<T: Extended> Selective<T> for MaxMin {
    const GEMM_ARGMAX: Kernel<T, true> = unchecked::kernel_argmax::<Self, T>();

    #[inline(always)]
    fn better(a: T, b: T) -> bool {
        a.wins_max(b)
    }
}

impl<T: Extended> UncheckedSemiring<T> for MaxMin {
    #[inline(always)]
    fn fits(x: T) -> bool {
        !x.is_nan()
    }

    #[inline(always)]
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc {
        if a < b { a } else { b }
    }
}
