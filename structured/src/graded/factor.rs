//! Factorisations by coupled sectors: each matrix of a charge by itself, with the rules of `linalg`.
//!
//! The new bond has one sector per charge of the rows. It points into the left factor, so that contracting
//! the factors takes no sign, and out of the right one.

use t4a_diff::{Array, Value};
use t4a_linalg::degeneracy::Degeneracy;
use t4a_linalg::eigh::EighOp;
use t4a_linalg::qr::{Columns, QrOp};
use t4a_linalg::svd::{SvdOp, Vectors};
use t4a_linalg::{Linalg, MatrixOp};
use t4a_tensor::{AnyTensor, Tensor};

use super::{Bond, GradedTensor};
use crate::error::Result;
use crate::leg::{Direction, Leg, inverse, product};
use crate::sector::Sector;
use crate::spec::Spec;

/// Which factor carries the charge of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FluxOn {
    /// The left one.
    Left,
    /// The right one.
    #[default]
    Right,
}

/// `A = U S Vᴴ`.
#[derive(Clone, Debug)]
pub struct Svd<S, A> {
    /// The row legs and the bond, which points in.
    pub u: GradedTensor<S, A>,
    /// The singular values.
    pub s: Bond<S, A>,
    /// The bond, which points out, and the column legs.
    pub vh: GradedTensor<S, A>,
}

/// `A = Q R`.
#[derive(Clone, Debug)]
pub struct Qr<S, A> {
    /// The row legs and the bond, which points in.
    pub q: GradedTensor<S, A>,
    /// The bond, which points out, and the column legs.
    pub r: GradedTensor<S, A>,
}

/// `A V = V diag(w)`.
#[derive(Clone, Debug)]
pub struct Eigh<S, A> {
    /// The eigenvalues, ascending in each sector.
    pub w: Bond<S, A>,
    /// The row legs and the bond, which points in.
    pub v: GradedTensor<S, A>,
}

