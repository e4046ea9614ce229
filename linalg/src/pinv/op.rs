//! The pseudoinverse as an operation.

use t4a_tensor::Tensor;

use super::{jvp, pinv, pinv_ex, vjp};
use crate::degeneracy::by_bits;
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only, zeros};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

/// `A` → the pseudoinverse.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PinvOp {
    /// Relative cutoff of singular values; `None` drops those that are zero up to rounding.
    pub rtol: Option<f64>,
}

by_bits!(PinvOp, |op| op.rtol.map(f64::to_bits));

impl MatrixOperation for PinvOp {
    const NAME: &'static str = "pinv";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let [m, n] = operands[0];
        vec![[n, m]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        Ok(Outcome::new(vec![Part::Full(Batched::new(&pinv(operands[0], self.rtol)?))]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(pinv_ex(operands[0], self.rtol)?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (a, p) = (&operands[0], out.results[0].full());
        Ok(vec![full(cotangents, 0).map_or_else(|| zeros(a), |given| vjp(a, p, given))])
    }

    fn jvp<M: Matrices>(
        &self,
        operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        Ok(vec![Part::Full(jvp(&operands[0], out.results[0].full(), only(tangents)))])
    }
}
