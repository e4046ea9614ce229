//! The polar decomposition as an operation.

use t4a_tensor::Tensor;

use super::{Side, jvp_on, polar, vjp_on};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only};
use crate::scalar::LinalgScalar;
use crate::svd::svdvals_ex;
use crate::vocabulary::{Batched, Matrices};

/// `A` → `U`, `P`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PolarOp {
    /// Position of `P`.
    pub side: Side,
}

impl MatrixOperation for PolarOp {
    const NAME: &'static str = "polar";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full, PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let [m, n] = operands[0];
        let p = match self.side {
            Side::Right => n,
            Side::Left => m,
        };
        vec![[m, n], [p, p]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let out = polar(operands[0], self.side)?;
        let (u, p) = (Batched::new(&out.u), Batched::new(&out.p));
        Ok(Outcome::new(vec![Part::Full(u), Part::Full(p)]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(svdvals_ex(operands[0])?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (u, p) = (out.results[0].full(), out.results[1].full());
        Ok(vec![vjp_on(self.side, u, p, full(cotangents, 0), full(cotangents, 1))?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (u, p) = (out.results[0].full(), out.results[1].full());
        let (du, dp) = jvp_on(self.side, u, p, only(tangents))?;
        Ok(vec![Part::Full(du), Part::Full(dp)])
    }
}
