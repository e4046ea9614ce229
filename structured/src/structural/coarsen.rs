//! Change of the charges of states: homomorphisms and shifts.

use std::sync::Arc;

use super::check_axes;
use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg, inverse, product};
use crate::operation::Rearrange;
use crate::plan::RearrangementBuilder;
use crate::sector::{Product, Sector, Trivial};
use crate::spec::Spec;

/// Leg with new sectors; for each old sector the index of the new one and the first state there.
type Renamed<T> = (Leg<T>, Vec<(u32, usize)>);

/// Applies a map of sectors to a leg; see [`Renamed`].
fn renamed<S: Sector, T: Sector>(
    leg: &Leg<S>,
    name: impl Fn(S) -> Result<T>,
) -> Result<Renamed<T>> {
    let mut sectors: Vec<(T, usize)> = Vec::new();
    let mut first = Vec::new();
    for &(sector, dim) in leg.sectors() {
        let sector = name(sector)?;
        match sectors.iter_mut().find(|(other, _)| *other == sector) {
            Some((_, sum)) => {
                first.push((sector, *sum));
                *sum += dim;
            }
            None => {
                first.push((sector, 0));
                sectors.push((sector, dim));
            }
        }
    }
    let leg = Leg::new(sectors, leg.direction())?;
    let place = |(sector, start)| (leg.place(sector).unwrap_or(0) as u32, start);
    let first = first.into_iter().map(place).collect();
    Ok((leg, first))
}

/// Map of every block to its block of the renamed legs.
fn moved<S: Sector, T: Sector>(
    op: &'static str,
    from: &Spec<S>,
    legs: Vec<Renamed<T>>,
    flux: T,
) -> Result<(Spec<T>, Rearrange)> {
    let to = Spec::new(legs.iter().map(|(leg, _)| leg.clone()).collect(), flux, from.rows())?;
    let mut build = RearrangementBuilder::new(from.len(), to.len());
    for block in from.blocks() {
        let at = |(k, &place): (usize, &u32)| legs[k].1[place as usize];
        let at: Vec<(u32, usize)> = block.places.iter().enumerate().map(at).collect();
        let places: Vec<u32> = at.iter().map(|&(place, _)| place).collect();
        let Some(target) = to.block(&places) else {
            let message = "charges that add up do not after it: the map is no homomorphism".into();
            return Err(StructuredError::Invalid { op, message });
        };
        let start = at.iter().zip(&target.strides).map(|(&(_, start), stride)| start * stride);
        let offset = target.offset + start.sum::<usize>();
        build.push(block.offset, offset, false, block.axes_to(target));
    }
    Ok((to, Rearrange { plan: Arc::new(build.finish(true, true)) }))
}

impl<S: Sector> Spec<S> {
    /// Tensor with coarser charges: the images under a group homomorphism that preserves fermion parity. The states
    /// of a leg are ordered by new sectors, then by old ones; newly allowed entries are zero. Information on fusion
    /// is dropped.
    ///
    /// # Errors
    /// `Invalid` if the map is not a homomorphism on the occurring charges; `OddParity` if it changes a parity.
    pub fn coarsen<T: Sector>(&self, map: impl Fn(S) -> T) -> Result<(Spec<T>, Rearrange)> {
        let op = "coarsen";
        let name = |sector: S| {
            let image = map(sector);
            match image.is_odd() == sector.is_odd() {
                true => Ok(image),
                false => Err(StructuredError::OddParity { op, flux: sector.to_string() }),
            }
        };
        let legs = self.legs().iter().map(|leg| renamed(leg, name)).collect::<Result<_>>()?;
        moved(op, self, legs, name(self.flux())?)
    }

    /// [`Spec::coarsen`] to the trivial symmetry.
    ///
    /// # Errors
    /// `OddParity` for fermions.
    pub fn drop_charge(&self) -> Result<(Spec<Trivial>, Rearrange)> {
        self.coarsen(|_| Trivial)
    }

    /// Tensor with another flux: the sectors of one axis are shifted by the difference. Fermionic signs do not
    /// change, because fluxes are even.
    ///
    /// # Errors
    /// `MoveAxis`, `OddParity`, `UnknownSector`, `ChargeOverflow`.
    pub fn change_flux(&self, axis: usize, flux: S) -> Result<(Self, Rearrange)> {
        let op = "change_flux";
        check_axes(op, self.legs().len(), &[axis])?;
        let mut shift = product(flux, inverse(self.flux(), op)?, op)?;
        if self.legs()[axis].direction() == Direction::In {
            shift = inverse(shift, op)?;
        }
        let leg = |(k, leg): (usize, &Leg<S>)| match k == axis {
            true => renamed(leg, |sector| product(sector, shift, op)),
            false => Ok((leg.clone(), (0..leg.sectors().len() as u32).map(|i| (i, 0)).collect())),
        };
        let legs = self.legs().iter().enumerate().map(leg).collect::<Result<_>>()?;
        moved(op, self, legs, flux)
    }
}

impl<A: Sector, B: Sector> Spec<Product<A, B>> {
    /// [`Spec::coarsen`] to the first symmetry.
    ///
    /// # Errors
    /// `OddParity` if the second symmetry is fermionic.
    pub fn first_charge(&self) -> Result<(Spec<A>, Rearrange)> {
        self.coarsen(|Product(first, _)| first)
    }

    /// [`Spec::coarsen`] to the second symmetry.
    ///
    /// # Errors
    /// `OddParity` if the first symmetry is fermionic.
    pub fn second_charge(&self) -> Result<(Spec<B>, Rearrange)> {
        self.coarsen(|Product(_, second)| second)
    }
}
