//! Tensors of arbitrary known blocks, without charges.
//!
//! ```text
//! legs     sizes of the parts of each axis
//! blocks   one part of each axis; sorted, each once
//! buffer   the blocks one behind the other, row-major
//! ```
//!
//! Equal patterns have equal buffers, so that sums and optimisers work on the buffer as it is.

use std::sync::Arc;

use hashbrown::HashMap;
use t4a_diff::{Array, Eager};
use t4a_einsum::FloatSemiring;

use crate::diag::contract;
use crate::error::{Result, StructuredError};
use crate::leg::{MOST_BLOCKS, MOST_ELEMENTS};
use crate::operation::{Contract, Rearrange, one};
use crate::plan::{Axis, Builder, Contraction, Products, View};

/// Which blocks there are, and where they lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern {
    legs: Vec<Vec<usize>>,
    blocks: Vec<Vec<u32>>,
    offsets: Vec<usize>,
    len: usize,
}

/// A tensor of these blocks; everything else is the zero of the semiring.
#[derive(Clone, Debug)]
pub struct BlockSparseTensor<A = Eager> {
    pattern: Arc<Pattern>,
    data: A,
}

impl Pattern {
    /// Blocks of axes in parts of these sizes.
    ///
    /// # Errors
    /// `Invalid` for parts of size 0 and blocks that are out of order, twice or nowhere; `TooLarge`.
    pub fn new(legs: Vec<Vec<usize>>, blocks: Vec<Vec<u32>>) -> Result<Self> {
        let op = "block pattern";
        let invalid = |message| Err(StructuredError::Invalid { op, message });
        if legs.iter().flatten().any(|&size| size == 0) {
            return invalid(format!("parts of size 0 in {legs:?}"));
        }
        if blocks.len() > MOST_BLOCKS {
            return Err(StructuredError::TooLarge { op, what: "blocks", limit: MOST_BLOCKS });
        }
        for (i, block) in blocks.iter().enumerate() {
            let inside = block.len() == legs.len()
                && block.iter().zip(&legs).all(|(&part, leg)| (part as usize) < leg.len());
            if !inside {
                return invalid(format!("block {block:?} is not one of the axes"));
            }
            if i > 0 && blocks[i - 1] >= *block {
                return invalid(format!("block {block:?} comes twice or out of order"));
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
        Ok(Self { legs, blocks, offsets, len })
    }

    /// Sizes of the parts of each axis.
    pub fn legs(&self) -> &[Vec<usize>] {
        &self.legs
    }

    /// The blocks in order.
    pub fn blocks(&self) -> &[Vec<u32>] {
        &self.blocks
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no block.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn size(&self, block: usize, axes: &[usize]) -> usize {
        let part = |&axis: &usize| self.legs[axis][self.blocks[block][axis] as usize];
        axes.iter().map(part).product()
    }

    fn key(&self, block: usize, axes: &[usize]) -> Vec<u32> {
        axes.iter().map(|&axis| self.blocks[block][axis]).collect()
    }

    /// Every block in its place with its axes in this order; none if that is how they are.
    fn turned(&self, axes: &[usize]) -> Option<Rearrange> {
        if axes.iter().copied().eq(0..axes.len()) {
            return None;
        }
        let mut build = Builder::new(self.len, self.len);
        for (i, &offset) in self.offsets.iter().enumerate() {
            let all: Vec<usize> = (0..self.legs.len()).collect();
            let axis = |(k, &axis): (usize, &usize)| Axis {
                size: self.size(i, &[axis]),
                from: self.size(i, &all[axis + 1..]),
                to: self.size(i, &axes[k + 1..]),
            };
            build.push(offset, offset, false, axes.iter().enumerate().map(axis));
        }
        Some(Rearrange { plan: Arc::new(build.finish(true, true)) })
    }
}

impl<A: Array> BlockSparseTensor<A> {
    /// A tensor of its parts.
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

    /// The blocks.
    pub fn pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The elements of all blocks.
    pub fn data(&self) -> &A {
        &self.data
    }

    /// All elements, zeros included.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn to_dense(&self) -> Result<A> {
        let p = &*self.pattern;
        let shape: Vec<usize> = p.legs.iter().map(|leg| leg.iter().sum()).collect();
        let len: usize = shape.iter().product();
        let mut build = Builder::new(p.len, len);
        for (i, block) in p.blocks.iter().enumerate() {
            let (mut to, mut axes) = (0, Vec::new());
            let all: Vec<usize> = (0..shape.len()).collect();
            for (axis, &part) in block.iter().enumerate() {
                let stride: usize = shape[axis + 1..].iter().product();
                to += stride * p.legs[axis][..part as usize].iter().sum::<usize>();
                let size = p.size(i, &[axis]);
                axes.push(Axis { size, from: p.size(i, &all[axis + 1..]), to: stride });
            }
            build.push(p.offsets[i], to, false, axes.into_iter());
        }
        let plan = Rearrange { plan: Arc::new(build.finish(true, true)) };
        Ok(one(&plan, &[&self.data])?.reshape(&shape))
    }

    /// The contraction over pairs of axes, over a semiring: the other axes of this one, then those of the
    /// other one. Over (+, ×) one operation.
    ///
    /// Cost: O(blocks + pairs log pairs) beside the products.
    ///
    /// # Errors
    /// `Axis`, `Rank`, `LegMismatch`.
    pub fn contract(
        &self,
        other: &Self,
        axes: &[usize],
        other_axes: &[usize],
        semiring: FloatSemiring,
    ) -> Result<Self> {
        let (op, a, b) = ("contract", &*self.pattern, &*other.pattern);
        if axes.len() != other_axes.len() {
            let (required, given) = (axes.len(), other_axes.len());
            return Err(StructuredError::Rank { op, required, given });
        }
        for (axes, rank) in [(axes, a.legs.len()), (other_axes, b.legs.len())] {
            for (i, &axis) in axes.iter().enumerate() {
                if axis >= rank || axes[..i].contains(&axis) {
                    return Err(StructuredError::Axis { op, axis, rank });
                }
            }
        }
        for (&axis, &other) in axes.iter().zip(other_axes) {
            if a.legs[axis] != b.legs[other] {
                return Err(StructuredError::LegMismatch {
                    op,
                    axis,
                    lhs: format!("{:?}", a.legs[axis]),
                    other,
                    rhs: format!("{:?}", b.legs[other]),
                    required: "parts of the same sizes",
                });
            }
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
        let view = |p: &Pattern, i: usize, rows: &[usize], cols: &[usize]| View {
            offset: p.offsets[i],
            rows: p.size(i, rows),
            cols: p.size(i, cols),
            transposed: false,
        };
        let (rows, cols): (Vec<usize>, Vec<usize>) =
            ((0..fa.len()).collect(), (fa.len()..fa.len() + fb.len()).collect());
        let va: Vec<View> = (0..a.blocks.len()).map(|i| view(a, i, &fa, axes)).collect();
        let vb: Vec<View> = (0..b.blocks.len()).map(|j| view(b, j, other_axes, &fb)).collect();
        let vc: Vec<View> = (0..c.blocks.len()).map(|k| view(&c, k, &rows, &cols)).collect();
        let place = |block: &Vec<u32>| c.blocks.binary_search(block).unwrap_or(0) as u32;
        let terms: Vec<[u32; 3]> =
            pairs.iter().map(|(block, i, j)| [*i as u32, *j as u32, place(block)]).collect();
        let enter_a = a.turned(&[&fa[..], axes].concat());
        let enter_b = b.turned(&[other_axes, &fb[..]].concat());
        let data = match semiring {
            FloatSemiring::Standard => {
                let lens = [a.len, b.len, c.len];
                let products = Products::new(lens, va, vb, vc, terms)?;
                let plan = |enter: Option<Rearrange>| enter.map(|enter| enter.plan);
                let plan = Contraction::new(plan(enter_a), plan(enter_b), products, None)?;
                one(&Contract::real(Arc::new(plan)), &[&self.data, &other.data])?
            }
            semiring => {
                let enter = |plan: Option<Rearrange>, x: &A| {
                    plan.map_or_else(|| Ok(x.clone()), |plan| one(&plan, &[x]))
                };
                let (x, y) = (enter(enter_a, &self.data)?, enter(enter_b, &other.data)?);
                let matrix = |x: &A, view: &View| {
                    x.narrow(0, view.offset, view.len()).reshape(&[view.rows, view.cols])
                };
                let mut parts = Vec::new();
                for own in terms.chunk_by(|s, t| s[2] == t[2]) {
                    // Terms of one block are one product with a longer sum.
                    let left: Vec<A> = own.iter().map(|t| matrix(&x, &va[t[0] as usize])).collect();
                    let right: Vec<A> =
                        own.iter().map(|t| matrix(&y, &vb[t[1] as usize])).collect();
                    let operands = [&A::cat(&left, 1), &A::cat(&right, 0)];
                    let product = contract(semiring, "ij,jk->ik", &operands)?;
                    parts.push(product.reshape(&[vc[own[0][2] as usize].len()]));
                }
                if parts.is_empty() { x.full(&[0], 0.0) } else { A::cat(&parts, 0) }
            }
        };
        Self::new(Arc::new(c), data)
    }
}
