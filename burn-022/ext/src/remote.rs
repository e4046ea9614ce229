//! Operations on tensors of another process: sent as values, run by its kernels.
//!
//! A server that knows them (`burn-t4a-022-server`) runs an operation as one message, and its rule as
//! another; operations of somebody else's are the pieces of their portable definitions. What leaves
//! is checked here first, so mistakes are errors at the call as everywhere.

use burn_backend::tensor::FloatTensor;
use burn_backend::{BoolDType, TensorMetadata};
use burn_remote::ir::{CustomOpIr, ScalarIr, TensorIr};
use burn_remote::{CustomOpClient, RemoteBackend};
use t4a_diff::{Cotangents, Meta, Operation, Outcome, Reverse, Value};
use t4a_operations::AnyOperation;
use t4a_operations::wire::{ID, Message};
use t4a_tensor::TensorError;

use burn_t4a_022::burn_dtype;

use crate::operation::{Operand, Operations, meta};
use crate::primitive::{Floats, shape};

type Floating = Floats<RemoteBackend>;

impl Operations for RemoteBackend {
    /// A rule needs the operands there: they are kept, and the server finds again what it saves.
    fn run<O: Operation>(
        op: &O,
        inputs: &[Operand<Self>],
        tracked: &[bool],
    ) -> Result<Outcome<Floating>, O::Error> {
        let Some(sent) = sendable(op) else {
            return op.portable(inputs, tracked);
        };
        let metas: Vec<Meta> = inputs.iter().map(meta).collect();
        let results = op.results(&metas)?;
        let results = send(&Message::Run(sent), inputs, &results)?;
        let extra = if tracked.contains(&true) { inputs.to_vec() } else { Vec::new() };
        Ok(Outcome { results, hidden: Vec::new(), extra })
    }

    fn vjp<O: Operation>(
        op: &O,
        reverse: &Reverse<'_, Floating>,
    ) -> Result<Cotangents<Floating>, O::Error> {
        let Some(sent) = sendable(op) else {
            return op.vjp(reverse);
        };
        let inputs = &reverse.kept.extra;
        let given = reverse.cotangents.iter().map(Option::is_some).collect();
        let wanted: Vec<bool> = inputs
            .iter()
            .zip(reverse.wanted)
            .map(|(x, &w)| w && matches!(x, Value::Float(_)))
            .collect();
        let back: Vec<Meta> =
            inputs.iter().zip(&wanted).filter(|&(_, &w)| w).map(|(x, _)| meta(x)).collect();
        let message = Message::Vjp { op: sent, given, wanted: wanted.clone() };
        let cotangents = reverse.cotangents.iter().flatten().cloned().map(Value::Float);
        let all: Vec<_> = inputs.iter().cloned().chain(cotangents).collect();
        let mut back = send(&message, &all, &back)?.into_iter();
        Ok(wanted.iter().map(|&w| if w { back.next() } else { None }).collect())
    }
}

/// The operation as a server knows it. Permutations are no float results: those operations run here.
fn sendable<O: Operation>(op: &O) -> Option<AnyOperation> {
    AnyOperation::of(op).filter(|op| !op.returns_indices())
}

/// One message: tensors in, tensors of these shapes out.
fn send(
    message: &Message,
    inputs: &[Operand<RemoteBackend>],
    results: &[Meta],
) -> Result<Vec<Floating>, TensorError> {
    let words = message.to_words()?;
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
    let done = client.register(CustomOpIr::with_scalars(ID, &inputs, &outputs, scalars));
    Ok(done.into_iter().map(Floats).collect())
}
