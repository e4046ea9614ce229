//! Recurrences along an axis as operations: each with its shapes, its portable definition and its derivative
//! rule in the vocabulary of `t4a-diff`, and the engine's fused kernels.
//!
//! ```text
//! lanes          the loops: many lanes in vectors, few long ones in chunks
//! running        sums, products, maxima, minima, log-sum-exp of engine tensors of any dtype
//! cumulative     Cumulative: the same with derivatives
//! recurrence     LinearRecurrence: h ← a h + b, real and complex
//! matrix         MatrixRecurrence: h ← A h + b with small matrices
//! monoid         Monoid, FloatMonoid: what associative scans combine with
//! associative    AssociativeScan: over any monoid
//! cell           Cell: gated cells of recurrent layers
//! recurrent      Recurrent: a recurrent layer over a sequence
//! kalman         KalmanFilter: prediction and update over a sequence
//! schedule       reverse mode through many steps in bounded memory
//! ```
//!
//! Results do not depend on the number of threads: lanes are cut at fixed places. With `reverse` a
//! recurrence runs from the end of the axis to its beginning, and every result lies where its operand does.
#![deny(unsafe_code)]

mod affine;
mod associative;
mod cell;
mod cumulative;
mod error;
mod kalman;
mod kalman_kernel;
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
#[cfg(test)]
mod tests;

pub use associative::AssociativeScan;
pub use cell::Cell;
pub use cumulative::Cumulative;
pub use error::{Result, ScanError};
pub use kalman::KalmanFilter;
pub use matrix::MatrixRecurrence;
pub use monoid::{FloatMonoid, Monoid};
pub use recurrence::LinearRecurrence;
pub use recurrent::Recurrent;
pub use running::{Running, running};
