//! Recurrences along an axis, one kernel each, with derivatives: cumulative sums, linear recurrences, scans over any
//! monoid, recurrent layers, the Kalman filter. Many lanes are vectorised side by side and a few long lanes are split
//! into chunks of fixed length, so results do not depend on the number of threads. Burn users call
//! `burn_t4a::ext::scan`.
//!
//! ```
//! use t4a_diff::{Operation, Value, check};
//! use t4a_scan::LinearRecurrence;
//!
//! // h ← h/2 + 1
//! let [a, b] = [0.5, 1.0].map(|x| Value::Float(check::array(&[3], |_| x)));
//! let h = LinearRecurrence::new(0).forward(&[a, b], &[false; 2])?;
//! assert_eq!(check::elements(&h.results[0]), [1.0, 1.5, 1.75]);
//! # Ok::<(), t4a_tensor::TensorError>(())
//! ```
//!
//! | task | |
//! |---|---|
//! | cumulative sums, products, extrema, log-sum-exp | [`running()`] of any dtype; with derivatives [`Cumulative`] |
//! | h ← a h + b, real or complex | [`LinearRecurrence`] |
//! | h ← A h + b with small matrices | [`MatrixRecurrence`] |
//! | an associative scan | [`AssociativeScan`] over a [`Monoid`] |
//! | gated recurrent layers | [`Recurrent`] of a [`Cell`] |
//! | a Kalman filter and its likelihood | [`KalmanFilter`] |
//! | ln Z, marginals, best and K best sequences of tags | [`LinearChain`]; ln Z alone [`LogPartition`] |
//! | a user-defined body, on a tape in bounded memory | [`body`] |
//! | placement of checkpoints for a reverse pass in bounded memory | [`schedule`] |
//!
//! With `reverse` a recurrence runs from the end of the axis to its beginning, and result t has the index of operand t.

// body           scan, loops and choices with a user-defined body, over arrays and their tapes
// lanes          loops: many lanes in vectors, a few long lanes in chunks
// running        sums, products, maxima, minima, log-sum-exp of engine tensors of any dtype
// cumulative     Cumulative: the same with derivatives
// recurrence     LinearRecurrence: h ← a h + b, real and complex
// matrix         MatrixRecurrence: h ← A h + b with small matrices
// monoid         Monoid, FloatMonoid: operations of associative scans
// associative    AssociativeScan: over any monoid
// cell           Cell: gated cells of recurrent layers
// recurrent      Recurrent: a recurrent layer over a sequence
// kalman         KalmanFilter: prediction and update over a sequence
// chain          LinearChain: sums and maxima over sequences of tags
// schedule       reverse mode through many steps in bounded memory
#![deny(unsafe_code)]

mod affine;
mod associative;
pub mod body;
mod cell;
mod chain;
mod cumulative;
mod error;
mod kalman;
#[allow(unsafe_code)]
mod lanes;
mod matrix;
mod monoid;
mod operand;
mod recurrence;
mod recurrent;
mod recurrent_kernel;
mod running;
pub mod schedule;

pub use associative::AssociativeScan;
pub use cell::Cell;
pub use chain::{LinearChain, LogPartition, ScoredTags, mask_lengths};
pub use cumulative::Cumulative;
pub use error::{CarryLeaf, Result, ScanError, ScanPath};
pub use kalman::KalmanFilter;
pub use matrix::MatrixRecurrence;
pub use monoid::{FloatMonoid, Monoid};
pub use recurrence::LinearRecurrence;
pub use recurrent::Recurrent;
pub use running::{Running, running};
