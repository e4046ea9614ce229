//! Elementwise operations: broadcast, allocate or overwrite, run the loop.
//!
//! ```text
//! spec      what an operation is besides its kernel
//! small     row-major operands that are worth no plan
//! large     any operands: layout of the result, order of axes, walk
//! spread    one repeated element as a slice
//! terms     sums of any number of multiples
//! ```
//!
//! Operands are taken by value. If one of them is the only owner of memory that the result would fill exactly, it is
//! overwritten. Otherwise the result is row-major, unless no operand is and one of them is dense in another order of
//! axes, which the result then keeps. Axes along which every operand repeats its elements are computed once, and the
//! result repeats them too: derivatives of sums and means have the size of the sums.

use std::any::TypeId;
use std::mem::MaybeUninit;

use t4a_algebra::Scalar;

use crate::error::Result;
use crate::loops::contiguous::{self, Run};
use crate::loops::elementwise::{Block, Body};
use crate::loops::kernel::{Binary, Flip, Ternary, Unary};
use crate::tensor::Tensor;

mod large;
mod small;
mod spec;
mod spread;
mod terms;
#[cfg(test)]
mod tests;

pub(crate) use spec::SMALL;
pub use terms::add_terms;

use spec::ElementwiseSpec;
use spread::{SpreadRun, spread};

/// `outᵢ = k(xᵢ)`.
///
/// Cost: one read, one write and one `k` per element.
///
/// # Errors
/// [`TensorError::OutOfMemory`](crate::TensorError::OutOfMemory).
pub fn map<T: Scalar, K: Unary<T>>(kernel: K, x: Tensor<T>) -> Result<Tensor<K::Out>> {
    let spec = ElementwiseSpec {
        op: K::NAME,
        cost: K::COST,
        sizes: [size_of::<K::Out>(), size_of::<T>()],
        same_type: [true, same_type::<T, K::Out>()],
        in_place: [true, const { in_place::<T, K::Out>(K::COST) }],
        promotes: K::PROMOTES,
    };
    // SAFETY: the body writes the run with elements of the result, and reads the operand with its type.
    unsafe {
        let out = run(spec, [None, Some(erased(x))], &|out, len, &[_, x]| {
            if const { in_place::<T, K::Out>(K::COST) } && x.ptr == out.cast_const() {
                return contiguous::map_in_place(kernel, out.cast::<T>(), len);
            }
            let out = typed::<K::Out>(out, len);
            match elements::<T>(x, len) {
                Run::Each(x) => contiguous::map(kernel, x, out),
                Run::Repeat(x) => out.fill(MaybeUninit::new(kernel.apply(x))),
            }
        })?;
        Ok(out.retag())
    }
}

/// `outᵢ = k(aᵢ, bᵢ)` with the operands broadcast to a common shape.
///
/// Cost: two reads, one write and one `k` per element.
///
/// # Errors
/// [`TensorError::ShapeMismatch`](crate::TensorError::ShapeMismatch) if the shapes do not
/// broadcast; `OutOfMemory`.
pub fn zip<T: Scalar, U: Scalar, K: Binary<T, U>>(
    kernel: K,
    a: Tensor<T>,
    b: Tensor<U>,
) -> Result<Tensor<K::Out>> {
    let spec = ElementwiseSpec {
        op: K::NAME,
        cost: K::COST,
        sizes: [size_of::<K::Out>(), size_of::<T>(), size_of::<U>()],
        same_type: [true, same_type::<T, K::Out>(), same_type::<U, K::Out>()],
        in_place: const { [true, in_place::<T, K::Out>(K::COST), in_place::<U, K::Out>(K::COST)] },
        promotes: K::PROMOTES,
    };
    // SAFETY: the body writes the run with elements of the result, and reads the operands with their types.
    unsafe {
        let out = run(spec, [None, Some(erased(a)), Some(erased(b))], &|out, len, &[_, a, b]| {
            if const { in_place::<T, K::Out>(K::COST) } && a.ptr == out.cast_const() {
                return contiguous::zip_in_place(kernel, out.cast::<T>(), elements(b, len), len);
            }
            if const { in_place::<U, K::Out>(K::COST) } && b.ptr == out.cast_const() {
                if const { K::COMMUTES.is_some() } {
                    // T and U are the same.
                    let a = elements::<U>(a, len);
                    return contiguous::zip_in_place(kernel, out.cast::<T>(), a, len);
                }
                return contiguous::zip_in_place(
                    Flip(kernel),
                    out.cast::<U>(),
                    elements(a, len),
                    len,
                );
            }
            contiguous::zip(kernel, elements::<T>(a, len), elements::<U>(b, len), typed(out, len));
        })?;
        Ok(out.retag())
    }
}

