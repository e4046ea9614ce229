//! Operands of operations: floats, indices, truth values.

use crate::array::{Array, Dual};

/// An operand, or what a rule needs beyond operands and results.
#[derive(Clone, Debug)]
pub enum Value<A: Array> {
    /// Floats, which may have a derivative.
    Float(A),
    /// Indices.
    Integers(A::Integers),
    /// Truth values.
    Flags(A::Flags),
}

impl<A: Array> Value<A> {
    /// The floats.
    ///
    /// # Panics
    /// If it is something else: an operation fixes what its operands are.
    #[track_caller]
    pub fn float(&self) -> &A {
        match self {
            Value::Float(x) => x,
            other => unreachable!("floats are required, given {other:?}"),
        }
    }

    /// The indices.
    ///
    /// # Panics
    /// As [`Value::float`].
    #[track_caller]
    pub fn integers(&self) -> &A::Integers {
        match self {
            Value::Integers(x) => x,
            other => unreachable!("integers are required, given {other:?}"),
        }
    }

    /// The truth values.
    ///
    /// # Panics
    /// As [`Value::float`].
    #[track_caller]
    pub fn flags(&self) -> &A::Flags {
        match self {
            Value::Flags(x) => x,
            other => unreachable!("truth values are required, given {other:?}"),
        }
    }
}

impl<A: Array> Value<A> {
    /// With this tangent, if it is a float.
    pub fn dual(self, tangent: Option<A>) -> Value<Dual<A>> {
        match self {
            Value::Float(value) => Value::Float(Dual { value, tangent }),
            Value::Integers(x) => Value::Integers(x),
            Value::Flags(x) => Value::Flags(x),
        }
    }
}

impl<A: Array> Value<Dual<A>> {
    /// Without its tangent.
    pub fn below(self) -> Value<A> {
        match self {
            Value::Float(x) => Value::Float(x.value),
            Value::Integers(x) => Value::Integers(x),
            Value::Flags(x) => Value::Flags(x),
        }
    }

    /// True if it has a tangent.
    pub fn moves(&self) -> bool {
        matches!(self, Value::Float(Dual { tangent: Some(_), .. }))
    }
}
