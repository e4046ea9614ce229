//! One vectorised pass over contiguous runs: the only loops that are compiled per kernel, element type and instruction
//! set. Memory-bound loops prefetch what they write, and use registers of at most 256 bits.

use std::mem::MaybeUninit;

use t4a_algebra::Scalar;
use t4a_algebra::simd::{Loop, dispatch, dispatch_narrow};

use super::ahead::{self, Ahead};
use super::kernel::{Binary, BindLeft, BindRight, Ternary, Unary};
use super::written;

/// Maximum cost, in additions per element, of a memory-bound pass.
const LIGHT: usize = 4;

/// True if a kernel of this cost with elements of these sizes may overwrite an operand while it reads it. Other kernels
/// read a copy of the operand: its cost is small compared with their arithmetic, and one loop per kernel is saved.
pub const fn in_place(cost: usize, operand: usize, out: usize) -> bool {
    cost <= LIGHT && operand == out
}

const fn larger(a: usize, b: usize) -> usize {
    if a > b { a } else { b }
}

struct UnaryLoop<'a, T: Scalar, K: Unary<T>> {
    kernel: K,
    x: &'a [T],
    out: &'a mut [MaybeUninit<K::Out>],
}

impl<T: Scalar, K: Unary<T>> Loop for UnaryLoop<'_, T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        if const { K::COST > LIGHT } {
            return elements(self.kernel, self.x, self.out);
        }
        let block = const { ahead::block(larger(size_of::<T>(), size_of::<K::Out>())) };
        // The compiler unrolls a short block before it vectorises, which then fails for elements of two sizes: 287
        // instead of 57 µs for a million `bool` to `i32` (Zen 4, bench `peers`, row `bool to i32 1024²`).
        let block = if const { size_of::<T>() == size_of::<K::Out>() } { block } else { 4 * block };
        let ahead = Ahead::of_writes();
        let (mut x, mut out) = (self.x.chunks_exact(block), self.out.chunks_exact_mut(block));
        for (x, out) in x.by_ref().zip(out.by_ref()) {
            ahead.write(out);
            elements(self.kernel, x, out);
        }
        elements(self.kernel, x.remainder(), out.into_remainder());
    }
}

#[inline(always)]
fn elements<T: Scalar, K: Unary<T>>(kernel: K, x: &[T], out: &mut [MaybeUninit<K::Out>]) {
    if const { K::PART == 0 } {
        for (out, &x) in out.iter_mut().zip(x) {
            out.write(kernel.apply(x));
        }
        return;
    }
    for (x, out) in x.chunks(K::PART.max(1)).zip(out.chunks_mut(K::PART.max(1))) {
        for (out, &x) in out.iter_mut().zip(x) {
            out.write(kernel.seed(x));
        }
        // SAFETY: written above, with equal lengths.
        kernel.complete(unsafe { written(out) });
    }
}

/// `outᵢ = k(xᵢ)` for runs of equal length.
#[inline]
pub fn map<T: Scalar, K: Unary<T>>(kernel: K, x: &[T], out: &mut [MaybeUninit<K::Out>]) {
    assert_eq!(x.len(), out.len());
    let body = UnaryLoop { kernel, x, out };
    if const { K::COST > LIGHT } { dispatch(body) } else { dispatch_narrow(body) }
}

struct UnaryInPlace<T, K> {
    kernel: K,
    at: *mut T,
    len: usize,
}

impl<T: Scalar, K: Unary<T>> Loop for UnaryInPlace<T, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let block = const { ahead::block(size_of::<T>()) };
        let ahead = Ahead::of_writes();
        for first in (0..self.len).step_by(block) {
            let at = self.at.wrapping_add(first);
            ahead.overwrite(at, block);
            for i in 0..block.min(self.len - first) {
                // SAFETY: an element of the run, which is read before it is written.
                unsafe {
                    let at = at.add(i);
                    at.cast::<K::Out>().write(self.kernel.apply(at.read()));
                }
            }
        }
    }
}

/// `xᵢ ← k(xᵢ)` over the elements of a run.
///
/// # Safety
/// `at` holds `len` elements that may be written, and the result has the size and alignment of `T`;
/// see [`in_place`].
#[inline]
pub unsafe fn map_in_place<T: Scalar, K: Unary<T>>(kernel: K, at: *mut T, len: usize) {
    dispatch_narrow(UnaryInPlace { kernel, at, len });
}

