//! One vectorised pass over contiguous runs: the only loops that are compiled per kernel, element
//! type and instruction set.

use std::mem::MaybeUninit;

use t4a_algebra::Scalar;
use t4a_algebra::simd::{Loop, dispatch};

use super::kernel::{Binary, BindLeft, BindRight, Ternary, Unary};

struct Map<'a, T: Scalar, K: Unary<T>> {
    kernel: K,
    x: &'a [T],
    out: &'a mut [MaybeUninit<K::Out>],
}

impl<T: Scalar, K: Unary<T>> Loop for Map<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        self.kernel.apply_run(self.x, self.out);
    }
}

/// `outᵢ = k(xᵢ)`.
#[inline]
pub fn map<T: Scalar, K: Unary<T>>(kernel: K, x: &[T], out: &mut [MaybeUninit<K::Out>]) {
    debug_assert_eq!(x.len(), out.len());
    dispatch(Map { kernel, x, out });
}

struct Zip<'a, T: Scalar, U: Scalar, K: Binary<T, U>> {
    kernel: K,
    a: &'a [T],
    b: &'a [U],
    out: &'a mut [MaybeUninit<K::Out>],
}

impl<T: Scalar, U: Scalar, K: Binary<T, U>> Loop for Zip<'_, T, U, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((out, &a), &b) in self.out.iter_mut().zip(self.a).zip(self.b) {
            out.write(self.kernel.apply(a, b));
        }
    }
}

/// A run of an operand: as many elements as the result has, or a single one that is repeated.
#[derive(Clone, Copy)]
pub enum Run<'a, T> {
    /// One element per element of the result.
    Each(&'a [T]),
    /// The same element for all.
    Repeat(T),
}

/// `outᵢ = k(aᵢ, bᵢ)`.
#[inline]
pub fn zip<T: Scalar, U: Scalar, K: Binary<T, U>>(
    kernel: K,
    a: Run<'_, T>,
    b: Run<'_, U>,
    out: &mut [MaybeUninit<K::Out>],
) {
    match (a, b) {
        (Run::Each(a), Run::Each(b)) => dispatch(Zip { kernel, a, b, out }),
        (Run::Each(a), Run::Repeat(b)) => map(BindRight(kernel, b), a, out),
        (Run::Repeat(a), Run::Each(b)) => map(BindLeft(kernel, a), b, out),
        (Run::Repeat(a), Run::Repeat(b)) => out.fill(MaybeUninit::new(kernel.apply(a, b))),
    }
}

struct Zip3<'a, T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>> {
    kernel: K,
    a: &'a [T],
    b: &'a [U],
    c: &'a [V],
    out: &'a mut [MaybeUninit<K::Out>],
}

impl<T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>> Loop for Zip3<'_, T, U, V, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (((out, &a), &b), &c) in self.out.iter_mut().zip(self.a).zip(self.b).zip(self.c) {
            out.write(self.kernel.apply(a, b, c));
        }
    }
}

/// `outᵢ = k(aᵢ, bᵢ, cᵢ)`.
#[inline]
pub fn zip3<T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>>(
    kernel: K,
    a: &[T],
    b: &[U],
    c: &[V],
    out: &mut [MaybeUninit<K::Out>],
) {
    dispatch(Zip3 { kernel, a, b, c, out });
}
