//! Vector-Jacobian products: cotangents of operands.

use serde::{Deserialize, Serialize};
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Flags, Integers, Keep, Kept, Kind, Meta, OnBatch, Operation,
    Outcome, Reverse, Value,
};
use t4a_tensor::DType;

use super::erased::{Erased, erase, erase_value, release};
use super::{
    Residuals, constant, differentiable, fits, one_each, places, refused, residuals, reverse,
    split, spread,
};
use crate::{AnyOperation, OperationError};

/// Inputs: operands, then the cotangents of the given results. Outputs: the cotangents of the wanted operands. The
/// forward computation is repeated in each call; nothing is saved between calls.
///
/// [`Vjp::of_results`] takes the results as well, between operands and cotangents, and does not compute them again. They
/// are functions of the operands: a derivative of the vjp is that by operands and cotangents, and the results have none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "VjpData")]
pub struct Vjp {
    pub(super) op: Box<AnyOperation>,
    given: Vec<bool>,
    wanted: Vec<bool>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    results: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VjpData {
    op: Box<AnyOperation>,
    given: Vec<bool>,
    wanted: Vec<bool>,
    #[serde(default)]
    results: bool,
}

impl TryFrom<VjpData> for Vjp {
    type Error = OperationError;

    fn try_from(data: VjpData) -> Result<Self, OperationError> {
        match data.results {
            true => Self::of_results(*data.op, data.given, data.wanted),
            false => Self::new(*data.op, data.given, data.wanted),
        }
    }
}

impl Vjp {
    /// Vjp of an operation; `given[i]` is true if result `i` has a cotangent, `wanted[i]` if the cotangent of operand
    /// `i` is an output.
    ///
    /// # Errors
    /// [`OperationError::Derivative`] for other numbers of flags than results and operands, if no result has a
    /// cotangent, if a wanted operand is not a float, or if the order exceeds [`MAX_ORDER`](super::MAX_ORDER).
    pub fn new(
        op: impl Into<AnyOperation>,
        given: Vec<bool>,
        wanted: Vec<bool>,
    ) -> Result<Self, OperationError> {
        let op = differentiable(op.into())?;
        one_each(&op, &given, op.arity().map(|[_, results]| results), "results")?;
        one_each(&op, &wanted, op.arity().map(|[operands, _]| operands), "operands")?;
        if let Some(i) = places(&wanted).find(|&i| op.kind(i) != Kind::Float) {
            return Err(refused(&op, format!("operand {i} has no cotangent: it holds no floats")));
        }
        match given.contains(&true) {
            true => Ok(Self { op, given, wanted, results: false }),
            false => Err(refused(&op, "no result has a cotangent")),
        }
    }

    /// The same, with the results of the operation as operands behind its own: all of them, in their order.
    ///
    /// # Errors
    /// As [`Vjp::new`]; [`OperationError::Derivative`] for an operation whose rule reads no results, or more than operands
    /// and results.
    pub fn of_results(
        op: impl Into<AnyOperation>,
        given: Vec<bool>,
        wanted: Vec<bool>,
    ) -> Result<Self, OperationError> {
        let own = Self::new(op, given, wanted)?;
        match residuals(&own.op, &own.wanted) {
            Residuals::Results => Ok(Self { results: true, ..own }),
            _ => Err(refused(&own.op, "its rule does not read results alone")),
        }
    }

    /// True if the results of the operation are operands.
    pub fn takes_results(&self) -> bool {
        self.results
    }

    /// The number of results that are operands.
    fn taken(&self) -> usize {
        if self.results { self.given.len() } else { 0 }
    }

    /// The differentiated operation.
    pub fn op(&self) -> &AnyOperation {
        &self.op
    }

    /// For each result, true if it has a cotangent.
    pub fn given(&self) -> &[bool] {
        &self.given
    }

    /// For each operand, true if its cotangent is an output.
    pub fn wanted(&self) -> &[bool] {
        &self.wanted
    }

    /// Operands of the operation, and one optional cotangent for each of its results.
    fn operands<'a, A: Array>(&self, inputs: &'a [Value<A>]) -> (&'a [Value<A>], Vec<Option<A>>) {
        let (own, behind) = inputs.split_at(self.wanted.len());
        let cotangents = behind[self.taken()..].iter();
        (own, spread(&self.given, cotangents.map(|x| x.float().clone())))
    }

    /// Cotangents in the shapes of the results: that of a number may come with an axis.
    fn numbers(
        &self,
        own: &[Value<Eager>],
        mut cotangents: Vec<Option<Eager>>,
    ) -> Result<Vec<Option<Eager>>, OperationError> {
        let is_one = |x: &Option<Eager>| x.as_ref().is_some_and(|x| x.shape() == [1]);
        if cotangents.iter().any(is_one) {
            let metas: Vec<Meta> = own.iter().map(meta).collect();
            for (x, result) in cotangents.iter_mut().zip(self.op.results(&metas)?) {
                if let (Some(x), true) = (x, result.shape.is_empty()) {
                    *x = x.reshape(&[]);
                }
            }
        }
        Ok(cotangents)
    }

    /// Wanted cotangents; missing ones are zero.
    fn results_of<A: Array>(&self, own: &[Value<A>], back: Vec<Option<A>>) -> Outcome<A> {
        let zeros = |i: usize| own[i].float().full(&own[i].float().shape(), 0.0);
        let mut back = back;
        Outcome::new(
            places(&self.wanted).map(|i| back[i].take().unwrap_or_else(|| zeros(i))).collect(),
        )
    }
}

