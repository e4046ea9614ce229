//! Structures without their elements, for code that stores the elements itself, such as framework tensors and module
//! parameters.

use std::fmt::Debug;
use std::sync::Arc;

use t4a_diff::Array;
use t4a_einsum::FloatSemiring;

use crate::block_sparse::{BlockSparseTensor, Pattern};
use crate::diag::DiagTensor;
use crate::error::{Result, StructuredError};
use crate::graded::{Forbidden, GradedTensor};
use crate::sector::Sector;
use crate::spec::Spec;

/// Structure of a structured tensor. The elements are one array, or two for a complex tensor; they are flat, except
/// that a diagonal tensor keeps the shape of the payload it was made from.
pub trait Layout: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// Tensor with this structure.
    type Tensor<A: Array>: Clone;

    /// Number of elements.
    fn elements(&self) -> usize;

    /// Tensor of these elements.
    ///
    /// # Errors
    /// `LengthMismatch`; `DType` for parts of different dtypes; `Invalid` for imaginary parts where the class of
    /// tensors is real.
    fn with<A: Array>(&self, re: A, im: Option<A>) -> Result<Self::Tensor<A>>;

    /// Splits into the structure and the elements as stored. Elements passed to [`Layout::with`] are returned
    /// unchanged, so that a leaf of a tape keeps its identity.
    fn parts<A: Array>(tensor: &Self::Tensor<A>) -> (Self, A, Option<A>);

    /// Dense real and imaginary parts, in the shape of the tensor.
    ///
    /// # Errors
    /// Errors of the allocation.
    fn dense<A: Array>(tensor: &Self::Tensor<A>) -> Result<(A, Option<A>)>;

    /// Tensor of dense real and imaginary parts, the inverse of [`Layout::dense`].
    ///
    /// # Errors
    /// `Shape`; `FluxViolation` or `NotStored` with the first entry outside of the structure, unless it is dropped;
    /// `Invalid` for imaginary parts where the class of tensors is real.
    fn of_dense<A: Array>(
        &self,
        re: &A,
        im: Option<&A>,
        forbidden: Forbidden,
    ) -> Result<Self::Tensor<A>>;

    /// One-line description of the structure.
    fn describe(&self) -> String;
}

impl<S: Sector> Layout for Spec<S> {
    type Tensor<A: Array> = GradedTensor<S, A>;

    fn elements(&self) -> usize {
        self.len()
    }
    fn with<A: Array>(&self, re: A, im: Option<A>) -> Result<GradedTensor<S, A>> {
        GradedTensor::new(self.clone(), re, im)
    }
    fn parts<A: Array>(tensor: &GradedTensor<S, A>) -> (Self, A, Option<A>) {
        tensor.clone().into_parts()
    }
    fn dense<A: Array>(tensor: &GradedTensor<S, A>) -> Result<(A, Option<A>)> {
        tensor.to_dense()
    }
    fn of_dense<A: Array>(
        &self,
        re: &A,
        im: Option<&A>,
        forbidden: Forbidden,
    ) -> Result<GradedTensor<S, A>> {
        GradedTensor::from_dense(self, re, im, forbidden)
    }
    fn describe(&self) -> String {
        self.to_string()
    }
}

impl Layout for Arc<Pattern> {
    type Tensor<A: Array> = BlockSparseTensor<A>;

    fn elements(&self) -> usize {
        self.len()
    }
    fn with<A: Array>(&self, re: A, im: Option<A>) -> Result<BlockSparseTensor<A>> {
        real("block tensor", im)?;
        BlockSparseTensor::new(self.clone(), re)
    }
    fn parts<A: Array>(tensor: &BlockSparseTensor<A>) -> (Self, A, Option<A>) {
        (tensor.pattern().clone(), tensor.data().clone(), None)
    }
    fn dense<A: Array>(tensor: &BlockSparseTensor<A>) -> Result<(A, Option<A>)> {
        Ok((tensor.to_dense()?, None))
    }
    fn of_dense<A: Array>(
        &self,
        re: &A,
        im: Option<&A>,
        forbidden: Forbidden,
    ) -> Result<BlockSparseTensor<A>> {
        real("block tensor", im)?;
        BlockSparseTensor::from_dense(self.clone(), re, forbidden)
    }
    fn describe(&self) -> String {
        format!("{} blocks of axes in parts {:?}", self.blocks().len(), self.legs())
    }
}

/// Structure of a diagonal tensor: shape of its payload, and the payload axis of each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Classes {
    /// Shape of the payload: one size per class.
    pub payload: Vec<usize>,
    /// Class of each axis, numbered by first appearance.
    pub classes: Vec<usize>,
}

impl Layout for Classes {
    type Tensor<A: Array> = DiagTensor<A>;

    fn elements(&self) -> usize {
        self.payload.iter().product()
    }
    fn with<A: Array>(&self, re: A, im: Option<A>) -> Result<DiagTensor<A>> {
        let op = "diag";
        real(op, im)?;
        let (required, given) = (self.elements(), re.shape().iter().product());
        if required != given {
            return Err(StructuredError::LengthMismatch { op, required, given });
        }
        DiagTensor::with_sizes(re, self.payload.clone(), self.classes.clone())
    }
    fn parts<A: Array>(tensor: &DiagTensor<A>) -> (Self, A, Option<A>) {
        let (payload, classes) = (tensor.sizes().to_vec(), tensor.classes().to_vec());
        (Self { payload, classes }, tensor.elements().clone(), None)
    }
    fn dense<A: Array>(tensor: &DiagTensor<A>) -> Result<(A, Option<A>)> {
        Ok((tensor.to_dense(FloatSemiring::Standard)?, None))
    }
    fn of_dense<A: Array>(
        &self,
        re: &A,
        im: Option<&A>,
        forbidden: Forbidden,
    ) -> Result<DiagTensor<A>> {
        let op = "diag";
        real(op, im)?;
        let given = re.shape();
        let size = |&class: &usize| self.payload.get(class).copied().unwrap_or_default();
        let required: Vec<usize> = self.classes.iter().map(size).collect();
        if given != required {
            return Err(StructuredError::Shape { op, required, given });
        }
        match forbidden {
            Forbidden::Error(tolerance) => {
                DiagTensor::try_from_dense(re, self.classes.clone(), tolerance)
            }
            Forbidden::Project => DiagTensor::diag_of(re, self.classes.clone()),
        }
    }
    fn describe(&self) -> String {
        format!("payload {:?}, axes in classes {:?}", self.payload, self.classes)
    }
}

fn real<A>(op: &'static str, im: Option<A>) -> Result<()> {
    match im {
        None => Ok(()),
        Some(_) => {
            let message = "it is real, and imaginary parts are given".into();
            Err(StructuredError::Invalid { op, message })
        }
    }
}
