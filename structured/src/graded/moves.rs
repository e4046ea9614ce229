//! Operations that move entries, and contractions.

use std::ops::Range;

use t4a_diff::{Array, Pairs};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::Direction;
use crate::operation::{Rearrange, apply, one};
use crate::sector::{Sector, Trivial};
use crate::spec::Spec;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// The tensor that a plan makes of this one.
    pub(super) fn moved<T: Sector>(
        &self,
        (spec, plan): (Spec<T>, Rearrange),
    ) -> Result<GradedTensor<T, A>> {
        let re = one(&plan, &[&self.re])?;
        let im = self.im.as_ref().map(|im| one(&plan, &[im])).transpose()?;
        Ok(GradedTensor { spec, re, im })
    }

    /// [`Spec::coarsen`].
    ///
    /// # Errors
    /// As there.
    pub fn coarsen<T: Sector>(&self, map: impl Fn(S) -> T) -> Result<GradedTensor<T, A>> {
        self.moved(self.spec.coarsen(map)?)
    }

    /// [`Spec::drop_charge`].
    ///
    /// # Errors
    /// As there.
    pub fn drop_charge(&self) -> Result<GradedTensor<Trivial, A>> {
        self.moved(self.spec.drop_charge()?)
    }

    /// [`Spec::change_flux`].
    ///
    /// # Errors
    /// As there.
    pub fn change_flux(&self, axis: usize, flux: S) -> Result<Self> {
        self.moved(self.spec.change_flux(axis, flux)?)
    }

    /// [`Spec::permute`].
    ///
    /// # Errors
    /// As there.
    pub fn permute(&self, axes: &[usize], rows: usize) -> Result<Self> {
        self.moved(self.spec.permute(axes, rows)?)
    }

    /// [`Spec::repartition`].
    ///
    /// # Errors
    /// As there.
    pub fn repartition(&self, rows: usize) -> Result<Self> {
        if rows == self.spec.rows() {
            return Ok(self.clone());
        }
        self.moved(self.spec.repartition(rows)?)
    }

    /// [`Spec::twist`].
    ///
    /// # Errors
    /// As there.
    pub fn twist(&self, axes: &[usize]) -> Result<Self> {
        self.moved(self.spec.twist(axes)?)
    }

    /// [`Spec::flip`].
    ///
    /// # Errors
    /// As there.
    pub fn flip(&self, axis: usize) -> Result<Self> {
        self.moved(self.spec.flip(axis)?)
    }

    /// The complex conjugate: [`Spec::conj`].
    ///
    /// # Errors
    /// As there.
    pub fn conj(&self) -> Result<Self> {
        Ok(self.moved(self.spec.conj()?)?.conjugated())
    }

    /// The adjoint: [`Spec::dagger`].
    ///
    /// # Errors
    /// As there.
    pub fn dagger(&self) -> Result<Self> {
        Ok(self.moved(self.spec.dagger()?)?.conjugated())
    }

    fn conjugated(mut self) -> Self {
        self.im = self.im.map(|im| im.neg());
        self
    }

    /// [`Spec::fuse`].
    ///
    /// # Errors
    /// As there.
    pub fn fuse(&self, axes: Range<usize>, direction: Direction) -> Result<Self> {
        self.moved(self.spec.fuse(axes, direction)?)
    }

    /// [`Spec::split`].
    ///
    /// # Errors
    /// As there.
    pub fn split(&self, axis: usize) -> Result<Self> {
        self.moved(self.spec.split(axis)?)
    }

    /// [`Spec::trace`].
    ///
    /// # Errors
    /// As there.
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<Self> {
        self.moved(self.spec.trace(pairs)?)
    }

    /// [`Spec::contract`].
    ///
    /// # Errors
    /// As there; `DType`.
    pub fn contract(&self, other: &Self, axes: &[usize], other_axes: &[usize]) -> Result<Self> {
        if self.re.dtype() != other.re.dtype() {
            let (op, required, given) = ("contract", self.re.dtype(), other.re.dtype());
            return Err(StructuredError::DType { op, required, given });
        }
        let (spec, plan) = self.spec.contract(&other.spec, axes, other_axes)?;
        if self.im.is_none() && other.im.is_none() {
            return Ok(Self { spec, re: one(&plan, &[&self.re, &other.re])?, im: None });
        }
        let operands = [&self.re, &self.imaginary(), &other.re, &other.imaginary()];
        Self::of_results(spec, apply(&Pairs::new(plan), &operands)?)
    }
}
