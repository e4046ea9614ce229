//! CubeCL kernels for what Burn's GPU backends lack or get wrong, with their checks on the host.
//!
//! ```text
//! kernels      pure `#[cube]` code, one file per kernel
//! extreme      greatest, least, their places, the first NaN of a lane
//! product      matrix products over semirings, in full precision
//! log_sum      cotangents of products over log-sum-exp
//! factor       factorisations of small matrices, triangular systems
//! scan         linear recurrences and running sums
//! launch       grids, tiles, sizes
//! ```
//!
//! Indices are 32 bits wide. What does not fit is an error before a launch: kernels are launched unchecked, and
//! a tile of the wrong size would compute fast and wrong.

mod error;
mod extreme;
mod factor;
mod kernels;
mod launch;
mod log_sum;
mod product;
mod scan;

pub use error::{CubeError, Result};
pub use extreme::{Extreme, Lanes, extreme};
pub use factor::{Factorisation, Factors, Triangle, factor, fits_triangular, solve_triangular};
pub use launch::{Operand, supports};
pub use log_sum::log_sum_cotangents;
pub use product::{Product, Semiring, Tile, product};
pub use scan::{Recurrence, recurrence};
