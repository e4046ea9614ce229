//! Products over the tropical semirings: one addition and one comparison per step if the operands permit it.
//!
//! ⊗ has to handle ∞ − ∞ and integer overflow, and ⊕ has to propagate NaN, which would cost several times the
//! arithmetic. The operands are therefore scanned once beforehand; if all elements are safe, the microkernel runs
//! without checks, else with them. The scan costs mk + kn against mnk steps. Both tiles give identical bits where both
//! apply; 16-bit floats are packed as `f32` without checks, which rounds the same (rounding is monotone) but
//! distinguishes terms that would tie after rounding. For their argmax all operands are scanned before threads
//! partition C, so that the choice is the same for all blocks.
//!
//! Sums of floats are computed as `1·a + b`, which rounds the same: many CPUs execute additions and comparisons of
//! floats in the same two units and multiplications in two others, so that a multiply-add and a comparison can be
//! issued in the same cycle (bench `semiring`).

use std::hint::black_box;
use std::marker::PhantomData;

use super::arithmetic::{PackedArgmax, PackedArithmetic, Plain, TileLoop};
use super::partition::{self, OutputBlock};
use super::{Algorithm, MatRef, Product, Report, driver};
use crate::simd::{self, Loop};
use crate::{Extended, Numeric, UncheckedSemiring};

/// The arithmetic of `S` without checks.
struct Unchecked<S>(PhantomData<S>);

impl<T: Extended, S: UncheckedSemiring<T>> PackedArithmetic<T> for Unchecked<S> {
    type Packed = T::Acc;
    const COMMUTES: bool = true;
    const FORM: TileLoop = if T::IS_FLOAT { TileLoop::Unrolled } else { TileLoop::Loops };
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
        // The compiler would remove a known factor of 1.
        black_box(T::Acc::ONE)
    }
    #[inline(always)]
    fn mul_add<const FMA: bool>(a: T::Acc, b: T::Acc, c: T::Acc, one: T::Acc) -> T::Acc {
        let new = Self::mul::<FMA>(a, b, one);
        if S::unchecked_better(new, c) { new } else { c }
    }
}

impl<T: Extended, S: UncheckedSemiring<T>> PackedArgmax<T> for Unchecked<S> {
    const CHEAP: bool = T::IS_FLOAT;
    #[inline(always)]
    fn mul<const FMA: bool>(a: T::Acc, b: T::Acc, one: T::Acc) -> T::Acc {
        if FMA { S::fused_mul(a, b, one) } else { S::unchecked_mul(a, b) }
    }
    #[inline(always)]
    fn better(a: T::Acc, b: T::Acc) -> bool {
        S::unchecked_better(a, b)
    }
}

/// # Safety
/// The operands must satisfy the contract of [`Product::batch`].
pub(super) unsafe fn product<S: UncheckedSemiring<T>, T: Extended>(p: &Product<'_, T>) -> Report {
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
pub(super) unsafe fn product_argmax<S: UncheckedSemiring<T>, T: Extended>(
    p: &Product<'_, T>,
) -> Report {
    // SAFETY: passed on.
    unsafe {
        let tells_apart = T::IS_FLOAT && size_of::<T>() == 2;
        let whole = tells_apart.then(|| partition::all_operands(p, fit::<S, T>));
        partition::for_each(p, |block| {
            if whole.unwrap_or_else(|| fits::<S, T>(&block)) {
                driver::run_argmax::<S, Unchecked<S>, T>(&block);
            } else {
                driver::run_argmax::<S, Plain<S>, T>(&block);
            }
        });
    }
    Report::new(Algorithm::Blocked)
}

/// True if no element of A and B needs checks over `S`.
fn fits<S: UncheckedSemiring<T>, T: Extended>(block: &OutputBlock<'_, T>) -> bool {
    fit::<S, T>(block.a) && fit::<S, T>(block.b)
}

/// True if no element of a matrix needs checks.
fn fit<S: UncheckedSemiring<T>, T: Extended>(matrix: MatRef<'_, T>) -> bool {
    simd::dispatch(FitLoop::<S, T> { matrix, tag: PhantomData })
}

struct FitLoop<'a, S, T> {
    matrix: MatRef<'a, T>,
    tag: PhantomData<S>,
}

impl<S: UncheckedSemiring<T>, T: Extended> Loop for FitLoop<'_, S, T> {
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
            // SAFETY: (i, j) is an element of the matrix.
            let fit = unsafe {
                if m.col_stride() == 1 {
                    let row = std::slice::from_raw_parts(row, m.cols());
                    match const { size_of::<T>() } {
                        4 if T::IS_FLOAT => all_fit::<S, T, 16>(row),
                        8 if T::IS_FLOAT => all_fit::<S, T, 8>(row),
                        // No early exit, which would prevent vectorisation.
                        _ => row.iter().fold(true, |fit, &x| fit & S::fits(x)),
                    }
                } else {
                    (0..m.cols() as isize)
                        .all(|j| S::fits(row.wrapping_offset(j * m.col_stride()).read()))
                }
            };
            if !fit {
                return false;
            }
        }
        true
    }
}

/// Keeps one unsafe element per lane, if there is one: a Boolean flag per float does not vectorise for 512 bits.
#[inline(always)]
fn all_fit<S: UncheckedSemiring<T>, T: Extended, const LANES: usize>(row: &[T]) -> bool {
    let mut found = [S::ZERO; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for l in 0..LANES {
            found[l] = if S::fits(chunk[l]) { found[l] } else { chunk[l] };
        }
    }
    found.iter().chain(rest).all(|&x| S::fits(x))
}
