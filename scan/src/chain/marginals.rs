//! Cotangents of ln Z of a batch of chains, for the engine: probabilities of tags and of pairs of tags.
//!
//! With E, p and q of [`kernel`](super::kernel), whose loop is executed again with all p and q of a block kept, and the
//! probability γ of each tag, from the last step of a chain to the first:
//!
//! ```text
//! γ_last = p / Σp            r_t = γ_t / q_t,  0 where q_t = 0
//! γ_{t−1} = p_{t−1} ∘ (r_t Eᵀ)
//! x̄_t = z̄ γ_t               W̄ = E ∘ Σ_{b, t} z̄_b p_{t−1}ᵀ r_t       one product per block
//! ```
//!
//! No step has an exponential besides those of the loop forwards, and Σγ = 1 up to rounding.

use t4a_algebra::gemm::{GemmError, MatMut, MatRef, Product};
use t4a_algebra::simd::{Loop, dispatch};
use t4a_algebra::{Float, Numeric, Standard, parallel};
use t4a_diff::{Array, Eager};
use t4a_tensor::{AnyTensor, Tensor, TensorError};

use super::kernel::{BlockScores, CHAINS, Factors, multiply};
use super::messages::OP;
use crate::operand::{computed_in, elements, narrow, wide};

/// Maximum number of sums over blocks, each of the size of W: constant, so that results do not depend on the number of
/// threads.
const PARTS: usize = 16;

/// Cotangents of x and of W that are wanted, given those of ln Z; `None` if the portable definition is required.
pub(super) fn cotangents(
    x: &Eager,
    w: &Eager,
    lengths: &[usize],
    given: &Eager,
    wanted: [bool; 2],
) -> Result<Option<[Option<AnyTensor>; 2]>, TensorError> {
    let (shape, dtype) = (x.shape(), x.dtype());
    let [batch, length, tags] = shape[..] else { return Ok(None) };
    if batch == 0 {
        return Ok(None);
    }
    computed_in!(OP, dtype, T => {
        let [x, w, given] = wide::<T, 3>([x, w, given])?;
        let (x, w, given) = (elements(&x), elements(&w), elements(&given));
        // The blocks of a part, one after the other.
        let chains = CHAINS * batch.div_ceil(CHAINS).div_ceil(PARTS);
        let parts = batch.div_ceil(chains);
        let pairs = if wanted[1] { tags * tags } else { 0 };
        let mut memory = Tensor::<f64>::zeros(&[tags * (2 * tags + 1) + parts * pairs])?;
        let (factors, rest) = memory.as_mut_slice()?.split_at_mut(tags * tags);
        let (backward, rest) = rest.split_at_mut(tags * tags);
        let (most, sums) = rest.split_at_mut(tags);
        if !dispatch(Factors { w, factors: &mut *factors, most: &mut *most }) {
            return Ok(None);
        }
        // A product with a transposed right factor would be packed row by row in every step.
        for (i, row) in factors.chunks_exact(tags).enumerate() {
            backward[i..].iter_mut().step_by(tags).zip(row).for_each(|(to, &factor)| *to = factor);
        }
        let (factors, backward, most) = (&*factors, &*backward, &*most);
        let mut of_x = wanted[0].then(|| Tensor::<T>::zeros(&shape)).transpose()?;
        let emissions = match &mut of_x {
            Some(of_x) => of_x.as_mut_slice()?,
            None => &mut [],
        };
        let mut emissions = emissions.chunks_mut(chains * length * tags);
        let mut sums_of_parts = sums.chunks_mut(pairs.max(1));
        let part = |first: usize| {
            let last = batch.min(first + chains);
            let x = &x[first * length * tags..last * length * tags];
            let scores = BlockScores { factors, most, x, length, lengths: &lengths[first..last] };
            MarginalPart {
                scores,
                backward,
                given: &given[first..last],
                of_x: emissions.next().unwrap_or_default(),
                pairs: sums_of_parts.next().unwrap_or_default(),
                valid: Ok(false),
            }
        };
        let mut all: Vec<MarginalPart<'_, T>> = (0..batch).step_by(chains).map(part).collect();
        let worthwhile = parallel::worthwhile_narrow_steps(x.len().saturating_mul(3 * tags));
        parallel::for_each_mut(&mut all, worthwhile, |_, part| part.valid = part.run());
        for part in all {
            if !part.valid? {
                return Ok(None);
            }
        }
        let of_w = || {
            // Parts in order.
            let sum = |at: usize| sums.iter().skip(at).step_by(pairs).sum::<f64>();
            let of_w = Tensor::from_fn(&[pairs], |at| T::from_f64(factors[at] * sum(at)))?;
            narrow::<T>(of_w, &[tags, tags], dtype)
        };
        let of_w = wanted[1].then(of_w).transpose()?;
        let of_x = of_x.map(|of_x| narrow::<T>(of_x, &shape, dtype)).transpose()?;
        Ok(Some([of_x, of_w]))
    })
}

