//! Softmax and log-softmax along any axis, with their vector–Jacobian products.
//!
//! Each lane is shifted by its maximum first, so nothing overflows. A lane that holds NaN or +∞,
//! or only −∞, becomes NaN.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::axis::{Along, WIDTH, along};
use super::lanes;
use crate::error::{Result, TensorError};
use crate::loops::written;
use crate::tensor::Tensor;

/// `yᵢ = e^(xᵢ − m) / Σⱼ e^(xⱼ − m)`, m the maximum along `axis`.
///
/// Cost: one read and one write of memory, one exponential per element.
///
/// # Errors
/// [`TensorError::Axis`], `OutOfMemory`.
pub fn softmax<T: Float>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    along(Softmax, [x], axis)
}

/// `yᵢ = xᵢ − m − ln Σⱼ e^(xⱼ − m)`, m the maximum along `axis`.
///
/// Cost and errors: as [`softmax`].
pub fn log_softmax<T: Float>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    along(LogSoftmax, [x], axis)
}

/// `x̄ᵢ = yᵢ·(ȳᵢ − Σⱼ yⱼ·ȳⱼ)` from the result `y` of [`softmax`] and its cotangent `ȳ`.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::Axis`], `OutOfMemory`.
pub fn softmax_vjp<T: Float>(y: &Tensor<T>, dy: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    same_shape("softmax_vjp", y, dy)?;
    along(SoftmaxVjp, [y, dy], axis)
}

/// `x̄ᵢ = ȳᵢ − e^(yᵢ)·Σⱼ ȳⱼ` from the result `y` of [`log_softmax`] and its cotangent `ȳ`.
///
/// # Errors
/// As [`softmax_vjp`].
pub fn log_softmax_vjp<T: Float>(y: &Tensor<T>, dy: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    same_shape("log_softmax_vjp", y, dy)?;
    along(LogSoftmaxVjp, [y, dy], axis)
}

pub(super) fn same_shape<T: Float>(op: &'static str, a: &Tensor<T>, b: &Tensor<T>) -> Result<()> {
    if a.shape() == b.shape() {
        return Ok(());
    }
    Err(TensorError::shapes(op, a.shape(), b.shape(), "equal shapes"))
}

#[derive(Clone, Copy)]
struct Softmax;
#[derive(Clone, Copy)]
struct LogSoftmax;
#[derive(Clone, Copy)]
struct SoftmaxVjp;
#[derive(Clone, Copy)]
struct LogSoftmaxVjp;

/// Rows of `n` elements of `N` operands, as one vectorised loop.
struct Rows<'a, T, K, const N: usize> {
    kernel: PhantomData<K>,
    n: usize,
    x: [&'a [T]; N],
    out: &'a mut [MaybeUninit<T>],
}

/// Lanes side by side, as one vectorised loop.
struct Columns<T, K, const N: usize> {
    kernel: PhantomData<K>,
    n: usize,
    pitch: usize,
    width: usize,
    x: [*const T; N],
    out: *mut T,
}

impl<T: Float, K, const N: usize> Columns<T, K, N> {
    /// Row `i` of operand `k`.
    ///
    /// # Safety
    /// As promised to [`Along::columns`]; `i < n`.
    #[inline(always)]
    unsafe fn row(&self, k: usize, i: usize) -> &[T] {
        // SAFETY: the promise.
        unsafe { std::slice::from_raw_parts(self.x[k].add(i * self.pitch), self.width) }
    }

    /// Row `i` of the result.
    ///
    /// # Safety
    /// As [`Columns::row`]; one at a time.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    unsafe fn out(&self, i: usize) -> &mut [MaybeUninit<T>] {
        let row = self.out.wrapping_add(i * self.pitch).cast();
        // SAFETY: the promise.
        unsafe { std::slice::from_raw_parts_mut(row, self.width) }
    }
}

macro_rules! along {
    ($kernel:ident, $n:literal, $name:literal, $cost:literal) => {
        impl<T: Float> Along<T, $n> for $kernel {
            const NAME: &'static str = $name;
            const COST: usize = $cost;
            fn rows(self, n: usize, x: [&[T]; $n], out: &mut [MaybeUninit<T>]) {
                dispatch(Rows { kernel: PhantomData::<Self>, n, x, out });
            }
            unsafe fn columns(
                self,
                n: usize,
                pitch: usize,
                width: usize,
                x: [*const T; $n],
                out: *mut T,
            ) {
                dispatch(Columns { kernel: PhantomData::<Self>, n, pitch, width, x, out });
            }
        }
    };
}

along!(Softmax, 1, "softmax", 16);
along!(LogSoftmax, 1, "log_softmax", 16);
along!(SoftmaxVjp, 2, "softmax_vjp", 3);
along!(LogSoftmaxVjp, 2, "log_softmax_vjp", 12);

impl<T: Float> Loop for Rows<'_, T, Softmax, 1> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, out) in self.x[0].chunks_exact(self.n).zip(self.out.chunks_exact_mut(self.n)) {
            let max = lanes::max(x);
            for (out, &x) in out.iter_mut().zip(x) {
                out.write(x.sub(max).exp());
            }
            // SAFETY: just written.
            let out = unsafe { written(out) };
            let scale = lanes::sum(out, |y| y).recip();
            for y in out {
                *y = y.mul(scale);
            }
        }
    }
}

