//! Quantics: functions on grids of `base^R` points per variable as trains of their digits.
//!
//! ```text
//! index of variable v    digits s₁ … s_R, the most significant first
//! interleaved            x₁ y₁ x₂ y₂ …      one digit per site
//! fused                  (x₁ y₁) (x₂ y₂) …  one site per level, x the more significant digit
//! grouped                x₁ x₂ … y₁ y₂ …
//! ```
//!
//! | task | |
//! |---|---|
//! | index ↔ coordinate ↔ digits | [`Grid`] |
//! | the train of a function | [`interpolate()`] |
//! | integral | [`Grid::integrate`] |
//! | shift, flip, `f(A x + b)` | [`shift`], [`flip`], [`affine()`] |
//! | derivatives | [`derivative()`], [`stencil`] |
//! | Fourier transform | [`fourier()`] |
//! | an operator on some variables of a grid | [`Grid::place`] |
//! | products of functions | [`TensorTrain::hadamard`](crate::train::TensorTrain::hadamard) |
//!
//! References: I. Oseledets, Doklady Math. 80, 653 (2009); B. Khoromskij, Constr. Approx. 34, 257 (2011);
//! M. K. Ritter et al., Phys. Rev. Lett. 132, 056501 (2024).

mod affine;
mod derivative;
mod fourier;
mod grid;
mod interpolate;
mod place;

pub use affine::{Boundary, affine, flip, shift};
pub use derivative::{derivative, stencil};
pub use fourier::{Frequencies, fourier};
pub use grid::{Grid, GridBuilder, Layout};
pub use interpolate::interpolate;
