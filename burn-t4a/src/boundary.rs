//! Where typed errors become panics: Burn's trait methods cannot return them.

use t4a_tensor::Result;

/// The value, or a panic with the text of the error at the caller.
#[inline]
#[track_caller]
pub(crate) fn accept<T>(result: Result<T>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{error}"),
    }
}
