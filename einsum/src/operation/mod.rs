//! Contractions as operations with a derivative.
//!
//! ```text
//! Contraction   a plan over a semiring: shapes, forward, vjp, jvp, portable definition
//! tag           semirings as values, with names for those of this crate
//! semiring      ArraySemiring: trait of a semiring expressed in array operations
//! custom        user-defined semirings as values; dispatch from value to kernels
//! portable      contractions of one or two operands in array operations
//! arrays        contractions of arrays by subscripts
//! optima        argmax, number of optima and K best values, without a derivative
//! pairs         complex numbers as pairs: the steps, and the kernel
//! elements      contractions of elements without a derivative, such as integers and counts, on devices
//! axes          labelled axes of arrays ⇄ batches of matrices
//! engine        dispatch from any float dtype to the typed contraction
//! ```

mod arrays;
mod axes;
mod custom;
mod elements;
mod engine;
mod optima;
mod pairs;
mod portable;
pub(crate) mod semiring;
mod tag;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use t4a_diff::array::{Kernel, PairParts};
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Meta, OnBatch, OnPairs, Operation, Outcome, Reverse,
    Value,
};
use t4a_tensor::{AnyTensor, TensorError};

pub use arrays::contract_arrays;
pub use custom::Custom;
pub use elements::{DeviceElements, MovableAxes};
pub use optima::{MOST_BEST, Optima, OptimalAssignments};
pub use semiring::ArraySemiring;
pub use tag::{FloatSemiring, Tag};

use crate::error::{EinsumError, Result};
use crate::plan::Plan;
use crate::rules::Share;

/// The contraction of a plan over a semiring: one result.
///
/// A tape records one node for every step of the plan, which stores intermediates. A plan with sliced labels is one
/// node that stores only the operands.
///
/// For a selective semiring (each sum equals one of its terms) and two operands with one tracked, [`Outcome::extra`] is
/// the argmax: for `C[batch, left, right]` of [`Plan::roles`] the index of the first such term over the summed labels,
/// `u32` on the engine. An index out of range marks a sum equal to the zero of the semiring.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Contraction<G = FloatSemiring> {
    /// Labels, shapes and contraction order.
    #[cfg_attr(feature = "serde", serde(with = "crate::data"))]
    pub plan: Arc<Plan>,
    /// The semiring.
    pub semiring: G,
}

impl<G: Tag> fmt::Display for Contraction<G> {
    /// Semiring, subscripts and shapes, such as `max_plus einsum ij,jk->ik of [2, 3], [3, 4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.semiring.name(), self.name(), self.plan)
    }
}

impl<G: Tag> Contraction<G> {
    /// Executes the plan step by step.
    fn by_steps<A: Array>(&self, operands: Vec<A>) -> Result<A> {
        let mut slots: Vec<Option<A>> = operands.into_iter().map(Some).collect();
        for step in self.plan.steps()? {
            // Every slot is read once.
            let taken: Vec<A> = step.slots.iter().filter_map(|&slot| slots[slot].take()).collect();
            slots.push(Some(self.step(&step.plan).one(&taken)?));
        }
        Ok(slots.pop().flatten().unwrap_or_else(|| unreachable!("a plan has a last step")))
    }

    /// The contraction of one step.
    fn step(&self, plan: &Arc<Plan>) -> Self {
        Self { plan: plan.clone(), semiring: self.semiring }
    }

    /// The result for these operands.
    fn one<A: Array>(&self, operands: &[A]) -> Result<A> {
        let inputs: Vec<Value<A>> = operands.iter().cloned().map(Value::Float).collect();
        let out = A::apply(self, &inputs, &vec![false; inputs.len()])?;
        Ok(out.results.into_iter().next().unwrap_or_else(|| unreachable!("one result")))
    }

    /// True for two operands over a selective semiring; the reverse pass then reads the argmax.
    fn has_argmax(&self) -> bool {
        self.semiring.share() == Share::Argmax && self.plan.operands() == 2
    }

