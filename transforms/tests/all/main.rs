//! Combinations of transformations, as one program, in which the operations that they share are compiled once.

mod batched;
mod custom;
mod jax;
mod minimise;
mod nesting;
mod optim;
mod scans;
mod transform_derivatives;
mod trees;
mod vmap_modules;
