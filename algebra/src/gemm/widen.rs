//! Products of 16-bit floats: blocks of the operands are converted to `f32` and multiplied, and the result is rounded
//! once. The whole sum over k is accumulated in `f32`.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use super::partition::{self, OutputBlock};
use super::scratch::{Scratch, StackBuffer};
use super::{Algorithm, Kernel, MatMut, MatRef, Parallelism, Product, Report};
use crate::simd::{self, Loop};
use crate::{Numeric, Semiring};

/// Rows of A, columns of B and depth of a widened block: 1 MiB, 2 MiB and ½ MiB of `f32`.
const ROWS: usize = 256;
const COLS: usize = 512;
const DEPTH: usize = 1024;

/// The product over `S`, computed on [`Numeric::Acc`].
pub(crate) const fn kernel<S: Semiring<T> + Semiring<T::Acc>, T: Numeric>() -> Kernel<T> {
    Kernel(product::<S, T>)
}

/// # Safety
/// The operands must satisfy the contract of [`Product::batch`].
unsafe fn product<S, T>(p: &Product<'_, T>) -> Report
where
    S: Semiring<T> + Semiring<T::Acc>,
    T: Numeric,
{
    let first = AtomicU8::new(Algorithm::Nothing as u8);
    // SAFETY: passed on.
    unsafe {
        partition::for_each(p, |block| {
            let report = run::<S, T>(&block);
            // The block at the start of C provides the report.
            if block.c.as_mut_ptr() == p.c.as_mut_ptr() {
                first.store(report.algorithm as u8, Ordering::Relaxed);
            }
        });
    }
    let algorithm = Algorithm::ALL[usize::from(first.into_inner())];
    Report { algorithm, promoted: true }
}

/// Computes one block, and returns the report of its first product.
fn run<S: Semiring<T::Acc>, T: Numeric>(block: &OutputBlock<'_, T>) -> Report {
    let mut first = None;
    let OutputBlock { a, b, c, accumulate, .. } = block;
    let (m, k, n) = (a.rows(), a.cols(), b.cols());
    let (rows, cols, depth) = (m.min(ROWS), n.min(COLS), k.min(DEPTH));
    let mut stack = StackBuffer::new();
    let mut scratch = Scratch::<T::Acc>::new(rows * depth + depth * cols + rows * cols, &mut stack);
    let wide_a = scratch.as_mut_ptr();
    let wide_b = wide_a.wrapping_add(rows * depth);
    let wide_c = wide_b.wrapping_add(depth * cols);

    // Even parts: for a small remainder the library would use another order of the sum over k.
    let (down, right) = (m.div_ceil(ROWS), n.div_ceil(COLS));
    for part in 0..right {
        let (jc, nc) = partition::span(n, right, part);
        for part in 0..down {
            let (ic, mc) = partition::span(m, down, part);
            // SAFETY: all blocks are inside the operands, and the scratch holds the largest.
            unsafe {
                let wide = |ptr: *mut T::Acc, rows, cols| {
                    MatMut::from_raw_parts(ptr, (rows, cols), (cols as isize, 1))
                };
                let sum = wide(wide_c, mc, nc);
                // One pass for k = 0, which clears the sum.
                for pc in (0..k.max(1)).step_by(DEPTH) {
                    let kc = (k - pc).min(DEPTH);
                    let wa = wide(wide_a, mc, kc);
                    simd::dispatch(Widen { from: a.block((ic, pc), (mc, kc)), to: &wa });
                    let wb = wide(wide_b, kc, nc);
                    if ic == 0 || k > DEPTH {
                        simd::dispatch(Widen { from: b.block((pc, jc), (kc, nc)), to: &wb });
                    }
                    let product = Product {
                        a: as_ref(&wa),
                        b: as_ref(&wb),
                        c: sum.alias(),
                        batch: &[],
                        accumulate: pc > 0,
                        parallelism: Parallelism::Seq,
                        arg: None,
                        first: 0,
                    };
                    let report = (<S as Semiring<T::Acc>>::GEMM.0)(&product);
                    first.get_or_insert(report);
                }
                let to = c.alias().block((ic, jc), (mc, nc));
                let from = as_ref(&sum);
                simd::dispatch(Narrow::<S, T> { from, to, add: *accumulate, tag: PhantomData });
            }
        }
    }
    first.unwrap_or(Report::new(Algorithm::Nothing))
}

/// # Safety
/// The matrix must be initialised.
unsafe fn as_ref<'a, T>(m: &MatMut<'a, T>) -> MatRef<'a, T> {
    let (shape, strides) = ((m.rows(), m.cols()), (m.row_stride(), m.col_stride()));
    // SAFETY: the matrix is initialised, and is not written while it is read.
    unsafe { MatRef::from_raw_parts(m.as_mut_ptr(), shape, strides) }
}

struct Widen<'a, 'b, T: Numeric> {
    from: MatRef<'a, T>,
    to: &'b MatMut<'a, T::Acc>,
}

impl<T: Numeric> Loop for Widen<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (from, to) = (self.from, self.to);
        for i in 0..to.rows() as isize {
            let src = from.as_ptr().wrapping_offset(i * from.row_stride());
            let dst = to.as_mut_ptr().wrapping_offset(i * to.row_stride());
            // SAFETY: (i, j) is an element of both matrices; the rows of `to` are contiguous.
            unsafe {
                if from.col_stride() == 1 {
                    for j in 0..to.cols() {
                        dst.add(j).write(src.add(j).read().widen());
                    }
                } else {
                    for j in 0..to.cols() {
                        let at = src.wrapping_offset(j as isize * from.col_stride());
                        dst.add(j).write(at.read().widen());
                    }
                }
            }
        }
    }
}

struct Narrow<'a, S, T: Numeric> {
    from: MatRef<'a, T::Acc>,
    to: MatMut<'a, T>,
    add: bool,
    tag: PhantomData<S>,
}

impl<S: Semiring<T::Acc>, T: Numeric> Loop for Narrow<'_, S, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (from, to) = (self.from, &self.to);
        for i in 0..to.rows() as isize {
            let src = from.as_ptr().wrapping_offset(i * from.row_stride());
            let dst = to.as_mut_ptr().wrapping_offset(i * to.row_stride());
            // SAFETY: (i, j) is an element of both matrices; the rows of `from` are contiguous.
            unsafe {
                if !self.add && to.col_stride() == 1 {
                    for j in 0..to.cols() {
                        dst.add(j).write(T::narrow(src.add(j).read()));
                    }
                } else {
                    for j in 0..to.cols() {
                        let at = dst.wrapping_offset(j as isize * to.col_stride());
                        let mut value = src.add(j).read();
                        if self.add {
                            value = S::add(at.read().widen(), value);
                        }
                        at.write(T::narrow(value));
                    }
                }
            }
        }
    }
}
