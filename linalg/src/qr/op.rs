//! QR factorisations as operations.

use smallvec::{SmallVec, smallvec};
use t4a_tensor::Tensor;

use super::{Columns, Qr, lq, qr, qr_ex, qr_pivoted, rule};
use crate::error::Result;
use crate::operation::{MatrixOperation, Outcome, Part, PartKind, Signature, full, only};
use crate::scalar::LinalgScalar;
use crate::vocabulary::{Batched, Matrices};

fn parts<T: LinalgScalar>(out: &Qr<T>) -> Vec<Part<Batched<T>>> {
    vec![Part::Full(Batched::new(&out.q)), Part::Full(Batched::new(&out.r))]
}

fn sizes([m, n]: [usize; 2], columns: Columns) -> Vec<[usize; 2]> {
    let width = match columns {
        Columns::Thin => m.min(n),
        Columns::Complete => m,
    };
    vec![[m, width], [width, n]]
}

/// `A` → `Q`, `R`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QrOp {
    /// Thin or complete.
    pub columns: Columns,
}

impl QrOp {
    /// `Q` of the size of `A`.
    pub const THIN: Self = Self { columns: Columns::Thin };
    /// Square `Q`.
    pub const COMPLETE: Self = Self { columns: Columns::Complete };
}

impl MatrixOperation for QrOp {
    const NAME: &'static str = "qr";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full, PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        sizes(operands[0], self.columns)
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        Ok(Outcome::new(parts(&qr(operands[0], self.columns)?)))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(qr_ex(operands[0], Columns::Thin)?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (q, r) = (out.results[0].full(), out.results[1].full());
        Ok(vec![rule::vjp(q, r, full(cotangents, 0), full(cotangents, 1))?])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (q, r) = (out.results[0].full(), out.results[1].full());
        let (dq, dr) = rule::jvp(q, r, only(tangents))?;
        Ok(vec![Part::Full(dq), Part::Full(dr)])
    }
}

/// `A` → `Q`, `R` and a permutation of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct QrPivotedOp {
    /// Thin or complete.
    pub columns: Columns,
}

impl QrPivotedOp {
    /// `Q` of the size of `A`.
    pub const THIN: Self = Self { columns: Columns::Thin };
}

impl MatrixOperation for QrPivotedOp {
    const NAME: &'static str = "qr_pivoted";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full, PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        sizes(operands[0], self.columns)
    }
    fn permutations(&self, [_, n]: [usize; 2]) -> SmallVec<[usize; 2]> {
        smallvec![n]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let (out, columns) = qr_pivoted(operands[0], self.columns)?;
        Ok(Outcome::new(parts(&out)).permuted([columns]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(qr_ex(operands[0], Columns::Thin)?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        let (q, r) = (out.results[0].full(), out.results[1].full());
        let ordered = rule::vjp(q, r, full(cotangents, 0), full(cotangents, 1))?;
        Ok(vec![ordered.permute_cols(&out.permutation().inverse()?)])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (q, r) = (out.results[0].full(), out.results[1].full());
        let (dq, dr) = rule::jvp(q, r, &only(tangents).permute_cols(out.permutation()))?;
        Ok(vec![Part::Full(dq), Part::Full(dr)])
    }
}

/// `A` → `L`, `Q` (thin).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LqOp;

impl MatrixOperation for LqOp {
    const NAME: &'static str = "lq";
    const OPERANDS: Signature = Signature::Any;
    const RESULTS: &'static [PartKind] = &[PartKind::Full, PartKind::Full];

    fn sizes(&self, operands: &[[usize; 2]]) -> Vec<[usize; 2]> {
        let [m, n] = operands[0];
        let k = m.min(n);
        vec![[m, k], [k, n]]
    }

    fn forward<T: LinalgScalar>(
        &self,
        operands: &[&Tensor<T>],
        _tracked: bool,
    ) -> Result<Outcome<Batched<T>>> {
        let out = lq(operands[0])?;
        let (l, q) = (Batched::new(&out.l), Batched::new(&out.q));
        Ok(Outcome::new(vec![Part::Full(l), Part::Full(q)]))
    }

    fn info<T: LinalgScalar>(&self, operands: &[&Tensor<T>]) -> Result<Tensor<i32>> {
        Ok(qr_ex(operands[0], Columns::Thin)?.1)
    }

    fn vjp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        cotangents: &[Option<Part<M>>],
    ) -> Result<Vec<M>> {
        // Aᴴ = Qᴴ Lᴴ.
        let (r, q) = (out.results[0].full().adjoint(), out.results[1].full().adjoint());
        let given = |i| full(cotangents, i).map(M::adjoint);
        Ok(vec![rule::vjp(&q, &r, given(1).as_ref(), given(0).as_ref())?.adjoint()])
    }

    fn jvp<M: Matrices>(
        &self,
        _operands: &[M],
        out: &Outcome<M>,
        tangents: &[Option<M>],
    ) -> Result<Vec<Part<M>>> {
        let (r, q) = (out.results[0].full().adjoint(), out.results[1].full().adjoint());
        let (dq, dr) = rule::jvp(&q, &r, &only(tangents).adjoint())?;
        Ok(vec![Part::Full(dr.adjoint()), Part::Full(dq.adjoint())])
    }
}
