//! Binary messages: operations sent to another process together with their tensors.
//!
//! A message contains everything except the tensors, and neither side keeps state: a derivative ([`Jvp`](crate::Jvp),
//! [`Vjp`](crate::Vjp)) receives the operands again and repeats the forward computation. This costs one more forward
//! pass and makes the server stateless.

use t4a_diff::{Eager, Kind, Meta, Operation, Outcome, Value, check_kinds};
use t4a_tensor::{AnyTensor, DType, TensorError};

use crate::{AnyOperation, FORMAT, OperationError};

/// Name of these messages on a server.
pub const ID: &str = "t4a";

/// Maximum nesting depth of deserialised values: above that of every operation, below the limit of the stack.
const DEPTH: usize = 100;

impl AnyOperation {
    /// Encodes the operation as 64-bit words, for protocols that transmit numbers: format version, number of bytes,
    /// then the MessagePack encoding.
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

    /// Decodes the words of [`AnyOperation::to_words`]; the operation is validated like any deserialised value.
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
            refused(format!("the header states {len} bytes, received {}", bytes.len()))
        })?;
        let mut reader = rmp_serde::Deserializer::from_read_ref(part);
        reader.set_max_depth(DEPTH);
        serde::Deserialize::deserialize(&mut reader)
            .map_err(|e: rmp_serde::decode::Error| refused(e.to_string()))
    }

    /// Shapes and dtypes of the results without indices, for operands of any integer dtype.
    ///
    /// # Errors
    /// As [`AnyOperation::run`], before any work.
    pub fn checked_results(&self, operands: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        // Before integers are widened, so that an error names the dtype of the caller.
        check_kinds(self, operands)?;
        self.results(&operands.iter().map(widened).collect::<Vec<_>>())
    }

    /// Shapes and dtypes of the results of [`AnyOperation::run`].
    ///
    /// # Errors
    /// As [`AnyOperation::run`], before any work.
    pub fn returns(&self, operands: &[Meta]) -> Result<Vec<Meta>, OperationError> {
        let mut all = self.checked_results(operands)?;
        let indices = self.indices(operands).into_iter();
        all.extend(indices.map(|shape| Meta { shape, dtype: DType::I64 }));
        Ok(all)
    }

    /// Runs the operation. Returns the results, then its integer results as `i64`. The dtype of a tensor determines
    /// the kind of the operand: float, integer or boolean.
    ///
    /// # Errors
    /// Errors of the operation.
    pub fn run(&self, operands: Vec<AnyTensor>) -> Result<Vec<AnyTensor>, OperationError> {
        let metas: Vec<Meta> = operands.iter().map(meta).collect();
        self.checked_results(&metas)?;
        self.run_unchecked(operands)
    }

    /// [`AnyOperation::run`] without the checks, for operands whose shapes and dtypes [`AnyOperation::returns`] accepts.
    /// Other operands are an error or a panic, or give wrong results.
    ///
    /// # Errors
    /// Errors of the operation.
    pub fn run_unchecked(
        &self,
        operands: Vec<AnyTensor>,
    ) -> Result<Vec<AnyTensor>, OperationError> {
        let inputs: Vec<Value<Eager>> = operands.into_iter().map(operand).collect();
        let out = self.forward(&inputs, &vec![false; inputs.len()])?;
        if out.extra.is_empty() {
            return out.results.into_iter().map(|x| Ok(x.into_tensor()?)).collect();
        }
        let metas: Vec<Meta> = inputs.iter().map(meta_of).collect::<Result<_, _>>()?;
        self.returned(&metas, out)
    }

    /// Tensors that [`AnyOperation::run`] returns, for an outcome computed from operands of these shapes and dtypes.
    ///
    /// # Errors
    /// The first error of the computation.
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
    Meta { shape: x.shape().into(), dtype: x.dtype() }
}

/// Integers as `i64`, the dtype of integer results.
fn widened(x: &Meta) -> Meta {
    let dtype = if x.dtype.is_int() { DType::I64 } else { x.dtype };
    Meta { shape: x.shape.clone(), dtype }
}

/// Shape and dtype of an operand.
fn meta_of(x: &Value<Eager>) -> Result<Meta, TensorError> {
    match x {
        Value::Float(x) => x.tensor().map(meta),
        Value::Integers(x) => x.tensor().map(meta),
        Value::Flags(x) => x.tensor().map(meta),
    }
}

/// Converts a tensor to an operand of the kind of its dtype: float, integer or boolean.
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
