//! Sector tuples of several legs: one sector of each leg, by the sector they fuse to.
//!
//! ```text
//! number    index of a tuple in lexicographic order; its sector indices are the digits
//! group     all tuples of one coupled sector, in lexicographic order; groups in ascending order of the sectors
//! ```
//!
//! Tuples are stored by number; their sector indices are computed where they are used.

use hashbrown::HashMap;
use smallvec::SmallVec;

use crate::cache::cached;
use crate::error::{Result, StructuredError};
use crate::leg::{Leg, MOST_BLOCKS, MOST_ELEMENTS, product};
use crate::sector::Sector;

/// The index of one sector for each leg.
pub(crate) type SectorIndices = SmallVec<[u32; 6]>;

/// States of several legs in one sector tuple.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SectorTuple {
    pub(crate) places: SectorIndices,
    /// First state among those of the same coupled sector.
    pub(crate) start: usize,
    /// Number of states.
    pub(crate) size: usize,
}

/// Place of a sector tuple.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TuplePlace {
    /// Index of its coupled sector.
    pub(crate) group: u32,
    /// Index among the tuples of that sector.
    pub(crate) row: u32,
    /// Its first state among those of that sector.
    pub(crate) start: usize,
}

/// Coupled sector.
#[derive(Clone, Debug)]
pub(crate) struct CoupledSector<S> {
    pub(crate) charge: S,
    /// Number of states.
    pub(crate) size: usize,
    /// First tuple, and one past the last.
    tuples: (u32, u32),
}

/// All sector tuples of some legs.
#[derive(Debug)]
pub(crate) struct SectorTuples<S> {
    /// Numbers of sectors of the legs.
    counts: SectorIndices,
    groups: Vec<CoupledSector<S>>,
    /// Numbers of the tuples, by group.
    numbers: Vec<u32>,
    /// Place of each tuple, by number.
    places: Vec<TuplePlace>,
}

/// Tuples of one coupled sector.
#[derive(Debug)]
pub(crate) struct GroupTuples<'a, S> {
    of: &'a SectorTuples<S>,
    group: &'a CoupledSector<S>,
}

impl<S> Clone for GroupTuples<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for GroupTuples<'_, S> {}

impl<'a, S> GroupTuples<'a, S> {
    /// Number of tuples.
    pub(crate) fn len(self) -> usize {
        (self.group.tuples.1 - self.group.tuples.0) as usize
    }

    /// Numbers of the tuples, and the first state of each.
    pub(crate) fn numbers(self) -> impl Iterator<Item = (usize, usize)> + 'a {
        let number = |&number: &u32| (number as usize, self.of.places[number as usize].start);
        self.listed().iter().map(number)
    }

    /// Tuple `row` of the sector.
    pub(crate) fn get(self, row: usize) -> SectorTuple {
        let listed = self.listed();
        let mut places = SectorIndices::from_elem(0, self.of.counts.len());
        let mut rest = listed[row];
        for (place, &count) in places.iter_mut().zip(&self.of.counts).rev() {
            (rest, *place) = (rest / count, rest % count);
        }
        let start = |&number: &u32| self.of.places[number as usize].start;
        let (start, end) =
            (start(&listed[row]), listed.get(row + 1).map_or(self.group.size, start));
        SectorTuple { places, start, size: end - start }
    }

    /// The tuples in lexicographic order.
    pub(crate) fn iter(self) -> impl Iterator<Item = SectorTuple> + 'a {
        (0..self.len()).map(move |row| self.get(row))
    }

    fn listed(self) -> &'a [u32] {
        &self.of.numbers[self.group.tuples.0 as usize..self.group.tuples.1 as usize]
    }
}

impl<S: Sector> SectorTuples<S> {
    /// Cached: structures derived from each other share their sides.
    pub(crate) fn shared(legs: &[Leg<S>], op: &'static str) -> Result<std::sync::Arc<Self>> {
        let one = size_of::<u32>() + size_of::<TuplePlace>();
        let weight = |side: &Self| one * (1 + side.places.len());
        cached(legs.to_vec(), weight, |legs: &Vec<Leg<S>>| Self::new(legs, op))
    }

    /// Cost: some nanoseconds per tuple. Charges are fused and sorted once per distinct charge, not once per tuple:
    /// they are far fewer than tuples (bench `graded`).
    ///
    /// # Errors
    /// `ChargeOverflow`, `TooLarge`.
    pub(crate) fn new(legs: &[Leg<S>], op: &'static str) -> Result<Self> {
        let counts: SectorIndices = legs.iter().map(|leg| leg.sectors().len() as u32).collect();
        let count = legs.iter().try_fold(1usize, |n, leg| n.checked_mul(leg.sectors().len()));
        let limit = MOST_BLOCKS;
        let count = count.filter(|&count| count <= limit);
        let count =
            count.ok_or(StructuredError::TooLarge { op, what: "rows of sectors", limit })?;
        // If one leg has no sector, there are no tuples, although the preceding legs have some.
        if count == 0 {
            let (groups, numbers, places) = (Vec::new(), Vec::new(), Vec::new());
            return Ok(Self { counts, groups, numbers, places });
        }
        // Tuples of the legs so far: index of the charge, and number of states. Numbers of states saturate; the sums over
        // the groups are checked at the end.
        let mut shorter: Vec<(u32, usize)> = vec![(0, 1)];
        let mut charges = FusedCharges::trivial();
        for (i, leg) in legs.iter().enumerate() {
            if i > 0 {
                let last = legs[i - 1].sectors();
                let mut longer = Vec::with_capacity(shorter.len() * last.len());
                for &(charge, size) in &shorter {
                    let pairs = charges.fused(charge).iter().zip(last);
                    longer.extend(pairs.map(|(&x, &(_, more))| (x, size.saturating_mul(more))));
                }
                shorter = longer;
            }
            charges = charges.with(leg, op)?;
        }
        let mut groups = charges.sort();
        let (mut numbers, mut places) = (vec![0; count], Vec::with_capacity(count));
        // The last leg, or no leg at all.
        let none = [(S::TRIVIAL, 1)];
        let last = legs.last().map_or(&none[..], |leg| leg.sectors());
        for &(charge, size) in &shorter {
            let first = places.len() as u32;
            let pairs = charges.fused(charge).iter().zip(last);
            places.extend(pairs.zip(first..).map(|((&own, &(_, more)), number)| {
                let group: &mut CoupledSector<S> = &mut groups[own as usize];
                let place = TuplePlace {
                    group: own,
                    row: group.tuples.1 - group.tuples.0,
                    start: group.size,
                };
                numbers[group.tuples.1 as usize] = number;
                group.tuples.1 += 1;
                group.size = group.size.saturating_add(size.saturating_mul(more));
                place
            }));
        }
        if groups.iter().any(|group| group.size > MOST_ELEMENTS) {
            let (what, limit) = ("states", MOST_ELEMENTS);
            return Err(StructuredError::TooLarge { op, what, limit });
        }
        Ok(Self { counts, groups, numbers, places })
    }

