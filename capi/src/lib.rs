//! The C library `libt4a`: operations by value on tensors of DLPack, with derivatives to any order. The interface
//! is described in `include/t4a.h`; Rust programs use the crates below it.
//!
//! | file | |
//! |---|---|
//! | `dlpack` | structs of DLPack; their memory as tensors of the engine, and the way back |
//! | `error` | statuses, error objects, the border that no panic crosses |
//! | `handle` | handles that were not released |
//! | `tensor` | handles of tensors |
//! | `op` | handles of operations |
//! | `networks` | ground states of chains, tensor trains of functions |
//! | `parts` | complex tensors as pairs of operands |
//! | `run` | running, into new tensors or into given ones; kept values for a reverse pass |
//! | `python` | built-in functions of CPython for operations on arrays of NumPy and PyTorch |
//! | `xla` | operations as custom calls of XLA |
//!
//! Unsafe code of the interface is here alone. What a pointer refers to is the caller's promise; everything
//! else is checked.

pub mod dlpack;
pub mod error;
mod handle;
pub mod networks;
pub mod op;
mod parts;
pub mod python;
pub mod run;
pub mod tensor;
pub mod xla;

use std::ffi::{c_char, c_int};

use error::{Error, Failure, Status, enter};

/// The part of the version that callers have to have too.
pub const ABI_MAJOR: u32 = 1;
/// The part of the version that grows with each function or field that is added.
pub const ABI_MINOR: u32 = 1;

/// `major << 16 | minor`.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_abi() -> u32 {
    ABI_MAJOR << 16 | ABI_MINOR
}

/// The version of the library.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Fixes the number of threads, before the first work.
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
        let pool = rayon::ThreadPoolBuilder::new().num_threads(count).build_global();
        pool.map_err(|error| Failure::new(Status::Unsupported, error.to_string()))
    };
    // SAFETY: the caller's promise.
    unsafe { enter(error, set) }
}

/// The number of threads that work.
#[unsafe(no_mangle)]
pub extern "C" fn t4a_threads() -> i32 {
    std::panic::catch_unwind(rayon::current_num_threads).map_or(0, |n| n as i32)
}
