//! Scaled dot-product attention, tiled over scores.
//!
//! ```text
//! S = cap·tanh(scale·Q·Kᵀ / cap), −∞ where masked, + bias       O = softmax(S)·V
//! ```
//!
//! The forward pass is here, the cotangents are in `vjp`. A block of queries processes the keys tile by tile with a
//! running maximum and sum per query (Milakov, Gimelshein 2018; Dao et al. 2022), so only one tile of scores exists at
//! a time. The result for a query whose keys are all masked is zero.

use t4a_algebra::gemm::MatRef;
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Real};

use super::lanes;
use crate::error::{Result, TensorError};
use crate::loops::parallel;
use crate::output::{Output, Workspace, add_product, share};
use crate::route::{Path, Route};
use crate::tensor::Tensor;
use crate::view::View;

mod vjp;

pub use vjp::{AttentionVjp, attention_vjp};

/// Queries of a block and keys of a tile: scores fill half of a second-level cache in `f64`.
const QUERIES: usize = 64;
const KEYS: usize = 512;

/// Options for the scores of [`attention`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AttentionOptions {
    /// Factor of the scores; `1/√d` if absent.
    pub scale: Option<f64>,
    /// Bound `cap > 0` of the scores, `cap·tanh(s/cap)`.
    pub softcap: Option<f64>,
    /// Mask for query i all keys after `i + keys − queries`.
    pub causal: bool,
}

/// `softmax(S)·V` over the keys.
///
/// Shapes: `query: [B, H, L, d]`, `key: [B, H, S, d]`, `value: [B, H, S, e]`, `mask` (true hides)
/// and `bias` broadcast to `[B, H, L, S]`; the result is `[B, H, L, e]`. B and H broadcast.
///
/// Cost: 2·B·H·L·S·(d + e) operations and B·H·L·S exponentials; scratch of one tile per thread.
///
/// # Errors
/// [`TensorError::Shape`], [`TensorError::ShapeMismatch`], [`TensorError::Value`] for a softcap
/// that is not positive; `OutOfMemory`.
pub fn attention<T: Float>(
    query: &Tensor<T>,
    key: &Tensor<T>,
    value: &Tensor<T>,
    mask: Option<&Tensor<bool>>,
    bias: Option<&Tensor<T>>,
    options: &AttentionOptions,
) -> Result<Tensor<T>> {
    let op = "attention";
    let AttentionOperands { sizes: [b, h, queries, keys, d, e], query, key, value, mask, bias } =
        AttentionOperands::new(op, [query, key, value], mask, bias, options)?;
    let out = Output::<T>::new(op, &[b, h, queries, e])?;
    let blocks = queries.div_ceil(QUERIES);
    let work = (b * h * queries).saturating_mul(keys).saturating_mul(d + e + 8);
    let scale = options.scale.unwrap_or(1.0 / (d.max(1) as f64).sqrt());
    let causal = options.causal.then_some([queries, keys]);
    let tile = KEYS.min(keys);
    let block_of_queries = |task: usize, out: &mut [T]| -> Result<()> {
        let (head, first) = (task / blocks, task % blocks * QUERIES);
        let rows = QUERIES.min(queries - first);
        let at = [head / h, head % h, first, 0];
        let mut scores = Workspace::new(rows * tile)?;
        let (mut max, mut sum) = ([T::NEG_INFINITY; QUERIES], [T::ZERO; QUERIES]);
        let q = matrix(op, &query, at, (rows, d))?;
        for start in (0..keys).step_by(KEYS) {
            let cols = KEYS.min(keys - start);
            if options.causal && start + queries >= first + rows + keys {
                break;
            }
            let begin = [at[0], at[1], start, 0];
            let k = matrix(op, &key, begin, (cols, d))?;
            let v = matrix(op, &value, begin, (cols, e))?;
            let scores = &mut scores.fresh(rows * cols).product(op, q, k.transpose())?;
            dispatch(Scale { scores, scale, softcap: options.softcap });
            adjust(scores, cols, [at[0], at[1], first, start], (&mask, &bias), causal);
            dispatch(OnlineSoftmax { scores, cols, out, e, max: &mut max, sum: &mut sum });
            let p = View::of(scores).matrix(op, 0, (rows, cols), (cols as isize, 1))?;
            add_product(op, out, p, v)?;
        }
        dispatch(Divide { out, e, sum: &sum });
        Ok(())
    };
    let out = out.try_write(|out| {
        let parts = out.parts_of_groups(queries * e, QUERIES * e);
        share(parts, 1, parallel::worthwhile_narrow_steps(work), |task, out| {
            let mut out = out.fill(T::ZERO);
            block_of_queries(task, &mut out)?;
            Ok(out)
        })
    })?;
    Ok(out.with_route(Route::native(Path::Fused)))
}

