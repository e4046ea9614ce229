//! Inverses of tensors as maps of their column legs to their row legs.

use t4a_diff::Array;
use t4a_linalg::MatrixOp;
use t4a_linalg::inverse::InvOp;
use t4a_linalg::pinv::PinvOp;

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::sector::Sector;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// The inverse with the first `rows` legs as rows: its rows are the duals of the column legs, its columns those of
    /// the row legs, and the contraction of A with it over the column legs is the identity of the row legs.
    ///
    /// # Errors
    /// `Rows`; `Invalid` for charges with more rows than columns or fewer; `Linalg` for singular matrices.
    pub fn inverse(&self, rows: usize) -> Result<Self> {
        let x = self.repartition(rows)?;
        x.check_square("inverse")?;
        x.reversed(InvOp.into())
    }

    /// The pseudo-inverse (Moore and Penrose) with the first `rows` legs as rows, of the legs of
    /// [`GradedTensor::inverse`]. Singular values up to `cutoff` times the greatest of their sector count as 0; up to
    /// rounding without a cutoff. For a cutoff relative to all sectors, take [`GradedTensor::svd`] and
    /// [`Bond::inverse`](crate::Bond::inverse).
    ///
    /// # Errors
    /// `Rows`; `Linalg` of the factorisation.
    pub fn pinv(&self, rows: usize, cutoff: Option<f64>) -> Result<Self> {
        self.repartition(rows)?.reversed(PinvOp { rtol: cutoff }.into())
    }

    /// The solution x of `A x = b`: the contraction of A over its column legs, those behind the first `rows`, with the
    /// first legs of x is b. The first legs of b are the row legs, the first ones of x the duals of the column legs.
    ///
    /// The inverse is applied, and once more to what is left: errors are those of a solver with pivoting.
    ///
    /// # Errors
    /// As [`GradedTensor::inverse`]; as [`GradedTensor::contract`] for a right-hand side with other legs.
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

    /// The result of an operation that gives matrices of the size of the adjoint, as the tensor of these.
    fn reversed(&self, op: MatrixOp) -> Result<Self> {
        let x = self.signed()?;
        let (spec, order) = x.spec.reversed()?;
        Self::of_results(spec, x.by_matrix(op, vec![order])?)?.signed()
    }

    /// Signs in the columns, so that contractions over the column legs are products of matrices.
    pub(super) fn signed(&self) -> Result<Self> {
        match S::FERMIONIC {
            true => self.moved(self.spec.column_signs()?),
            false => Ok(self.clone()),
        }
    }

    /// Checks that each charge of the rows has as many columns.
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
