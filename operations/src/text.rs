//! Operations as text: JSON with named fields, preceded by a version.
//!
//! ```text
//! {"t4a":1,"op":{"softmax":{"axis":1}}}
//! {"t4a":1,"op":{"linalg":{"op":{"qr":{"columns":"thin"}},"complex":false}}}
//! {"t4a":1,"op":{"vjp":{"op":{"softmax":{"axis":1}},"given":[true],"wanted":[true]}}}
//! ```
//!
//! Equal operations have equal text. Text of a later version is rejected; text of an earlier version is accepted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AnyOperation, OperationError};

/// Version of the text format and of the binary format of [`wire`](crate::wire).
pub const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<T> {
    t4a: u32,
    op: T,
}

impl AnyOperation {
    /// Text of the operation.
    ///
    /// # Errors
    /// [`OperationError::Data`] for numbers that JSON cannot represent, such as infinities.
    pub fn to_text(&self) -> Result<String, OperationError> {
        let text = serde_json::to_string(&Text { t4a: FORMAT, op: self }).map_err(refused)?;
        // JSON has no infinity: it is written as null and would be read as a missing number.
        match Self::from_text(&text)? == *self {
            true => Ok(text),
            false => Err(OperationError::Data(format!("{} holds a number without text", self))),
        }
    }

    /// Parses an operation; fields may be in any order.
    ///
    /// # Errors
    /// [`OperationError::Data`] for another version, and for missing, unknown or invalid fields.
    pub fn from_text(text: &str) -> Result<Self, OperationError> {
        let Text { t4a: version, op } =
            serde_json::from_str::<Text<Value>>(text).map_err(refused)?;
        if version != FORMAT {
            let text = format!("the text has version {version}, this library reads {FORMAT}");
            return Err(OperationError::Data(text));
        }
        let read = Self::deserialize(&op).map_err(refused)?;
        let known = serde_json::to_value(&read).map_err(refused)?;
        match unknown(&op, &known) {
            Some(field) => Err(OperationError::Data(format!("there is no field {field:?}"))),
            None => Ok(read),
        }
    }
}

fn refused(error: impl ToString) -> OperationError {
    OperationError::Data(error.to_string())
}

/// First field of `given` that is not in `known`, so that a misspelt optional field is an error.
fn unknown(given: &Value, known: &Value) -> Option<String> {
    match (given, known) {
        (Value::Object(given), Value::Object(known)) => {
            given.iter().find_map(|(name, given)| match known.get(name) {
                Some(known) => unknown(given, known),
                None => Some(name.clone()),
            })
        }
        (Value::Array(given), Value::Array(known)) => {
            given.iter().zip(known).find_map(|(given, known)| unknown(given, known))
        }
        _ => None,
    }
}
