//! Transformations in each other, and transformations that have nothing to do.
//!
//! `compositions` are chains of transformations against formulas; `idle` runs every family of methods on
//! `Vmap` without a batch, `Jvp` without tangents and `Traced` without a recording: they are those of the
//! backend below, to the bit.

mod compositions;
mod idle;
