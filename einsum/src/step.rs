//! One plan per pairwise step, for callers that execute, time or differentiate step by step (an autodiff tape records
//! one node for each).
//!
//! ```text
//! slots     0 … n−1 operands | n, n+1, … results of the steps, in order
//! step s    slots (a, b) ──▶ slot n+s        the last one is the result as it was asked for
//! ```

use std::fmt;
use std::sync::Arc;

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::einsum::Einsum;
use crate::error::Result;
use crate::label::Label;
use crate::network::{Ids, LabelId, Network};
use crate::order::ContractionOrder;
use crate::plan::{PairwiseStep, Plan};
use crate::subscripts::Subscripts;

impl Plan {
    /// The steps in order: n − 1 of two tensors for n operands, one of one tensor for n = 1.
    ///
    /// ```
    /// use t4a_algebra::Standard;
    /// use t4a_einsum::Einsum;
    /// use t4a_tensor::Tensor;
    /// let m = Tensor::from_vec(vec![1, 2, 3, 4], &[2, 2])?;
    /// let plan = Einsum::new("ij,jk,kk->ik")?.plan(&[&[2, 2][..]; 3], 4)?;
    /// let mut slots = vec![m.clone(), m.clone(), m];
    /// for step in plan.steps()? {
    ///     let operands: Vec<_> = step.slots.iter().map(|&slot| &slots[slot]).collect();
    ///     let next = step.plan.contract::<Standard, i32>(&operands)?;
    ///     slots.push(next);
    /// }
    /// assert_eq!(slots[4].to_vec()?, [7, 40, 15, 88]);
    /// # Ok::<(), t4a_einsum::EinsumError>(())
    /// ```
    ///
    /// Each step is a separate plan with a fixed axis order of the result, so that vjp and jvp of the whole follow from
    /// those of the steps. Slices are ignored: the steps are those of the whole network, and a plan with nonempty
    /// [`Plan::sliced`] exceeds its budget when executed step by step.
    ///
    /// Cost: built once per plan.
    ///
    /// # Errors
    /// [`IntermediateOverflow`](crate::EinsumError::IntermediateOverflow) for an intermediate that exceeds the address
    /// space without slices.
    pub fn steps(&self) -> Result<&[PairwiseStep]> {
        if self.taken_apart.get().is_none() {
            let steps = self.take_apart()?;
            // If another thread set it first, the value is the same.
            let _ = self.taken_apart.set(steps);
        }
        Ok(self.taken_apart.get().map_or(&[], |steps| steps))
    }

    /// Labels of the axes of operand `i`, including axes of size 1 and those under an ellipsis.
    pub fn operand_labels(&self, i: usize) -> Option<&[Label]> {
        self.network.terms.get(i).map(Vec::as_slice)
    }

    /// Shape of operand `i`.
    pub fn operand_shape(&self, i: usize) -> Option<&[usize]> {
        self.network.shapes.get(i).map(Vec::as_slice)
    }

    /// The plan with an additional leading label on the operands in `which` and on the result: a batch of `size`
    /// examples. A scalar operand or result has shape `[1]` after that label.
    ///
    /// # Errors
    /// As [`Einsum::plan`]: for sizes that overflow and for a budget that is too small.
    pub fn batched(&self, size: usize, which: &[bool]) -> Result<Arc<Plan>> {
        let used = |label: &Label| {
            self.network.terms.iter().chain([&self.network.output_term]).any(|x| x.contains(label))
        };
        let mut free = (0..).map(Label::Int).filter(|label| !used(label));
        let mut free = || free.next().unwrap_or_else(|| unreachable!("labels do not run out"));
        let (batch, one) = (free(), free());
        let number = |labels: &[Label]| if labels.is_empty() { vec![one] } else { labels.to_vec() };
        let term = |labels: &[Label]| [&[batch], &number(labels)[..]].concat();
        let mut subscripts = Vec::new();
        let mut shapes = Vec::new();
        for (i, &differs) in which.iter().enumerate() {
            let labels = self.operand_labels(i).unwrap_or(&[]);
            let shape = self.operand_shape(i).unwrap_or(&[]);
            subscripts.push(if differs { term(labels) } else { labels.to_vec() });
            let behind = if labels.is_empty() { &[1] } else { shape };
            shapes.push(if differs { [&[size], behind].concat() } else { shape.to_vec() });
        }
        let labels = self.result_labels();
        let mut einsum = Einsum::from(Subscripts::new(subscripts, term(labels)))
            .path(self.path().clone())
            .size(batch, size);
        if labels.is_empty() {
            einsum = einsum.size(one, 1);
        }
        for (&label, size) in labels.iter().zip(self.shape()) {
            einsum = einsum.size(label, size);
        }
        if let Some(bytes) = self.budget() {
            einsum = einsum.memory(bytes);
        }
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        einsum.plan(&shapes, size_of::<f64>())
    }

