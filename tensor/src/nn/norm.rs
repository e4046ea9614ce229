//! Layer norm and root-mean-square norm along the last axis, with their vector–Jacobian products.
//!
//! With x̂ᵢ = (xᵢ − μ)·r and r = 1/√(σ² + ε), where μ and σ² are the mean and the biased variance
//! of a row (Ba, Kiros, Hinton 2016); the root-mean-square norm has μ = 0 (Zhang, Sennrich 2019).
//! For y = γ·x̂ + β the cotangents are, with g = γ·ȳ and means over the row,
//!
//! ```text
//! x̄ = r·(g − mean(g) − x̂·mean(g·x̂))      γ̄ = Σ ȳ·x̂      β̄ = Σ ȳ       (sums over rows)
//! ```
//!
//! where `mean(g)` is absent for the root-mean-square norm.

use std::mem::MaybeUninit;

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Real};

use super::lanes;
use super::softmax::same_shape;
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::loops::parallel::{self, SendPtr};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Elements of a chunk of rows.
const CHUNK: usize = 1 << 14;
/// Most partial sums of γ̄ and β̄.
const PARTS: usize = 16;

/// Cotangents of a norm.
pub struct NormVjp<T> {
    /// Of `x`.
    pub x: Tensor<T>,
    /// Of γ, summed over rows.
    pub gamma: Tensor<T>,
    /// Of β, summed over rows: the sum of the cotangents.
    pub beta: Tensor<T>,
}

/// `y = γ·(x − μ)/√(σ² + ε) + β`, mean and biased variance along the last axis.
///
/// Shapes: `x: […, d]`, `gamma`, `beta`: `[d]`. Cost: one read and one write of memory.
///
/// # Errors
/// [`TensorError::ShapeMismatch`], [`TensorError::Shape`] for rank 0; `OutOfMemory`.
pub fn layer_norm<T: Float>(
    x: &Tensor<T>,
    gamma: &Tensor<T>,
    beta: Option<&Tensor<T>>,
    epsilon: f64,
) -> Result<Tensor<T>> {
    forward::<T, true>("layer_norm", x, gamma, beta, epsilon)
}

/// `y = γ·x/√(mean(x²) + ε)` along the last axis. Shapes, cost and errors: as [`layer_norm`].
pub fn rms_norm<T: Float>(x: &Tensor<T>, gamma: &Tensor<T>, epsilon: f64) -> Result<Tensor<T>> {
    forward::<T, false>("rms_norm", x, gamma, None, epsilon)
}

/// Cotangents of [`layer_norm`]. Nothing of the forward pass is kept but its input.
///
/// # Errors
/// As [`layer_norm`].
pub fn layer_norm_vjp<T: Float>(
    x: &Tensor<T>,
    gamma: &Tensor<T>,
    epsilon: f64,
    dy: &Tensor<T>,
) -> Result<NormVjp<T>> {
    backward::<T, true>("layer_norm_vjp", x, gamma, epsilon, dy)
}

/// Cotangents of [`rms_norm`].
///
/// # Errors
/// As [`layer_norm`].
pub fn rms_norm_vjp<T: Float>(
    x: &Tensor<T>,
    gamma: &Tensor<T>,
    epsilon: f64,
    dy: &Tensor<T>,
) -> Result<NormVjp<T>> {
    backward::<T, false>("rms_norm_vjp", x, gamma, epsilon, dy)
}

fn checked<T: Float>(op: &'static str, x: &Tensor<T>, weights: &[&Tensor<T>]) -> Result<usize> {
    let Some(&d) = x.shape().last() else {
        return Err(TensorError::shape(op, x.shape(), "at least one axis"));
    };
    for w in weights {
        if w.shape() != [d] {
            let required = "one weight per element of the last axis";
            return Err(TensorError::shapes(op, x.shape(), w.shape(), required));
        }
    }
    Ok(d)
}

/// # Safety
/// `ptr` is readable for `len` elements from `from` on while the slice lives.
unsafe fn part<'a, T>(ptr: SendPtr<T>, from: usize, len: usize) -> &'a [T] {
    // SAFETY: the promise.
    unsafe { std::slice::from_raw_parts(ptr.get().add(from).cast_const(), len) }
}

