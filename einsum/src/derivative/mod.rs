//! Derivatives of contractions: cotangents of operands (vjp) and tangents of the result (jvp).
//!
//! Steps run in reverse order (vjp), or forward with tangents (jvp), by the [`rules`](crate::rules) of the semiring;
//! over (+, ×) the derivatives are contractions. Complex cotangents are conjugate Wirtinger derivatives: for a real
//! loss L they are ∂L/∂Re + i·∂L/∂Im.

mod step;

use t4a_algebra::{Numeric, Scalar};
use t4a_tensor::Tensor;

use self::step::{
    ForwardValue, MatrixAxes, enter_result, forward, pullback, pushforward, same_shape,
    sum_tangent, unsum,
};
use crate::backend::ProductBackends;
use crate::error::{EinsumError, Result};
use crate::labelled::{LabelledArray, align};
use crate::network::Ids;
use crate::pair;
use crate::plan::{PairLabels, Plan};
use crate::rules::{Differentiable, Share};
use crate::table::{RingTable, Rules};

/// Number of terms that a `u32` argmax can index; one value marks "no term".
const MOST_TERMS: u32 = u32::MAX - 1;

impl Plan {
    /// Cotangents of all operands, given the cotangent of the result.
    ///
    /// Stores every intermediate; under a memory budget, those of one slice at a time.
    ///
    /// Cost: the contraction, plus twice its multiply-adds for (+, ×) and once for other semirings.
    ///
    /// Ties resolve to the first term, see [`Plan::labels`]: sliced labels precede the labels that a step sums, and
    /// labels of one operand are summed before the product. Elements equal to the zero of the semiring have derivative
    /// 0, even in operands that are only copied.
    ///
    /// # Errors
    /// As [`Plan::contract`]; [`EinsumError::DerivativeShape`], [`EinsumError::IndexRange`].
    pub fn vjp<S: Differentiable<T>, T: Numeric>(
        &self,
        operands: &[&Tensor<T>],
        cotangent: &Tensor<T>,
    ) -> Result<Vec<Tensor<T>>> {
        self.vjp_over(&Rules::of::<S>(), operands, cotangent)
    }

    fn vjp_over<T: Numeric>(
        &self,
        rules: &Rules<T>,
        operands: &[&Tensor<T>],
        cotangent: &Tensor<T>,
    ) -> Result<Vec<Tensor<T>>> {
        self.check(operands)?;
        same_shape("the cotangent", &self.shape(), cotangent.shape())?;
        self.check_index_range(rules)?;
        let network = &self.network;
        if network.is_empty {
            let zeros = |x: &&Tensor<T>| Ok(Tensor::full(x.shape(), T::ZERO)?);
            return operands.iter().map(zeros).collect();
        }
        let enter = |(i, x): (usize, &&Tensor<T>)| network.enter(i, x);
        let inputs = operands.iter().enumerate().map(enter).collect::<Result<Vec<_>>>()?;
        let g = enter_result(network, cotangent)?;
        let grads = if self.sliced.is_empty() {
            self.vjp_of(rules, &inputs, &mut |_| Ok(g.clone()), &network.sizes)?
        } else {
            self.vjp_slices(rules, &inputs, &g)?
        };
        grads.iter().enumerate().map(|(i, g)| network.leave_operand(i, g)).collect()
    }

