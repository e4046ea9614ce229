//! Inverses of tensors as maps from their column legs to their row legs.

use t4a_diff::Array;
use t4a_linalg::MatrixOp;
use t4a_linalg::inverse::InvOp;
use t4a_linalg::pinv::PinvOp;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::sector::Sector;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Inverse with the first `rows` legs as rows. Its row legs are the duals of the column legs, its column legs the
    /// duals of the row legs; contracting A with it over the column legs gives the identity on the row legs.
    ///
    /// # Errors
    /// `Rows`; `Invalid` for a coupled sector whose matrix is not square; `Linalg` for singular matrices.
    pub fn inverse(&self, rows: usize) -> Result<Self> {
        let x = self.repartition(rows)?;
        x.check_square("inverse")?;
        x.reversed(InvOp.into())
    }

    /// Moore–Penrose pseudo-inverse with the first `rows` legs as rows; legs as for [`GradedTensor::inverse`].
    /// Singular values up to `cutoff` times the largest one of their sector are treated as 0; without a cutoff those
    /// up to rounding. For a cutoff relative to all sectors use [`GradedTensor::svd`] and
    /// [`Bond::inverse`](crate::Bond::inverse).
    ///
    /// # Errors
    /// `Rows`; `Linalg` of the factorisation.
    pub fn pinv(&self, rows: usize, cutoff: Option<f64>) -> Result<Self> {
        self.repartition(rows)?.reversed(PinvOp { rtol: cutoff }.into())
    }

    /// Solution x of `A x = b`, where A acts by contraction over its column legs, those after the first `rows`. The
    /// first legs of b are the row legs of A; the first legs of x are the duals of the column legs.
    ///
    /// Applies the inverse, followed by one step of iterative refinement; errors are those of a solver with pivoting.
    ///
    /// # Errors
    /// As [`GradedTensor::inverse`]; as [`GradedTensor::contract`] for mismatching legs of b.
    pub fn solve(&self, rows: usize, b: &Self) -> Result<Self> {
        let inverse = self.inverse(rows)?;
        let (columns, own): (Vec<usize>, Vec<usize>) =
            ((rows..self.spec.legs().len()).collect(), (0..rows).collect());
        let of_inverse: Vec<usize> = (0..rows).map(|k| columns.len() + k).collect();
        let first: Vec<usize> = (0..columns.len()).collect();
        let apply = |b: &Self| inverse.contract(b, &of_inverse, &own);
        let x = apply(b)?;
        let product = self.contract(&x, &columns, &first)?.repartition(b.spec.rows())?;
        x.add(&apply(&b.sub(&product)?)?.repartition(x.spec.rows())?)
    }

    /// Applies an operation whose results have the shape of the adjoint to each matrix.
    fn reversed(&self, op: MatrixOp) -> Result<Self> {
        let x = self.signed()?;
        let (spec, order) = x.spec.reversed()?;
        Self::of_results(spec, x.by_matrix(op, vec![order])?)?.signed()
    }

    /// The tensor with column signs, so that contractions over the column legs are matrix products.
    pub(super) fn signed(&self) -> Result<Self> {
        match S::FERMIONIC {
            true => self.moved(self.spec.column_signs()?),
            false => Ok(self.clone()),
        }
    }

    /// Checks that the matrix of each coupled sector is square.
    fn check_square(&self, op: &'static str) -> Result<()> {
        let matrices = self.spec.matrices();
        let invalid = |message| Err(StructuredError::Invalid { op, message });
        if let Some(other) = matrices.iter().find(|matrix| matrix.rows != matrix.cols) {
            let (charge, rows, cols) = (other.charge, other.rows, other.cols);
            return invalid(format!("charge {charge} has {rows} rows and {cols} columns"));
        }
        let [rows, cols] = self.spec.charge_counts();
        if rows != matrices.len() || cols != matrices.len() {
            return invalid(format!(
                "{rows} charges of the rows and {cols} of the columns, of which {} meet, for {}",
                matrices.len(),
                self.spec
            ));
        }
        Ok(())
    }
}