fn forward<T: Float, const CENTER: bool>(
    op: &'static str,
    x: &Tensor<T>,
    gamma: &Tensor<T>,
    beta: Option<&Tensor<T>>,
    epsilon: f64,
) -> Result<Tensor<T>> {
    let d = match beta {
        Some(beta) => checked(op, x, &[gamma, beta])?,
        None => checked(op, x, &[gamma])?,
    };
    let (x, gamma) = (row_major(x)?, row_major(gamma)?);
    let beta = beta.map(row_major).transpose()?;
    let mut out = Output::<T>::new(op, x.shape())?;
    let numel = out.layout().numel();
    if numel > 0 {
        let gamma = gamma.as_slice().unwrap_or_default();
        let beta = beta.as_ref().and_then(Tensor::as_slice);
        let epsilon = T::from_f64(epsilon);
        let (src, dst) = (SendPtr(x.as_ptr().cast_mut()), SendPtr(out.as_mut_ptr()));
        let step = d * (CHUNK / d).max(1);
        let parallel = parallel::worthwhile(numel, 4);
        parallel::for_each(numel.div_ceil(step), parallel, &|chunk| {
            let from = chunk * step;
            let len = step.min(numel - from);
            // SAFETY: inside of both, and chunks are disjoint.
            let (x, out) = unsafe {
                let out = dst.get().add(from).cast();
                (part(src, from, len), std::slice::from_raw_parts_mut(out, len))
            };
            dispatch(Forward::<T, CENTER> { x, gamma, beta, epsilon, out });
        });
    }
    // SAFETY: every element was written.
    Ok(unsafe { out.assume_init() }.with_route(Route::native(Path::Fused)))
}

/// μ and r of a row; μ = 0 unless `CENTER`.
#[inline(always)]
fn moments<T: Float, const CENTER: bool>(x: &[T], epsilon: T) -> (T, T) {
    let scale = T::from_f64(1.0 / x.len() as f64);
    let mut mean = T::ZERO;
    if CENTER {
        mean = lanes::sum(x, |x| x).mul(scale);
        // The mean of the deviations is the rounding error of the mean. Without it the elements of
        // a constant row would not become 0 but that error over √ε.
        mean = mean.add(lanes::sum(x, |x| x.sub(mean)).mul(scale));
    }
    let square = |x: T| {
        let c = x.sub(mean);
        c.mul(c)
    };
    let variance = lanes::sum(x, square).mul(scale);
    (mean, Real::div(T::ONE, variance.add(epsilon).sqrt()))
}

struct Forward<'a, T, const CENTER: bool> {
    x: &'a [T],
    gamma: &'a [T],
    beta: Option<&'a [T]>,
    epsilon: T,
    out: &'a mut [MaybeUninit<T>],
}

impl<T: Float, const CENTER: bool> Loop for Forward<'_, T, CENTER> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let d = self.gamma.len();
        for (x, out) in self.x.chunks_exact(d).zip(self.out.chunks_exact_mut(d)) {
            let (mean, r) = moments::<T, CENTER>(x, self.epsilon);
            let rows = out.iter_mut().zip(x).zip(self.gamma);
            if let Some(beta) = self.beta {
                for (((out, &x), &g), &b) in rows.zip(beta) {
                    out.write(x.sub(mean).mul(r).mul_add(g, b));
                }
            } else {
                for ((out, &x), &g) in rows {
                    out.write(x.sub(mean).mul(r).mul(g));
                }
            }
        }
    }
}