struct BinaryInPlace<'a, T, U, K> {
    kernel: K,
    at: *mut T,
    b: &'a [U],
}

impl<T: Scalar, U: Scalar, K: Binary<T, U>> Loop for BinaryInPlace<'_, T, U, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let block = const { ahead::block(larger(size_of::<T>(), size_of::<U>())) };
        let ahead = Ahead::of_writes();
        for (n, b) in self.b.chunks(block).enumerate() {
            let at = self.at.wrapping_add(n * block);
            ahead.overwrite(at, block);
            for (i, &b) in b.iter().enumerate() {
                // SAFETY: an element of the run, which is read before it is written.
                unsafe {
                    let at = at.add(i);
                    at.cast::<K::Out>().write(self.kernel.apply(at.read(), b));
                }
            }
        }
    }
}

/// `aᵢ ← k(aᵢ, bᵢ)` over the elements of a run.
///
/// # Safety
/// As [`map_in_place`]; a run `b` has as many elements.
#[inline]
pub unsafe fn zip_in_place<T: Scalar, U: Scalar, K: Binary<T, U>>(
    kernel: K,
    at: *mut T,
    b: Run<'_, U>,
    len: usize,
) {
    // SAFETY: passed on.
    unsafe {
        match b {
            Run::Each(b) => {
                debug_assert_eq!(b.len(), len);
                dispatch_narrow(BinaryInPlace { kernel, at, b });
            }
            Run::Repeat(b) => map_in_place(BindRight(kernel, b), at, len),
        }
    }
}

struct BinaryLoop<'a, T: Scalar, U: Scalar, K: Binary<T, U>> {
    kernel: K,
    a: &'a [T],
    b: &'a [U],
    out: &'a mut [MaybeUninit<K::Out>],
}

impl<T: Scalar, U: Scalar, K: Binary<T, U>> Loop for BinaryLoop<'_, T, U, K> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let kernel = self.kernel;
        if const { K::COST > LIGHT } {
            return pairs(kernel, self.a, self.b, self.out);
        }
        let size = const { larger(larger(size_of::<T>(), size_of::<U>()), size_of::<K::Out>()) };
        let (block, ahead) = (ahead::block(size), Ahead::of_writes());
        let (mut a, mut b) = (self.a.chunks_exact(block), self.b.chunks_exact(block));
        let mut out = self.out.chunks_exact_mut(block);
        for ((a, b), out) in a.by_ref().zip(b.by_ref()).zip(out.by_ref()) {
            ahead.write(out);
            pairs(kernel, a, b, out);
        }
        pairs(kernel, a.remainder(), b.remainder(), out.into_remainder());
    }
}

#[inline(always)]
fn pairs<T: Scalar, U: Scalar, K: Binary<T, U>>(
    kernel: K,
    a: &[T],
    b: &[U],
    out: &mut [MaybeUninit<K::Out>],
) {
    for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
        out.write(kernel.apply(a, b));
    }
}

/// A run of an operand: as many elements as the result has, or a single repeated one.
#[derive(Clone, Copy)]
pub enum Run<'a, T> {
    /// One element per element of the result.
    Each(&'a [T]),
    /// The same element for all positions.
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
        (Run::Each(a), Run::Each(b)) => {
            let body = BinaryLoop { kernel, a, b, out };
            if const { K::COST > LIGHT } { dispatch(body) } else { dispatch_narrow(body) }
        }
        (Run::Each(a), Run::Repeat(b)) => map(BindRight(kernel, b), a, out),
        (Run::Repeat(a), Run::Each(b)) => {
            if const { K::COMMUTES.is_some() }
                && let Some(same) = K::COMMUTES
            {
                return map(BindRight(kernel, same.second(a)), same.first(b), out);
            }
            if const { K::COMMUTES.is_none() } {
                map(BindLeft(kernel, a), b, out);
            }
        }
        (Run::Repeat(a), Run::Repeat(b)) => out.fill(MaybeUninit::new(kernel.apply(a, b))),
    }
}

struct TernaryLoop<'a, T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>> {
    kernel: K,
    a: &'a [T],
    b: &'a [U],
    c: &'a [V],
    out: &'a mut [MaybeUninit<K::Out>],
}

impl<T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>> Loop for TernaryLoop<'_, T, U, V, K> {
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
    dispatch(TernaryLoop { kernel, a, b, c, out });
}
