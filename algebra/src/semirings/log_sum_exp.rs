//! (ln(eᵃ + eᵇ), +).

use crate::gemm::{Kernel, log_sum};
use crate::{Float, Semiring};

/// `a ⊕ b = ln(eᵃ + eᵇ)`, `a ⊗ b = a + b`, with −∞ and 0: sums and products of numbers represented by their logarithms.
/// Partition functions, forward probabilities.
///
/// For temperature T, contract x/T and multiply the result by T.
///
/// Neither overflows nor underflows; −∞ is exact. Matrix products accumulate in `f64`, see [`crate::gemm`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogSumExp;

impl<T: Float> Semiring<T> for LogSumExp {
    const ZERO: T = T::NEG_INFINITY;
    const ONE: T = T::ZERO;
    const GEMM: Kernel<T> = log_sum::kernel::<T>();

    /// `max + ln(1 + e^(min − max))`.
    #[inline(always)]
    fn add(a: T, b: T) -> T {
        let (most, least) = (a.max(b), a.min(b));
        // For equal infinities ∞ − ∞ is NaN; the sum is then the larger operand.
        let low = most.add(least.sub(most).exp().ln_1p());
        if most.is_finite() { low } else { most }
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        let (low, high) = (T::NEG_INFINITY, T::INFINITY);
        let opposite = (a == low && b == high) || (a == high && b == low);
        if opposite { low } else { a.add(b) }
    }
}
