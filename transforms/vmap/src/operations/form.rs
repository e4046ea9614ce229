//! Batched form of an operation on the inner backend: position of the batch in each array.

use burn_backend::{Backend, Shape, TensorMetadata};
use burn_t4a::ext::operation::{OnBatch, Operand, Operation, Operations, Outcome, Value};
use burn_t4a::ext::primitive::{Bools, Floats, Indices};
use burn_tensor::Float;
use t4a_diff::Kept;

use super::{Above, on_value};
use crate::backend::Vmap;
use crate::kind::{DataKind, Primitive};
use crate::module::fold::{join, split};
use crate::movement::{MappedTensor, expand, raise};
use crate::tensor::VmapTensor;

/// Batch size of an operand.
pub(crate) fn size_of<B: Operations>(x: &Operand<Vmap<B>>) -> Option<usize> {
    match x {
        Value::Float(x) => x.0.size(),
        Value::Integers(x) => x.0.size(),
        Value::Flags(x) => x.0.size(),
    }
}

/// Position of the batch in an array of the inner backend.
#[derive(Clone, Copy, Debug)]
pub(super) enum BatchPosition {
    /// No batch axis.
    Shared,
    /// Leading batch axis.
    Front,
    /// Merged into this axis as its outer part; the second number is the size of the axis in one example.
    Joined(usize, usize),
}

impl BatchPosition {
    /// Converts to an array of the inner backend.
    pub(super) fn down<B: Backend, K: DataKind<B>>(
        self,
        x: MappedTensor<B, K>,
        form: &BatchedForm<impl Sized>,
    ) -> Primitive<B, K> {
        match self {
            Self::Shared => x.into_inner().0,
            Self::Front => raise::<B, K>(x, form.size),
            Self::Joined(axis, n) => {
                let mut shape = x.shape().to_vec();
                let x = if shape[axis] == n {
                    x
                } else {
                    shape[axis] = n;
                    expand::<B, K>(x, Shape::from(shape))
                };
                let x = raise::<B, K>(x, form.size);
                let mut order: Vec<usize> = (1..x.rank()).collect();
                order.insert(axis, 0);
                join::<B, K>(if axis == 0 { x } else { K::permute(x, &order) }, axis)
            }
        }
    }

    /// Converts back to a mapped array.
    pub(super) fn up<B: Backend, K: DataKind<B>>(
        self,
        x: Primitive<B, K>,
        size: Option<usize>,
    ) -> MappedTensor<B, K> {
        match (self, size) {
            (Self::Shared, _) | (_, None) => VmapTensor::shared(x),
            (Self::Front, Some(size)) if x.rank() == 1 => {
                VmapTensor::batched(K::reshape(x, Shape::from([size, 1])))
            }
            (Self::Front, Some(_)) => VmapTensor::batched(x),
            (Self::Joined(axis, n), Some(size)) => {
                let x = split::<B, K>(x, axis, size, n);
                let rest = (0..x.rank()).filter(|&k| k != axis);
                let order: Vec<usize> = [axis].into_iter().chain(rest).collect();
                VmapTensor::batched(if axis == 0 { x } else { K::permute(x, &order) })
            }
        }
    }
}

/// Operation on the inner backend and the positions of the batch.
pub(super) struct BatchedForm<O> {
    pub(super) op: O,
    /// Batch size; `None` if no operand is batched.
    pub(super) size: Option<usize>,
    /// True if hidden results and other residuals are batched as well.
    pub(super) residuals: bool,
    operands: Vec<BatchPosition>,
    /// Batch positions of the results; `None` if all are leading, or all shared.
    results: Option<Vec<BatchPosition>>,
}

impl<O: Operation> BatchedForm<O> {
    /// Form for operands that `differ` between examples. If the operation does not support this combination, shared
    /// operands are broadcast.
    pub(super) fn of<B: Operations>(
        op: &O,
        size: Option<usize>,
        differ: &[bool],
        inputs: &[Operand<Vmap<B>>],
    ) -> Option<Self> {
        let Some(size) = size else {
            let operands = vec![BatchPosition::Shared; differ.len()];
            return Some(Self { op: op.clone(), size, residuals: true, operands, results: None });
        };
        let all = vec![true; differ.len()];
        let (found, differ) = match op.on_batch(size, differ) {
            Some(found) => (found, differ),
            None => (op.on_batch(size, &all)?, &all[..]),
        };
        match found {
            OnBatch::Front { op, residuals } => {
                let place = |&differs: &bool| {
                    if differs { BatchPosition::Front } else { BatchPosition::Shared }
                };
                let operands = differ.iter().map(place).collect();
                Some(Self { op, size: Some(size), residuals, operands, results: None })
            }
            OnBatch::Joined { operands, results } => {
                let along =
                    |(x, axis): (&Operand<Vmap<B>>, &Option<usize>)| Some(shape(x)[(*axis)?]);
                // The residuals contain operands by index, so all of them are required.
                if inputs.len() != operands.len() {
                    return None;
                }
                let n = inputs.iter().zip(&operands).filter_map(along).max()?;
                let place = |axis: Option<usize>| {
                    axis.map_or(BatchPosition::Shared, |axis| BatchPosition::Joined(axis, n))
                };
                Some(Self {
                    op: op.clone(),
                    size: Some(size),
                    residuals: true,
                    operands: operands.into_iter().map(place).collect(),
                    results: Some(results.into_iter().map(place).collect()),
                })
            }
        }
    }

