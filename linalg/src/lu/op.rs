//! The LU factorisation as an operation.

use smallvec::{SmallVec, smallvec};
use t4a_tensor::Tensor;

use super::{Pivoting, lu_factor_ex, packed, rule};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// Status for operations in which a zero pivot is a valid result.
pub(crate) fn info_of_values<T: LinalgScalar>(a: &Tensor<T>) -> Result<Tensor<i32>> {
    super::only_failures(&lu_factor_ex(a)?.1)
}

/// `A` → packed `L` and `U`, the permutation of rows and, with full pivoting, of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LuFactorOp {
    /// Pivoting strategy.
    pub pivoting: Pivoting,
}

impl LuFactorOp {
    /// Exchanges of rows.
    pub const PARTIAL: Self = Self { pivoting: Pivoting::Partial };
    /// Exchanges of rows and columns.
    pub const FULL: Self = Self { pivoting: Pivoting::Full };
}

impl MatrixOperation for LuFactorOp {
    const NAME: &'static str = "lu_factor";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        vec![operands[0]]
    }
    fn permutations(&self, [m, n]: [usize; 2]) -> SmallVec<[usize; 2]> {
        match self.pivoting {
            Pivoting::Partial => smallvec![m],
            Pivoting::Full => smallvec![m, n],
        }
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let (out, columns) = packed(operands[0], self.pivoting)?;
        let packed = vec![Part::Full(Batched::new(&out.packed))];
        Ok(Outcome::new(packed).permuted([out.rows]).permuted(columns))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        info_of_values(operands[0])
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let Some(cotangent) = full(cotangents, 0) else { return Ok(vec![zeros(&operands[0])]) };
        let packed = out.results[0].full();
        Ok(vec![rule::vjp_packed(packed, out.permutation(), out.permutations.get(1), cotangent)?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (packed, columns) = (out.results[0].full(), out.permutations.get(1));
        let da = only(tangents);
        Ok(vec![Part::Full(rule::jvp_packed(packed, out.permutation(), columns, da))])
    }
}