    /// Number of operands.
    pub fn operands(&self) -> usize {
        self.network.shapes.len()
    }

    /// Labels of the axes of the result; their sizes are [`Plan::shape`].
    pub fn result_labels(&self) -> &[Label] {
        &self.network.output_term
    }

    fn take_apart(&self) -> Result<Vec<PairwiseStep>> {
        let network = &self.network;
        let mut slots: Vec<(Vec<Label>, Vec<usize>)> =
            network.terms.iter().cloned().zip(network.shapes.iter().cloned()).collect();
        if self.steps.is_empty() {
            let none = ContractionOrder { pairs: Vec::new(), cut: false };
            let plan = Arc::new(Plan::new(network.clone(), none));
            return Ok(vec![PairwiseStep { slots: SmallVec::from_slice(&[0]), plan }]);
        }
        let mut steps = Vec::with_capacity(self.steps.len());
        let name = |&id: &LabelId| network.names[id as usize];
        let ids: HashMap<Label, LabelId> =
            network.names.iter().enumerate().map(|(id, &label)| (label, id as LabelId)).collect();
        for (s, pair) in self.steps.iter().enumerate() {
            let last = s + 1 == self.steps.len();
            let kept: Ids =
                pair.batch.iter().chain(&pair.left).chain(&pair.right).copied().collect();
            let (labels, shape) = if last {
                (network.output_term.clone(), network.result_shape())
            } else {
                let size = |&id: &LabelId| network.sizes[id as usize];
                (kept.iter().map(name).collect(), kept.iter().map(size).collect())
            };
            let given: Vec<(Label, usize)> = labels.iter().copied().zip(shape.clone()).collect();
            let taken = [&slots[pair.lhs], &slots[pair.rhs]];
            let subscripts = Subscripts::new(taken.map(|x| x.0.clone()), labels.iter().copied());
            // Terms are numbered as in the whole plan.
            let numbers = taken.iter().flat_map(|x| &x.0).filter_map(|label| ids.get(label));
            let mut order: Vec<LabelId> = numbers.copied().collect();
            order.sort_unstable();
            order.dedup();
            let order: Vec<Label> = order.iter().map(name).collect();
            let shapes = taken.map(|x| x.1.as_slice());
            let mut part = Network::ordered(&subscripts, &shapes, &given, &order)?;
            // If the whole sum is empty, a part is empty too, even if it contains 0 ⊗ NaN.
            part.is_empty = network.is_empty;
            let found = ContractionOrder { pairs: vec![(0, 1)], cut: false };
            let plan = Plan::new(part, found);
            plan.check_sizes()?;
            let plan = Arc::new(plan);
            steps.push(PairwiseStep { slots: SmallVec::from_slice(&[pair.lhs, pair.rhs]), plan });
            slots.push((labels, shape));
        }
        Ok(steps)
    }
}

impl fmt::Display for Plan {
    /// Subscripts and shapes, such as `ij,jk->ik of [2, 3], [3, 4]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = &self.network;
        let output = network.output_term.iter().copied();
        write!(f, "{} of ", Subscripts::new(network.terms.clone(), output))?;
        for (i, shape) in network.shapes.iter().enumerate() {
            write!(f, "{}{shape:?}", if i > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}
