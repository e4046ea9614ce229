//! Tensor cross interpolation: the train of a function of `n` indices from few of its values.
//!
//! ```text
//! bond b between sites b − 1 and b      pivots I_b ⊂ indices of sites 0 … b − 1, J_b ⊂ indices of sites b … n − 1
//! two-site matrix at bond b             rows I_{b−1} × site b − 1, columns site b × J_{b+1}
//! update                                rank-revealing LU of that matrix: new I_b, J_b and a core
//! half sweep                            all bonds from left to right, or back: a complete train
//! ```
//!
//! Rows and columns also contain the pivots that a bond has already (unless
//! [`CrossOptions::nested`]), so that no pivot is lost, and pivots from a random search for large errors
//! ([`CrossOptions::global_search`]). Values are cached: the function is called once per point.
//!
//! | TensorCrossInterpolation.jl | here |
//! |---|---|
//! | `crossinterpolate2(T, f, dims)` | [`interpolate`] |
//! | `optimize!` | [`CrossInterpolation::run`] |
//! | `BatchEvaluator`, `ThreadedBatchEvaluator` | [`Function::batched`], [`Function::parallel`] |
//! | `CachedFunction` | always on |
//! | `pivotsearch = :rook`, `:full` | [`CrossOptions::search`] |
//! | `maxbonddim`, `maxiter`, `ncheckhistory`, `strictlynested` | `max_bond`, `max_sweeps`, `patience`, `nested` |
//! | `nsearchglobalpivot`, `tolmarginglobalsearch` | `global_search`, `global_margin` |
//! | `integrate(T, f, a, b; GKorder)` | [`integrate()`] with [`Rule::gauss_kronrod`] |
//! | `rrlu`, `MatrixLUCI` | [`RankRevealingLu`] |
//! | `TensorTrain`, `sum`, `compress!` | [`TensorTrain`](crate::train::TensorTrain) and its methods |
//!
//! # Errors reported
//! [`CrossReport::pivot_error`] is the largest rejected pivot of the last half sweep. With
//! [`PivotSearch::Full`] that is the largest deviation between the function and its cross interpolation on
//! the two-site matrices; with [`PivotSearch::Rook`] the largest one on the rows and columns that were
//! sampled. [`CrossReport::global_error`] is the largest `|F − train|` on the points of the random search.
//! Both are maxima over samples, lower bounds of the error `max |F − train|` where it was not
//! sampled: a narrow peak may be missed. `initial_pivots` names points near it.
//!
//! Reference: Y. Núñez Fernández, M. K. Ritter, M. Jeannin, J.-W. Li, T. Kloss, T. Louvet, S. Terasaki,
//! O. Parcollet, J. von Delft, H. Shinaoka, X. Waintal, SciPost Phys. 18, 104 (2025).
//!
//! ```
//! use t4a_networks::cross::{CrossOptions, Function, interpolate};
//! // A sum over 10¹⁰ points by a few hundred evaluations.
//! let f = |x: &[usize]| 1.0 / (1.0 + x.iter().sum::<usize>() as f64);
//! let (train, report) = interpolate(Function::new(&[10; 10], f), &CrossOptions::new().tolerance(1e-10))?;
//! assert!(report.converged() && report.evaluations < 100_000);
//! assert!((train.eval(&[3, 1, 4, 1, 5, 9, 2, 6, 5, 3])? - 1.0 / 40.0).abs() < 1e-8);
//! # Ok::<(), t4a_networks::train::TrainError>(())
//! ```

mod driver;
mod function;
mod global;
mod integrate;
mod options;
mod pivots;
mod quadrature;
mod samples;
mod search;
mod sweep;

pub use crate::train::RankRevealingLu;
pub use driver::{CrossInterpolation, interpolate};
pub use function::{Function, Points};
pub use integrate::{Integral, integrate};
pub use options::{CrossOptions, CrossReport, PivotSearch, Progress, Status};
pub use quadrature::Rule;
