//! Contractions of two flat arrays.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_diff::{Array, Cotangents, Dual, Eager, Keep, Meta, Operation, Outcome, Reverse, Value};

use super::{check, one, rearrange, shared};
use crate::error::{Result, StructuredError};
use crate::kernels;
use crate::plan::{Contraction, Products, View};

/// `z = Q · products(P x, P′ y)`: bilinear. The rules are of the same kind.
///
/// Complex operands are pairs of arrays `x_re, x_im, y_re, y_im`, the result is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Contract {
    /// What is multiplied.
    #[serde(with = "shared")]
    pub plan: Arc<Contraction>,
    /// For pairs of arrays: which operands are conjugated.
    pub pairs: Option<[bool; 2]>,
}

impl Contract {
    /// Of real arrays.
    pub fn real(plan: Arc<Contraction>) -> Self {
        Self { plan, pairs: None }
    }

    fn arrays(&self) -> usize {
        1 + usize::from(self.pairs.is_some())
    }

    /// The result of real arrays.
    fn on<A: Array>(&self, x: &A, y: &A) -> Result<A> {
        one(&Self::real(self.plan.clone()), &[x, y])
    }

    /// `(x_re + i x_im)(y_re + i y_im)`, operands conjugated as asked for.
    fn on_pairs<A: Array>(&self, x: [&A; 2], y: [&A; 2], conj: [bool; 2]) -> Result<[A; 2]> {
        let (rr, ii) = (self.on(x[0], y[0])?, self.on(x[1], y[1])?);
        let (ri, ir) = (self.on(x[0], y[1])?, self.on(x[1], y[0])?);
        let re = if conj[0] == conj[1] { rr.sub(&ii) } else { rr.add(&ii) };
        let im = match conj {
            [false, false] => ri.add(&ir),
            [true, false] => ri.sub(&ir),
            [false, true] => ir.sub(&ri),
            [true, true] => ri.add(&ir).neg(),
        };
        Ok([re, im])
    }

    /// All results of arrays in the order of the operands.
    fn of<A: Array>(&self, operands: &[A]) -> Result<Vec<A>> {
        match (self.pairs, operands) {
            (None, [x, y]) => Ok(vec![self.on(x, y)?]),
            (Some(conj), [a, b, c, d]) => Ok(self.on_pairs([a, b], [c, d], conj)?.into()),
            _ => unreachable!("operands were counted"),
        }
    }

    /// The contraction of `(z̄, y)`, or of `(x, z̄)`, that is the cotangent of operand `i`.
    pub fn cotangent(&self, i: usize) -> Self {
        // The cotangent of x in xy is z̄ y*, in x* y it is z̄* y.
        let conj = |[x, y]: [bool; 2]| match i {
            0 => [x, x == y],
            _ => [x == y, y],
        };
        Self { plan: self.plan.cotangent(i), pairs: self.pairs.map(conj) }
    }
}

