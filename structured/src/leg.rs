//! Legs: axes of graded tensors. A leg lists its sectors with their degeneracies (numbers of states).
//!
//! ```text
//! dense order of a leg   sectors ascending, then states
//! dual                   opposite direction, same sectors
//! fused                  states of several legs combined; sector tuples in lexicographic order
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::error::{Result, StructuredError};
use crate::sector::Sector;

/// Maximum number of elements of a leg and of a tensor.
pub(crate) const MOST_ELEMENTS: usize = 1 << 48;
/// Maximum number of blocks of a structure.
pub(crate) const MOST_BLOCKS: usize = 1 << 24;

/// Direction of the charge flow through a leg.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Out of the tensor; charges count positive. Ket.
    Out,
    /// Into the tensor; charges count negative. Bra.
    In,
}

impl Direction {
    /// Opposite direction.
    pub const fn dual(self) -> Self {
        match self {
            Direction::Out => Direction::In,
            Direction::In => Direction::Out,
        }
    }
}

/// Axis of a graded tensor: sectors with degeneracies, and a direction.
///
/// ```
/// use t4a_structured::{Direction, Leg, U1};
/// // Two spins ½ by twice their magnetisation.
/// let spin = Leg::new([(U1(-1), 1), (U1(1), 1)], Direction::Out)?;
/// let pair = Leg::fused(&[spin.clone(), spin], Direction::Out)?;
/// assert_eq!(pair.sectors(), [(U1(-2), 1), (U1(0), 2), (U1(2), 1)]);
/// assert_eq!(pair.dim(), 4);
/// # Ok::<(), t4a_structured::StructuredError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leg<S> {
    sectors: Arc<[(S, usize)]>,
    direction: Direction,
    /// Legs that this one was fused from.
    fusion: Option<Arc<Fusion<S>>>,
}

/// Fusion of several legs. The sector tuples are determined by the legs and the direction.
#[derive(Clone, Debug)]
struct Fusion<S> {
    legs: Vec<Leg<S>>,
    /// For each sector of the fused leg, the sector tuples that fuse to it and the first state of each.
    rows: Arc<[Vec<SectorTuple>]>,
}

impl<S: PartialEq> PartialEq for Fusion<S> {
    fn eq(&self, other: &Self) -> bool {
        self.legs == other.legs
    }
}

impl<S: Eq> Eq for Fusion<S> {}

impl<S: Hash> Hash for Fusion<S> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.legs.hash(state);
    }
}

/// Sector tuple: the index of one sector for each leg.
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

/// All sector tuples of one coupled sector.
#[derive(Debug)]
pub(crate) struct CoupledSector<S> {
    pub(crate) charge: S,
    pub(crate) rows: Vec<SectorTuple>,
    pub(crate) size: usize,
}

impl<S: Sector> Leg<S> {
    /// Leg with these sectors, in any order, and their degeneracies.
    ///
    /// # Errors
    /// `DuplicateSector`, `EmptySector`, `UnknownSector`, `TooLarge`.
    pub fn new(
        sectors: impl IntoIterator<Item = (S, usize)>,
        direction: Direction,
    ) -> Result<Self> {
        let mut sectors: Vec<(S, usize)> = sectors.into_iter().collect();
        sectors.sort_unstable_by_key(|&(sector, _)| sector);
        Self::sorted(sectors, direction)
    }

    /// [`Leg::new`] for sectors in ascending order.
    ///
    /// # Errors
    /// As [`Leg::new`]; `UnsortedSectors`.
    pub fn sorted(sectors: Vec<(S, usize)>, direction: Direction) -> Result<Self> {
        let mut total = 0usize;
        for (i, &(sector, dim)) in sectors.iter().enumerate() {
            let text = || sector.to_string();
            if !sector.is_valid() {
                return Err(StructuredError::UnknownSector { sector: text() });
            }
            if dim == 0 {
                return Err(StructuredError::EmptySector { sector: text() });
            }
            if i > 0 && sectors[i - 1].0 >= sector {
                return Err(match sectors[i - 1].0 == sector {
                    true => StructuredError::DuplicateSector { sector: text() },
                    false => StructuredError::UnsortedSectors { sector: text() },
                });
            }
            total =
                total.checked_add(dim).filter(|&n| n <= MOST_ELEMENTS).ok_or(TOO_MANY_STATES)?;
        }
        Ok(Self { sectors: sectors.into(), direction, fusion: None })
    }

    /// Sectors in ascending order, with their degeneracies.
    pub fn sectors(&self) -> &[(S, usize)] {
        &self.sectors
    }

