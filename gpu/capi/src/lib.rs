//! The C library `libt4a_cuda`: operations of `libt4a` on CUDA tensors of DLPack, by the kernels of `t4a-cube`. The
//! interface is described in `include/t4a_cuda.h`. The library contains `libt4a`, which parses operations and keeps
//! errors.
//!
//! ```text
//! operands of the caller   copied on the stream of the caller to memory of CubeCL
//! CubeTensor               Operations::run on CubeBackend<CudaRuntime>, on one stream of CubeCL
//! results                  exported as they are; their memory is reused after the context is idle
//! ```
//!
//! | file | |
//! |---|---|
//! | `driver` | functions of the CUDA driver: devices, contexts, copies |
//! | `faults` | panics of threads of CubeCL as errors |
//! | `operands` | operands as tensors of CubeCL |
//! | `results` | exported tensors, and memory that was released |
//! | `run` | the call |
//!
//! Callers guarantee the validity of pointers; all other properties of arguments are checked.
#![cfg(feature = "cuda")]

mod driver;
mod faults;
mod operands;
pub mod results;
pub mod run;

use std::ffi::c_int;

use t4a::error::{Error, Failure, enter};

/// The backend of the operations.
type Card = burn_cubecl::CubeBackend<cubecl::cuda::CudaRuntime, f32, i32, u8>;
/// A tensor of the backend.
type CardTensor = burn_cubecl::tensor::CubeTensor<cubecl::cuda::CudaRuntime>;

/// Major version of the binary interface; that of the caller must be equal.
pub const ABI_MAJOR: u32 = 1;
/// Minor version of the binary interface, increased by each new function or field.
pub const ABI_MINOR: u32 = 0;

/// Version of the binary interface, `major << 16 | minor`.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_cuda_abi() -> u32 {
    ABI_MAJOR << 16 | ABI_MINOR
}

/// Writes the number of CUDA devices, at least 1.
///
/// # Safety
/// `count` and `error` are null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_cuda_devices(count: *mut i32, error: *mut *mut Error) -> c_int {
    let find = || {
        let found = driver::devices()?;
        if count.is_null() {
            return Err(Failure::null("the place of the number"));
        }
        // SAFETY: as the caller promises.
        unsafe { count.write(found as i32) };
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, find) }
}
