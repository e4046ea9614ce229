//! Operands of operations: floats, indices, booleans.

use t4a_tensor::{AnyTensor, DType, Result};

use crate::array::{Array, Dual, Flags, Integers, Shape};

/// An operand, or a residual other than operands and results.
#[derive(Clone, Debug)]
pub enum Value<A: Array> {
    /// Floats, which may be differentiable.
    Float(A),
    /// Indices.
    Integers(A::Integers),
    /// Booleans.
    Flags(A::Flags),
}

impl<A: Array> Value<A> {
    /// The floats.
    ///
    /// # Panics
    /// If the value has another kind: an operation fixes the kinds of its operands.
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

    /// The booleans.
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
    /// A value of another array type, by one function for each kind.
    pub fn map<C: Array>(
        self,
        float: impl FnOnce(A) -> C,
        integers: impl FnOnce(A::Integers) -> C::Integers,
        flags: impl FnOnce(A::Flags) -> C::Flags,
    ) -> Value<C> {
        match self {
            Value::Float(x) => Value::Float(float(x)),
            Value::Integers(x) => Value::Integers(integers(x)),
            Value::Flags(x) => Value::Flags(flags(x)),
        }
    }

    /// The floats, if the value is a float.
    pub fn as_float(&self) -> Option<&A> {
        match self {
            Value::Float(x) => Some(x),
            _ => None,
        }
    }

    /// As [`Value::as_float`], by value.
    pub fn into_float(self) -> Option<A> {
        match self {
            Value::Float(x) => Some(x),
            _ => None,
        }
    }

    /// The dual with this tangent, if the value is a float.
    pub fn dual(self, tangent: Option<A>) -> Value<Dual<A>> {
        self.map(|value| Dual { value, tangent }, |x| x, |x| x)
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> Shape {
        match self {
            Value::Float(x) => x.shape(),
            Value::Integers(x) => x.shape(),
            Value::Flags(x) => x.shape(),
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self {
            Value::Float(x) => x.dtype(),
            Value::Integers(x) => x.dtype(),
            Value::Flags(_) => DType::Bool,
        }
    }

    /// The elements as an engine tensor.
    ///
    /// # Errors
    /// As [`Array::elements`].
    pub fn elements(&self) -> Result<AnyTensor> {
        match self {
            Value::Float(x) => x.elements(),
            Value::Integers(x) => x.elements(),
            Value::Flags(x) => x.elements(),
        }
    }

    /// Zeros, or `false`, of this kind, dtype and device.
    pub fn zeros(&self, shape: &[usize]) -> Self {
        match self {
            Value::Float(x) => Value::Float(x.full(shape, 0.0)),
            Value::Integers(x) => Value::Integers(x.full(shape, 0)),
            Value::Flags(x) => Value::Flags(x.full(shape, false)),
        }
    }

    /// The same elements in row-major order.
    pub fn reshape(&self, shape: &[usize]) -> Self {
        match self {
            Value::Float(x) => Value::Float(x.reshape(shape)),
            Value::Integers(x) => Value::Integers(x.reshape(shape)),
            Value::Flags(x) => Value::Flags(x.reshape(shape)),
        }
    }

    /// `len` elements of an axis, starting at `start`.
    pub fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        match self {
            Value::Float(x) => Value::Float(x.narrow(axis, start, len)),
            Value::Integers(x) => Value::Integers(x.narrow(axis, start, len)),
            Value::Flags(x) => Value::Flags(x.narrow(axis, start, len)),
        }
    }

    /// Concatenation of values of one kind along an axis; `None` for an empty list or several kinds.
    pub fn cat(all: &[Self], axis: usize) -> Option<Self> {
        /// The arrays of one kind, if all values have it.
        fn parts<A: Array, X>(
            all: &[Value<A>],
            part: impl Fn(&Value<A>) -> Option<X>,
        ) -> Option<Vec<X>> {
            all.iter().map(part).collect()
        }
        Some(match all.first()? {
            Value::Float(_) => Value::Float(A::cat(&parts(all, |x| x.as_float().cloned())?, axis)),
            Value::Integers(_) => {
                let part = |x: &Self| match x {
                    Value::Integers(x) => Some(x.clone()),
                    _ => None,
                };
                Value::Integers(A::Integers::cat(&parts(all, part)?, axis))
            }
            Value::Flags(_) => {
                let part = |x: &Self| match x {
                    Value::Flags(x) => Some(x.clone()),
                    _ => None,
                };
                Value::Flags(A::Flags::cat(&parts(all, part)?, axis))
            }
        })
    }
}

impl<A: Array> Value<Dual<A>> {
    /// The value without its tangent.
    pub fn below(self) -> Value<A> {
        self.map(|x| x.value, |x| x, |x| x)
    }

    /// True if the value has a tangent.
    pub fn moves(&self) -> bool {
        matches!(self, Value::Float(Dual { tangent: Some(_), .. }))
    }
}
