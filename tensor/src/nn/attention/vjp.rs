//! Cotangents of attention.
//!
//! With S′ the scores before mask and bias, P = softmax(S) and Ō the cotangent of the result:
//!
//! ```text
//! V̄ = Pᵀ·Ō     P̄ = Ō·Vᵀ     S̄ = P∘(P̄ − rowsum(P∘P̄))     Q̄ = scale·S̄′·K     K̄ = scale·S̄′ᵀ·Q
//! ```
//!
//! where `S̄′ = S̄∘(1 − (S′/cap)²)` with a soft cap and S̄ otherwise; masked scores have P = 0. A block of queries
//! processes all keys at once: P is recomputed, so the only residuals are the operands. Heads are independent, and so
//! are the sums over queries of K̄ and V̄.

use t4a_algebra::Float;
use t4a_algebra::simd::{Loop, dispatch};

use super::{AttentionOperands, AttentionOptions, Scale, adjust, matrix};
use crate::error::{Result, TensorError};
use crate::layout::Dims;
use crate::loops::parallel;
use crate::nn::lanes;
use crate::output::{Fresh, Workspace, add_product, parts_mut, share};
use crate::route::{Path, Route};
use crate::tensor::Tensor;
use crate::view::View;

/// Scores of a block of queries: a quarter of a second-level cache in `f32`.
const SCORES: usize = 1 << 15;

/// Cotangents of the operands of attention, in their shapes.
pub struct AttentionVjp<T> {
    /// Of the queries.
    pub query: Tensor<T>,
    /// Of the keys.
    pub key: Tensor<T>,
    /// Of the values.
    pub value: Tensor<T>,
    /// Cotangent of the bias, if requested.
    pub bias: Option<Tensor<T>>,
}

/// Cotangents of [`attention`](super::attention) from that of its result, `dy: [B, H, L, e]`; that
/// of the bias `with_bias` only.
///
/// Cost: five products of the size of the scores, B·H·L·S exponentials; scratch of a block of
/// scores per thread. The cotangent of the bias takes memory for all scores.
///
/// # Errors
/// As [`attention`](super::attention).
pub fn attention_vjp<T: Float>(
    operands: [&Tensor<T>; 3],
    mask: Option<&Tensor<bool>>,
    bias: Option<&Tensor<T>>,
    options: &AttentionOptions,
    dy: &Tensor<T>,
    with_bias: bool,
) -> Result<AttentionVjp<T>> {
    let op = "attention_vjp";
    let shapes = operands.map(Tensor::shape);
    let bias_shape = bias.map(Tensor::shape).filter(|_| with_bias);
    let AttentionOperands { sizes: [b, h, queries, keys, d, e], query, key, value, mask, bias } =
        AttentionOperands::new(op, operands, mask, bias, options)?;
    if dy.shape() != [b, h, queries, e] {
        let required = "the shape of the result";
        return Err(TensorError::shapes(op, dy.shape(), &[b, h, queries, e], required));
    }
    let zeros = |rows: usize, cols: usize| Tensor::<T>::zeros(&[b, h, rows, cols]);
    let (mut dq, mut dk, mut dv) = (zeros(queries, d)?, zeros(keys, d)?, zeros(keys, e)?);
    let all = bias_shape.is_some();
    let mut ds = zeros(if all { queries } else { 0 }, keys)?;
    let empty = [queries, keys].contains(&0);
    let work = b.saturating_mul(h * queries).saturating_mul(keys).saturating_mul(3 * d + 2 * e + 8);
    let scale = options.scale.unwrap_or(1.0 / (d.max(1) as f64).sqrt());
    let causal = options.causal.then_some([queries, keys]);
    let rows = (SCORES / keys.max(1)).clamp(8, 64).min(queries.max(1));
    let one_head = |head: usize, [dq, dk, dv, ds]: [&mut [T]; 4]| -> Result<()> {
        let mut scores = Workspace::new(rows * keys)?;
        let mut grads = Workspace::new(rows * keys)?;
        let mut capped = Workspace::new(if options.softcap.is_some() { rows * keys } else { 0 })?;
        let at = [head / h, head % h, 0, 0];
        let k = matrix(op, &key, at, (keys, d))?;
        let v = matrix(op, &value, at, (keys, e))?;
        for first in (0..queries).step_by(rows) {
            let rows = rows.min(queries - first);
            let from = [at[0], at[1], first, 0];
            let q = matrix(op, &query, from, (rows, d))?;
            let o = matrix(op, dy, from, (rows, e))?;
            let p = &mut scores.fresh(rows * keys).product(op, q, k.transpose())?;
            dispatch(Scale { scores: p, scale, softcap: options.softcap });
            let capped = match options.softcap {
                Some(_) => capped.fresh(rows * keys).copy_from(p),
                None => capped.fresh(0).fill(T::ZERO),
            };
            adjust(p, keys, from, (&mask, &bias), causal);
            let g = &mut grads.fresh(rows * keys).product(op, o, v.transpose())?;
            dispatch(SoftmaxCotangent { p, g, keys });
            let tile = |x| View::of(x).matrix(op, 0, (rows, keys), (keys as isize, 1));
            add_product(op, dv, tile(p)?.transpose(), o)?;
            if all {
                ds[first * keys..][..rows * keys].copy_from_slice(g);
            }
            dispatch(Uncap { g, capped: &capped, scale, cap: options.softcap });
            Fresh::over(&mut dq[first * d..][..rows * d]).product(op, tile(g)?, k)?;
            add_product(op, dk, tile(g)?.transpose(), q)?;
        }
        Ok(())
    };
    if !empty {
        let [dq, dk, dv, ds] = [&mut dq, &mut dk, &mut dv, &mut ds].map(Tensor::as_mut_slice);
        let parts = [dq?, dk?, dv?, ds?].map(|grads| parts_mut(grads, b * h));
        share(parts, 1, parallel::worthwhile_narrow_steps(work), one_head)?;
    }
    let route = Route::native(Path::Fused);
    let reduced =
        |x: Tensor<T>, shape: &[usize]| -> Result<_> { Ok(sum_to(&x, shape)?.with_route(route)) };
    Ok(AttentionVjp {
        query: reduced(dq, shapes[0])?,
        key: reduced(dk, shapes[1])?,
        value: reduced(dv, shapes[2])?,
        bias: bias_shape.map(|shape| reduced(ds, shape)).transpose()?,
    })
}

