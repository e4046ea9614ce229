//! ln Z of a batch of chains as one loop over the steps, for the engine.
//!
//! Messages are probabilities p with a maximum of 1 and a logarithm per chain, in `f64`:
//!
//! ```text
//! E[i, j] = exp(W[i, j] − s_j)          s_j the maximum of column j
//! q       = p E                         one product for a block of chains
//! p′[j]   = q[j]·exp(s_j + x[j] − m) / P,   ln Z += m + ln P,   m the largest exponent, P the largest element
//! ```
//!
//! That is an exponential per emission; a log-sum-exp product takes three exponentials or logarithms per tag and step,
//! and the exponentials of W. Blocks of chains are distributed over threads, without a synchronisation per step.
//!
//! A factor or a probability that is not 0 but below [`LEAST`] could underflow in a product; the operation then falls
//! back to the portable definition. So it does if a chain has no sequence with a finite score, and for NaN and +∞.

use std::sync::atomic::{AtomicBool, Ordering};

use t4a_algebra::gemm::{GemmError, MatMut, MatRef, Product};
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Numeric, Standard, parallel};
use t4a_diff::{Array, Eager};
use t4a_tensor::{AnyTensor, Tensor, TensorError};

use super::messages::OP;
use crate::operand::{computed_in, elements, narrow, wide};

/// Chains of a block: constant, so that results do not depend on the number of threads.
pub(super) const CHAINS: usize = 8;
/// Smallest factor and smallest probability other than 0: a product of two is a normal number.
const LEAST: f64 = 1e-150;
const LANES: usize = 8;

/// ln Z of every chain, `[batch]`; `None` if the portable definition is required.
pub(super) fn log_partition(
    x: &Eager,
    w: &Eager,
    lengths: &[usize],
) -> Result<Option<AnyTensor>, TensorError> {
    let (shape, dtype) = (x.shape(), x.dtype());
    let [batch, length, tags] = shape[..] else { return Ok(None) };
    if batch == 0 {
        return Ok(None);
    }
    computed_in!(OP, dtype, T => {
        let [x, w] = wide::<T, 2>([x, w])?;
        let (x, w) = (elements(&x), elements(&w));
        // E, s, ln Z of all chains, and three rows of tags per chain.
        let mut memory = Tensor::<f64>::zeros(&[tags * (tags + 1) + batch * (1 + 3 * tags)])?;
        let (factors, rest) = memory.as_mut_slice()?.split_at_mut(tags * tags);
        let (most, rest) = rest.split_at_mut(tags);
        let (z, rest) = rest.split_at_mut(batch);
        if !dispatch(Factors { w, factors: &mut *factors, most: &mut *most }) {
            return Ok(None);
        }
        let (factors, most) = (&*factors, &*most);
        let blocks = z.chunks_mut(CHAINS).zip(rest.chunks_mut(3 * CHAINS * tags));
        let blocks = blocks.zip(x.chunks(CHAINS * length * tags)).zip(lengths.chunks(CHAINS));
        let mut blocks: Vec<ChainBlock<'_, T>> = blocks
            .map(|(((z, rows), x), lengths)| {
                let scores = BlockScores { factors, most, x, length, lengths };
                ChainBlock { scores, z, rows }
            })
            .collect();
        let valid = AtomicBool::new(true);
        let worthwhile = parallel::worthwhile_narrow_steps(x.len().saturating_mul(tags));
        parallel::for_each_mut(&mut blocks, worthwhile, |_, block| {
            if valid.load(Ordering::Relaxed) && !block.run() {
                valid.store(false, Ordering::Relaxed);
            }
        });
        drop(blocks);
        if !valid.into_inner() {
            return Ok(None);
        }
        let z = Tensor::from_fn(&[batch], |i| T::from_f64(z[i]))?;
        narrow::<T>(z, &[batch], dtype).map(Some)
    })
}

/// `Eᵢⱼ` and `s_j`; false if the portable definition is required.
pub(super) struct Factors<'a, T> {
    pub(super) w: &'a [T],
    pub(super) factors: &'a mut [f64],
    pub(super) most: &'a mut [f64],
}

impl<T: Float> Loop for Factors<'_, T> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        let Self { w, factors, most } = self;
        let tags = most.len();
        most.fill(f64::NEG_INFINITY);
        for row in w.chunks_exact(tags) {
            for (most, w) in most.iter_mut().zip(row) {
                let w = w.to_f64();
                *most = if w > *most { w } else { *most };
            }
        }
        let mut valid = true;
        for (row, factors) in w.chunks_exact(tags).zip(factors.chunks_exact_mut(tags)) {
            for ((w, factor), &most) in row.iter().zip(factors).zip(&*most) {
                let w = w.to_f64();
                // A column of −∞ is 0.
                let by = if most == f64::NEG_INFINITY { 0.0 } else { most };
                *factor = Float::exp(w - by);
                valid &= (*factor >= LEAST) | (w == f64::NEG_INFINITY);
            }
        }
        valid
    }
}

