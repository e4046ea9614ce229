//! A sum over all translations of the terms of a cell as a matrix product operator that repeats.
//!
//! ```text
//!  start ── nothing yet ── (rest of a term: operators and how far they are) ── complete ── end
//! ```
//!
//! Rests of terms that are equal are one state.

use std::sync::Arc;

use t4a_algebra::c64;
use t4a_structured::{Direction, GradedTensor, Leg, Sector, Spec, StructuredError};

use crate::error::{NetworksError, Result};
use crate::fill::Filler;
use crate::sites::Sites;
use crate::sums::strings::{END as LAST, Strings};
use crate::sums::{OP, Sum};

/// The state of a bond before any operator of a term.
pub(super) const START: usize = 0;
/// The state of a bond behind all operators of a term.
pub(super) const END: usize = 1;

/// A matrix product operator of a cell that repeats.
#[derive(Clone, Debug)]
pub struct InfiniteMpo<S> {
    sites: Sites<S>,
    tensors: Vec<GradedTensor<S>>,
    /// By bond before a site and state, the place in dense order.
    places: Vec<Vec<usize>>,
}

/// The rest of a term before a site: distances and operators; empty for the two ends.
type Rest = Vec<(usize, u32)>;

/// States of a bond: start, end, rests.
struct States {
    rests: Vec<Rest>,
}

impl States {
    fn number(&mut self, rest: Rest) -> usize {
        if rest.is_empty() {
            return END;
        }
        match self.rests[2..].iter().position(|other| *other == rest) {
            Some(place) => place + 2,
            None => {
                self.rests.push(rest);
                self.rests.len() - 1
            }
        }
    }
}

/// From a state of the bond before a site to one behind it, by an operator.
struct Transition {
    site: usize,
    from: usize,
    symbol: u32,
    to: usize,
    coefficient: c64,
}

impl<S: Sector> InfiniteMpo<S> {
    /// The sites of the cell.
    pub fn sites(&self) -> &Sites<S> {
        &self.sites
    }

    /// The tensors `[left, out, in, right]` of the cell; the last bond is the first one again.
    pub fn tensors(&self) -> &[GradedTensor<S>] {
        &self.tensors
    }

    /// The operator with a tensor of NaN.
    #[cfg(test)]
    pub(super) fn with_nan(&self, site: usize) -> Self {
        let mut broken = self.clone();
        broken.tensors[site] = crate::broken::not_a_number(&self.tensors[site]);
        broken
    }

    /// The place of a state of the bond between cells.
    pub(super) fn place(&self, state: usize) -> usize {
        self.places[0][state]
    }
}

impl<S: Sector> Sum<S> {
    /// The sum of all translations of the terms by cells of the sites of this sum. Sites of factors go on behind the
    /// cell: of a cell of two sites, site 2 is the first one of the next cell.
    ///
    /// # Errors
    /// As [`Sum::mpo`]; `Argument` for a constant and for a term that reaches over more than 64 cells.
    pub fn infinite_mpo(&self) -> Result<InfiniteMpo<S>> {
        self.sites().check(OP)?;
        let cell = self.sites().len();
        let last = self.terms.iter().flat_map(|term| &term.factors).map(|&(_, site)| site).max();
        let cells = last.unwrap_or(0) / cell + 1;
        if cells > 64 {
            let (name, given) = ("a term", format!("over {cells} cells"));
            let required = "at most 64 cells";
            return Err(NetworksError::Argument { op: OP, name, given, required });
        }
        let shared = self.sites().shared();
        let long = Sites::new((0..cells * cell).map(|i| Arc::clone(&shared[i % cell])));
        let finite = Sum { sites: long, terms: self.terms.clone(), charge: None };
        let strings = Strings::new(&finite, S::TRIVIAL, false)?;
        let mut states: Vec<States> =
            (0..cell).map(|_| States { rests: vec![Vec::new(); 2] }).collect();
        let transitions = transitions(&strings, &mut states, cell)?;
        assemble(self.sites(), &strings, &states, &transitions)
    }
}