/// `outᵢ = k(aᵢ, bᵢ, cᵢ)` with the operands broadcast to a common shape.
///
/// Cost: three reads, one write and one `k` per element.
///
/// # Errors
/// As [`zip`].
pub fn zip3<T: Scalar, U: Scalar, V: Scalar, K: Ternary<T, U, V>>(
    kernel: K,
    a: Tensor<T>,
    b: Tensor<U>,
    c: Tensor<V>,
) -> Result<Tensor<K::Out>> {
    let spec = ElementwiseSpec {
        op: K::NAME,
        cost: K::COST,
        sizes: [size_of::<K::Out>(), size_of::<T>(), size_of::<U>(), size_of::<V>()],
        same_type: [
            true,
            same_type::<T, K::Out>(),
            same_type::<U, K::Out>(),
            same_type::<V, K::Out>(),
        ],
        in_place: [true, false, false, false],
        promotes: false,
    };
    let operands = [None, Some(erased(a)), Some(erased(b)), Some(erased(c))];
    // SAFETY: the body writes the run with elements of the result, and reads the operands with their types.
    unsafe {
        let out = run(spec, operands, &|out, len, &[_, a, b, c]| {
            // Three operands with two accesses each would be eight loops: repeated elements
            // are spread out instead.
            let out = typed::<K::Out>(out, len);
            let (mut sa, mut sb, mut sc) = (SpreadRun::new(), SpreadRun::new(), SpreadRun::new());
            let most = const { smallest(spread::<T>(), spread::<U>(), spread::<V>()) };
            let mut done = 0;
            while done < len {
                let part = (len - done).min(most);
                let a = sa.slice(elements::<T>(a, len), done, part);
                let b = sb.slice(elements::<U>(b, len), done, part);
                let c = sc.slice(elements::<V>(c, len), done, part);
                contiguous::zip3(kernel, a, b, c, &mut out[done..done + part]);
                done += part;
            }
        })?;
        Ok(out.retag())
    }
}

/// Executes an operation. Not inlined, so that the kernels remain small enough to be inlined into their callers.
/// callers.
///
/// # Safety
/// The body writes every element of its run, and reads operands as the types they have.
#[inline(never)]
unsafe fn run<const M: usize>(
    spec: ElementwiseSpec<M>,
    operands: [Option<Tensor<()>>; M],
    body: Body<'_, M>,
) -> Result<Tensor<()>> {
    match small::compute(&spec, &operands, body) {
        Some(done) => done,
        // SAFETY: passed on.
        None => unsafe { large::compute(spec, operands, body) },
    }
}

/// A tensor with an erased element type.
fn erased<T: Scalar>(x: Tensor<T>) -> Tensor<()> {
    // SAFETY: `()` is the erased element type.
    unsafe { x.retag() }
}

const fn smallest(a: usize, b: usize, c: usize) -> usize {
    let ab = if a < b { a } else { b };
    if ab < c { ab } else { c }
}

const fn in_place<T, U>(cost: usize) -> bool {
    contiguous::in_place(cost, size_of::<T>(), size_of::<U>())
}

fn same_type<T: 'static, U: 'static>() -> bool {
    TypeId::of::<T>() == TypeId::of::<U>()
}

/// A run of the result.
///
/// # Safety
/// `len` elements of type `U` may be written.
#[inline(always)]
unsafe fn typed<'a, U>(out: *mut u8, len: usize) -> &'a mut [MaybeUninit<U>] {
    // SAFETY: the caller's contract.
    unsafe { std::slice::from_raw_parts_mut(out.cast(), len) }
}

/// A block as a typed run.
///
/// # Safety
/// The block holds `len` elements of type `T`, or one if it is repeated.
#[inline(always)]
unsafe fn elements<'a, T: Scalar>(block: Block, len: usize) -> Run<'a, T> {
    let ptr = block.ptr.cast::<T>();
    // SAFETY: the caller's contract.
    unsafe {
        if block.repeat {
            Run::Repeat(*ptr)
        } else {
            Run::Each(std::slice::from_raw_parts(ptr, len))
        }
    }
}
