//! Operations as text: JSON with named fields, a version in front.
//!
//! ```text
//! {"t4a":1,"op":{"softmax":{"axis":1}}}
//! {"t4a":1,"op":{"linalg":{"op":{"qr":{"columns":"thin"}},"complex":false}}}
//! {"t4a":1,"op":{"vjp":{"op":{"softmax":{"axis":1}},"given":[true],"wanted":[true]}}}
//! ```
//!
//! The same operation has the same text. Text of a later version is refused; a later library reads the text
//! of an earlier version.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AnyOperation, OperationError};

/// The version of the text and of the words of [`wire`](crate::wire).
pub const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text<T> {
    t4a: u32,
    op: T,
}

impl AnyOperation {
    /// The text of the operation.
    ///
    /// # Errors
    /// [`OperationError::Data`] for numbers that JSON does not have, infinities among them.
    pub fn to_text(&self) -> Result<String, OperationError> {
        let text = serde_json::to_string(&Text { t4a: FORMAT, op: self }).map_err(refused)?;
        // Infinity is written as null, which would be read as a number that is not given.
        match Self::from_text(&text)? == *self {
            true => Ok(text),
            false => Err(OperationError::Data(format!("{} holds a number without text", self))),
        }
    }

    /// The operation of a text. Fields in any order.
    ///
    /// # Errors
    /// [`OperationError::Data`] for another version, for fields that are missing, unknown or do not fit.
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

/// A field of `given` that is not in `known`: a name that was mistyped is not another number that is missing.
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
