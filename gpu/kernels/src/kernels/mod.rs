//! Bodies of kernels, `#[cube]` code without host code, so that other versions of CubeCL can compile these files.
#![allow(clippy::manual_div_ceil, reason = "not every version has it in kernels")]

use cubecl::prelude::*;

pub(crate) mod blocks;
pub(crate) mod element;
pub(crate) mod extreme;
pub(crate) mod factor;
pub(crate) mod log_sum;
pub(crate) mod product;
pub(crate) mod scan;
pub(crate) mod steps;
pub(crate) mod tile;

/// Returns true for NaN.
#[cube]
fn is_nan<F: Float>(x: F) -> bool {
    bool::cast_from(x.is_nan())
}
