//! Operations over a wire: what a caller sends beside its tensors, and what the other side does with it.
//!
//! A message holds everything but the tensors, and neither side keeps anything of it: a rule gets the
//! operands again, and finds again what it needs of the forward computation. That costs the forward
//! computation a second time, and no state on a server.

use serde::{Deserialize, Serialize};
use t4a_diff::{Eager, Kept, Meta, Operation, Reverse, Value, checked_results};
use t4a_tensor::{AnyTensor, DType, TensorError};

use crate::{AnyOperation, OperationError};

/// The name under which a server knows these messages.
pub const ID: &str = "t4a";

/// An operation on tensors that come with it, or its rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Operands → results, then the indices that the operation returns, as `i64`.
    Run(AnyOperation),
    /// Operands, then the tangents of those that move → as for `Run`, then the tangents of the results.
    Jvp {
        /// The operation.
        op: AnyOperation,
        /// Which operands move.
        moving: Vec<bool>,
    },
    /// Operands, then the cotangents of the results that have one → the cotangents of the operands that
    /// want one.
    Vjp {
        /// The operation.
        op: AnyOperation,
        /// Which results have a cotangent.
        given: Vec<bool>,
        /// Which operands want one.
        wanted: Vec<bool>,
    },
}

impl Message {
    /// As words, for protocols that carry numbers: the count of bytes, then these in MessagePack.
    ///
    /// # Errors
    /// [`OperationError::Message`].
    pub fn to_words(&self) -> Result<Vec<u64>, OperationError> {
        let bytes = rmp_serde::to_vec(self).map_err(|e| refused(e.to_string()))?;
        let word = |part: &[u8]| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        };
        Ok(std::iter::once(bytes.len() as u64).chain(bytes.chunks(8).map(word)).collect())
    }

    /// From [`Message::to_words`]; the operation is checked like every value that is read.
    ///
    /// # Errors
    /// [`OperationError::Message`].
    pub fn from_words(words: &[u64]) -> Result<Self, OperationError> {
        let (&len, words) = words.split_first().ok_or_else(|| refused("it is empty"))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let part = usize::try_from(len).ok().and_then(|len| bytes.get(..len));
        let part = part.filter(|part| part.len().div_ceil(8) == words.len()).ok_or_else(|| {
            refused(format!("{len} bytes are announced, {} have come", bytes.len()))
        })?;
        rmp_serde::from_slice(part).map_err(|e| refused(e.to_string()))
    }

    /// Does what it says. A tensor is the operand that its dtype makes it: floats, indices or truth
    /// values. A cotangent that is zero comes as zeros.
    ///
    /// # Errors
    /// [`OperationError::Message`] if the tensors are not those announced; those of the operation.
    pub fn answer(&self, tensors: Vec<AnyTensor>) -> Result<Vec<AnyTensor>, OperationError> {
        match self {
            Message::Run(op) => {
                let metas: Vec<Meta> = tensors.iter().map(meta).collect();
                checked_results(op, &metas)?;
                let inputs: Vec<Value<Eager>> = tensors.into_iter().map(value).collect();
                let out = op.forward(&inputs, &vec![false; inputs.len()])?;
                let results = out.results.into_iter().map(|x| Ok(x.into_tensor()?));
                results.chain(indices(op, &metas, out.extra)).collect()
            }
            Message::Jvp { op, moving } => jvp(op, moving, tensors),
            Message::Vjp { op, given, wanted } => vjp(op, given, wanted, tensors),
        }
    }
}

/// The indices that an operation returns, of what it returned beside its results.
fn indices(
    op: &AnyOperation,
    inputs: &[Meta],
    extra: Vec<Value<Eager>>,
) -> impl Iterator<Item = Result<AnyTensor, OperationError>> {
    let returned = op.indices(inputs).len();
    extra.into_iter().take(returned).map(|x| Ok(x.integers().tensor()?.clone().cast(DType::I64)?))
}