    /// Direction of the charge flow.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Number of states.
    pub fn dim(&self) -> usize {
        self.sectors.iter().map(|(_, dim)| dim).sum()
    }

    /// Dual leg, which this one contracts with: same sectors in the same order, opposite direction. The legs it was
    /// fused from are replaced by their duals.
    pub fn dual(&self) -> Self {
        let dual = |fusion: &Arc<Fusion<S>>| {
            let legs = fusion.legs.iter().map(Leg::dual).collect();
            Arc::new(Fusion { legs, rows: fusion.rows.clone() })
        };
        let fusion = self.fusion.as_ref().map(dual);
        Self { direction: self.direction.dual(), sectors: self.sectors.clone(), fusion }
    }

    /// Equivalent leg of the opposite direction, with inverse sectors. The information on fusion is dropped.
    ///
    /// # Errors
    /// `ChargeOverflow`.
    pub fn flipped(&self) -> Result<Self> {
        let inverse = |&(sector, dim): &(S, usize)| Ok((inverse(sector, "flip")?, dim));
        let sectors: Vec<(S, usize)> = self.sectors.iter().map(inverse).collect::<Result<_>>()?;
        Self::new(sectors, self.direction.dual())
    }

    /// Legs that this leg was fused from, `None` if it was not fused.
    pub fn fusion(&self) -> Option<&[Leg<S>]> {
        self.fusion.as_ref().map(|fusion| &fusion.legs[..])
    }

    /// For a sector tuple, the index of its sector in the fused leg and its first state there.
    pub(crate) fn fused_row(
        &self,
        places: &[u32],
        op: &'static str,
    ) -> Result<Option<(u32, usize)>> {
        let Some(fusion) = &self.fusion else { return Ok(None) };
        let mut charge = S::TRIVIAL;
        for (leg, &place) in fusion.legs.iter().zip(places) {
            charge = product(charge, leg.charge(place as usize, op)?, op)?;
        }
        if self.direction == Direction::In {
            charge = inverse(charge, op)?;
        }
        let Some(place) = self.place(charge) else { return Ok(None) };
        let rows = &fusion.rows[place];
        let row = rows.binary_search_by(|row| row.places[..].cmp(places)).ok();
        Ok(row.map(|row| (place as u32, rows[row].start)))
    }

    /// Index of a sector among the sectors of the leg.
    pub fn place(&self, sector: S) -> Option<usize> {
        self.sectors.binary_search_by_key(&sector, |&(sector, _)| sector).ok()
    }

    /// For each sector, true if it is odd.
    pub(crate) fn parities(&self) -> Vec<bool> {
        self.sectors.iter().map(|(sector, _)| sector.is_odd()).collect()
    }

    /// Same sectors, without the information on fusion.
    pub fn unfused(&self) -> Self {
        Self { fusion: None, ..self.clone() }
    }

    /// True if the two legs can be contracted: same sectors, fused from the same legs, opposite directions.
    pub fn contracts_with(&self, other: &Self) -> bool {
        self.direction != other.direction
            && (Arc::ptr_eq(&self.sectors, &other.sectors) || self.sectors == other.sectors)
            && match (self.fusion(), other.fusion()) {
                (None, None) => true,
                (Some(a), Some(b)) => {
                    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.contracts_with(b))
                }
                _ => false,
            }
    }

    /// First state of each sector in dense order.
    pub(crate) fn starts(&self) -> Vec<usize> {
        let mut next = 0;
        let start = |&(_, dim): &(S, usize)| {
            next += dim;
            next - dim
        };
        self.sectors.iter().map(start).collect()
    }

    /// Charge of a sector as it enters the flux of a tensor: inverted for incoming legs.
    pub(crate) fn charge(&self, place: usize, op: &'static str) -> Result<S> {
        let sector = self.sectors[place].0;
        match self.direction {
            Direction::Out => Ok(sector),
            Direction::In => inverse(sector, op),
        }
    }

    /// Fused leg: the product states of several legs. Within each sector of the result, sector tuples are in
    /// lexicographic order, and the states of a tuple in row-major order.
    ///
    /// # Errors
    /// `ChargeOverflow`, `TooLarge`.
    pub fn fused(legs: &[Leg<S>], direction: Direction) -> Result<Self> {
        let op = "fuse";
        let mut all = rows(legs, op)?;
        if direction == Direction::In {
            for rows in &mut all {
                rows.charge = inverse(rows.charge, op)?;
            }
            all.sort_unstable_by_key(|rows| rows.charge);
        }
        let sectors = all.iter().map(|rows| (rows.charge, rows.size)).collect();
        let rows = all.into_iter().map(|rows| rows.rows).collect();
        let fusion = Some(Arc::new(Fusion { legs: legs.to_vec(), rows }));
        Ok(Self { fusion, ..Self::sorted(sectors, direction)? })
    }
}

