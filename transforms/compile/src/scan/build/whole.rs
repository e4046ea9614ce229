//! Products that are formed of all steps, or of many, at once: large ones, where a step has a row or a column.
//!
//! ```text
//! given    x · U                of an x of xs and a U that does not change: before the steps
//! results  y = V · U            of a y that nothing else reads: after the steps
//! sums     c ← c + Aᵀ · B       of a carry that nothing else reads: after some steps, of A and B of all of these
//! ```

use std::collections::HashMap;
use std::ops::Range;

use burn_backend::Backend;

use crate::fuse::{Binary, Elementwise};
use crate::program::live;
use crate::recording::Instruction;
use crate::scan::products::Sizes;
use crate::tensor::Meta;

/// Steps `m·k·n` from which a product is taken out of the steps.
const LEAST: usize = 64;

/// `[m, k] · [k, n]` of every step, by the values that they are.
pub(super) struct Product {
    /// The value that changes, and the one that does not.
    pub(super) x: usize,
    pub(super) matrix: usize,
    /// The result.
    pub(super) out: usize,
    pub(super) sizes: Sizes,
}

/// A carry, by its number, to which `Aᵀ · B` is added, with A `[k, m]` and B `[k, n]`.
pub(super) struct Sum {
    pub(super) carry: usize,
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// The products that leave the steps.
#[derive(Default)]
pub(super) struct Whole {
    pub(super) given: Vec<Product>,
    /// With the number of the y.
    pub(super) results: Vec<(usize, Product)>,
    pub(super) sums: Vec<Sum>,
}

/// A body, from which products are taken.
pub(super) struct Search<'a, B: Backend> {
    pub(super) metas: &'a [Meta],
    pub(super) steps: Vec<Instruction<B>>,
    /// Carries, then ys.
    pub(super) outputs: Vec<usize>,
    /// The values of carries and of xs.
    pub(super) carries: Range<usize>,
    pub(super) xs: Range<usize>,
    pub(super) moving: &'a [bool],
}

impl<B: Backend> Search<'_, B> {
    /// Takes out what can be; outputs that are results of products become what is multiplied.
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

    /// The number of reads of each value, by these sums as well.
    fn uses(&self, sums: &[Sum]) -> Vec<usize> {
        let mut uses = vec![0; self.metas.len()];
        let operands = self.steps.iter().flat_map(|one| &one.operands);
        let of_sums = sums.iter().flat_map(|sum| [&sum.a, &sum.b]);
        operands.chain(&self.outputs).chain(of_sums).for_each(|&v| uses[v] += 1);
        uses
    }

    /// One product with a matrix that does not change.
    fn product(&self, one: &Instruction<B>) -> Option<Product> {
        let &[x, matrix] = &one.operands[..] else { return None };
        if !matches!(one.name, "float_matmul" | "linear") || self.moving[matrix] {
            return None;
        }
        let sizes = Sizes::new(&self.metas[x].shape, &self.metas[matrix].shape)?.merged(false);
        let large = sizes.batch == 1 && sizes.m * sizes.k * sizes.n >= LEAST;
        (large && !sizes.transposed).then_some(Product { x, matrix, out: one.first, sizes })
    }

    /// Sums of products that are added to carries.
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
        // Instructions that only these products needed are dropped.
        let of_sums = sums.iter().flat_map(|sum| [sum.a, sum.b]);
        let needed: Vec<usize> = self.outputs.iter().copied().chain(of_sums).collect();
        self.steps = live(std::mem::take(&mut self.steps), &needed, self.metas.len());
    }

    /// The addition that a value is, if its operands have its shape and only one instruction reads it.
    fn addition(
        &self,
        v: usize,
        made: &HashMap<usize, usize>,
        uses: &[usize],
    ) -> Option<[usize; 2]> {
        let one = &self.steps[*made.get(&v)?];
        let is_sum = one.elementwise == Some(Elementwise::Binary(Binary::Add)) && uses[v] == 1;
        let &[a, b] = &one.operands[..] else { return None };
        let same = |x: usize| self.metas[x].shape == self.metas[v].shape;
        (is_sum && same(a) && same(b)).then_some([a, b])
    }

    /// The terms of a sum.
    fn terms(&self, v: usize, made: &HashMap<usize, usize>, uses: &[usize], out: &mut Vec<usize>) {
        match self.addition(v, made, uses) {
            Some([a, b]) => {
                self.terms(a, made, uses, out);
                self.terms(b, made, uses, out);
            }
            None => out.push(v),
        }
    }

    /// The value that a sum is without its products, and the instructions that change for that.
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

    /// The product `Aᵀ · B` that a value is, if nothing else reads it.
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
