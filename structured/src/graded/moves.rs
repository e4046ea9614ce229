//! Permutation, fusion, trace, conjugation and contraction.

use std::ops::Range;

use t4a_diff::{Array, Pairs};

use super::GradedTensor;
use crate::error::{Result, StructuredError};
use crate::leg::Direction;
use crate::operation::{Rearrange, apply, one};
use crate::sector::{Sector, Trivial};
use crate::spec::Spec;

impl<S: Sector, A: Array> GradedTensor<S, A> {
    /// Applies a rearrangement; the result has structure `spec`.
    pub(super) fn moved<T: Sector>(
        &self,
        (spec, plan): (Spec<T>, Rearrange),
    ) -> Result<GradedTensor<T, A>> {
        let re = one(&plan, &[&self.re])?;
        let im = self.im.as_ref().map(|im| one(&plan, &[im])).transpose()?;
        Ok(GradedTensor { spec, re, im })
    }

    /// Coarser charges; see [`Spec::coarsen`].
    ///
    /// # Errors
    /// As [`Spec::coarsen`].
    pub fn coarsen<T: Sector>(&self, map: impl Fn(S) -> T) -> Result<GradedTensor<T, A>> {
        self.moved(self.spec.coarsen(map)?)
    }

    /// Forgets all charges; see [`Spec::drop_charge`].
    ///
    /// # Errors
    /// As [`Spec::drop_charge`].
    pub fn drop_charge(&self) -> Result<GradedTensor<Trivial, A>> {
        self.moved(self.spec.drop_charge()?)
    }

    /// Changes the flux; see [`Spec::change_flux`].
    ///
    /// # Errors
    /// As [`Spec::change_flux`].
    pub fn change_flux(&self, axis: usize, flux: S) -> Result<Self> {
        self.moved(self.spec.change_flux(axis, flux)?)
    }

    /// Permutes the legs; see [`Spec::permute`].
    ///
    /// # Errors
    /// As [`Spec::permute`].
    pub fn permute(&self, axes: &[usize], rows: usize) -> Result<Self> {
        self.moved(self.spec.permute(axes, rows)?)
    }

    /// Changes the number of row legs; see [`Spec::repartition`].
    ///
    /// # Errors
    /// As [`Spec::repartition`].
    pub fn repartition(&self, rows: usize) -> Result<Self> {
        if rows == self.spec.rows() {
            return Ok(self.clone());
        }
        self.moved(self.spec.repartition(rows)?)
    }

    /// Multiplies odd sectors by −1; see [`Spec::twist`].
    ///
    /// # Errors
    /// As [`Spec::twist`].
    pub fn twist(&self, axes: &[usize]) -> Result<Self> {
        self.moved(self.spec.twist(axes)?)
    }

    /// Reverses a leg; see [`Spec::flip`].
    ///
    /// # Errors
    /// As [`Spec::flip`].
    pub fn flip(&self, axis: usize) -> Result<Self> {
        self.moved(self.spec.flip(axis)?)
    }

    /// Complex conjugate; see [`Spec::conj`].
    ///
    /// # Errors
    /// As [`Spec::conj`].
    pub fn conj(&self) -> Result<Self> {
        Ok(self.moved(self.spec.conj()?)?.conjugated())
    }

    /// Adjoint; see [`Spec::dagger`].
    ///
    /// # Errors
    /// As [`Spec::dagger`].
    pub fn dagger(&self) -> Result<Self> {
        Ok(self.moved(self.spec.dagger()?)?.conjugated())
    }

    fn conjugated(mut self) -> Self {
        self.im = self.im.map(|im| im.neg());
        self
    }

    /// Fuses neighbouring legs; see [`Spec::fuse`].
    ///
    /// # Errors
    /// As [`Spec::fuse`].
    pub fn fuse(&self, axes: Range<usize>, direction: Direction) -> Result<Self> {
        self.moved(self.spec.fuse(axes, direction)?)
    }

    /// Splits a fused leg; see [`Spec::split`].
    ///
    /// # Errors
    /// As [`Spec::split`].
    pub fn split(&self, axis: usize) -> Result<Self> {
        self.moved(self.spec.split(axis)?)
    }

    /// Trace over pairs of legs; see [`Spec::trace`].
    ///
    /// # Errors
    /// As [`Spec::trace`].
    pub fn trace(&self, pairs: &[(usize, usize)]) -> Result<Self> {
        self.moved(self.spec.trace(pairs)?)
    }

    /// Contraction over pairs of legs; see [`Spec::contract`].
    ///
    /// # Errors
    /// As [`Spec::contract`]; `DType`.
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
