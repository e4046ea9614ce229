//! Where an operation without a derivative ends: Burn's trait methods cannot return errors.

/// Refuses an operation.
///
/// # Panics
/// Always, with the names of transformation and operation, and the reason.
#[track_caller]
pub(crate) fn refused(operation: &str, reason: &str) -> ! {
    panic!("jvp: {operation}: {reason}")
}