fn transitions<S: Sector>(
    strings: &Strings<S>,
    states: &mut [States],
    cell: usize,
) -> Result<Vec<Transition>> {
    let mut all = Vec::new();
    for site in 0..cell {
        for state in [START, END] {
            let coefficient = c64::ONE;
            all.push(Transition { site, from: state, symbol: 0, to: state, coefficient });
        }
    }
    for &(string, coefficient) in &strings.terms {
        let (mut parts, mut next) = (Vec::new(), string);
        while next != LAST {
            let suffix = strings.suffixes[next as usize];
            parts.push((suffix.site as usize, suffix.symbol));
            next = suffix.rest;
        }
        let Some(&(first, symbol)) = parts.first() else {
            let (name, given) = ("a term", "a constant".into());
            let required = "an operator: a constant has no finite sum";
            return Err(NetworksError::Argument { op: OP, name, given, required });
        };
        let rest: Rest = parts[1..].iter().map(|&(at, symbol)| (at - first - 1, symbol)).collect();
        let (site, from) = (first % cell, START);
        let to = states[(site + 1) % cell].number(rest.clone());
        all.push(Transition { site, from, symbol, to, coefficient });
        follow(rest, site + 1, states, &mut all);
    }
    Ok(all)
}

/// The transitions of the rest of a term from a site on; those that are known are not made again.
fn follow(mut rest: Rest, mut at: usize, states: &mut [States], all: &mut Vec<Transition>) {
    let cell = states.len();
    while !rest.is_empty() {
        let site = at % cell;
        let from = states[site].number(rest.clone());
        let symbol = if rest[0].0 == 0 { rest.remove(0).1 } else { 0 };
        rest.iter_mut().for_each(|(distance, _)| *distance -= 1);
        let to = states[(site + 1) % cell].number(rest.clone());
        if all.iter().any(|other| other.site == site && other.from == from) {
            return;
        }
        all.push(Transition { site, from, symbol, to, coefficient: c64::ONE });
        at += 1;
    }
}

/// The charge of the operators before a rest: the inverse of the charge of the rest.
fn charge<S: Sector>(strings: &Strings<S>, at: usize, rest: &Rest) -> Result<S> {
    let kinds = &strings.kinds;
    let mut sum = S::TRIVIAL;
    for &(distance, symbol) in rest {
        // Rests begin in the first cell, and chains are as long as terms.
        let site = (at + distance) % kinds.len();
        let own = strings.symbols[kinds[site]].matrices[symbol as usize].0;
        let overflow =
            || StructuredError::ChargeOverflow { op: OP, sectors: format!("{sum} and {own}") };
        sum = own.dual().and_then(|own| sum.fuse(own)).ok_or_else(overflow)?;
    }
    Ok(sum)
}

fn assemble<S: Sector>(
    sites: &Sites<S>,
    strings: &Strings<S>,
    states: &[States],
    transitions: &[Transition],
) -> Result<InfiniteMpo<S>> {
    let (mut legs, mut places) = (Vec::new(), Vec::new());
    for (at, states) in states.iter().enumerate() {
        let charges: Vec<S> =
            states.rests.iter().map(|rest| charge(strings, at, rest)).collect::<Result<_>>()?;
        let mut order: Vec<usize> = (0..charges.len()).collect();
        order.sort_by_key(|&k| charges[k]);
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(k, &state)| place[state] = k);
        let same = order.chunk_by(|&a, &b| charges[a] == charges[b]);
        let runs = same.map(|same| (charges[same[0]], same.len()));
        legs.push(Leg::new(runs, Direction::Out)?);
        places.push(place);
    }
    let mut tensors = Vec::new();
    for (at, site) in sites.iter().enumerate() {
        let next = (at + 1) % sites.len();
        let physical = site.leg();
        let all = vec![legs[at].clone(), physical.clone(), physical.dual(), legs[next].dual()];
        let mut filler = Filler::new(Spec::new(all, S::TRIVIAL, 2)?);
        for transition in transitions.iter().filter(|transition| transition.site == at) {
            let matrix = &strings.symbols[strings.kinds[at]].matrices[transition.symbol as usize].1;
            let (a, b) = (places[at][transition.from], places[next][transition.to]);
            for (i, j, x) in matrix.nonzeros() {
                filler.add(&[a, i, j, b], transition.coefficient * x);
            }
        }
        tensors.push(filler.finish()?);
    }
    Ok(InfiniteMpo { sites: sites.clone(), tensors, places })
}
