//! Typed errors become panics here: Burn's trait methods cannot return them.

use std::fmt::Display;

/// The value, or a panic with the text of the error at the caller.
#[inline]
#[track_caller]
pub(crate) fn accept<T, E: Display>(result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
