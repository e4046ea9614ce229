//! Eigendecompositions of Hermitian matrices as operations.

use t4a_tensor::Tensor;

use super::{Eigh, eigh, eigvalsh, eigvalsh_ex, rule};
use crate::degeneracy::Degeneracy;
use crate::error::Result;
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, only, real,
};
use crate::scalar::LinalgScalar;
use crate::spectrum::{Carrier, Factors, values_jvp, values_vjp};
use crate::vocabulary::{Batched, Matrices};

pub(crate) fn parts<T: LinalgScalar>(out: &Eigh<T>) -> Vec<Part<Batched<T>>> {
    vec![Part::Real(Batched::rows_of(&out.values)), Part::Full(Batched::new(&out.vectors))]
}

/// Eigenvalues and eigenvectors of an outcome.
pub(crate) fn pairs<M: Matrices>(parts: &[Part<M>]) -> (&M::Real, &M) {
    (parts[0].real(), parts[1].full())
}

pub(crate) fn factors<M: Matrices>(parts: &[Part<M>]) -> Factors<M> {
    let (values, vectors) = pairs(parts);
    Factors::hermitian(values, vectors)
}

/// `A` → `E`, `V`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EighOp {
    /// Policy of the derivative rules at ties.
    pub degeneracy: Degeneracy,
}

impl EighOp {
    /// A derivative at a tie is an error.
    pub const DEFAULT: Self = Self { degeneracy: Degeneracy::DEFAULT };
}

impl MatrixOperation for EighOp {
    const NAME: &'static str = "eigh";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Real, PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let n = operands[0][1];
        vec![[1, n], [n, n]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        Ok(Outcome::new(parts(&eigh(operands[0])?)))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(eigvalsh_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (values, vectors) = pairs(&out.results);
        let (e, v) = (real(cotangents, 0), full(cotangents, 1));
        let gradient = rule::vjp(values, vectors, e, v, &self.degeneracy)?;
        Ok(vec![M::unsplit(gradient, &operands[0], factors(&out.results), true)?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (values, vectors) = pairs(&out.results);
        let (de, dv) = rule::jvp(values, vectors, only(tangents), &self.degeneracy)?;
        Ok(vec![Part::Real(de), Part::Full(dv)])
    }
}

/// `A` → `E`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EigvalshOp;

impl MatrixOperation for EigvalshOp {
    const NAME: &'static str = "eigvalsh";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Real];
    const HIDDEN: &'static [PartKind] = &[PartKind::Full, PartKind::Real];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![[1, operands[0][1]]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Eigh)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let a = operands[0];
        if !tracked {
            return Ok(Outcome::new(vec![Part::Real(Batched::rows_of(&eigvalsh(a)?))]));
        }
        let parts = parts(&eigh(a)?);
        let mut out = Outcome::new(vec![parts[0].clone()]);
        out.hidden = Carrier::parts(&Batched::new(a), parts[0].real());
        Ok(out.saving(Factorisation::Eigh, parts))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(eigvalsh_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let factors = factors(out.factors());
        Ok(vec![values_vjp(&operands[0], &factors, &out.hidden, cotangents)?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        values_jvp(&factors(out.factors()), &out.hidden, only(tangents))
    }
}
