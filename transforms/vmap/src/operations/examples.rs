//! Last fallback for operations that read elements and have no batching rule: a loop over examples whose results are
//! stacked. The fallback policy must allow it.

use burn_backend::{Shape, Slice, TensorMetadata};
use burn_t4a::ext::operation::{
    Cotangents, Dual, Operand, Operation, Operations, Outcome, Reverse, Value,
};
use burn_t4a::ext::primitive::{Bools, Floats, Indices};
use burn_tensor::Float;
use t4a_diff::Kept;
use t4a_tensor::TensorError;
use t4a_tensor::route::{Path, Reason, Route};

use super::{Above, on_value};
use crate::kind::{DataKind, Primitive};
use crate::movement::MappedTensor;
use crate::tensor::VmapTensor;

/// Checks the fallback policy; an empty batch is an error.
fn allowed<O: Operation>(op: &O, size: usize) -> Result<(), O::Error> {
    if size == 0 {
        let message = "an operation that reads elements has no definition for a batch of none";
        return Err(TensorError::value(op.name(), message).into());
    }
    Route::fallback(op.name(), Path::LoopContiguous, Reason::OpUnsupported)?;
    Ok(())
}

/// Example `i` of a batch.
fn example<B: Operations, K: DataKind<B>>(x: &MappedTensor<B, K>, i: usize) -> Primitive<B, K> {
    let shape = x.shape();
    let (inner, batched) = x.clone().into_inner();
    if !batched {
        return inner;
    }
    let one = Slice::new(i as isize, Some(i as isize + 1), 1);
    K::reshape(K::slice(inner, &[one]), shape)
}

/// Stacks examples along a new batch axis.
fn stack<B: Operations, K: DataKind<B>>(all: Vec<Primitive<B, K>>) -> MappedTensor<B, K> {
    let widen = |x: Primitive<B, K>| {
        let shape: Shape = [1].into_iter().chain(x.shape().iter().copied()).collect();
        K::reshape(x, shape)
    };
    VmapTensor::batched(K::cat(all.into_iter().map(widen).collect(), 0))
}

fn operand<B: Operations>(x: &Operand<crate::Vmap<B>>, i: usize) -> Operand<B> {
    on_value!(x, x: K => example::<B, K>(x, i))
}

fn float<B: Operations>(x: &Above<B>, i: usize) -> Floats<B> {
    Floats(example::<B, Float>(&x.0, i))
}

fn floats<B: Operations>(all: Vec<Floats<B>>) -> Above<B> {
    Floats(stack::<B, Float>(all.into_iter().map(|x| x.0).collect()))
}

/// Transposes a list of per-example lists.
fn transposed<T>(all: Vec<Vec<T>>) -> Vec<Vec<T>> {
    let count = all.first().map_or(0, Vec::len);
    let mut all: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
    (0..count).map(|_| all.iter_mut().filter_map(Iterator::next).collect()).collect()
}

fn values<B: Operations>(all: Vec<Operand<B>>) -> Operand<crate::Vmap<B>> {
    macro_rules! of {
        ($kind:ident, $wrap:ident, $k:ty) => {{
            let one = |x| match x {
                Value::$kind($wrap(x)) => x,
                _ => unreachable!("examples have results of the same kinds"),
            };
            Value::$kind($wrap(stack::<B, $k>(all.into_iter().map(one).collect())))
        }};
    }
    match all[0] {
        Value::Float(_) => of!(Float, Floats, Float),
        Value::Integers(_) => of!(Integers, Indices, burn_tensor::Int),
        Value::Flags(_) => of!(Flags, Bools, burn_tensor::Bool),
    }
}

pub(super) fn run<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Operand<crate::Vmap<B>>],
    tracked: &[bool],
    size: usize,
) -> Result<Outcome<Above<B>>, O::Error> {
    allowed(op, size)?;
    let (mut results, mut hidden, mut extra) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..size {
        let inputs: Vec<Operand<B>> = inputs.iter().map(|x| operand(x, i)).collect();
        let out = B::run(op, &inputs, tracked)?;
        results.push(out.results);
        hidden.push(out.hidden);
        extra.push(out.extra);
    }
    Ok(Outcome {
        results: transposed(results).into_iter().map(floats).collect(),
        hidden: transposed(hidden).into_iter().map(floats).collect(),
        extra: transposed(extra).into_iter().map(values).collect(),
    })
}

pub(super) fn vjp<O: Operation, B: Operations>(
    op: &O,
    reverse: &Reverse<'_, Above<B>>,
    size: usize,
) -> Result<Cotangents<Above<B>>, O::Error> {
    allowed(op, size)?;
    let mut all = Vec::new();
    for i in 0..size {
        let kept = reverse.kept;
        let optional = |x: &Option<Above<B>>| x.as_ref().map(|x| float(x, i));
        let kept = Kept::from_parts(
            kept.inputs().iter().map(|x| x.as_ref().map(|x| operand(x, i))).collect(),
            kept.results().iter().map(optional).collect(),
            kept.hidden.iter().map(|x| float(x, i)).collect(),
            kept.extra.iter().map(|x| operand(x, i)).collect(),
        );
        let cotangents: Vec<_> = reverse.cotangents.iter().map(optional).collect();
        let hidden: Vec<_> = reverse.hidden.iter().map(optional).collect();
        let wanted = reverse.wanted;
        let one = Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted };
        all.push(B::vjp(op, &one)?);
    }
    // A rule returns cotangents for the same operands in every example.
    let whole = |all: Vec<Option<Floats<B>>>| {
        let all: Option<Vec<Floats<B>>> = all.into_iter().collect();
        all.map(floats)
    };
    Ok(transposed(all).into_iter().map(whole).collect())
}

pub(super) fn jvp<O: Operation, B: Operations>(
    op: &O,
    inputs: &[Value<Dual<Above<B>>>],
    tracked: &[bool],
    size: usize,
) -> Result<Outcome<Dual<Above<B>>>, O::Error> {
    allowed(op, size)?;
    let (mut results, mut hidden, mut extra) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..size {
        let dual = |x: &Value<Dual<Above<B>>>| {
            let tangent = match x {
                Value::Float(Dual { tangent: Some(t), .. }) => Some(float(t, i)),
                _ => None,
            };
            operand(&x.clone().below(), i).dual(tangent)
        };
        let inputs: Vec<_> = inputs.iter().map(dual).collect();
        let out = B::jvp(op, &inputs, tracked)?;
        results.push(out.results);
        hidden.push(out.hidden);
        extra.push(out.extra.into_iter().map(Value::below).collect());
    }
    let duals = |all: Vec<Dual<Floats<B>>>| {
        let tangents: Option<Vec<Floats<B>>> = all.iter().map(|x| x.tangent.clone()).collect();
        let value = floats(all.into_iter().map(|x| x.value).collect());
        Dual { value, tangent: tangents.map(floats) }
    };
    Ok(Outcome {
        results: transposed(results).into_iter().map(duals).collect(),
        hidden: transposed(hidden).into_iter().map(duals).collect(),
        extra: transposed(extra).into_iter().map(|x| values(x).dual(None)).collect(),
    })
}
