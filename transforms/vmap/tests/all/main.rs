//! Methods of Burn's backend traits and other operations on batches; options of `vmap`.

// Result types are tuples written in full at each row.
#![allow(clippy::type_complexity)]

mod bools;
mod floats;
mod ints;
mod modules;
mod operations;
mod policy;
mod rows;
mod user;
