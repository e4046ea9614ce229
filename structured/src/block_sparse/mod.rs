//! Block-sparse tensors: an explicit list of stored blocks, without charges.
//!
//! ```text
//! legs     block sizes along each axis
//! blocks   stored blocks, one block index per axis; strictly ascending in lexicographic order
//! buffer   the stored blocks in this order, each row-major, contiguous
//! ```
//!
//! Tensors of one pattern have the same buffer layout, so sums and optimisers act on the buffer directly.

mod data;
mod tensor;

use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;
use t4a_diff::{Array, Eager};
use t4a_einsum::FloatSemiring;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::leg::{MOST_BLOCKS, MOST_ELEMENTS};
use crate::operation::{Contract, ContractOver, Rearrange, one};
use crate::plan::{ContractionPlan, MatrixView, MoveAxis, Products, RearrangementBuilder};

/// Block structure: partition of each axis, stored blocks and their offsets in the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    legs: Vec<Vec<usize>>,
    blocks: Vec<Vec<u32>>,
    offsets: Vec<usize>,
    len: usize,
    /// Hash of the legs and blocks, so that plans are found without a pass over the blocks.
    hash: u64,
}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Structure of a product of two block-sparse tensors, and its plan.
type PlannedProduct = (Arc<Pattern>, Arc<ContractionPlan>);

/// Tensor with the stored blocks of a [`Pattern`]; all other entries are the zero of the semiring.
#[derive(Clone, Debug)]
pub struct BlockSparseTensor<A = Eager> {
    pattern: Arc<Pattern>,
    data: A,
}

impl Pattern {
    /// Pattern of the stored `blocks` on axes with these block sizes.
    ///
    /// # Errors
    /// `Invalid` for a block size of 0 and for a block index out of range; `DuplicateBlock`, `UnsortedBlocks`;
    /// `TooLarge`.
    pub fn new(legs: Vec<Vec<usize>>, blocks: Vec<Vec<u32>>) -> Result<Self> {
        let op = "block pattern";
        let invalid = |message| Err(StructuredError::Invalid { op, message });
        if legs.iter().flatten().any(|&size| size == 0) {
            return invalid(format!("block sizes of 0 in {legs:?}"));
        }
        if blocks.len() > MOST_BLOCKS {
            return Err(StructuredError::TooLarge { op, what: "blocks", limit: MOST_BLOCKS });
        }
        for (i, block) in blocks.iter().enumerate() {
            let inside = block.len() == legs.len()
                && block.iter().zip(&legs).all(|(&part, leg)| (part as usize) < leg.len());
            if !inside {
                return invalid(format!("block {block:?} is out of range"));
            }
            match i.checked_sub(1).map(|before| blocks[before].cmp(block)) {
                None | Some(Ordering::Less) => {}
                Some(Ordering::Equal) => {
                    return Err(StructuredError::DuplicateBlock { op, block: block.clone() });
                }
                Some(Ordering::Greater) => {
                    return Err(StructuredError::UnsortedBlocks { op, block: block.clone() });
                }
            }
        }
        let (mut offsets, mut len) = (Vec::with_capacity(blocks.len()), 0usize);
        for block in &blocks {
            offsets.push(len);
            let sizes = block.iter().zip(&legs).map(|(&part, leg)| leg[part as usize]);
            let size = sizes.into_iter().try_fold(1usize, |n, size| n.checked_mul(size));
            let end = size.and_then(|size| len.checked_add(size)).filter(|&n| n <= MOST_ELEMENTS);
            let what = "elements";
            len = end.ok_or(StructuredError::TooLarge { op, what, limit: MOST_ELEMENTS })?;
        }
        let dense = legs.iter().try_fold(1usize, |n, leg| {
            let sum = leg.iter().try_fold(0usize, |sum, &size| sum.checked_add(size))?;
            n.checked_mul(sum.max(1))
        });
        if dense.is_none() {
            return Err(StructuredError::TooLarge { op, what: "entries", limit: usize::MAX });
        }
        let mut hasher = DefaultHasher::new();
        (&legs, &blocks).hash(&mut hasher);
        Ok(Self { legs, blocks, offsets, len, hash: hasher.finish() })
    }

