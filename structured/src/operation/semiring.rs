//! Contraction over semirings other than (+, ×).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_diff::{Array, Cotangents, Keep, Kept, Meta, Operation, Outcome, Reverse, Value};
use t4a_einsum::{Contraction as Product, Einsum, FloatSemiring};

use super::{Rearrange, check, one, shared};
use crate::error::{Result, StructuredError};
use crate::plan::{ContractionPlan, MatrixView, Rearrangement};

/// [`Contract`](super::Contract) over a semiring: one matrix product for each matrix of the result, with all terms
/// concatenated along the contracted dimension. The reverse pass recomputes the products.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContractOver {
    /// Rearrangements, which are permutations without signs, and products.
    #[serde(with = "shared")]
    pub plan: Arc<ContractionPlan>,
    /// Semiring of the products.
    pub semiring: FloatSemiring,
}

/// Concatenated operand matrices for one matrix of the result.
struct StackedOperands<A: Array> {
    op: Product,
    inputs: [Value<A>; 2],
    /// Views of A and of B in the order of the terms.
    views: [Vec<MatrixView>; 2],
}

impl ContractOver {
    fn enter<A: Array>(plan: Option<&Arc<Rearrangement>>, x: &A) -> Result<A> {
        plan.map_or_else(|| Ok(x.clone()), |plan| one(&Rearrange { plan: plan.clone() }, &[x]))
    }

    /// Concatenated operands for each matrix of the result; `None` for a matrix without elements.
    fn sums<A: Array>(&self, x: &A, y: &A) -> Result<Vec<Option<StackedOperands<A>>>> {
        let products = self.plan.products();
        let [va, vb, vc] = products.views();
        let mut groups = products.groups().to_vec();
        groups.sort_unstable_by_key(|group| group.c);
        let mut sums = Vec::with_capacity(groups.len());
        for group in &groups {
            let to = vc[group.c as usize];
            if to.is_empty() {
                sums.push(None);
                continue;
            }
            let terms = products.terms_of(group);
            let of = |views: &[MatrixView], k: usize| -> Vec<MatrixView> {
                terms.iter().map(|term| views[term[k] as usize]).collect()
            };
            let views = [of(va, 0), of(vb, 1)];
            let gather = |x: &A, views: &[MatrixView], axis: usize, none: [usize; 2]| {
                let all: Vec<A> =
                    views.iter().map(|&view| super::contract::matrix(x, view)).collect();
                if all.is_empty() { x.full(&none, 0.0) } else { A::cat(&all, axis) }
            };
            let a = gather(x, &views[0], 1, [to.rows, 0]);
            let b = gather(y, &views[1], 0, [0, to.cols]);
            let shapes = [a.shape(), b.shape()];
            let shapes: Vec<&[usize]> = shapes.iter().map(|shape| &shape[..]).collect();
            let plan = Einsum::new("ij,jk->ik")?.plan(&shapes, x.dtype().size())?;
            let op = Product { plan, semiring: self.semiring };
            sums.push(Some(StackedOperands {
                op,
                inputs: [Value::Float(a), Value::Float(b)],
                views,
            }));
        }
        Ok(sums)
    }
}

impl Operation for ContractOver {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "contract_over"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([2, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let op = self.name();
        let [x, y, z] = self.plan.lens();
        check(op, &[x, y], inputs)?;
        // A rearrangement with gaps or signs is defined over (+, ×) only.
        let is_permutation = |plan: &&Arc<Rearrangement>| {
            plan.is_full() && !plan.moves().iter().any(|one| one.negative)
        };
        let dense = self.plan.products().views()[2].iter().all(|view| !view.transposed);
        if !self.plan.shared().iter().flatten().all(is_permutation) || !dense {
            let message = "over a semiring blocks are permuted, without signs".into();
            return Err(StructuredError::Invalid { op, message });
        }
        Ok(vec![Meta { shape: vec![z], dtype: inputs[0].dtype }])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let [a, b, c] = self.plan.shared();
        let (x, y) = (Self::enter(a, inputs[0].float())?, Self::enter(b, inputs[1].float())?);
        let mut parts = Vec::new();
        for sum in self.sums(&x, &y)?.into_iter().flatten() {
            let z = A::apply(&sum.op, &sum.inputs, &[false; 2])?.results.swap_remove(0);
            parts.push(z.reshape(&[z.shape().iter().product()]));
        }
        let z = if parts.is_empty() { x.full(&[0], 0.0) } else { A::cat(&parts, 0) };
        Ok(Self::enter(c, &z)?.into())
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let ([a, b, c], wanted) = (self.plan.shared(), reverse.wanted);
        let adjoint = |plan: Option<&Arc<Rearrangement>>| plan.map(|plan| plan.adjoint());
        let operands = [(a, 0), (b, 1)];
        let entered = operands.map(|(plan, i)| Self::enter(plan, reverse.kept.float(i)));
        let [x, y] = entered;
        let (x, y) = (x?, y?);
        let g = Self::enter(adjoint(c).as_ref(), reverse.cotangent())?;
        let [va, vb, vc] = self.plan.products().views();
        // For each operand matrix, the sum of its cotangents.
        let mut all: [Vec<Option<A>>; 2] = [vec![None; va.len()], vec![None; vb.len()]];
        let place = |views: &[MatrixView], view: MatrixView| {
            // Empty matrices share their offset with the next matrix and have no cotangent.
            views.iter().position(|other| *other == view).unwrap_or(0)
        };
        for (sum, &to) in self.sums(&x, &y)?.into_iter().zip(vc) {
            let Some(sum) = sum else { continue };
            let out = A::apply(&sum.op, &sum.inputs, wanted)?;
            let kept = Kept::new(sum.op.keep(wanted), &sum.inputs, &out);
            let g = super::contract::matrix(&g, to);
            let cotangents = [Some(g)];
            let own = sum.op.vjp(&Reverse {
                kept: &kept,
                cotangents: &cotangents,
                hidden: &[],
                wanted,
            })?;
            for (i, (own, views)) in own.into_iter().zip(&sum.views).enumerate() {
                let Some(own) = own else { continue };
                let (mut next, axis) = (0, 1 - i);
                for &view in views {
                    let size = [view.rows, view.cols][axis];
                    let part = own.narrow(axis, next, size);
                    next += size;
                    if view.is_empty() {
                        continue;
                    }
                    let to = &mut all[i][place([va, vb][i], view)];
                    *to = Some(to.take().map_or_else(|| part.clone(), |sum| sum.add(&part)));
                }
            }
        }
        let joined = |(i, parts): (usize, Vec<Option<A>>)| {
            if !wanted[i] {
                return Ok(None);
            }
            let views = [va, vb][i];
            let flat = |(part, view): (Option<A>, &MatrixView)| {
                let Some(part) = part else { return x.full(&[view.len()], 0.0) };
                let part = if view.transposed { part.transpose() } else { part };
                part.reshape(&[view.len()])
            };
            let parts: Vec<A> = parts.into_iter().zip(views).map(flat).collect();
            let g = if parts.is_empty() { x.full(&[0], 0.0) } else { A::cat(&parts, 0) };
            Self::enter(adjoint(operands[i].0).as_ref(), &g).map(Some)
        };
        all.into_iter().enumerate().map(joined).collect()
    }
}
