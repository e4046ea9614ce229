//! What goes in and out of the operations: primitives of a backend, real or complex.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, DType, Scalar, TensorMetadata};
use t4a_linalg::{Op, Permutation};

/// A batch of matrices `[…, m, n]`. Vectors are rows `[…, 1, n]`, numbers `[…, 1, 1]`.
#[derive(Clone, Debug)]
pub enum Value<B: Backend> {
    /// Real matrices.
    Real(FloatTensor<B>),
    /// Complex matrices as pairs of real ones; the gradient of a pair is that of `A`,
    /// `∂L/∂Re A + i ∂L/∂Im A`.
    Complex {
        /// The real part.
        re: FloatTensor<B>,
        /// The imaginary part.
        im: FloatTensor<B>,
    },
}

/// What an operation returns, and what its derivative rules need beyond that.
#[derive(Clone, Debug)]
pub struct Results<B: Backend> {
    /// The results.
    pub parts: Vec<Value<B>>,
    /// The factorisation of the first input that the rules use, as results of another operation.
    pub saved: Option<(Op, Vec<Value<B>>)>,
    /// The row permutation of a pivoted factorisation.
    pub rows: Option<Permutation>,
    /// The column permutation of a pivoted factorisation.
    pub cols: Option<Permutation>,
}

impl<B: Backend> Value<B> {
    /// Whether it has an imaginary part.
    pub fn is_complex(&self) -> bool {
        matches!(self, Value::Complex { .. })
    }

    /// The shape of the batch of matrices.
    pub fn shape(&self) -> Vec<usize> {
        match self {
            Value::Real(x) | Value::Complex { re: x, .. } => x.shape().to_vec(),
        }
    }

    /// Each part through one map, which may lead to another backend.
    pub fn map<B2: Backend>(self, f: impl Fn(FloatTensor<B>) -> FloatTensor<B2>) -> Value<B2> {
        match self {
            Value::Real(x) => Value::Real(f(x)),
            Value::Complex { re, im } => Value::Complex { re: f(re), im: f(im) },
        }
    }

    /// As [`Value::map`], for maps that can fail.
    pub(super) fn try_map<B2: Backend, E>(
        self,
        f: impl Fn(FloatTensor<B>) -> Result<FloatTensor<B2>, E>,
    ) -> Result<Value<B2>, E> {
        Ok(match self {
            Value::Real(x) => Value::Real(f(x)?),
            Value::Complex { re, im } => Value::Complex { re: f(re)?, im: f(im)? },
        })
    }

    /// The parts, one behind the other.
    pub(super) fn flatten(self, into: &mut Vec<FloatTensor<B>>) {
        match self {
            Value::Real(x) => into.push(x),
            Value::Complex { re, im } => into.extend([re, im]),
        }
    }

    /// A value like `pattern` from parts in the order of [`Value::flatten`].
    pub(super) fn unflatten<P: Backend>(
        pattern: &Value<P>,
        parts: &mut impl Iterator<Item = FloatTensor<B>>,
    ) -> Option<Self> {
        Some(match pattern {
            Value::Real(_) => Value::Real(parts.next()?),
            Value::Complex { .. } => Value::Complex { re: parts.next()?, im: parts.next()? },
        })
    }

    /// The dtype of the parts.
    pub(super) fn dtype(&self) -> DType {
        match self {
            Value::Real(x) | Value::Complex { re: x, .. } => x.dtype(),
        }
    }

    /// Real matrices as complex ones if the pattern is complex.
    pub(super) fn like(self, pattern: &Value<B>) -> Self {
        match (self, pattern) {
            (Value::Real(re), Value::Complex { .. }) => {
                let zero = Scalar::Float(0.0);
                let im = B::float_mul_scalar(B::float_detach(re.clone()), zero);
                Value::Complex { re, im }
            }
            (value, _) => value,
        }
    }

    /// `[A; 0]`.
    pub(super) fn with_zero_row(self) -> Self {
        self.map(|x| {
            let mut shape = x.shape().to_vec();
            let rank = shape.len();
            shape[rank - 2] = 1;
            let (device, dtype) = (B::float_device(&x), x.dtype().into());
            let row = B::float_zeros(shape.into(), &device, dtype);
            B::float_cat(vec![x, row], rank - 2)
        })
    }

    /// The device of the parts.
    pub(super) fn device(&self) -> burn_backend::tensor::Device<B> {
        match self {
            Value::Real(x) | Value::Complex { re: x, .. } => B::float_device(x),
        }
    }
}

impl<B: Backend> Results<B> {
    /// All values through one map into another backend.
    pub(super) fn try_map<B2: Backend, E>(
        self,
        f: impl Fn(FloatTensor<B>) -> Result<FloatTensor<B2>, E>,
    ) -> Result<Results<B2>, E> {
        let all = |values: Vec<Value<B>>| -> Result<Vec<Value<B2>>, E> {
            values.into_iter().map(|v| v.try_map(&f)).collect()
        };
        let saved = |(op, parts)| -> Result<_, E> { Ok((op, all(parts)?)) };
        Ok(Results {
            parts: all(self.parts)?,
            saved: self.saved.map(saved).transpose()?,
            rows: self.rows,
            cols: self.cols,
        })
    }
}