    /// Block sizes along each axis.
    pub fn legs(&self) -> &[Vec<usize>] {
        &self.legs
    }

    /// Stored blocks in ascending order, one block index per axis.
    pub fn blocks(&self) -> &[Vec<u32>] {
        &self.blocks
    }

    /// Number of stored elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True if no block is stored.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn check_legs(
        &self,
        op: &'static str,
        axis: usize,
        other: &Self,
        other_axis: usize,
    ) -> Result<()> {
        let (lhs, rhs) = (&self.legs[axis], &other.legs[other_axis]);
        if lhs == rhs {
            return Ok(());
        }
        let (lhs, rhs) = (format!("{lhs:?}"), format!("{rhs:?}"));
        let required = "equal block sizes";
        Err(StructuredError::LegMismatch { op, axis, lhs, other: other_axis, rhs, required })
    }

    fn size(&self, block: usize, axes: &[usize]) -> usize {
        let part = |&axis: &usize| self.legs[axis][self.blocks[block][axis] as usize];
        axes.iter().map(part).product()
    }

    fn key(&self, block: usize, axes: &[usize]) -> Vec<u32> {
        axes.iter().map(|&axis| self.blocks[block][axis]).collect()
    }

    /// Permutes the axes of every block in place of its slot in the buffer; `None` for the identity permutation.
    fn turned(&self, axes: &[usize]) -> Option<Rearrange> {
        if axes.iter().copied().eq(0..axes.len()) {
            return None;
        }
        let mut build = RearrangementBuilder::new(self.len, self.len);
        for (i, &offset) in self.offsets.iter().enumerate() {
            let all: Vec<usize> = (0..self.legs.len()).collect();
            let axis = |(k, &axis): (usize, &usize)| MoveAxis {
                size: self.size(i, &[axis]),
                from: self.size(i, &all[axis + 1..]),
                to: self.size(i, &axes[k + 1..]),
            };
            build.push(offset, offset, false, axes.iter().enumerate().map(axis));
        }
        Some(Rearrange { plan: Arc::new(build.finish(true, true)) })
    }

    /// [`Pattern::contract`] of shared patterns, cached: equal patterns and axes share one plan.
    fn contracted(
        self: &Arc<Self>,
        other: &Arc<Self>,
        axes: &[usize],
        other_axes: &[usize],
    ) -> Result<PlannedProduct> {
        let arguments: SmallVec<[usize; 12]> =
            [axes.len()].iter().chain(axes).chain(other_axes).copied().collect();
        let weight = |planned: &PlannedProduct| {
            let blocks = &planned.0.blocks;
            planned.1.bytes() + blocks.len() * (size_of::<Vec<u32>>() + 4 * planned.0.legs.len())
        };
        let key = ("contract", self.clone(), other.clone(), arguments);
        let planned = cached(key, weight, |_| {
            let (pattern, plan) = self.contract(other, axes, other_axes)?;
            Ok((Arc::new(pattern), plan))
        })?;
        Ok((planned.0.clone(), planned.1.clone()))
    }

    /// Contraction over pairs of axes, which have equal block sizes. The result has the free axes of `self`, then
    /// those of `other`.
    ///
    /// Cost: O(blocks + pairs log pairs), plus the matrix products.
    ///
    /// # Errors
    /// `MoveAxis`, `Rank`, `LegMismatch`.
    pub fn contract(
        &self,
        other: &Self,
        axes: &[usize],
        other_axes: &[usize],
    ) -> Result<(Self, Arc<ContractionPlan>)> {
        let (op, a, b) = ("contract", self, other);
        if axes.len() != other_axes.len() {
            let (required, given) = (axes.len(), other_axes.len());
            return Err(StructuredError::Rank { op, required, given });
        }
        crate::structural::check_axes(op, a.legs.len(), axes)?;
        crate::structural::check_axes(op, b.legs.len(), other_axes)?;
        for (&axis, &other) in axes.iter().zip(other_axes) {
            a.check_legs(op, axis, b, other)?;
        }
        let free = |rank: usize, summed: &[usize]| -> Vec<usize> {
            (0..rank).filter(|axis| !summed.contains(axis)).collect()
        };
        let (fa, fb) = (free(a.legs.len(), axes), free(b.legs.len(), other_axes));
        let mut partners: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        (0..b.blocks.len()).for_each(|j| partners.entry(b.key(j, other_axes)).or_default().push(j));
        let mut pairs: Vec<(Vec<u32>, usize, usize)> = Vec::new();
        for i in 0..a.blocks.len() {
            for &j in partners.get(&a.key(i, axes)).into_iter().flatten() {
                pairs.push(([a.key(i, &fa), b.key(j, &fb)].concat(), i, j));
            }
        }
        pairs.sort_unstable();
        let mut blocks: Vec<Vec<u32>> = pairs.iter().map(|(block, ..)| block.clone()).collect();
        blocks.dedup();
        let legs = fa.iter().map(|&axis| a.legs[axis].clone());
        let legs = legs.chain(fb.iter().map(|&axis| b.legs[axis].clone())).collect();
        let c = Pattern::new(legs, blocks)?;
        let view = |p: &Pattern, i: usize, rows: &[usize], cols: &[usize]| MatrixView {
            offset: p.offsets[i],
            rows: p.size(i, rows),
            cols: p.size(i, cols),
            transposed: false,
        };
        let (rows, cols): (Vec<usize>, Vec<usize>) =
            ((0..fa.len()).collect(), (fa.len()..fa.len() + fb.len()).collect());
        let va: Vec<MatrixView> = (0..a.blocks.len()).map(|i| view(a, i, &fa, axes)).collect();
        let vb: Vec<MatrixView> =
            (0..b.blocks.len()).map(|j| view(b, j, other_axes, &fb)).collect();
        let vc: Vec<MatrixView> = (0..c.blocks.len()).map(|k| view(&c, k, &rows, &cols)).collect();
        let place = |block: &Vec<u32>| c.blocks.binary_search(block).unwrap_or(0) as u32;
        let terms: Vec<[u32; 3]> =
            pairs.iter().map(|(block, i, j)| [*i as u32, *j as u32, place(block)]).collect();
        let enter_a = a.turned(&[&fa[..], axes].concat());
        let enter_b = b.turned(&[other_axes, &fb[..]].concat());
        let plan = |enter: Option<Rearrange>| enter.map(|enter| enter.plan);
        let products = Products::new([a.len, b.len, c.len], va, vb, vc, terms)?;
        let plan = Arc::new(ContractionPlan::new(plan(enter_a), plan(enter_b), products, None)?);
        Ok((c, plan))
    }
}

