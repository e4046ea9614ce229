//! Products over the tropical semirings: one addition and one comparison per step where the
//! operands allow it.
//!
//! ⊗ has to keep ∞ − ∞ and integer overflow in check and ⊕ has to propagate NaN, which would cost
//! several times the arithmetic. Operands are therefore read once beforehand; if none of their
//! elements can cause trouble, the microkernel runs without checks, else with them. Reading costs mk + kn
//! against mnk steps. Both tiles give the same bits where both apply; 16-bit floats are packed as
//! `f32` without checks, which rounds the same (rounding is monotone) but tells terms apart that
//! would tie after rounding.
//!
//! Sums of floats are computed as `1·a + b`, which rounds the same: many machines add and compare
//! floats in the same two units and multiply in two others, so that a multiply-add and a comparison
//! can start at the same time (bench `semiring`).

use std::hint::black_box;
use std::marker::PhantomData;

use super::lanes::{ArgLanes, Form, Lanes, Plain};
use super::partition::{self, Block};
use super::{Algorithm, Kernel, MatRef, Product, Report, driver};
use crate::simd::{self, Loop};
use crate::{Extended, Numeric, Selective};

/// A selective semiring with a cheaper, commutative arithmetic for elements that need no checks.
pub(crate) trait UncheckedSemiring<T: Extended>: Selective<T> {
    /// Whether the arithmetic below is right for this element together with all others that fit.
    fn fits(x: T) -> bool;

    /// What stands for the element in the arithmetic below.
    #[inline(always)]
    fn encode(x: T) -> T::Acc {
        x.widen()
    }

    /// The element that a result stands for.
    #[inline(always)]
    fn decode(x: T::Acc) -> T {
        T::narrow(x)
    }

    /// `a ⊗ b`.
    fn unchecked_mul(a: T::Acc, b: T::Acc) -> T::Acc;

    /// `a ⊗ b` by a fused multiply-add, given 1, if the machine has that and it is the better way.
    #[inline(always)]
    fn fused_mul(a: T::Acc, b: T::Acc, _one: T::Acc) -> T::Acc {
        Self::unchecked_mul(a, b)
    }

    /// Whether ⊕ prefers `a` to `b`.
    #[inline(always)]
    fn unchecked_better(a: T::Acc, b: T::Acc) -> bool {
        a > b
    }
}

/// `a + b` as a fused multiply-add of floats.
#[inline(always)]
pub(crate) fn fused_sum<T: Extended>(a: T::Acc, b: T::Acc, one: T::Acc) -> T::Acc {
    if T::IS_FLOAT { Numeric::mul_add(a, one, b) } else { Numeric::add(a, b) }
}

/// The arithmetic of `S` without checks.
struct Unchecked<S>(PhantomData<S>);

impl<T: Extended, S: UncheckedSemiring<T>> Lanes<T> for Unchecked<S> {
    type Packed = T::Acc;
    const COMMUTES: bool = true;
    const FORM: Form = if T::IS_FLOAT { Form::Unrolled } else { Form::Loops };
    #[inline(always)]
    fn zero() -> T::Acc {
        S::encode(S::ZERO)
    }
    #[inline(always)]
    fn encode(x: T) -> T::Acc {
        S::encode(x)
    }
    #[inline(always)]
    fn decode(x: T::Acc) -> T {
        S::decode(x)
    }
    type Unit = T::Acc;
    #[inline(always)]
    fn unit() -> T::Acc {
        // A known factor of 1 would be optimised away.
        black_box(T::Acc::ONE)
    }
    #[inline(always)]
    fn mul_add<const FMA: bool>(a: T::Acc, b: T::Acc, c: T::Acc, one: T::Acc) -> T::Acc {
        let new = Self::mul::<FMA>(a, b, one);
        if S::unchecked_better(new, c) { new } else { c }
    }
}

impl<T: Extended, S: UncheckedSemiring<T>> ArgLanes<T> for Unchecked<S> {
    const CHEAP: bool = true;
    #[inline(always)]
    fn mul<const FMA: bool>(a: T::Acc, b: T::Acc, one: T::Acc) -> T::Acc {
        if FMA { S::fused_mul(a, b, one) } else { S::unchecked_mul(a, b) }
    }
    #[inline(always)]
    fn better(a: T::Acc, b: T::Acc) -> bool {
        S::unchecked_better(a, b)
    }
}

/// The product over `S`.
pub(crate) const fn kernel<S: UncheckedSemiring<T>, T: Extended>() -> Kernel<T> {
    Kernel(product::<S, T>)
}

/// The product over `S` and its argmax.
pub(crate) const fn kernel_argmax<S: UncheckedSemiring<T>, T: Extended>() -> Kernel<T, true> {
    Kernel(select::<S, T>)
}

/// # Safety
/// The operands must be as [`Product::batch`] promises.
unsafe fn product<S: UncheckedSemiring<T>, T: Extended>(p: &Product<'_, T>) -> Report {
    // SAFETY: passed on.
    unsafe {
        partition::for_each(p, |block| {
            if fits::<S, T>(&block) {
                driver::run::<S, Unchecked<S>, T>(&block);
            } else {
                driver::run::<S, Plain<S>, T>(&block);
            }
        });
    }
    Report::new(Algorithm::Blocked)
}

/// # Safety
/// As [`driver::product_argmax`].
unsafe fn select<S: UncheckedSemiring<T>, T: Extended>(p: &Product<'_, T>) -> Report {
    // SAFETY: passed on.
    unsafe {
        partition::for_each(p, |block| {
            if fits::<S, T>(&block) {
                driver::run_argmax::<S, Unchecked<S>, T>(&block);
            } else {
                driver::run_argmax::<S, Plain<S>, T>(&block);
            }
        });
    }
    Report::new(Algorithm::Blocked)
}

fn fits<S: UncheckedSemiring<T>, T: Extended>(block: &Block<'_, T>) -> bool {
    let all = |matrix| simd::dispatch(All::<S, T> { matrix, tag: PhantomData });
    all(block.a) && all(block.b)
}

/// Whether all elements of a matrix fit.
struct All<'a, S, T> {
    matrix: MatRef<'a, T>,
    tag: PhantomData<S>,
}

impl<S: UncheckedSemiring<T>, T: Extended> Loop for All<'_, S, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let m = self.matrix;
        let m = if m.row_stride().unsigned_abs() < m.col_stride().unsigned_abs() {
            m.transpose()
        } else {
            m
        };
        for i in 0..m.rows() as isize {
            let row = m.as_ptr().wrapping_offset(i * m.row_stride());
            let mut fit = true;
            // Without an early exit, which would keep the loop from being vectorised.
            // SAFETY: (i, j) is an element of the matrix.
            unsafe {
                if m.col_stride() == 1 {
                    for j in 0..m.cols() {
                        fit &= S::fits(row.add(j).read());
                    }
                } else {
                    for j in 0..m.cols() as isize {
                        fit &= S::fits(row.wrapping_offset(j * m.col_stride()).read());
                    }
                }
            }
            if !fit {
                return false;
            }
        }
        true
    }
}
