//! Pivots of one two-site matrix: full search, and rook search on rows and columns of pivots alone.

use t4a_linalg::LinalgScalar;

use super::options::PivotSearch;
use super::pivots::Indices;
use super::samples::Samples;
use crate::train::{RankRevealingLu, Result, Stop};

/// Alternations between columns and rows per size of the sample.
const ALTERNATIONS: usize = 5;

/// The side whose interpolation is needed afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// Left to right: `C P⁻¹`.
    Right,
    /// Right to left: `P⁻¹ R`.
    Left,
}

/// Pivots of a matrix.
pub(super) struct Found<T: LinalgScalar> {
    pub(super) rows: Vec<usize>,
    pub(super) cols: Vec<usize>,
    /// Factorisation of the columns of pivots and all rows (`Right`), or the rows of pivots and all columns (`Left`), or
    /// of the matrix.
    pub(super) lu: RankRevealingLu<T>,
    /// The largest rejected pivot.
    pub(super) error: f64,
}

/// Rows and columns of a two-site matrix, with the positions of known pivots.
pub(super) struct Candidates {
    pub(super) rows: Indices,
    pub(super) cols: Indices,
    pub(super) known_rows: Vec<usize>,
    pub(super) known_cols: Vec<usize>,
}

/// Searches pivots. `random(k, n)` returns `k` numbers below `n`.
pub(super) fn search<T: LinalgScalar>(
    op: &'static str,
    samples: &mut Samples<'_, T>,
    candidates: &Candidates,
    kind: PivotSearch,
    stop: impl Fn(f64) -> Stop,
    direction: Direction,
    random: &mut dyn FnMut(usize, usize) -> Result<Vec<usize>>,
) -> Result<Found<T>> {
    let (m, n) = (candidates.rows.len(), candidates.cols.len());
    let (known, across) = match direction {
        Direction::Right => (candidates.known_cols.len(), n),
        Direction::Left => (candidates.known_rows.len(), m),
    };
    if kind == PivotSearch::Full || 2 * known + 1 >= across {
        let block = samples.block(op, &candidates.rows, &candidates.cols)?;
        let lu = RankRevealingLu::factor(block, [m, n], stop(samples.max_value()));
        let (rows, cols, error) = (lu.rows().to_vec(), lu.cols().to_vec(), lu.error());
        return Ok(Found { rows, cols, lu, error });
    }
    let mut rook = Rook { op, samples, candidates, stop: &stop };
    match direction {
        Direction::Right => rook.search(candidates.known_cols.clone(), Side::Columns, random),
        Direction::Left => rook.search(candidates.known_rows.clone(), Side::Rows, random),
    }
}

/// The lines that are fixed: all elements on them are evaluated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Columns,
    Rows,
}

impl Side {
    fn other(self) -> Self {
        if self == Side::Columns { Side::Rows } else { Side::Columns }
    }
}

struct Rook<'s, 'a, T: LinalgScalar, S> {
    op: &'static str,
    samples: &'s mut Samples<'a, T>,
    candidates: &'s Candidates,
    stop: &'s S,
}

impl<T: LinalgScalar, S: Fn(f64) -> Stop> Rook<'_, '_, T, S> {
    /// Alternates until pivots stay; doubles the number of fixed lines by random ones until the rank is less
    /// than their number. Ends with lines of the side begun with.
    fn search(
        &mut self,
        mut lines: Vec<usize>,
        side: Side,
        random: &mut dyn FnMut(usize, usize) -> Result<Vec<usize>>,
    ) -> Result<Found<T>> {
        let (m, n) = (self.candidates.rows.len(), self.candidates.cols.len());
        let across = if side == Side::Columns { n } else { m };
        loop {
            let extra = random(lines.len().max(1), across)?;
            let sampled = extra.into_iter().chain(0..across);
            let target = (2 * lines.len()).max(1).min(across);
            for line in sampled {
                if lines.len() >= target {
                    break;
                }
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            let offered = lines.len();
            let mut found = self.factor(&lines, side)?;
            let (first_rank, mut error) = (found.lu.rank(), found.error);
            for _ in 0..ALTERNATIONS {
                let before = (found.rows.clone(), found.cols.clone());
                let across = if side == Side::Columns { &found.rows } else { &found.cols };
                if across.is_empty() {
                    break;
                }
                let turned = self.factor(across, side.other())?;
                let along = if side == Side::Columns { &turned.cols } else { &turned.rows };
                error = error.max(turned.error);
                let along = if along.is_empty() { lines.clone() } else { along.clone() };
                found = self.factor(&along, side)?;
                error = error.max(found.error);
                if before == (found.rows.clone(), found.cols.clone()) {
                    break;
                }
            }
            found.error = error;
            let most = (self.stop)(self.samples.max_value()).rank.min(m).min(n);
            let rank = first_rank.min(found.lu.rank());
            if rank < offered || rank >= most || offered == across {
                return Ok(found);
            }
            lines = if side == Side::Columns { found.cols.clone() } else { found.rows.clone() };
        }
    }

    /// Factors all elements on the fixed lines.
    fn factor(&mut self, lines: &[usize], side: Side) -> Result<Found<T>> {
        let Candidates { rows, cols, .. } = self.candidates;
        let fixed = if side == Side::Columns { cols.pick(lines) } else { rows.pick(lines) };
        let (rows, cols) = if side == Side::Columns { (rows, &fixed) } else { (&fixed, cols) };
        let block = self.samples.block(self.op, rows, cols)?;
        let stop = (self.stop)(self.samples.max_value());
        let lu = RankRevealingLu::factor(block, [rows.len(), cols.len()], stop);
        let named = |picked: &[usize]| picked.iter().map(|&i| lines[i]).collect::<Vec<_>>();
        let (rows, cols) = match side {
            Side::Columns => (lu.rows().to_vec(), named(lu.cols())),
            Side::Rows => (named(lu.rows()), lu.cols().to_vec()),
        };
        let error = lu.error();
        Ok(Found { rows, cols, lu, error })
    }
}
