//! Methods of Burn's traits on batches.

// Results are written where they are made: a tuple says which.
#![allow(clippy::type_complexity)]

mod bools;
mod floats;
mod ints;
mod modules;
mod rows;
