//! Operations on block-sparse tensors other than contraction.

use std::collections::BTreeMap;
use std::sync::Arc;

use t4a_diff::{Array, Eager};
use t4a_einsum::FloatSemiring;
use t4a_tensor::random::{self, Generator};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::{BlockSparseTensor, Pattern};
use crate::entries::{check_stored, mapped, zero_of};
use crate::error::{Result, StructuredError};
use crate::graded::Forbidden;
use crate::operation::{FrobeniusNorm, InnerProduct, Rearrange, one};
use crate::plan::{MoveAxis, RearrangementBuilder};

impl Pattern {
    /// Shape of the dense tensor.
    pub fn shape(&self) -> Vec<usize> {
        self.legs.iter().map(|leg| leg.iter().sum()).collect()
    }

    /// Shape of one block.
    pub fn block_shape(&self, block: usize) -> Vec<usize> {
        (0..self.legs.len()).map(|axis| self.size(block, &[axis])).collect()
    }

    /// Index of a block in the list of stored blocks.
    pub fn place(&self, block: &[u32]) -> Option<usize> {
        self.blocks.binary_search_by(|own| own[..].cmp(block)).ok()
    }

    /// Axes of one block (row-major source) with the strides `to` in the destination buffer.
    fn axes(&self, block: usize, to: &[usize]) -> Vec<MoveAxis> {
        let (shape, mut stride) = (self.block_shape(block), 1);
        let mut axes: Vec<MoveAxis> = (0..shape.len())
            .rev()
            .map(|k| {
                stride *= shape[k];
                MoveAxis { size: shape[k], from: stride / shape[k], to: to[k] }
            })
            .collect();
        axes.reverse();
        axes
    }

    /// Map from the buffer to the row-major dense array; entries outside of the stored blocks are 0.
    pub fn to_dense(&self) -> Rearrange {
        let strides = row_major(&self.shape());
        let mut build = RearrangementBuilder::new(self.len, self.shape().iter().product());
        for (i, block) in self.blocks.iter().enumerate() {
            let start = |(axis, &part): (usize, &u32)| -> usize {
                strides[axis] * self.legs[axis][..part as usize].iter().sum::<usize>()
            };
            let to = block.iter().enumerate().map(start).sum();
            build.push(self.offsets[i], to, false, self.axes(i, &strides).into_iter());
        }
        Rearrange { plan: Arc::new(build.finish(true, true)) }
    }

    /// Permutation of the axes: axis `k` of the result is axis `axes[k]`.
    ///
    /// # Errors
    /// `Rank`, `MoveAxis`.
    pub fn permute(&self, axes: &[usize]) -> Result<(Self, Rearrange)> {
        let (op, rank) = ("permute", self.legs.len());
        if axes.len() != rank {
            return Err(StructuredError::Rank { op, required: rank, given: axes.len() });
        }
        crate::structural::check_axes(op, rank, axes)?;
        let legs = axes.iter().map(|&axis| self.legs[axis].clone()).collect();
        let mut all: Vec<(Vec<u32>, usize)> =
            (0..self.blocks.len()).map(|i| (self.key(i, axes), i)).collect();
        all.sort_unstable();
        let to = Self::new(legs, all.iter().map(|(block, _)| block.clone()).collect())?;
        let mut build = RearrangementBuilder::new(self.len, self.len);
        for (k, &(_, i)) in all.iter().enumerate() {
            let strides = row_major(&to.block_shape(k));
            let mut own = vec![0; rank];
            axes.iter().enumerate().for_each(|(k, &axis)| own[axis] = strides[k]);
            build.push(self.offsets[i], to.offsets[k], false, self.axes(i, &own).into_iter());
        }
        Ok((to, Rearrange { plan: Arc::new(build.finish(true, true)) }))
    }

