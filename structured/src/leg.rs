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

use crate::error::{Result, StructuredError};
use crate::sector::Sector;
use crate::tuples::{SectorTuple, SectorTuples};

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
        let tuples = SectorTuples::shared(legs, op)?;
        let mut all = Vec::with_capacity(tuples.groups().len());
        for (group, number) in tuples.groups().iter().zip(0..) {
            let charge = match direction {
                Direction::Out => group.charge,
                Direction::In => inverse(group.charge, op)?,
            };
            all.push((charge, group.size, number));
        }
        all.sort_unstable_by_key(|&(charge, ..)| charge);
        let sectors = all.iter().map(|&(charge, size, _)| (charge, size)).collect();
        let rows = all.iter().map(|&(.., number)| tuples.of(number).iter().collect()).collect();
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