/// What a factorisation gives per matrix, one array behind the other; complex ones are pairs.
pub(super) type Parts<A> = Vec<Vec<A>>;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// The results of an operation on the matrix of each charge.
    pub(super) fn by_matrix(&self, op: MatrixOp) -> Result<Vec<Vec<A>>> {
        let linalg = Linalg { op, complex: self.im.is_some() };
        let of = |matrix: &crate::spec::Matrix<S>| {
            let (rows, cols) = (matrix.rows, matrix.cols);
            let read = |x: &A| {
                let flat = x.narrow(0, matrix.offset, rows * cols);
                Value::Float(flat.reshape(&[rows, cols]))
            };
            let inputs: Vec<Value<A>> =
                [Some(&self.re), self.im.as_ref()].into_iter().flatten().map(read).collect();
            Ok(A::apply(&linalg, &inputs, &vec![false; inputs.len()])?.results)
        };
        self.spec.matrices().iter().map(of).collect()
    }

    /// The flat array of result `i` of all matrices in this order.
    pub(super) fn flat(&self, parts: &Parts<A>, i: usize, order: &[usize]) -> A {
        let flat = |&k: &usize| {
            let x = &parts[k][i];
            x.reshape(&[x.shape().iter().product()])
        };
        let all: Vec<A> = order.iter().map(flat).collect();
        if all.is_empty() { self.re.full(&[0], 0.0) } else { A::cat(&all, 0) }
    }

    /// The bond between the factors, pointing out, and the matrices in the order of its sectors.
    fn bond(&self, flux: FluxOn) -> Result<(Leg<S>, Vec<usize>)> {
        let op = "factor";
        let shift = match flux {
            FluxOn::Left => inverse(self.spec.flux(), op)?,
            FluxOn::Right => S::TRIVIAL,
        };
        let mut sectors = Vec::new();
        for (k, matrix) in self.spec.matrices().iter().enumerate() {
            let dim = matrix.rows.min(matrix.cols);
            sectors.push((product(matrix.charge, shift, op)?, dim, k));
        }
        sectors.sort_unstable();
        let bond = sectors.iter().map(|&(sector, dim, _)| (sector, dim)).collect();
        let order = sectors.iter().map(|&(.., k)| k).collect();
        Ok((Leg::sorted(bond, Direction::Out)?, order))
    }

    /// The tensor of the row legs and the bond, of the arrays from `at` on.
    fn left(&self, parts: &Parts<A>, at: usize, bond: &Leg<S>, flux: FluxOn) -> Result<Self> {
        let rows = self.spec.rows();
        let charge = if flux == FluxOn::Left { self.spec.flux() } else { S::TRIVIAL };
        let legs = self.spec.legs()[..rows].iter().cloned().chain([bond.dual()]).collect();
        // Its matrices are in the order of the charges of its rows, as those of this tensor.
        let order: Vec<usize> = (0..parts.len()).collect();
        self.of_parts(Spec::new(legs, charge, rows)?, parts, at, &order)
    }

    /// The tensor of the bond and the column legs, of the arrays from `at` on.
    fn right(
        &self,
        parts: &Parts<A>,
        at: usize,
        (bond, order): &(Leg<S>, Vec<usize>),
        flux: FluxOn,
    ) -> Result<Self> {
        let charge = if flux == FluxOn::Right { self.spec.flux() } else { S::TRIVIAL };
        let below = self.spec.legs()[self.spec.rows()..].iter().cloned();
        let legs = [bond.clone()].into_iter().chain(below).collect();
        self.of_parts(Spec::new(legs, charge, 1)?, parts, at, order)
    }

    fn of_parts(
        &self,
        spec: Spec<S>,
        parts: &Parts<A>,
        at: usize,
        order: &[usize],
    ) -> Result<Self> {
        let im = self.im.is_some().then(|| self.flat(parts, at + 1, order));
        Self::new(spec, self.flat(parts, at, order), im)
    }

    /// The singular value decomposition with the first `rows` legs as rows.
    ///
    /// # Errors
    /// `Rows`; `Linalg` of the factorisation.
    pub fn svd(&self, rows: usize, flux: FluxOn) -> Result<Svd<S, A>> {
        let x = self.repartition(rows)?;
        let op = SvdOp { vectors: Vectors::Thin, degeneracy: Degeneracy::DEFAULT };
        let parts = x.by_matrix(op.into())?;
        let n = 1 + usize::from(x.im.is_some());
        let bond = x.bond(flux)?;
        let (u, vh) = (x.left(&parts, 0, &bond.0, flux)?, x.right(&parts, n + 1, &bond, flux)?);
        let values = x.flat(&parts, n, &bond.1);
        Ok(Svd { u, s: Bond::new(bond.0, values), vh })
    }

    /// The thin QR decomposition with the first `rows` legs as rows.
    ///
    /// # Errors
    /// As [`GradedTensor::svd`].
    pub fn qr(&self, rows: usize, flux: FluxOn) -> Result<Qr<S, A>> {
        let x = self.repartition(rows)?;
        let parts = x.by_matrix(QrOp { columns: Columns::Thin }.into())?;
        let n = 1 + usize::from(x.im.is_some());
        let bond = x.bond(flux)?;
        Ok(Qr { q: x.left(&parts, 0, &bond.0, flux)?, r: x.right(&parts, n, &bond, flux)? })
    }

    /// The eigenvalues and eigenvectors of a Hermitian map: column legs are the duals of the row legs in
    /// the same order, the charge is neutral, and `A V` is the contraction over them.
    ///
    /// # Errors
    /// `LegMismatch`, `Flux`; `Linalg` of the factorisation.
    pub fn eigh(&self) -> Result<Eigh<S, A>> {
        let x = self.as_matrices("eigh")?;
        let parts = x.by_matrix(EighOp { degeneracy: Degeneracy::DEFAULT }.into())?;
        let (bond, order) = x.bond(FluxOn::Right)?;
        let v = x.left(&parts, 1, &bond, FluxOn::Right)?;
        let values = x.flat(&parts, 0, &order);
        Ok(Eigh { w: Bond::new(bond, values), v })
    }

    /// A map as matrices that multiply as maps are contracted: signs of the bonds are in the columns.
    ///
    /// # Errors
    /// `LegMismatch`, `Flux`, `Rank`.
    pub(super) fn as_matrices(&self, op: &'static str) -> Result<Self> {
        self.moved(self.spec.composition(op)?)
    }

    /// Entries times values of the bond, an axis of this tensor: for every matrix the first of its values,
    /// then by row or column.
    fn scaled(&self, axis: usize, values: &A, by_column: bool) -> Result<Self> {
        let starts = self.spec.legs()[axis].starts();
        let mut index = vec![0i64; self.spec.len()];
        for matrix in self.spec.matrices() {
            let place = self.spec.blocks()[matrix.blocks.0].places[axis];
            let start = starts[place as usize];
            for i in 0..matrix.rows {
                for j in 0..matrix.cols {
                    let at = start + if by_column { j } else { i };
                    index[matrix.offset + i * matrix.cols + j] = at as i64;
                }
            }
        }
        let len = index.len();
        let index = AnyTensor::from(Tensor::from_vec(index, &[len])?);
        let factors = values.gather(0, &values.indices(index));
        Ok(self.map(|x| x.mul(&factors)))
    }

    /// A factor whose only column leg is the bond, with the values as factors of its columns.
    ///
    /// # Errors
    /// `LegMismatch` if the bond is another leg.
    pub fn scale_columns(&self, s: &Bond<S, A>) -> Result<Self> {
        let axis = self.spec.rows();
        s.check(&self.spec, axis, axis + 1 == self.spec.legs().len())?;
        self.scaled(axis, s.values(), true)
    }

    /// A factor whose only row leg is the bond, with the values as factors of its rows.
    ///
    /// # Errors
    /// `LegMismatch` if the bond is another leg.
    pub fn scale_rows(&self, s: &Bond<S, A>) -> Result<Self> {
        s.check(&self.spec, 0, self.spec.rows() == 1)?;
        self.scaled(0, s.values(), false)
    }
}
