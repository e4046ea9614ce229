//! Methods of Burn's backend traits on batches.

// Result types are tuples written in full at each row.
#![allow(clippy::type_complexity)]

mod bools;
mod floats;
mod ints;
mod modules;
mod rows;