fn jvp(
    op: &AnyOperation,
    moving: &[bool],
    mut tensors: Vec<AnyTensor>,
) -> Result<Vec<AnyTensor>, OperationError> {
    let count = moving.iter().filter(|&&moves| moves).count();
    if tensors.len() != moving.len() + count || count == 0 {
        let text = format!("{} operands and {count} tangents", moving.len());
        return Err(refused(format!("{text} are announced, {} tensors have come", tensors.len())));
    }
    let mut tangents = tensors.split_off(moving.len()).into_iter();
    let metas: Vec<Meta> = tensors.iter().map(meta).collect();
    let results = checked_results(op, &metas)?;
    let mut inputs = Vec::with_capacity(tensors.len());
    for (i, (x, &moves)) in tensors.into_iter().zip(moving).enumerate() {
        let tangent = moves.then(|| tangents.next()).flatten();
        if let Some(t) = &tangent
            && (!x.dtype().is_float() || t.dtype() != x.dtype() || t.shape() != x.shape())
        {
            let [a, b] = [&x, t].map(|x| (x.dtype(), x.shape()));
            return Err(refused(format!("operand {i} is {a:?}, its tangent {b:?}")));
        }
        inputs.push(value(x).dual(tangent.map(Eager::from)));
    }
    let out = op.fused_jvp(&inputs, &vec![false; inputs.len()])?;
    let extra = out.extra.into_iter().map(Value::below).collect();
    let (values, moved): (Vec<_>, Vec<_>) =
        out.results.into_iter().map(|x| (x.value, x.tangent)).unzip();
    let values = values.into_iter().map(|x| Ok(x.into_tensor()?));
    let moved = moved.into_iter().zip(&results).map(|(t, meta)| match t {
        Some(t) => Ok(t.into_tensor()?),
        None => Ok(AnyTensor::zeros(&meta.shape, meta.dtype)?),
    });
    values.chain(indices(op, &metas, extra)).chain(moved).collect()
}

fn vjp(
    op: &AnyOperation,
    given: &[bool],
    wanted: &[bool],
    mut tensors: Vec<AnyTensor>,
) -> Result<Vec<AnyTensor>, OperationError> {
    let count = given.iter().filter(|&&given| given).count();
    if tensors.len() != wanted.len() + count || count == 0 {
        let text = format!("{} operands and {count} cotangents", wanted.len());
        return Err(refused(format!("{text} are announced, {} tensors have come", tensors.len())));
    }
    let mut cotangents = tensors.split_off(wanted.len()).into_iter();
    let metas: Vec<Meta> = tensors.iter().map(meta).collect();
    let results = checked_results(op, &metas)?;
    if results.len() != given.len() {
        let text = format!("{} has {} results", op.name(), results.len());
        return Err(refused(format!("{text}, of {} is said whether they count", given.len())));
    }
    let float = |(x, wanted): (&Meta, &bool)| *wanted && !x.dtype.is_float();
    if let Some(i) = metas.iter().zip(wanted).position(float) {
        return Err(refused(format!(
            "operand {i} is {} and has no cotangent",
            metas[i].dtype.name()
        )));
    }
    let mut cotangent = |(y, given): (&Meta, &bool)| -> Result<_, OperationError> {
        let Some(x) = given.then(|| cotangents.next()).flatten() else { return Ok(None) };
        // A number may come with an axis.
        let number = y.shape.is_empty() && x.shape() == [1];
        if x.dtype() != y.dtype || (x.shape() != &*y.shape && !number) {
            let [a, b] = [(y.dtype, &*y.shape), (x.dtype(), x.shape())];
            return Err(refused(format!("a result is {a:?}, its cotangent {b:?}")));
        }
        Ok(Some(Eager::from(x.reshape(&y.shape)?)))
    };
    let cotangents: Vec<Option<Eager>> =
        results.iter().zip(given).map(&mut cotangent).collect::<Result<_, _>>()?;
    // Rules are run for at least one operand.
    if !wanted.contains(&true) {
        return Ok(Vec::new());
    }
    let inputs: Vec<Value<Eager>> = tensors.into_iter().map(value).collect();
    let out = op.forward(&inputs, wanted)?;
    let kept = Kept::new(op.keep(wanted), &inputs, &out);
    let hidden = vec![None; out.hidden.len()];
    let reverse = Reverse { kept: &kept, cotangents: &cotangents, hidden: &hidden, wanted };
    let all = op.fused_vjp(&reverse)?.into_iter().chain(std::iter::repeat(None));
    let all = all.zip(wanted.iter().zip(&metas)).filter(|(_, (wanted, _))| **wanted);
    all.map(|(x, (_, meta))| match x {
        Some(x) => Ok(x.into_tensor()?),
        None => Ok(AnyTensor::zeros(&meta.shape, meta.dtype)?),
    })
    .collect()
}

fn meta(x: &AnyTensor) -> Meta {
    // Indices are any integers where an operation takes them.
    let dtype = if x.dtype().is_int() { DType::I64 } else { x.dtype() };
    Meta { shape: x.shape().into(), dtype }
}

fn value(x: AnyTensor) -> Value<Eager> {
    match x.dtype() {
        DType::Bool => Value::Flags(x.into()),
        dtype if dtype.is_int() => Value::Integers(x.into()),
        _ => Value::Float(x.into()),
    }
}

fn refused(text: impl Into<String>) -> OperationError {
    OperationError::Message(text.into())
}

impl From<OperationError> for TensorError {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Tensor(error) => error,
            other => TensorError::value("a remote operation", other.to_string()),
        }
    }
}
