//! Operations that run on the engine as a whole, and so do their derivatives of every order.

use std::any::Any;

use t4a_diff::array::Shape;
use t4a_diff::{
    Array, Cotangents, Dual, Eager, Integers, Keep, Kind, Meta, OnBatch, Operation, Outcome,
    Reverse, Value,
};
use t4a_operations::{AnyOperation, Jvp, OperationError, Vjp};

/// An operation of the table whose rules read elements. A derivative is another operation of the table, applied to the
/// arrays of the caller. It is never composed of array operations, so that none of its intermediate values is read while
/// a function is recorded.
#[derive(Clone, Debug)]
pub(crate) struct HostOperation(pub(crate) AnyOperation);

impl HostOperation {
    /// The operation, if its definition is computed on the host and the table has it.
    pub(crate) fn of<O: Operation>(op: &O) -> Option<Self> {
        op.is_on_host().then(|| Self::any(op).map(Self))?
    }

    /// The operation as one of the table, if the table has it.
    pub(crate) fn any<O: Operation>(op: &O) -> Option<AnyOperation> {
        let own = (op as &dyn Any).downcast_ref::<Self>();
        own.map_or_else(|| AnyOperation::of(op), |own| Some(own.0.clone()))
    }
}

/// Copies the elements to the engine.
fn host<A: Array>(x: &Value<A>) -> Result<Value<Eager>, OperationError> {
    Ok(match x {
        Value::Float(_) => Value::Float(x.elements()?.into()),
        Value::Integers(_) => Value::Integers(x.elements()?.into()),
        Value::Flags(_) => Value::Flags(x.elements()?.into()),
    })
}

impl Operation for HostOperation {
    type Error = OperationError;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn kind(&self, operand: usize) -> Kind {
        self.0.kind(operand)
    }

    fn results(&self, inputs: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        self.0.results(inputs)
    }

    fn indices(&self, inputs: &[Meta]) -> Vec<Shape> {
        self.0.indices(inputs)
    }

    fn keep(&self, _: &[bool]) -> Keep {
        Keep::default().all_inputs()
    }

    fn is_on_host(&self) -> bool {
        true
    }

    /// By the engine; the results are constants of the implementor.
    fn portable<A: Array>(
        &self,
        inputs: &[Value<A>],
        tracked: &[bool],
    ) -> Result<Outcome<A>, OperationError> {
        let like = inputs.iter().find_map(|x| x.clone().into_float());
        let like = like.unwrap_or_else(|| unreachable!("a derivative has a float operand"));
        let inputs = inputs.iter().map(host).collect::<Result<Vec<_>, _>>()?;
        self.forward(&inputs, tracked)?.try_map(
            |x| match x {
                Value::Integers(x) => Ok(Value::Integers(like.indices(x.elements()?))),
                _ => unreachable!("only permutations have no derivative"),
            },
            |x| Ok(like.constant(x.elements()?)),
        )
    }

    fn forward(
        &self,
        inputs: &[Value<Eager>],
        tracked: &[bool],
    ) -> Result<Outcome<Eager>, OperationError> {
        self.0.forward(inputs, tracked)
    }

    fn vjp<A: Array>(&self, reverse: &Reverse<'_, A>) -> Result<Cotangents<A>, OperationError> {
        let &Reverse { kept, cotangents, wanted, .. } = reverse;
        let given = cotangents.iter().map(Option::is_some).collect();
        let op = Self(Vjp::new(self.0.clone(), given, wanted.to_vec())?.into());
        let operands = (0..wanted.len()).map(|i| kept.input(i).clone());
        let behind = cotangents.iter().flatten().cloned().map(Value::Float);
        let inputs: Vec<Value<A>> = operands.chain(behind).collect();
        let mut all = A::apply(&op, &inputs, &vec![false; inputs.len()])?.results.into_iter();
        Ok(wanted.iter().map(|&wanted| if wanted { all.next() } else { None }).collect())
    }

    fn fused_vjp(&self, reverse: &Reverse<'_, Eager>) -> Result<Cotangents<Eager>, OperationError> {
        self.0.fused_vjp(reverse)
    }

    fn jvp<A: Array>(
        &self,
        inputs: &[Value<Dual<A>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<A>>, OperationError> {
        let moving: Vec<bool> = inputs.iter().map(Value::moves).collect();
        let op = Self(Jvp::new(self.0.clone(), moving)?.into());
        let tangents = inputs.iter().cloned().filter_map(|x| x.into_float()?.tangent);
        let values = inputs.iter().cloned().map(Value::below);
        let operands: Vec<Value<A>> = values.chain(tangents.map(Value::Float)).collect();
        let moving = inputs.iter().zip(tracked).filter(|(x, _)| x.moves()).map(|(_, t)| *t);
        let tracked: Vec<bool> = tracked.iter().copied().chain(moving).collect();
        let Outcome { mut results, extra, .. } = A::apply(&op, &operands, &tracked)?;
        let tangents = results.split_off(results.len() / 2);
        let results = results.into_iter().zip(tangents).map(|(y, t)| Dual::new(y, t)).collect();
        let extra = extra.into_iter().map(|x| x.dual(None)).collect();
        Ok(Outcome { results, hidden: Vec::new(), extra })
    }

    fn fused_jvp(
        &self,
        inputs: &[Value<Dual<Eager>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Eager>>, OperationError> {
        self.0.fused_jvp(inputs, tracked)
    }

    fn check_second_order(&self) -> Result<(), OperationError> {
        self.0.check_second_order()
    }

    fn on_batch(&self, size: usize, differ: &[bool]) -> Option<OnBatch<Self>> {
        Some(self.0.on_batch(size, differ)?.map(Self))
    }
}