    /// Coupled sectors in ascending order.
    pub(crate) fn groups(&self) -> &[CoupledSector<S>] {
        &self.groups
    }

    /// Tuples of a coupled sector.
    pub(crate) fn of(&self, group: u32) -> GroupTuples<'_, S> {
        GroupTuples { of: self, group: &self.groups[group as usize] }
    }

    /// Place of the tuple with this number.
    pub(crate) fn place(&self, number: usize) -> Option<TuplePlace> {
        self.places.get(number).copied()
    }
}

/// Distinct charges of the tuples of some legs.
struct FusedCharges<S> {
    charges: Vec<S>,
    /// For each charge, the number of its tuples.
    counts: Vec<u32>,
    /// For each charge without the last leg, and each sector of that leg, the index of the fused charge.
    table: Vec<u32>,
    /// Number of sectors of the last leg.
    width: usize,
}

impl<S: Sector> FusedCharges<S> {
    /// No leg: the one tuple is empty.
    fn trivial() -> Self {
        Self { charges: vec![S::TRIVIAL], counts: vec![1], table: vec![0], width: 1 }
    }

    /// Indices of the charges that a charge without the last leg fuses to.
    fn fused(&self, charge: u32) -> &[u32] {
        &self.table[charge as usize * self.width..][..self.width]
    }

    /// One more leg.
    fn with(&self, leg: &Leg<S>, op: &'static str) -> Result<Self> {
        let width = leg.sectors().len();
        let own: Vec<S> = (0..width).map(|place| leg.charge(place, op)).collect::<Result<_>>()?;
        // Charges of neighbouring sectors mostly coincide: the number of distinct ones is near the sum.
        let (pairs, few) = (self.charges.len() * width, 2 * (self.charges.len() + width));
        // One charge fuses to distinct charges: there is nothing to look up.
        let is_one = self.charges.len() == 1;
        let mut index_of = HashMap::with_capacity(if is_one { 0 } else { few.min(pairs) });
        let charges = Vec::with_capacity(few.min(pairs));
        let counts = Vec::with_capacity(few.min(pairs));
        let mut fused = Self { charges, counts, table: Vec::with_capacity(pairs), width };
        for (&charge, &count) in self.charges.iter().zip(&self.counts) {
            // The charge after that of the preceding sector is mostly the next one, which saves a look-up.
            let mut next = 0;
            for &sector in &own {
                let charge = product(charge, sector, op)?;
                let index = match fused.charges.get(next) {
                    Some(other) if *other == charge => next as u32,
                    _ if is_one => fused.charges.len() as u32,
                    _ => *index_of.entry(charge).or_insert(fused.charges.len() as u32),
                };
                next = index as usize + 1;
                if index as usize == fused.charges.len() {
                    fused.charges.push(charge);
                    fused.counts.push(0);
                }
                fused.counts[index as usize] += count;
                fused.table.push(index);
            }
        }
        Ok(fused)
    }

    /// Sorts the charges: groups with room for their tuples, in ascending order, which the table then refers to.
    fn sort(&mut self) -> Vec<CoupledSector<S>> {
        let mut order: Vec<u32> = (0..self.charges.len() as u32).collect();
        order.sort_unstable_by_key(|&index| self.charges[index as usize]);
        let (mut group_of, mut first) = (vec![0; order.len()], 0);
        let mut groups = Vec::with_capacity(order.len());
        for (number, &index) in order.iter().enumerate() {
            group_of[index as usize] = number as u32;
            let charge = self.charges[index as usize];
            groups.push(CoupledSector { charge, size: 0, tuples: (first, first) });
            first += self.counts[index as usize];
        }
        self.table.iter_mut().for_each(|index| *index = group_of[*index as usize]);
        groups
    }
}

/// Index of a sector tuple in lexicographic order; `None` for sector indices out of range.
pub(crate) fn number_of<S: Sector>(
    legs: &[Leg<S>],
    places: impl Iterator<Item = u32>,
) -> Option<usize> {
    legs.iter().zip(places).try_fold(0, |number, (leg, place)| {
        let (place, count) = (place as usize, leg.sectors().len());
        (place < count).then_some(number * count + place)
    })
}