/// E, s, and the emissions and lengths of a block of chains.
#[derive(Clone, Copy)]
pub(super) struct BlockScores<'a, T> {
    pub(super) factors: &'a [f64],
    pub(super) most: &'a [f64],
    /// `[chains, length, tags]`.
    pub(super) x: &'a [T],
    pub(super) length: usize,
    pub(super) lengths: &'a [usize],
}

impl<T: Float> BlockScores<'_, T> {
    /// Length of the longest chain.
    pub(super) fn steps(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or_default()
    }

    /// p of step t from q, for the chains that have the step, with the gained logarithm of each chain; false if the
    /// portable definition is required.
    pub(super) fn rescale(
        &self,
        t: usize,
        q: &[f64],
        exponents: &mut [f64],
        p: &mut [f64],
        mut gain: impl FnMut(usize, f64),
    ) -> bool {
        let tags = self.most.len();
        for c in (0..self.lengths.len()).filter(|&c| t < self.lengths[c]) {
            let row = c * tags..(c + 1) * tags;
            let gained = dispatch(ChainStep {
                most: (t > 0).then_some(self.most),
                x: &self.x[(c * self.length + t) * tags..][..tags],
                q: &q[row.clone()],
                exponents: &mut exponents[row.clone()],
                p: &mut p[row],
            });
            let Some(gained) = gained else { return false };
            gain(c, gained);
        }
        true
    }
}

/// Up to [`CHAINS`] chains.
struct ChainBlock<'a, T> {
    scores: BlockScores<'a, T>,
    z: &'a mut [f64],
    /// Three rows of tags per chain: all p, all q, all exponents.
    rows: &'a mut [f64],
}

impl<T: Float> ChainBlock<'_, T> {
    /// False if the portable definition is required.
    fn run(&mut self) -> bool {
        let (chains, tags) = (self.z.len(), self.scores.most.len());
        let (p, rest) = self.rows.split_at_mut(chains * tags);
        let (q, exponents) = rest.split_at_mut(chains * tags);
        self.z.fill(0.0);
        for t in 0..self.scores.steps() {
            if t == 0 {
                q.fill(1.0);
            } else {
                // The sizes agree: never an error.
                if multiply(p, self.scores.factors, q, [chains, tags]).is_err() {
                    return false;
                }
            }
            if !self.scores.rescale(t, q, exponents, p, |c, gained| self.z[c] += gained) {
                return false;
            }
        }
        for (z, p) in self.z.iter_mut().zip(p.chunks_exact(tags)) {
            *z += Float::ln(p.iter().sum::<f64>());
        }
        true
    }
}

/// q = p E.
pub(super) fn multiply(
    p: &[f64],
    e: &[f64],
    q: &mut [f64],
    [m, n]: [usize; 2],
) -> Result<(), GemmError> {
    let (p, e) = (MatRef::row_major(p, m, n)?, MatRef::row_major(e, n, n)?);
    Product::new(p, e, MatMut::row_major(q, m, n)?)?.run::<Standard>();
    Ok(())
}

/// One step of one chain: p from q; returns the logarithm by which the chain is rescaled, `None` if the portable
/// definition is required.
struct ChainStep<'a, T> {
    /// s, or zeros in the first step.
    most: Option<&'a [f64]>,
    x: &'a [T],
    q: &'a [f64],
    exponents: &'a mut [f64],
    p: &'a mut [f64],
}

/// The largest element; NaN are ignored.
#[inline(always)]
fn largest(x: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut lanes = [f64::NEG_INFINITY; LANES];
    let (chunks, tail) = x.as_chunks::<LANES>();
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    lanes.iter().chain(tail).fold(f64::NEG_INFINITY, |a, &b| larger(a, b))
}

impl<T: Float> Loop for ChainStep<'_, T> {
    type Output = Option<f64>;

    #[inline(always)]
    fn run(self) -> Option<f64> {
        let Self { most, x, q, exponents, p } = self;
        match most {
            Some(most) => {
                for ((exponent, x), most) in exponents.iter_mut().zip(x).zip(most) {
                    *exponent = most + x.to_f64();
                }
            }
            None => exponents.iter_mut().zip(x).for_each(|(exponent, x)| *exponent = x.to_f64()),
        }
        let shift = largest(exponents);
        for ((p, &q), &exponent) in p.iter_mut().zip(q).zip(&*exponents) {
            *p = q * Float::exp(exponent - shift);
        }
        let scale = largest(p);
        let by = 1.0 / scale;
        let mut valid = shift.is_finite() & (scale > 0.0) & scale.is_finite() & by.is_finite();
        for ((p, &q), &exponent) in p.iter_mut().zip(q).zip(&*exponents) {
            *p *= by;
            valid &= (*p >= LEAST) | (q == 0.0) | (exponent == f64::NEG_INFINITY);
        }
        valid.then(|| shift + Float::ln(scale))
    }
}
