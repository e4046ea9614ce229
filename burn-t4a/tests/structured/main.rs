//! Structured tensors on Burn: every operation on the engine, on BurnT4a, on other backends and on tapes,
//! against each other, against dense arrays and against differences.

mod cases;
mod dense;
mod derivatives;
mod factor;
mod input;
mod kinds;
mod moves;
mod tape;
