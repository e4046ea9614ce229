//! Runs a plan over a semiring.

use t4a_algebra::{Scalar, Semiring};
use t4a_tensor::{Layout, Tensor};

use crate::backend::Backend;
use crate::error::{EinsumError, Result};
use crate::network::{Id, Labelled, scatter};
use crate::pair;
use crate::plan::Plan;

impl Plan {
    /// The contraction over the semiring `S`.
    ///
    /// Strides of the operands are free. The result may be a view that is not row-major.
    ///
    /// Cost: [`Plan::cost`]. ⊗ must commute if there are more than two operands.
    ///
    /// # Errors
    /// [`EinsumError::OperandCount`], [`EinsumError::PlanShape`]; `OutOfMemory`.
    pub fn contract<S: Semiring<T>, T: Scalar>(
        &self,
        operands: &[&Tensor<T>],
    ) -> Result<Tensor<T>> {
        self.contract_with::<S, T>(operands, &Backend::default())
    }

    /// [`Plan::contract`] with products supplied by the user.
    ///
    /// # Errors
    /// As [`Plan::contract`]; [`EinsumError::Backend`].
    pub fn contract_with<S: Semiring<T>, T: Scalar>(
        &self,
        operands: &[&Tensor<T>],
        backend: &Backend<'_, T>,
    ) -> Result<Tensor<T>> {
        self.check(operands)?;
        let enter = |(i, x): (usize, &&Tensor<T>)| self.network.enter(i, x);
        let inputs: Vec<Labelled<T>> =
            operands.iter().enumerate().map(enter).collect::<Result<_>>()?;
        let out = if self.sliced.is_empty() {
            self.run::<S, T>(inputs, &self.network.sizes, backend)?
        } else {
            self.run_sliced::<S, T>(&inputs, backend)?
        };
        self.network.leave::<S, T>(out)
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

    /// Steps on labelled operands; every intermediate is freed as soon as it is used.
    fn run<S: Semiring<T>, T: Scalar>(
        &self,
        inputs: Vec<Labelled<T>>,
        sizes: &[usize],
        backend: &Backend<'_, T>,
    ) -> Result<Labelled<T>> {
        let mut slots: Vec<Option<Labelled<T>>> = inputs.into_iter().map(Some).collect();
        let missing = || EinsumError::PathIncomplete { remaining: 0 };
        for step in &self.steps {
            let a = slots[step.lhs].take().ok_or_else(missing)?;
            let b = slots[step.rhs].take().ok_or_else(missing)?;
            slots.push(Some(pair::contract::<S, T>(step, a, b, sizes, backend)?));
        }
        let last = slots.pop().flatten().ok_or_else(missing)?;
        pair::sum_out::<S, T>(last, &self.lone, sizes)
    }

    /// One contraction for every value of the sliced labels, added up or set side by side.
    fn run_sliced<S: Semiring<T>, T: Scalar>(
        &self,
        inputs: &[Labelled<T>],
        backend: &Backend<'_, T>,
    ) -> Result<Labelled<T>> {
        let network = &self.network;
        let whole: Vec<usize> =
            network.output.iter().map(|&id| network.sizes[id as usize]).collect();
        let mut out = Tensor::full(&whole, S::ZERO)?;
        let mut sizes = network.sizes.clone();
        self.sliced.iter().for_each(|&id| sizes[id as usize] = 1);
        let strides = Layout::contiguous("einsum", &whole, size_of::<T>())?.strides().to_vec();
        let mut values = vec![0usize; self.sliced.len()];
        let total: usize = self.sliced.iter().map(|&id| network.sizes[id as usize]).product();
        for _ in 0..total {
            let fixed = |id: Id| self.sliced.iter().position(|&s| s == id).map(|p| values[p]);
            let part = inputs.iter().map(|x| {
                let mut x = x.clone();
                for (axis, &id) in x.ids.iter().enumerate() {
                    if let Some(value) = fixed(id) {
                        x.tensor = x.tensor.slice_axis(axis, value, 1, 1)?;
                    }
                }
                Ok(x)
            });
            let part = self.run::<S, T>(part.collect::<Result<_>>()?, &sizes, backend)?;
            let start: usize = network
                .output
                .iter()
                .zip(&strides)
                .filter_map(|(&id, &stride)| Some(fixed(id)? * stride as usize))
                .sum();
            let along: Vec<usize> = part
                .ids
                .iter()
                .map(|id| network.output.iter().position(|o| o == id))
                .map(|axis| axis.map_or(0, |axis| strides[axis] as usize))
                .collect();
            scatter(&mut out.as_mut_slice()?[start..], &along, &part.tensor, S::add)?;
            for (value, &id) in values.iter_mut().zip(&self.sliced).rev() {
                *value += 1;
                if *value < network.sizes[id as usize] {
                    break;
                }
                *value = 0;
            }
        }
        Ok(Labelled { tensor: out, ids: network.output.clone() })
    }
}
