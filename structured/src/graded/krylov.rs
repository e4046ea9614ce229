//! `Vector` implementation: graded tensors in Krylov methods.

use t4a_algebra::c64;
use t4a_diff::Array;
use t4a_linalg::krylov::{ArrayVector, Diagonal, Vector};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    fn with_entries(spec: Spec<S>, ArrayVector { re, im }: ArrayVector<A>) -> Self {
        Self { spec, re, im }
    }

    /// Splits into structure and entries.
    fn split_entries(self) -> (Spec<S>, ArrayVector<A>) {
        let Self { spec, re, im } = self;
        (spec, ArrayVector { re, im })
    }

    fn entries(&self) -> ArrayVector<A> {
        ArrayVector { re: self.re.clone(), im: self.im.clone() }
    }
}

/// The inner product is the sum over entries, which for fermions is not a contraction; operators of Krylov methods
/// are Hermitian with respect to it. The product of a real tensor and a complex number is complex.
impl<S: Sector, A: Array> Vector for GradedTensor<S, A> {
    type Error = StructuredError;

    fn inner(&self, other: &Self) -> Result<c64> {
        self.check_same("inner", other)?;
        Ok(Vector::inner(&self.entries(), &other.entries())?)
    }

    fn scale(&self, c: c64) -> Result<Self> {
        Ok(Self::with_entries(self.spec.clone(), Vector::scale(&self.entries(), c)?))
    }

    fn axpy(self, c: c64, x: &Self) -> Result<Self> {
        self.check_same("axpy", x)?;
        let (spec, entries) = self.split_entries();
        Ok(Self::with_entries(spec, entries.axpy(c, &x.entries())?))
    }

    fn inners(&self, vectors: &[Self]) -> Result<Vec<c64>> {
        vectors.iter().try_for_each(|v| v.check_same("inner", self))?;
        let vectors: Vec<_> = vectors.iter().map(Self::entries).collect();
        Ok(Vector::inners(&self.entries(), &vectors)?)
    }

    fn add_terms(self, c: &[c64], x: &[Self]) -> Result<Self> {
        x.iter().try_for_each(|x| self.check_same("axpy", x))?;
        let x: Vec<_> = x.iter().map(Self::entries).collect();
        let (spec, entries) = self.split_entries();
        Ok(Self::with_entries(spec, entries.add_terms(c, &x)?))
    }

    fn random(&self, seed: u64) -> Result<Self> {
        Ok(Self::with_entries(self.spec.clone(), self.entries().random(seed)?))
    }

    fn epsilon(&self) -> f64 {
        self.entries().epsilon()
    }
}

impl<S: Sector, A: Array> Diagonal for GradedTensor<S, A> {
    fn divided(&self, d: &Self, shift: f64, least: f64) -> Result<Self> {
        self.check_same("divided", d)?;
        let entries = self.entries().divided(&d.entries(), shift, least)?;
        Ok(Self::with_entries(self.spec.clone(), entries))
    }
}