/// Chains whose pairs are summed one block after the other.
struct MarginalPart<'a, T> {
    scores: BlockScores<'a, T>,
    /// Eᵀ.
    backward: &'a [f64],
    /// z̄.
    given: &'a [T],
    /// x̄, or empty.
    of_x: &'a mut [T],
    /// `Σ z̄ pᵀ r`, or empty.
    pairs: &'a mut [f64],
    /// False if the portable definition is required.
    valid: Result<bool, TensorError>,
}

impl<T: Float> MarginalPart<'_, T> {
    fn run(&mut self) -> Result<bool, TensorError> {
        let (tags, length) = (self.scores.most.len(), self.scores.length);
        let rows = CHAINS.min(self.given.len()) * tags;
        let all = rows * self.scores.steps();
        let mut memory = Tensor::<f64>::zeros(&[2 * (all + rows)])?;
        let (p, rest) = memory.as_mut_slice()?.split_at_mut(all);
        let (q, rest) = rest.split_at_mut(all);
        let (exponents, onward) = rest.split_at_mut(rows);
        let blocks = self.scores.lengths.chunks(CHAINS).zip(self.given.chunks(CHAINS));
        for (i, (lengths, given)) in blocks.enumerate() {
            let at = i * CHAINS * length * tags;
            let x = &self.scores.x[at..][..lengths.len() * length * tags];
            let scores = BlockScores { x, lengths, ..self.scores };
            let (rows, all) = (lengths.len() * tags, lengths.len() * tags * scores.steps());
            let mut block = BlockMarginals {
                scores,
                backward: self.backward,
                given,
                of_x: self.of_x.get_mut(at..at + x.len()).unwrap_or_default(),
                p: &mut p[..all],
                q: &mut q[..all],
            };
            if !block.ahead(&mut exponents[..rows]) || block.behind(&mut onward[..rows]).is_err() {
                return Ok(false);
            }
            if !self.pairs.is_empty() && block.add_pairs(self.pairs).is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Up to [`CHAINS`] chains.
struct BlockMarginals<'a, T> {
    scores: BlockScores<'a, T>,
    /// Eᵀ.
    backward: &'a [f64],
    given: &'a [T],
    of_x: &'a mut [T],
    /// `[steps, chains, tags]`.
    p: &'a mut [f64],
    /// First q, then r.
    q: &'a mut [f64],
}

impl<T: Float> BlockMarginals<'_, T> {
    /// p and q of all steps; p is 0 behind the end of a chain. False if the portable definition is required.
    fn ahead(&mut self, exponents: &mut [f64]) -> bool {
        let (chains, tags) = (self.given.len(), self.scores.most.len());
        let rows = chains * tags;
        for t in 0..self.scores.steps() {
            let (before, p) = self.p.split_at_mut(t * rows);
            let (p, q) = (&mut p[..rows], &mut self.q[t * rows..][..rows]);
            if t == 0 {
                q.fill(1.0);
            } else if multiply(&before[(t - 1) * rows..], self.scores.factors, q, [chains, tags])
                .is_err()
            {
                return false;
            }
            if !self.scores.rescale(t, q, exponents, p, |_, _| ()) {
                return false;
            }
            for (p, _) in
                p.chunks_exact_mut(tags).zip(self.scores.lengths).filter(|(_, n)| t >= **n)
            {
                p.fill(0.0);
            }
        }
        true
    }

    /// x̄, and r in the place of q.
    fn behind(&mut self, onward: &mut [f64]) -> Result<(), GemmError> {
        let (chains, tags) = (self.given.len(), self.scores.most.len());
        let rows = chains * tags;
        for t in (0..self.scores.steps()).rev() {
            let (p, q) = (&self.p[t * rows..][..rows], &mut self.q[t * rows..][..rows]);
            for (c, (&n, given)) in self.scores.lengths.iter().zip(self.given).enumerate() {
                let row = c * tags..(c + 1) * tags;
                if t >= n {
                    q[row].fill(0.0);
                    continue;
                }
                let at = (c * self.scores.length + t) * tags;
                dispatch(StepBack {
                    p: &p[row.clone()],
                    onward: (t + 1 < n).then_some(&onward[row.clone()]),
                    given: given.to_f64(),
                    of_x: self.of_x.get_mut(at..at + tags).unwrap_or_default(),
                    q: &mut q[row],
                });
            }
            if t > 0 {
                multiply(q, self.backward, onward, [chains, tags])?;
            }
        }
        Ok(())
    }

    /// Adds `Σ z̄ p_{t−1}ᵀ r_t`.
    fn add_pairs(&mut self, pairs: &mut [f64]) -> Result<(), GemmError> {
        let tags = self.scores.most.len();
        let rows = self.given.len() * tags;
        let (steps, last) = (self.p.len() / tags, self.p.len() - rows);
        for p in self.p[..last].chunks_exact_mut(rows) {
            for (p, given) in p.chunks_exact_mut(tags).zip(self.given) {
                let given = given.to_f64();
                p.iter_mut().for_each(|p| *p *= given);
            }
        }
        let count = steps - self.given.len();
        if count == 0 {
            return Ok(());
        }
        let transposed = (1, tags as isize);
        let p = MatRef::strided(&self.p[..last], 0, (tags, count), transposed)?;
        let r = MatRef::row_major(&self.q[rows..], count, tags)?;
        let pairs = MatMut::row_major(pairs, tags, tags)?;
        Product::new(p, r, pairs)?.accumulate(true).run::<Standard>();
        Ok(())
    }
}

