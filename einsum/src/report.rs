//! Text report of a plan: order, sizes, cost, memory, slices.

use std::fmt;

use crate::error::Bytes;
use crate::label::Label;
use crate::network::{Ids, LabelId};
use crate::plan::Plan;
use crate::subscripts::Subscripts;

/// Prints a plan step by step, see [`Plan::report`].
#[derive(Clone, Copy, Debug)]
pub struct PlanReport<'a> {
    plan: &'a Plan,
    element: usize,
}

impl Plan {
    /// A table of the plan for elements of this size in bytes: slots that each step reads (operands first, then results
    /// in order), its subscripts without axes of size 1, elements of its result and multiply-adds, both per slice; then
    /// the totals.
    ///
    /// ```
    /// let shapes: [&[usize]; 3] = [&[10, 1000], &[1000, 10], &[10, 1000]];
    /// let plan = t4a_einsum::Einsum::new("ij,jk,kl->il")?.plan(&shapes, 8)?;
    /// let text = plan.report(8).to_string();
    /// assert_eq!(
    ///     text,
    ///     "ij,jk,kl->il of [10, 1000], [1000, 10], [10, 1000]
    /// slot  takes  contraction  elements  multiply-adds
    ///    3    0,1  ij,jk->ik       1.0e2          1.0e5
    ///    4    2,3  kl,ik->il       1.0e4          1.0e5
    /// multiply-adds: 2.0e5
    /// largest tensor: 1.0e4 elements (80000 bytes)
    /// memory at the peak, operands not counted: 161600 bytes
    /// "
    /// );
    /// # Ok::<(), t4a_einsum::EinsumError>(())
    /// ```
    pub fn report(&self, element: usize) -> PlanReport<'_> {
        PlanReport { plan: self, element }
    }
}

impl PlanReport<'_> {
    fn names(&self, ids: &[LabelId]) -> Vec<Label> {
        ids.iter().map(|&id| self.plan.network.names[id as usize]).collect()
    }

    /// Number of elements over these labels, in one slice.
    fn volume(&self, ids: &[LabelId]) -> f64 {
        let open = ids.iter().filter(|id| !self.plan.sliced.contains(id));
        open.map(|&id| self.plan.network.sizes[id as usize] as f64).product()
    }

    /// Subscripts of each step, elements of its result, multiply-adds.
    fn rows(&self) -> Vec<(String, f64, f64)> {
        let network = &self.plan.network;
        let mut slots: Vec<Ids> = network.inputs.to_vec();
        let mut rows = Vec::new();
        for (i, pair) in self.plan.steps.iter().enumerate() {
            let last = i + 1 == self.plan.steps.len();
            let kept: Ids =
                pair.batch.iter().chain(&pair.left).chain(&pair.right).copied().collect();
            let result = if last { network.output.clone() } else { kept.clone() };
            let terms = [&slots[pair.lhs], &slots[pair.rhs]].map(|ids| self.names(ids));
            let subscripts = Subscripts::new(terms, self.names(&result));
            let met: Ids = kept.iter().chain(&pair.sum).copied().collect();
            rows.push((subscripts.to_string(), self.volume(&result), self.volume(&met)));
            slots.push(kept);
        }
        rows
    }

    fn bytes(&self, elements: f64) -> Bytes {
        Bytes((elements * self.element as f64) as usize)
    }
}

impl fmt::Display for PlanReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.plan;
        writeln!(f, "{plan}")?;
        let rows = self.rows();
        let width = rows.iter().map(|row| row.0.len()).max().unwrap_or(0).max("contraction".len());
        if !rows.is_empty() {
            writeln!(f, "slot  takes  {:<width$}  elements  multiply-adds", "contraction")?;
        }
        for (i, ((text, elements, flops), pair)) in rows.iter().zip(&plan.steps).enumerate() {
            let slot = plan.operands() + i;
            let takes = format!("{},{}", pair.lhs, pair.rhs);
            writeln!(f, "{slot:>4} {takes:>6}  {text:<width$}  {elements:>8.1e}  {flops:>13.1e}")?;
        }
        let cost = plan.cost();
        write!(f, "multiply-adds: {:.1e}", cost.flops)?;
        if !plan.sliced.is_empty() {
            let label = |&id: &LabelId| {
                format!("{} ({})", plan.network.names[id as usize], plan.network.sizes[id as usize])
            };
            let labels: Vec<String> = plan.sliced.iter().map(label).collect();
            write!(f, " in {:.0} slices, over {}", cost.slices, labels.join(", "))?;
        }
        let largest = self.bytes(cost.largest);
        writeln!(f, "\nlargest tensor: {:.1e} elements ({largest})", cost.largest)?;
        let peak = self.bytes(cost.peak);
        writeln!(f, "memory at the peak, operands not counted: {peak}")?;
        if plan.is_cut() {
            writeln!(f, "the search stopped early: a path from elsewhere may be cheaper")?;
        }
        Ok(())
    }
}