/// The operands, broadcast to common batch and head axes.
struct AttentionOperands<T> {
    /// Batch, heads, queries, keys, features of queries and of values.
    sizes: [usize; 6],
    query: Tensor<T>,
    key: Tensor<T>,
    value: Tensor<T>,
    mask: Option<Tensor<bool>>,
    bias: Option<Tensor<T>>,
}

impl<T: Float> AttentionOperands<T> {
    fn new(
        op: &'static str,
        [query, key, value]: [&Tensor<T>; 3],
        mask: Option<&Tensor<bool>>,
        bias: Option<&Tensor<T>>,
        options: &AttentionOptions,
    ) -> Result<Self> {
        for x in [query, key, value] {
            if x.rank() != 4 {
                return Err(TensorError::shape(op, x.shape(), "[batch, heads, length, features]"));
            }
        }
        if let Some(cap) = options.softcap.filter(|&cap| cap.is_nan() || cap <= 0.0) {
            return Err(TensorError::value(op, format!("softcap must be positive, got {cap}")));
        }
        let (q, k, v) = (query.shape(), key.shape(), value.shape());
        if q[3] != k[3] || k[2] != v[2] {
            let required = "as many features in queries and keys, as many keys as values";
            return Err(TensorError::shapes(op, if q[3] == k[3] { v } else { q }, k, required));
        }
        let heads = crate::layout::broadcast_shapes(op, &q[..2], &k[..2])?;
        let heads = crate::layout::broadcast_shapes(op, &heads, &v[..2])?;
        let (b, h) = (heads[0], heads[1]);
        let sizes = [b, h, q[2], k[2], q[3], v[3]];
        Ok(Self {
            sizes,
            query: query.expand(&[b, h, q[2], q[3]])?,
            key: key.expand(&[b, h, k[2], k[3]])?,
            value: value.expand(&[b, h, v[2], v[3]])?,
            mask: mask.map(|mask| mask.expand(&[b, h, q[2], k[2]])).transpose()?,
            bias: bias.map(|bias| bias.expand(&[b, h, q[2], k[2]])).transpose()?,
        })
    }
}

/// Hides scores and adds the bias. Row `i` of the tile is query `at[2] + i`, column `j` key
/// `at[3] + j`.
fn adjust<T: Float>(
    scores: &mut [T],
    cols: usize,
    at: [usize; 4],
    operands: (&Option<Tensor<bool>>, &Option<Tensor<T>>),
    causal: Option<[usize; 2]>,
) {
    for (i, row) in scores.chunks_exact_mut(cols).enumerate() {
        let line = [at[0], at[1], at[2] + i, at[3]];
        if let Some(mask) = operands.0 {
            each(mask, line, row, |s, hide| if hide { T::NEG_INFINITY } else { s });
        }
        if let Some([queries, keys]) = causal {
            // Key j is hidden from query i if j > i + keys − queries.
            let seen = (line[2] + keys + 1).saturating_sub(queries + at[3]);
            row[seen.min(cols)..].fill(T::NEG_INFINITY);
        }
        if let Some(bias) = operands.1 {
            each(bias, line, row, |s, b| s.add(b));
        }
    }
}

