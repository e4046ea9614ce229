//! Elementary functions on `f32` and `f64` that vectorise.
//!
//! A loop over one of these functions inside [`crate::simd::dispatch`] becomes a loop over vector
//! registers: there are no calls, tables or branches, special cases are blends, and everything is
//! inlined (`sin`, `cos` and `tan` of `f64` are the exception, see the source of `trig`). Results
//! have the same bits on every instruction set, since products that matter are fused everywhere.
//!
//! [`mod@f32`] and [`mod@f64`] list the functions with their largest error; the other modules hold one
//! family each for both types, with the source of the method. Coefficients are our own minimax
//! fits (Remez exchange in 240-bit arithmetic, then rounded).

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
