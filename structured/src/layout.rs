//! Structures apart from numbers, for whoever keeps the numbers: tensors of a framework, parameters of a module.

use std::fmt::Debug;
use std::sync::Arc;

use t4a_diff::Array;
use t4a_einsum::FloatSemiring;

use crate::block_sparse::{BlockSparseTensor, Pattern};
use crate::diag::DiagTensor;
use crate::error::{Result, StructuredError};
use crate::graded::GradedTensor;
use crate::sector::Sector;
use crate::spec::Spec;

/// What a structured tensor is beside its numbers, which are one array, or two of a complex one: flat, save for
/// those of a diagonal tensor that was made of its payload.
pub trait Layout: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// The tensors of this structure.
    type Tensor<A: Array>: Clone;

    /// Number of elements.
    fn elements(&self) -> usize;

    /// The tensor of these elements.
    ///
    /// # Errors
    /// `LengthMismatch`; `DType` for parts of different types; `Invalid` for imaginary parts where there
    /// are none.
    fn with<A: Array>(&self, re: A, im: Option<A>) -> Result<Self::Tensor<A>>;

    /// The structure, and the elements as they are stored: those that [`Layout::with`] was given are themselves,
    /// so that a leaf of a tape is found.
    fn parts<A: Array>(tensor: &Self::Tensor<A>) -> (Self, A, Option<A>);

    /// All elements, zeros included: in the shape of the dense array.
    ///
    /// # Errors
    /// Those of the memory.
    fn dense<A: Array>(tensor: &Self::Tensor<A>) -> Result<(A, Option<A>)>;

    /// The structure in one line.
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
    fn describe(&self) -> String {
        format!("{} blocks of axes in parts {:?}", self.blocks().len(), self.legs())
    }
}

/// The structure of a diagonal tensor: the shape of its payload, and which axis of it each axis follows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Classes {
    /// Sizes of the classes.
    pub payload: Vec<usize>,
    /// The class of each axis, numbered by first appearance.
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
