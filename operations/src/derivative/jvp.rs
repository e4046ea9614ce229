//! Jacobian-vector products: results with their tangents.

use serde::{Deserialize, Serialize};
use t4a_diff::array::Shape;
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Keep, Kind, Meta, OnBatch, Operation, Outcome, Reverse, Value,
};

use super::erased::{Erased, erase, erase_value, release, release_value};
use super::{constant, differentiable, fits, one_each, places, refused, reverse, split, spread};
use crate::{AnyOperation, OperationError};

/// Inputs: operands, then the tangents of the active operands. Outputs: results, then their tangents. Integer results
/// are those of the operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "JvpData")]
pub struct Jvp {
    pub(super) op: Box<AnyOperation>,
    moving: Vec<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JvpData {
    op: Box<AnyOperation>,
    moving: Vec<bool>,
}

impl TryFrom<JvpData> for Jvp {
    type Error = OperationError;

    fn try_from(data: JvpData) -> Result<Self, OperationError> {
        Self::new(*data.op, data.moving)
    }
}

impl Jvp {
    /// Jvp of an operation; `moving[i]` is true if operand `i` has a tangent.
    ///
    /// # Errors
    /// [`OperationError::Derivative`] for another number of flags than operands, if no operand has a tangent, if an
    /// operand with a tangent is not a float, or if the order exceeds [`MAX_ORDER`](super::MAX_ORDER).
    pub fn new(op: impl Into<AnyOperation>, moving: Vec<bool>) -> Result<Self, OperationError> {
        let op = differentiable(op.into())?;
        one_each(&op, &moving, op.arity().map(|[operands, _]| operands), "operands")?;
        if let Some(i) = places(&moving).find(|&i| op.kind(i) != Kind::Float) {
            return Err(refused(&op, format!("operand {i} has no tangent: it holds no floats")));
        }
        match moving.contains(&true) {
            true => Ok(Self { op, moving }),
            false => Err(refused(&op, "no operand moves")),
        }
    }

    /// The differentiated operation.
    pub fn op(&self) -> &AnyOperation {
        &self.op
    }

    /// For each operand, true if it has a tangent.
    pub fn moving(&self) -> &[bool] {
        &self.moving
    }

    fn duals<A: Array>(&self, inputs: &[Value<A>]) -> Vec<Value<Dual<A>>> {
        let (own, tangents) = inputs.split_at(self.moving.len());
        let tangents = spread(&self.moving, tangents.iter().map(|x| x.float().clone()));
        own.iter().zip(tangents).map(|(x, t)| x.clone().dual(t)).collect()
    }
}

/// Concatenates results and tangents.
fn joined<A: Array>(out: Outcome<Dual<A>>) -> Outcome<A> {
    let extra = out.extra.into_iter().map(Value::below).collect();
    let mut tangents: Vec<A> = out.results.iter().map(|x| x.clone().into_tangent()).collect();
    let mut results: Vec<A> = out.results.into_iter().map(Dual::into_value).collect();
    results.append(&mut tangents);
    Outcome { results, hidden: Vec::new(), extra }
}

impl Operation for Jvp {
    type Error = OperationError;

    fn name(&self) -> &'static str {
        "jvp"
    }

    fn kind(&self, operand: usize) -> Kind {
        if operand < self.moving.len() { self.op.kind(operand) } else { Kind::Float }
    }

    fn arity(&self) -> Option<[usize; 2]> {
        let [_, results] = self.op.arity()?;
        Some([self.moving.len() + places(&self.moving).count(), 2 * results])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        let count = places(&self.moving).count();
        let (own, tangents) = split(&self.op, inputs, self.moving.len(), count, "tangents")?;
        for (i, tangent) in places(&self.moving).zip(tangents) {
            fits(&self.op, "tangent", &own[i], tangent)?;
        }
        let results = self.op.results(own)?;
        Ok([&results[..], &results].concat())
    }

    fn indices(&self, inputs: &[Meta]) -> Vec<Shape> {
        self.op.indices(&inputs[..self.moving.len()])
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, OperationError> {
        let inputs: Vec<Value<Erased>> = inputs.iter().map(erase_value).collect();
        let own = vec![false; self.moving.len()];
        let out = joined(Erased::jvp(&*self.op, &self.duals(&inputs), &own)?);
        out.try_map(|x| Ok(release_value(&x)), |x| Ok(release(&x)))
    }

    fn forward(
        &self,
        inputs: &[Value<Eager>],
        _: &[bool],
    ) -> Result<Outcome<Eager>, OperationError> {
        let own = vec![false; self.moving.len()];
        Ok(joined(self.op.fused_jvp(&self.duals(inputs), &own)?))
    }

    fn vjp<A: Array>(&self, given: &Reverse<'_, A>) -> Result<Cotangents<A>, OperationError> {
        self.check_second_order()?;
        let n = self.moving.len();
        let inputs: Vec<Value<Erased>> =
            (0..given.wanted.len()).map(|i| erase_value(given.kept.input(i))).collect();
        let duals = self.duals(&inputs);
        // The rule uses results to compute tangents, so an operand is active if either is wanted.
        let tangents = spread(&self.moving, &given.wanted[n..]);
        let wanted: Vec<bool> =
            given.wanted[..n].iter().zip(tangents).map(|(&x, t)| x || t == Some(&true)).collect();
        let (of_results, of_tangents) = given.cotangents.split_at(given.cotangents.len() / 2);
        let cotangent = |(y, t): (&Option<A>, &Option<A>)| match (y, t) {
            (None, None) => None,
            (None, Some(t)) => Some(constant(&erase(t))),
            (Some(y), None) => Some(Dual::new(erase(&y.full(&y.shape(), 0.0)), erase(y))),
            (Some(y), Some(t)) => Some(Dual::new(erase(t), erase(y))),
        };
        let cotangents: Vec<Option<Dual<Erased>>> =
            of_results.iter().zip(of_tangents).map(cotangent).collect();
        let (_, back) = reverse(&self.op, &duals, &cotangents, &wanted)?;
        let of_inputs = back.iter().map(|x| x.as_ref()?.tangent.as_ref().map(release));
        let of_moving = places(&self.moving).map(|i| back[i].as_ref().map(|x| release(&x.value)));
        Ok(of_inputs.chain(of_moving).collect())
    }

    fn check_second_order(&self) -> Result<(), OperationError> {
        self.op.check_second_order()
    }

    fn is_on_host(&self) -> bool {
        self.op.is_on_host()
    }

    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let (own, tangents) = differ.split_at(self.moving.len());
        // A tangent has the shape of its operand, so both have the batch axis or neither has it.
        places(&self.moving).zip(tangents).all(|(i, &t)| own[i] == t).then_some(())?;
        match self.op.on_batch(size, own)? {
            OnBatch::Front { op, residuals } => {
                let op = Self { op: Box::new(op), moving: self.moving.clone() };
                Some(OnBatch::Front { op, residuals })
            }
            OnBatch::Joined { operands, results } => {
                let tangents = places(&self.moving).map(|i| operands[i]);
                let operands = operands.iter().copied().chain(tangents).collect();
                Some(OnBatch::Joined { operands, results: [&results[..], &results].concat() })
            }
        }
    }
}