fn backward<T: Float, const CENTER: bool>(
    op: &'static str,
    x: &Tensor<T>,
    gamma: &Tensor<T>,
    epsilon: f64,
    dy: &Tensor<T>,
) -> Result<NormVjp<T>> {
    let d = checked(op, x, &[gamma])?;
    same_shape(op, x, dy)?;
    let (x, dy, gamma) = (row_major(x)?, row_major(dy)?, row_major(gamma)?);
    let mut out = Output::<T>::new(op, x.shape())?;
    let numel = out.layout().numel();
    let rows = numel.checked_div(d).unwrap_or(0);
    // As many partial sums as there are chunks, and few enough to be small next to `x`.
    let step = rows.div_ceil(PARTS).max(CHUNK.div_ceil(d.max(1)));
    let parts = rows.div_ceil(step.max(1));
    let mut sums = Tensor::<T>::zeros(&[parts.max(1), 2, d])?;
    let partial = SendPtr(sums.as_mut_slice()?.as_mut_ptr());
    if numel > 0 {
        let gamma = gamma.as_slice().unwrap_or_default();
        let epsilon = T::from_f64(epsilon);
        let (px, pdy) = (SendPtr(x.as_ptr().cast_mut()), SendPtr(dy.as_ptr().cast_mut()));
        let dst = SendPtr(out.as_mut_ptr());
        parallel::for_each(parts, parallel::worthwhile(numel, 8), &|chunk| {
            let from = chunk * step * d;
            let len = (step * d).min(numel - from);
            // SAFETY: inside of all, and chunks are disjoint.
            unsafe {
                let sums = std::slice::from_raw_parts_mut(partial.get().add(chunk * 2 * d), 2 * d);
                let out = std::slice::from_raw_parts_mut(dst.get().add(from).cast(), len);
                let (x, dy) = (part(px, from, len), part(pdy, from, len));
                dispatch(Backward::<T, CENTER> { x, dy, gamma, epsilon, out, sums });
            }
        });
    }
    let sums = crate::reduce::reduce(crate::kernels::fold::Sum, &sums, &[0])?;
    let pick = |i| sums.select(0, 0)?.select(0, i);
    // SAFETY: every element was written.
    let x = unsafe { out.assume_init() }.with_route(Route::native(Path::Fused));
    Ok(NormVjp { x, gamma: pick(0)?, beta: pick(1)? })
}

struct Backward<'a, T, const CENTER: bool> {
    x: &'a [T],
    dy: &'a [T],
    gamma: &'a [T],
    epsilon: T,
    out: &'a mut [MaybeUninit<T>],
    /// γ̄ and β̄ of these rows.
    sums: &'a mut [T],
}

impl<T: Float, const CENTER: bool> Loop for Backward<'_, T, CENTER> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let d = self.gamma.len();
        let scale = T::from_f64(1.0 / d as f64);
        let (dgamma, dbeta) = self.sums.split_at_mut(d);
        let rows = self.x.chunks_exact(d).zip(self.dy.chunks_exact(d));
        for ((x, dy), out) in rows.zip(self.out.chunks_exact_mut(d)) {
            let (mean, r) = moments::<T, CENTER>(x, self.epsilon);
            for ((out, &dy), &g) in out.iter_mut().zip(dy).zip(self.gamma) {
                out.write(dy.mul(g));
            }
            // SAFETY: just written.
            let out = unsafe { crate::loops::written(out) };
            let g_mean = if CENTER { lanes::sum(out, |g| g).mul(scale) } else { T::ZERO };
            // Σ g·x̂ = r·(Σ g·x − μ·Σ g) would cancel; centring first does not.
            let g_hat = centred_dot(out, x, mean).mul(r).mul(scale);
            let sums = dgamma.iter_mut().zip(dbeta.iter_mut());
            for (((out, &x), &dy), (dgamma, dbeta)) in out.iter_mut().zip(x).zip(dy).zip(sums) {
                let hat = x.sub(mean).mul(r);
                *out = out.sub(g_mean).sub(hat.mul(g_hat)).mul(r);
                *dgamma = dy.mul_add(hat, *dgamma);
                *dbeta = dbeta.add(dy);
            }
        }
    }
}

/// `Σ gᵢ·(xᵢ − μ)`.
#[inline(always)]
fn centred_dot<T: Float>(g: &[T], x: &[T], mean: T) -> T {
    let mut lanes = [T::ZERO; lanes::LANES];
    let (gs, g_tail) = g.as_chunks::<{ lanes::LANES }>();
    let (xs, x_tail) = x.as_chunks::<{ lanes::LANES }>();
    for (g, x) in gs.iter().zip(xs) {
        for ((lane, &g), &x) in lanes.iter_mut().zip(g).zip(x) {
            *lane = g.mul_add(x.sub(mean), *lane);
        }
    }
    for ((lane, &g), &x) in lanes.iter_mut().zip(g_tail).zip(x_tail) {
        *lane = g.mul_add(x.sub(mean), *lane);
    }
    lanes::sum(&lanes, |x| x)
}