/// Offset of an index relative to element `[0, 0, 0, 0]`.
fn position<T>(x: &Tensor<T>, at: [usize; 4]) -> isize {
    at.iter().zip(x.layout().strides()).map(|(&i, &s)| i as isize * s).sum()
}

/// `rows × cols` of the last two axes from an index on.
fn matrix<'a, T: Float>(
    op: &'static str,
    x: &'a Tensor<T>,
    at: [usize; 4],
    shape: (usize, usize),
) -> Result<MatRef<'a, T>> {
    let strides = x.layout().strides();
    View::new(x).matrix(op, position(x, at), shape, (strides[2], strides[3]))
}

/// `sⱼ ← f(sⱼ, xⱼ)` along the last axis of `x` from an index inside of it on.
fn each<T: Float, U: t4a_algebra::Scalar>(
    x: &Tensor<U>,
    at: [usize; 4],
    row: &mut [T],
    f: impl Fn(T, U) -> T,
) {
    let (view, first) = (View::new(x), position(x, at));
    match x.layout().strides()[3] {
        1 => {
            let run = view.run(first, row.len());
            for (s, &x) in row.iter_mut().zip(run) {
                *s = f(*s, x);
            }
        }
        stride => {
            for (j, s) in row.iter_mut().enumerate() {
                *s = f(*s, view.get(first + j as isize * stride));
            }
        }
    }
}

/// `s ← scale·s`, bounded by the softcap.
struct Scale<'a, T> {
    scores: &'a mut [T],
    scale: f64,
    softcap: Option<f64>,
}

impl<T: Float> Loop for Scale<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        let scale = T::from_f64(self.scale);
        match self.softcap {
            Some(cap) => {
                let (cap, inverse) = (T::from_f64(cap), T::from_f64(1.0 / cap));
                for s in self.scores {
                    *s = s.mul(scale).mul(inverse).tanh().mul(cap);
                }
            }
            None => {
                for s in self.scores {
                    *s = s.mul(scale);
                }
            }
        }
    }
}

/// Updates the running maxima and sums with a tile of scores: scores become `e^(s − m)`, and the accumulated output is
/// rescaled to the new maximum m.
struct OnlineSoftmax<'a, T> {
    scores: &'a mut [T],
    cols: usize,
    out: &'a mut [T],
    e: usize,
    max: &'a mut [T; QUERIES],
    sum: &'a mut [T; QUERIES],
}

impl<T: Float> Loop for OnlineSoftmax<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (i, row) in self.scores.chunks_exact_mut(self.cols).enumerate() {
            let old = self.max[i];
            let seen = lanes::max(row);
            let new = if seen > old { seen } else { old };
            // All scores so far are −∞: any finite shift gives zeros.
            let shift = if new == T::NEG_INFINITY { T::ZERO } else { new };
            for s in row.iter_mut() {
                *s = s.sub(shift).exp();
            }
            let factor = old.sub(shift).exp();
            self.sum[i] = self.sum[i].mul_add(factor, lanes::sum(row, |s| s));
            self.max[i] = new;
            if factor != T::ONE {
                for o in &mut self.out[i * self.e..(i + 1) * self.e] {
                    *o = o.mul(factor);
                }
            }
        }
    }
}

/// `o ← o / Σ`; zeros where the sum is 0.
struct Divide<'a, T> {
    out: &'a mut [T],
    e: usize,
    sum: &'a [T; QUERIES],
}

impl<T: Float> Loop for Divide<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run(self) {
        for (out, &sum) in self.out.chunks_exact_mut(self.e.max(1)).zip(self.sum) {
            let factor = if sum == T::ZERO { T::ZERO } else { Real::div(T::ONE, sum) };
            for o in out {
                *o = o.mul(factor);
            }
        }
    }
}
