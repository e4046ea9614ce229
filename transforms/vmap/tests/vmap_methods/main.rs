//! Methods of Burn's traits on batches.

mod bools;
mod floats;
mod ints;
mod modules;
mod rows;