/// The sum over the axes along which `shape` was broadcast.
fn sum_to<T: Float>(x: &Tensor<T>, shape: &[usize]) -> Result<Tensor<T>> {
    let lead = x.rank() - shape.len();
    let axes: Dims = (0..x.rank())
        .filter(|&axis| axis < lead || (shape[axis - lead] == 1 && x.shape()[axis] != 1))
        .collect();
    if axes.is_empty() {
        return Ok(x.clone());
    }
    crate::reduce::reduce(crate::kernels::fold::Sum, x, &axes)?.reshape(shape)
}

/// Row by row: scores become `P`, cotangents of P become `S̄ = P∘(P̄ − Σ P·P̄)`. A row that is hidden
/// altogether becomes 0.
struct SoftmaxCotangent<'a, T> {
    p: &'a mut [T],
    g: &'a mut [T],
    keys: usize,
}

impl<T: Float> Loop for SoftmaxCotangent<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (p, g) in self.p.chunks_exact_mut(self.keys).zip(self.g.chunks_exact_mut(self.keys)) {
            let max = lanes::max(p);
            let shift = if max == T::NEG_INFINITY { T::ZERO } else { max };
            for p in p.iter_mut() {
                *p = p.sub(shift).exp();
            }
            let sum = lanes::sum(p, |p| p);
            let scale = if sum == T::ZERO { T::ZERO } else { sum.recip() };
            for p in p.iter_mut() {
                *p = p.mul(scale);
            }
            let mean = lanes::dot(p, g, |g| g);
            for (g, &p) in g.iter_mut().zip(&*p) {
                *g = p.mul(g.sub(mean));
            }
        }
    }
}

/// `S̄ ← scale·S̄∘(1 − (S′/cap)²)`.
struct Uncap<'a, T> {
    g: &'a mut [T],
    capped: &'a [T],
    scale: f64,
    cap: Option<f64>,
}

impl<T: Float> Loop for Uncap<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let scale = T::from_f64(self.scale);
        match self.cap {
            None => self.g.iter_mut().for_each(|g| *g = g.mul(scale)),
            Some(cap) => {
                let inverse = T::from_f64(1.0 / cap);
                for (g, &s) in self.g.iter_mut().zip(self.capped) {
                    let t = s.mul(inverse);
                    *g = g.mul(scale).mul(T::ONE.sub(t.mul(t)));
                }
            }
        }
    }
}
