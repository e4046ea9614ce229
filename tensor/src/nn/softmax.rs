//! Softmax and log-softmax along any axis, with their vector–Jacobian products.
//!
//! Each lane is shifted by its maximum first, which avoids overflow. A lane with NaN or +∞, or with only −∞, gives NaN.

use std::marker::PhantomData;

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::axis::{Along, WIDTH, along};
use super::lanes::{self, LaneSums};
use crate::error::{Result, TensorError};
use crate::output::{Fresh, Full, FullColumns, OutputColumns};
use crate::tensor::Tensor;

/// `yᵢ = e^(xᵢ − m) / Σⱼ e^(xⱼ − m)`, m the maximum along `axis`.
///
/// Cost: one read and one write of memory, one exponential per element.
///
/// # Errors
/// [`TensorError::Axis`], `OutOfMemory`.
///
/// ```
/// use t4a_tensor::Tensor;
/// use t4a_tensor::nn::softmax::{log_softmax, softmax};
///
/// let x = Tensor::from_vec(vec![1000.0f32, 1000.0], &[1, 2])?;
/// assert_eq!(softmax(&x, 1)?.to_vec()?, [0.5, 0.5]);
/// assert!((log_softmax(&x, 1)?.to_vec()?[0] + 2f32.ln()).abs() < 1e-6);
/// # Ok::<(), t4a_tensor::TensorError>(())
/// ```
pub fn softmax<T: Float>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    along(SoftmaxKernel, [x], axis)
}

/// `yᵢ = xᵢ − m − ln Σⱼ e^(xⱼ − m)`, m the maximum along `axis`.
///
/// Cost and errors: as [`softmax`].
pub fn log_softmax<T: Float>(x: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    along(LogSoftmaxKernel, [x], axis)
}

/// `x̄ᵢ = yᵢ·(ȳᵢ − Σⱼ yⱼ·ȳⱼ)` from the result `y` of [`softmax`] and its cotangent `ȳ`.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::Axis`], `OutOfMemory`.
pub fn softmax_vjp<T: Float>(y: &Tensor<T>, dy: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    same_shape("softmax_vjp", y, dy)?;
    along(SoftmaxVjpKernel, [y, dy], axis)
}

/// `x̄ᵢ = ȳᵢ − e^(yᵢ)·Σⱼ ȳⱼ` from the result `y` of [`log_softmax`] and its cotangent `ȳ`.
///
/// # Errors
/// As [`softmax_vjp`].
pub fn log_softmax_vjp<T: Float>(y: &Tensor<T>, dy: &Tensor<T>, axis: usize) -> Result<Tensor<T>> {
    same_shape("log_softmax_vjp", y, dy)?;
    along(LogSoftmaxVjpKernel, [y, dy], axis)
}

pub(super) fn same_shape<T: Float>(op: &'static str, a: &Tensor<T>, b: &Tensor<T>) -> Result<()> {
    if a.shape() == b.shape() {
        return Ok(());
    }
    Err(TensorError::shapes(op, a.shape(), b.shape(), "equal shapes"))
}

#[derive(Clone, Copy)]
struct SoftmaxKernel;
#[derive(Clone, Copy)]
struct LogSoftmaxKernel;
#[derive(Clone, Copy)]
struct SoftmaxVjpKernel;
#[derive(Clone, Copy)]
struct LogSoftmaxVjpKernel;