/// One step of one chain backwards: γ from p and `r Eᵀ` of the next step, x̄ = z̄ γ, and r = γ / q in the place of q.
struct StepBack<'a, T> {
    p: &'a [f64],
    /// `None` in the last step.
    onward: Option<&'a [f64]>,
    given: f64,
    /// Empty if it is not wanted.
    of_x: &'a mut [T],
    q: &'a mut [f64],
}

impl<T: Float> Loop for StepBack<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { p, onward, given, of_x, q } = self;
        let quotient = |of: f64, q: f64| if q == 0.0 { 0.0 } else { of / q };
        match onward {
            None => {
                let by = 1.0 / p.iter().sum::<f64>();
                of_x.iter_mut().zip(p).for_each(|(of_x, &p)| *of_x = T::from_f64(given * (p * by)));
                q.iter_mut().zip(p).for_each(|(q, &p)| *q = quotient(p * by, *q));
            }
            Some(onward) => {
                for (of_x, (&p, &onward)) in of_x.iter_mut().zip(p.iter().zip(onward)) {
                    *of_x = T::from_f64(given * (p * onward));
                }
                for (q, (&p, &onward)) in q.iter_mut().zip(p.iter().zip(onward)) {
                    *q = quotient(p * onward, *q);
                }
            }
        }
    }
}
