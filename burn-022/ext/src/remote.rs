//! Operations on tensors of another process, sent as values and run by the kernels of the server.
//!
//! A `burn-t4a-022-server` runs each operation as one message. Derivatives are operations, hence messages too;
//! operations of other crates run by their portable definitions in operations of Burn. Operands are checked before
//! they are sent, so invalid calls return errors immediately.

use burn_backend::tensor::FloatTensor;
use burn_backend::{BoolDType, TensorMetadata};
use burn_remote::ir::{CustomOpIr, ScalarIr, TensorIr};
use burn_remote::{CustomOpClient, RemoteBackend};
use t4a_diff::{Cotangents, Dual, Keep, Meta, Operation, Outcome, Reverse, Value};
use t4a_operations::wire::ID;
use t4a_operations::{AnyOperation, Jvp, Vjp};
use t4a_tensor::{DType, TensorError};

use burn_t4a_022::burn_dtype;

use crate::operation::{Operand, Operations, by_definition, meta};
use crate::primitive::{Floats, Indices, shape};

type Floating = Floats<RemoteBackend>;

impl Operations for RemoteBackend {
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floating>, O::Error> {
        let Some(sent) = AnyOperation::of(op) else {
            return by_definition(op, inputs, tracked);
        };
        let metas: Vec<Meta> = inputs.iter().map(meta).collect();
        let mut back = op.results(&metas)?;
        let results = back.len();
        back.extend(indices(op, &metas));
        let mut back = send(&sent, inputs, &back)?;
        let extra = back.split_off(results).into_iter().map(|x| Value::Integers(Indices(x)));
        let extra = extra.collect();
        Ok(Outcome { results: floats(back), hidden: Vec::new(), extra })
    }

    /// The server receives the operands again and recomputes other values that the rule needs.
    fn keep<O: Operation>(op: &O, tracked: &[bool]) -> Keep {
        match AnyOperation::of(op) {
            Some(_) => Keep::default().all_inputs(),
            None => op.keep(tracked),
        }
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floating>,
    ) -> Result<Cotangents<Floating>, O::Error> {
        let Some(sent) = AnyOperation::of(op) else {
            return op.vjp(reverse);
        };
        let inputs: Vec<_> = reverse.kept.inputs().iter().flatten().cloned().collect();
        let given = reverse.cotangents.iter().map(Option::is_some).collect();
        let wanted: Vec<bool> = inputs
            .iter()
            .zip(reverse.wanted)
            .map(|(x, &w)| w && matches!(x, Value::Float(_)))
            .collect();
        let back: Vec<Meta> =
            inputs.iter().zip(&wanted).filter(|&(_, &w)| w).map(|(x, _)| meta(x)).collect();
        let vjp = Vjp::new(sent, given, wanted.clone()).map_err(TensorError::from)?;
        let cotangents = reverse.cotangents.iter().flatten().cloned().map(Value::Float);
        let all: Vec<_> = inputs.iter().cloned().chain(cotangents).collect();
        let mut back = floats(send(&vjp.into(), &all, &back)?).into_iter();
        Ok(wanted.iter().map(|&w| if w { back.next() } else { None }).collect())
    }

    fn jvp<O: Operation>(
        op: &O,
        inputs: &[Value<Dual<Floating>>],
        tracked: &[bool],
    ) -> Result<Outcome<Dual<Floating>>, O::Error> {
        let moving: Vec<bool> = inputs.iter().map(Value::moves).collect();
        let Some(sent) = AnyOperation::of(op).filter(|_| moving.contains(&true)) else {
            return op.jvp(inputs, tracked);
        };
        let tangent = |x: &Value<Dual<Floating>>| match x {
            Value::Float(x) => x.tangent.clone().map(Value::Float),
            _ => None,
        };
        let values: Vec<Operand<Self>> = inputs.iter().map(|x| x.clone().below()).collect();
        let metas: Vec<Meta> = values.iter().map(meta).collect();
        let results = op.results(&metas)?;
        let back: Vec<Meta> = [&results[..], &results].concat();
        let back: Vec<Meta> = back.into_iter().chain(indices(op, &metas)).collect();
        let all: Vec<_> = values.into_iter().chain(inputs.iter().filter_map(tangent)).collect();
        let jvp = Jvp::new(sent, moving).map_err(TensorError::from)?;
        let mut values = send(&jvp.into(), &all, &back)?;
        let extra = values.split_off(2 * results.len()).into_iter();
        let moved = floats(values.split_off(results.len()));
        let results = floats(values).into_iter().zip(moved).map(|(x, t)| Dual::new(x, t));
        let extra = extra.map(|x| Value::Integers(Indices(x)));
        Ok(Outcome { results: results.collect(), hidden: Vec::new(), extra: extra.collect() })
    }
}

fn indices<O: Operation>(op: &O, inputs: &[Meta]) -> impl Iterator<Item = Meta> {
    op.indices(inputs).into_iter().map(|shape| Meta { shape, dtype: DType::I64 })
}

fn floats(all: Vec<FloatTensor<RemoteBackend>>) -> Vec<Floating> {
    all.into_iter().map(Floats::<RemoteBackend>).collect()
}

/// Sends one message with input tensors; returns tensors of the given shapes.
fn send(
    op: &AnyOperation,
    inputs: &[Operand<RemoteBackend>],
    results: &[Meta],
) -> Result<Vec<FloatTensor<RemoteBackend>>, TensorError> {
    let words = op.to_words()?;
    let tensor = |x: &Operand<RemoteBackend>| -> FloatTensor<RemoteBackend> {
        match x {
            Value::Float(x) => x.0.clone(),
            Value::Integers(x) => x.0.clone(),
            Value::Flags(x) => x.0.clone(),
        }
    };
    let inputs: Vec<FloatTensor<RemoteBackend>> = inputs.iter().map(tensor).collect();
    let Some(first) = inputs.first() else {
        return Err(TensorError::value("remote", "an operation without operands has no server"));
    };
    let client = CustomOpClient::new(&first.device());
    let out = |y: &Meta| {
        let dtype =
            burn_dtype(y.dtype, BoolDType::Native).ok_or(TensorError::DTypeUnsupported {
                op: "remote",
                dtype: y.dtype,
                expected: "a dtype of Burn",
            })?;
        Ok(TensorIr::uninit(client.create_empty_handle(), shape(&y.shape), dtype))
    };
    let outputs: Vec<TensorIr> = results.iter().map(out).collect::<Result<_, TensorError>>()?;
    let inputs: Vec<TensorIr> = inputs.into_iter().map(|x| x.into_ir()).collect();
    let scalars = words.into_iter().map(ScalarIr::UInt).collect();
    Ok(client.register(CustomOpIr::with_scalars(ID, &inputs, &outputs, scalars)))
}