/// Rows of `n` elements of `N` operands, as one vectorised loop.
struct RowLoop<'a, 'o, T, K, const N: usize> {
    kernel: PhantomData<K>,
    n: usize,
    x: [&'a [T]; N],
    out: Fresh<'o, T>,
}

/// Adjacent lanes as one vectorised loop.
struct LaneLoop<'a, 'o, T, K, const N: usize> {
    kernel: PhantomData<K>,
    pitch: usize,
    x: [&'a [T]; N],
    out: OutputColumns<'o, T>,
}

macro_rules! along {
    ($kernel:ident, $n:literal, $name:literal, $cost:literal) => {
        impl<T: Float> Along<T, $n> for $kernel {
            const NAME: &'static str = $name;
            const COST: usize = $cost;
            fn rows<'o>(self, n: usize, x: [&[T]; $n], out: Fresh<'o, T>) -> Full<'o, T> {
                dispatch(RowLoop { kernel: PhantomData::<Self>, n, x, out })
            }
            fn columns<'o>(
                self,
                pitch: usize,
                x: [&[T]; $n],
                out: OutputColumns<'o, T>,
            ) -> FullColumns<'o, T> {
                dispatch(LaneLoop { kernel: PhantomData::<Self>, pitch, x, out })
            }
        }
    };
}

along!(SoftmaxKernel, 1, "softmax", 16);
along!(LogSoftmaxKernel, 1, "log_softmax", 16);
along!(SoftmaxVjpKernel, 2, "softmax_vjp", 3);
along!(LogSoftmaxVjpKernel, 2, "log_softmax_vjp", 12);

impl<'o, T: Float> Loop for RowLoop<'_, 'o, T, SoftmaxKernel, 1> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let mut rows = self.out.cursor();
        for x in self.x[0].chunks_exact(self.n) {
            let max = lanes::max(x);
            let mut y = rows.next(self.n).map(x, |x| x.sub(max).exp());
            let scale = lanes::sum(&y, |y| y).recip();
            for y in y.iter_mut() {
                *y = y.mul(scale);
            }
            rows.done(y);
        }
        rows.finish()
    }
}

impl<'o, T: Float> Loop for RowLoop<'_, 'o, T, LogSoftmaxKernel, 1> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let mut rows = self.out.cursor();
        for x in self.x[0].chunks_exact(self.n) {
            let max = lanes::max(x);
            let mut y = rows.next(self.n).map(x, |x| x.sub(max).exp());
            let log = lanes::sum(&y, |y| y).ln();
            for (y, &x) in y.iter_mut().zip(x) {
                *y = x.sub(max).sub(log);
            }
            rows.done(y);
        }
        rows.finish()
    }
}

impl<'o, T: Float> Loop for RowLoop<'_, 'o, T, SoftmaxVjpKernel, 2> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let n = self.n;
        let mut rows = self.out.cursor();
        for (y, dy) in self.x[0].chunks_exact(n).zip(self.x[1].chunks_exact(n)) {
            let mean = lanes::dot(y, dy, |dy| dy);
            let dx = rows.next(n).zip(y, dy, |y, dy| y.mul(dy.sub(mean)));
            rows.done(dx);
        }
        rows.finish()
    }
}

impl<'o, T: Float> Loop for RowLoop<'_, 'o, T, LogSoftmaxVjpKernel, 2> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let n = self.n;
        let mut rows = self.out.cursor();
        for (y, dy) in self.x[0].chunks_exact(n).zip(self.x[1].chunks_exact(n)) {
            let sum = lanes::sum(dy, |d| d).neg();
            let dx = rows.next(n).zip(y, dy, |y, dy| y.exp().mul_add(sum, dy));
            rows.done(dx);
        }
        rows.finish()
    }
}

impl<'a, 'o, T: Float, K, const N: usize> LaneLoop<'a, 'o, T, K, N> {
    /// Row `i` of operand `k`.
    #[inline(always)]
    fn row(&self, k: usize, i: usize) -> &'a [T] {
        &self.x[k][i * self.pitch..][..self.out.width()]
    }
}

/// `e^(x − m)` of every lane, with the maxima m and the sums.
struct ShiftedExponentials<'o, T> {
    out: FullColumns<'o, T>,
    max: [T; WIDTH],
    sum: [T; WIDTH],
}