impl<A: Array> BlockSparseTensor<A> {
    /// Tensor of a pattern and its buffer.
    ///
    /// # Errors
    /// `LengthMismatch`.
    pub fn new(pattern: Arc<Pattern>, data: A) -> Result<Self> {
        if data.shape() != [pattern.len] {
            let (op, given) = ("block tensor", data.shape().iter().product());
            return Err(StructuredError::LengthMismatch { op, required: pattern.len, given });
        }
        Ok(Self { pattern, data })
    }

    /// Block structure.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// Elements of all stored blocks, flat.
    pub fn data(&self) -> &A {
        &self.data
    }

    /// Dense array; entries outside of the stored blocks are 0.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn to_dense(&self) -> Result<A> {
        let dense = one(&self.pattern.to_dense(), &[&self.data])?;
        Ok(dense.reshape(&self.pattern.shape()))
    }

    /// Contraction over a semiring as one operation; see [`Pattern::contract`].
    ///
    /// Cost: that of the plan on the first call for equal patterns, then a cache look-up.
    ///
    /// # Errors
    /// As [`Pattern::contract`]; `DType`.
    pub fn contract(
        &self,
        other: &Self,
        axes: &[usize],
        other_axes: &[usize],
        semiring: FloatSemiring,
    ) -> Result<Self> {
        let (pattern, plan) = self.pattern.contracted(&other.pattern, axes, other_axes)?;
        if self.data.dtype() != other.data.dtype() {
            let (op, required, given) = ("contract", self.data.dtype(), other.data.dtype());
            return Err(StructuredError::DType { op, required, given });
        }
        let operands = [&self.data, &other.data];
        let data = match semiring {
            FloatSemiring::Standard => one(&Contract { plan }, &operands)?,
            semiring => one(&ContractOver { plan, semiring }, &operands)?,
        };
        Self::new(pattern, data)
    }
}