impl<T: Float> Loop for Rows<'_, T, LogSoftmax, 1> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (x, out) in self.x[0].chunks_exact(self.n).zip(self.out.chunks_exact_mut(self.n)) {
            let max = lanes::max(x);
            for (out, &x) in out.iter_mut().zip(x) {
                out.write(x.sub(max).exp());
            }
            // SAFETY: just written.
            let out = unsafe { written(out) };
            let log = lanes::sum(out, |y| y).ln();
            for (y, &x) in out.iter_mut().zip(x) {
                *y = x.sub(max).sub(log);
            }
        }
    }
}

impl<T: Float> Loop for Rows<'_, T, SoftmaxVjp, 2> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.n;
        let pairs = self.x[0].chunks_exact(n).zip(self.x[1].chunks_exact(n));
        for ((y, dy), out) in pairs.zip(self.out.chunks_exact_mut(n)) {
            let mean = lanes::dot(y, dy);
            for ((out, &y), &dy) in out.iter_mut().zip(y).zip(dy) {
                out.write(y.mul(dy.sub(mean)));
            }
        }
    }
}

impl<T: Float> Loop for Rows<'_, T, LogSoftmaxVjp, 2> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let n = self.n;
        let pairs = self.x[0].chunks_exact(n).zip(self.x[1].chunks_exact(n));
        for ((y, dy), out) in pairs.zip(self.out.chunks_exact_mut(n)) {
            let sum = lanes::sum(dy, |d| d).neg();
            for ((out, &y), &dy) in out.iter_mut().zip(y).zip(dy) {
                out.write(y.exp().mul_add(sum, dy));
            }
        }
    }
}

impl<T: Float, K> Columns<T, K, 1> {
    /// Writes `e^(x − m)`; returns the maxima m and the sums of each lane.
    ///
    /// # Safety
    /// As promised to [`Along::columns`].
    #[inline(always)]
    unsafe fn exponentials(&self) -> ([T; WIDTH], [T; WIDTH]) {
        let (mut max, mut sum) = ([T::NEG_INFINITY; WIDTH], [T::ZERO; WIDTH]);
        // SAFETY: the promise.
        unsafe {
            for i in 0..self.n {
                for (m, &x) in max.iter_mut().zip(self.row(0, i)) {
                    *m = if x > *m { x } else { *m };
                }
            }
            for i in 0..self.n {
                let lanes = max.iter().zip(sum.iter_mut()).zip(self.row(0, i));
                for (out, ((&m, sum), &x)) in self.out(i).iter_mut().zip(lanes) {
                    let e = x.sub(m).exp();
                    *sum = sum.add(e);
                    out.write(e);
                }
            }
        }
        (max, sum)
    }
}

impl<T: Float> Loop for Columns<T, Softmax, 1> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: as promised to `Along::columns`; rows are written before they are read.
        unsafe {
            let (_, mut sum) = self.exponentials();
            for s in &mut sum[..self.width] {
                *s = s.recip();
            }
            for i in 0..self.n {
                for (y, &s) in written(self.out(i)).iter_mut().zip(&sum) {
                    *y = y.mul(s);
                }
            }
        }
    }
}

impl<T: Float> Loop for Columns<T, LogSoftmax, 1> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        // SAFETY: as promised to `Along::columns`.
        unsafe {
            let (max, mut log) = self.exponentials();
            for s in &mut log[..self.width] {
                *s = s.ln();
            }
            for i in 0..self.n {
                let lanes = self.row(0, i).iter().zip(&max).zip(&log);
                for (out, ((&x, &m), &l)) in self.out(i).iter_mut().zip(lanes) {
                    out.write(x.sub(m).sub(l));
                }
            }
        }
    }
}

impl<T: Float> Loop for Columns<T, SoftmaxVjp, 2> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut mean = [T::ZERO; WIDTH];
        // SAFETY: as promised to `Along::columns`.
        unsafe {
            for i in 0..self.n {
                for ((m, &y), &dy) in mean.iter_mut().zip(self.row(0, i)).zip(self.row(1, i)) {
                    *m = y.mul_add(dy, *m);
                }
            }
            for i in 0..self.n {
                let lanes = self.row(0, i).iter().zip(self.row(1, i)).zip(&mean);
                for (out, ((&y, &dy), &m)) in self.out(i).iter_mut().zip(lanes) {
                    out.write(y.mul(dy.sub(m)));
                }
            }
        }
    }
}

impl<T: Float> Loop for Columns<T, LogSoftmaxVjp, 2> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let mut sum = [T::ZERO; WIDTH];
        // SAFETY: as promised to `Along::columns`.
        unsafe {
            for i in 0..self.n {
                for (s, &dy) in sum.iter_mut().zip(self.row(1, i)) {
                    *s = s.sub(dy);
                }
            }
            for i in 0..self.n {
                let lanes = self.row(0, i).iter().zip(self.row(1, i)).zip(&sum);
                for (out, ((&y, &dy), &s)) in self.out(i).iter_mut().zip(lanes) {
                    out.write(y.exp().mul_add(s, dy));
                }
            }
        }
    }
}
