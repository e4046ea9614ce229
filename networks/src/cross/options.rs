//! Options, reports and progress of a cross interpolation.

use crate::train::{Result, TrainError, check_index};

/// The search for pivots in a two-site matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PivotSearch {
    /// Alternates between columns and rows of the pivots: `O(χ² d)` values per bond. Matrices of which that
    /// would be most are evaluated as a whole.
    #[default]
    Rook,
    /// The whole matrix: `O(χ² d²)` values per bond.
    Full,
}

/// Settings of a cross interpolation.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossOptions {
    pub(crate) tolerance: f64,
    pub(crate) max_bond: usize,
    pub(crate) max_sweeps: usize,
    pub(crate) search: PivotSearch,
    pub(crate) nested: bool,
    pub(crate) patience: usize,
    pub(crate) global_starts: usize,
    pub(crate) global_margin: f64,
    pub(crate) initial_pivots: Vec<Vec<usize>>,
    pub(crate) cache_values: usize,
    pub(crate) seed: u64,
}

impl Default for CrossOptions {
    fn default() -> Self {
        Self {
            tolerance: 1e-8,
            max_bond: usize::MAX,
            max_sweeps: 100,
            search: PivotSearch::Rook,
            nested: false,
            patience: 3,
            global_starts: 5,
            global_margin: 10.0,
            initial_pivots: Vec::new(),
            cache_values: usize::MAX,
            seed: 0,
        }
    }
}

impl CrossOptions {
    /// Tolerance 1e-8, rook search, no limit of the bonds, at most 100 half sweeps.
    pub fn new() -> Self {
        Self::default()
    }
    /// Pivots of at most `tolerance · max |F|` are rejected, the maximum over all values seen.
    pub fn tolerance(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }
    /// The largest bond, 1 or more.
    pub fn max_bond(self, max_bond: usize) -> Self {
        Self { max_bond, ..self }
    }
    /// The largest number of half sweeps of one run, 1 or more.
    pub fn max_sweeps(self, max_sweeps: usize) -> Self {
        Self { max_sweeps, ..self }
    }
    /// The search for pivots.
    pub fn search(self, search: PivotSearch) -> Self {
        Self { search, ..self }
    }
    /// Rows and columns of two-site matrices without the previous pivots of the bond: each `I_b` is then
    /// contained in `I_{b−1} ×` site `b − 1` after a half sweep to the right, and each `J_b` in
    /// site `b × J_{b+1}` after one to the left. Fewer values, less robust.
    pub fn nested(self, nested: bool) -> Self {
        Self { nested, ..self }
    }
    /// Number of successive half sweeps with errors within the tolerance, without new global pivots and
    /// without growing bonds after which the run has converged, 1 or more.
    pub fn patience(self, patience: usize) -> Self {
        Self { patience, ..self }
    }
    /// Random starting points of the search for large errors after each half sweep; 0 turns it off. From each
    /// point one index after another moves to the value of largest error.
    pub fn global_search(self, starts: usize) -> Self {
        Self { global_starts: starts, ..self }
    }
    /// Points of the global search become pivots if their error exceeds `margin · tolerance · max |F|`.
    pub fn global_margin(self, margin: f64) -> Self {
        Self { global_margin: margin, ..self }
    }
    /// Points to start from, at least one of which is not a zero of the function. Without any, a maximum
    /// of `|F|` is searched.
    pub fn initial_pivots(self, pivots: &[Vec<usize>]) -> Self {
        Self { initial_pivots: pivots.to_vec(), ..self }
    }
    /// The largest number of function values that are kept, those that were used last; no limit by default. A value of
    /// 8 bytes takes about 40 of memory. Values that were dropped are computed again: the train is the same.
    pub fn cache_values(self, cache_values: usize) -> Self {
        Self { cache_values, ..self }
    }
    /// Seed of all random choices: equal seeds, equal results.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    pub(crate) fn validate(&self, op: &'static str, sizes: &[usize]) -> Result<()> {
        for (name, value) in [("tolerance", self.tolerance), ("global margin", self.global_margin)]
        {
            if !value.is_finite() || value < 0.0 {
                let message = format!("the {name} must be finite and ≥ 0, given {value}");
                return Err(TrainError::value(op, message));
            }
        }
        let counts = [
            ("max_bond", self.max_bond),
            ("max_sweeps", self.max_sweeps),
            ("patience", self.patience),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == 0) {
            return Err(TrainError::value(op, format!("{name} must be at least 1")));
        }
        self.initial_pivots.iter().try_for_each(|pivot| check_index(op, sizes, pivot))
    }
}

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Errors within the tolerance.
    Converged,
    /// Bonds at their limit, errors above the tolerance.
    MaxBond,
    /// The number of half sweeps is exhausted.
    MaxSweeps,
    /// The callback stopped the run.
    Stopped,
}

/// State after a half sweep, as callbacks receive it.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Number of half sweeps so far, of all runs.
    pub sweep: usize,
    /// The largest rejected pivot of this half sweep.
    pub pivot_error: f64,
    /// The largest `|F − train|` on the points of the global search; 0 without one.
    pub global_error: f64,
    /// The largest `|F|` seen.
    pub max_value: f64,
    /// Pivots that the global search added.
    pub global_pivots: usize,
    /// The largest bond.
    pub max_bond: usize,
    /// Function values so far.
    pub evaluations: usize,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossReport {
    /// The reason why the run ended.
    pub status: Status,
    /// The largest rejected pivot of the last half sweep, absolute. See the [module](super).
    pub pivot_error: f64,
    /// The largest `|F − train|` on the points of the last global search, absolute; 0 without one.
    pub global_error: f64,
    /// The largest `|F|` seen.
    pub max_value: f64,
    /// Number of function values, each point counted once, or as often as a limited cache dropped it.
    pub evaluations: usize,
    /// Number of half sweeps, of all runs.
    pub sweeps: usize,
    /// Sizes of the inner bonds.
    pub bonds: Vec<usize>,
}

impl CrossReport {
    /// True if the run ended by convergence.
    pub fn converged(&self) -> bool {
        self.status == Status::Converged
    }
}
