//! Eigendecompositions of general matrices as operations.

use t4a_tensor::Tensor;

use super::{eig, eig_ex, eigvals, eigvals_ex, jvp, vjp};
use crate::degeneracy::Degeneracy;
use crate::error::Result;
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, complex, only,
};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// Eigenvalues and eigenvectors of an outcome.
fn pairs<M: Matrices>(parts: &[Part<M>]) -> (&M::Complex, &M::Complex) {
    (parts[0].complex(), parts[1].complex())
}

/// Gradient in the element type of `A`.
fn gradient<M: Matrices>(
    a: &M,
    parts: &[Part<M>],
    cotangents: &[Option<Part<M>>],
    degeneracy: &Degeneracy,
) -> Result<Vec<M>> {
    let (values, vectors) = pairs(parts);
    let (of_values, of_vectors) = (complex(cotangents, 0), complex(cotangents, 1));
    let gradient = M::from_complex(&vjp(values, vectors, of_values, of_vectors, degeneracy)?);
    Ok(vec![M::unsplit_eigenvectors(gradient, a, values, vectors)?])
}

/// `A` → `λ`, `V`, complex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EigOp {
    /// Policy of the derivative rules at ties.
    pub degeneracy: Degeneracy,
}

impl EigOp {
    /// A derivative at a tie is an error.
    pub const DEFAULT: Self = Self { degeneracy: Degeneracy::DEFAULT };
}

impl MatrixOperation for EigOp {
    const NAME: &'static str = "eig";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Complex, PartKind::Complex];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let n = operands[0][1];
        vec![[1, n], [n, n]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let out = eig(operands[0])?;
        let values = Part::Complex(Batched::rows_of(&out.values));
        Ok(Outcome::new(vec![values, Part::Complex(Batched::new(&out.vectors))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(eig_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        gradient(&operands[0], &out.results, cotangents, &self.degeneracy)
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (values, vectors) = pairs(&out.results);
        let (dl, dv) = jvp(values, vectors, &only(tangents).to_complex(), &self.degeneracy)?;
        Ok(vec![Part::Complex(dl), Part::Complex(dv)])
    }
}

/// `A` → `λ`, complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EigvalsOp;

impl MatrixOperation for EigvalsOp {
    const NAME: &'static str = "eigvals";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Complex];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![[1, operands[0][1]]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Eig)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        if !tracked {
            let values = Batched::rows_of(&eigvals(operands[0])?);
            return Ok(Outcome::new(vec![Part::Complex(values)]));
        }
        let factors = EigOp::default().forward(operands, true)?.results;
        Ok(Outcome::new(vec![factors[0].clone()]).saving(Factorisation::Eig, factors))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(eigvals_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        gradient(&operands[0], out.factors(), cotangents, &Degeneracy::DEFAULT)
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (values, vectors) = pairs(out.factors());
        let da = only(tangents).to_complex();
        Ok(vec![Part::Complex(jvp(values, vectors, &da, &Degeneracy::DEFAULT)?.0)])
    }
}
