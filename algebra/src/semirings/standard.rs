//! (+, ×) over any [`Numeric`] type.

use crate::gemm::Kernel;
use crate::{Numeric, Semiring};

/// `a ⊕ b = a + b`, `a ⊗ b = a·b`, with 0 and 1: ordinary sums and products. Integers wrap.
///
/// An element type with a dedicated matrix product sets it in [`Numeric::GEMM`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standard;

impl<T: Numeric> Semiring<T> for Standard {
    const ZERO: T = T::ZERO;
    const ONE: T = T::ONE;
    const GEMM: Kernel<T> = match T::GEMM {
        Some(own) => own,
        None => Kernel::generic::<Self>(),
    };

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
}
