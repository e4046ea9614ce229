//! Arrays as batches of matrices.

use t4a_diff::Array;

use crate::error::{LinalgError, Result};

/// Real matrices `[…, m, n]`, or the first error of their computation.
#[derive(Clone, Debug)]
pub struct RealMatrix<A>(pub(super) Result<A>);

/// Complex matrices as pairs of real ones.
#[derive(Clone, Debug)]
pub struct ComplexMatrix<A> {
    pub(super) re: RealMatrix<A>,
    pub(super) im: RealMatrix<A>,
}

impl<A: Array> RealMatrix<A> {
    /// Matrices `[…, m, n]`.
    pub fn new(array: A) -> Self {
        let shape = array.shape();
        // An array that carries an error has no shape.
        if shape.len() < 2
            && let Some(error) = array.elements().err()
        {
            return Self(Err(error.into()));
        }
        match shape.len() {
            0 | 1 => Self(Err(LinalgError::NotMatrix { op: "matrices", shape })),
            _ => Self(Ok(array)),
        }
    }

    /// The array.
    ///
    /// # Errors
    /// The first error of the preceding operations.
    pub fn into_array(self) -> Result<A> {
        self.0
    }

    pub(super) fn map(&self, f: impl FnOnce(&A) -> A) -> Self {
        Self(self.0.as_ref().map(f).map_err(Clone::clone))
    }

    /// Applies `f` to the array and the index of its last axis but one.
    pub(super) fn at(&self, f: impl FnOnce(&A, usize) -> A) -> Self {
        self.map(|x| {
            // At least two axes, unless x carries an error, which the result then carries.
            let rank = x.shape().len();
            if rank < 2 { x.clone() } else { f(x, rank - 2) }
        })
    }

    pub(super) fn zip(&self, rhs: &Self, f: impl FnOnce(&A, &A) -> A) -> Self {
        Self(match (&self.0, &rhs.0) {
            (Ok(x), Ok(y)) => Ok(f(x, y)),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        })
    }

    pub(super) fn size(&self, from_last: usize) -> usize {
        let shape = self.0.as_ref().map(A::shape).unwrap_or_default();
        shape.len().checked_sub(from_last).map_or(0, |axis| shape[axis])
    }
}

impl<A: Array> ComplexMatrix<A> {
    /// `re + i im`.
    pub fn new(re: A, im: A) -> Self {
        Self { re: RealMatrix::new(re), im: RealMatrix::new(im) }
    }
}
