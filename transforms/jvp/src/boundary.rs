//! Panics of operations without a derivative: Burn's trait methods cannot return errors.

/// Rejects an operation.
///
/// # Panics
/// Always, with the names of the transformation and the operation, and the reason.
#[track_caller]
pub(crate) fn refused(operation: &str, reason: &str) -> ! {
    panic!("jvp: {operation}: {reason}")
}
