//! Linear algebra on the matrices of coupled sectors.

use std::cmp;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use t4a_algebra::parallel;
use t4a_diff::array::Kernel;
use t4a_diff::{Array, Cotangents, Eager, Keep, Kept, Meta, Operation, Outcome, Reverse, Value};
use t4a_linalg::operation::PartKind;
use t4a_linalg::{Linalg, LinalgError, MatrixOp, undivided};

use super::{check, kernels_of, shared};
use crate::error::{Result, StructuredError};
use crate::plan::MatrixList;

/// Applies a matrix operation to each matrix of a buffer. Result `i` of all matrices is one flat array, in the order
/// given by the plan. Derivative rules are those of the matrix operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ByMatrix {
    /// Operation on one matrix.
    pub op: MatrixOp,
    /// True if complex operands and results are pairs of real arrays.
    pub complex: bool,
    /// Sizes and orders of the matrices.
    #[serde(with = "shared")]
    pub plan: Arc<MatrixList>,
}

/// Multiply-adds below which one thread executes all factorisations.
const FEW_STEPS: usize = 1 << 17;

/// The elements in row-major order.
fn flat<A: Array>(x: &A) -> A {
    x.reshape(&[x.shape().iter().product()])
}

impl ByMatrix {
    fn linalg(&self) -> Linalg {
        Linalg { op: self.op, complex: self.complex }
    }

    fn operands(&self) -> usize {
        1 + usize::from(self.complex)
    }

    /// For each array of the results, the index of its result.
    fn arrays(&self) -> Vec<usize> {
        let arrays = |kind: &PartKind| match kind {
            PartKind::Full => self.operands(),
            PartKind::Real => 1,
            PartKind::Complex => 2,
        };
        let kinds = self.op.results().iter().enumerate();
        kinds.flat_map(|(i, kind)| vec![i; arrays(kind)]).collect()
    }

    /// Size of result `i` for each matrix.
    fn sizes(&self, i: usize) -> Vec<[usize; 2]> {
        self.plan.sizes().iter().map(|&size| self.op.sizes(&[size])[i]).collect()
    }

    /// Splits the buffer into its matrices.
    fn matrices<A: Array>(&self, x: &A) -> Vec<A> {
        let mut next = 0;
        let one = |&[m, n]: &[usize; 2]| {
            next += m * n;
            x.narrow(0, next - m * n, m * n).reshape(&[m, n])
        };
        self.plan.sizes().iter().map(one).collect()
    }

    /// Operands of the matrix operation for each matrix.
    fn inputs<A: Array>(&self, inputs: impl IntoIterator<Item = A>) -> Vec<Vec<Value<A>>> {
        let mut all = vec![Vec::new(); self.plan.sizes().len()];
        for x in inputs {
            for (all, x) in all.iter_mut().zip(self.matrices(&x)) {
                all.push(Value::Float(x));
            }
        }
        all
    }

    /// Concatenates the results of all matrices.
    fn join<A: Array>(&self, like: &A, parts: &[Outcome<A>]) -> Outcome<A> {
        let array = |(k, i): (usize, usize)| {
            let part = |&place: &u32| flat(&parts[place as usize].results[k]);
            let all: Vec<A> = self.plan.orders()[i].iter().map(part).collect();
            if all.is_empty() { like.full(&[0], 0.0) } else { A::cat(&all, 0) }
        };
        Outcome::new(self.arrays().into_iter().enumerate().map(array).collect())
    }

    /// Splits the result arrays by matrix.
    fn split<A: Array>(&self, results: &[Option<A>]) -> Vec<Vec<Option<A>>> {
        let mut all = vec![vec![None; results.len()]; self.plan.sizes().len()];
        for (k, (x, i)) in results.iter().zip(self.arrays()).enumerate() {
            let Some(x) = x else { continue };
            let (sizes, mut next) = (self.sizes(i), 0);
            for &place in &self.plan.orders()[i] {
                let [m, n] = sizes[place as usize];
                all[place as usize][k] = Some(x.narrow(0, next, m * n).reshape(&[m, n]));
                next += m * n;
            }
        }
        all
    }

