//! Contractions of elements without a derivative on devices: integers, values with counts, lists of values.
//!
//! A device has one kernel, the product of batches of matrices over the semiring. A sum over labels of one operand
//! is the product with a column of ones, so a contraction of one operand is a product too.

use t4a_diff::{Array, Flags};

use super::axes::Pairing;
use crate::error::Result;
use crate::plan::Plan;

/// Arrays whose axes can be moved.
pub trait MovableAxes: Clone {
    /// Sizes of the axes.
    fn shape(&self) -> Vec<usize>;
    /// The same elements in row-major order.
    fn reshape(&self, shape: &[usize]) -> Self;
    /// Axis `k` of the result is axis `axes[k]`.
    fn permute(&self, axes: &[usize]) -> Self;
    /// Repeats axes of size 1.
    fn expand(&self, shape: &[usize]) -> Self;
    /// Elements `start, start + step, …` of an axis, `len` of them.
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self;
    /// `size` elements equal to `zero` along the last axis `axis`, with this array at `0, step, 2 step, …`.
    fn embed_in(&self, axis: usize, step: usize, size: usize, zero: f64) -> Self;
}

impl<A: Array> MovableAxes for A {
    fn shape(&self) -> Vec<usize> {
        Array::shape(self)
    }
    fn reshape(&self, shape: &[usize]) -> Self {
        Array::reshape(self, shape)
    }
    fn permute(&self, axes: &[usize]) -> Self {
        Array::permute(self, axes)
    }
    fn expand(&self, shape: &[usize]) -> Self {
        Array::expand(self, shape)
    }
    fn slice(&self, axis: usize, start: usize, len: usize, step: usize) -> Self {
        Array::slice(self, axis, start, len, step)
    }
    fn embed_in(&self, axis: usize, step: usize, size: usize, zero: f64) -> Self {
        let embedded = self.embed(axis, 0, step, size);
        if zero == 0.0 {
            return embedded;
        }
        let mut line = vec![1; axis];
        line.push(Array::shape(self)[axis]);
        let inside = self.full(&line, 1.0).embed(axis, 0, step, size).equals(1.0);
        embedded.fill(&inside.not().expand(&Array::shape(&embedded)), zero)
    }
}

/// Elements of a semiring on a device, without a derivative.
pub trait DeviceElements: MovableAxes {
    /// `c[β, m, n] = ⊕ₖ a[β, m, k] ⊗ b[β, k, n]`, k > 0.
    ///
    /// # Errors
    /// Those of the device.
    fn product(&self, b: &Self) -> Result<Self>;
    /// Zeros of the semiring.
    fn zeros(&self, shape: &[usize]) -> Self;
    /// Ones of the semiring.
    fn ones(&self, shape: &[usize]) -> Self;
    /// Zero of the semiring, for [`MovableAxes::embed_in`].
    fn zero(&self) -> f64;
}

impl Plan {
    /// The contraction of elements on their device, step by step. ⊗ must commute. Terms of a sum need no memory.
    ///
    /// # Errors
    /// [`NotSliced`](crate::EinsumError::NotSliced), those of [`Plan::steps`] and of the products.
    ///
    /// # Panics
    /// Unless the operands are as many as those of the plan, with their shapes; a scalar may have shape `[1]`.
    pub fn contract_elements<E: DeviceElements>(&self, operands: Vec<E>) -> Result<E> {
        assert_eq!(operands.len(), self.operands(), "operands of the plan");
        self.check_unsliced()?;
        let mut slots: Vec<Option<E>> = operands.into_iter().map(Some).collect();
        for step in self.steps()? {
            // Every slot is read once.
            let taken: Vec<E> = step.slots.iter().filter_map(|&slot| slots[slot].take()).collect();
            slots.push(Some(step.plan.contract_step(&taken)?));
        }
        Ok(slots.pop().flatten().unwrap_or_else(|| unreachable!("a plan has a last step")))
    }

    /// The contraction of one or two operands.
    fn contract_step<E: DeviceElements>(&self, operands: &[E]) -> Result<E> {
        let zero = operands[0].zero();
        if self.is_empty() {
            return Ok(operands[0].zeros(&self.shape()));
        }
        let step = Pairing::new(self);
        let alone = operands.len() == 1;
        let enter = |(i, x): (usize, &E)| -> Result<E> {
            let x = step.enter(i, x);
            let &[batch, m, n, lone] = &x.shape()[..] else { unreachable!("four groups of axes") };
            if lone == 1 && !alone {
                return Ok(x.reshape(&[batch, m, n]));
            }
            let ones = x.ones(&[1, 1, 1]).expand(&[1, lone, 1]);
            Ok(x.reshape(&[1, batch * m * n, lone]).product(&ones)?.reshape(&[batch, m, n]))
        };
        let matrices: Vec<E> = operands.iter().enumerate().map(enter).collect::<Result<_>>()?;
        let c = match &matrices[..] {
            [a, b] => a.product(b)?,
            _ => matrices[0].clone(),
        };
        Ok(step.leave(&c, zero))
    }
}