    /// Trace over pairs of axes; the free axes keep their order.
    ///
    /// # Errors
    /// `MoveAxis`; `LegMismatch` for a pair of axes with different block sizes.
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<(Self, Rearrange)> {
        let (op, rank) = ("trace", self.legs.len());
        let paired: Vec<usize> = pairs.iter().flat_map(|&(i, j)| [i, j]).collect();
        crate::structural::check_axes(op, rank, &paired)?;
        for &(axis, other) in pairs {
            self.check_legs(op, axis, self, other)?;
        }
        let free: Vec<usize> = (0..rank).filter(|axis| !paired.contains(axis)).collect();
        let diagonal =
            |&i: &usize| pairs.iter().all(|&(a, b)| self.blocks[i][a] == self.blocks[i][b]);
        let all: Vec<usize> = (0..self.blocks.len()).filter(diagonal).collect();
        let mut blocks: Vec<Vec<u32>> = all.iter().map(|&i| self.key(i, &free)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let to = Self::new(free.iter().map(|&axis| self.legs[axis].clone()).collect(), blocks)?;
        let mut build = RearrangementBuilder::new(self.len, to.len);
        for i in all {
            let Some(place) = to.place(&self.key(i, &free)) else { continue };
            let mut strides = vec![0; rank];
            let kept = row_major(&to.block_shape(place));
            free.iter().zip(kept).for_each(|(&axis, stride)| strides[axis] = stride);
            let own = self.axes(i, &strides);
            let summed =
                pairs.iter().map(|&(a, b)| MoveAxis { from: own[a].from + own[b].from, ..own[a] });
            let moved = free.iter().map(|&axis| own[axis]).chain(summed);
            build.push(self.offsets[i], to.offsets[place], false, moved);
        }
        Ok((to, Rearrange { plan: Arc::new(build.finish(pairs.is_empty(), true)) }))
    }

    /// Map to the buffer of `other`, a pattern on the same axes: common blocks are copied, blocks of `other` alone
    /// are 0.
    fn within(&self, other: &Self) -> Rearrange {
        let mut build = RearrangementBuilder::new(self.len, other.len);
        for (i, block) in self.blocks.iter().enumerate() {
            if let Some(k) = other.place(block) {
                let axis = MoveAxis { size: self.block_shape(i).iter().product(), from: 1, to: 1 };
                build.push(self.offsets[i], other.offsets[k], false, [axis].into_iter());
            }
        }
        Rearrange { plan: Arc::new(build.finish(true, true)) }
    }

    fn check_same(&self, op: &'static str, other: &Self) -> Result<()> {
        if self.legs.len() != other.legs.len() {
            let (required, given) = (self.legs.len(), other.legs.len());
            return Err(StructuredError::Rank { op, required, given });
        }
        (0..self.legs.len()).try_for_each(|axis| self.check_legs(op, axis, other, axis))
    }
}

fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis];
    }
    strides
}

impl<A: Array> BlockSparseTensor<A> {
    fn moved(&self, (pattern, plan): (Pattern, Rearrange)) -> Result<Self> {
        Self::new(Arc::new(pattern), one(&plan, &[&self.data])?)
    }

