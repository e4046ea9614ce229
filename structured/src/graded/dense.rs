//! Dense arrays, and tensors to start with.

use t4a_diff::{Array, Eager};
use t4a_tensor::random::{self, Generator};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::operation::one;
use crate::sector::Sector;
use crate::spec::Spec;
use crate::structural::uncovered;

/// What happens to entries that the symmetry forbids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forbidden {
    /// Those greater than this are an error.
    Error(f64),
    /// They are dropped.
    Project,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// The dense array of all entries, zeros included; real and imaginary part. States of a leg stand by
    /// ascending sectors.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn to_dense(&self) -> Result<(A, Option<A>)> {
        let (plan, shape) = (self.spec.to_dense()?, self.spec.shape());
        let dense = |x: &A| one(&plan, &[x]).map(|x| x.reshape(&shape));
        Ok((dense(&self.re)?, self.im.as_ref().map(dense).transpose()?))
    }

    /// The tensor of a dense array: real part, and imaginary part of a complex one.
    ///
    /// # Errors
    /// `Shape`; `FluxViolation` with the first entry that the symmetry forbids.
    pub fn from_dense(
        spec: &Spec<S>,
        re: &A,
        im: Option<&A>,
        forbidden: Forbidden,
    ) -> Result<Self> {
        let (op, plan, required) = ("from_dense", spec.to_dense()?, spec.shape());
        let read = |x: &A| {
            if x.shape() != required {
                let given = x.shape();
                return Err(StructuredError::Shape { op, required: required.clone(), given });
            }
            if let Forbidden::Error(tolerance) = forbidden {
                let wide = x.elements()?.cast(DType::F64)?;
                uncovered(spec, &plan, &wide.typed::<f64>()?.to_vec()?, tolerance)?;
            }
            one(&plan.adjoint(), &[&x.reshape(&[plan.plan.to_len()])])
        };
        Self::new(spec.clone(), read(re)?, im.map(read).transpose()?)
    }
}

impl<S: Sector> GradedTensor<S> {
    /// Zeros on the engine, `f32` or `f64`, complex or not.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn zeros(spec: Spec<S>, dtype: DType, complex: bool) -> Result<Self> {
        let zeros = || Ok::<_, StructuredError>(AnyTensor::zeros(&[spec.len()], dtype)?.into());
        let (re, im) = (zeros()?, complex.then(zeros).transpose()?);
        Self::new(spec, re, im)
    }

    /// Normally distributed entries of variance 1 on the engine.
    ///
    /// # Errors
    /// Those of the memory.
    pub fn random(
        spec: Spec<S>,
        dtype: DType,
        complex: bool,
        generator: &Generator,
    ) -> Result<Self> {
        let draw = || {
            let x: Tensor<f64> = random::normal(generator, &[spec.len()], 0.0, 1.0)?;
            Ok::<_, StructuredError>(Eager::from(AnyTensor::from(x).cast(dtype)?))
        };
        let (re, im) = (draw()?, complex.then(draw).transpose()?);
        Self::new(spec, re, im)
    }
}