    /// Cotangents of the operands' views, given a function that computes the cotangent of the output labels from the
    /// result.
    pub(crate) fn vjp_of<T: Numeric>(
        &self,
        rules: &Rules<T>,
        inputs: &[LabelledArray<T>],
        cotangent: &mut dyn FnMut(&LabelledArray<T>) -> Result<LabelledArray<T>>,
        sizes: &[usize],
    ) -> Result<Vec<LabelledArray<T>>> {
        let n = inputs.len();
        let mut slots = inputs.to_vec();
        let mut summed = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let a = pair::sum_out(&rules.ring, slots[step.lhs].clone(), &step.lone_left, sizes)?;
            let b = pair::sum_out(&rules.ring, slots[step.rhs].clone(), &step.lone_right, sizes)?;
            let (c, argmax) = forward(rules, step, [&a, &b], sizes)?;
            slots.push(c.clone());
            summed.push((a, b, ForwardValue { c: Some(c), argmax }));
        }
        let mut grads: Vec<Option<LabelledArray<T>>> = slots.iter().map(|_| None).collect();
        let lost = || EinsumError::PathIncomplete { remaining: 0 };
        let last = slots.len() - 1;
        let out = pair::sum_out(&rules.ring, slots[last].clone(), &self.lone, sizes)?;
        let g = self.alive(rules, &out, cotangent(&out)?)?;
        grads[last] = Some(unsum(rules, &slots[last], &out, g, &self.lone, sizes)?);
        for (s, step) in self.steps.iter().enumerate().rev() {
            let g = grads[n + s].take().ok_or_else(lost)?;
            let (a, b, done) = &summed[s];
            let [ga, gb] = pullback(rules, step, [a, b], done, &g, sizes)?;
            let (x, y) = (&slots[step.lhs], &slots[step.rhs]);
            grads[step.lhs] = Some(unsum(rules, x, a, ga, &step.lone_left, sizes)?);
            grads[step.rhs] = Some(unsum(rules, y, b, gb, &step.lone_right, sizes)?);
        }
        grads.truncate(n);
        grads.into_iter().map(|g| g.ok_or_else(lost)).collect()
    }

    /// Derivative with respect to an operand that is only copied, set to 0 at zeros of the semiring.
    fn alive<T: Numeric>(
        &self,
        rules: &Rules<T>,
        x: &LabelledArray<T>,
        derivative: LabelledArray<T>,
    ) -> Result<LabelledArray<T>> {
        let alone = self.steps.is_empty() && self.lone.is_empty();
        if !alone || rules.share == Share::Linear {
            return Ok(derivative);
        }
        let LabelledArray { ids, .. } = &derivative;
        let tensor = (rules.alive)(align(x, ids)?, derivative.tensor.clone())?;
        Ok(LabelledArray { tensor, ids: ids.clone() })
    }

    /// Checks that the number of terms is in the range of the `u32` argmax.
    fn check_index_range<T: Numeric>(&self, rules: &Rules<T>) -> Result<()> {
        let sizes = self.slice_sizes();
        for step in self.steps.iter().filter(|_| rules.share == Share::Argmax) {
            let terms: f64 = step.sum.iter().map(|&id| sizes[id as usize] as f64).product();
            if terms > MOST_TERMS as f64 {
                return Err(EinsumError::IndexRange { terms, limit: MOST_TERMS });
            }
        }
        Ok(())
    }

    /// [`Plan::contract`], and the argmax for [`Plan::vjp_from`] if the plan has two operands, no slices and a
    /// selective semiring (each sum equals one of its terms): the index of the first such term, `[batch, m, n]` in the
    /// order of [`Plan::roles`], and [`NO_ARGMAX`](t4a_algebra::gemm::NO_ARGMAX) where the sum is the semiring's zero.
    ///
    /// # Errors
    /// As [`Plan::contract`]; [`EinsumError::IndexRange`].
    pub fn contract_argmax<S: Differentiable<T>, T: Numeric>(
        &self,
        operands: &[&Tensor<T>],
    ) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        self.contract_argmax_over(&Rules::of::<S>(), operands)
    }

    fn contract_argmax_over<T: Numeric>(
        &self,
        rules: &Rules<T>,
        operands: &[&Tensor<T>],
    ) -> Result<(Tensor<T>, Option<Tensor<u32>>)> {
        let [step] = &self.steps[..] else {
            return Ok((
                self.contract_over(&rules.ring, operands, &ProductBackends::default())?,
                None,
            ));
        };
        let plain = rules.share != Share::Argmax || step.sum.is_empty() || !self.sliced.is_empty();
        if plain || self.network.is_empty {
            return Ok((
                self.contract_over(&rules.ring, operands, &ProductBackends::default())?,
                None,
            ));
        }
        self.check(operands)?;
        self.check_index_range(rules)?;
        let [a, b] = self.factors(&rules.ring, step, operands)?;
        let (c, argmax) = forward(rules, step, [&a, &b], &self.network.sizes)?;
        Ok((self.network.leave(rules.ring.zero, c)?, argmax))
    }

    /// The operands of the only step, summed over labels that occur in one operand only.
    fn factors<T: Scalar>(
        &self,
        ring: &RingTable<T>,
        step: &PairLabels,
        operands: &[&Tensor<T>],
    ) -> Result<[LabelledArray<T>; 2]> {
        let factor = |slot: usize, lone: &Ids| {
            let x = self.network.enter(slot, operands[slot])?;
            pair::sum_out(ring, x, lone, &self.network.sizes)
        };
        Ok([factor(step.lhs, &step.lone_left)?, factor(step.rhs, &step.lone_right)?])
    }

    /// [`Plan::vjp`] with the argmax of [`Plan::contract_argmax`], without recomputing the contraction. A plan with one
    /// step also skips it if the rule does not [read](Differentiable::READS_SUMS) the sums.
    ///
    /// # Errors
    /// As [`Plan::vjp`].
    pub fn vjp_from<S: Differentiable<T>, T: Numeric>(
        &self,
        operands: &[&Tensor<T>],
        argmax: Option<&Tensor<u32>>,
        cotangent: &Tensor<T>,
    ) -> Result<Vec<Tensor<T>>> {
        self.vjp_from_over(&Rules::of::<S>(), operands, argmax, cotangent)
    }

    fn vjp_from_over<T: Numeric>(
        &self,
        rules: &Rules<T>,
        operands: &[&Tensor<T>],
        argmax: Option<&Tensor<u32>>,
        cotangent: &Tensor<T>,
    ) -> Result<Vec<Tensor<T>>> {
        let known = argmax.is_some() || !rules.reads_sums;
        let [step] = &self.steps[..] else { return self.vjp_over(rules, operands, cotangent) };
        if !known || !self.sliced.is_empty() || self.network.is_empty {
            return self.vjp_over(rules, operands, cotangent);
        }
        self.check(operands)?;
        same_shape("the cotangent", &self.shape(), cotangent.shape())?;
        let (network, sizes) = (&self.network, &self.network.sizes);
        if let Some(argmax) = argmax {
            let axes = MatrixAxes::new(step, sizes).shape;
            same_shape("the argmax", &[axes.batch, axes.m, axes.n], argmax.shape())?;
        }
        let known = ForwardValue { c: None, argmax: argmax.cloned() };
        let g = enter_result(network, cotangent)?;
        let [a, b] = self.factors(&rules.ring, step, operands)?;
        let [ga, gb] = pullback(rules, step, [&a, &b], &known, &g, sizes)?;
        let leave = |slot: usize, summed, g, lone| {
            let x = network.enter(slot, operands[slot])?;
            network.leave_operand(slot, &unsum(rules, &x, summed, g, lone, sizes)?)
        };
        let lhs = leave(step.lhs, &a, ga, &step.lone_left)?;
        let rhs = leave(step.rhs, &b, gb, &step.lone_right)?;
        Ok(if step.lhs < step.rhs { vec![lhs, rhs] } else { vec![rhs, lhs] })
    }

    /// The result and its tangent, given operands and their tangents.
    ///
    /// # Errors
    /// As [`Plan::vjp`].
    pub fn jvp<S: Differentiable<T>, T: Numeric>(
        &self,
        operands: &[&Tensor<T>],
        tangents: &[&Tensor<T>],
    ) -> Result<(Tensor<T>, Tensor<T>)> {
        self.jvp_over(&Rules::of::<S>(), operands, tangents)
    }

    fn jvp_over<T: Numeric>(
        &self,
        rules: &Rules<T>,
        operands: &[&Tensor<T>],
        tangents: &[&Tensor<T>],
    ) -> Result<(Tensor<T>, Tensor<T>)> {
        self.check(operands)?;
        self.check(tangents)?;
        self.check_index_range(rules)?;
        let network = &self.network;
        if network.is_empty {
            let shape = self.shape();
            return Ok((Tensor::full(&shape, rules.ring.zero)?, Tensor::full(&shape, T::ZERO)?));
        }
        let mut inputs = Vec::with_capacity(operands.len());
        for (i, (x, dx)) in operands.iter().zip(tangents).enumerate() {
            inputs.push((network.enter(i, x)?, network.enter(i, dx)?));
        }
        let (out, tangent) = if self.sliced.is_empty() {
            self.jvp_of(rules, inputs, &network.sizes)?
        } else {
            self.jvp_slices(rules, &inputs)?
        };
        Ok((network.leave(rules.ring.zero, out)?, network.leave(T::ZERO, tangent)?))
    }

    /// The contraction over the output labels and its tangent, given views of the operands and of
    /// their tangents.
    pub(crate) fn jvp_of<T: Numeric>(
        &self,
        rules: &Rules<T>,
        mut slots: Vec<(LabelledArray<T>, LabelledArray<T>)>,
        sizes: &[usize],
    ) -> Result<(LabelledArray<T>, LabelledArray<T>)> {
        for step in &self.steps {
            let half = |slot: usize, lone: &Ids| -> Result<_> {
                let (x, dx) = &slots[slot];
                let sum = pair::sum_out(&rules.ring, x.clone(), lone, sizes)?;
                let tangent = sum_tangent(rules, [x, &sum, dx], lone, sizes)?;
                Ok((sum, tangent))
            };
            let ((a, da), (b, db)) =
                (half(step.lhs, &step.lone_left)?, half(step.rhs, &step.lone_right)?);
            let (c, argmax) = forward(rules, step, [&a, &b], sizes)?;
            let done = ForwardValue { c: Some(c.clone()), argmax };
            let dc = pushforward(rules, step, [&a, &b, &da, &db], &done, sizes)?;
            slots.push((c, dc));
        }
        let (x, dx) = &slots[slots.len() - 1];
        let out = pair::sum_out(&rules.ring, x.clone(), &self.lone, sizes)?;
        let tangent = sum_tangent(rules, [x, &out, dx], &self.lone, sizes)?;
        let tangent = self.alive(rules, &out, tangent)?;
        Ok((out, tangent))
    }
}