    /// Dense array; entries outside of the stored blocks are the zero of the semiring.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn to_dense_over(&self, semiring: FloatSemiring) -> Result<A> {
        let (dense, zero) = (self.to_dense()?, zero_of(semiring)?);
        if zero == 0.0 {
            return Ok(dense);
        }
        let plan = self.pattern.to_dense().plan;
        let mut fill = vec![zero; plan.to_len()];
        plan.pairs().for_each(|(_, to, _)| fill[to] = 0.0);
        let fill = AnyTensor::from(Tensor::from_vec(fill, &dense.shape())?).cast(dense.dtype())?;
        Ok(dense.add(&dense.constant(fill)))
    }

    /// Block-sparse tensor of a dense array.
    ///
    /// # Errors
    /// `Shape`; `NotStored` with the first entry outside of the stored blocks that exceeds the tolerance.
    pub fn from_dense(pattern: Arc<Pattern>, dense: &A, elsewhere: Forbidden) -> Result<Self> {
        let (op, plan, required) = ("from_dense", pattern.to_dense(), pattern.shape());
        if dense.shape() != required {
            return Err(StructuredError::Shape { op, required, given: dense.shape() });
        }
        if let Forbidden::Error(tolerance) = elsewhere {
            let mut stored = vec![false; plan.plan.to_len()];
            plan.plan.pairs().for_each(|(_, to, _)| stored[to] = true);
            check_stored(op, dense, &stored, tolerance)?;
        }
        let data = one(&plan.adjoint(), &[&dense.reshape(&[plan.plan.to_len()])])?;
        Self::new(pattern, data)
    }

    /// Tensor of at least one block; the dtype is that of the first block.
    ///
    /// # Errors
    /// As [`Pattern::new`]; `Shape` for a block whose shape differs from the block sizes; `Invalid` without blocks.
    pub fn from_blocks(legs: Vec<Vec<usize>>, blocks: &BTreeMap<Vec<u32>, A>) -> Result<Self> {
        let op = "from_blocks";
        if blocks.is_empty() {
            let message = "at least one block is required; a tensor of none is zero".into();
            return Err(StructuredError::Invalid { op, message });
        }
        let pattern = Pattern::new(legs, blocks.keys().cloned().collect())?;
        let mut parts = Vec::new();
        for (i, block) in blocks.values().enumerate() {
            let (required, given) = (pattern.block_shape(i), block.shape());
            if required != given {
                return Err(StructuredError::Shape { op, required, given });
            }
            parts.push(block.reshape(&[required.iter().product()]));
        }
        Self::new(Arc::new(pattern), A::cat(&parts, 0))
    }

    /// Array of one block, `None` if it is not stored.
    pub fn block(&self, block: &[u32]) -> Option<A> {
        let i = self.pattern.place(block)?;
        let shape = self.pattern.block_shape(i);
        let part = self.data.narrow(0, self.pattern.offsets[i], shape.iter().product());
        Some(part.reshape(&shape))
    }

    /// Replaces one stored block.
    ///
    /// # Errors
    /// `Invalid` for a block that the pattern does not store; `Shape`.
    pub fn with_block(&self, block: &[u32], x: &A) -> Result<Self> {
        let (op, p) = ("with_block", &self.pattern);
        let Some(i) = p.place(block) else {
            let message = format!("the pattern has no block {block:?}");
            return Err(StructuredError::Invalid { op, message });
        };
        let (required, given) = (p.block_shape(i), x.shape());
        if required != given {
            return Err(StructuredError::Shape { op, required, given });
        }
        let (start, size) = (p.offsets[i], required.iter().product::<usize>());
        let parts = [
            self.data.narrow(0, 0, start),
            x.reshape(&[size]),
            self.data.narrow(0, start + size, p.len - start - size),
        ];
        Self::new(p.clone(), A::cat(&parts, 0))
    }

    /// Permutation of the axes; see [`Pattern::permute`].
    ///
    /// # Errors
    /// As [`Pattern::permute`].
    pub fn permute(&self, axes: &[usize]) -> Result<Self> {
        self.moved(self.pattern.permute(axes)?)
    }

    /// Trace over pairs of axes; see [`Pattern::trace`].
    ///
    /// # Errors
    /// As [`Pattern::trace`].
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<Self> {
        self.moved(self.pattern.trace(pairs)?)
    }

    /// `a + b`; the result stores the union of the blocks.
    ///
    /// # Errors
    /// `Rank`, `LegMismatch`.
    pub fn add(&self, other: &Self) -> Result<Self> {
        let (a, b) = (&self.pattern, &other.pattern);
        a.check_same("add", b)?;
        if a == b {
            return Self::new(a.clone(), self.data.add(&other.data));
        }
        let mut blocks: Vec<Vec<u32>> = a.blocks.iter().chain(&b.blocks).cloned().collect();
        blocks.sort_unstable();
        blocks.dedup();
        let sum = Arc::new(Pattern::new(a.legs.clone(), blocks)?);
        let own = one(&a.within(&sum), &[&self.data])?;
        let other = one(&b.within(&sum), &[&other.data])?;
        Self::new(sum, own.add(&other))
    }

    /// `a ∘ b` (elementwise); the result stores the intersection of the blocks.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::add`].
    pub fn mul(&self, other: &Self) -> Result<Self> {
        let (a, b) = (&self.pattern, &other.pattern);
        a.check_same("mul", b)?;
        if a == b {
            return Self::new(a.clone(), self.data.mul(&other.data));
        }
        let common = a.blocks.iter().filter(|block| b.place(block).is_some()).cloned().collect();
        let common = Arc::new(Pattern::new(a.legs.clone(), common)?);
        let own = one(&a.within(&common), &[&self.data])?;
        let other = one(&b.within(&common), &[&other.data])?;
        Self::new(common, own.mul(&other))
    }

    /// `c a`.
    pub fn scale(&self, c: f64) -> Self {
        Self { pattern: self.pattern.clone(), data: self.data.scale(c) }
    }

    /// `Σ a b`, an array of one element.
    ///
    /// # Errors
    /// As [`BlockSparseTensor::add`].
    pub fn inner(&self, other: &Self) -> Result<A> {
        self.pattern.check_same("inner", &other.pattern)?;
        let other = match self.pattern == other.pattern {
            true => other.data.clone(),
            false => one(&other.pattern.within(&self.pattern), &[&other.data])?,
        };
        one(&InnerProduct { complex: false }, &[&self.data, &other])
    }

    /// Frobenius norm `√Σ a²`, an array of one element. The derivative at 0 is 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn norm(&self) -> Result<A> {
        one(&FrobeniusNorm { complex: false }, &[&self.data])
    }

    /// Applies a function with `f(0) = 0` to each entry.
    ///
    /// # Errors
    /// `Invalid` if `f(0)` is not 0.
    pub fn map_entries(&self, f: impl Fn(&A) -> A) -> Result<Self> {
        Self::new(self.pattern.clone(), mapped("map_entries", &self.data, f)?)
    }
}

impl BlockSparseTensor {
    /// Zero tensor on the engine.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn zeros(pattern: Arc<Pattern>, dtype: DType) -> Result<Self> {
        let data = Eager::from(AnyTensor::zeros(&[pattern.len], dtype)?);
        Self::new(pattern, data)
    }

    /// Tensor with independent standard normal entries, on the engine.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn random(pattern: Arc<Pattern>, dtype: DType, generator: &Generator) -> Result<Self> {
        let x: Tensor<f64> = random::normal(generator, &[pattern.len], 0.0, 1.0)?;
        let data = Eager::from(AnyTensor::from(x).cast(dtype)?);
        Self::new(pattern, data)
    }
}