impl Operation for Contract {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "contract"
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let ([x, y, z], n) = (self.plan.lens(), self.arrays());
        let lens = [vec![x; n], vec![y; n]].concat();
        check(self.name(), &lens, inputs)?;
        Ok(vec![Meta { shape: vec![z], dtype: inputs[0].dtype }; n])
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        let (x, y) = tracked.split_at(self.arrays());
        let which: Vec<usize> = (0..tracked.len())
            .filter(|&i| if i < x.len() { y.contains(&true) } else { x.contains(&true) })
            .collect();
        Keep::default().inputs(&which)
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let operands: Vec<A> = inputs.iter().map(|x| x.float().clone()).collect();
        match self.pairs {
            None => Ok(portable(&self.plan, &operands[0], &operands[1])?.into()),
            Some(_) => Ok(Outcome::new(self.of(&operands)?)),
        }
    }

    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        if self.pairs.is_some() {
            return self.portable(inputs, tracked);
        }
        let (x, y) = (inputs[0].float().tensor()?, inputs[1].float().tensor()?);
        Ok(Eager::from(kernels::contract(self.name(), &self.plan, x, y)?).into())
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let (n, kept) = (self.arrays(), reverse.kept);
        let given: Vec<&A> = reverse.cotangents.iter().flatten().collect();
        let like = given.first().unwrap_or_else(|| unreachable!("one cotangent is given"));
        let whole = |g: &Option<A>| g.clone().unwrap_or_else(|| like.full(&like.shape(), 0.0));
        let g: Vec<A> = reverse.cotangents.iter().map(whole).collect();
        let mut all: Cotangents<A> = vec![None; 2 * n];
        for i in 0..2 {
            if !reverse.wanted[i * n..(i + 1) * n].contains(&true) {
                continue;
            }
            let other = ((1 - i) * n..(2 - i) * n).map(|j| kept.float(j).clone());
            let operands: Vec<A> = match i {
                0 => g.iter().cloned().chain(other).collect(),
                _ => other.chain(g.iter().cloned()).collect(),
            };
            let own = self.cotangent(i).of_tracked(&operands)?;
            for (to, own) in all[i * n..].iter_mut().zip(own) {
                *to = Some(own);
            }
        }
        Ok(all)
    }

    fn jvp<A: Array>(&self, inputs: &[Value<Dual<A>>], _: &[bool]) -> Result<Outcome<Dual<A>>> {
        let n = self.arrays();
        let duals: Vec<&Dual<A>> = inputs.iter().map(Value::float).collect();
        let values: Vec<A> = duals.iter().map(|x| x.value.clone()).collect();
        let mut tangents: Option<Vec<A>> = None;
        for i in 0..2 {
            let own = &duals[i * n..(i + 1) * n];
            if own.iter().all(|x| x.tangent.is_none()) {
                continue;
            }
            let mut operands = values.clone();
            for (to, x) in operands[i * n..].iter_mut().zip(own) {
                *to = (*x).clone().into_tangent();
            }
            let term = self.of_tracked(&operands)?;
            tangents = Some(match tangents {
                Some(sum) => sum.iter().zip(&term).map(|(a, b)| a.add(b)).collect(),
                None => term,
            });
        }
        let values = self.of_tracked(&values)?.into_iter().enumerate();
        let tangent = |i: usize| tangents.as_ref().map(|all| all[i].clone());
        Ok(Outcome::new(values.map(|(i, value)| Dual { value, tangent: tangent(i) }).collect()))
    }
}

impl Contract {
    /// All results, as one operation of whatever runs the arrays.
    fn of_tracked<A: Array>(&self, operands: &[A]) -> Result<Vec<A>> {
        super::apply(self, &operands.iter().collect::<Vec<&A>>())
    }
}

/// The contraction of real arrays in the vocabulary: gather, a product per term, scatter.
fn portable<A: Array>(plan: &Contraction, x: &A, y: &A) -> Result<A> {
    let enter = |plan: Option<&_>, x: &A| {
        plan.map_or_else(|| Ok(x.clone()), |plan| rearrange::portable(plan, x))
    };
    let [a, b] = plan.operands();
    let z = products(plan.products(), &enter(a, x)?, &enter(b, y)?);
    enter(plan.result(), &z)
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
            sum = Some(sum.map_or_else(|| term.clone(), |sum| sum.add(&term)));
        }
        if !to.is_empty() {
            let sum = sum.unwrap_or_else(|| x.full(&[to.rows, to.cols], 0.0));
            let sum = if to.transposed { sum.transpose() } else { sum };
            parts.push(sum.reshape(&[to.len()]));
        }
    }
    if parts.is_empty() { x.full(&[0], 0.0) } else { A::cat(&parts, 0) }
}

fn matrix<A: Array>(x: &A, view: View) -> A {
    let flat = x.narrow(0, view.offset, view.len());
    match view.transposed {
        false => flat.reshape(&[view.rows, view.cols]),
        true => flat.reshape(&[view.cols, view.rows]).transpose(),
    }
}
