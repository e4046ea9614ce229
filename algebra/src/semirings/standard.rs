//! (+, ×) over any [`Numeric`] type.

use crate::gemm::{self, Product};
use crate::{Numeric, Semiring};

/// `a ⊕ b = a + b`, `a ⊗ b = a·b`, with 0 and 1: ordinary sums and products. Integers wrap.
///
/// An element type with a matrix product of its own names it in [`Numeric::GEMM`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standard;

impl<T: Numeric> Semiring<T> for Standard {
    const ZERO: T = T::ZERO;
    const ONE: T = T::ONE;

    #[inline(always)]
    fn add(a: T, b: T) -> T {
        a.add(b)
    }

    #[inline(always)]
    fn mul(a: T, b: T) -> T {
        a.mul(b)
    }

    #[inline(always)]
    fn mul_add(a: T, b: T, c: T) -> T {
        a.mul_add(b, c)
    }

    unsafe fn gemm(p: &Product<'_, T>) {
        // SAFETY: passed on.
        unsafe {
            match T::GEMM {
                Some(own) => own(p),
                None => gemm::generic::<Self, T>(p),
            }
        }
    }
}
