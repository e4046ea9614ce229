//! Factorisations by coupled sectors: each coupled sector's matrix is factored by itself, with the derivative rules
//! of `linalg`.
//!
//! The new bond has one sector per coupled sector of the rows. It is incoming on the left factor and outgoing on the
//! right one, so that the contraction of the factors has no sign.

use std::sync::Arc;

use t4a_diff::{Array, Meta, Operation};
use t4a_linalg::MatrixOp;
use t4a_linalg::degeneracy::Degeneracy;
use t4a_linalg::eig::EigOp;
use t4a_linalg::eigh::EighOp;
use t4a_linalg::qr::{Columns, LqOp, QrOp};
use t4a_linalg::svd::{SvdOp, Vectors};

use super::GradedTensor;
use super::bond::Bond;
use crate::error::Result;
use crate::leg::{Direction, Leg, inverse, product};
use crate::operation::{ByMatrix, apply};
use crate::plan::MatrixList;
use crate::sector::Sector;
use crate::spec::Spec;

/// Factor that carries the flux of the tensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FluxOn {
    /// The left factor.
    Left,
    /// The right factor.
    #[default]
    Right,
}

/// Singular value decomposition `A = U S Vᴴ`.
#[derive(Clone, Debug)]
pub struct Svd<S, A> {
    /// Left singular vectors: row legs and the bond (incoming).
    pub u: GradedTensor<S, A>,
    /// Singular values, nonincreasing within each sector.
    pub s: Bond<S, A>,
    /// Right singular vectors: the bond (outgoing) and column legs.
    pub vh: GradedTensor<S, A>,
}

/// QR decomposition `A = Q R`.
#[derive(Clone, Debug)]
pub struct Qr<S, A> {
    /// Isometry: row legs and the bond (incoming).
    pub q: GradedTensor<S, A>,
    /// Upper triangular in each coupled sector: the bond (outgoing) and column legs.
    pub r: GradedTensor<S, A>,
}

/// LQ decomposition `A = L Q`.
#[derive(Clone, Debug)]
pub struct Lq<S, A> {
    /// Lower triangular in each coupled sector: row legs and the bond (incoming).
    pub l: GradedTensor<S, A>,
    /// Orthonormal rows: the bond (outgoing) and column legs.
    pub q: GradedTensor<S, A>,
}

/// Eigendecomposition `A V = V diag(w)` of a general map.
#[derive(Clone, Debug)]
pub struct Eig<S, A> {
    /// Real and imaginary parts of the eigenvalues; the order within a sector is unspecified.
    pub w: [Bond<S, A>; 2],
    /// Right eigenvectors of norm 1, complex: row legs and the bond (incoming).
    pub v: GradedTensor<S, A>,
}

/// Eigendecomposition `A V = V diag(w)` of a Hermitian map.
#[derive(Clone, Debug)]
pub struct Eigh<S, A> {
    /// Eigenvalues, ascending within each sector.
    pub w: Bond<S, A>,
    /// Eigenvectors: row legs and the bond (incoming).
    pub v: GradedTensor<S, A>,
}

