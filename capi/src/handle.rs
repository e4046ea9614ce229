//! Handles held by callers. With debug assertions handles are counted by type and address: use of a released handle
//! is an error, and a second release has no effect. Without them handles are trusted.

use crate::error::Failure;

#[cfg(debug_assertions)]
mod table {
    use std::any::TypeId;
    use std::collections::BTreeMap;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// Number of handles by type and address.
    static LIVE: Mutex<BTreeMap<(TypeId, usize), usize>> = Mutex::new(BTreeMap::new());

    fn live() -> MutexGuard<'static, BTreeMap<(TypeId, usize), usize>> {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key<T: 'static>(at: *const T) -> (TypeId, usize) {
        (TypeId::of::<T>(), at.addr())
    }

    pub(super) fn add<T: 'static>(at: *const T) {
        *live().entry(key(at)).or_default() += 1;
    }

    pub(super) fn remove<T: 'static>(at: *const T) -> bool {
        let mut live = live();
        let Some(count) = live.get_mut(&key(at)) else { return false };
        *count -= 1;
        if *count == 0 {
            live.remove(&key(at));
        }
        true
    }

    pub(super) fn contains<T: 'static>(at: *const T) -> bool {
        live().contains_key(&key(at))
    }
}

/// Without debug assertions every handle counts as valid.
#[cfg(not(debug_assertions))]
mod table {
    pub(super) fn add<T: 'static>(_: *const T) {}

    pub(super) fn remove<T: 'static>(_: *const T) -> bool {
        true
    }

    pub(super) fn contains<T: 'static>(_: *const T) -> bool {
        true
    }
}

/// Registers one more handle at this address.
pub(crate) fn made<T: 'static>(at: *const T) -> *const T {
    table::add(at);
    at
}

/// Unregisters a handle; returns false if there is none.
pub(crate) fn released<T: 'static>(at: *const T) -> bool {
    !at.is_null() && table::remove(at)
}

/// Object of a handle.
///
/// # Errors
/// For null; with debug assertions, for a released handle.
///
/// # Safety
/// `at` is null or a handle that was not released.
pub(crate) unsafe fn get<'a, T: 'static>(at: *const T, what: &str) -> Result<&'a T, Failure> {
    if at.is_null() {
        return Err(Failure::null(what));
    }
    if !table::contains(at) {
        return Err(Failure::argument(format!("{what} is a handle that was released")));
    }
    // SAFETY: as the caller promises.
    Ok(unsafe { &*at })
}
