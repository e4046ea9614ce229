//! Legs from states in any order, and direct sums of legs.

use crate::error::{Result, StructuredError};
use crate::leg::{Direction, Leg, MOST_ELEMENTS};
use crate::sector::Sector;

/// Direct sum of legs, and the positions of their states in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stacked<S> {
    /// The sum: each sector holds the states of the first leg, then those of the second, and so on.
    pub leg: Leg<S>,
    /// For each leg and each of its sectors, the first of its states among those of the sector in the sum.
    pub starts: Vec<Vec<usize>>,
}

impl<S: Sector> Leg<S> {
    /// Leg of runs of states in any order, and the sorting permutation: state `i` of the leg is the given state
    /// `permutation[i]`. Runs of the same sector are merged; the sort is stable. Empty runs are ignored.
    ///
    /// [`GradedTensor::from_dense_in`](crate::GradedTensor::from_dense_in) reads arrays whose axes are in the given
    /// order.
    ///
    /// ```
    /// use t4a_structured::{Direction, Leg, U1};
    /// // Spin up and down, by twice the magnetisation.
    /// let (spin, order) = Leg::from_states([(U1(1), 1), (U1(-1), 1)], Direction::Out)?;
    /// assert_eq!(spin.sectors(), [(U1(-1), 1), (U1(1), 1)]);
    /// assert_eq!(order, [1, 0]);
    /// # Ok::<(), t4a_structured::StructuredError>(())
    /// ```
    ///
    /// # Errors
    /// `UnknownSector`, `TooLarge`.
    pub fn from_states(
        runs: impl IntoIterator<Item = (S, usize)>,
        direction: Direction,
    ) -> Result<(Self, Vec<usize>)> {
        let mut starts: Vec<(S, usize, usize)> = Vec::new();
        let mut next = 0usize;
        for (sector, dim) in runs {
            if dim > 0 {
                starts.push((sector, next, dim));
            }
            // A permutation lists all states, so the limit is lower.
            let limit = MOST_ELEMENTS >> 16;
            let too_large = StructuredError::TooLarge { op: "leg", what: "its states", limit };
            next = next.checked_add(dim).filter(|&n| n <= limit).ok_or(too_large)?;
        }
        // Stable sort: runs of one sector keep their order.
        starts.sort_by_key(|&(sector, ..)| sector);
        let mut sectors: Vec<(S, usize)> = Vec::new();
        let mut permutation = Vec::with_capacity(next);
        for (sector, start, dim) in starts {
            permutation.extend(start..start + dim);
            match sectors.last_mut() {
                Some((last, sum)) if *last == sector => *sum += dim,
                _ => sectors.push((sector, dim)),
            }
        }
        Ok((Self::sorted(sectors, direction)?, permutation))
    }

    /// Direct sum of legs of one direction; information on fusion is dropped.
    ///
    /// # Errors
    /// `Invalid` for no leg; `LegMismatch` for different directions; `TooLarge`.
    pub fn stacked(legs: &[&Leg<S>]) -> Result<Stacked<S>> {
        let op = "direct_sum";
        let Some(first) = legs.first() else {
            let message = "at least one leg is required".into();
            return Err(StructuredError::Invalid { op, message });
        };
        if let Some(other) = legs.iter().position(|leg| leg.direction() != first.direction()) {
            let (lhs, rhs) = (first.to_string(), legs[other].to_string());
            let required = "legs of one direction";
            return Err(StructuredError::LegMismatch { op, axis: 0, lhs, other, rhs, required });
        }
        let mut sectors: Vec<(S, usize)> =
            legs.iter().flat_map(|leg| leg.sectors()).map(|&(sector, _)| (sector, 0)).collect();
        sectors.sort_unstable_by_key(|&(sector, _)| sector);
        sectors.dedup_by_key(|&mut (sector, _)| sector);
        let mut starts = Vec::with_capacity(legs.len());
        for leg in legs {
            let mut own = Vec::with_capacity(leg.sectors().len());
            for &(sector, dim) in leg.sectors() {
                let place = sectors.partition_point(|&(other, _)| other < sector);
                own.push(sectors[place].1);
                sectors[place].1 = sectors[place].1.saturating_add(dim);
            }
            starts.push(own);
        }
        Ok(Stacked { leg: Self::sorted(sectors, first.direction())?, starts })
    }

    /// Index of a sector in this leg; an error if the leg does not have it.
    pub(crate) fn place_of(&self, op: &'static str, axis: usize, sector: S) -> Result<usize> {
        let missing = || {
            let message = format!("axis {axis} is {self}, without the sector {sector}");
            StructuredError::Invalid { op, message }
        };
        self.place(sector).ok_or_else(missing)
    }
}