/// The new bond (outgoing), and the indices of the matrices in the order of its sectors.
struct NewBond<S> {
    leg: Leg<S>,
    order: Vec<u32>,
    flux: FluxOn,
}

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Applies an operation to the matrix of each coupled sector; `orders` are the orders of the matrices in each
    /// result.
    pub(super) fn by_matrix(&self, op: MatrixOp, orders: Vec<Vec<u32>>) -> Result<Vec<A>> {
        let sizes = self.spec.matrices().iter().map(|matrix| [matrix.rows, matrix.cols]).collect();
        let plan = Arc::new(MatrixList::new(sizes, orders)?);
        let op = ByMatrix { op, complex: self.im.is_some(), plan };
        let meta = |x: &&A| Meta { shape: x.shape(), dtype: x.dtype() };
        op.results(&self.arrays().iter().map(meta).collect::<Vec<_>>())?;
        apply(&op, &self.arrays())
    }

    /// The identity order of the matrices.
    pub(super) fn in_order(&self) -> Vec<u32> {
        (0..self.spec.matrices().len() as u32).collect()
    }

    fn bond(&self, flux: FluxOn) -> Result<NewBond<S>> {
        let op = "factor";
        let shift = match flux {
            FluxOn::Left => inverse(self.spec.flux(), op)?,
            FluxOn::Right => S::TRIVIAL,
        };
        let mut sectors = Vec::new();
        for (k, matrix) in self.spec.matrices().iter().enumerate() {
            let dim = matrix.rows.min(matrix.cols);
            sectors.push((product(matrix.charge, shift, op)?, dim, k as u32));
        }
        sectors.sort_unstable();
        let leg = sectors.iter().map(|&(sector, dim, _)| (sector, dim)).collect();
        let order = sectors.iter().map(|&(.., k)| k).collect();
        Ok(NewBond { leg: Leg::sorted(leg, Direction::Out)?, order, flux })
    }

    /// Left factor: row legs and the bond. Its matrices are ordered by the coupled sectors of the rows, as those of
    /// `self`.
    fn left(&self, results: &[A], bond: &NewBond<S>) -> Result<Self> {
        let rows = self.spec.rows();
        let charge = if bond.flux == FluxOn::Left { self.spec.flux() } else { S::TRIVIAL };
        let legs = self.spec.legs()[..rows].iter().cloned().chain([bond.leg.dual()]).collect();
        Self::of_results(Spec::new(legs, charge, rows)?, results.to_vec())
    }

    /// Right factor: the bond and the column legs; its matrices are in the order of the bond's sectors.
    fn right(&self, results: &[A], bond: &NewBond<S>) -> Result<Self> {
        let charge = if bond.flux == FluxOn::Right { self.spec.flux() } else { S::TRIVIAL };
        let below = self.spec.legs()[self.spec.rows()..].iter().cloned();
        let legs = [bond.leg.clone()].into_iter().chain(below).collect();
        Self::of_results(Spec::new(legs, charge, 1)?, results.to_vec())
    }

    /// Singular value decomposition with the first `rows` legs as rows.
    ///
    /// Derivatives at degenerate singular values of one sector follow [`t4a_linalg::degeneracy`]: a loss that depends
    /// on the individual vectors of a degenerate subspace is an error. Equal values in different sectors are not
    /// degenerate.
    ///
    /// # Errors
    /// `Rows`; `Linalg` of the factorisation.
    pub fn svd(&self, rows: usize, flux: FluxOn) -> Result<Svd<S, A>> {
        self.svd_with(rows, flux, Degeneracy::DEFAULT)
    }

    /// [`GradedTensor::svd`] with a policy for degenerate values in its derivative.
    ///
    /// # Errors
    /// As [`GradedTensor::svd`].
    pub fn svd_with(&self, rows: usize, flux: FluxOn, degeneracy: Degeneracy) -> Result<Svd<S, A>> {
        let x = self.repartition(rows)?;
        let op = SvdOp { vectors: Vectors::Thin, degeneracy };
        let bond = x.bond(flux)?;
        let orders = vec![x.in_order(), bond.order.clone(), bond.order.clone()];
        let results = x.by_matrix(op.into(), orders)?;
        let n = 1 + usize::from(x.im.is_some());
        let (u, vh) = (x.left(&results[..n], &bond)?, x.right(&results[n + 1..], &bond)?);
        Ok(Svd { u, s: Bond::of(bond.leg, results[n].clone()), vh })
    }

    /// Thin QR decomposition with the first `rows` legs as rows.
    ///
    /// # Errors
    /// As [`GradedTensor::svd`].
    pub fn qr(&self, rows: usize, flux: FluxOn) -> Result<Qr<S, A>> {
        let x = self.repartition(rows)?;
        let bond = x.bond(flux)?;
        let orders = vec![x.in_order(), bond.order.clone()];
        let results = x.by_matrix(QrOp { columns: Columns::Thin }.into(), orders)?;
        let n = 1 + usize::from(x.im.is_some());
        Ok(Qr { q: x.left(&results[..n], &bond)?, r: x.right(&results[n..], &bond)? })
    }

    /// Thin LQ decomposition with the first `rows` legs as rows; the rows of Q are orthonormal.
    ///
    /// # Errors
    /// As [`GradedTensor::svd`].
    pub fn lq(&self, rows: usize, flux: FluxOn) -> Result<Lq<S, A>> {
        let x = self.repartition(rows)?;
        let bond = x.bond(flux)?;
        let results = x.by_matrix(LqOp.into(), vec![x.in_order(), bond.order.clone()])?;
        let n = 1 + usize::from(x.im.is_some());
        Ok(Lq { l: x.left(&results[..n], &bond)?, q: x.right(&results[n..], &bond)? })
    }

    /// Eigenvalues and right eigenvectors of a general map: the column legs are the duals of the row legs in the same
    /// order, the flux is neutral, and `A V` is the contraction over the column legs. Degeneracies as in
    /// [`GradedTensor::svd`].
    ///
    /// # Errors
    /// `Rank`, `LegMismatch`, `Flux`; `Linalg` of the factorisation.
    pub fn eig(&self) -> Result<Eig<S, A>> {
        self.eig_with(Degeneracy::DEFAULT)
    }

    /// [`GradedTensor::eig`] with a policy for degenerate values in its derivative.
    ///
    /// # Errors
    /// As [`GradedTensor::eig`].
    pub fn eig_with(&self, degeneracy: Degeneracy) -> Result<Eig<S, A>> {
        let x = self.as_matrices("eig")?;
        let bond = x.bond(FluxOn::Right)?;
        let orders = vec![bond.order.clone(), x.in_order()];
        let results = x.by_matrix(EigOp { degeneracy }.into(), orders)?;
        let w = [0, 1].map(|part: usize| Bond::of(bond.leg.clone(), results[part].clone()));
        Ok(Eig { w, v: x.left(&results[2..], &bond)? })
    }

    /// Eigenvalues and eigenvectors of a Hermitian map: the column legs are the duals of the row legs in the same
    /// order, the flux is neutral, and `A V` is the contraction over the column legs. A map that is not Hermitian is
    /// replaced by its Hermitian part `(A + Aᴴ)/2`. Degeneracies as in [`GradedTensor::svd`].
    ///
    /// # Errors
    /// `LegMismatch`, `Flux`; `Linalg` of the factorisation.
    pub fn eigh(&self) -> Result<Eigh<S, A>> {
        self.eigh_with(Degeneracy::DEFAULT)
    }

    /// [`GradedTensor::eigh`] with a policy for degenerate values in its derivative.
    ///
    /// # Errors
    /// As [`GradedTensor::eigh`].
    pub fn eigh_with(&self, degeneracy: Degeneracy) -> Result<Eigh<S, A>> {
        let x = self.as_matrices("eigh")?;
        let bond = x.bond(FluxOn::Right)?;
        let op = EighOp { degeneracy };
        let results = x.by_matrix(op.into(), vec![bond.order.clone(), x.in_order()])?;
        let v = x.left(&results[1..], &bond)?;
        Ok(Eigh { w: Bond::of(bond.leg, results[0].clone()), v })
    }

    /// The map with the signs of contraction in its columns, so that products of the matrices equal contractions of
    /// the maps.
    ///
    /// # Errors
    /// `LegMismatch`, `Flux`, `Rank`.
    pub(super) fn as_matrices(&self, op: &'static str) -> Result<Self> {
        self.moved(self.spec.composition(op)?)
    }
}
