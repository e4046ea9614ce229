//! Singular value decompositions as operations.

use t4a_tensor::Tensor;

use super::{SvdRule, Vectors, rule, svd, svd_function_ex, svdvals, svdvals_ex};
use crate::degeneracy::Degeneracy;
use crate::error::{Result, SINGULAR, check};
use crate::hermitian::{Elementary, check_domain, outside_domain};
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, only, real, zeros,
};
use crate::scalar::LinalgScalar;
use crate::spectrum::{Carrier, Factors, MatrixFunction, values_jvp, values_vjp};
use crate::vocabulary::{Batched, Matrices};

pub(super) fn parts<T: LinalgScalar>(out: &super::Svd<T>) -> Vec<Part<Batched<T>>> {
    let s = Part::Real(Batched::rows_of(&out.s));
    vec![Part::Full(Batched::new(&out.u)), s, Part::Full(Batched::new(&out.vh))]
}

pub(super) fn triplets<M: Matrices>(parts: &[Part<M>]) -> (&M, &M::Real, &M) {
    (parts[0].full(), parts[1].real(), parts[2].full())
}

pub(super) fn factors<M: Matrices>(parts: &[Part<M>]) -> Factors<M> {
    let (u, s, vh) = triplets(parts);
    Factors::singular(u, s, vh)
}

/// `A` → `U`, `S`, `Vᴴ`; cotangents may have fewer columns, for truncation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SvdOp {
    /// Thin or full vectors.
    pub vectors: Vectors,
    /// Policy of the derivative rules at ties.
    pub degeneracy: Degeneracy,
}

impl SvdOp {
    /// Thin vectors; a derivative at a tie is an error.
    pub const THIN: Self = Self { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
    /// Full vectors; a derivative at a tie is an error.
    pub const FULL: Self = Self { vectors: Vectors::Full, ..Self::THIN };
}

impl MatrixOperation for SvdOp {
    const NAME: &'static str = "svd";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full, PartKind::Real, PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let [m, n] = operands[0];
        let k = m.min(n);
        match self.vectors {
            Vectors::Thin => vec![[m, k], [1, k], [k, n]],
            Vectors::Full => vec![[m, m], [1, k], [n, n]],
        }
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        Ok(Outcome::new(parts(&svd(operands[0], self.vectors)?)))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(svdvals_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (u, s, vh) = triplets(&out.results);
        let given = SvdRule {
            u: full(cotangents, 0).cloned(),
            s: real(cotangents, 1).cloned(),
            vh: full(cotangents, 2).cloned(),
        };
        let gradient = rule::vjp(u, s, vh, &given, &self.degeneracy)?;
        Ok(vec![M::unsplit(gradient, &operands[0], factors(&out.results), true)?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (u, s, vh) = triplets(&out.results);
        let (du, ds, dvh) = rule::jvp(u, s, vh, only(tangents), &self.degeneracy)?;
        Ok(vec![Part::Full(du), Part::Real(ds), Part::Full(dvh)])
    }
}

/// `A` → `S`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SvdvalsOp;

impl MatrixOperation for SvdvalsOp {
    const NAME: &'static str = "svdvals";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Real];
    const HIDDEN: &'static [PartKind] = &[PartKind::Full, PartKind::Real];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let [m, n] = operands[0];
        vec![[1, m.min(n)]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Svd)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let a = operands[0];
        if !tracked {
            let s = Batched::rows_of(&svdvals(a)?);
            return Ok(Outcome::new(vec![Part::Real(s)]));
        }
        let parts = parts(&svd(a, Vectors::Thin)?);
        let mut out = Outcome::new(vec![parts[1].clone()]);
        out.hidden = Carrier::parts(&Batched::new(a), parts[1].real());
        Ok(out.saving(Factorisation::Svd, parts))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(svdvals_ex(operands[0])?.1)
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

/// `A` → `U f(S) Vᴴ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SvdFunctionOp {
    /// The function `f`.
    pub function: Elementary,
}

impl MatrixOperation for SvdFunctionOp {
    const NAME: &'static str = "svd_function";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[0]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Svd)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let (out, values, svd, info) = svd_function_ex(operands[0], &self.function)?;
        check(Self::NAME, &info, SINGULAR)?;
        check_domain(Self::NAME, &Batched::<T::R>::rows_of(&values))?;
        Ok(Outcome::new(vec![Part::Full(Batched::new(&out))])
            .saving(Factorisation::Svd, parts(&svd)))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        let (_, values, _, info) = svd_function_ex(operands[0], &self.function)?;
        outside_domain::<T>(info, &values)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let Some(cotangent) = full(cotangents, 0) else { return Ok(vec![zeros(&operands[0])]) };
        let (factors, f) = (factors(out.factors()), MatrixFunction::Singular(self.function));
        let gradient = M::function_slope(cotangent, &operands[0], factors, f)?;
        check_domain("svd_function_vjp", &gradient)?;
        Ok(vec![gradient])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (factors, f) = (factors(out.factors()), MatrixFunction::Singular(self.function));
        let tangent = M::function_slope(only(tangents), &operands[0], factors, f)?;
        check_domain("svd_function_jvp", &tangent)?;
        Ok(vec![Part::Full(tangent)])
    }
}
