//! Structured tensors on Burn: every operation on the engine, on BurnT4a, on other backends and on tapes, compared
//! with each other, with dense arrays and with finite differences.

mod cases;
mod dense;
mod derivatives;
mod factor;
mod input;
mod kinds;
mod moves;
mod tape;
