//! The operations on dtype-tagged tensors: the one place that matches on the dtype.
//!
//! A Burn backend and callers from other languages hold tensors whose element type is known at run
//! time. Their code is compiled once, here.

use t4a_tensor::{AnyTensor, DType, Tensor, TensorError, with_dtype};

use super::{Kind, Op, Outcome, Part};
use crate::error::Result;
use crate::permutation::Permutation;
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// An [`Outcome`] over dtype-tagged tensors. Vectors are rows `[…, 1, n]`, numbers `[…, 1, 1]`.
#[derive(Clone)]
pub struct AnyOutcome {
    /// The results.
    pub parts: Vec<AnyTensor>,
    /// The factorisation that the rules use, as results of another operation.
    pub saved: Option<(Op, Vec<AnyTensor>)>,
    /// The row permutation of a pivoted factorisation.
    pub rows: Option<Permutation>,
    /// The column permutation of a pivoted factorisation.
    pub cols: Option<Permutation>,
}

impl<T: LinalgScalar> Part<Batched<T>> {
    fn into_any(self) -> Result<AnyTensor> {
        Ok(match self {
            Part::Full(m) => m.into_tensor()?.into(),
            Part::Real(m) => m.into_tensor()?.into(),
            Part::Complex(m) => m.into_tensor()?.into(),
        })
    }

    fn from_any(kind: Kind, any: &AnyTensor) -> Result<Self> {
        Ok(match kind {
            Kind::Full => Part::Full(Batched::new(any.typed()?)),
            Kind::Real => Part::Real(Batched::new(any.typed()?)),
            Kind::Complex => Part::Complex(Batched::new(any.typed()?)),
        })
    }
}

fn into_any<T: LinalgScalar>(parts: Vec<Part<Batched<T>>>) -> Result<Vec<AnyTensor>> {
    parts.into_iter().map(Part::into_any).collect()
}

fn from_any<T: LinalgScalar>(op: &Op, parts: &[AnyTensor]) -> Result<Vec<Part<Batched<T>>>> {
    op.results().iter().zip(parts).map(|(&kind, any)| Part::from_any(kind, any)).collect()
}

fn batched<T: LinalgScalar>(tensors: &[AnyTensor]) -> Result<Vec<Batched<T>>> {
    tensors.iter().map(|any| Ok(Batched::new(any.typed()?))).collect()
}

impl AnyOutcome {
    fn typed<T: LinalgScalar>(&self, op: &Op) -> Result<Outcome<Batched<T>>> {
        let saved =
            |(op, parts): &(Op, Vec<AnyTensor>)| -> Result<_> { Ok((*op, from_any(op, parts)?)) };
        Ok(Outcome {
            parts: from_any(op, &self.parts)?,
            saved: self.saved.as_ref().map(saved).transpose()?,
            rows: self.rows.clone(),
            cols: self.cols.clone(),
        })
    }
}

impl<T: LinalgScalar> Outcome<Batched<T>> {
    fn into_any(self) -> Result<AnyOutcome> {
        let saved = |(op, parts)| -> Result<_> { Ok((op, into_any(parts)?)) };
        Ok(AnyOutcome {
            parts: into_any(self.parts)?,
            saved: self.saved.map(saved).transpose()?,
            rows: self.rows,
            cols: self.cols,
        })
    }
}

fn unsupported<R>(op: &Op, dtype: DType) -> Result<R> {
    let expected = "f32, f64, c32 or c64";
    Err(TensorError::DTypeUnsupported { op: op.name(), dtype, expected }.into())
}

/// Inputs of one dtype and one batch.
fn check_inputs(op: &Op, inputs: &[AnyTensor]) -> Result<DType> {
    let name = op.name();
    let first = match inputs {
        [first, ..] if inputs.len() == op.arity() => first,
        _ => {
            let message = format!("{} inputs are required, given {}", op.arity(), inputs.len());
            return Err(TensorError::value(name, message).into());
        }
    };
    for other in &inputs[1..] {
        if other.dtype() != first.dtype() {
            let (lhs, rhs) = (first.dtype(), other.dtype());
            return Err(TensorError::DTypeMismatch { op: name, lhs, rhs }.into());
        }
    }
    Ok(first.dtype())
}

