//! Functions of Hermitian matrices as operations.

use t4a_tensor::Tensor;

use super::{Elementary, check_domain, hermitian_function_ex, outside_domain};
use crate::eigh::{factors, parts};
use crate::error::{Result, SINGULAR, check};
use crate::operation::{
    Factorisation, MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros,
};
use crate::scalar::LinalgScalar;
use crate::spectrum::MatrixFunction;
use crate::vocabulary::{Batched, Matrices};

/// `A` → `f(A)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HermitianFunctionOp {
    /// The function `f`.
    pub function: Elementary,
}

impl MatrixOperation for HermitianFunctionOp {
    const NAME: &'static str = "hermitian_function";
    const OPERANDS: Signature = Signature::Square;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[0]]
    }
    fn saves(&self, _size: [usize; 2], _permuted: bool) -> Option<Factorisation> {
        Some(Factorisation::Eigh)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let ((out, values), eigh, info) = hermitian_function_ex(operands[0], &self.function)?;
        check(Self::NAME, &info, SINGULAR)?;
        check_domain(Self::NAME, &Batched::<T::R>::rows_of(&values))?;
        let out = Outcome::new(vec![Part::Full(Batched::new(&out))]);
        Ok(out.saving(Factorisation::Eigh, parts(&eigh)))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        let ((_, values), _, info) = hermitian_function_ex(operands[0], &self.function)?;
        outside_domain::<T>(info, &values)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let Some(cotangent) = full(cotangents, 0) else { return Ok(vec![zeros(&operands[0])]) };
        let factors = factors(out.factors());
        let f = MatrixFunction::Hermitian(self.function);
        let gradient = M::function_slope(cotangent, &operands[0], factors, f)?;
        check_domain("hermitian_function_vjp", &gradient)?;
        Ok(vec![gradient])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let factors = factors(out.factors());
        let f = MatrixFunction::Hermitian(self.function);
        let tangent = M::function_slope(only(tangents), &operands[0], factors, f)?;
        check_domain("hermitian_function_jvp", &tangent)?;
        Ok(vec![Part::Full(tangent)])
    }
}
