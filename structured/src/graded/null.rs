//! Orthogonal complements of ranges.

use std::sync::Arc;

use t4a_diff::Array;
use t4a_linalg::degeneracy::Degeneracy;
use t4a_linalg::svd::{SvdOp, Vectors};
use t4a_tensor::DType;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg};
use crate::operation::{Rearrange, one};
use crate::plan::{MoveAxis, RearrangementBuilder};
use crate::sector::Sector;
use crate::spec::Spec;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Orthonormal basis N of the orthogonal complement of the range, as a tensor of the first `rows` legs and a bond
    /// (incoming): `Nᴴ A = 0` and `Nᴴ N = 1` in each coupled sector. Singular values up to `cutoff` times the largest
    /// one of all sectors are treated as 0.
    ///
    /// The basis of a null space is not unique: it has no derivative, and none is recorded.
    ///
    /// # Errors
    /// `Rows`; `Invalid` for a cutoff that is negative or not finite; `Linalg` of the factorisation.
    pub fn null_space(&self, rows: usize, cutoff: f64) -> Result<Self> {
        if !(cutoff.is_finite() && cutoff >= 0.0) {
            let message = format!("the cutoff {cutoff}; a finite number of at least 0 is required");
            return Err(StructuredError::Invalid { op: "null_space", message });
        }
        let x = self.map(A::detach).repartition(rows)?;
        let op = SvdOp { vectors: Vectors::Full, degeneracy: Degeneracy::SEPARABLE };
        let results = x.by_matrix(op.into(), vec![x.in_order(); 3])?;
        let n = 1 + usize::from(x.im.is_some());
        let s = results[n].elements()?.cast(DType::F64)?.typed::<f64>()?.to_vec()?;
        let least = cutoff * s.iter().copied().fold(0.0, f64::max);
        let (to, plan) = x.complement(rows, |k| s[k] > least)?;
        let unit = |part: usize| x.re.full(&[1], if part == 0 { 1.0 } else { 0.0 });
        let part = |(part, u): (usize, &A)| one(&plan, &[&A::cat(&[u.clone(), unit(part)], 0)]);
        let parts = results[..n].iter().enumerate().map(part).collect::<Result<Vec<_>>>()?;
        Self::of_results(to, parts)
    }

    /// Structure of the null space, and a map that selects its entries from all left singular vectors followed by a
    /// number 1. `kept(i)` is true if singular value `i` counts as nonzero.
    fn complement(
        &self,
        rows: usize,
        kept: impl Fn(usize) -> bool,
    ) -> Result<(Spec<S>, Rearrange)> {
        // For each coupled sector of the rows: its matrix, its first singular vector, its rank.
        let (mut found, mut start, mut value) = (Vec::new(), 0, 0);
        for matrix in self.spec.matrices() {
            let count = matrix.rows.min(matrix.cols);
            let rank = (value..value + count).filter(|&k| kept(k)).count();
            found.push((matrix.charge, start, rank));
            (start, value) = (start + matrix.rows * matrix.rows, value + count);
        }
        let rank = |charge: S| {
            let k = found.binary_search_by_key(&charge, |&(charge, ..)| charge).ok()?;
            Some((found[k].1, found[k].2))
        };
        let left = self.spec.row_charges();
        let left = left.map(|(charge, size)| (charge, size - rank(charge).map_or(0, |(_, r)| r)));
        let bond = Leg::sorted(left.filter(|&(_, dim)| dim > 0).collect(), Direction::In)?;
        let legs = self.spec.legs()[..rows].iter().cloned().chain([bond]).collect();
        let to = Spec::new(legs, S::TRIVIAL, rows)?;
        let mut build = RearrangementBuilder::new(start + 1, to.len());
        for matrix in to.matrices() {
            let (m, d) = (matrix.rows, matrix.cols);
            match rank(matrix.charge) {
                Some((from, rank)) => {
                    let across = MoveAxis { size: d, from: 1, to: 1 };
                    let down = MoveAxis { size: m, from: m, to: d };
                    build.push(from + rank, matrix.offset, false, [down, across].into_iter());
                }
                // All states of a coupled sector that the column legs do not have.
                None => {
                    let diagonal = MoveAxis { size: m, from: 0, to: d + 1 };
                    build.push(start, matrix.offset, false, [diagonal].into_iter());
                }
            }
        }
        Ok((to, Rearrange { plan: Arc::new(build.finish(true, false)) }))
    }
}