    /// Cotangents of the buffer, by the rule of the matrix operation.
    fn back<A: Array>(
        &self,
        reverse: &Reverse<'_, A>,
        rule: impl Fn(&Linalg, &Reverse<'_, A>) -> Result<Cotangents<A>, LinalgError>,
    ) -> Result<Cotangents<A>> {
        let (op, n) = (self.linalg(), self.operands());
        let operands: Vec<A> = (0..n).map(|i| reverse.kept.float(i).clone()).collect();
        let inputs = self.inputs(operands.iter().cloned());
        let results = (0..self.arrays().len()).map(|k| Some(reverse.kept.result(k).clone()));
        let results = self.split(&results.collect::<Vec<_>>());
        let cotangents = self.split(reverse.cotangents);
        let tracked = vec![true; n];
        let mut parts = vec![Vec::new(); n];
        for (k, inputs) in inputs.iter().enumerate() {
            let size = self.plan.sizes()[k];
            // Auxiliary data that the operation saves has no common layout for all matrices: the forward pass is
            // repeated.
            let saves = !self.op.hidden().is_empty() || self.op.saves(size, true).is_some();
            let out = match saves {
                true => A::apply(&op, inputs, &tracked)?,
                false => Outcome::new(results[k].iter().flatten().cloned().collect()),
            };
            let own: Cotangents<A> = match cotangents[k].iter().all(Option::is_none) {
                true => vec![None; n],
                false => {
                    let kept = Kept::new(op.keep(&tracked), inputs, &out);
                    let cotangents = &cotangents[k][..];
                    rule(&op, &Reverse { kept: &kept, cotangents, hidden: &[], wanted: &tracked })?
                }
            };
            for ((part, own), x) in parts.iter_mut().zip(own).zip(&operands) {
                let len = size[0] * size[1];
                part.push(own.map_or_else(|| x.full(&[len], 0.0), |g| g.reshape(&[len])));
            }
        }
        let joined = |(parts, x): (Vec<A>, &A)| {
            Some(if parts.is_empty() { x.full(&[0], 0.0) } else { A::cat(&parts, 0) })
        };
        Ok(parts.into_iter().zip(&operands).map(joined).collect())
    }

    /// Operands of the operation on each matrix, given those of this operation.
    fn metas(&self, inputs: &[Meta]) -> impl Iterator<Item = Vec<Meta>> {
        let (n, dtype) = (self.operands(), inputs[0].dtype);
        let of = move |&size: &[usize; 2]| vec![Meta { shape: size.to_vec(), dtype }; n];
        self.plan.sizes().iter().map(of)
    }
}

impl Operation for ByMatrix {
    type Error = StructuredError;

    fn name(&self) -> &'static str {
        "by_matrix"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.operands(), self.arrays().len()])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let (op, n) = (self.name(), self.operands());
        check(op, &vec![self.plan.len(); n], inputs)?;
        if self.op.operands().count() != 1 || self.plan.orders().len() != self.op.results().len() {
            let (of, orders) = (self.op.name(), self.plan.orders().len());
            let message = format!("{of} of one matrix each, with {orders} orders of results");
            return Err(StructuredError::Invalid { op, message });
        }
        for one in self.metas(inputs) {
            self.linalg().results(&one)?;
        }
        let len = |i: usize| self.sizes(i).iter().map(|[m, n]| m * n).sum();
        let meta = |i: usize| Meta { shape: vec![len(i)], dtype: inputs[0].dtype };
        Ok(self.arrays().into_iter().map(meta).collect())
    }

    /// Those of all matrices.
    fn kernels(&self, inputs: &[Meta]) -> Vec<Kernel> {
        let op = self.linalg();
        kernels_of(self.metas(inputs).map(|x| op.kernels(&x)))
    }

    /// As [`Linalg`].
    fn is_on_host(&self) -> bool {
        true
    }

    fn portable<A: Array>(&self, inputs: &[Value<A>], _: &[bool]) -> Result<Outcome<A>> {
        let op = self.linalg();
        let all = self.inputs(inputs.iter().map(|x| x.float().clone()));
        let untracked = vec![false; inputs.len()];
        let parts = all.iter().map(|x| A::apply(&op, x, &untracked)).collect::<Result<Vec<_>, _>>();
        Ok(self.join(inputs[0].float(), &parts?))
    }

    fn forward(&self, inputs: &[Value<Eager>], _: &[bool]) -> Result<Outcome<Eager>> {
        let op = self.linalg();
        let all = self.inputs(inputs.iter().map(|x| x.float().clone()));
        let untracked = vec![false; inputs.len()];
        let steps = |k: usize| {
            let [m, n] = self.plan.sizes()[k];
            m.saturating_mul(n).saturating_mul(m.min(n))
        };
        let total = (0..all.len()).map(steps).fold(0, usize::saturating_add);
        // The largest first: it takes longest.
        let mut order: Vec<usize> = (0..all.len()).collect();
        order.sort_by_key(|&k| cmp::Reverse(steps(k)));
        let mut parts: Vec<(usize, Result<Outcome<Eager>, LinalgError>)> =
            order.into_iter().map(|k| (k, Ok(Outcome::new(Vec::new())))).collect();
        // Results are copied to row-major order by the thread that computed them.
        let one = |(k, part): &mut (usize, Result<_, _>)| {
            *part = op
                .forward(&all[*k], &untracked)
                .map(|out: Outcome<Eager>| Outcome::new(out.results.iter().map(flat).collect()));
        };
        // A matrix with most of the work uses all threads, the others one each, on any number of threads.
        let large = parts.iter().take_while(|(k, _)| steps(*k) / 2 > total / 3).count();
        let (large, small) = parts.split_at_mut(large);
        large.iter_mut().for_each(one);
        parallel::for_each_mut(small, total > FEW_STEPS, |_, part| undivided(|| one(part)));
        parts.sort_by_key(|&(k, _)| k);
        let parts = parts.into_iter().map(|(_, part)| part).collect::<Result<Vec<_>, _>>()?;
        Ok(self.join(inputs[0].float(), &parts))
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs().all_results()
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        self.back(reverse, Linalg::vjp)
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        self.back(reverse, Linalg::fused_vjp)
    }
}
