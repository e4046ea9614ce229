//! Growth of environments by parts.
//!
//! The environment behind a site has the identity in the channels that are a multiple of it, one matrix of the terms that do
//! not cross the new bond, and the channels that cross it.

use std::slice;

use t4a_diff::Array;
use t4a_structured::{GradedTensor, Leg, Sector, einsum};

use super::super::{ChainSide, Half, concurrently, sum};
use super::{Channels, DividedTerms, Multiples, Selected, vector};
use crate::environment::{grow_left, grow_right};
use crate::error::Result;

/// The parts of the environment of a bond, as tensors of the operator's bond.
#[derive(Clone, Debug)]
pub(super) struct Composition<S> {
    /// Factors of the identity.
    identity: Option<GradedTensor<S>>,
    /// The channel of the terms that do not cross the bond, divided by their factor.
    own: Option<GradedTensor<S>>,
    /// A matrix from the channels that cross the bond, unless they are all.
    crossing: Option<GradedTensor<S>>,
}

impl<S: Sector> Channels<S> {
    /// The environment of one side and site i, an isometry that becomes part of it.
    ///
    /// Channels whose environment is a multiple of the identity are not multiplied, and the terms that do not cross the new
    /// bond are one matrix: 12 instead of 20 units of D³ for the spin-½ Heisenberg chain.
    pub(crate) fn grow(
        &self,
        side: ChainSide,
        i: usize,
        environment: &GradedTensor<S>,
        x: &GradedTensor<S>,
    ) -> Result<GradedTensor<S>> {
        let (place, bond) = match side {
            ChainSide::Left => (0, i + 1),
            ChainSide::Right => (1, i),
        };
        let (w, conj) = (&self.tensors[i], x.conj()?);
        let whole = || match side {
            ChainSide::Left => grow_left(environment, x, w, &conj),
            ChainSide::Right => grow_right(environment, x, w, &conj),
        };
        let Some(composition) = &self.compositions[bond][place] else { return whole() };
        let DividedTerms { own, crossing } = self.sites[i][place].half(side, environment)?;
        let own = own.zip(composition.own.as_ref()).map(|(half, factors)| (half, Some(factors)));
        let halves = [own, crossing.map(|half| (half, None))];
        let halves: Vec<(Half<S>, Option<_>)> = halves.into_iter().flatten().collect();
        let mut parts = concurrently(&halves, x.spec().len(), |(half, factors)| match factors {
            Some(factors) => spread(&half.between(side, "", x, &conj)?, factors),
            None => composition.spread_crossing(half.between(side, "c", x, &conj)?),
        })?;
        if let Some(factors) = &composition.identity {
            let leg = &x.spec().legs()[if place == 0 { 2 } else { 0 }];
            let identity = GradedTensor::identity(slice::from_ref(leg), x.re().dtype())?;
            parts.push(spread(&identity, factors)?);
        }
        sum(parts)?.map_or_else(whole, Ok)
    }
}

impl<S: Sector> Composition<S> {
    /// `known` are multiples of the identity, `factors` those of the channels of the terms that do not cross the bond.
    pub(super) fn new(
        leg: &Leg<S>,
        known: &Multiples,
        factors: &Multiples,
        crossing: Option<&Selected<S>>,
        like: &GradedTensor<S>,
    ) -> Result<Option<Self>> {
        let inverse = factors.iter().map(|x| x.filter(|&x| x != 0.0).map(|x| 1.0 / x));
        let inverse: Multiples = inverse.collect();
        let overlap = inverse.iter().zip(known).any(|(own, known)| own.and(*known).is_some());
        if S::FERMIONIC || overlap || inverse.iter().flatten().count() > 1 {
            return Ok(None);
        }
        let selection = crossing.and_then(|channels| channels.matrix.as_ref());
        Ok(Some(Self {
            identity: vector(leg, known, like)?,
            own: vector(leg, &inverse, like)?,
            crossing: selection.map(GradedTensor::conj).transpose()?,
        }))
    }

    /// The channels `[ket, operator, bra]` that cross the bond, among all.
    fn spread_crossing(&self, x: GradedTensor<S>) -> Result<GradedTensor<S>> {
        let x = match &self.crossing {
            None => x,
            Some(matrix) => einsum("mcn,vc->mvn", &[&x, matrix])?,
        };
        Ok(x.repartition(2)?)
    }
}

/// A matrix `[ket, bra]` times factors of the channels, as `[ket, operator, bra]`.
fn spread<S: Sector>(x: &GradedTensor<S>, factors: &GradedTensor<S>) -> Result<GradedTensor<S>> {
    Ok(einsum("mn,v->mvn", &[x, factors])?.repartition(2)?)
}

impl<S: Sector> Half<S> {
    /// The operators between an isometry and its conjugate; `c` are the labels of the bond in the middle.
    fn between(
        &self,
        side: ChainSide,
        c: &str,
        x: &GradedTensor<S>,
        conj: &GradedTensor<S>,
    ) -> Result<GradedTensor<S>> {
        let out = self.output;
        let (ket, bra, result) = match side {
            ChainSide::Left => ("kpm", format!("{out}n"), format!("m{c}n")),
            ChainSide::Right => ("kqm", format!("b{out}"), format!("k{c}b")),
        };
        let labels = self.operands.iter().map(|&(labels, _)| labels);
        let labels: Vec<&str> = labels.chain([ket, &bra]).collect();
        let operands = self.operands.iter().map(|(_, x)| x).chain([x, conj]);
        let subscripts = format!("{}->{result}", labels.join(","));
        Ok(einsum(&subscripts, &operands.collect::<Vec<_>>())?)
    }
}
