//! Extraction of matrix products from the steps: instead of one row or column per step, one large product for several steps.
//!
//! ```text
//! given    x · U           with an x of xs and a loop-invariant U: computed before the steps
//! results  y = V · U       with a loop-invariant U, if y is used by no instruction: computed after the steps
//! sums     c ← c + Aᵀ · B  if c is used by no other instruction: computed after a block of steps
//! ```

use std::collections::HashMap;
use std::ops::Range;

use burn_backend::Backend;

use crate::fuse::{BinaryOp, Elementwise};
use crate::program::live;
use crate::recording::Instruction;
use crate::scan::products::Sizes;
use crate::tensor::TensorType;

/// Minimum number of multiply-adds `m·k·n` of a product that is extracted.
const LEAST: usize = 64;

/// Product `[m, k] · [k, n]` of each step; operands and result are values of the body.
pub(super) struct Product {
    /// Left operand, and the loop-invariant right operand.
    pub(super) x: usize,
    pub(super) matrix: usize,
    /// Result.
    pub(super) out: usize,
    pub(super) sizes: Sizes,
}

/// Accumulation of `Aᵀ · B` into the carry with this index, with A `[k, m]` and B `[k, n]`.
pub(super) struct Sum {
    pub(super) carry: usize,
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// Extracted products.
#[derive(Default)]
pub(super) struct Whole {
    pub(super) given: Vec<Product>,
    /// Products that are ys, with the index of the y.
    pub(super) results: Vec<(usize, Product)>,
    pub(super) sums: Vec<Sum>,
}

/// Body during the extraction of products.
pub(super) struct Search<'a, B: Backend> {
    pub(super) metas: &'a [TensorType],
    pub(super) steps: Vec<Instruction<B>>,
    /// Values of the new carries, then of the ys.
    pub(super) outputs: Vec<usize>,
    /// Values of the carries and of the xs.
    pub(super) carries: Range<usize>,
    pub(super) xs: Range<usize>,
    pub(super) moving: &'a [bool],
}

