//! Operations over a wire: what a caller sends beside its tensors, and what the other side does with it.
//!
//! A message holds everything but the tensors, and neither side keeps anything of it: a derivative
//! ([`Jvp`](crate::Jvp), [`Vjp`](crate::Vjp)) gets the operands again, and finds again what it needs of the
//! forward computation. That costs the forward computation a second time, and no state on a server.

use t4a_diff::{Eager, Kind, Meta, Operation, Outcome, Value, checked_results};
use t4a_tensor::{AnyTensor, DType};

use crate::{AnyOperation, FORMAT, OperationError};

/// The name under which a server knows these messages.
pub const ID: &str = "t4a";

/// Values within values: far more than any operation has, far fewer than fill a stack.
const DEPTH: usize = 100;

impl AnyOperation {
    /// As words, for protocols that carry numbers: the version of the format and the count of bytes, then these in MessagePack.
    ///
    /// # Errors
    /// [`OperationError::Data`].
    pub fn to_words(&self) -> Result<Vec<u64>, OperationError> {
        let bytes = rmp_serde::to_vec_named(self).map_err(|e| refused(e.to_string()))?;
        let word = |part: &[u8]| {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            u64::from_le_bytes(word)
        };
        let head = [u64::from(FORMAT), bytes.len() as u64];
        Ok(head.into_iter().chain(bytes.chunks(8).map(word)).collect())
    }

    /// From [`AnyOperation::to_words`]; the operation is checked like every value that is read.
    ///
    /// # Errors
    /// [`OperationError::Data`].
    pub fn from_words(words: &[u64]) -> Result<Self, OperationError> {
        let [version, len, words @ ..] = words else { return Err(refused("it is empty")) };
        if *version != u64::from(FORMAT) {
            return Err(refused(format!("it has version {version}, this library reads {FORMAT}")));
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let part = usize::try_from(*len).ok().and_then(|len| bytes.get(..len));
        let part = part.filter(|part| part.len().div_ceil(8) == words.len()).ok_or_else(|| {
            refused(format!("{len} bytes are announced, {} have come", bytes.len()))
        })?;
        let mut reader = rmp_serde::Deserializer::from_read_ref(part);
        reader.set_max_depth(DEPTH);
        serde::Deserialize::deserialize(&mut reader)
            .map_err(|e: rmp_serde::decode::Error| refused(e.to_string()))
    }

    /// Shapes and dtypes of what [`AnyOperation::run`] returns.
    ///
    /// # Errors
    /// As there, before any work.
    pub fn returns(&self, operands: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        let mut all = checked_results(self, operands)?;
        let indices = self.indices(operands).into_iter();
        all.extend(indices.map(|shape| Meta { shape, dtype: DType::I64 }));
        Ok(all)
    }

    /// Results, then the indices that the operation returns, as `i64`. A tensor is the operand that its
    /// dtype makes it: floats, indices or truth values.
    ///
    /// # Errors
    /// Those of the operation.
    pub fn run(&self, operands: Vec<AnyTensor>) -> Result<Vec<AnyTensor>, OperationError> {
        let metas: Vec<Meta> = operands.iter().map(meta).collect();
        checked_results(self, &metas)?;
        let inputs: Vec<Value<Eager>> = operands.into_iter().map(operand).collect();
        let out = self.forward(&inputs, &vec![false; inputs.len()])?;
        self.returned(&metas, out)
    }

    /// The tensors that [`AnyOperation::run`] returns, of an outcome for operands of these shapes and dtypes.
    ///
    /// # Errors
    /// The first error of the operations that led to a result.
    pub fn returned(
        &self,
        operands: &[Meta],
        out: Outcome<Eager>,
    ) -> Result<Vec<AnyTensor>, OperationError> {
        let results = out.results.into_iter().map(|x| Ok(x.into_tensor()?));
        let indices = out.extra.into_iter().take(self.indices(operands).len());
        let indices = indices.map(|x| Ok(x.integers().tensor()?.clone().cast(DType::I64)?));
        results.chain(indices).collect()
    }
}

fn meta(x: &AnyTensor) -> Meta {
    // Indices are any integers where an operation takes them.
    let dtype = if x.dtype().is_int() { DType::I64 } else { x.dtype() };
    Meta { shape: x.shape().into(), dtype }
}

/// The tensor as an operand of the kind of its dtype: floats, indices or truth values.
pub fn operand(x: AnyTensor) -> Value<Eager> {
    match Kind::of(x.dtype()) {
        Some(Kind::Flags) => Value::Flags(x.into()),
        Some(Kind::Integers) => Value::Integers(x.into()),
        _ => Value::Float(x.into()),
    }
}

fn refused(text: impl Into<String>) -> OperationError {
    OperationError::Data(text.into())
}
