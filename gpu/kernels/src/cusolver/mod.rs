//! Factorisations of matrices of any size on CUDA, by cuSOLVER and cuBLAS in the memory of CubeCL.
//!
//! The libraries read column-major matrices. A row-major matrix is the transpose of a column-major one, so factors are
//! returned with the strides that the library has written, without copies. Each call copies A, checks it on the way,
//! and waits for that check before the library starts, and for the library before it returns.

mod calls;
mod factor;
mod library;
mod memory;
mod triangular;

use core::any::TypeId;

use cubecl::cuda::CudaRuntime;
use cubecl::prelude::*;

pub use factor::factor_large;
pub use triangular::solve_triangular_large;

/// Returns true if the runtime is CUDA and the libraries can be loaded.
pub fn has_library<R: Runtime>() -> bool {
    TypeId::of::<R>() == TypeId::of::<CudaRuntime>() && library::is_present()
}
