//! Cross-entropy of logits and class indices.
//!
//! ```text
//! yᵢ = ln Σⱼ e^(xᵢⱼ) − xᵢₜ         x̄ᵢⱼ = ȳᵢ·(e^(xᵢⱼ − yᵢ − xᵢₜ) − δⱼₜ)        t = target of row i
//! ```

use std::mem::MaybeUninit;

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::lanes;
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Elements of a chunk of rows.
const CHUNK: usize = 1 << 14;

/// The loss of every row, `−ln softmax(x)[target]`.
///
/// Shapes: `logits: [N, C]`, `targets: [N] → [N]`. Cost: one read of the logits, one exponential
/// each.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::Index`] for a target that is no class;
/// `OutOfMemory`.
pub fn cross_entropy<T: Float>(logits: &Tensor<T>, targets: &Tensor<i64>) -> Result<Tensor<T>> {
    let op = "cross_entropy";
    let (x, targets, c) = checked(op, logits, targets)?;
    let mut out = Output::<T>::new(op, targets.shape())?;
    let dst = SendPtr(out.as_mut_ptr());
    let (x, t) = (x.as_slice().unwrap_or_default(), targets.as_slice().unwrap_or_default());
    for_each_rows(t.len(), c, &|from, rows| {
        let (x, t) = (&x[from * c..(from + rows) * c], &t[from..from + rows]);
        // SAFETY: rows of chunks are disjoint.
        let out = unsafe { std::slice::from_raw_parts_mut(dst.get().add(from).cast(), rows) };
        dispatch(Losses { x, t, c, out });
    });
    // SAFETY: every row was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(Path::Fused)))
}

/// Cotangent of the logits from the losses `y` and their cotangents.
///
/// Cost: one read and one write of the logits, one exponential each.
///
/// # Errors
/// As [`cross_entropy`].
pub fn cross_entropy_vjp<T: Float>(
    logits: &Tensor<T>,
    targets: &Tensor<i64>,
    y: &Tensor<T>,
    dy: &Tensor<T>,
) -> Result<Tensor<T>> {
    let op = "cross_entropy_vjp";
    let (x, targets, c) = checked(op, logits, targets)?;
    for y in [y, dy] {
        if y.shape() != targets.shape() {
            let required = "one loss per target";
            return Err(TensorError::shapes(op, y.shape(), targets.shape(), required));
        }
    }
    let (y, dy) = (row_major(y)?, row_major(dy)?);
    let mut out = Output::<T>::new(op, x.shape())?;
    let dst = SendPtr(out.as_mut_ptr());
    let (x, t) = (x.as_slice().unwrap_or_default(), targets.as_slice().unwrap_or_default());
    let (y, dy) = (y.as_slice().unwrap_or_default(), dy.as_slice().unwrap_or_default());
    for_each_rows(t.len(), c, &|from, rows| {
        let (x, rows) = (&x[from * c..(from + rows) * c], from..from + rows);
        // SAFETY: rows of chunks are disjoint.
        let out =
            unsafe { std::slice::from_raw_parts_mut(dst.get().add(from * c).cast(), x.len()) };
        dispatch(Cotangents { x, t: &t[rows.clone()], y: &y[rows.clone()], dy: &dy[rows], c, out });
    });
    // SAFETY: every row was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(Path::Fused)))
}

/// Row-major operands and the number of classes, at least 1 if there are rows.
fn checked<T: Float>(
    op: &'static str,
    logits: &Tensor<T>,
    targets: &Tensor<i64>,
) -> Result<(Tensor<T>, Tensor<i64>, usize)> {
    let (&[n, c], &[m]) = (logits.shape(), targets.shape()) else {
        return Err(TensorError::shapes(op, logits.shape(), targets.shape(), "[N, C] and [N]"));
    };
    if n != m {
        return Err(TensorError::shapes(op, logits.shape(), targets.shape(), "[N, C] and [N]"));
    }
    let (x, targets) = (row_major(logits)?, row_major(targets)?);
    let outside = |&&t: &&i64| t < 0 || t as u64 >= c as u64;
    match targets.as_slice().unwrap_or_default().iter().find(outside) {
        Some(&index) => Err(TensorError::Index { op, index, axis: 1, size: c }),
        None => Ok((x, targets, c)),
    }
}

fn for_each_rows(rows: usize, c: usize, body: &(dyn Fn(usize, usize) + Sync)) {
    let step = (CHUNK / c.max(1)).max(1);
    let parallel = parallel::worthwhile(rows.saturating_mul(c), 8);
    parallel::for_each(rows.div_ceil(step), parallel, &|chunk| {
        body(chunk * step, step.min(rows - chunk * step));
    });
}

struct Losses<'a, T> {
    x: &'a [T],
    t: &'a [i64],
    c: usize,
    out: &'a mut [MaybeUninit<T>],
}

impl<T: Float> Loop for Losses<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for ((x, &t), out) in self.x.chunks_exact(self.c).zip(self.t).zip(self.out) {
            let max = lanes::max(x);
            let log = lanes::sum(x, |x| x.sub(max).exp()).ln();
            out.write(log.sub(x[t as usize].sub(max)));
        }
    }
}

struct Cotangents<'a, T> {
    x: &'a [T],
    t: &'a [i64],
    y: &'a [T],
    dy: &'a [T],
    c: usize,
    out: &'a mut [MaybeUninit<T>],
}

impl<T: Float> Loop for Cotangents<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let rows = self.x.chunks_exact(self.c).zip(self.out.chunks_exact_mut(self.c));
        for (i, (x, out)) in rows.enumerate() {
            let (t, dy) = (self.t[i] as usize, self.dy[i]);
            let shift = self.y[i].add(x[t]);
            for (out, &x) in out.iter_mut().zip(x) {
                out.write(x.sub(shift).exp().mul(dy));
            }
            let p = x[t].sub(shift).exp();
            out[t].write(p.sub(T::ONE).mul(dy));
        }
    }
}