impl<'o, T: Float, K> LaneLoop<'_, 'o, T, K, 1> {
    #[inline(always)]
    fn exponentials(mut self) -> ShiftedExponentials<'o, T> {
        let (mut max, mut sums) = ([T::NEG_INFINITY; WIDTH], LaneSums::<T>::new());
        let n = self.out.rows();
        for i in 0..n {
            for (m, &x) in max.iter_mut().zip(self.row(0, i)) {
                *m = if x > *m { x } else { *m };
            }
        }
        for i in 0..n {
            let lanes = max.iter().zip(sums.next().iter_mut()).zip(self.row(0, i));
            let row = self.out.next().extend(lanes.map(|((&m, sum), &x)| {
                let e = x.sub(m).exp();
                *sum = sum.add(e);
                e
            }));
            self.out.done(row);
        }
        ShiftedExponentials { out: self.out.finish(), max, sum: sums.total() }
    }
}

impl<'o, T: Float> Loop for LaneLoop<'_, 'o, T, SoftmaxKernel, 1> {
    type Output = FullColumns<'o, T>;
    #[inline(always)]
    fn run(self) -> FullColumns<'o, T> {
        let (n, width) = (self.out.rows(), self.out.width());
        let ShiftedExponentials { mut out, mut sum, .. } = self.exponentials();
        for s in &mut sum[..width] {
            *s = s.recip();
        }
        for i in 0..n {
            for (y, &s) in out.row(i).iter_mut().zip(&sum) {
                *y = y.mul(s);
            }
        }
        out
    }
}

impl<'o, T: Float> Loop for LaneLoop<'_, 'o, T, LogSoftmaxKernel, 1> {
    type Output = FullColumns<'o, T>;
    #[inline(always)]
    fn run(self) -> FullColumns<'o, T> {
        let (n, width, pitch, [x]) = (self.out.rows(), self.out.width(), self.pitch, self.x);
        let ShiftedExponentials { mut out, max, sum: mut log } = self.exponentials();
        for s in &mut log[..width] {
            *s = s.ln();
        }
        for i in 0..n {
            let lanes = x[i * pitch..][..width].iter().zip(&max).zip(&log);
            for (y, ((&x, &m), &l)) in out.row(i).iter_mut().zip(lanes) {
                *y = x.sub(m).sub(l);
            }
        }
        out
    }
}

impl<'o, T: Float> Loop for LaneLoop<'_, 'o, T, SoftmaxVjpKernel, 2> {
    type Output = FullColumns<'o, T>;
    #[inline(always)]
    fn run(mut self) -> FullColumns<'o, T> {
        let mut sums = LaneSums::<T>::new();
        for i in 0..self.out.rows() {
            for ((m, &y), &dy) in sums.next().iter_mut().zip(self.row(0, i)).zip(self.row(1, i)) {
                *m = y.mul_add(dy, *m);
            }
        }
        let mean = sums.total();
        for i in 0..self.out.rows() {
            let lanes = self.row(0, i).iter().zip(self.row(1, i)).zip(&mean);
            let row = self.out.next().extend(lanes.map(|((&y, &dy), &m)| y.mul(dy.sub(m))));
            self.out.done(row);
        }
        self.out.finish()
    }
}

impl<'o, T: Float> Loop for LaneLoop<'_, 'o, T, LogSoftmaxVjpKernel, 2> {
    type Output = FullColumns<'o, T>;
    #[inline(always)]
    fn run(mut self) -> FullColumns<'o, T> {
        let mut sums = LaneSums::<T>::new();
        for i in 0..self.out.rows() {
            for (s, &dy) in sums.next().iter_mut().zip(self.row(1, i)) {
                *s = s.sub(dy);
            }
        }
        let sum = sums.total();
        for i in 0..self.out.rows() {
            let lanes = self.row(0, i).iter().zip(self.row(1, i)).zip(&sum);
            let row = self.out.next().extend(lanes.map(|((&y, &dy), &s)| y.exp().mul_add(s, dy)));
            self.out.done(row);
        }
        self.out.finish()
    }
}