    /// A plan of one or two operands without slices.
    fn is_step(&self) -> bool {
        self.plan.operands() <= 2 && self.plan.sliced().is_empty()
    }

    /// Cotangents of one or two operands.
    fn vjp_step<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let &Reverse { kept, wanted, .. } = reverse;
        let (g, n) = (reverse.cotangent(), self.plan.operands());
        if self.plan.is_empty() {
            let zeros = |i: usize| wanted[i].then(|| g.full(self.shape(i), 0.0));
            return Ok((0..n).map(zeros).collect());
        }
        if self.semiring.share() == Share::Linear {
            let cotangent = |i: usize| {
                let plan = self.plan.cotangent(i)?;
                let other = (n == 2).then(|| kept.float(1 - i).clone());
                let operands: Vec<A> = [g.clone()].into_iter().chain(other).collect();
                Contraction { plan, semiring: FloatSemiring::Standard }.one(&operands)
            };
            return (0..n).map(|i| wanted[i].then(|| cotangent(i)).transpose()).collect();
        }
        let operands: Vec<&A> = (0..n).map(|i| kept.float(i)).collect();
        let places = kept.extra.first().map(Value::integers);
        let all = portable::vjp(&self.semiring, &self.plan, &operands, places, g);
        Ok(all.into_iter().zip(wanted).map(|(g, &wanted)| wanted.then_some(g)).collect())
    }

    /// Cotangents of all operands; intermediates are recomputed.
    fn vjp_by_steps<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        let n = self.plan.operands();
        let mut slots: Vec<A> = (0..n).map(|i| reverse.kept.float(i).clone()).collect();
        let mut wanted = reverse.wanted.to_vec();
        let mut done = Vec::new();
        for step in self.plan.steps()? {
            let of = |slot: &usize| Value::Float(slots[*slot].clone());
            let inputs: Vec<Value<A>> = step.slots.iter().map(of).collect();
            let tracked: Vec<bool> = step.slots.iter().map(|&slot| wanted[slot]).collect();
            let op = self.step(&step.plan);
            let out = A::apply(&op, &inputs, &tracked)?;
            let kept = t4a_diff::Kept::new(op.keep(&tracked), &inputs, &out);
            wanted.push(tracked.contains(&true));
            slots.extend(out.results);
            done.push((step, op, kept, tracked));
        }
        let mut cotangents: Cotangents<A> = vec![None; slots.len()];
        if let Some(last) = cotangents.last_mut() {
            *last = Some(reverse.cotangent().clone());
        }
        for (s, (step, op, kept, wanted)) in done.iter().enumerate().rev() {
            let Some(g) = cotangents[n + s].take().filter(|_| wanted.contains(&true)) else {
                continue;
            };
            let reverse = Reverse { kept, cotangents: &[Some(g)], hidden: &[], wanted };
            for (&slot, g) in step.slots.iter().zip(op.vjp_step(&reverse)?) {
                cotangents[slot] = g;
            }
        }
        cotangents.truncate(n);
        Ok(cotangents)
    }

    fn shape(&self, i: usize) -> &[usize] {
        self.plan.operand_shape(i).unwrap_or(&[])
    }
}

/// True if the shapes agree; a scalar may have shape `[1]`, for arrays without rank 0.
fn fits(required: &[usize], given: &[usize]) -> bool {
    required == given || (required.is_empty() && given == [1])
}

/// The engine tensor reshaped to the shape of the plan.
fn entered<'a>(x: &'a Eager, shape: &[usize]) -> Result<Cow<'a, AnyTensor>> {
    let x = x.tensor()?;
    Ok(if x.shape() == shape { Cow::Borrowed(x) } else { Cow::Owned(x.reshape(shape)?) })
}

impl<G: Tag> Operation for Contraction<G> {
    type Error = EinsumError;