    pub(super) fn operand_place(&self, i: usize) -> BatchPosition {
        self.operands[i]
    }

    pub(super) fn result_place(&self, k: usize) -> BatchPosition {
        self.results.as_ref().map_or(self.residual_place(), |all| all[k])
    }

    pub(super) fn residual_place(&self) -> BatchPosition {
        if self.size.is_some() { BatchPosition::Front } else { BatchPosition::Shared }
    }

    pub(super) fn operand<B: Operations>(&self, i: usize, x: &Operand<Vmap<B>>) -> Operand<B> {
        on_value!(x.clone(), x: K => self.operands[i].down::<B, K>(x, self))
    }

    pub(super) fn operands<B: Operations>(&self, all: &[Operand<Vmap<B>>]) -> Vec<Operand<B>> {
        all.iter().enumerate().map(|(i, x)| self.operand(i, x)).collect()
    }

    fn float<B: Operations>(&self, place: BatchPosition, x: &Above<B>) -> Floats<B> {
        Floats(place.down::<B, Float>(x.0.clone(), self))
    }

    /// True if every result that is shared by all examples has a shared cotangent.
    pub(super) fn takes<B: Operations>(&self, cotangents: &[Option<Above<B>>]) -> bool {
        cotangents.iter().enumerate().all(|(k, g)| match (self.result_place(k), g) {
            (BatchPosition::Shared, Some(g)) => !g.0.is_batched(),
            _ => true,
        })
    }

    pub(super) fn cotangents<B: Operations>(
        &self,
        all: &[Option<Above<B>>],
    ) -> Vec<Option<Floats<B>>> {
        let all = all.iter().enumerate();
        all.map(|(k, g)| Some(self.float(self.result_place(k), g.as_ref()?))).collect()
    }

    pub(super) fn hidden<B: Operations>(&self, all: &[Option<Above<B>>]) -> Vec<Option<Floats<B>>> {
        all.iter().map(|g| Some(self.float(self.residual_place(), g.as_ref()?))).collect()
    }

    /// Residuals for the rule of the inner backend. Those other than operands and results are recomputed if they are
    /// not batched.
    pub(super) fn kept<B: Operations>(
        &self,
        kept: &Kept<Above<B>>,
        wanted: &[bool],
    ) -> Result<Kept<Floats<B>>, O::Error> {
        let inputs = kept.inputs().iter().enumerate();
        let inputs: Vec<Option<Operand<B>>> =
            inputs.map(|(i, x)| Some(self.operand(i, x.as_ref()?))).collect();
        if !self.residuals && inputs.iter().all(Option::is_some) {
            let inputs: Vec<Operand<B>> = inputs.into_iter().flatten().collect();
            let out = B::run(&self.op, &inputs, wanted)?;
            return Ok(Kept::new(self.op.keep(wanted), &inputs, &out));
        }
        let results = kept.results().iter().enumerate();
        let results = results.map(|(k, y)| Some(self.float(self.result_place(k), y.as_ref()?)));
        let hidden = kept.hidden.iter().map(|x| self.float(self.residual_place(), x));
        // Residuals that were computed without a batch have no form in a merged one; the rule computes them again.
        let extra = kept.extra.iter().filter(|_| self.results.is_none()).cloned();
        let extra =
            extra.map(|x| on_value!(x, x: K => self.residual_place().down::<B, K>(x, self)));
        Ok(Kept::from_parts(inputs, results.collect(), hidden.collect(), extra.collect()))
    }

    pub(super) fn residual_up<B: Operations>(&self, x: Operand<B>) -> Operand<Vmap<B>> {
        on_value!(x, x: K => self.residual_place().up::<B, K>(x, self.size))
    }

    pub(super) fn outcome<B: Operations>(&self, out: Outcome<Floats<B>>) -> Outcome<Above<B>> {
        let up = |place: BatchPosition, x: Floats<B>| Floats(place.up::<B, Float>(x.0, self.size));
        let results = out.results.into_iter().enumerate();
        // Residuals of a merged batch have no batch axis; rules compute them again.
        let extra = if self.results.is_none() { out.extra } else { Vec::new() };
        Outcome {
            results: results.map(|(k, y)| up(self.result_place(k), y)).collect(),
            hidden: out.hidden.into_iter().map(|x| up(self.residual_place(), x)).collect(),
            extra: extra.into_iter().map(|x| self.residual_up(x)).collect(),
        }
    }
}

fn shape<B: Operations>(x: &Operand<Vmap<B>>) -> Shape {
    match x {
        Value::Float(x) => x.0.shape(),
        Value::Integers(x) => x.0.shape(),
        Value::Flags(x) => x.0.shape(),
    }
}