impl Operation for Vjp {
    type Error = OperationError;

    fn name(&self) -> &'static str {
        "vjp"
    }

    fn kind(&self, operand: usize) -> Kind {
        if operand < self.wanted.len() { self.op.kind(operand) } else { Kind::Float }
    }

    fn arity(&self) -> Option<[usize; 2]> {
        let cotangents = places(&self.given).count();
        Some([self.wanted.len() + self.taken() + cotangents, places(&self.wanted).count()])
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        let count = self.taken() + places(&self.given).count();
        let what = if self.results { "results and cotangents" } else { "cotangents" };
        let (own, behind) = split(&self.op, inputs, self.wanted.len(), count, what)?;
        let results = self.op.results(own)?;
        if results.len() != self.given.len() {
            let (has, said) = (results.len(), self.given.len());
            return Err(refused(&self.op, format!("it has {has} results, the mask has {said}")));
        }
        let (taken, cotangents) = behind.split_at(self.taken());
        for (result, given) in results.iter().zip(taken) {
            fits(&self.op, "given value", result, given)?;
        }
        for (i, cotangent) in places(&self.given).zip(cotangents) {
            // Some callers represent a 0-d array with shape [1].
            let number = results[i].shape.is_empty() && cotangent.shape == [1];
            let shape = if number { cotangent.shape.clone() } else { results[i].shape.clone() };
            let result = Meta { shape, dtype: results[i].dtype };
            fits(&self.op, "cotangent", &result, cotangent)?;
        }
        Ok(places(&self.wanted).map(|i| own[i].clone()).collect())
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        _: &[bool],
    ) -> Result<Outcome<A>, OperationError> {
        let (own, cotangents) = self.operands(inputs);
        let (_, back) = reverse(&self.op, own, &cotangents, &self.wanted)?;
        Ok(self.results_of(own, back))
    }

    fn forward(
        &self,
        inputs: &[Value<Eager>],
        _: &[bool],
    ) -> Result<Outcome<Eager>, OperationError> {
        let (own, cotangents) = self.operands(inputs);
        if !self.wanted.contains(&true) {
            return Ok(Outcome::new(Vec::new()));
        }
        let out = match (self.results, residuals(&self.op, &self.wanted)) {
            (true, _) => {
                let taken = &inputs[own.len()..][..self.given.len()];
                Outcome::new(taken.iter().map(|x| x.float().clone()).collect())
            }
            (_, Residuals::Operands) => Outcome::new(Vec::new()),
            _ => self.op.forward(own, &self.wanted)?,
        };
        let kept = Kept::new(self.op.keep(&self.wanted), own, &out);
        let hidden = vec![None; out.hidden.len()];
        let (cotangents, wanted) = (&self.numbers(own, cotangents)?[..], &self.wanted[..]);
        let back = Reverse { kept: &kept, cotangents, hidden: &hidden, wanted };
        let mut back = self.op.fused_vjp(&back)?;
        back.resize_with(self.wanted.len(), || None);
        Ok(self.results_of(own, back))
    }

    fn vjp<A: Array>(&self, given: &Reverse<'_, A>) -> Result<Cotangents<A>, OperationError> {
        self.check_second_order()?;
        let n = self.wanted.len();
        let inputs: Vec<Value<Erased>> =
            (0..given.wanted.len()).map(|i| erase_value(given.kept.input(i))).collect();
        let (own, cotangents) = self.operands(&inputs);
        let along = spread(&self.wanted, given.cotangents.iter());
        let along = along.into_iter().map(|x| x.and_then(Option::as_ref).map(erase));
        let duals: Vec<Value<Dual<Erased>>> =
            own.iter().zip(along).map(|(x, t)| x.clone().dual(t)).collect();
        let cotangents: Vec<Option<Dual<Erased>>> =
            cotangents.iter().map(|x| x.as_ref().map(constant)).collect();
        let (out, back) = reverse(&self.op, &duals, &cotangents, &given.wanted[..n])?;
        let moved = |x: &Dual<Erased>| x.tangent.as_ref().map(release);
        let of_inputs = back.iter().map(|x| x.as_ref().and_then(moved));
        let of_cotangents =
            places(&self.given).zip(&inputs[n + self.taken()..]).map(|(k, given)| {
                let tangent: Option<A> = moved(&out.results[k]);
                tangent.map(|t| t.reshape(&given.float().shape()))
            });
        let of_results = std::iter::repeat_n(None, self.taken());
        Ok(of_inputs.chain(of_results).chain(of_cotangents).collect())
    }

    fn check_second_order(&self) -> Result<(), OperationError> {
        self.op.check_second_order()
    }

    fn is_on_host(&self) -> bool {
        self.op.is_on_host()
    }

    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        let (own, behind) = differ.split_at(self.wanted.len());
        // Every result has the batch axis, so every cotangent and every wanted operand must have it.
        let wanted = places(&self.wanted).all(|i| own[i]);
        (wanted && !behind.contains(&false)).then_some(())?;
        match self.op.on_batch(size, own)? {
            OnBatch::Front { op, .. } => {
                Some(OnBatch::front(Self { op: Box::new(op), ..self.clone() }))
            }
            OnBatch::Joined { .. } => None,
        }
    }
}

fn meta(x: &Value<Eager>) -> Meta {
    match x {
        Value::Float(x) => Meta { shape: x.shape(), dtype: x.dtype() },
        Value::Integers(x) => Meta { shape: x.shape(), dtype: DType::I64 },
        Value::Flags(x) => Meta { shape: x.shape(), dtype: DType::Bool },
    }
}
