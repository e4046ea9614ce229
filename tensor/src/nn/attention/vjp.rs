//! Cotangents of attention.
//!
//! With S′ the scores before mask and bias, P = softmax(S) and Ō the cotangent of the result:
//!
//! ```text
//! V̄ = Pᵀ·Ō     P̄ = Ō·Vᵀ     S̄ = P∘(P̄ − rowsum(P∘P̄))     Q̄ = scale·S̄′·K     K̄ = scale·S̄′ᵀ·Q
//! ```
//!
//! where `S̄′ = S̄∘(1 − (S′/cap)²)` under a softcap and S̄ otherwise; hidden scores have P = 0. A
//! block of queries meets all keys at once: P is computed again, so nothing is kept of the forward
//! pass but its operands. Heads are independent, and so are the sums over queries of K̄ and V̄.

use t4a_algebra::Float;
use t4a_algebra::gemm::{MatMut, MatRef, Product};
use t4a_algebra::simd::{Loop, dispatch};

use super::{AttentionOptions, MIN_PARALLEL, Operands, Scale, adjust, block, multiply};
use crate::error::{Result, TensorError};
use crate::loops::parallel::SendPtr;
use crate::nn::{for_each_chunk, lanes};
use crate::output::Output;
use crate::route::{Path, Route};
use crate::tensor::Tensor;

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
    /// Of the bias, if there is one and it was asked for.
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
    let Operands { sizes: [b, h, queries, keys, d, e], query, key, value, mask, bias } =
        Operands::new(op, operands, mask, bias, options)?;
    if dy.shape() != [b, h, queries, e] {
        let required = "the shape of the result";
        return Err(TensorError::shapes(op, dy.shape(), &[b, h, queries, e], required));
    }
    let zeros = |rows: usize, cols: usize| Tensor::<T>::zeros(&[b, h, rows, cols]);
    let (mut dq, mut dk, mut dv) = (zeros(queries, d)?, zeros(keys, d)?, zeros(keys, e)?);
    let all = bias_shape.is_some();
    let mut ds = zeros(if all { queries } else { 0 }, keys)?;
    let pointer = |x: &mut Tensor<T>| -> Result<_> { Ok(SendPtr(x.as_mut_slice()?.as_mut_ptr())) };
    let [dq_ptr, dk_ptr, dv_ptr, ds_ptr] =
        [pointer(&mut dq)?, pointer(&mut dk)?, pointer(&mut dv)?, pointer(&mut ds)?];
    let empty = [queries, keys].contains(&0);
    let work = b.saturating_mul(h * queries).saturating_mul(keys).saturating_mul(3 * d + 2 * e + 8);
    let scale = options.scale.unwrap_or(1.0 / (d.max(1) as f64).sqrt());
    let causal = options.causal.then_some([queries, keys]);
    let rows = (SCORES / keys.max(1)).clamp(8, 64).min(queries.max(1));
    for_each_chunk(if empty { 0 } else { b * h }, work >= MIN_PARALLEL, &|head| {
        let mut scores = Output::<T>::new(op, &[rows * keys])?;
        let mut grads = Output::<T>::new(op, &[rows * keys])?;
        let mut capped =
            Output::<T>::new(op, &[if options.softcap.is_some() { rows * keys } else { 0 }])?;
        let at = [head / h, head % h, 0, 0];
        for first in (0..queries).step_by(rows) {
            let rows = rows.min(queries - first);
            let from = [at[0], at[1], first, 0];
            // SAFETY: blocks of queries and keys lie inside of their tensors; the results of a
            // head are its own, and so is the scratch.
            unsafe {
                let at_row = |ptr: SendPtr<T>, row: usize, cols: usize| ptr.get().add(row * cols);
                let (q, o) =
                    (block(&query, from, (rows, d), false), block(dy, from, (rows, e), false));
                let (k, v) =
                    (block(&key, at, (keys, d), false), block(&value, at, (keys, e), false));
                let row_major = |ptr: *mut T, (r, c): (usize, usize)| {
                    MatMut::from_raw_parts(ptr, (r, c), (c as isize, 1))
                };
                let tile = (rows, keys);
                multiply(
                    Product::new(q, k.transpose(), row_major(scores.as_mut_ptr(), tile)),
                    false,
                )?;
                let p = std::slice::from_raw_parts_mut(scores.as_mut_ptr(), rows * keys);
                dispatch(Scale { scores: p, scale, softcap: options.softcap });
                let capped = if options.softcap.is_some() {
                    let copy = std::slice::from_raw_parts_mut(capped.as_mut_ptr(), rows * keys);
                    copy.copy_from_slice(p);
                    copy
                } else {
                    &mut []
                };
                adjust(p, keys, from, (&mask, &bias), causal);
                multiply(
                    Product::new(o, v.transpose(), row_major(grads.as_mut_ptr(), tile)),
                    false,
                )?;
                let g = std::slice::from_raw_parts_mut(grads.as_mut_ptr(), rows * keys);
                dispatch(Softmax { p, g, keys });
                let scores = |x: &[T]| MatRef::from_raw_parts(x.as_ptr(), tile, (keys as isize, 1));
                let dv = row_major(at_row(dv_ptr, head * keys, e), (keys, e));
                multiply(Product::new(scores(p).transpose(), o, dv), true)?;
                if all {
                    let ds = at_row(ds_ptr, head * queries + first, keys);
                    std::ptr::copy_nonoverlapping(g.as_ptr(), ds, rows * keys);
                }
                dispatch(Uncap { g, capped, scale, cap: options.softcap });
                let dq = row_major(at_row(dq_ptr, head * queries + first, d), (rows, d));
                multiply(Product::new(scores(g), k, dq), false)?;
                let dk = row_major(at_row(dk_ptr, head * keys, d), (keys, d));
                multiply(Product::new(scores(g).transpose(), q, dk), true)?;
            }
        }
        Ok(())
    })?;
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
    let axes: Vec<usize> = (0..x.rank())
        .filter(|&axis| axis < lead || (shape[axis - lead] == 1 && x.shape()[axis] != 1))
        .collect();
    if axes.is_empty() {
        return Ok(x.clone());
    }
    crate::reduce::reduce(crate::kernels::fold::Sum, x, &axes)?.reshape(shape)
}

/// Row by row: scores become `P`, cotangents of P become `S̄ = P∘(P̄ − Σ P·P̄)`. A row that is hidden
/// altogether becomes 0.
struct Softmax<'a, T> {
    p: &'a mut [T],
    g: &'a mut [T],
    keys: usize,
}

impl<T: Float> Loop for Softmax<'_, T> {
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
            let mean = lanes::dot(p, g);
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
