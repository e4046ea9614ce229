//! Conversion to and from dense arrays; zero and random tensors.

use t4a_diff::{Array, Eager};
use t4a_tensor::random::{self, Generator};
use t4a_tensor::{AnyTensor, DType, Tensor};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::operation::one;
use crate::sector::Sector;
use crate::spec::Spec;
use crate::structural::uncovered;

/// Treatment of entries that the symmetry forbids.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forbidden {
    /// Entries larger than this tolerance are an error.
    Error(f64),
    /// Forbidden entries are dropped (orthogonal projection).
    Project,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Dense array of all entries; forbidden entries are 0. Real and imaginary part. The states of a leg are ordered
    /// by ascending sectors.
    ///
    /// # Errors
    /// `TooLarge`.
    pub fn to_dense(&self) -> Result<(A, Option<A>)> {
        let (plan, shape) = (self.spec.to_dense()?, self.spec.shape());
        let dense = |x: &A| one(&plan, &[x]).map(|x| x.reshape(&shape));
        Ok((dense(&self.re)?, self.im.as_ref().map(dense).transpose()?))
    }

    /// Tensor of a dense array: real part, and imaginary part of a complex tensor.
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
    /// Zero tensor on the engine; `f32` or `f64`, real or complex.
    ///
    /// # Errors
    /// Errors of the allocation.
    pub fn zeros(spec: Spec<S>, dtype: DType, complex: bool) -> Result<Self> {
        let zeros = || Ok::<_, StructuredError>(AnyTensor::zeros(&[spec.len()], dtype)?.into());
        let (re, im) = (zeros()?, complex.then(zeros).transpose()?);
        Self::new(spec, re, im)
    }

    /// Tensor with independent standard normal entries, on the engine.
    ///
    /// # Errors
    /// Errors of the allocation.
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
