//! Real and imaginary parts of graded tensors.

use t4a_algebra::c64;
use t4a_diff::Array;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::sector::Sector;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// True if the tensor has imaginary parts.
    pub fn is_complex(&self) -> bool {
        self.im.is_some()
    }

    /// The tensor with complex entries; the imaginary parts of a real tensor become 0.
    pub fn complexified(&self) -> Self {
        Self { im: Some(self.imaginary()), ..self.clone() }
    }

    /// `Re a`, a real tensor.
    pub fn real_part(&self) -> Self {
        Self { im: None, ..self.clone() }
    }

    /// `Im a`, a real tensor; zero for a real tensor.
    pub fn imaginary_part(&self) -> Self {
        Self { spec: self.spec.clone(), re: self.imaginary(), im: None }
    }

    /// `a + i b` of real tensors with equal structures.
    ///
    /// # Errors
    /// `SpecMismatch`, `DType`; `Invalid` for complex operands.
    pub fn from_real_imaginary(a: &Self, b: &Self) -> Result<Self> {
        let op = "from_real_imaginary";
        a.check_same(op, b)?;
        if a.is_complex() || b.is_complex() {
            let message = "real tensors are required as parts".into();
            return Err(StructuredError::Invalid { op, message });
        }
        Ok(Self { spec: a.spec.clone(), re: a.re.clone(), im: Some(b.re.clone()) })
    }

    /// `i a`, a complex tensor.
    pub fn times_i(&self) -> Self {
        let re = match &self.im {
            Some(im) => im.neg(),
            None => self.re.full(&[self.spec.len()], 0.0),
        };
        Self { spec: self.spec.clone(), re, im: Some(self.re.clone()) }
    }

    /// `c a` for a complex number. The result is real if the tensor is real and `Im c = 0`.
    pub fn scale_complex(&self, c: impl Into<c64>) -> Self {
        let c = c.into();
        if c.im == 0.0 {
            return self.scale(c.re);
        }
        let (re, im) = match &self.im {
            None => (self.re.scale(c.re), self.re.scale(c.im)),
            Some(im) => (
                self.re.scale(c.re).minus(&im.scale(c.im)),
                self.re.scale(c.im).plus(&im.scale(c.re)),
            ),
        };
        Self { spec: self.spec.clone(), re, im: Some(im) }
    }
}
