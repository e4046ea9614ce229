//! Elementary functions on `f32` and `f64` that vectorise.
//!
//! A loop over one of these functions inside [`crate::simd::dispatch`] becomes a loop over vector registers: there are
//! no calls, tables or branches, special cases are blends, and all functions are inlined (`sin`, `cos` and `tan` of
//! `f64` are the exception, see the source of `trig`). Results are bit-identical on every instruction set, because all
//! significant products use fused multiply-add.
//!
//! [`mod@f32`] and [`mod@f64`] list the functions with their maximum error; the other modules contain one family each
//! for both types, with a reference for the method. Coefficients are minimax fits made for this crate (Remez exchange
//! in 240-bit arithmetic, then rounded).

mod arc;
mod erf;
mod exp;
pub mod f32;
pub mod f64;
mod hyperbolic;
mod lane;
mod log;
mod pow;
mod trig;
