//! Conversion of the engine's typed errors to panics. The methods of Burn's traits are infallible, so errors end
//! here.

use std::fmt::Display;

/// Returns the value, or panics at the caller's location with the text of the error.
#[inline]
#[track_caller]
pub(crate) fn accept<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
