//! Contraction of two flat arrays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_diff::array::{Kernel, PairParts};
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Meta, OnPairs, Operation, Outcome, Reverse, Value,
};

use super::{check, kernels_of, one, rearrange, shared};
use crate::error::{Result, StructuredError};
use crate::kernels;
use crate::plan::{ContractionPlan, MatrixView, Products, Rearrangement};

/// `z = Q · products(P x, P′ y)`: bilinear, and so are its derivative rules. Complex operands are handled by
/// [`Pairs<Contract>`](t4a_diff::Pairs).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Contract {
    /// Rearrangements and products.
    #[serde(with = "shared")]
    pub plan: Arc<ContractionPlan>,
}

impl Contract {
    /// Contraction of `(z̄, y)` for i = 0, or of `(x, z̄)` for i = 1, that gives the cotangent of operand `i`.
    pub fn cotangent(&self, i: usize) -> Self {
        Self { plan: self.plan.cotangent(i) }
    }
}

impl Operation for Contract {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "contract"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([2, 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let [x, y, z] = self.plan.lens();
        check(self.name(), &[x, y], inputs)?;
        Ok(vec![Meta { shape: vec![z], dtype: inputs[0].dtype }])
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        let which: Vec<usize> = (0..2).filter(|&i| tracked[1 - i]).collect();
        Keep::default().inputs(&which)
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        let moves = self.plan.shared().into_iter().flatten().map(|plan| rearrange::kernels(plan));
        kernels_of(moves.chain([vec![Kernel::Blocks]]))
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        Ok(portable(&self.plan, inputs[0].float(), inputs[1].float())?.into())
    }

    /// Operands may have complex dtypes.
    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let (x, y) = (inputs[0].float().tensor()?, inputs[1].float().tensor()?);
        Ok(Eager::from(kernels::contract(self.name(), &self.plan, x, y)?).into())
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let g = reverse.cotangent();
        let of = |i: usize| {
            let cotangent = || {
                let other = reverse.kept.float(1 - i);
                let operands = if i == 0 { [g, other] } else { [other, g] };
                one(&self.cotangent(i), &operands)
            };
            reverse.wanted[i].then(cotangent).transpose()
        };
        Ok(vec![of(0)?, of(1)?])
    }

    fn jvp<A: Array>(&self, inputs: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        let [x, y] = [inputs[0].float(), inputs[1].float()];
        let terms = [(x.tangent.as_ref(), Some(&y.value)), (Some(&x.value), y.tangent.as_ref())];
        let mut tangent: Option<A> = None;
        for (a, b) in terms {
            if let (Some(a), Some(b)) = (a, b) {
                let term = one(self, &[a, b])?;
                tangent = Some(tangent.map_or_else(|| term.clone(), |sum| sum.plus(&term)));
            }
        }
        Ok(Dual { value: one(self, &[&x.value, &y.value])?, tangent }.into())
    }

    fn on_pairs(&self) -> Result<OnPairs<Self>> {
        let cotangent = |op: &Self, i| Ok(op.cotangent(i));
        Ok(OnPairs::Bilinear { joined: is_joined(&self.plan), cotangent, in_place: true })
    }

    fn pair_product<A: Array>(
        &self,
        x: PairParts<'_, A>,
        y: PairParts<'_, A>,
        conj: [bool; 2],
    ) -> Result<Option<[A; 2]>> {
        let ([a, b], result) = (self.plan.operands(), self.plan.result());
        let (x, y) = (moved_parts(a, x)?, moved_parts(b, y)?);
        let [x, y] = [&x, &y].map(|parts| parts.each_ref().map(Option::as_ref));
        let Some([re, im]) = A::complex_block_products(x, y, conj, self.plan.blocks()) else {
            return Ok(None);
        };
        Ok(Some([moved(result, &re)?, moved(result, &im)?]))
    }
}

/// True if one complex product is at least as fast as four real ones. Ratio of their times (two-core AVX2 machine,
/// one thread, bench `complex`; D states over nine charges, steps of a two-site Hamiltonian):
///
/// ```text
///                          D = 8          64         256        1024      c64  c32
/// no rearrangement         0.45 0.47   0.89 0.92   1.01 1.08   1.01 1.00
/// operator of few states   0.37 0.42   0.66 0.72   0.83 0.88   0.67 0.69
/// result rearranged        0.38 0.42   0.77 0.73   0.97 0.93   0.97 0.98
/// ```
fn is_joined(plan: &ContractionPlan) -> bool {
    let [a, b, _] = plan.lens();
    let moves = plan.result().is_some() || plan.operands().iter().any(Option::is_some);
    moves || plan.products().steps() / (a + b).max(1) < STEPS
}

/// Multiply-adds per operand element above which the products dominate, so that joining gains nothing.
const STEPS: usize = 64;

/// Contraction of real arrays by operations of [`Array`]: gather, one product per term, scatter. Devices with kernels for
/// blocks have one launch for all products, and one or two for each rearrangement.
fn portable<A: Array>(plan: &ContractionPlan, x: &A, y: &A) -> Result<A> {
    let [a, b] = plan.operands();
    let (x, y) = (moved(a, x)?, moved(b, y)?);
    let z = x.block_products(&y, plan.blocks());
    moved(plan.result(), &z.unwrap_or_else(|| products(plan.products(), &x, &y)))
}

/// The rearrangement of an array, which is the identity if `plan` is `None`.
fn moved<A: Array>(plan: Option<&Rearrangement>, x: &A) -> Result<A> {
    plan.map_or_else(|| Ok(x.clone()), |plan| rearrange::portable(plan, x))
}

fn moved_parts<A: Array>(
    plan: Option<&Rearrangement>,
    [re, im]: PairParts<'_, A>,
) -> Result<[Option<A>; 2]> {
    let part = |x: Option<&A>| x.map(|x| moved(plan, x)).transpose();
    Ok([part(re)?, part(im)?])
}

fn products<A: Array>(plan: &Products, x: &A, y: &A) -> A {
    let [va, vb, vc] = plan.views();
    let mut groups = plan.groups().to_vec();
    groups.sort_unstable_by_key(|group| group.c);
    let mut parts: Vec<A> = Vec::new();
    for group in &groups {
        let to = vc[group.c as usize];
        let mut sum: Option<A> = None;
        for &[a, b, _] in plan.terms_of(group) {
            let (a, b) = (va[a as usize], vb[b as usize]);
            if to.is_empty() || a.is_empty() {
                continue;
            }
            let term = matrix(x, a).matmul(&matrix(y, b));
            sum = Some(sum.map_or_else(|| term.clone(), |sum| sum.plus(&term)));
        }
        if !to.is_empty() {
            let sum = sum.unwrap_or_else(|| x.full(&[to.rows, to.cols], 0.0));
            let sum = if to.transposed { sum.transpose() } else { sum };
            parts.push(sum.reshape(&[to.len()]));
        }
    }
    if parts.is_empty() { x.full(&[0], 0.0) } else { A::cat(&parts, 0) }
}

pub(super) fn matrix<A: Array>(x: &A, view: MatrixView) -> A {
    let flat = x.narrow(0, view.offset, view.len());
    match view.transposed {
        false => flat.reshape(&[view.rows, view.cols]),
        true => flat.reshape(&[view.cols, view.rows]).transpose(),
    }
}