impl Op {
    /// [`Op::forward`] on tensors of any of the four dtypes.
    ///
    /// # Errors
    /// Those of the operation; `Tensor` for other dtypes, and inputs that are not as many as
    /// [`Op::arity`] or differ in their dtypes.
    pub fn forward_any(&self, inputs: &[AnyTensor], tracked: bool) -> Result<AnyOutcome> {
        let dtype = check_inputs(self, inputs)?;
        with_dtype!(dtype, T in field => {
            let inputs = inputs.iter().map(|any| any.typed::<T>()).collect::<Result<Vec<_>, _>>()?;
            self.forward(&inputs, tracked)?.into_any()
        }, else => unsupported(self, dtype))
    }

    /// [`Op::vjp`] on tensors of any of the four dtypes.
    ///
    /// # Errors
    /// As [`Op::vjp`] and [`Op::forward_any`].
    pub fn vjp_any(
        &self,
        inputs: &[AnyTensor],
        out: &AnyOutcome,
        bars: &[Option<AnyTensor>],
    ) -> Result<Vec<AnyTensor>> {
        let dtype = check_inputs(self, inputs)?;
        with_dtype!(dtype, T in field => {
            let bar = |(&kind, bar): (&Kind, &Option<AnyTensor>)| {
                bar.as_ref().map(|bar| Part::from_any(kind, bar)).transpose()
            };
            let bars = self.results().iter().zip(bars).map(bar).collect::<Result<Vec<_>>>()?;
            let inputs = batched::<T>(inputs)?;
            let bars = self.vjp(&inputs, &out.typed::<T>(self)?, &bars)?;
            bars.into_iter().map(|bar| Ok(bar.into_tensor()?.into())).collect()
        }, else => unsupported(self, dtype))
    }

    /// [`Op::jvp`] on tensors of any of the four dtypes.
    ///
    /// # Errors
    /// As [`Op::jvp`] and [`Op::forward_any`].
    pub fn jvp_any(
        &self,
        inputs: &[AnyTensor],
        out: &AnyOutcome,
        tangents: &[AnyTensor],
    ) -> Result<Vec<AnyTensor>> {
        let dtype = check_inputs(self, inputs)?;
        with_dtype!(dtype, T in field => {
            let (inputs, tangents) = (batched::<T>(inputs)?, batched::<T>(tangents)?);
            into_any(self.jvp(&inputs, &out.typed::<T>(self)?, &tangents)?)
        }, else => unsupported(self, dtype))
    }

    /// The info tensor of the operation, of the batch's shape: 0 for every matrix that it can
    /// serve.
    ///
    /// # Errors
    /// As [`Op::forward_any`], save for what the info tensor reports.
    pub fn info_any(&self, inputs: &[AnyTensor]) -> Result<Tensor<i32>> {
        let dtype = check_inputs(self, inputs)?;
        with_dtype!(dtype, T in field => {
            let inputs = inputs.iter().map(|any| any.typed::<T>()).collect::<Result<Vec<_>, _>>()?;
            self.info(&inputs)
        }, else => unsupported(self, dtype))
    }
}

/// `re + i im`, elementwise, with broadcasting.
///
/// # Errors
/// `Tensor` for dtypes other than f32 and f64, and for shapes that do not match.
pub fn complex_from_parts(re: &AnyTensor, im: &AnyTensor) -> Result<AnyTensor> {
    fn join<C: LinalgScalar>(re: &AnyTensor, im: &AnyTensor) -> Result<AnyTensor> {
        let (re, im) = (Batched::<C::R>::new(re.typed()?), Batched::new(im.typed()?));
        Ok(Batched::<C>::from_parts(&re, &im).into_tensor()?.into())
    }
    match re.dtype() {
        DType::F32 => join::<t4a_algebra::c32>(re, im),
        DType::F64 => join::<t4a_algebra::c64>(re, im),
        dtype => {
            let op = "complex_from_parts";
            Err(TensorError::DTypeUnsupported { op, dtype, expected: "f32 or f64" }.into())
        }
    }
}

/// Real and imaginary part.
///
/// # Errors
/// `Tensor` for dtypes other than c32 and c64.
pub fn complex_into_parts(z: &AnyTensor) -> Result<(AnyTensor, AnyTensor)> {
    fn split<C: LinalgScalar>(z: &AnyTensor) -> Result<(AnyTensor, AnyTensor)> {
        let z = Batched::<C>::new(z.typed()?);
        Ok((z.re().into_tensor()?.into(), z.im().into_tensor()?.into()))
    }
    match z.dtype() {
        DType::C32 => split::<t4a_algebra::c32>(z),
        DType::C64 => split::<t4a_algebra::c64>(z),
        dtype => {
            let op = "complex_into_parts";
            Err(TensorError::DTypeUnsupported { op, dtype, expected: "c32 or c64" }.into())
        }
    }
}