impl<B: Backend> Search<'_, B> {
    /// Extracts products. An output that is a product is replaced by the left operand of the product.
    pub(super) fn run(&mut self) -> Whole {
        let mut whole = Whole::default();
        self.sums(&mut whole.sums);
        let uses = self.uses(&whole.sums);
        let mut gone = Vec::new();
        for one in &self.steps {
            let Some(product) = self.product(one) else { continue };
            if self.xs.contains(&product.x) {
                gone.push(one.first);
                whole.given.push(product);
                continue;
            }
            let ys = &mut self.outputs[self.carries.len()..];
            if let Some(y) = ys.iter().position(|&v| v == product.out)
                && uses[product.out] == 1
            {
                ys[y] = product.x;
                gone.push(one.first);
                whole.results.push((y, product));
            }
        }
        self.steps.retain(|one| !gone.contains(&one.first));
        whole
    }

    /// Number of uses of each value by instructions, outputs and extracted sums.
    fn uses(&self, sums: &[Sum]) -> Vec<usize> {
        let mut uses = vec![0; self.metas.len()];
        let operands = self.steps.iter().flat_map(|one| &one.operands);
        let of_sums = sums.iter().flat_map(|sum| [&sum.a, &sum.b]);
        operands.chain(&self.outputs).chain(of_sums).for_each(|&v| uses[v] += 1);
        uses
    }

    /// The instruction as a product with a loop-invariant matrix.
    fn product(&self, one: &Instruction<B>) -> Option<Product> {
        let &[x, matrix] = &one.operands[..] else { return None };
        if !matches!(one.name, "float_matmul" | "linear") || self.moving[matrix] {
            return None;
        }
        let sizes = Sizes::new(&self.metas[x].shape, &self.metas[matrix].shape)?.merged(false);
        let large = sizes.batch == 1 && sizes.m * sizes.k * sizes.n >= LEAST;
        (large && !sizes.transposed).then_some(Product { x, matrix, out: one.first, sizes })
    }

    /// Extracts products that are accumulated into carries.
    fn sums(&mut self, sums: &mut Vec<Sum>) {
        let made: HashMap<usize, usize> =
            self.steps.iter().enumerate().map(|(at, one)| (one.first, at)).collect();
        for carry in 0..self.carries.len() {
            let uses = self.uses(sums);
            let own = self.carries.start + carry;
            if uses[own] != 1 || uses[self.outputs[carry]] != 1 {
                continue;
            }
            let (sum, mut terms) = (self.outputs[carry], Vec::new());
            self.terms(sum, &made, &uses, &mut terms);
            if terms.iter().filter(|&&v| v == own).count() != 1 {
                continue;
            }
            let (mut found, mut changed) = (Vec::new(), Vec::new());
            let rest = self.without_products(sum, &made, &uses, &mut found, &mut changed);
            let Some(rest) = rest.filter(|_| !found.is_empty()) else { continue };
            for (at, operands) in changed {
                self.steps[at].operands = operands;
            }
            self.outputs[carry] = rest;
            sums.extend(found.into_iter().map(|sum| Sum { carry, ..sum }));
        }
        // Dead code elimination.
        let of_sums = sums.iter().flat_map(|sum| [sum.a, sum.b]);
        let needed: Vec<usize> = self.outputs.iter().copied().chain(of_sums).collect();
        self.steps = live(std::mem::take(&mut self.steps), &needed, self.metas.len());
    }

    /// Operands of the addition that computes `v`, if no operand is broadcast and `v` has one use.
    fn addition(
        &self,
        v: usize,
        made: &HashMap<usize, usize>,
        uses: &[usize],
    ) -> Option<[usize; 2]> {
        let one = &self.steps[*made.get(&v)?];
        let is_sum = one.elementwise == Some(Elementwise::Binary(BinaryOp::Add)) && uses[v] == 1;
        let &[a, b] = &one.operands[..] else { return None };
        let same = |x: usize| self.metas[x].shape == self.metas[v].shape;
        (is_sum && same(a) && same(b)).then_some([a, b])
    }

    /// Collects the terms of a nested sum.
    fn terms(&self, v: usize, made: &HashMap<usize, usize>, uses: &[usize], out: &mut Vec<usize>) {
        match self.addition(v, made, uses) {
            Some([a, b]) => {
                self.terms(a, made, uses, out);
                self.terms(b, made, uses, out);
            }
            None => out.push(v),
        }
    }

    /// Removes the products from a nested sum. Returns the value of the remaining sum, `None` if there is no other term;
    /// `found` receives the products, `changed` the additions with new operands.
    fn without_products(
        &self,
        v: usize,
        made: &HashMap<usize, usize>,
        uses: &[usize],
        found: &mut Vec<Sum>,
        changed: &mut Vec<(usize, Vec<usize>)>,
    ) -> Option<usize> {
        if let Some([a, b]) = self.addition(v, made, uses) {
            let a = self.without_products(a, made, uses, found, changed);
            let b = self.without_products(b, made, uses, found, changed);
            return match (a, b) {
                (Some(a), Some(b)) => {
                    changed.push((made[&v], vec![a, b]));
                    Some(v)
                }
                (a, b) => a.or(b),
            };
        }
        match self.outer(v, made, uses) {
            Some(sum) => {
                found.push(sum);
                None
            }
            None => Some(v),
        }
    }

    /// The product `Aᵀ · B` that computes `v`, if `v` has one use.
    fn outer(&self, v: usize, made: &HashMap<usize, usize>, uses: &[usize]) -> Option<Sum> {
        let one = &self.steps[*made.get(&v)?];
        if one.name != "float_matmul" || uses[v] != 1 {
            return None;
        }
        let &[left, b] = &one.operands[..] else { return None };
        let shape = |v: usize| &self.metas[v].shape[..];
        let (&[m, k], &[_, n]) = (shape(left), shape(b)) else { return None };
        let turned = made.get(&left).map(|&at| &self.steps[at]).filter(|one| {
            matches!(one.name, "float_transpose" | "float_swap_dims" | "float_permute")
                && shape(one.operands[0]) == [k, m]
                && (m != k || one.name != "float_permute")
        });
        let a = match turned {
            Some(one) => one.operands[0],
            None if k == 1 => left,
            None => return None,
        };
        (m * k * n >= LEAST).then_some(Sum { carry: 0, a, b, m, k, n })
    }
}
