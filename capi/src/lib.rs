//! The C library `libt4a`: operations on DLPack tensors, with derivatives of any order. The interface
//! is described in `include/t4a.h`; Rust programs use the crates below it.
//!
//! | file | |
//! |---|---|
//! | `described` | memory of a caller: checked description, conversion to tensors of the engine |
//! | `dlpack` | structs of DLPack, exported tensors |
//! | `error` | status codes, error objects, conversion of panics to errors |
//! | `handle` | registry of handles that have not been released |
//! | `tensor` | tensor handles |
//! | `op` | operation handles |
//! | `networks` | ground states of chains, tensor trains of functions |
//! | `parts` | complex tensors as pairs of operands |
//! | `run` | execution into new or given tensors |
//! | `saved` | execution with residuals, and the reverse pass |
//! | `python` | built-in functions of CPython for operations on arrays of NumPy and PyTorch |
//! | `xla` | operations as custom calls of XLA |
//!
//! Rust functions are public for libraries of other devices (`gpu/capi`), which share operations and errors.
//!
//! This crate contains the unsafe code of the interface. Callers guarantee the validity of pointers; all other properties of
//! arguments are checked.

mod denormals;
pub mod described;
pub mod dlpack;
pub mod error;
mod handle;
pub mod networks;
pub mod op;
pub mod parts;
pub mod python;
pub mod run;
pub mod saved;
pub mod tensor;
pub mod xla;

use std::ffi::{c_char, c_int};

use error::{Error, Failure, Status, enter};
use t4a_algebra::parallel;

/// Major version of the binary interface; that of the caller must be equal.
pub const ABI_MAJOR: u32 = 1;
/// Minor version of the binary interface, increased by each new function or field.
pub const ABI_MINOR: u32 = 3;

/// Version of the binary interface, `major << 16 | minor`.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_abi() -> u32 {
    ABI_MAJOR << 16 | ABI_MINOR
}

/// Version of the library as text.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Sets the maximum number of threads of subsequent operations.
///
/// # Safety
/// `error` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn t4a_set_threads(count: i32, error: *mut *mut Error) -> c_int {
    let set = || {
        let count = usize::try_from(count)
            .ok()
            .filter(|&count| count > 0)
            .ok_or_else(|| Failure::new(Status::Argument, format!("{count} threads are none")))?;
        parallel::set_threads(count);
        Ok(())
    };
    // SAFETY: as the caller promises.
    unsafe { enter(error, set) }
}

/// Maximum number of threads of an operation.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_threads() -> i32 {
    parallel::threads() as i32
}
