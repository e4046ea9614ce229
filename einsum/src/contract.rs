//! Execution of a plan over a semiring.

use t4a_algebra::{Scalar, Semiring};
use t4a_tensor::Tensor;

use crate::backend::ProductBackends;
use crate::error::{EinsumError, Result};
use crate::labelled::LabelledArray;
use crate::pair;
use crate::plan::Plan;
use crate::table::RingTable;

/// Tensors by slot; `None` after they are consumed.
pub(crate) type Slots<T> = Vec<Option<LabelledArray<T>>>;

impl Plan {
    /// The contraction over the semiring `S`.
    ///
    /// The operands may have any strides. The result may be a view that is not row-major. If an operand has no
    /// elements, all sums are empty: every element of the result is the zero of the semiring.
    /// Cost: [`Plan::cost`]. ⊗ must commute if there are more than two operands.
    ///
    /// # Errors
    /// [`EinsumError::OperandCount`], [`EinsumError::PlanShape`]; `OutOfMemory`.
    pub fn contract<S: Semiring<T>, T: Scalar>(
        &self,
        operands: &[&Tensor<T>],
    ) -> Result<Tensor<T>> {
        self.contract_with::<S, T>(operands, &ProductBackends::default())
    }

    /// [`Plan::contract`] with user-supplied products.
    ///
    /// # Errors
    /// As [`Plan::contract`]; [`EinsumError::Backend`].
    pub fn contract_with<S: Semiring<T>, T: Scalar>(
        &self,
        operands: &[&Tensor<T>],
        backend: &ProductBackends<'_, T>,
    ) -> Result<Tensor<T>> {
        self.contract_over(&RingTable::of::<S>(), operands, backend)
    }

    pub(crate) fn contract_over<T: Scalar>(
        &self,
        ring: &RingTable<T>,
        operands: &[&Tensor<T>],
        backend: &ProductBackends<'_, T>,
    ) -> Result<Tensor<T>> {
        self.check(operands)?;
        if self.network.is_empty {
            return Ok(Tensor::full(&self.shape(), ring.zero)?);
        }
        if let (&[a, b], Some(direct), None, None) =
            (operands, self.direct(), backend.tensordot, backend.bgemm)
            && a.layout().is_contiguous()
            && b.layout().is_contiguous()
        {
            return direct.contract(ring, a, b);
        }
        let mut slots: Slots<T> = Slots::with_capacity(operands.len() + self.steps.len());
        for (i, x) in operands.iter().enumerate() {
            slots.push(Some(self.network.enter(i, x)?));
        }
        let out = if self.sliced.is_empty() {
            let sizes = &self.network.sizes;
            self.run(ring, &mut slots, &|_| true, sizes, backend)?;
            self.last(ring, slots, sizes)?
        } else {
            self.run_slices(ring, slots, backend)?
        };
        self.network.leave(ring.zero, out)
    }

    pub(crate) fn check<T: Scalar>(&self, operands: &[&Tensor<T>]) -> Result<()> {
        let shapes = &self.network.shapes;
        if operands.len() != shapes.len() {
            return Err(EinsumError::OperandCount {
                expected: shapes.len(),
                given: operands.len(),
            });
        }
        for (operand, (x, expected)) in operands.iter().zip(shapes).enumerate() {
            if x.shape() != expected.as_slice() {
                let (expected, given) = (expected.clone(), x.shape().to_vec());
                return Err(EinsumError::PlanShape { operand, expected, given });
            }
        }
        Ok(())
    }

    /// Executes the selected steps; every intermediate is freed after its use.
    pub(crate) fn run<T: Scalar>(
        &self,
        ring: &RingTable<T>,
        slots: &mut Slots<T>,
        pick: &dyn Fn(usize) -> bool,
        sizes: &[usize],
        backend: &ProductBackends<'_, T>,
    ) -> Result<()> {
        let operands = self.operands();
        slots.resize(operands + self.steps.len(), None);
        for (s, step) in self.steps.iter().enumerate() {
            if !pick(operands + s) {
                continue;
            }
            let missing = EinsumError::PathIncomplete { remaining: 0 };
            let (Some(a), Some(b)) = (slots[step.lhs].take(), slots[step.rhs].take()) else {
                return Err(missing);
            };
            slots[operands + s] = Some(pair::contract(ring, step, a, b, sizes, backend)?);
        }
        Ok(())
    }

    /// The last slot, summed over labels that are not in the output.
    pub(crate) fn last<T: Scalar>(
        &self,
        ring: &RingTable<T>,
        mut slots: Slots<T>,
        sizes: &[usize],
    ) -> Result<LabelledArray<T>> {
        let last = slots.pop().flatten().ok_or(EinsumError::PathIncomplete { remaining: 0 })?;
        pair::sum_out(ring, last, &self.lone, sizes)
    }
}