const TOO_MANY_STATES: StructuredError =
    StructuredError::TooLarge { op: "leg", what: "its states", limit: MOST_ELEMENTS };

pub(crate) fn inverse<S: Sector>(sector: S, op: &'static str) -> Result<S> {
    let overflow = || StructuredError::ChargeOverflow { op, sectors: sector.to_string() };
    sector.dual().ok_or_else(overflow)
}

pub(crate) fn product<S: Sector>(a: S, b: S, op: &'static str) -> Result<S> {
    let overflow = || StructuredError::ChargeOverflow { op, sectors: format!("{a} and {b}") };
    a.fuse(b).ok_or_else(overflow)
}

/// All sector tuples of the legs, by coupled sector in ascending order, lexicographic within a coupled sector.
///
/// Cost: one entry per tuple.
pub(crate) fn rows<S: Sector>(legs: &[Leg<S>], op: &'static str) -> Result<Vec<CoupledSector<S>>> {
    let count = legs.iter().try_fold(1usize, |n, leg| n.checked_mul(leg.sectors.len()));
    let limit = MOST_BLOCKS;
    if count.is_none_or(|count| count > limit) {
        return Err(StructuredError::TooLarge { op, what: "rows of sectors", limit });
    }
    // If one leg has no sector, there are no tuples, although the preceding legs have some.
    if count == Some(0) {
        return Ok(Vec::new());
    }
    let too_large = || {
        let (what, limit) = ("states", MOST_ELEMENTS);
        StructuredError::TooLarge { op, what, limit }
    };
    // Charges and sizes in lexicographic order: a tuple is identified by its index.
    let mut all: Vec<(S, usize)> = vec![(S::TRIVIAL, 1)];
    for leg in legs {
        let states: Vec<(S, usize)> = (0..leg.sectors.len())
            .map(|place| Ok((leg.charge(place, op)?, leg.sectors[place].1)))
            .collect::<Result<_>>()?;
        let mut longer = Vec::with_capacity(all.len() * states.len());
        for &(charge, size) in &all {
            for &(next, states) in &states {
                let size = size.checked_mul(states).filter(|&n| n <= MOST_ELEMENTS);
                longer.push((product(charge, next, op)?, size.ok_or_else(too_large)?));
            }
        }
        all = longer;
    }
    let mut order: Vec<u32> = (0..all.len() as u32).collect();
    order.sort_unstable_by_key(|&number| (all[number as usize].0, number));
    let mut groups: Vec<CoupledSector<S>> = Vec::new();
    for same in order.chunk_by(|&a, &b| all[a as usize].0 == all[b as usize].0) {
        let (mut rows, mut start) = (Vec::with_capacity(same.len()), 0usize);
        for &number in same {
            let (places, size) = (places_of(legs, number as usize), all[number as usize].1);
            rows.push(SectorTuple { places, start, size });
            let end = start.checked_add(size).filter(|&n| n <= MOST_ELEMENTS);
            start = end.ok_or_else(too_large)?;
        }
        groups.push(CoupledSector { charge: all[same[0] as usize].0, rows, size: start });
    }
    Ok(groups)
}

/// Sector tuple of an index in lexicographic order.
fn places_of<S>(legs: &[Leg<S>], mut number: usize) -> SectorIndices {
    let mut places = SectorIndices::from_elem(0, legs.len());
    for (place, leg) in places.iter_mut().zip(legs).rev() {
        *place = (number % leg.sectors.len()) as u32;
        number /= leg.sectors.len();
    }
    places
}

/// Index of a sector tuple in lexicographic order; `None` for sector indices out of range.
pub(crate) fn number_of<S>(legs: &[Leg<S>], places: impl Iterator<Item = u32>) -> Option<usize> {
    legs.iter().zip(places).try_fold(0, |number, (leg, place)| {
        let (place, count) = (place as usize, leg.sectors.len());
        (place < count).then_some(number * count + place)
    })
}

impl<S: Sector> fmt::Display for Leg<S> {
    /// Prints direction and sectors, `out {-1: 2, 1: 3}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.direction {
            Direction::Out => "out {",
            Direction::In => "in {",
        })?;
        for (i, (sector, dim)) in self.sectors.iter().enumerate() {
            write!(f, "{}{sector}: {dim}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("}")
    }
}