    fn name(&self) -> &'static str {
        "einsum"
    }

    fn arity(&self) -> Option<[usize; 2]> {
        Some([self.plan.operands(), 1])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>> {
        let n = self.plan.operands();
        if inputs.len() != n {
            return Err(EinsumError::OperandCount { expected: n, given: inputs.len() });
        }
        let first = inputs[0].dtype;
        for (operand, Meta { shape, dtype }) in inputs.iter().enumerate() {
            if *dtype != first {
                return Err(EinsumError::DTypeMismatch { first, operand, dtype: *dtype });
            }
            let expected = self.shape(operand);
            if !fits(expected, shape) {
                let (expected, given) = (expected.to_vec(), shape.clone());
                return Err(EinsumError::PlanShape { operand, expected, given });
            }
        }
        if !first.is_float() {
            let (op, expected) = (self.name(), "a float");
            return Err(TensorError::DTypeUnsupported { op, dtype: first, expected }.into());
        }
        Ok(vec![Meta { shape: self.plan.shape(), dtype: first }])
    }

    fn keep(&self, tracked: &[bool]) -> Keep {
        match (self.semiring.share(), tracked) {
            // The cotangent of one factor needs the other factor.
            (Share::Linear, [_]) if self.is_step() => Keep::default(),
            (Share::Linear, &[a, b]) if self.is_step() => {
                let keep = if a { Keep::default().inputs(&[1]) } else { Keep::default() };
                if b { keep.inputs(&[0]) } else { keep }
            }
            _ => Keep::default().all_inputs(),
        }
    }

    fn kernels(&self, _: &[Meta]) -> Vec<Kernel> {
        let linear = self.semiring.share() == Share::Linear;
        match self.plan.operands() {
            1 => vec![Kernel::Reduction],
            _ if linear => vec![Kernel::Matmul],
            _ => self.semiring.kernel().map(Kernel::Semiring).into_iter().collect(),
        }
    }

    /// Over semirings other than (+, ×) the memory is that of all terms of a step, unless the array type has a kernel.
    fn portable<A: Array>(&self, inputs: &[Value<A>], tracked: &[bool]) -> Result<Outcome<A>> {
        self.plan.check_unsliced()?;
        if self.plan.operands() > 2 {
            return Ok(self.by_steps(inputs.iter().map(|x| x.float().clone()).collect())?.into());
        }
        let operands: Vec<&A> = inputs.iter().map(Value::float).collect();
        let wanted = self.has_argmax() && tracked.contains(&true);
        let (c, places) = portable::contract(&self.semiring, &self.plan, &operands, wanted);
        let extra = places.map(Value::Integers).into_iter().collect();
        Ok(Outcome { extra, ..Outcome::from(c) })
    }

    /// Executes the whole plan at once, in slices if it has sliced labels. Over (+, ×) operands may be complex.
    fn forward(&self, inputs: &[Value<Eager>], tracked: &[bool]) -> Result<Outcome<Eager>> {
        let operands = entered_all(self, inputs.iter().map(Value::float))?;
        let operands: Vec<&AnyTensor> = operands.iter().map(AsRef::as_ref).collect();
        if self.semiring.share() == Share::Linear && operands[0].dtype().is_complex() {
            return Ok(Eager::from(engine::contract_complex(&self.plan, &operands)?).into());
        }
        if self.has_argmax() && self.is_step() && tracked.contains(&true) {
            let (c, argmax) = self.semiring.contract_argmax(&self.plan, &operands)?;
            let extra = argmax.map(|x| Value::Integers(x.into())).into_iter().collect();
            return Ok(Outcome { extra, ..Outcome::from(Eager::from(c)) });
        }
        Ok(Eager::from(self.semiring.contract(&self.plan, &operands)?).into())
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>> {
        self.plan.check_unsliced()?;
        match self.plan.operands() {
            1 | 2 => self.vjp_step(reverse),
            _ => self.vjp_by_steps(reverse),
        }
    }

    /// Vjp by the rules of the engine; memory for the operands, and for the intermediates of one slice if the plan has
    /// several steps.
    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>> {
        let linear = self.semiring.share() == Share::Linear;
        if self.is_step() && (linear || self.plan.is_empty()) {
            return self.vjp_step(reverse);
        }
        let &Reverse { kept, wanted, .. } = reverse;
        let operands = entered_all(self, (0..self.plan.operands()).map(|i| kept.float(i)))?;
        let operands: Vec<&AnyTensor> = operands.iter().map(AsRef::as_ref).collect();
        let argmax = kept.extra.first().map(|x| x.integers().tensor()).transpose()?;
        let g = entered(reverse.cotangent(), &self.plan.shape())?;
        let all = self.semiring.vjp(&self.plan, &operands, argmax, &g)?;
        let cotangent = |(g, &wanted): (AnyTensor, &bool)| wanted.then(|| Eager::from(g));
        Ok(all.into_iter().zip(wanted).map(cotangent).collect())
    }

    /// Over (+, ×) each tangent is a contraction with the same plan.
    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>> {
        if self.semiring.share() != Share::Linear || !self.is_step() {
            return self.portable(inputs, tracked);
        }
        let duals: Vec<&Dual<A>> = inputs.iter().map(Value::float).collect();
        let values: Vec<A> = duals.iter().map(|x| x.value.clone()).collect();
        let mut sum: Option<A> = None;
        for (i, x) in duals.iter().enumerate() {
            if let Some(tangent) = &x.tangent {
                let mut operands = values.clone();
                operands[i] = tangent.clone();
                let term = self.one(&operands)?;
                sum = Some(sum.map_or_else(|| term.clone(), |sum| sum.plus(&term)));
            }
        }
        Ok(Dual { value: self.one(&values)?, tangent: sum }.into())
    }

    fn fused_jvp(
        &self,
        inputs: &[Value<Dual<Eager>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Eager>>> {
        if self.semiring.share() == Share::Linear && self.is_step() {
            return self.jvp(inputs, tracked);
        }
        let duals = || inputs.iter().map(Value::float);
        let values: Vec<Eager> = duals().map(|x| x.value.clone()).collect();
        let tangents: Vec<Eager> = duals().map(|x| x.clone().into_tangent()).collect();
        let (values, tangents) =
            (entered_all(self, values.iter())?, entered_all(self, tangents.iter())?);
        let pairs = values.iter().zip(&tangents);
        let (values, tangents): (Vec<&AnyTensor>, Vec<&AnyTensor>) =
            pairs.map(|(x, t)| (x.as_ref(), t.as_ref())).unzip();
        let (y, dy) = self.semiring.jvp(&self.plan, &values, &tangents)?;
        Ok(Dual::new(Eager::from(y), Eager::from(dy)).into())
    }

    fn check_second_order(&self) -> Result<()> {
        self.plan.check_unsliced()
    }

    /// The batch is an additional label. The argmax depends on the label order of the plan, so it is recomputed.
    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let op = Self { plan: self.plan.batched(size, differ).ok()?, semiring: self.semiring };
        Some(OnBatch::Front { op, residuals: self.semiring.share() == Share::Linear })
    }

    /// Complex numbers as pairs: over (+, ×) without slices only.
    fn on_pairs(&self) -> Result<OnPairs<Self>> {
        pairs::form(self)
    }

    fn pair_product<A: Array>(
        &self,
        x: PairParts<'_, A>,
        y: PairParts<'_, A>,
        conj: [bool; 2],
    ) -> Result<Option<[A; 2]>> {
        if self.plan.is_empty() {
            return Ok(None);
        }
        Ok(portable::contract_pairs(&self.semiring, &self.plan, [x, y], conj))
    }

    fn is_composite(&self) -> bool {
        self.plan.operands() > 2 && self.plan.sliced().is_empty()
    }
}

/// The operands reshaped to the shapes of the plan.
fn entered_all<'a, G: Tag>(
    op: &Contraction<G>,
    operands: impl Iterator<Item = &'a Eager>,
) -> Result<Vec<Cow<'a, AnyTensor>>> {
    operands.enumerate().map(|(i, x)| entered(x, op.shape(i))).collect()
}
