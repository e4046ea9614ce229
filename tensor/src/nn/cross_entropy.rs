//! Cross-entropy of logits and class indices.
//!
//! ```text
//! yᵢ = ln Σⱼ e^(xᵢⱼ) − xᵢₜ         x̄ᵢⱼ = ȳᵢ·(e^(xᵢⱼ − yᵢ − xᵢₜ) − δⱼₜ)        t = target of row i
//! ```

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::lanes;
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::loops::parallel;
use crate::output::{Fresh, Full, Output};
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
    let out = Output::<T>::new(op, targets.shape())?;
    let (x, t) = (x.as_slice().unwrap_or_default(), targets.as_slice().unwrap_or_default());
    let (step, parallel) = chunks(t.len(), c);
    let out = out.write(|out| {
        out.par_chunks(step, parallel, |chunk, out| {
            let rows = chunk * step..chunk * step + out.len();
            dispatch(Losses { x: &x[rows.start * c..rows.end * c], t: &t[rows], c, out })
        })
    });
    Ok(out.with_route(Route::native(Path::Fused)))
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
    let out = Output::<T>::new(op, x.shape())?;
    let (x, t) = (x.as_slice().unwrap_or_default(), targets.as_slice().unwrap_or_default());
    let (y, dy) = (y.as_slice().unwrap_or_default(), dy.as_slice().unwrap_or_default());
    let (step, parallel) = chunks(t.len(), c);
    let out = out.write(|out| {
        out.par_chunks(step * c, parallel, |chunk, out| {
            let rows = chunk * step..chunk * step + out.len() / c;
            let x = &x[rows.start * c..rows.end * c];
            let (t, y, dy) = (&t[rows.clone()], &y[rows.clone()], &dy[rows]);
            dispatch(LogitCotangents { x, t, y, dy, c, out })
        })
    });
    Ok(out.with_route(Route::native(Path::Fused)))
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

/// Rows of a chunk, and whether chunks are worth several threads.
fn chunks(rows: usize, c: usize) -> (usize, bool) {
    ((CHUNK / c.max(1)).max(1), parallel::worthwhile(rows.saturating_mul(c), 8))
}

struct Losses<'a, 'o, T> {
    x: &'a [T],
    t: &'a [i64],
    c: usize,
    out: Fresh<'o, T>,
}

impl<'o, T: Float> Loop for Losses<'_, 'o, T> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let mut rows = self.out.cursor();
        for (x, &t) in self.x.chunks_exact(self.c).zip(self.t) {
            let max = lanes::max(x);
            let log = lanes::sum(x, |x| x.sub(max).exp()).ln();
            rows.push(log.sub(x[t as usize].sub(max)));
        }
        rows.finish()
    }
}

struct LogitCotangents<'a, 'o, T> {
    x: &'a [T],
    t: &'a [i64],
    y: &'a [T],
    dy: &'a [T],
    c: usize,
    out: Fresh<'o, T>,
}

impl<'o, T: Float> Loop for LogitCotangents<'_, 'o, T> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let mut rows = self.out.cursor();
        for (i, x) in self.x.chunks_exact(self.c).enumerate() {
            let (t, dy) = (self.t[i] as usize, self.dy[i]);
            let shift = self.y[i].add(x[t]);
            let mut out = rows.next(self.c).map(x, |x| x.sub(shift).exp().mul(dy));
            let p = x[t].sub(shift).exp();
            out[t] = p.sub(T::ONE).mul(dy);
            rows.done(out);
        }
        rows.finish()
    }
}
