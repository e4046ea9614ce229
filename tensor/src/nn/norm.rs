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

use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Real};

use super::lanes;
use super::softmax::same_shape;
use crate::copy::row_major;
use crate::error::{Result, TensorError};
use crate::loops::{BALANCED, parallel};
use crate::output::{Fresh, Full, Output, parts_mut, share};
use crate::route::{Path, Route};
use crate::tensor::Tensor;

/// Elements of a chunk of rows.
const CHUNK: usize = 1 << 14;
/// Number of rows whose cotangents of γ and β are added in order; these partial sums are combined as in any sum.
const RUN: usize = 64;

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

/// Cotangents of [`layer_norm`]. The only residual is the input.
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
    let out = Output::<T>::new(op, x.shape())?;
    let (xs, gamma) = (x.as_slice().unwrap_or_default(), gamma.as_slice().unwrap_or_default());
    let beta = beta.as_ref().and_then(Tensor::as_slice);
    let epsilon = T::from_f64(epsilon);
    let step = d * (CHUNK / d.max(1)).max(1);
    let parallel = parallel::worthwhile(xs.len(), 4);
    let out = out.write(|out| {
        out.par_chunks(step, parallel, |chunk, out| {
            let x = &xs[chunk * step..][..out.len()];
            dispatch(NormForward::<T, CENTER> { x, gamma, beta, epsilon, out })
        })
    });
    Ok(out.with_route(Route::native(Path::Fused)))
}

/// μ and r of a row; μ = 0 unless `CENTER`.
///
/// With m, the mean as rounded, and cᵢ = xᵢ − m, the mean of cᵢ is the rounding error of m: μ = m + mean(c) and
/// σ² = mean(c²) − mean(c)², which does not cancel because |mean(c)| is a rounding error. Without the correction the
/// elements of a constant row would not become 0 but that error over √ε.
#[inline(always)]
fn moments<T: Float, const CENTER: bool>(x: &[T], epsilon: T) -> (T, T) {
    let scale = T::from_f64(1.0 / x.len() as f64);
    let (mean, variance) = if CENTER {
        let mean = lanes::sum(x, |x| x).mul(scale);
        let (c, squares) = lanes::sum_and_squares(x, |x| x.sub(mean));
        let error = c.mul(scale);
        let variance = squares.mul(scale).sub(error.mul(error));
        (mean.add(error), if variance < T::ZERO { T::ZERO } else { variance })
    } else {
        (T::ZERO, lanes::sum(x, |x| x.mul(x)).mul(scale))
    };
    (mean, Real::div(T::ONE, variance.add(epsilon).sqrt()))
}

struct NormForward<'a, 'o, T, const CENTER: bool> {
    x: &'a [T],
    gamma: &'a [T],
    beta: Option<&'a [T]>,
    epsilon: T,
    out: Fresh<'o, T>,
}

impl<'o, T: Float, const CENTER: bool> Loop for NormForward<'_, 'o, T, CENTER> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let d = self.gamma.len();
        let mut rows = self.out.cursor();
        for x in self.x.chunks_exact(d) {
            let (mean, r) = moments::<T, CENTER>(x, self.epsilon);
            let out = rows.next(d);
            let pairs = x.iter().zip(self.gamma);
            rows.done(match self.beta {
                Some(beta) => out
                    .extend(pairs.zip(beta).map(|((&x, &g), &b)| x.sub(mean).mul(r).mul_add(g, b))),
                None => out.extend(pairs.map(|(&x, &g)| x.sub(mean).mul(r).mul(g))),
            });
        }
        rows.finish()
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
    let out = Output::<T>::new(op, x.shape())?;
    let numel = out.numel();
    let rows = numel.checked_div(d).unwrap_or(0);
    // One partial sum per chunk, few enough to be small relative to `x`.
    let step = rows.div_ceil(BALANCED).max(CHUNK.div_ceil(d.max(1)));
    let parts = rows.div_ceil(step.max(1));
    let runs = step.div_ceil(RUN).max(1);
    let mut sums = Tensor::<T>::zeros(&[parts.max(1) * runs, 2, d])?;
    let partial = &mut sums.as_mut_slice()?[..parts * runs * 2 * d];
    let (xs, dys) = (x.as_slice().unwrap_or_default(), dy.as_slice().unwrap_or_default());
    let gamma = gamma.as_slice().unwrap_or_default();
    let epsilon = T::from_f64(epsilon);
    let dx = out.try_write(|out| {
        let parts = (out.parts(step * d), parts_mut(partial, parts));
        let (dx, ()) = share(parts, 1, parallel::worthwhile(numel, 8), |chunk, (out, sums)| {
            let range = chunk * step * d..chunk * step * d + out.len();
            let (x, dy) = (&xs[range.clone()], &dys[range]);
            Ok((dispatch(NormBackward::<T, CENTER> { x, dy, gamma, epsilon, out, sums }), ()))
        })?;
        Ok(dx)
    })?;
    let sums = crate::reduce::reduce(crate::kernels::fold::Sum, &sums, &[0])?;
    let pick = |i| sums.select(0, 0)?.select(0, i);
    let x = dx.with_route(Route::native(Path::Fused));
    Ok(NormVjp { x, gamma: pick(0)?, beta: pick(1)? })
}

struct NormBackward<'a, 'o, T, const CENTER: bool> {
    x: &'a [T],
    dy: &'a [T],
    gamma: &'a [T],
    epsilon: T,
    out: Fresh<'o, T>,
    /// γ̄ and β̄ of every run of these rows.
    sums: &'a mut [T],
}

impl<'o, T: Float, const CENTER: bool> Loop for NormBackward<'_, 'o, T, CENTER> {
    type Output = Full<'o, T>;
    #[inline(always)]
    fn run(self) -> Full<'o, T> {
        let d = self.gamma.len();
        let scale = T::from_f64(1.0 / d as f64);
        let mut sums = self.sums;
        let mut rows = self.out.cursor();
        for (i, (x, dy)) in self.x.chunks_exact(d).zip(self.dy.chunks_exact(d)).enumerate() {
            if i > 0 && i % RUN == 0 {
                sums = &mut sums[2 * d..];
            }
            let (dgamma, dbeta) = sums[..2 * d].split_at_mut(d);
            let (mean, r) = moments::<T, CENTER>(x, self.epsilon);
            let mut out = rows.next(d).zip(dy, self.gamma, |dy, g| dy.mul(g));
            let g_mean = if CENTER { lanes::sum(&out, |g| g).mul(scale) } else { T::ZERO };
            // Σ g·x̂ = r·(Σ g·x − μ·Σ g) would cancel; centring first does not.
            let g_hat = lanes::dot(&out, x, |x| x.sub(mean)).mul(r).mul(scale);
            let sums = dgamma.iter_mut().zip(dbeta.iter_mut());
            for (((out, &x), &dy), (dgamma, dbeta)) in out.iter_mut().zip(x).zip(dy).zip(sums) {
                let hat = x.sub(mean).mul(r);
                *out = out.sub(g_mean).sub(hat.mul(g_hat)).mul(r);
                *dgamma = dy.mul_add(hat, *dgamma);
                *dbeta = dbeta.add(dy);
            }
            rows.done(out);
        }
        rows.finish()
    }
}
