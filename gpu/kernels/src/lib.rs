//! CubeCL kernels for operations that Burn's GPU backends lack or compute incorrectly, with checks on the host.
//!
//! ```text
//! kernels      `#[cube]` code without host code, one file per kernel
//! extreme      maximum, minimum, argmax, argmin of a lane
//! product      matrix products over semirings and of complex numbers, in full precision
//! blocks       products and copies of parts of flat arrays, all in one launch
//! element      products of elements without a derivative: integers, values with counts, lists of the best values
//! log_sum      log-sum-exp products and their cotangents
//! factor       factorisations of small matrices, triangular systems
//! cusolver     factorisations of matrices of any size on CUDA, with the feature `cusolver`
//! scan         linear recurrences and cumulative operations
//! launch       operands, index checks, grids
//! ```
//!
//! Indices are 32 bits wide. Larger operands are an error before the launch: kernels are launched unchecked, and a
//! tile of the wrong size would return wrong results.

mod blocks;
#[cfg(feature = "cusolver")]
mod cusolver;
mod element;
mod error;
mod extreme;
mod factor;
mod kernels;
mod launch;
mod log_sum;
mod product;
mod scan;

pub use blocks::{CopyTable, ProductTable, block_copies, block_products, complex_block_products};
#[cfg(feature = "cusolver")]
pub use cusolver::{factor_large, has_library, solve_triangular_large};
pub use element::{ElementForm, ElementOperand, element_product};
pub use error::{CubeError, Result};
pub use extreme::{Extreme, Lanes, extreme};
pub use factor::{Factorisation, Factors, Triangle, factor, fits_triangular, solve_triangular};
pub use launch::{Operand, supports};
pub use log_sum::log_sum_cotangents;
pub use product::{OperandParts, Product, Semiring, Tile, complex_product, product};
pub use scan::{LaneScan, ScanKind, scan};
